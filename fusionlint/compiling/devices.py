"""Target -> where jax is to place arrays: on the devices themselves, or on the description of some. Runs in a worker.

Private names of jax stand here and in running.py alone, each with a test that fails loudly when jax changes it.
"""

from __future__ import annotations

import math
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from fusionlint.compiling.entry import EntryError
from fusionlint.compiling.targets import Target

Traced = TypeVar("Traced")

_CPUS, _NUMBER = "--xla_force_host_platform_device_count", "jax_num_cpu_devices"
_A_HOST = 8  # GPUs of one machine, as in every system of NVIDIA's that has several


def device(target: Target) -> Any:
    """A sharding that places arrays on one device of the target, present or not."""
    import jax

    if target.platform == "cuda" and not target.attached:
        allow_callbacks()
    return jax.sharding.SingleDeviceSharding(_devices(target, 1)[0])


def devices(target: Target, count: int) -> Any:
    """A sharding that gives each of `count` devices of the target, present or not, all of an array: where a program
    runs, whatever it says of its own arrays. Raises EntryError where there are not so many."""
    import jax
    import numpy as np

    found = _devices(target, count)
    if len(found) < count:
        raise EntryError(f"runs on {count} devices, and {target.name} has {len(found)}")
    if count == 1:
        return jax.sharding.SingleDeviceSharding(found[0])
    mesh = jax.sharding.Mesh(np.array(found[:count]), ("devices",))
    return jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec())


def are_here(target: Target, count: int) -> bool:
    """Whether this machine has so many devices of the target, and they are what it stands for."""
    import jax

    return target.attached and len(jax.devices(target.platform)) >= count


def as_where_it_runs(trace: Callable[[], Traced], platform: str) -> Traced:
    """What `trace` gives where `jax.default_backend()` says what it says on that platform: code that goes by it, such
    as `unroll=16 if jax.default_backend() != "cpu" else 1`, is traced as there. What fails after it was told so, as
    code does that goes on to ask for the device, is traced as here."""
    told: list[str] = []
    with _ONE_AT_A_TIME, _saying({"cuda": "gpu"}.get(platform, platform), told):
        try:
            return trace()
        except Exception:
            if not told:  # it would fail again
                raise
    return trace()


_ONE_AT_A_TIME = threading.RLock()  # each puts back what it found


@contextmanager
def _saying(there: str, told: list[str]) -> Iterator[None]:
    """Inside, `jax.default_backend()` says `there` to this thread; `told` takes what it said that is not so here."""
    import jax

    here, asks = jax.default_backend, threading.get_ident()

    def default_backend() -> str:
        if threading.get_ident() != asks:
            return str(here())
        if here() != there:
            told.append(there)
        return there

    jax.default_backend = default_backend  # of users alone: jax's own code asks for it elsewhere
    try:
        yield
    finally:
        jax.default_backend = here


def make_cpus(count: int) -> None:
    """Let this process have so many CPU devices; only before jax has asked for one."""
    kept = [flag for flag in os.environ.get("XLA_FLAGS", "").split() if not flag.startswith(f"{_CPUS}=")]
    os.environ["XLA_FLAGS"] = " ".join([*kept, f"{_CPUS}={count}"])
    # jax's own setting, from 0.5 on: code that sets the same number as it begins may do so then.
    os.environ[_NUMBER.upper()] = str(count)
    if (jax := sys.modules.get("jax")) is not None and _NUMBER in jax.config.values:
        jax.config.update(_NUMBER, count)


def _devices(target: Target, count: int) -> list[Any]:
    """Those of this machine where they are enough; of what is not there the smallest system that has `count`, or the
    largest."""
    import jax
    from jax.experimental import topologies

    here = list(jax.devices(target.platform)) if target.attached or target.platform == "cpu" else []
    if len(here) >= count or not target.device:
        return here
    if target.platform == "cuda":
        hosts = f"1x{count // _A_HOST}x{_A_HOST}" if count % _A_HOST == 0 else f"1x1x{count}"
        found = topologies.get_topology_desc(platform="cuda", target_config=target.device, topology=hosts)
        return list(found.devices)
    slices: list[list[Any]] = []
    for name in _slices(target.device):
        slices.append(list(topologies.get_topology_desc(platform="tpu", topology_name=name).devices))
        if len(slices[-1]) >= count:
            break
    return slices[-1]


def _slices(topology: str) -> Iterator[str]:
    """The topology and larger ones, each twice the one before: v5e:2x2, v5e:2x4, v5e:4x4, ..., to 256 chips."""
    name, _, shape = topology.partition(":")
    sides = [int(side) for side in shape.split("x")]
    while math.prod(sides) <= _LARGEST_SLICE:
        yield f"{name}:{'x'.join(map(str, sides))}"
        # The last of the shortest, so that sides stand in order.
        shortest = max(number for number, side in enumerate(sides) if side == min(sides))
        sides[shortest] *= 2


_LARGEST_SLICE = 256  # chips: all of a v5e or v6e pod


class _NoDevice:
    """What stands for the backend of a device that is not there; an older jax asks it for more than its being there."""

    platform = "cuda"

    def make_python_callback_from_host_send_and_recv(self, *_: Any) -> None:
        """What a TPU's runtime calls: the program itself sends and receives."""

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError("Unknown backend: 'gpu' requested")  # the words that jax itself has for it


def allow_callbacks() -> None:
    """Let jax.debug.print, pure_callback and the like be lowered for a GPU that is not there.

    jax asks for the backend before it emits the call, and then has no use for it. The call is the same custom call as
    on a device; only the Python function stays behind, which `without_callbacks` takes out.
    """
    from jax._src.interpreters import mlir

    get_backend = getattr(mlir.ModuleContext, "get_backend", None)
    if get_backend is None:  # jax 0.4 asks in another way: there a callback needs its device
        return

    def found(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return get_backend(self, *args, **kwargs)
        except (RuntimeError, ValueError) as error:
            # The second is said where the program was lowered for another device before, which is here.
            if not any(words in str(error) for words in ("Unknown backend", "different from the lowering platform")):
                raise
            return _NoDevice()

    mlir.ModuleContext.get_backend = found


def without_callbacks(lowered: Any) -> Any:
    """`lowered`, without the Python functions of its callbacks: a compiler that has no device refuses them."""
    lowering = lowered._lowering  # noqa: SLF001  no public way
    if lowering.compile_args.get("host_callbacks"):
        lowering.compile_args["host_callbacks"] = ()
    return lowered
