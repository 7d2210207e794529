"""Files -> [Finding]: reads facts, joins them, asks the rules, drops what comments ignore.

A file that cannot be read or parsed becomes a Problem; the others are checked all the same.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

import libcst as cst

from fusionlint.finding import Finding, Problem
from fusionlint.rule import Rule, all_rules, catalogue
from fusionlint.source.facts import Facts
from fusionlint.source.files import imported_files, module_name, path_in_project
from fusionlint.source.ignores import Ignore, ignores, unknown_names, unused
from fusionlint.source.per_file import NOWHERE, PerFile
from fusionlint.source.project import Place, Project
from fusionlint.source.reading import read_facts
from fusionlint.source.traced import Context, contexts
from fusionlint.source.tree import Source

# Below this many files a pool costs more than it saves.
_WORTH_A_POOL = 24

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Scope:
    """What to look for: rules by name, the targets that matter (none is all of them), what some files are not checked
    for, and whether comments that silence nothing count."""

    rules: tuple[str, ...]
    targets: tuple[str, ...] = ()
    per_file: PerFile = NOWHERE
    unused_ignores: bool = False

    def rules_in(self, path: str) -> frozenset[str]:
        """The rules that are asked about the file `path`."""
        return frozenset(self.rules) - self.per_file.silent(path)


@dataclass(frozen=True, slots=True)
class World:
    """What the files say together; computed once a run, shared by the processes that ask the rules."""

    project: Project
    contexts: dict[Place, Context]


@dataclass(frozen=True, slots=True)
class Result:
    """What one run found; `files` counts those it was asked to check. What `problems` name was not checked, what
    `warnings` name was."""

    findings: tuple[Finding, ...]
    problems: tuple[Problem, ...]
    warnings: tuple[Problem, ...]
    files: int
    world: World


def check_files(paths: Sequence[Path], scope: Scope, jobs: int = 1) -> Result:
    """The findings of all rules of `scope` in the files `paths`, sorted by place."""
    jobs = 1 if len(paths) < _WORTH_A_POOL else jobs
    read = _map(_read, paths, jobs, None, scope)
    facts = {f.path: f for f in read if isinstance(f, Facts)}
    world = join(facts)
    checked = _map(_check_shared, facts, jobs, world, scope)
    problems = [p for p in read if isinstance(p, Problem)] + [p for one in checked for p in one.problems]
    problems += [Problem(package, 0, f"its rules cannot be used: {why}") for package, why in catalogue().broken]
    findings = sorted((f for one in checked for f in one.findings), key=lambda f: (f.location, f.rule))
    warnings = sorted(w for one in checked for w in one.warnings)
    return Result(tuple(findings), tuple(sorted(problems)), tuple(warnings), len(paths), world)


def join(facts: dict[str, Facts]) -> World:
    """The files to check, joined with the files of their packages that they import from, which are not checked."""
    project = Project({**facts, **_neighbours(facts)})
    return World(project, contexts(project))


def check_text(data: bytes, path: str, scope: Scope, world: World | None = None) -> tuple[Finding, ...]:
    """The findings in one file's bytes. SyntaxError or cst.ParserSyntaxError when it does not parse."""
    facts = _facts(data, path)
    if world is None:
        world = join({path: facts})
    else:
        world = World(Project({**world.project.files, path: facts}), world.contexts)
    return tuple(check_source(Source(path, data, world.project, world.contexts), scope))


def check_source(source: Source, scope: Scope) -> Iterator[Finding]:
    """The findings of the rules of `scope` in one Source without those that a comment ignores; last, where they are
    asked for, the comments that ignore nothing."""
    rules = scope.rules_in(source.path)
    comments = ignores(source.data, source.path)
    used: list[tuple[Ignore, str]] = []
    for finding in _found(source, rules, scope):
        by = [comment for comment in comments if comment.silences(finding)]
        used += [(comment, finding.rule) for comment in by]
        if not by and matters(finding, scope):
            yield finding
    if scope.unused_ignores and comments:
        yield from unused(comments, used, rules, _names())


def _found(source: Source, rules: frozenset[str], scope: Scope) -> Iterator[Finding]:
    """What `rules` say of a file, on whatever target."""
    if not rules:
        return
    for rule in all_rules():
        if rule.name not in rules:
            continue
        for sensor in rule.source_sensors:
            if not sensor.may_find(source):
                continue
            for node in sensor.asked_about(source):
                for finding in sensor.check(node, source):
                    whole = _complete(finding, rule, scope)
                    if whole.targets or not rule.page.measurements:
                        yield whole


def speaking(names: Iterable[str], targets: Sequence[str]) -> tuple[str, ...]:
    """Those of the rules `names` whose page shows harm on one of `targets` (on any, without targets)."""
    pages = {rule.name: rule.page for rule in all_rules() if rule.name in names}
    wanted = {*targets, "any"}
    return tuple(n for n, page in pages.items() if page.targets and (not targets or wanted & {*page.targets}))


def _complete(finding: Finding, rule: Rule, scope: Scope) -> Finding:
    """The finding with its rule's name, and the targets and numbers of the pair of the page that it is a case of."""
    page = rule.page
    if not page.measurements:  # a page that is being written
        return replace(finding, rule=rule.name)
    shown = (*scope.targets, "any")
    evidence = tuple(m for m in page.measurements[finding.pair] if not scope.targets or m.target in shown)
    return replace(finding, rule=rule.name, targets=page.targets_of[finding.pair], evidence=evidence)


def matters(finding: Finding, scope: Scope) -> bool:
    """Whether it does harm on a target that was asked for; a page that is being written says not where."""
    return not (finding.targets and scope.targets) or not {*scope.targets, "any"}.isdisjoint(finding.targets)


def _names() -> tuple[str, ...]:
    """The rules that speak at all."""
    return speaking([rule.name for rule in all_rules()], ())


def _strange(source: Source) -> tuple[Problem, ...]:
    """What ignore comments name that no rule is called."""
    comments = ignores(source.data, source.path)
    return tuple(unknown_names(comments, _names())) if comments else ()


def _read(path: Path) -> Facts | Problem:
    try:
        return _facts(path.read_bytes(), str(path))
    except OSError as error:
        return Problem(str(path), 0, f"cannot be read: {error.strerror}")
    except SyntaxError as error:
        return Problem(str(path), error.lineno or 0, _why_not(path, error))
    except (ValueError, RecursionError, MemoryError) as error:
        return Problem(str(path), 0, f"does not parse: {error or type(error).__name__}")


def _why_not(path: Path, error: SyntaxError) -> str:
    """What is wrong, or that this Python is too old for the file: libcst reads newer syntax than the running Python."""
    try:
        cst.parse_module(path.read_bytes())
    except (cst.ParserSyntaxError, SyntaxError, UnicodeDecodeError, RecursionError):
        return f"does not parse: {error.msg}"
    mine = f"{sys.version_info.major}.{sys.version_info.minor}"
    return f"is written for a newer Python than {mine} ({error.msg}); run fusionlint with that one"


def _facts(data: bytes, path: str) -> Facts:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a user's invalid escape is not our warning
        inside, is_package = path_in_project(Path(path)), Path(path).name == "__init__.py"
        return read_facts(data, path, module_name(Path(path)), inside=inside, is_package=is_package)


def _neighbours(facts: dict[str, Facts]) -> dict[str, Facts]:
    """Facts of files that are not checked but say what imported names mean."""
    known = {str(Path(path).resolve()) for path in facts}
    found: dict[str, Facts] = {}
    todo = list(facts.values())
    while todo:
        one = todo.pop()
        for path in imported_files(Path(one.path), _imports(one)):
            if str(path) not in known:
                known.add(str(path))
                read = _read(path)
                if isinstance(read, Facts):
                    found[read.path] = read
                    todo.append(read)
    return found


def _imports(facts: Facts) -> Iterator[str]:
    for names in facts.bindings.values():
        for binding in names.values():
            if binding.kind == "import":
                yield facts.absolute(binding.target)


@dataclass(frozen=True, slots=True)
class _Checked:
    """What came of one file."""

    findings: tuple[Finding, ...] = ()
    problems: tuple[Problem, ...] = ()
    warnings: tuple[Problem, ...] = ()


def _check(path: str, world: World, scope: Scope) -> _Checked:
    source = Source(path, Path(path).read_bytes(), world.project, world.contexts)
    try:
        return _Checked(tuple(check_source(source, scope)), warnings=_strange(source))
    except cst.ParserSyntaxError as error:
        return _Checked(problems=(Problem(path, error.raw_line, f"does not parse: {error.message}"),))
    except RecursionError:
        return _Checked(problems=(Problem(path, 0, "is nested too deeply to check"),))


# What this process checks with: set once a run, and handed to each process of a pool when it starts.
_shared: tuple[World, Scope] | None = None


def _share(world: World | None, scope: Scope) -> None:
    global _shared
    _shared = (world, scope) if world else None


def _check_shared(path: str) -> _Checked:
    assert _shared is not None
    return _check(path, *_shared)


def _map(function: Callable[[T], R], items: Iterable[T], jobs: int, world: World | None, scope: Scope) -> list[R]:
    """`map`, in `jobs` processes where there is more than one; each knows `world`."""
    if jobs == 1:
        _share(world, scope)
        return list(map(function, items))
    with ProcessPoolExecutor(jobs, initializer=_share, initargs=(world, scope)) as pool:
        return list(pool.map(function, items, chunksize=8))
