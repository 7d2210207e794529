"""An exception of the user's code -> one line that names the user's own line."""

from __future__ import annotations

import re
import sys
import sysconfig
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fusionlint.compiling.entry import AbsentError, Entry, EntryError

Record = dict[str, str]


class JobError(Exception):
    """A failure, ready to be recorded: `record` has kind, message and where (path:line, or "")."""

    def __init__(self, record: Record) -> None:
        super().__init__(record["message"])
        self.record = record


@contextmanager
def blaming(kind: str, entry: Entry | None = None, hint: str = "", target: str = "") -> Iterator[None]:
    """Turns whatever the block raises into JobError; what is one already says best what it was. `hint` is said where a
    value was not what the code takes it for, `target` where another may do."""
    try:
        yield
    except JobError:
        raise
    except EntryError as error:
        its = "absent" if isinstance(error, AbsentError) else "entry"
        raise JobError({"kind": its, "message": str(error), "where": ""}) from error
    # The user's code may raise anything, a module may call sys.exit(), and XLA raises its own kinds: each is that
    # job's answer, and the jobs after it must still run.
    except (Exception, SystemExit) as error:
        traceback.print_exc(file=sys.stderr)  # kept with the worker's stderr, for who wants it whole
        hints = [hint] if hint and isinstance(error, (TypeError, AttributeError)) else []
        said = "; ".join([message(error, kind, entry, target), *hints])
        raise JobError({"kind": kind, "message": said, "where": where(error)}) from error


_DOING = {
    "start": "the worker could not start",
    "import": "{} could not be imported",
    "arguments": "the arguments of {} could not be made",
    "trace": "{} could not be traced",
    "lower": "{} could not be lowered for {target}",
    "compile": "XLA could not compile {} for {target}",
    "run": "{} failed",
    "read": "no verdict on {}: this jax or jaxlib is not known here",
}


_NOT_HERE = re.compile(r"Unknown backend:? '?(\w+)'? requested")
_CALLBACK = (
    "a callback (jax.debug.print, pure_callback) needs the GPU itself; take it out to compile for one that is not there"
)
_ON_SEVERAL = (
    "it runs on several devices at once: say the axes of its mesh, as in --mesh data=4, and in the SPEC which arrays "
    "are spread over them, as in f32[8@data,128]"
)
_ASKS_FOR_MESH = r"(?i)non-empty mesh|mesh cannot be empty|context mesh|mesh context|set a mesh via"
_PMAP_ALONE = "jax.pmap finds one device here"
_OR_A_MESH = "do without, or say the axes of its mesh, as in --mesh data=4"
# What is raised -> what to do about it; the first that fits is said.
_REMEDIES = {
    r"'(tuple|list|dict)' object has no attribute": "a SPEC has plain tuples, lists and dicts: for a class of your own "
    "put `example_args` beside the function",
    r"incompatible devices for jitted computation.* device ids \[\d+, ": _ON_SEVERAL,
    r"Number of devices \d+ must (?:be >=|equal) the product": _ON_SEVERAL,
    r"requires \d+ logical devices, but only 1 ": _ON_SEVERAL,  # pmap's until jax 0.8
    _PMAP_ALONE: _ON_SEVERAL,
    _ASKS_FOR_MESH: _ON_SEVERAL,
    r"incompatible devices for jitted computation": "it names devices of this machine, by a mesh, a sharding or pmap: "
    + _OR_A_MESH,
    r"^ValueError: Memory kinds passed to jax.jit": "its in_shardings name devices of this machine: " + _OR_A_MESH,
    r"`set_mesh` can only be used outside": "name the function that is called inside of the `with`, and set the mesh "
    "at the top of the module",
    r"^DuplicateSpecError": "an axis of the mesh spreads one dimension of an array",
    r"^IndivisibleError|should be divisible": "what is spread over an axis is a multiple of its devices",
    r"total_device_count % num_participants": "a TPU's slices have 4, 8, 16, 32, ... devices: take as many",
    r"which is not a valid JAX type": "a program returns arrays alone: leave the others out, as equinox.filter_jit "
    "does where it is what jits",
    r"as an abstract array": "jax.jit takes arrays alone: name the others in its static_argnames, or leave them out, "
    "as equinox.filter_jit does where it is what jits",
    r"^TypeError: .*ShapeDtypeStruct": "what jax.jit is told is static is no array: write its value in "
    "the SPEC, as in n=8",
    r"^TracerIntegerConversionError|sequences of concrete values": "what shapes and Python's loops are made of is no "
    "array: write its value in the SPEC, as in n=8",
    r"on unbound modules": "name a function that calls `module.apply(variables, ...)`, or `module.init_with_output`",
}
_NO_ARRAY = re.compile(r"which is not a valid JAX type|as an abstract array")
_AT_IMPORT = {
    r"^SystemExit": 'let what reads arguments, or runs, stand below `if __name__ == "__main__":`',
    r"cannot reshape array of size 1 into shape": _ON_SEVERAL,
}


def message(error: BaseException, kind: str, entry: Entry | None, target: str = "") -> str:
    """One line: what was being done, and what was raised."""
    named = "" if entry is None else entry.module if kind == "import" else entry.name
    raised, remedy = _raised(error, kind)
    return f"{_DOING[kind].format(named, target=target)}: {raised}{remedy}"


def no_array(error: TypeError, named: str) -> str:
    """One line of what jax raises where it takes or returns what is no array; "" for any other error."""
    raised, remedy = _raised(error, "trace")
    return f"{_DOING['trace'].format(named)}: {raised}{remedy}" if remedy and _NO_ARRAY.search(raised) else ""


def _raised(error: BaseException, kind: str) -> tuple[str, str]:
    """Its first line and those which that announces, and what to do, where that is known."""
    words = error.msg if isinstance(error, SyntaxError) else str(error)  # whose text names the file again
    said = _first_words([line.strip() for line in words.splitlines() if line.strip()])
    raised = _meaning(error, said, kind) or f"{type(error).__name__}{': ' if said else ''}{said}"
    remedies = {**_REMEDIES, **(_AT_IMPORT if kind == "import" else {})}
    remedy = next((f"; {remedy}" for pattern, remedy in remedies.items() if re.search(pattern, raised)), "")
    return raised.rstrip(".") if remedy else raised, remedy


def asks_for_mesh(error: BaseException) -> bool:
    """Whether jax says that there is no mesh around."""
    return re.search(_ASKS_FOR_MESH, str(error)) is not None


def _meaning(error: BaseException, said: str, kind: str) -> str:
    """What jax means where it has no backend of that name, or too few devices; "" where it says something else."""
    if "axis to squeeze" in said and any(f.filename.endswith("pmap.py") for f in _frames(error)):
        return _PMAP_ALONE
    found = _NOT_HERE.search(said)
    if found is None:
        return ""
    if kind == "lower" and found[1] == "gpu":  # nothing else asks for it then
        return _CALLBACK
    return f"it asks jax for the {found[1].upper()} of this machine, as jax.devices({found[1]!r}) does: do without"


def _first_words(lines: list[str], most: int = 500) -> str:
    said = "".join(lines[:1])
    for line in lines[1:] if said.endswith(":") else ():
        if len(said) + len(line) >= most:
            break
        said += f" {line}"
    return said


def where(error: BaseException) -> str:
    """path:line of the user's own innermost frame; a library's only where the user has none; "" where none is."""
    if isinstance(error, SyntaxError) and error.filename and error.lineno:
        return f"{error.filename}:{error.lineno}"
    frames = [(f.filename, f.lineno) for f in _frames(error) if not _is_machinery(f.filename)]
    own = [frame for frame in frames if "site-packages" not in frame[0]] or frames
    return f"{own[-1][0]}:{own[-1][1]}" if own else ""


def _frames(error: BaseException) -> traceback.StackSummary:
    return traceback.extract_tb(error.__traceback__)


def _is_machinery(path: str) -> bool:
    """Of Python, jax, numpy or this package, rather than of the user or the user's libraries."""
    if path.startswith("<"):
        return True
    packages = [_home(name) for name in ("jax", "jaxlib", "numpy")]
    stdlib = sysconfig.get_paths()["stdlib"]
    of_python = path.startswith(stdlib) and "site-packages" not in path
    return of_python or any(home and path.startswith(home) for home in [str(Path(__file__).parent), *packages])


def _home(package: str) -> str:
    file = getattr(sys.modules.get(package), "__file__", None)
    return str(Path(file).parent) if file else ""
