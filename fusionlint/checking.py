"""What `check` does between its arguments and its printing: which rules, what is known already, what came of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from fusionlint.compiling.targets import ATTACHED, TARGETS
from fusionlint.config import Config, ConfigError, nearest
from fusionlint.finding import Finding, Problem
from fusionlint.packages import concerning
from fusionlint.rule import all_rules
from fusionlint.source.briefs import briefs
from fusionlint.source.check import Result
from fusionlint.source.fix import lines_of
from fusionlint.source.idle_files import is_idle_file
from fusionlint.source.ignores import UNUSED
from fusionlint.source.per_file import PerFile
from fusionlint.source.scope import Scope, matters, speaking, usual
from fusionlint.source.stand import path_in_project
from fusionlint.source.texts import text_of

if TYPE_CHECKING:  # most runs have neither
    from fusionlint.baseline import Baseline, Entry
    from fusionlint.evidence import Compiled

# The target whose numbers stand in the pages, by what a report is about: hazards are those of the platform.
_MEASURED_AS = {t.name: t.measured_as for t in TARGETS} | {
    name: next(t.measured_as for t in TARGETS if t.platform == platform) for name, platform in ATTACHED.items()
}
# In per-file-ignores: every rule.
_ALL = "all"


class Outcome(NamedTuple):
    """What a run has to say: what was found that the baseline does not know, how many it knows, how many it lists,
    and how many of those are no longer there. `baseline` is "" without one. `reports` are those of --evidence,
    `refuted` the findings that they took away, `elsewhere` are those about hardware that the package is not for.
    `idle` where every file is, by its name, one that few rules mean; `by` says whose counts a target goes by that has
    none of its own: {"a100": "h100"}."""

    findings: tuple[Finding, ...]
    problems: tuple[Problem, ...]
    warnings: tuple[Problem, ...]
    files: int
    baseline: str = ""
    known: int = 0
    listed: int = 0
    gone: int = 0
    reports: int = 0
    refuted: int = 0
    elsewhere: int = 0
    idle: bool = False
    by: tuple[tuple[str, str], ...] = ()


def scope_of(
    config: Config,
    select: Sequence[str],
    ignore: Sequence[str],
    targets: Sequence[str],
    *,
    unused_ignores: bool,
    only_seen: bool,
) -> Scope:
    """What the command line says, else the configuration: what it selects is looked for, whatever is ignored there, and
    what it ignores is left out besides. ConfigError for names that nobody knows, and where no rule is left.

    What does harm to a CPU's arithmetic alone, or to a CPU where an accelerator would pay for it, is looked for where
    `cpu` is a target, or the rule is selected.
    """
    known, targets_known = list(briefs()), [*(t.name for t in TARGETS), *ATTACHED]
    check_known([*select, *ignore], known, "rule")
    targets, wanted = [name.lower() for name in targets], [name.lower() for name in config.target]
    check_known(targets, targets_known, "target")
    for key, said in (("select", config.select), ("ignore", config.ignore)):
        check_known(said, known, "rule", where=config.where(key))
    check_known(wanted, targets_known, "target", where=config.where("target"))
    for_files = [name for _, names in config.per_file_ignores for name in names]
    check_known(for_files, [*known, _ALL], "rule", where=config.where("per-file-ignores"))
    targets = [_MEASURED_AS[name] for name in targets or wanted]
    is_usual = not (select or config.select or targets)
    chosen = select or config.select or (usual() if is_usual else known)
    names = [name for name in chosen if name not in ignore and (select or name not in config.ignore)]
    if not names:
        raise ConfigError("no rule is left to look for: what is selected is ignored too")
    per_file = tuple(
        (pattern, tuple(known) if _ALL in silent else silent) for pattern, silent in config.per_file_ignores
    )
    silenced = PerFile(str(config.root), per_file)
    return Scope(speaking(names, targets), tuple(targets), silenced, unused_ignores, only_seen, is_usual)


def check_known(names: Iterable[str], known: Iterable[str], what: str, *, where: str = "") -> None:
    """ConfigError for the first of `names` that is not known; it begins with `where` they are written."""
    for name in names:
        if name not in known:
            if name == UNUSED:
                raise ConfigError(f"{where}{UNUSED} is switched by --warn-unused-ignores; it has no page")
            listed = f"; `fusionlint {what}{'s' * (what == 'target')}` lists them"
            raise ConfigError(f"{where}there is no {what} {name!r}{nearest(name, known) or listed}")


def baseline_of(config: Config, path: Path | None, *, write: bool) -> Baseline | None:
    """The baseline of the command line, else of the configuration; one that is to be written may be missing."""
    if path is None and config.baseline:
        path = config.root / config.baseline
    if path is None:
        if write:
            raise ConfigError("--write-baseline wants a file: --baseline FILE, or baseline in [tool.fusionlint]")
        return None
    from fusionlint.baseline import Baseline, read_baseline

    if write and not path.parent.is_dir():
        raise ConfigError(f"{path}: there is no folder {path.parent} to write it to")
    return Baseline(path) if write and not path.exists() else read_baseline(path)


# What findings are recognised by in a file that fixes changed: path, rule, and the line without the space around.
_Key = tuple[str, str, str]


class Weighed(NamedTuple):
    """A result of a run for `scope` beside the evidence of `reports`: without what they refute, and with what confirms
    the others, nor what is about hardware that the package is not for, `elsewhere` in number."""

    result: Result
    scope: Scope
    elsewhere: int = 0
    reports: tuple[Compiled, ...] = ()
    refuted: tuple[Finding, ...] = ()
    keys: frozenset[_Key] = frozenset()

    def kept(self, findings: Sequence[Finding], data: bytes) -> list[Finding]:
        """Those of `findings` in the text `data` of a file that do not look like one that is refuted."""
        lines = lines_of(data)
        return [one for one in concerning(findings, self.scope) if _key(one, lines) not in self.keys]


def evidence_of(paths: Sequence[Path]) -> tuple[Compiled, ...]:
    """The reports in the files `paths`. ConfigError for a file that holds none."""
    if not paths:
        return ()
    from fusionlint.evidence import EvidenceError, read_evidence

    try:
        return tuple(report for path in paths for report in read_evidence(path))
    except EvidenceError as error:
        raise ConfigError(str(error)) from None


def weighed(
    result: Result,
    reports: tuple[Compiled, ...],
    scope: Scope,
    before: Weighed | None = None,
    fixed: Collection[str] = (),
) -> Weighed:
    """`result` beside the evidence of `reports`. Of the files `fixed`, which are no longer what was compiled, it goes
    by what was refuted `before`."""
    about = tuple(concerning(result.findings, scope))
    elsewhere = len(result.findings) - len(about)
    result = result._replace(findings=about)
    if not reports:
        return Weighed(result, scope, elsewhere)
    from fusionlint.evidence import fresh, stale

    found: list[Finding] = []
    refuted: list[Finding] = []
    warnings: list[Problem] = []
    keys: set[_Key] = set()
    for path, group in groupby(result.findings, lambda finding: finding.location.path):
        data, known = text_of(path), list(group)
        if before and path in fixed:
            found += (kept := before.kept(known, data))
            refuted += [one for one in known if one not in kept]
            continue
        if stale(str(Path(path).resolve()), data, reports):
            warnings.append(Problem(path, 0, "is not what was compiled: evidence from another text of it is not used"))
        lines, compiled = lines_of(data), fresh(str(Path(path).resolve()), data, reports)
        for finding in known:
            one = _judged_by(finding, compiled)
            gone = bool(one.refuted) and not (one.targets and matters(one, scope))
            (refuted if gone else found).append(one)
            keys |= {_key(one, lines)} if gone else set()
    left = result._replace(findings=tuple(found), warnings=tuple(sorted([*result.warnings, *warnings])))
    return Weighed(left, scope, elsewhere, reports, tuple(refuted), frozenset(keys))


def chosen(weighed: Weighed, baseline: Baseline | None) -> Callable[[Sequence[Finding], bytes], Sequence[Finding]]:
    """Which findings in a file's text are to be fixed: neither refuted ones nor those that the baseline knows."""

    def choose(findings: Sequence[Finding], data: bytes) -> Sequence[Finding]:
        kept = weighed.kept(findings, data)
        return baseline.new(kept, data) if baseline else kept

    return choose


def _judged_by(finding: Finding, reports: Sequence[Compiled]) -> Finding:
    from fusionlint.evidence import judged

    path = str(Path(finding.location.path).resolve())
    harm = next((rule.harm for rule in all_rules() if rule.name == finding.rule), "")
    return judged(finding, path, reports, _MEASURED_AS, fusion=harm == "fusion")


def _key(finding: Finding, lines: Sequence[str]) -> _Key:
    return finding.location.path, finding.rule, lines[finding.location.line - 1].strip()


def rewritten(baseline: Baseline, result: Result, scope: Scope, files: Sequence[Path]) -> Baseline:
    """A new baseline: all that was found, and what the old one says of what this run did not look at."""
    _, unseen = _judged(baseline, result, scope, files)
    entries = sorted([*unseen, *(entry for _, entry in baseline.listed(result.findings))])
    return replace(baseline, entries=tuple(entries), targets=scope.targets)


def outcome(
    baseline: Baseline | None, weighed: Weighed, scope: Scope, files: Sequence[Path], targets: Sequence[str] = ()
) -> Outcome:
    """What is left to say of a result beside the evidence and the baseline, where these `targets` were asked for."""
    result = weighed.result
    said = Outcome(
        result.findings,
        result.problems,
        result.warnings,
        result.files,
        reports=len(weighed.reports),
        refuted=len(weighed.refuted),
        elsewhere=weighed.elsewhere,
        idle=bool(files) and all(is_idle_file(path_in_project(path)) for path in files),
        by=tuple(
            (name, other) for name in dict.fromkeys(map(str.lower, targets)) if name != (other := _MEASURED_AS[name])
        ),
    )
    if baseline is None:
        return said
    new = baseline.new(result.findings)
    seen, _ = _judged(baseline, result, scope, files)
    # What is refuted is still there: without the evidence it would be a finding again.
    gone = Counter(seen) - Counter(entry for _, entry in baseline.listed([*result.findings, *weighed.refuted]))
    return said._replace(
        findings=tuple(new),
        baseline=str(baseline.path),
        known=len(result.findings) - len(new),
        listed=len(baseline.entries),
        gone=gone.total(),
    )


def _judged(baseline: Baseline, result: Result, scope: Scope, files: Sequence[Path]) -> tuple[list[Entry], list[Entry]]:
    """Entries that the run looked at, and the others: a file that could not be checked says nothing."""
    failed = {problem.path for problem in result.problems}
    looked = [path for path in files if str(path) not in failed]
    everything = not scope.targets and {*scope.rules} >= {*speaking(usual(), ())}
    rules = [*scope.rules, UNUSED] if scope.unused_ignores and everything else scope.rules
    return baseline.judged(looked, rules, scope.targets)
