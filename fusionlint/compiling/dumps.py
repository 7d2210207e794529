"""What is compiled already: a path to XLA's own texts -> Artifacts, without a compiler. Never imports jax.

A path is an optimized HLO text, or a folder that XLA_FLAGS=--xla_dump_to=FOLDER filled; whatever else XLA left beside
a module (the HLO before, priority fusion's decisions, the thunk sequence) comes with it.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fusionlint.compiling.artifacts import Artifacts, CompileError
from fusionlint.compiling.targets import Platform, Target, of_kind

# module_0001.jit_f.sm_9.0a_gpu_after_optimizations.txt, module_0000.jit_f.cpu_after_optimizations.txt,
# module_0000.jit_f.cl_933746096.after_optimizations.txt (TPU)
_NAME = re.compile(r"(?P<module>.+?)\.(?P<platform>sm_[\d.]+[a-z]?_gpu_|cpu_|cl_\d+\.)?after_optimizations\.txt")
_HEAD = 1 << 16  # bytes that are enough to tell what a file is
_MODULE = re.compile(r"^HloModule ([\w.\-]+)(.*)$", re.MULTILINE)
_OF_GPU = re.compile(
    r'fingerprint_before_lhs|"fusion_backend_config"|"operation_queue_id"|__cu(?:blas|dnn)|_gpu_callback'
)
_OF_TPU = re.compile(r"\{[\d,]*:[^}]*T\(\d+|\"estimated_cycles\"|\"flag_configs\"")
# Names as the worker leaves them: explain() reads both alike.
_BESIDE = ("*priority-fusion*.txt", "*priority_fusion_dump.txt", "*thunk_*.txt", "*gpu_after_optimizations.txt")


def is_path(spec: str) -> bool:
    """Whether a SPEC is a file or a folder that is there, and not a function: Python files hold functions."""
    path = Path(spec)
    return bool(spec) and path.suffix != ".py" and path.exists()  # Path("") is the working folder


def is_program(path: Path) -> bool:
    """Whether the file is to be compiled first: it is neither a folder nor an HLO text."""
    return path.is_file() and not _MODULE.search(_head(path))


def is_dump(spec: str) -> bool:
    """Whether a SPEC is a path to what is compiled already."""
    return is_path(spec) and not is_program(Path(spec))


def _head(path: Path) -> str:
    with path.open("rb") as file:
        return file.read(_HEAD).decode("utf-8", "replace")


@dataclass(frozen=True, slots=True)
class Dump:
    """One module's optimized HLO; `beside` are XLA's other texts about it, in the form the worker leaves them."""

    path: Path
    module: str  # what the names of its files begin with; "" for a file that was named otherwise
    platform: Platform | None  # where the name of the file tells


def dumps(path: Path) -> list[Dump]:
    """The modules of a file or folder, by name. Raises CompileError where there are none."""
    if path.is_file():
        return [_dump(path)]
    found = sorted(path.glob("*after_optimizations.txt"))
    if not found:
        raise CompileError(
            "entry",
            f"{path} holds no *after_optimizations.txt: fill it with "
            "XLA_FLAGS='--xla_dump_to=FOLDER --xla_dump_hlo_as_text --xla_dump_hlo_pass_re=priority-fusion'",
        )
    return [_dump(one) for one in found]


def _dump(path: Path) -> Dump:
    name = _NAME.fullmatch(path.name)
    if name is None:
        return Dump(path, "", None)
    said = name["platform"] or ""
    platforms: dict[str, Platform] = {"sm": "cuda", "cpu": "cpu", "cl": "tpu"}
    return Dump(path, name["module"], platforms.get(said.partition("_")[0]))


def artifacts(dump: Dump, home: Path, targets: Sequence[Target] = ()) -> Artifacts:
    """The dump as a worker would have left it, in the folder `home`. Of `targets` the first of the dump's platform is
    the one; else the device that XLA wrote down, else the platform alone. Raises CompileError for unoptimized HLO."""
    text = dump.path.read_text(encoding="utf-8", errors="replace")
    head = _MODULE.search(text)
    if head is None or "is_scheduled=true" not in head[2]:
        raise CompileError("entry", f"{dump.path} is not optimized HLO: give the text named *after_optimizations.txt")
    home.mkdir(parents=True)
    (home / "after.hlo.txt").write_text(text, encoding="utf-8")
    _copy_beside(dump, home)
    platform = dump.platform or platform_of(text)
    target = next((target.name for target in targets if target.platform == platform), None)
    function = head[1].removeprefix("jit_")
    return Artifacts(
        home, f"{function} from {dump.path}", target or _device(dump, platform), function=function, attached=True
    )


def platform_of(text: str) -> Platform:
    """What an optimized HLO text was made for, by what only that compiler writes; cpu without any such mark."""
    return "tpu" if _OF_TPU.search(text) else "cuda" if _OF_GPU.search(text) else "cpu"


def _device(dump: Dump, platform: Platform) -> str:
    """The target of the device that XLA wrote down beside the module; else `gpu`, `tpu` or `cpu`."""
    config = dump.path.with_name(f"{dump.module}.gpu_target_config.pbtxt")
    described = re.search(r'device_description_str: "(.*)"', config.read_text()) if config.is_file() else None
    target = of_kind(described[1]) if described else None
    return target.name if target else {"cuda": "gpu"}.get(platform, platform)


def _copy_beside(dump: Dump, home: Path) -> None:
    if not dump.module:
        return
    (home / "dump").mkdir()
    for pattern in _BESIDE:
        for path in dump.path.parent.glob(f"{_literal(dump.module)}.{pattern}"):
            shutil.copyfile(path, home / "dump" / path.name)
    for path in dump.path.parent.glob(f"{_literal(dump.module)}.*before_optimizations.txt"):
        shutil.copyfile(path, home / "before.hlo.txt")


def _literal(name: str) -> str:
    """`name` as a glob that matches itself alone."""
    return re.sub(r"([*?[])", r"[\1]", name)
