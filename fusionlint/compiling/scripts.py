"""The parent's side of `fusionlint run`: starts the script, waits, and reads what it left. Never imports jax."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType
from typing import Any

from fusionlint.compiling.jobs import new_folder
from fusionlint.recording import (
    Compilation,
    EagerLine,
    Place,
    RecordedFunction,
    Recording,
    eager_from,
    function_from,
)

_SITE = Path(__file__).parent / "site"
Lines = tuple["Place | None", "Place | None"]  # of an eager operation, the inner and the outer one
_FORWARDED = ("SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2")  # those that this system has


@dataclass(frozen=True, slots=True)
class Ran:
    """A script that ended: its exit status (128 and the signal's number for one that a signal ended, as shells have
    it), and what was captured."""

    status: int
    recording: Recording


def run_script(
    script: str,
    arguments: Sequence[str] = (),
    platforms: Sequence[str] = (),
    *,
    module: bool = False,
    everything: bool = False,
) -> Ran:
    """Run a script, or with `module` a module, as this Python would, with this process's files, terminal and
    environment; capture what it compiles, and lower the user's functions (with `everything` all functions) for
    `platforms`."""
    folder = new_folder()
    command = [sys.executable, *(["-m"] if module else []), script, *arguments]
    with _signals_for_the_child() as children:
        child = subprocess.Popen(command, env=_environment(folder, platforms, everything=everything))  # noqa: S603  what the user asks to run
        children.append(child)
        status = child.wait()
    if _json(folder / "ended.json").get("interrupted"):
        status = -signal.SIGINT
    shown = (*(["-m"] if module else []), script, *arguments)
    return Ran(status if status >= 0 else 128 - status, read_spool(folder, shown, killed=status < 0))


def _environment(folder: Path, platforms: Sequence[str], *, everything: bool) -> dict[str, str]:
    before = os.environ.get("PYTHONPATH", "")
    home = str(Path(__file__).parents[2])
    told = "\n".join([str(folder), home, ",".join(platforms), "all" if everything else "", before])
    paths = os.pathsep.join([str(_SITE), before] if before else [str(_SITE)])
    return {**os.environ, "FUSIONLINT_CAPTURE": told, "PYTHONPATH": paths}


@contextmanager
def _signals_for_the_child() -> Iterator[list[subprocess.Popen[bytes]]]:
    """Inside, what is sent to this process goes to the child; Ctrl-C goes to both by itself, and only the child heeds
    it. (Handlers of Python's do not outlive exec, so that the child begins as it would.)"""
    children: list[subprocess.Popen[bytes]] = []

    def forward(number: int, _: FrameType | None) -> None:
        for child in children:
            child.send_signal(number)

    forwarded = [getattr(signal, name) for name in _FORWARDED if hasattr(signal, name)]
    before = {number: signal.signal(number, forward) for number in forwarded}
    before[signal.SIGINT] = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        yield children
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def read_spool(folder: Path, command: tuple[str, ...] = (), *, killed: bool = False) -> Recording:
    """What a script left in its folder; of one that did not end as Python does, what it had compiled until then: it was
    `killed`, or it did so itself."""
    began, ended = _json(folder / "began.json"), _json(folder / "ended.json")
    if not began:
        return Recording(command, notes=(_nothing(folder),))
    functions: dict[tuple[str, Place | None], RecordedFunction] = {}
    eager: dict[Lines, EagerLine] = {}
    spool = (folder / "compiled.jsonl").read_bytes()
    for line in spool[: spool.rfind(b"\n") + 1].splitlines():  # a killed script may have left half a line
        one = json.loads(line)
        if "eager" in one:
            _add_eager(eager, eager_from(one["eager"]))
        else:
            _add(functions, function_from(one["function"]))
    end = "it was killed" if killed else "it ended by os._exit, or by exec of another program,"
    notes = ended.get("notes", (f"{end} before its programs could be lowered: there are no launches to report",))
    return Recording(
        command=command,
        versions=began["versions"],
        backend=ended.get("backend", ""),
        functions=tuple(_with_programs(one, folder, ended.get("failures", {})) for one in functions.values()),
        eager=tuple(eager.values()),
        notes=tuple(notes),
    )


def _nothing(folder: Path) -> str:
    """Why there is nothing at all of a script."""
    failed = folder / "failed.txt"
    if failed.exists():
        return f"no verdict: this jax cannot be watched ({failed.read_text(errors='replace')}): nothing was captured"
    return "the program did not import jax"


def _add(functions: dict[tuple[str, Place | None], RecordedFunction], one: RecordedFunction) -> None:
    known = functions.setdefault((one.name, one.defined), replace(one, compilations=()))
    functions[one.name, one.defined] = replace(known, compilations=known.compilations + one.compilations)


def _add_eager(eager: dict[Lines, EagerLine], one: EagerLine) -> None:
    known = eager.get((one.called, one.outer), EagerLine(one.called, {}, 0.0, one.outer))
    counts = {**known.operations}
    for name, number in one.operations.items():
        counts[name] = counts.get(name, 0) + number
    eager[one.called, one.outer] = replace(known, operations=counts, seconds=known.seconds + one.seconds)


def _with_programs(
    function: RecordedFunction, folder: Path, failures: Mapping[str, Mapping[str, str]]
) -> RecordedFunction:
    def one(compilation: Compilation) -> Compilation:
        files = (folder / "programs").glob(f"{compilation.number}.*")
        programs = {path.suffix[1:]: path.read_bytes() for path in sorted(files)}
        return replace(compilation, programs=programs, failures=failures.get(str(compilation.number), {}))

    return replace(function, compilations=tuple(map(one, function.compilations)))


def _json(path: Path) -> dict[str, Any]:
    if not path.exists():
        return {}
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found
