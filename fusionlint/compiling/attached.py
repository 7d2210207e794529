"""Which devices this machine has, and so which targets are meant: asked of jax in a process of its own.

python -m fusionlint.compiling.attached     prints the kinds of the devices as JSON: {"cuda": "NVIDIA H200"}
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from fusionlint.compiling import alone
from fusionlint.compiling.targets import ATTACHED, Target, TargetError, get, missing, of_kind

Kinds = Mapping[str, str]  # platform -> the name that jax gives its first device

# Where drivers show themselves. Without any of these, asking jax (seconds) is spared.
_SIGNS = ("/dev/nvidia0", "/dev/nvidiactl", "/dev/dxg", "/dev/accel0", "/dev/vfio/0")
_SECONDS = 120.0  # a device that does not answer is none


def chosen(names: Sequence[str], kinds: Kinds | None = None) -> list[Target]:
    """The targets of those names, each once, or the default one: what is attached, else h100 if its compiler is
    installed, else cpu. `gpu` and `tpu` are the attached device's; a target that is attached is compiled on the device.
    `kinds` are the attached devices, looked for if None. Raises TargetError."""
    kinds = attached() if kinds is None else kinds
    if names:
        return [*dict.fromkeys(_target(name, kinds) for name in names)]
    if kinds:
        return [_of_device(*next(iter(kinds.items())))]
    return [get("cpu" if missing(get("h100")) else "h100")]


def _target(name: str, kinds: Kinds) -> Target:
    if name.lower() not in ATTACHED:
        target = get(name)
        kind = kinds.get(target.platform)
        return target._replace(attached=True) if kind and of_kind(kind) == target else target
    platform = ATTACHED[name.lower()]
    if platform not in kinds:
        example = {"cuda": "h100", "tpu": "v5e"}[platform]
        raise TargetError(f"jax finds no {name.upper()} here: name one that need not be there, such as {example}")
    return _of_device(platform, kinds[platform])


def _of_device(platform: str, kind: str) -> Target:
    target = of_kind(kind)
    if target is not None:
        return target._replace(attached=True)
    name = next(name for name, of in ATTACHED.items() if of == platform)
    return Target(name, "cuda" if platform == "cuda" else "tpu", what=kind, source="the device", attached=True)


@cache
def attached() -> Kinds:
    """The devices that jax finds here; {} without a driver, without jax, or where the user keeps jax from them."""
    if not any(Path(sign).exists() for sign in _SIGNS):
        return {}
    command = alone.command("fusionlint.compiling.attached")
    paths = [path for path in (os.environ.get("PYTHONPATH"), str(Path(__file__).parents[2])) if path]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
    try:
        done = subprocess.run(command, env=environment, capture_output=True, timeout=_SECONDS, check=True)  # noqa: S603
        found: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
    except (subprocess.SubprocessError, ValueError, IndexError):  # jax did not come up: nothing that it could use
        return {}
    return found


def _kinds() -> dict[str, str]:
    import jax

    device = jax.devices()[0]
    platform = {"gpu": "cuda"}.get(device.platform, device.platform)
    return {platform: device.device_kind} if platform in ATTACHED.values() else {}


if __name__ == "__main__":
    print(json.dumps(_kinds()))
