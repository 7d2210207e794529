"""What the commands share that compile what was recorded."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from fusionlint.commands.errors import one_line_errors
from fusionlint.config import ConfigError, read_config

if TYPE_CHECKING:
    from fusionlint.compiling.targets import Target
    from fusionlint.recorded import Told
    from fusionlint.recording import Recording


def targets_here(named: list[str]) -> list[Target]:
    """The targets of those names, of the settings, or the default one."""
    from fusionlint.compiling.attached import chosen
    from fusionlint.compiling.targets import TargetError

    with one_line_errors():
        try:
            return chosen(named or [*read_config(Path()).target])
        except TargetError as error:
            raise ConfigError(str(error)) from None


def told(recording: Recording, targets: Sequence[Target], timeout: float, *, try_fixes: bool = False) -> list[Told]:
    """What XLA makes of the recording, with what comes of the fixes of `check` if it is to `try_fixes`, and meanwhile
    how far it is, where stderr is a terminal."""
    from fusionlint.recorded import explain_recorded
    from fusionlint.report.progress import Progress
    from fusionlint.rule import all_rules

    progress = Progress(len(targets) if recording.functions else 0, sys.stderr)
    progress.show()
    try:
        every = explain_recorded(recording, targets, all_rules(), timeout, progress.done)
    finally:
        progress.clear()
    if not try_fixes:
        return every
    from fusionlint.retrying import with_trials

    with showing_progress() as begin:
        return [with_trials(one, targets, timeout, begin) for one in every]


@contextmanager
def showing_progress() -> Iterator[Callable[[int], Callable[[], None]]]:
    """Inside, what is called with how many compilations come next, and gives what is called as each of them ends, shows
    how far they are, where stderr is a terminal."""
    from fusionlint.report.progress import Progress

    shown: list[Progress] = []

    def begin(compilations: int) -> Callable[[], None]:
        shown.append(Progress(compilations, sys.stderr))
        shown[-1].show()
        return shown[-1].done

    try:
        yield begin
    finally:
        for one in shown:
            one.clear()
