"""What `diff` does between its arguments and its printing: tells what each of the two is, reads or compiles it."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fusionlint.diff.side import DiffError, Side, on, side_from
from fusionlint.recorded import Told, shown_path
from fusionlint.recording import RecordedFunction, Recording, RecordingError, read_recording
from fusionlint.report.run_json import run_json
from fusionlint.revisions import Asked, RevisionError, commit_of, explained_at, explained_here

HERE = "."  # the working folder as it is, committed or not

Document = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Given:
    """One of the two things to compare, by its name on the command line: a report that was read, a recording, or
    neither: then it is a revision, or HERE."""

    name: str
    report: Side | None = None
    recording: Recording | None = None

    @property
    def is_code(self) -> bool:
        return self.report is None and self.recording is None


def given(name: str) -> Given:
    """A file is a report or a recording, anything else a revision. Raises DiffError."""
    path = Path(name)
    if name == HERE:
        return Given(name)
    if not path.is_file():
        if path.suffix == ".json":
            raise DiffError(f"there is no file {name}")
        try:
            commit_of(name, Path.cwd())
        except RevisionError as error:
            raise DiffError(str(error)) from None
        return Given(name)
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        document = None
    if isinstance(document, dict) and "recording" in document:
        try:
            return Given(name, recording=read_recording(path))
        except RecordingError as error:
            raise DiffError(str(error)) from None
    return Given(name, report=side_from(name, document or {}))


def specs_of(both: Sequence[Given], specs: Sequence[str], recorded: Path | None) -> tuple[tuple[str, ...], list[str]]:
    """What to explain of revisions: the SPECs, those without arguments and all others of the recording as it says; and
    of which of its functions it cannot say them. Raises DiffError."""
    if not any(one.is_code for one in both):
        if specs or recorded:
            raise DiffError("reports and recordings are compared as they are: SPECs and --recorded are for revisions")
        return (), []
    if not specs and not recorded:
        raise DiffError(
            "say what to explain of a revision: `fusionlint diff main HEAD 'env.py:step(f32[8,128])'`, or take the "
            "functions of a recording, --recorded FILE"
        )
    if recorded is None:
        return tuple(specs), []
    try:
        recording = read_recording(recorded)
    except RecordingError as error:
        raise DiffError(str(error)) from None
    if specs:
        return tuple(_with_arguments(spec, recording) for spec in specs), []
    own = [one for one in recording.functions if one.owner == "user" and one.defined]
    sayable = [one for one in own if one.plain and one.largest.spec is not None]
    if not sayable:
        raise DiffError(f"{recorded} has no function whose arguments a SPEC can say: compare two recordings")
    left_out = [
        f"{_spec(one)} is left out: no SPEC can say its arguments, or how it is jitted"
        for one in own
        if one not in sayable
    ]
    return tuple(f"{_spec(one)}{one.largest.spec}" for one in sayable), left_out


def targets_of(both: Sequence[Given], named: Sequence[str]) -> list[str]:
    """The names of what to compile for: those that were given, else what the other side is a report on; [] where
    neither says any."""
    reported = (target for one in both if one.report for target in one.report.targets)
    return [*named] or [*dict.fromkeys(reported)]


def sides(
    both: Sequence[Given], asked: Asked, explain: Callable[[Recording], list[Told]], on_done: Callable[[], None]
) -> list[Side]:
    """What is to be compared, compiled where it is not a report: recordings by `explain`; `on_done` is called after
    each revision. Raises DiffError."""
    found = []
    for one in both:
        found.append(on(_side(one, asked, explain), asked.targets))
        if one.is_code:
            on_done()
    return found


def _side(one: Given, asked: Asked, explain: Callable[[Recording], list[Told]]) -> Side:
    if one.report is not None:
        return one.report
    document: Document
    if one.recording is not None:
        document = json.loads(run_json(one.recording, explain(one.recording), 0))
        # How a run ended is no part of its recording.
        return side_from(one.name, document | {"status": None}, one.recording.top)
    try:
        document = explained_here(asked) if one.name == HERE else explained_at(one.name, asked)
    except RevisionError as error:
        raise DiffError(f"{one.name}: {error}") from None
    return replace(side_from(one.name, document), is_asked=True)


def _with_arguments(spec: str, recording: Recording) -> str:
    if "(" in spec:
        return spec
    module, _, function = spec.rpartition(":")
    found = [one for one in recording.find(module, function) if one.plain and one.largest.spec is not None]
    return f"{spec}{found[0].largest.spec}" if found else spec


def _spec(function: RecordedFunction) -> str:
    assert function.defined is not None
    return f"{shown_path(function.defined.path)}:{function.name}"
