"""What is known of the rules without their modules and pages: where each speaks, and which calls it is about.

To load all modules and read all pages takes longer than to check most files, so a cache keeps what they say.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from functools import cache
from typing import NamedTuple

from fusionlint.rule import Rule, all_rules, are_ours, definition, is_defined, one_of_ours, outside, pages
from fusionlint.source.cache import Cache


class Brief(NamedTuple):
    """Of one rule the targets on which its page shows harm, whether that is all of arithmetic, and the calls that its
    checks of the source are about; None where one of them is about anything else, or where that is not known."""

    targets: tuple[str, ...]
    is_of_arithmetic: bool
    calls: tuple[str, ...] | None


# What a cache has kept, once it is asked.
_KEPT: dict[str, Brief] = {}


def briefs() -> Mapping[str, Brief]:
    """The brief of every rule, by name."""
    return _KEPT or _by_pages()


def rules_about(names: Collection[str]) -> Iterator[Rule]:
    """The rules, by name, with a check that is about a call of one of `names`, or about anything else."""
    if not _KEPT:
        yield from all_rules()
        return
    always, by_call = _index()
    wanted = always.union(*(by_call[name] for name in names if name in by_call))
    yield from map(one_of_ours, sorted(wanted))


def recall(cache: Cache | None) -> None:
    """Go by what a cache has kept of these very rules. Those from elsewhere have to be loaded to be known."""
    if cache is not None and not _KEPT and are_ours():
        if (known := cache.definition(outside())) is not None:
            is_defined(outside(), known)
        kept = cache.briefs(definition()) or {}
        _KEPT.update({name: Brief(*values) for name, values in kept.items()})


def keep(cache: Cache) -> None:
    """Leave in a cache what is known of the rules, if it has not been asked for it with success."""
    if not _KEPT and are_ours():
        found = {rule.name: Brief(rule.page.targets, rule.page.is_of_arithmetic, _calls(rule)) for rule in all_rules()}
        cache.keep_briefs(definition(), {name: tuple(brief) for name, brief in found.items()})
    if are_ours() and cache.definition(outside()) is None:
        cache.keep_definition(outside(), definition())


@cache
def _by_pages() -> dict[str, Brief]:
    return {name: Brief(page.targets, page.is_of_arithmetic, None) for name, page in pages().items()}


def _calls(rule: Rule) -> tuple[str, ...] | None:
    sensors = rule.source_sensors
    return tuple(sorted({name for one in sensors for name in one.names})) if all(s.names for s in sensors) else None


@cache
def _index() -> tuple[frozenset[str], Mapping[str, set[str]]]:
    """The rules that are about more than calls, and by call those that are about it."""
    by_call: dict[str, set[str]] = defaultdict(set)
    for name, brief in _KEPT.items():
        for call in brief.calls or ():
            by_call[call].add(name)
    return frozenset(name for name, brief in _KEPT.items() if brief.calls is None), by_call
