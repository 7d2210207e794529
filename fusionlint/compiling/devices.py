"""Target -> where jax is to place arrays: on the device itself, or on the description of one. Runs in a worker.

Private names of jax stand here and in running.py alone, each with a test that fails loudly when jax changes it.
"""

from __future__ import annotations

from typing import Any

from fusionlint.compiling.targets import Target


def device(target: Target) -> Any:
    """A sharding that places arrays on one device of the target, present or not."""
    import jax
    from jax.experimental import topologies

    if target.attached:
        devices = jax.devices(target.platform)
    elif target.platform == "cpu":
        devices = jax.devices("cpu")
    elif target.platform == "cuda":
        allow_callbacks()
        devices = topologies.get_topology_desc(platform="cuda", target_config=target.device, topology="1x1x1").devices
    else:
        devices = topologies.get_topology_desc(platform="tpu", topology_name=target.device).devices
    return jax.sharding.SingleDeviceSharding(devices[0])


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
