"""Trials -> text for people: what each fix of `check` does to the program, and the command that writes what gains."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fusionlint.report.source_lines import is_installed, short_path
from fusionlint.report.units import differences
from fusionlint.trials import Trial

_WORD_COLUMN = len("better  ")
_WIDEST = 66  # of what stands before the numbers, unless it is longer itself
NONE = "no fix of `fusionlint check` is for these lines"


def trials_block(trials: Sequence[Trial]) -> Iterator[str]:
    """A line or two for each trial, in their order."""
    if not trials:
        yield NONE
        return
    yield "fixes of `fusionlint check`, each compiled with all else as it is:"
    width = min(_WIDEST, max(len(_named(trial)) for trial in trials))
    for trial in trials:
        yield from (f"   {line}" for line in _lines(trial, width))
    own = [trial for trial in trials if not any(is_installed(one.location.path) for one in trial.fixes)]
    if any(trial.word == "better" for trial in own):  # what is installed nobody writes into
        yield f"   {_command(own)}"


def _lines(trial: Trial, width: int) -> Iterator[str]:
    said = differences(trial.measured) or trial.error
    yield f"{trial.word.ljust(_WORD_COLUMN)}{_named(trial).ljust(width)}  {said}".rstrip()
    suggestion = trial.fixes[0].suggestion
    if len(trial.fixes) == 1 and trial.word == "better" and suggestion:
        yield f"{' ' * _WORD_COLUMN}write: {suggestion.text.splitlines()[0]}"


def _named(trial: Trial) -> str:
    """`env.py:6:12 argmax-then-pick`, or how many fixes these are."""
    if len(trial.fixes) > 1:
        return f"{len(trial.fixes)} fixes together"
    where = trial.fixes[0].location
    return f"{short_path(where.path)}:{where.line}:{where.column} {trial.fixes[0].rule}"


def _command(trials: Sequence[Trial]) -> str:
    """How what is better is written: where the same rule found something in these files that is not, `check` has to
    know that from this report."""
    gainful = [trial for trial in trials if trial.word == "better"]
    fixes = gainful[-1].fixes if len(gainful[-1].fixes) > 1 else gainful[0].fixes
    paths = dict.fromkeys(short_path(one.location.path) for one in fixes)
    rules = dict.fromkeys(one.rule for one in fixes)
    options = "--fix" if all(one.suggestion and one.suggestion.safe for one in fixes) else "--fix --unsafe-fixes"
    command = f"fusionlint check {' '.join(paths)} --select {','.join(rules)}"
    others = [one for trial in trials for one in trial.fixes if one not in fixes]
    if any(one.rule in rules and short_path(one.location.path) in paths for one in others):
        evidence = f"--evidence FILE --target {gainful[0].target}"
        return f"`{command} {evidence} {options}` writes what is better; FILE: this, by --output-format json"
    return f"`{command} {options}` writes what is better"
