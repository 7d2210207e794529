"""Ways to do one thing that a caller chooses between by a word: `if method == "sort"`, `elif method == "top_k"`.

In: a node of a Source. Who offers the better way too knows what each costs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TypeGuard

import libcst as cst

from fusionlint.patterns.code.at import inside
from fusionlint.patterns.runs.switches import ifs_around
from fusionlint.source.tree import Source


def is_one_of_several(node: cst.CSTNode, source: Source, *better: str) -> bool:
    """Whether a word decides that `node` runs, and another word would have one of the calls `better` run instead."""
    return any(_calls_one(branch, source, better) for test, branch in otherwise(node, source) if _asks_for_a_word(test))


def is_beside(node: cst.CSTNode, source: Source, *better: str) -> bool:
    """Whether an `if` decides that `node` runs, and otherwise one of the calls `better` would: somebody may choose."""
    return any(_calls_one(branch, source, better) for _, branch in otherwise(node, source))


def is_instead_of(node: cst.CSTNode, source: Source, *loops: str) -> bool:
    """Whether a name or a field decides between what `node`, one of the calls `loops`, gives a name, and what that name
    is given without any: `if forloop: v = fori_loop(...)`, `else: v = (g * jnp.cos(k)).sum()`. Who wrote both knows
    what each costs."""
    names = {name.value for name in _stored_around(node, source)}
    return any(
        isinstance(test, cst.Name | cst.Attribute)
        and not _calls_one(branch, source, loops)
        and any(part.value in names for part in inside(branch) if _is_stored(part, source))
        for test, branch in otherwise(node, source)
    )


def _stored_around(node: cst.CSTNode, source: Source) -> Iterator[cst.Name]:
    """The names that the statement around `node` gives a value."""
    statement = source.nearest(node, cst.Assign)
    if statement is not None and source.function(statement) is source.function(node):
        targets = (part for target in statement.targets for part in inside(target.target))
        yield from (part for part in targets if isinstance(part, cst.Name))


def _is_stored(part: cst.CSTNode, source: Source) -> TypeGuard[cst.Name]:
    return isinstance(part, cst.Name) and isinstance(source.parent(part), cst.AssignTarget)


def _calls_one(branch: cst.CSTNode, source: Source, names: tuple[str, ...]) -> bool:
    return any(source.calls(part, *names) for part in inside(branch))


def otherwise(node: cst.CSTNode, source: Source) -> Iterator[tuple[cst.BaseExpression, cst.CSTNode]]:
    """What each `if` around `node` in its function asks, and what runs otherwise."""
    for above, below in ifs_around(node, source):
        yield from ((above.test, branch) for branch in _branches(above) if branch is not below)


def _asks_for_a_word(test: cst.BaseExpression) -> bool:
    match test:
        case cst.Comparison(comparisons=[cst.ComparisonTarget(operator=cst.Equal(), comparator=cst.SimpleString())]):
            return True
    return False


def _branches(node: cst.If) -> Iterator[cst.CSTNode]:
    yield node.body
    if node.orelse is not None:
        yield node.orelse


def is_way_asked_for(node: cst.CSTNode, way: re.Pattern[str], source: Source) -> bool:
    """Whether a setting that is called as this `way` of doing it decides that `node` runs: `if style == "matmul"`."""
    ifs = ifs_around(node, source)
    return any(below is above.body and any(map(way.search, _said(above.test))) for above, below in ifs)


def comments_above(line: int, count: int, source: Source) -> Iterator[str]:
    """What the comments in the `count` lines above a line of the file say: why one way was taken, and no other."""
    return (source.line(number).partition("#")[2] for number in range(max(1, line - count), line))


def said_above(node: cst.CSTNode, count: int, source: Source) -> str:
    """The same of the lines above a node, as one text."""
    return " ".join(comments_above(source.location(node).line, count, source))


def _said(test: cst.BaseExpression) -> Iterator[str]:
    """The words and names of a test that says yes to them."""
    parts = list(inside(test))
    if any(isinstance(part, cst.Not | cst.NotEqual | cst.NotIn) for part in parts):
        return
    for part in parts:
        match part:
            case cst.SimpleString(value=said) | cst.Name(value=said):
                yield said
