"""Files whose code no TPU runs: they import what has kernels for CUDA alone, or turn 64 bits on, which a TPU has not.

In: the facts of a file, its text, and a finding of it. Out: the finding without what is said of a TPU.
"""

from __future__ import annotations

import re

from fusionlint.finding import Finding
from fusionlint.lazily import regex
from fusionlint.source.facts import Facts

# What has kernels for NVIDIA's GPUs, or for CPUs besides, and none for a TPU.
_NO_TPU = frozenset(
    ("cupy", "cuequivariance_ops_jax", "jax_finufft", "jax_triton", "madrona_mjx", "nvdiffrast", "pycuda",
     "transformer_engine", "triton")
)  # fmt: skip
_TPU = regex(r"^v\d+\w?$")
# At a file's own level: whatever it computes is then of 64 bits, unless it says otherwise.
_X64 = re.compile(rb"""^(jax\.)?config\.(update\(\s*["']jax_enable_x64["'],\s*True|jax_enable_x64\s*=\s*True)""", re.M)

_NAMES_ONE = re.compile(rb"(?<![a-z])tpus?(?![a-z])", re.I)


def is_off_tpu(facts: Facts, data: bytes) -> bool:
    """Whether a file imports such a package at its own level, or is part of one; or turns 64 bits on, which a TPU makes
    of others one by one, and never mentions one."""
    if _X64.search(data) and not _NAMES_ONE.search(data):
        return True
    bound = (target for kind, target, _ in facts.raw.bindings.get("", {}).values() if kind == "import")
    return any(name.partition(".")[0] in _NO_TPU for name in (facts.module, *bound))


def without_tpu(finding: Finding) -> Finding:
    """The finding as far as it is about other hardware."""
    targets = tuple(target for target in finding.targets if not _TPU.match(target))
    evidence = tuple(each for each in finding.evidence if not _TPU.match(each.target))
    unclaimed = tuple(target for target in finding.unclaimed if not _TPU.match(target))
    return finding._replace(targets=targets, evidence=evidence, unclaimed=unclaimed)
