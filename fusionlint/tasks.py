"""SPECs, dumps and programs, times targets -> Reports: what `fusionlint explain` was asked for. Never imports jax."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path
from tempfile import TemporaryDirectory

from fusionlint.compiling.artifacts import Artifacts, CompileError, Job, program_entry
from fusionlint.compiling.attached import chosen
from fusionlint.compiling.dumps import Dump, artifacts, dumps, is_dump, is_path
from fusionlint.compiling.entry import Entry, EntryError, parse_spec
from fusionlint.compiling.executing import compile_all
from fusionlint.compiling.jobs import TIMEOUT
from fusionlint.compiling.sizes import NO_DIMS, NO_MESH, Axes, Dims, check_axes
from fusionlint.compiling.targets import ATTACHED, Target
from fusionlint.explained import Report, explain
from fusionlint.hlo.parse import HloSyntaxError
from fusionlint.rule import Rule


@dataclass(frozen=True, slots=True)
class Failure:
    """A SPEC, or a SPEC on one target, of which there is no Report; `message` is one line that says what to do,
    `stderr` the end of what the worker wrote, `kind` that of the CompileError, "" where it is none."""

    entry: str
    target: str  # "" where the SPEC is wrong on all
    message: str
    stderr: str = ""
    kind: str = ""


Compilation = tuple[Job, Target]
Task = Failure | Dump | Compilation


def targets_of(specs: Sequence[str], names: Sequence[str], elsewhere: bool = False) -> list[Target]:
    """The targets called `names`, or the default one. What is attached here counts unless the compilations are done
    `elsewhere`, or nothing is to be compiled: a dump is from whatever device it is from. Raises TargetError."""
    if all(is_dump(spec) for spec in specs):
        return chosen([name for name in names if name.lower() not in ATTACHED], {})
    return chosen(names, {} if elsewhere else None)


def tasks(specs: Sequence[str], targets: Sequence[Target], dims: Dims = NO_DIMS, mesh: Axes = NO_MESH) -> list[Task]:
    """What is to be done, in the order of `specs`, then of `targets`: a path that is there is a dump or a program,
    anything else names a function. `dims` are the sizes for the annotations of functions without arguments, `mesh` the
    devices that functions run on."""
    return [task for spec in specs for task in _tasks(spec, targets, dims, mesh)]


def check_used(dims: Dims, todo: Sequence[Task]) -> None:
    """Raises EntryError if sizes are given for dims, and nothing goes by annotations."""
    if dims and not any(isinstance(task, Failure) or (isinstance(task, tuple) and task[0].dims) for task in todo):
        raise EntryError("--dim is for the annotations of a SPEC without arguments, and here every one has its own")


def _tasks(spec: str, targets: Sequence[Target], dims: Dims, mesh: Axes) -> Sequence[Task]:
    path = Path(spec)
    try:
        if is_dump(spec):
            return dumps(path)
        program = Job(program_entry(spec), "program", program=path.read_bytes()) if is_path(spec) else None
        job = program or _job(parse_spec(spec), dims, mesh)
    except (EntryError, CompileError, OSError) as error:
        return [Failure(spec, "", _functions(path) or str(error))]
    return [(job, target) for target in targets]


def _functions(path: Path) -> str:
    """Of a Python file that stands where a function should, which it has; "" of anything else."""
    if path.suffix != ".py" or not path.is_file():
        return ""
    try:
        tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError):
        return ""
    names = [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]
    has = ", ".join(names[:6]) + (", ..." if len(names) > 6 else "")
    return f"{path} names no function; it has {has}: write {path}:{names[0]}" if names else ""


def _job(entry: Entry, dims: Dims, mesh: Axes) -> Job:
    check_axes(entry, mesh)
    return Job(entry, dims=dims if entry.args is None else NO_DIMS, mesh=mesh)


def explain_all(
    todo: Sequence[Task],
    rules: Sequence[Rule] = (),
    timeout: float = TIMEOUT,
    executor: Executor | None = None,
    named: Sequence[Target] = (),
    on_done: Callable[[], None] = lambda: None,
) -> Iterator[Report | Failure]:
    """Do the tasks, each compilation in a process of its own, given `timeout` seconds, on `executor` (this machine's
    cores if None). What fails costs itself alone. Dumps are taken to be from the first of `named` that fits; `on_done`
    is called as each compilation ends, from any thread."""
    jobs = [task for task in todo if isinstance(task, tuple)]
    with TemporaryDirectory(prefix="fusionlint-") as folder:
        home = Path(folder)
        compiled = compile_all(jobs, executor, timeout, home, on_done)
        for number, task in enumerate(todo):
            if isinstance(task, Failure):
                yield task
            elif isinstance(task, Dump):
                yield _explain_dump(task, home / f"dump-{number}", named, rules)
            else:
                yield _explained(*task, next(compiled), rules)


def _explained(job: Job, target: Target, result: Artifacts | CompileError, rules: Sequence[Rule]) -> Report | Failure:
    if isinstance(result, CompileError):
        return Failure(job.entry.text, target.name, str(result), result.stderr, result.kind)
    report = read(result, rules)
    if prod(job.mesh.values()) == 1 or isinstance(report, Failure) or report.devices > 1:
        return report
    note = f"one device: nothing is spread over the mesh, as f32[64@{next(iter(job.mesh))},8] is"
    return replace(report, notes=(note, *report.notes))


def read(found: Artifacts, rules: Sequence[Rule] = ()) -> Report | Failure:
    """What a compilation left -> its Report; a Failure if its jaxlib writes what is not known here."""
    try:
        return explain(found, rules)
    except (HloSyntaxError, LookupError) as error:  # an index, a name that is not there: no shape that is known
        by = f"jaxlib {found.versions.get('jaxlib', '')}".rstrip()
        why = error if isinstance(error, HloSyntaxError) else f"{type(error).__name__}: {error}"
        said = f"no verdict on {found.entry} for {found.target}: {by} writes HLO that is not known here: {why}"
        return Failure(found.entry, found.target, said)


def _explain_dump(dump: Dump, home: Path, named: Sequence[Target], rules: Sequence[Rule]) -> Report | Failure:
    try:
        return explain(artifacts(dump, home, named), rules)
    except CompileError as error:
        return Failure(str(dump.path), "", str(error))
    except HloSyntaxError as error:
        return Failure(str(dump.path), "", f"{dump.path} cannot be read as HLO: {error}")
