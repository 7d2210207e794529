"""The hardware to compile for: what its compiler needs, and the figures its costs are reckoned with.

Adding a target is adding a row to TARGETS (and, for an NVIDIA chip, its device text).
"""

from __future__ import annotations

import difflib
import importlib.metadata
from dataclasses import dataclass
from typing import Literal

Platform = Literal["cpu", "cuda", "tpu"]


class TargetError(Exception):
    """No such target; the message names those there are."""


@dataclass(frozen=True, slots=True)
class Target:
    """`device` is what the compiler is told about a device that is not there: a GpuTargetConfigProto in text form for
    cuda, a topology name for tpu, nothing for cpu. `memory_bandwidth` is in bytes per second, `launch_us` in
    microseconds per launch; None where no figure is known. `source` says where the figures are from."""

    name: str
    platform: Platform
    device: str = ""
    memory_bandwidth: float | None = None
    launch_us: float | None = None
    source: str = ""


def _nvidia(name: str, cores: int, clock: float, bandwidth: int, l2: int, memory: int, shared: int, major: int) -> str:
    """XLA's GpuTargetConfigProto with the fields that every CUDA plugin knows: newer ones carry rates of scalar and
    matrix units, which older plugins reject. `shared` is shared memory in bytes per core; a block may use 1 kB less."""
    return f"""gpu_device_info {{
  threads_per_block_limit: 1024
  threads_per_warp: 32
  shared_memory_per_block: 49152
  shared_memory_per_core: {shared}
  threads_per_core_limit: 2048
  core_count: {cores}
  fpus_per_core: 128
  block_dim_limit_x: 2147483647
  block_dim_limit_y: 65535
  block_dim_limit_z: 65535
  memory_bandwidth: {bandwidth}
  l2_cache_size: {l2}
  clock_rate_ghz: {clock}
  device_memory_size: {memory}
  shared_memory_per_block_optin: {shared - 1024}
  cuda_compute_capability {{ major: {major} }}
  registers_per_core_limit: 65536
  registers_per_block_limit: 65536
}}
platform_name: "CUDA"
dnn_version_info {{ major: 9 minor: 10 }}
runtime_version {{ major: 13 }}
device_description_str: "{name}"
"""


_H100 = _nvidia("NVIDIA H100 80GB HBM3", 132, 1.98, 3_352_320_000_000, 52_428_800, 84_942_979_072, 233_472, 9)

TARGETS = (
    Target("cpu", "cpu", source="this machine; CPU counts are no advice for an accelerator"),
    Target(
        "h100",
        "cuda",
        device=_H100,
        memory_bandwidth=3_352_320_000_000,
        launch_us=1.0,
        source="openxla/xla target_config/specs/h100_sxm.txtpb; launch: XLA's GpuPerformanceModelBase",
    ),
    Target(
        "v5e",
        "tpu",
        device="v5e:2x2",
        memory_bandwidth=819e9,
        source="cloud.google.com/tpu/docs/v5e: 819 GBps HBM",
    ),
)


def get(name: str) -> Target:
    """The target of that name. Raises TargetError."""
    known = {target.name: target for target in TARGETS}
    if name in known:
        return known[name]
    near = difflib.get_close_matches(name.lower(), known, n=1)
    hint = f"did you mean {near[0]}? " if near else ""
    raise TargetError(f"no target `{name}`: {hint}the targets are {', '.join(known)}")


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
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


def environment(target: Target) -> dict[str, str]:
    """The environment variables of a worker for this target; they have to be set before its process starts."""
    common = {
        # No plugin looks for a driver; the target's own compiler is reached through its topology all the same.
        "JAX_PLATFORMS": "cpu",
        "JAX_ENABLE_COMPILATION_CACHE": "false",  # a cached executable carries the source lines of its first life
        "JAX_DISABLE_JIT": "false",
        "JAX_TRACEBACK_FILTERING": "off",  # the worker finds the user's frames itself
    }
    if target.platform == "cpu":
        # XLA's fusion decisions, logged; any other level or later setting gives nothing.
        log = "instruction_fusion=3,cpu_instruction_fusion=3"
        return common | {"TF_CPP_MIN_LOG_LEVEL": "0", "TF_CPP_VMODULE": log}
    if target.platform == "tpu":
        # Not on a TPU machine: no metadata server to ask, and a lock file that several workers would fight for.
        return common | {"TPU_SKIP_MDS_QUERY": "1", "ALLOW_MULTIPLE_LIBTPU_LOAD": "1"}
    return common
