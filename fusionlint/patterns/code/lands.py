"""Where a value goes: the places that read it, by whichever names it has, turned round or not."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from fusionlint.patterns.code.at import constant, elements, number_in
from fusionlint.patterns.code.calls import call_of
from fusionlint.source.tree import Source

# What hands an array on with the same elements, in another order or type at most.
_SAME = frozenset(("flip", "squeeze", "asarray", "atleast_1d"))
_METHODS = frozenset(("astype", "squeeze"))


def lands(value: cst.CSTNode, source: Source, depth: int = 6) -> Iterator[cst.CSTNode]:
    """The outermost expressions that stand for `value` where it is used: `x[::-1]` and, after `y = x`, every `y`."""
    outer = _same(value, source)
    name = _stored(outer, source) if depth else None
    if name is None:
        yield outer
        return
    for read in source.reads(name):
        yield from lands(read, source, depth - 1)


def argument_of(value: cst.CSTNode, source: Source) -> tuple[cst.Call, int] | None:
    """The call that `value` is an argument of, and its position; None where it is a keyword's or none."""
    arg, call = source.parent(value), source.handed_to(value)
    if not isinstance(arg, cst.Arg) or call is None or arg.keyword is not None or arg.star:
        return None
    return call, number_in(call.args, arg)


def _stored(value: cst.CSTNode, source: Source) -> cst.Name | None:
    """The name that `value` gets; of `values, order = lax.top_k(...)` the first."""
    if (name := source.assigned_name(value)) is not None:
        return name
    match source.parent(value):
        case cst.Assign(
            targets=[cst.AssignTarget(target=cst.Tuple(elements=[cst.Element(value=cst.Name() as first), _]))]
        ) if source.calls(value, "jax.lax.top_k"):
            return first
    return None


def _same(value: cst.CSTNode, source: Source) -> cst.CSTNode:
    while (above := source.parent(value)) is not None:
        match above:
            case cst.Subscript(value=inner) if inner is value and _keeps_all(above):
                value = above
            case cst.UnaryOperation(operator=cst.Minus()):
                value = above
            case cst.Arg() if (found := argument_of(value, source)) and found[1] == 0 and _hands_on(found[0], source):
                value = found[0]
            case cst.Attribute(attr=cst.Name(method)) if method in _METHODS:
                call = call_of(above, source)
                if call is None:
                    return value
                value = call
            case _:
                return value
    return value


def _hands_on(call: cst.Call, source: Source) -> bool:
    module, _, name = (source.qualified_name(call.func) or "").rpartition(".")
    return module == "jax.numpy" and name in _SAME


def _keeps_all(subscript: cst.Subscript) -> bool:
    """`[::-1]`, `[:, ::-1]`, `[..., ::-1]`."""
    for part in elements(subscript.slice):
        match part:
            case cst.Ellipsis():
                continue
            case cst.Slice(lower=None, upper=None, step=step):
                if step is not None and constant(step) != -1:
                    return False
            case _:
                return False
    return True
