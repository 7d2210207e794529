"""What `check` does between its arguments and its printing: which rules, what is known already, what came of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from fusionlint.baseline import Baseline, Entry, read_baseline
from fusionlint.compiling.targets import ATTACHED, TARGETS
from fusionlint.config import Config, ConfigError, nearest
from fusionlint.finding import Finding, Problem
from fusionlint.rule import all_rules
from fusionlint.source.check import Result, Scope, speaking
from fusionlint.source.ignores import UNUSED
from fusionlint.source.per_file import PerFile

# In per-file-ignores: every rule.
_ALL = "all"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run has to say: what was found that the baseline does not know, how many it knows, how many it lists,
    and how many of those are no longer there. `baseline` is "" without one."""

    findings: tuple[Finding, ...]
    problems: tuple[Problem, ...]
    warnings: tuple[Problem, ...]
    files: int
    baseline: str = ""
    known: int = 0
    listed: int = 0
    gone: int = 0


def scope_of(
    config: Config, select: Sequence[str], ignore: Sequence[str], targets: Sequence[str], *, unused_ignores: bool
) -> Scope:
    """What the command line says, else the configuration. ConfigError for names that nobody knows."""
    known = [r.name for r in all_rules()]
    select, ignore, targets = select or config.select, ignore or config.ignore, targets or config.target
    check_known([*select, *ignore], known, "rule")
    check_known(targets, [*(t.name for t in TARGETS), *ATTACHED], "target")
    check_known([name for _, names in config.per_file_ignores for name in names], [*known, _ALL], "rule")
    targets = [_measured(name) for name in targets]
    names = [name for name in select or known if name not in ignore]
    per_file = tuple(
        (pattern, tuple(known) if _ALL in silent else silent) for pattern, silent in config.per_file_ignores
    )
    return Scope(speaking(names, targets), tuple(targets), PerFile(str(config.root), per_file), unused_ignores)


def _measured(name: str) -> str:
    """The target whose numbers stand in the pages: of one platform, hazards are the same."""
    platform = ATTACHED.get(name)
    return next(t.measured_as for t in TARGETS if t.name == name or t.platform == platform)


def check_known(names: Iterable[str], known: Iterable[str], what: str) -> None:
    """ConfigError for the first of `names` that is not known."""
    for name in names:
        if name not in known:
            raise ConfigError(f"there is no {what} {name!r}{nearest(name, known)}")


def baseline_of(config: Config, path: Path | None, *, write: bool) -> Baseline | None:
    """The baseline of the command line, else of the configuration; one that is to be written may be missing."""
    if path is None and config.baseline:
        path = config.root / config.baseline
    if path is None:
        if write:
            raise ConfigError("--write-baseline wants a file: --baseline FILE, or baseline in [tool.fusionlint]")
        return None
    return Baseline(path) if write and not path.exists() else read_baseline(path)


def rewritten(baseline: Baseline, result: Result, scope: Scope, files: Sequence[Path]) -> Baseline:
    """A new baseline: all that was found, and what the old one says of what this run did not look at."""
    _, unseen = _judged(baseline, result, scope, files)
    entries = sorted([*unseen, *(entry for _, entry in baseline.listed(result.findings))])
    return Baseline(baseline.path, tuple(entries), scope.targets)


def outcome(baseline: Baseline | None, result: Result, scope: Scope, files: Sequence[Path]) -> Outcome:
    """What is left to say of `result` beside the baseline."""
    if baseline is None:
        return Outcome(result.findings, result.problems, result.warnings, result.files)
    new = baseline.new(result.findings)
    seen, _ = _judged(baseline, result, scope, files)
    gone = Counter(seen) - Counter(entry for _, entry in baseline.listed(result.findings))
    known = len(result.findings) - len(new)
    numbers = known, len(baseline.entries), gone.total()
    return Outcome(tuple(new), result.problems, result.warnings, result.files, str(baseline.path), *numbers)


def _judged(baseline: Baseline, result: Result, scope: Scope, files: Sequence[Path]) -> tuple[list[Entry], list[Entry]]:
    """Entries that the run looked at, and the others: a file that could not be checked says nothing."""
    failed = {problem.path for problem in result.problems}
    looked = [path for path in files if str(path) not in failed]
    everything = not scope.targets and {*scope.rules} == {*speaking([rule.name for rule in all_rules()], ())}
    rules = [*scope.rules, UNUSED] if scope.unused_ignores and everything else scope.rules
    return baseline.judged(looked, rules, scope.targets)
