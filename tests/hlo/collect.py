"""Write the optimized HLO of programs.py as this Python's jax compiles it: `python tests/hlo/collect.py [TARGET...]`.

Run it once per jax version (targets h100 and v5e: with jax 0.10.2 and its plugins); it prints what it writes.
"""

import os
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent.parent)]
os.environ |= {"JAX_PLATFORMS": "cpu", "TPU_SKIP_MDS_QUERY": "1", "ALLOW_MULTIPLE_LIBTPU_LOAD": "1"}

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import programs  # noqa: E402

from fusionlint.compiling import targets  # noqa: E402

F32 = {n: ((n,), jnp.float32) for n in (8, 16, 64)}
SQUARE = ((8, 8), jnp.float32)
SCALAR = ((), jnp.int32)
ARGUMENTS = {
    "elementwise": (F32[64],),
    "softmax": (((64, 128), jnp.float32),),
    "scan": (F32[64],),
    "nested_scan": (F32[8],),
    "unbounded": (F32[64], ((), jnp.float32)),
    "branches": (F32[16], SCALAR),
    "ordering": (F32[64],),
    "spectrum": (((32,), jnp.complex64),),
    "linear_algebra": (SQUARE, F32[8]),
    "layers": (((2, 3, 8, 8), jnp.float32), ((4, 3, 3, 3), jnp.float32), ((256, 10), jnp.float32)),
    "updates": (F32[64], SCALAR),
    "randomness": (((2,), jnp.uint32),),
    "talkative": (F32[8],),
    "joined": (F32[64], F32[16]),
    "batched_gradient": (F32[8], ((4, 8), jnp.float32)),
    "low_precision": (((8,), jnp.bfloat16), ((8,), jnp.float8_e4m3fn), ((9,), jnp.int4)),
}
DONATED = {"updates": (0,)}
# Small enough to keep: a TPU's texts run to 40 kB for a sort.
CHOSEN = {
    ("0.10.2", "cpu"): list(ARGUMENTS),
    ("0.10.2", "h100"): ["scan", "nested_scan", "unbounded", "branches", "updates", "joined", "layers", "softmax"],
    ("0.10.2", "v5e"): ["scan", "nested_scan", "unbounded", "talkative", "joined", "low_precision"],
    ("0.8.1", "cpu"): ["scan", "softmax", "linear_algebra"],
    ("0.6.2", "cpu"): ["nested_scan", "unbounded", "branches", "spectrum"],
    ("0.4.38", "cpu"): ["scan", "nested_scan", "ordering", "updates", "talkative"],
}


def device(target):
    from jax.experimental.topologies import get_topology_desc

    chosen = targets.get(target)
    if chosen.platform == "cuda":
        return get_topology_desc(platform="cuda", target_config=chosen.device, topology="1x1x1").devices[0]
    if chosen.platform == "tpu":
        return get_topology_desc(platform="tpu", topology_name=chosen.device).devices[0]
    return jax.devices("cpu")[0]


def optimized(name, target):
    sharding = jax.sharding.SingleDeviceSharding(device(target))
    arguments = [jax.ShapeDtypeStruct(*given, sharding=sharding) for given in ARGUMENTS[name]]
    jax.clear_caches()  # or scan's own helpers carry the lines of an earlier scan
    jitted = jax.jit(getattr(programs, name), donate_argnums=DONATED.get(name, ()))
    text = jitted.lower(*arguments).compile().as_text()
    return text.replace(f"{HERE}{os.sep}", "")


if __name__ == "__main__":
    for target in sys.argv[1:] or ["cpu"]:
        for name in CHOSEN[jax.__version__, target]:
            path = HERE / f"{name}_{target}_jax{jax.__version__}.txt"
            path.write_text(optimized(name, target), encoding="utf-8")
            print(f"{path.name}: {path.stat().st_size / 1000:.1f} kB")
