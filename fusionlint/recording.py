"""What a program compiled while it ran: functions with their arguments, and eager operations by line. Plain values that
can be saved as JSON; imports nothing of ours."""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
import zlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

VERSION = 3
_READ = (1, 2, VERSION)  # before 2 a compilation had neither `operations` nor `x64`, before 3 no `module_line`

Owner = Literal["user", "library", "jax"]


class RecordingError(ValueError):
    """A file that holds no recording; the message is one line that says what to do."""


@dataclass(frozen=True, slots=True)
class Place:
    """A line of source; `function` is the one around it, or the one that begins there. `column`, from 1, is that of a
    lambda's body, which may not be alone on its line; 0 of anything else, and before Python 3.11."""

    path: str
    line: int
    function: str = ""
    column: int = 0


@dataclass(frozen=True, slots=True)
class Argument:
    """One input array of a program. `name` is jax's path to it, such as `params['w']`; `sharding` is "" for an array
    that is not committed to a place; `weak` of one whose dtype gives way, as that of a Python number does."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    weak: bool = False
    donated: bool = False
    sharding: str = ""


@dataclass(frozen=True, slots=True)
class Compilation:
    """One program that XLA compiled.

    `number` counts the compilations of the whole run from 0. `static` holds the arguments that are part of the program,
    as text, by name. `why` says what is otherwise than at an earlier compilation of the function, one line each: () at
    the first. `seconds` are those of the compiler (of fetching the program, where jax had it in its persistent cache).
    `spec` are the arguments as a SPEC has them, "(f32[8,4], n=3)"; None where a SPEC cannot say them, or how the
    function was jitted. `programs` is the StableHLO (bytecode) by platform (cpu, cuda, tpu), `failures` why there is
    none, one line. `operations` is how many a run takes, before XLA fuses any, a loop of unknown length counted once; 0
    where that is not known. `x64` says whether jax's 64 bits were on, None where that is not known. `module_line` is
    the line of the function's own module that was running, outside of all functions, as it was compiled: who imports
    that module again comes there again; 0 where none was.
    """

    number: int
    called: Place | None
    arguments: tuple[Argument, ...] = ()
    static: Mapping[str, str] = field(default_factory=dict)
    why: tuple[str, ...] = ()
    seconds: float = 0.0
    thread: str = ""
    devices: int = 1
    spec: str | None = None
    programs: Mapping[str, bytes] = field(default_factory=dict, repr=False)
    failures: Mapping[str, str] = field(default_factory=dict)
    operations: int = 0
    x64: bool | None = None
    module_line: int = 0

    @property
    def rank(self) -> tuple[int, int, int, int]:
        """Greater for what stands for a function sooner: larger arguments, more operations, more that are placed on a
        mesh, later."""
        return self.bytes, self.operations, sum(bool(one.sharding) for one in self.arguments), self.number

    @property
    def bytes(self) -> int:
        """Those of all arguments."""
        return math.ceil(sum(_bytes(argument) for argument in self.arguments))


@dataclass(frozen=True, slots=True)
class RecordedFunction:
    """A function and its compilations in the order in which they happened.

    `name` is Python's qualified name, `module` its module. `defined` is None where Python does not know. `owner` is
    "user" for code that is not installed, "library" for what is. `plain` says that the compiled function is the one
    that `module` and `name` lead to, and not a vmap, grad or partial of it.
    """

    name: str
    module: str
    defined: Place | None
    owner: Owner
    plain: bool
    compilations: tuple[Compilation, ...]
    sha256: str | None = None  # of the file that defines it, as it ran

    @property
    def seconds(self) -> float:
        """Of all compilations."""
        return sum(one.seconds for one in self.compilations)

    @property
    def largest(self) -> Compilation:
        """The one with the largest arguments, of equals that with most operations, then most arrays on a mesh, then the
        last: what stands for the function in a report."""
        return max(self.compilations, key=lambda one: one.rank)


@dataclass(frozen=True, slots=True)
class EagerLine:
    """Operations that a line gave to jax one by one, outside of any jit: each program was compiled for one of them.
    `operations` is how many programs by name. How often they ran is not known: jax does not tell Python. `outer` is the
    user's line that called the library which then called this one; None where no library is between."""

    called: Place | None
    operations: Mapping[str, int]
    seconds: float
    outer: Place | None = None

    @property
    def programs(self) -> int:
        return sum(self.operations.values())


@dataclass(frozen=True, slots=True)
class Recording:
    """Everything that was captured. `versions` are those of jax, jaxlib and Python, `backend` is the platform that the
    program ran on ("" where nothing was compiled), `notes` say what could not be captured, one line each.

    What was saved also knows the code of then: `top` is the top folder of its project, `sources` are the texts of the
    user's files that its programs come from, by path.
    """

    command: tuple[str, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)
    backend: str = ""
    functions: tuple[RecordedFunction, ...] = ()
    eager: tuple[EagerLine, ...] = ()
    notes: tuple[str, ...] = ()
    top: str = ""
    sources: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def compilations(self) -> int:
        """Of functions; eager operations are not counted."""
        return sum(len(function.compilations) for function in self.functions)

    def find(self, module: str, function: str) -> list[RecordedFunction]:
        """The functions that a SPEC's module (dotted, or a path that ends in .py) and function name, dearest first."""
        found = [one for one in self.functions if one.name == function and _is_of(one, module)]
        return sorted(found, key=lambda one: -one.seconds)


def recording_json(recording: Recording) -> str:
    """`read_recording` is its inverse. Programs are compressed."""
    document = asdict(recording)
    for function in document["functions"]:
        for one in function["compilations"]:
            one["programs"] = {platform: _packed(data) for platform, data in one["programs"].items()}
    return json.dumps({"version": VERSION, "recording": document}, indent=1)


def sha256_of(path: str) -> str | None:
    """A digest of a file, by which it is known again; None where there is none, as of a notebook's cell."""
    try:
        return hashlib.sha256(Path(path).read_bytes()).hexdigest()
    except OSError:
        return None


def read_recording(path: Path) -> Recording:
    """The recording in a file that `fusionlint run --record` wrote. Raises RecordingError."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise RecordingError(f"{path} cannot be read: {error.strerror}") from None
    except ValueError:
        document = None
    try:
        if document["version"] not in _READ:
            raise RecordingError(f"{path} is of version {document['version']}: a newer fusionlint wrote it")
        return from_fields(document["recording"])
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        if isinstance(error, RecordingError):
            raise
        raise RecordingError(
            f"{path} is no recording: it has to be what `fusionlint run --record FILE SCRIPT` wrote"
        ) from None


def from_fields(fields: dict[str, Any]) -> Recording:
    """A Recording from what `json` made of one."""
    return Recording(
        command=tuple(fields["command"]),
        versions=fields["versions"],
        backend=fields["backend"],
        functions=tuple(function_from(one) for one in fields["functions"]),
        eager=tuple(map(eager_from, fields["eager"])),
        notes=tuple(fields["notes"]),
        top=fields.get("top", ""),
        sources=fields.get("sources", {}),
    )


def function_from(fields: dict[str, Any]) -> RecordedFunction:
    """A RecordedFunction from what `json` made of one."""
    given = dict(fields)
    given["defined"] = place_from(fields["defined"])
    given["compilations"] = tuple(compilation_from(one) for one in fields["compilations"])
    return RecordedFunction(**given)


def eager_from(fields: dict[str, Any]) -> EagerLine:
    """An EagerLine from what `json` made of one."""
    outer = place_from(fields.get("outer"))
    return EagerLine(place_from(fields["called"]), fields["operations"], fields["seconds"], outer)


def compilation_from(fields: dict[str, Any]) -> Compilation:
    """A Compilation from what `json` made of one."""
    given = dict(fields)
    given["called"] = place_from(fields["called"])
    given["arguments"] = tuple(Argument(**{**one, "shape": tuple(one["shape"])}) for one in fields["arguments"])
    given["why"] = tuple(fields["why"])
    given["programs"] = {platform: _unpacked(text) for platform, text in fields["programs"].items()}
    return Compilation(**given)


def place_from(fields: dict[str, Any] | None) -> Place | None:
    """A Place from what `json` made of one."""
    return Place(**fields) if fields else None


def _packed(data: bytes) -> str:
    return base64.b64encode(zlib.compress(data)).decode()


def _unpacked(text: str) -> bytes:
    return zlib.decompress(base64.b64decode(text, validate=True))


def _bytes(argument: Argument) -> float:
    bits = re.search(r"\d+", argument.dtype)
    width = int(bits[0]) / 8 if bits else 8 if argument.dtype.startswith("key") else 1
    return math.prod(argument.shape) * width


def _is_of(function: RecordedFunction, module: str) -> bool:
    if not module.endswith(".py"):
        return function.module == module or _dotted(function).endswith(f".{module}")
    return function.defined is not None and Path(function.defined.path).resolve() == Path(module).resolve()


def _dotted(function: RecordedFunction) -> str:
    """The file as a module's name from the root of the file system: what ran as __main__ has no name of its own."""
    return "." + ".".join(Path(function.defined.path).with_suffix("").parts[1:]) if function.defined else ""
