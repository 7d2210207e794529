"""Trials -> text for people: what each fix of `check` does to the program, and the command that writes what gains."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fusionlint.report.source_lines import short_path
from fusionlint.report.units import counted, differences
from fusionlint.trials import Trial

_WORD_COLUMN = len("better  ")
_COST_COLUMN = 58
NONE = "no fix of `fusionlint check` is for these lines"


def trials_block(trials: Sequence[Trial]) -> Iterator[str]:
    """A line or two for each trial, in their order."""
    if not trials:
        yield NONE
        return
    yield "fixes of `fusionlint check`, each compiled with all else as it is:"
    for trial in trials:
        yield from (f"   {line}" for line in _lines(trial))
    gainful = [trial for trial in trials if trial.word == "better"]
    if gainful:
        yield f"   `{_command(gainful)}` writes what is better"


def _lines(trial: Trial) -> Iterator[str]:
    fixes = trial.fixes
    where = fixes[0].location
    named = (
        f"{short_path(where.path)}:{where.line}:{where.column} {fixes[0].rule}"
        if len(fixes) == 1
        else f"{counted(len(fixes), 'fix', 'fixes')} together"
    )
    yield (
        f"{trial.word.ljust(_WORD_COLUMN)}{named}".ljust(_COST_COLUMN)
        + f"  {differences(trial.measured) or trial.error}".rstrip()
    )
    suggestion = fixes[0].suggestion
    if len(fixes) == 1 and trial.word == "better" and suggestion:
        yield f"{' ' * _WORD_COLUMN}write: {suggestion.text.splitlines()[0]}"


def _command(gainful: Sequence[Trial]) -> str:
    fixes = gainful[-1].fixes if len(gainful[-1].fixes) > 1 else gainful[0].fixes
    paths = " ".join(dict.fromkeys(short_path(one.location.path) for one in fixes))
    rules = ",".join(dict.fromkeys(one.rule for one in fixes))
    unsafe = "" if all(one.suggestion and one.suggestion.safe for one in fixes) else " --unsafe-fixes"
    return f"fusionlint check {paths} --select {rules} --fix{unsafe}"
