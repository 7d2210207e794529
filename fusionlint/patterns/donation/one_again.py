"""What makes a state hold one of its parts twice long after it was made: `self.state.target = self.state.params`.

In: an argument that a call could take for its results. jax donates no buffer twice, so that the next step fails.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from fusionlint.patterns.code.calls import REPLACES
from fusionlint.source.tree import Source
from fusionlint.source.walk import dotted


def made_one_again(argument: cst.BaseExpression, call: cst.Call, source: Source) -> str | None:
    """The assignment, as it is written, by which the variable or field `argument` comes to hold a part twice."""
    whole, around = dotted(argument), source.facts.class_around(source.scope(call))
    if not whole:
        return None
    for node in source.nodes_with(whole.rpartition(".")[2], cst.Assign):
        if not isinstance(node, cst.Assign) or source.facts.class_around(source.scope(node)) != around:
            continue
        is_the_same = whole.startswith("self.") or source.function(node) is source.function(call)
        if is_the_same and any(_is_a_part(part, whole) for part in _parts_put_into(node, whole)):
            return source.code(node)
    return None


def _parts_put_into(node: cst.Assign, whole: str) -> Iterator[cst.BaseExpression]:
    """What an assignment puts into `whole`: `whole.target = ...`, `whole = whole.replace(target=...)`."""
    match node:
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Attribute(value=owner))], value=value) if (
            dotted(owner) == whole
        ):
            yield value
        case cst.Assign(
            targets=[cst.AssignTarget(target=target)],
            value=cst.Call(func=cst.Attribute(value=owner, attr=cst.Name(method)), args=args),
        ) if method in REPLACES and dotted(target) == whole == dotted(owner):
            yield from (arg.value for arg in args if arg.keyword)


def _is_a_part(value: cst.BaseExpression, whole: str) -> bool:
    return isinstance(value, cst.Attribute) and dotted(value.value) == whole
