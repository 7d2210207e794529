"""The update of an optimizer: a def that a factory returns beside the one that makes its state, `(init, update)` or
`GradientTransformation(init_fn, update_fn)`. A training step runs it under a trace, once, and not for many at once.

In: nodes of a Source.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from fusionlint.lazily import regex
from fusionlint.source.facts import Value
from fusionlint.source.tree import Source

_INIT, _UPDATE = regex(r"_?init(_|$)"), regex(r"_?update(_|$)")


def in_an_update(node: cst.CSTNode, source: Source) -> bool:
    """Whether the code at `node` is part of an optimizer's update."""
    function = source.function(node)
    scope = source.body_scope(function) if function is not None else ""
    while scope:
        outer, _, name = scope.rpartition(".")
        if _UPDATE.match(name) and any(_is_pair(names, name) for names in _returned(outer, source)):
            return True
        scope = outer
    return False


def _is_pair(names: tuple[str, ...], update: str) -> bool:
    return update in names and any(map(_INIT.match, names))


def _returned(scope: str, source: Source) -> Iterator[tuple[str, ...]]:
    """The names that a function returns together, each time that it returns."""
    factory = source.facts.functions.get(scope)
    for value in factory.returns if factory is not None else ():
        yield tuple(part.name for part in _parts(value))


def _parts(value: Value) -> Iterator[Value]:
    yield from value.arguments
    yield from (part for _, part in value.keywords)
