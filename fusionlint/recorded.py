"""Recording x targets -> Reports: what XLA makes of the programs that were captured. Never imports jax."""

from __future__ import annotations

import ast
import os
import re
import tokenize
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import groupby
from math import prod
from pathlib import Path

from fusionlint.compiling.artifacts import Artifacts, CompileError, Job, program_entry, read_artifacts
from fusionlint.compiling.entry import EntryError, Spread, array_text, parse_spec
from fusionlint.compiling.jobs import TIMEOUT, run_jobs
from fusionlint.compiling.owners import installed
from fusionlint.compiling.sizes import NO_DIMS, NO_MESH, Axes, Dims
from fusionlint.compiling.targets import Target
from fusionlint.explained import Report
from fusionlint.folders import top_folder
from fusionlint.recording import Argument, Compilation, RecordedFunction, Recording, sha256_of
from fusionlint.rule import Rule
from fusionlint.tasks import Failure, Task, read, tasks

# A file that a line of a program comes from: StableHLO's bytecode holds its strings as they are, each ended by a 0.
_PATH = re.compile(rb"[^\x00\"\n]+\.py(?=\x00)")
# How jax says it: P('data', None), PartitionSpec('data', ('x', 'y')).
_SHARDED = re.compile(r"\w+(\(.*\)) over ")
SHOWN = 6  # arguments in an entry's text

Result = Report | Failure


@dataclass(frozen=True, slots=True)
class Told:
    """One program of a function that was captured, and what XLA makes of it, target by target."""

    function: RecordedFunction
    compilation: Compilation
    results: tuple[Result, ...]


@dataclass(frozen=True, slots=True)
class _Wanted:
    function: RecordedFunction
    compilation: Compilation

    @property
    def entry(self) -> str:
        return entry_text(self.function, self.compilation)


def explain_recorded(
    recording: Recording,
    targets: Sequence[Target],
    rules: Sequence[Rule] = (),
    timeout: float = TIMEOUT,
    on_done: Callable[[], None] = lambda: None,
) -> list[Told]:
    """What XLA makes of every program of the recording on each target, the user's functions first, then by compile
    seconds. One process a target compiles them one after another, given `timeout` seconds for each; `on_done` is
    called as each target is done."""
    wanted = [_Wanted(function, one) for function in ordered(recording) for one in _reported(function)]

    def compile_for(target: Target) -> list[Result]:
        results = _results(wanted, target, rules, timeout)
        on_done()
        return results

    with ThreadPoolExecutor(max(1, min(len(targets), os.cpu_count() or 1))) as pool:
        by_target = list(pool.map(compile_for, targets))
    rows = zip(*by_target, strict=True) if by_target else ((),) * len(wanted)
    return [Told(one.function, one.compilation, tuple(row)) for one, row in zip(wanted, rows, strict=True)]


def tasks_recorded(
    specs: Sequence[str],
    targets: Sequence[Target],
    recording: Recording,
    dims: Dims = NO_DIMS,
    mesh: Axes = NO_MESH,
) -> list[Task]:
    """As `tasks`; of a SPEC without arguments, those that its function was called with in the recording, where it was.
    Of several signatures the largest counts. The code is taken as it is now; where a SPEC cannot say the arguments, or
    how they are spread over devices, the recording's own programs are taken, unless a file that they come from was
    changed since."""
    return [task for spec in specs for task in _tasks_recorded(spec, targets, recording, dims, mesh)]


def _tasks_recorded(spec: str, targets: Sequence[Target], recording: Recording, dims: Dims, mesh: Axes) -> list[Task]:
    function = _recorded(spec, recording)
    if function is None:
        return tasks([spec], targets, dims, mesh)
    if function.plain and function.largest.spec is not None and function.largest.devices == 1:
        asked = tasks([f"{spec.strip()}{function.largest.spec}"], targets, mesh=mesh)
        return [_with_x64(task, function.largest.x64) for task in asked]
    # Of the largest there may be no program: it was recorded before a larger one came, and the script was killed.
    one = next((one for one in function.compilations if one.programs or one.failures), function.largest)
    path = next(_changed(function, one, recording.sources), None)
    if path is not None:
        again = "record it again with `fusionlint run --record FILE`"
        return [Failure(spec, "", f"{shown_path(path)} was changed after {spec} was recorded: {again}")]
    if mesh and prod(mesh.values()) != one.devices:
        return [
            Failure(spec, "", f"{spec} was recorded on {one.devices} devices: leave --mesh out, or say the arguments")
        ]
    return [_program_task(_Wanted(function, one), target) for target in targets]


def _with_x64(task: Task, x64: bool | None) -> Task:
    return (replace(task[0], x64=x64), task[1]) if isinstance(task, tuple) else task


def _recorded(spec: str, recording: Recording) -> RecordedFunction | None:
    try:
        entry = parse_spec(spec)
    except EntryError:  # `tasks` says it
        return None
    found = recording.find(entry.module, entry.function) if entry.args is None else []
    return found[0] if found else None


def _changed(function: RecordedFunction, one: Compilation, sources: Mapping[str, str]) -> Iterator[str]:
    """The user's files that the program comes from, and that are others now; not those that are not on this machine."""
    own = function.defined.path if function.defined and function.sha256 else None
    if own and sha256_of(own) not in (None, function.sha256):
        yield own
    for path in _paths([one]):
        if path in sources and _source(path) not in (None, sources[path]):
            yield path


def _paths(compilations: Iterable[Compilation]) -> list[str]:
    """The files that lines of the programs come from."""
    programs = (program for one in compilations for program in one.programs.values())
    return sorted({path.decode(errors="replace") for program in programs for path in _PATH.findall(program)})


def _program_task(one: _Wanted, target: Target) -> Task:
    program = one.compilation.programs.get(target.platform)
    if program is None:
        return _without_program(one, target)
    return Job(program_entry(one.entry), "program", program=program), target


def to_save(recording: Recording) -> Recording:
    """With what tells the code of then from that of later: where the project was, and the texts of the user's files."""
    paths = _paths(one for function in recording.functions for one in function.compilations)
    texts = {path: _source(path) for path in paths if not installed(path)}
    sources = {path: text for path, text in texts.items() if text is not None}
    return replace(recording, top=str(top_folder(Path())), sources=sources)


def _source(path: str) -> str | None:
    try:
        with tokenize.open(path) as file:
            return file.read()
    except (OSError, SyntaxError, ValueError):
        return None


def ordered(recording: Recording) -> list[RecordedFunction]:
    """The user's functions first, those that took longest to compile before the others."""
    return sorted(recording.functions, key=lambda one: (one.owner != "user", -one.seconds))


def entry_text(function: RecordedFunction, compilation: Compilation) -> str:
    """`train.py:update(params: 4 arrays, x: f32[32,784], n=2)`."""
    parts = [*argument_texts(compilation.arguments), *(f"{name}={text}" for name, text in compilation.static.items())]
    if len(parts) > SHOWN:
        parts = [*parts[: SHOWN - 1], f"and {len(parts) - SHOWN + 1} more"]
    where = f"{shown_path(function.defined.path)}:" if function.defined else ""
    return f"{where}{function.name.replace('<locals>.', '')}({', '.join(parts)})"


def argument_texts(arguments: Sequence[Argument]) -> Iterator[str]:
    """One for each argument as the function has it: a pytree's arrays are counted."""
    for name, group in groupby(arguments, key=lambda one: one.name.partition("[")[0].partition(".")[0]):
        leaves = [*group]
        donated = " donated" if all(one.donated for one in leaves) else ""
        label = f"{name}: " if name else ""
        if len(leaves) == 1:
            yield f"{label}{array_text(leaves[0].dtype, leaves[0].shape, _spread(leaves[0]))}{donated}"
        else:
            yield f"{label}{len(leaves)} arrays{donated}"


def _spread(argument: Argument) -> Spread:
    """Over which axes of a mesh each of its dimensions is spread; () where that is not said so."""
    found = _SHARDED.match(argument.sharding)
    try:
        axes = ast.literal_eval(found[1]) if found else ()
    except (SyntaxError, ValueError):  # UNCONSTRAINED, say
        return ()
    every = axes if isinstance(axes, tuple) else (axes,)
    return tuple((one,) if isinstance(one, str) else tuple(one or ()) for one in every)[: len(argument.shape)]


def shown_path(path: str) -> str:
    """From the working directory, where it lies below."""
    relative = os.path.relpath(path) if Path(path).is_absolute() else path
    return path if relative.startswith("..") else relative


def _reported(function: RecordedFunction) -> Iterator[Compilation]:
    """Those with programs, or with a reason why there is none."""
    yield from (one for one in function.compilations if one.programs or one.failures)


def _results(wanted: Sequence[_Wanted], target: Target, rules: Sequence[Rule], timeout: float) -> list[Result]:
    todo = [_program_task(one, target) for one in wanted]
    jobs = [task[0] for task in todo if isinstance(task, tuple)]
    compiled = iter(run_jobs(jobs, target, read_artifacts, timeout) if jobs else ())
    return [
        task if isinstance(task, Failure) else _result(next(compiled), one, target, rules)
        for task, one in zip(todo, wanted, strict=True)
    ]


def _result(found: Artifacts | CompileError, one: _Wanted, target: Target, rules: Sequence[Rule]) -> Result:
    if isinstance(found, CompileError):
        return Failure(one.entry, target.name, str(found), found.stderr)
    return read(found, rules)


def _without_program(one: _Wanted, target: Target) -> Failure:
    why = one.compilation.failures.get(target.platform)
    why = why or f"it was recorded without a program for {target.name}: run it again with --target {target.name}"
    return Failure(one.entry, target.name, f"no verdict on {one.entry} for {target.name}: {why}")
