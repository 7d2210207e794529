"""The functions of data/launched.py and of examples/cartpole as SPECs, and what one worker makes of them for h100."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import compilers

from fusionlint.compiling.artifacts import Artifacts

SOURCE = Path(__file__).parent / "data" / "launched.py"
CARTPOLE = Path(__file__).parents[1] / "examples" / "cartpole"
FUNCTIONS = {
    "sort": "f32[64,512]",
    "argsort_rows": "f32[512,8]",
    "fft": "c64[64,512]",
    "dot": "f32[64,128], f32[128,32]",
    "solve": "f32[16,16], f32[16,16]",
    "scatter": "f32[512], i32[64], f32[64]",
    "random": "key",
    "until": "f32[512]",
    "branch": "pred[], f32[512]",
    "switch": "i32[], f32[512]",
    "scan": "f32[256]",
    "nested": "f32[64]",
    "sorts_in_a_loop": "f32[64]",
    "top_k": "f32[16,512]",
    "convolve": "f32[2,3,16,16], f32[8,3,3,3]",
    "layers": "f32[64,128], [f32[128,128], f32[128,128], f32[128,128]]",
    "five_reductions": "f32[64,256]",
    "updates": "f32[32,16], i32[]",
    "constants": "f32[64]",
    "passed_through": "f32[8], f32[8]",
    "first_row": "f32[8,32,32]",
    "held": "f32[64], f32[64]",
}
VARIANTS = {
    "a_python_loop": "step(f32[2048,4], f32[2048], key, f32[2048,4])",
    "b_scan_rng_concat": "rollout(f32[2048,4], key)",
    "c_no_rng": "rollout(f32[2048,4])",
    "d_tuple_carry": "rollout(f32[2048,4])",
    "e_unroll": "rollout(f32[2048,4])",
}
NAMES = (*FUNCTIONS, *VARIANTS)


def spec(name: str) -> str:
    if name in VARIANTS:
        return f"{CARTPOLE / name}.py:{VARIANTS[name]}"
    return f"{SOURCE}:{name}({FUNCTIONS[name]})"


@cache
def compiled(target: str) -> dict[str, Artifacts]:
    """Everything in NAMES (of a TPU, whose compiler is slow, the variants), compiled for `target` by one worker; skips
    where its compiler is not installed."""
    names = NAMES if target == "h100" else tuple(VARIANTS)
    return compilers.compiled({name: spec(name) for name in names}, target)
