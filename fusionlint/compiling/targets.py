"""The hardware to compile for: what its compiler needs, and the figures its costs are reckoned with.

Adding a target is adding a row to TARGETS (and, for an NVIDIA chip, its device text).
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

Platform = Literal["cpu", "cuda", "tpu"]


class TargetError(ValueError):
    """No such target, or none that could be used; the message is one line that says what to do."""


class Target(NamedTuple):
    """`device` is what the compiler is told about a device that is not there: a GpuTargetConfigProto in text form for
    cuda, a topology name for tpu, nothing for cpu. `memory_bandwidth` is in bytes per second, `launch_us` in
    microseconds per launch, `clock_hz` that of the cycles that the compiler estimates, `matrix_flops` what the matrix
    units do at most, in operations of bf16 per second; None where no figure is known. `source` says where the figures
    are from, `what` names the hardware, `differs` is one clause on what a compilation without the device gets otherwise
    than the device would. `kind` is a pattern of the names that jax gives such a device. `attached`: compile on the
    device itself."""

    name: str
    platform: Platform
    device: str = ""
    memory_bandwidth: float | None = None
    launch_us: float | None = None
    clock_hz: float | None = None
    matrix_flops: float | None = None
    source: str = ""
    what: str = ""
    differs: str = ""
    kind: str = ""
    attached: bool = False

    @property
    def measured_as(self) -> str:
        """The target of the same platform whose numbers stand in the pages of the rules."""
        return {"cpu": "cpu", "cuda": "h100", "tpu": "v5e"}[self.platform]


class _Nvidia(NamedTuple):
    """One NVIDIA chip: sizes in bytes, `clock` in GHz, `bandwidth` in bytes per second, `capability` major and minor;
    `fpus`, `threads` and `shared` memory are per core (SM); `matrix` is NVIDIA's figure for dense products of bf16, in
    operations per second."""

    described: str
    cores: int
    fpus: int
    threads: int
    clock: float
    bandwidth: int
    l2: int
    memory: int
    shared: int
    capability: tuple[int, int]
    matrix: float

    def config(self) -> str:
        """XLA's GpuTargetConfigProto with the fields that every CUDA plugin knows: newer ones carry rates of scalar
        and matrix units, which older plugins reject. A block may use 1 kB less than a core's shared memory."""
        major, minor = self.capability
        capability = f"major: {major} minor: {minor}" if minor else f"major: {major}"
        return f"""gpu_device_info {{
  threads_per_block_limit: 1024
  threads_per_warp: 32
  shared_memory_per_block: 49152
  shared_memory_per_core: {self.shared}
  threads_per_core_limit: {self.threads}
  core_count: {self.cores}
  fpus_per_core: {self.fpus}
  block_dim_limit_x: 2147483647
  block_dim_limit_y: 65535
  block_dim_limit_z: 65535
  memory_bandwidth: {self.bandwidth}
  l2_cache_size: {self.l2}
  clock_rate_ghz: {self.clock}
  device_memory_size: {self.memory}
  shared_memory_per_block_optin: {self.shared - 1024}
  cuda_compute_capability {{ {capability} }}
  registers_per_core_limit: 65536
  registers_per_block_limit: 65536
}}
platform_name: "CUDA"
dnn_version_info {{ major: 9 minor: 10 }}
runtime_version {{ major: 13 }}
device_description_str: "{self.described}"
"""


def _cuda(name: str, what: str, kind: str, source: str, chip: _Nvidia) -> Target:
    return Target(
        name,
        "cuda",
        device=chip.config(),
        memory_bandwidth=chip.bandwidth,
        launch_us=1.0,
        matrix_flops=chip.matrix,
        source=f"{source}; launch: XLA's GpuPerformanceModelBase; matrix units: NVIDIA's datasheet",
        what=what,
        differs="no autotuning: a device may choose cuBLAS, cuDNN or other tiles",
        kind=kind,
    )


def _tpu(
    *names: str,
    bandwidth: float,
    clock: float | None = None,
    differs: str = "nothing known: libtpu is the compiler that runs there",
) -> Target:
    """`names` are those of the target, its topology, the hardware, its kind and its page; `clock`, in GHz, is the peak
    of bf16 operations per second on that page over 2 x 128 x 128 x the matrix units, None where they are not told."""
    name, topology, what, kind, page = names
    return Target(
        name,
        "tpu",
        device=topology,
        memory_bandwidth=bandwidth,
        # Without a clock: what libtpu's cycles make of the least kernel on a v5e.
        launch_us=None if clock else 1.2,
        clock_hz=clock and clock * 1e9,
        source=f"docs.cloud.google.com/tpu/docs/{page}",
        what=what,
        differs=differs,
        kind=kind,
    )


_SPECS = "openxla/xla xla/backends/gpu/target_config/specs/"
_ADA = "NVIDIA Ada GPU Architecture whitepaper 2.01 and CUDA's tables for compute capability 8.9"

TARGETS = (
    Target(
        "cpu",
        "cpu",
        source="this machine",
        what="this machine's CPU",
        differs="it is the device; its counts are no advice for an accelerator",
        kind="cpu",
    ),
    _cuda(
        "a100",
        "NVIDIA A100 SXM 80 GB",
        "NVIDIA A100-SXM4-80GB",
        f"{_SPECS}a100_sxm_80.txtpb",
        _Nvidia(
            "NVIDIA A100-SXM4-80GB",
            *(108, 64, 2048, 1.41, 2_039_040_000_000, 41_943_040, 85_100_068_864, 167_936, (8, 0), 312e12),
        ),
    ),
    _cuda(
        "h100",
        "NVIDIA H100 SXM 80 GB",
        "NVIDIA H100 80GB HBM3",
        f"{_SPECS}h100_sxm.txtpb",
        _Nvidia(
            "NVIDIA H100 80GB HBM3",
            *(132, 128, 2048, 1.98, 3_352_320_000_000, 52_428_800, 84_942_979_072, 233_472, (9, 0), 989e12),
        ),
    ),
    _cuda(
        "h200",
        "NVIDIA H200 141 GB",
        "NVIDIA H200( .*)?",
        f"{_SPECS}h200.txtpb",
        _Nvidia(
            "NVIDIA H200 141GB HBM3e",
            *(132, 128, 2048, 1.98, 4_800_000_000_000, 52_428_800, 151_397_597_184, 233_472, (9, 0), 989e12),
        ),
    ),
    _cuda(
        "b200",
        "NVIDIA B200",
        "NVIDIA B200",
        f"{_SPECS}b200.txtpb",
        _Nvidia(
            "NVIDIA B200",
            *(148, 128, 2048, 1.965, 7_672_320_000_000, 132_644_864, 191_514_411_008, 233_472, (10, 0), 2250e12),
        ),
    ),
    _cuda(
        "l4",
        "NVIDIA L4 24 GB",
        "NVIDIA L4",
        _ADA,
        _Nvidia(
            "NVIDIA L4",
            *(58, 128, 1536, 2.04, 300_000_000_000, 50_331_648, 24_152_899_584, 102_400, (8, 9), 121e12),
        ),
    ),
    _cuda(
        "rtx4090",
        "NVIDIA GeForce RTX 4090",
        "NVIDIA GeForce RTX 4090",
        _ADA,
        _Nvidia(
            "NVIDIA GeForce RTX 4090",
            *(128, 128, 1536, 2.52, 1_008_000_000_000, 75_497_472, 25_757_220_864, 102_400, (8, 9), 165e12),
        ),
    ),
    _tpu(
        *("v4", "v4:2x2x1", "Google TPU v4, one chip", "TPU v4", "v4"),
        bandwidth=1200e9,
        clock=1.05,
        differs="compiled for one of a chip's two cores; a v4 device joins both",
    ),
    _tpu("v5e", "v5e:2x2", "Google TPU v5e, one chip", "TPU v5 lite|TPU v5e", "v5e", bandwidth=819e9, clock=1.5),
    _tpu("v5p", "v5p:2x2x1", "Google TPU v5p, one chip", "TPU v5|TPU v5p", "v5p", bandwidth=2765e9, clock=1.75),
    _tpu("v6e", "v6e:2x2", "Google TPU v6e (Trillium), one chip", "TPU v6 lite|TPU v6e", "v6e", bandwidth=1638e9),
    # A chip is two devices to jax, each with half of the memory.
    _tpu("tpu7x", "tpu7x:2x2x1", "Google TPU7x (Ironwood), half a chip", "TPU7x", "tpu7x", bandwidth=7380e9 / 2),
)
ATTACHED = {"gpu": "cuda", "tpu": "tpu"}  # names for whatever device of a platform is attached


def get(name: str) -> Target:
    """The target of that name, in whatever case. Raises TargetError."""
    known = {target.name: target for target in TARGETS}
    if not isinstance(name, str):  # as in pyproject.toml
        raise TypeError(f"target is the name of one, not {name!r}: ask once for each")
    if name.lower() in known:
        return known[name.lower()]
    import difflib  # nobody needs it who writes what there is

    names = [*known, *ATTACHED]
    near = difflib.get_close_matches(name.lower(), names, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(names)}"
    raise TargetError(f"there is no target {name!r}; {hint}")


def of_kind(kind: str) -> Target | None:
    """The target that jax calls `kind` (`NVIDIA H100 80GB HBM3`, `TPU v5 lite`); None for hardware not in the table."""
    return next((target for target in TARGETS if re.fullmatch(target.kind, kind)), None)


def missing(target: Target) -> str | None:
    """What keeps this target's compiler from running, with the one command that installs it; None if nothing does.
    Looks at what is installed without importing it."""
    jax = _version("jax")
    if jax is None or _version("jaxlib") is None:
        return "jax is not installed: pip install 'fusionlint[explain]'"
    if target.platform == "cuda":
        return _missing_cuda(target, jax)
    if target.platform == "tpu" and _version("libtpu") is None:
        return f"the compiler for {target.name} is not installed: pip install 'fusionlint[tpu]'"
    return None


def _missing_cuda(target: Target, jax: str) -> str | None:
    plugins = {name: found for name in _CUDA_PLUGINS if (found := _version(name))}
    if not plugins:
        return f"the compiler for {target.name} is not installed: pip install 'fusionlint[cuda]'"
    if jax not in plugins.values():
        name, found = next(iter(plugins.items()))
        return f"{name} {found} does not go with jax {jax}: pip install '{name}=={jax}'"
    return None


_CUDA_PLUGINS = ("jax-cuda13-plugin", "jax-cuda12-plugin")


def versions(target: Target) -> dict[str, str]:
    """Of jax, jaxlib and the target's compiler plugin, where installed."""
    names = {"cpu": (), "cuda": _CUDA_PLUGINS, "tpu": ("libtpu",)}[target.platform]
    return {name: found for name in ("jax", "jaxlib", *names) if (found := _version(name))}


def _version(distribution: str) -> str | None:
    from importlib import metadata  # `check` knows the targets too, and needs no versions

    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


def environment(target: Target) -> dict[str, str]:
    """The environment variables of a worker for this target; they have to be set before its process starts."""
    common = {
        # No plugin looks for a driver; the target's own compiler is reached through its topology all the same.
        "JAX_PLATFORMS": f"{target.platform},cpu" if target.attached else "cpu",
        "JAX_ENABLE_COMPILATION_CACHE": "false",  # a cached executable carries the source lines of its first life
        "JAX_DISABLE_JIT": "false",
        "JAX_TRACEBACK_FILTERING": "off",  # the worker finds the user's frames itself
    }
    if target.attached:
        # Several workers share the device, and compiling needs little of its memory.
        return common | {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
    if target.platform == "cpu":
        # XLA's fusion decisions, logged; any other level or later setting gives nothing.
        log = "instruction_fusion=3,cpu_instruction_fusion=3"
        return common | {"TF_CPP_MIN_LOG_LEVEL": "0", "TF_CPP_VMODULE": log}
    if target.platform == "tpu":
        # Not on a TPU machine: no metadata server to ask, and a lock file that several workers would fight for.
        return common | {"TPU_SKIP_MDS_QUERY": "1", "ALLOW_MULTIPLE_LIBTPU_LOAD": "1"}
    return common
