"""A report -> what the fixes of `check` do to it: each of them compiled by itself, then all that gain together."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from importlib.util import decode_source
from itertools import groupby
from pathlib import Path

from fusionlint.checking import scope_of
from fusionlint.compiling.artifacts import Job
from fusionlint.compiling.targets import Target
from fusionlint.config import common_folder, read_config
from fusionlint.explained import Report
from fusionlint.finding import Finding
from fusionlint.source.check import check_files
from fusionlint.source.files import rest_of_project
from fusionlint.source.fix import fixes
from fusionlint.source.fixing import rewritten
from fusionlint.source.stand import project_root
from fusionlint.source.texts import text_of
from fusionlint.tasks import explain_all
from fusionlint.trials import Trial


@dataclass(frozen=True, slots=True)
class Variant:
    """Fixes, and the files as they are with them, by their resolved paths."""

    fixes: tuple[Finding, ...]
    texts: Mapping[str, str]


def tried(
    found: Sequence[Finding],
    report: Report,
    job: Job,
    target: Target,
    timeout: float,
    executor: Executor | None = None,
    on_start: Callable[[int], Callable[[], None]] = lambda _: lambda: None,
) -> tuple[Trial, ...]:
    """What comes of the fix of each of `found`, as `fixable` finds them, to what `job` compiled for `target`, the one
    that gains most first. Where several do no harm the last is of those together, if that gains: of those that gain, or
    with others that make a difference only then. Each compilation has `timeout` seconds; `on_start` is told how many
    there will be, and gives what is called as each of them ends. Nothing is written."""
    variants = [*variants_of([finding] for finding in found)]
    alone = [*_compiled(variants, report, job, target, timeout, executor, on_start)]
    alone.sort(key=lambda trial: -trial.gain)
    groups = _groups(alone)
    joined = [*_compiled([*variants_of(groups)], report, job, target, timeout, executor, on_start)]
    return (*alone, *_best(joined))


def _groups(alone: Sequence[Trial]) -> list[list[Finding]]:
    """The fixes that gain, and with them those that by themselves are no difference; each where they are several."""
    gainful = [trial.fixes[0] for trial in alone if trial.word == "better"]
    harmless = [trial.fixes[0] for trial in alone if trial.word == "same"]
    wider = [*gainful, *harmless] if harmless else []
    return [group for group in (gainful, wider) if len(group) > 1]


def _best(joined: Sequence[Trial]) -> Iterator[Trial]:
    """The first that gains, unless a later one gains more."""
    gainful = [trial for trial in joined if trial.word == "better"]
    if gainful:
        first, *wider = gainful
        yield next((one for one in wider if _is_better(one, first)), first)


def _is_better(one: Trial, other: Trial) -> bool:
    return other.after is not None and replace(one, before=other.after).word == "better"


def fixable(report: Report, target: Target) -> list[Finding]:
    """What `check` finds in the lines that were compiled, for the target, and has a fix of, safe or not. Raises
    ConfigError."""
    found: list[Finding] = []
    by_project: dict[Path | None, list[Path]] = defaultdict(list)
    for path in map(Path, report.lines):
        if path.is_file():
            by_project[project_root(path.parent)].append(path)
    for paths in by_project.values():
        config = read_config(common_folder(paths))
        scope = scope_of(config, (), (), [target.name], unused_ignores=False, only_seen=False)
        around = rest_of_project(paths, config.exclude, config.root)
        found += check_files(paths, scope, beside=around).findings
    return [one for one in found if one.suggestion and one.suggestion.edits and _is_compiled(one, report)]


def _is_compiled(finding: Finding, report: Report) -> bool:
    where = finding.location
    return any(first <= where.end_line and where.line <= last for first, last in report.lines.get(where.path, ()))


def variants_of(groups: Iterable[Sequence[Finding]]) -> Iterator[Variant]:
    """Each group of fixes applied at once, but for what overlaps an earlier one; none of what cannot be applied."""
    for group in groups:
        chosen = fixes(group, unsafe=True)
        kept = [one for one in group if one.suggestion in chosen]
        texts = {}
        for path, found in groupby(sorted(kept, key=lambda one: one.location.path), lambda one: one.location.path):
            after = rewritten(path, text_of(path), [one.suggestion for one in found if one.suggestion])
            if after is None:
                break
            texts[str(Path(path).resolve())] = decode_source(after)
        else:
            yield Variant(tuple(kept), texts)


def _compiled(
    variants: Sequence[Variant],
    report: Report,
    job: Job,
    target: Target,
    timeout: float,
    executor: Executor | None,
    on_start: Callable[[int], Callable[[], None]],
) -> Iterator[Trial]:
    todo = [(replace(job, texts=variant.texts), target) for variant in variants]
    on_done = on_start(len(todo))
    for variant, result in zip(variants, explain_all(todo, (), timeout, executor, on_done=on_done), strict=True):
        if isinstance(result, Report):
            yield Trial(target.name, variant.fixes, report.totals, result.totals)
        else:
            yield Trial(target.name, variant.fixes, report.totals, None, result.message)
