"""One file, and what is known of the files around it -> [Finding]: asks the rules, drops what comments ignore.

Nothing imports this, and with it libcst and the rules, before a file has to be looked into.
"""

from __future__ import annotations

import re
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import libcst as cst

from fusionlint.finding import Finding, Problem
from fusionlint.lazily import regex
from fusionlint.rule import Rule, SourceSensor
from fusionlint.source.briefs import briefs, rules_about
from fusionlint.source.deep import is_deep
from fusionlint.source.for_nobody import is_for_nobody
from fusionlint.source.ignores import Ignore, ignores, unknown_names, unused
from fusionlint.source.off_tpu import is_off_tpu, without_tpu
from fusionlint.source.pictures import is_for_a_picture
from fusionlint.source.project import Project
from fusionlint.source.read import read_bytes
from fusionlint.source.scope import Scope, matters, speaking
from fusionlint.source.scripts import is_left_over
from fusionlint.source.texts import text_of
from fusionlint.source.tree import Source
from fusionlint.source.world import World, join

# What a module says of itself, below what stands in comments; and how it says that tests use it.
_HEAD = regex(r'(?:\s|#[^\n]*\n)*[rR]?("""|\'\'\')(.*?)\1', re.S)
_TESTED = regex(
    r"\b(used?|only|meant|written)\s+(for|in|by)\s+(the\s+|our\s+)?(unit[- ]?)?test(s|ing)?(\s+(cases|purposes|only))?"
    r"\s*([.,;:)\n]|$)",
    re.I,
)
# The same of a function; what is "for testing whether the loop may end" is another thing.
_FOR_TESTS = regex(r"\bfor (unit[- ]|internal )?(tests|testing)( purposes)?( only)?\s*([.,;:)]|$)", re.I | re.M)
# From here on a docstring tells of what goes in and comes out: "Returns: ... this is only used for unit tests".
_ITS_PARTS = regex(r"^\s*(:(param|returns?)\b|(args|arguments|parameters|returns|yields|raises)\s*:?\s*$)", re.I | re.M)
_LONGEST = 4000


class Checked(NamedTuple):
    """What came of one file."""

    findings: tuple[Finding, ...] = ()
    problems: tuple[Problem, ...] = ()
    warnings: tuple[Problem, ...] = ()


def check_file(path: str, scope: Scope, world: World) -> Checked:
    """What the rules of `scope` say of a file of the project; that it cannot be looked into is a problem."""
    try:
        source = Source(path, text_of(path), world.project, world.contexts)
        return Checked(tuple(check_source(source, scope)), warnings=_strange(source))
    except OSError as error:
        return Checked(problems=(Problem(path, 0, f"cannot be read: {error.strerror}"),))
    except cst.ParserSyntaxError as error:
        from importlib.metadata import version  # hardly ever

        why = f"does not parse: {error.message} (to libcst {version('libcst')}; a newer one may read it)"
        return Checked(problems=(Problem(path, error.raw_line, why),))
    except (SyntaxError, UnicodeDecodeError) as error:  # the first pass reads no comments
        return Checked(problems=(Problem(path, 0, f"does not parse: {error}"),))
    except Exception as error:  # noqa: BLE001 - a mistake of a rule, from elsewhere perhaps, does not stop the other files
        if isinstance(error, RecursionError) and is_deep(text_of(path)):
            return Checked(problems=(Problem(path, 0, "is nested too deeply to check"),))
        return Checked(problems=(Problem(path, 0, f"cannot be checked, {_mistake(error)}"),))


def _mistake(error: Exception) -> str:
    """What went wrong where, and in which rule, if in one: without that rule the file can be checked."""
    frames = [*traceback.walk_tb(error.__traceback__)]
    asked = (frame.f_globals.get("rule") for frame, _ in frames)
    rule = next((one.name for one in asked if isinstance(one, Rule)), None)
    whose = f"a mistake of the rule {rule} (--ignore {rule} leaves it out)" if rule else "a mistake of fusionlint"
    at, line = frames[-1][0].f_code.co_filename, frames[-1][1]
    return f"by {whose}: {type(error).__name__}: {error} ({Path(at).name}:{line})"


def check_text(data: bytes, path: str, scope: Scope, world: World | None = None) -> tuple[Finding, ...]:
    """The findings in one file's bytes. SyntaxError or cst.ParserSyntaxError when it does not parse."""
    facts = read_bytes(data, path)
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
    left: list[Finding] = []
    for finding in _found(source, rules, scope):
        by = [comment for comment in comments if comment.silences(finding)]
        used += [(comment, finding.rule) for comment in by]
        if not by and matters(finding, scope) and not (finding.assumed and scope.only_seen):
            left.append(finding)
            yield finding
    if scope.unused_ignores and comments:
        yield from unused(comments, used, left, rules, _rule_names())


def _is_for_tests(source: Source) -> bool:
    """Whether a module says first of all that tests use it: "External implementations, to use for unit tests"."""
    said = _HEAD.match(source.data[:_LONGEST].decode(errors="ignore"))
    return said is not None and _TESTED.search(said[2].strip().partition("\n\n")[0]) is not None


def _is_of_a_test(node: cst.CSTNode, source: Source) -> bool:
    """Whether a function says so itself, by a docstring: "For-loop version for testing."""
    docstrings = (function.get_docstring() or "" for function in source.ancestors(node, cst.FunctionDef))
    return any(_FOR_TESTS.search(_ITS_PARTS.split(said, maxsplit=1)[0]) for said in docstrings)


def _found(source: Source, rules: frozenset[str], scope: Scope) -> Iterator[Finding]:
    """What `rules` say of a file, on whatever target."""
    if not rules or _is_for_tests(source):
        return
    is_off = is_off_tpu(source.facts, source.data)
    for rule in rules_about(source.names):
        if rule.name not in rules:
            continue
        for sensor in rule.source_sensors:
            if sensor.names and sensor.names.isdisjoint(source.names):
                continue
            for node in sensor.asked_about(source):
                for finding in sensor.check(node, source):
                    if _is_passed_over(node, sensor, source):
                        break
                    whole = _complete(finding, rule, sensor, scope)
                    whole = without_tpu(whole) if is_off else whole
                    if whole.targets or not rule.page.measurements:
                        yield whole


def _is_passed_over(node: cst.CSTNode, sensor: SourceSensor, source: Source) -> bool:
    """Whether nobody minds the speed of the code at `node`, whatever a rule says of it."""
    if sensor.where != "any" and is_for_a_picture(source.project, source.place(node)):
        return True
    return is_for_nobody(node, source) or _is_of_a_test(node, source) or is_left_over(node, source)


def _complete(finding: Finding, rule: Rule, sensor: SourceSensor, scope: Scope) -> Finding:
    """The finding with its rule's name, and the targets and numbers of the pair of the page that it is a case of; it
    assumes nothing where the sensor does not care how the code runs."""
    page, assumed = rule.page, finding.assumed and sensor.where in ("traced", "host")
    if not page.measurements:  # a page that is being written
        return finding._replace(rule=rule.name, assumed=assumed)
    shown = (*scope.targets, "any")
    evidence = tuple(m for m in page.measurements[finding.pair] if not scope.targets or m.target in shown)
    targets = page.targets_of[finding.pair]
    unclaimed = tuple(one for one in page.unclaimed[finding.pair] if not scope.targets or one in shown)
    return finding._replace(rule=rule.name, targets=targets, evidence=evidence, assumed=assumed, unclaimed=unclaimed)


def _rule_names() -> tuple[str, ...]:
    """The rules that speak at all."""
    return speaking(briefs(), ())


def _strange(source: Source) -> tuple[Problem, ...]:
    """What ignore comments name that no rule is called."""
    comments = ignores(source.data, source.path)
    return tuple(unknown_names(comments, _rule_names())) if comments else ()
