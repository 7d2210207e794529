"""What passes between the worker processes and their parent: Job in, Artifacts or CompileError out. Never imports jax.

A job's folder holds text alone, so that it may come from another process or another machine:
artifacts.json, and for a compile job jaxpr.txt, stablehlo.txt, before.hlo.txt, after.hlo.txt, log.txt, dump/.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from fusionlint.compiling.entry import Entry, parse_spec
from fusionlint.compiling.sizes import Axes, Dims


class CompileError(Exception):
    """A job that gave nothing; the message is one line that says what to do.

    `kind` is "absent" (there is no such file or function), "entry" (the SPEC does not fit the code), "import",
    "arguments", "trace", "lower" or "run" (the user's code raised, or jax about it), "compile" (XLA refused), "start"
    (jax did not come up), "read" (it lacks what is read of it), "crash", "timeout", or "missing" (a compiler is not
    installed). `where` is the user's own line as path:line, where there is one; the message ends in it.
    `stderr` is the end of what the worker wrote there.
    """

    def __init__(self, kind: str, message: str, where: str = "", stderr: str = "") -> None:
        super().__init__(message)
        self.kind, self.message, self.where, self.stderr = kind, message, where, stderr

    def __str__(self) -> str:
        return f"{self.message} ({self.where})" if self.where else self.message

    def __reduce__(self) -> tuple[Any, ...]:
        return CompileError, (self.kind, self.message, self.where, self.stderr)


@dataclass(frozen=True, slots=True)
class Job:
    """One thing to do in a worker process.

    "compile" lowers and compiles `entry`; "program" compiles `program`, StableHLO or what jax.export serialized, which
    the path `entry` names; "count" calls it and counts compilations and dispatches, after a first call
    that does not count if `warmup`; "agree" runs `entry` and `other` on `entry`'s arguments and compares the outputs,
    element by element or, `in_distribution`, by mean and spread. `dims` are the sizes for the annotations of an entry
    to compile that has no arguments; `mesh` are the axes of the devices that it runs on, with their sizes, {} for one
    device. `x64` has jax compute with 64 bits, or not; None leaves it to the user's code and
    environment. `texts` is what files are to hold for this job, by their resolved paths.
    """

    entry: Entry
    kind: Literal["compile", "program", "count", "agree"] = "compile"
    other: Entry | None = None
    warmup: bool = False
    in_distribution: bool = False
    program: bytes = b""
    dims: Dims = field(default_factory=dict)
    mesh: Axes = field(default_factory=dict)
    x64: bool | None = None
    texts: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Artifacts:
    """What a compilation left. Texts are read when asked for; "" where the target gives none."""

    folder: Path
    entry: str  # the SPEC, with the arguments that were found where it has none
    target: str  # a target's name; gpu, tpu or cpu where XLA did not say which
    versions: dict[str, str] = field(default_factory=dict)  # jax, jaxlib, and the compiler's plugin
    function: str = ""  # its name in the program
    defined: str = ""  # path:line
    parameters: tuple[str, ...] = ()  # one per input array; XLA drops the unused ones
    outputs: tuple[str, ...] = ()  # such as "float32[8,128]", one per output array
    trace_seconds: float = 0.0
    lower_seconds: float = 0.0
    compile_seconds: float = 0.0
    memory: int = 0  # bytes of arguments, results and temporaries, what is donated counted once; 0 if unknown
    attached: bool = False  # compiled where the device is

    @cached_property
    def after(self) -> str:
        """The optimized HLO: what runs."""
        return self._text("after.hlo.txt")

    @cached_property
    def before(self) -> str:
        """The HLO that XLA was given."""
        return self._text("before.hlo.txt")

    @cached_property
    def stablehlo(self) -> str:
        return self._text("stablehlo.txt")

    @cached_property
    def jaxpr(self) -> str:
        return self._text("jaxpr.txt")

    @cached_property
    def log(self) -> str:
        """What XLA logged while it compiled; on cpu its fusion decisions."""
        return self._text("log.txt")

    def dumped(self, pattern: str) -> str:
        """The first file of XLA's dump whose name matches the glob `pattern`; "" if none does."""
        found = sorted((self.folder / "dump").glob(pattern))
        return found[0].read_text(encoding="utf-8", errors="replace") if found else ""

    def every_dumped(self, pattern: str) -> tuple[str, ...]:
        """All files of XLA's dump whose names match the glob `pattern`, in the order of the names."""
        found = sorted((self.folder / "dump").glob(pattern))
        return tuple(path.read_text(encoding="utf-8", errors="replace") for path in found)

    def _text(self, name: str) -> str:
        path = self.folder / name
        return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""


def write_job(job: Job) -> dict[str, Any]:
    """A Job as JSON; `read_job` is its inverse."""
    other = job.other and job.other.text
    flags = {"warmup": job.warmup, "in_distribution": job.in_distribution}
    program = base64.b64encode(job.program).decode()
    fields = {"entry": job.entry.text, "kind": job.kind, "other": other, "program": program, **flags}
    return fields | {"dims": dict(job.dims), "mesh": dict(job.mesh), "x64": job.x64, "texts": dict(job.texts)}


def read_job(fields: dict[str, Any]) -> Job:
    """The Job that `write_job` wrote."""
    text, kind, other = fields["entry"], fields["kind"], fields["other"]
    entry = program_entry(text) if kind == "program" else parse_spec(text)
    other = other and parse_spec(other)
    program = base64.b64decode(fields["program"])
    dims = {name: tuple(sizes) for name, sizes in fields["dims"].items()}
    flags = fields["warmup"], fields["in_distribution"]
    return Job(entry, kind, other, *flags, program, dims, fields["mesh"], fields["x64"], fields["texts"])


def program_entry(path: str) -> Entry:
    """What stands for the entry of a program that is in a file, and has no function to call."""
    return Entry(path, path, "")


def read_result(folder: Path) -> dict[str, Any]:
    """The artifacts.json of a job's folder. Raises CompileError where the job recorded an error."""
    result: dict[str, Any] = json.loads((folder / "artifacts.json").read_text(encoding="utf-8"))
    error = result.get("error")
    if error is not None:
        raise CompileError(error["kind"], error["message"], error.get("where", ""), error.get("stderr", ""))
    return result


def read_artifacts(folder: Path) -> Artifacts:
    """The Artifacts of a compile job's folder. Raises CompileError where the job recorded an error."""
    result: dict[str, Any] = read_result(folder)
    names: dict[str, Any] = {name: tuple(result.pop(name)) for name in ("parameters", "outputs")}
    return Artifacts(folder=folder, **names, **result)
