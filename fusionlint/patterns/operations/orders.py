"""What is read of a random order: a place, its start, all that makes whole batches.

In: a call of `jax.random.permutation` in a Source, and what its readers take.
"""

from __future__ import annotations

import libcst as cst

from fusionlint.patterns.code.at import elements
from fusionlint.source.tree import Source

# A name seldom stands for more names than this.
_DEPTH = 3


def parts_read(node: cst.Call, source: Source) -> list[cst.BaseExpression | cst.BaseSlice]:
    """What the subscripts of a permutation take, where it is only subscripted or an index."""
    found: list[cst.BaseExpression | cst.BaseSlice] = []
    for read in source.readers(node):
        match source.parent(read):
            case cst.Subscript(value=value) as subscript if value is read:
                found.extend(elements(subscript.slice)[:1])
            case cst.Index():
                found.append(cst.Ellipsis())
            case _:
                return []
    return found


def prefix(parts: list[cst.BaseExpression | cst.BaseSlice]) -> cst.BaseExpression | None:
    """The k of `[:k]`, where that is all that is read."""
    match parts:
        case [cst.Slice(lower=None, upper=cst.BaseExpression() as count, step=None)]:
            return None if isinstance(count, cst.UnaryOperation) else count
    return None


def is_of_all(count: cst.BaseExpression, source: Source, depth: int = _DEPTH) -> bool:
    """Whether as many are taken as make whole batches, `n // size * size`: next to all that there are."""
    match count:
        case cst.Name():
            value = source.value(count)
            return bool(depth) and value is not None and is_of_all(value, source, depth - 1)
        case cst.BinaryOperation(left=left, operator=cst.Multiply(), right=right):
            return any(_is_quotient(part, source) for part in (left, right))
        case cst.BinaryOperation(operator=cst.Subtract(), right=cst.BinaryOperation(operator=cst.Modulo())):
            return True
    return False


def is_cut_in_batches(node: cst.Call, source: Source) -> bool:
    """Whether what is taken, so many times so many, is cut into batches: `[: count * size].reshape(count, size)`, an
    epoch's order, of which the last that make no batch are left out."""
    for read in source.readers(node):
        match source.parent(read):
            case (
                cst.Subscript(
                    slice=[cst.SubscriptElement(slice=cst.Slice(upper=cst.BaseExpression() as upper))]
                ) as part
            ):
                count = source.meant(upper)
                if isinstance(count, cst.BinaryOperation) and isinstance(count.operator, cst.Multiply):
                    sizes = {source.code(count.left), source.code(count.right)}
                    return any(sizes <= _shape(cut, source) for cut in source.readers(part))
    return False


def _shape(read: cst.CSTNode, source: Source) -> set[str]:
    """What `x.reshape(...)` is told, where that is what is done with `read`."""
    match source.parent(read):
        case cst.Attribute(value=value, attr=cst.Name("reshape")) as method if value is read:
            call = source.parent(method)
            arguments = call.args if isinstance(call, cst.Call) else ()
            return {source.code(part) for arg in arguments for part in sizes_of(arg.value)}
    return set()


def _is_quotient(node: cst.BaseExpression, source: Source) -> bool:
    """`n // size`, or `min(steps, n // size)`, which a caller may make less."""
    meant = source.meant(node)
    if source.calls(meant, "min"):
        is_few = any(isinstance(arg.value, cst.Integer) for arg in meant.args)
        return not is_few and any(_is_quotient(arg.value, source) for arg in meant.args)
    return isinstance(meant, cst.BinaryOperation) and isinstance(meant.operator, cst.FloorDivide)


def goes_through(node: cst.Call, source: Source) -> bool:
    """Whether something is put in random order, and one place of the order is read afterwards."""
    picked = indexed = 0
    for read in source.readers(node):
        match source.parent(read):
            case cst.Index():
                indexed += 1
            case cst.Subscript(value=value, slice=[cst.SubscriptElement(slice=cst.Index())]) if value is read:
                if source.scope(read) != source.scope(node) or source.in_loop(read):
                    return False
                picked += 1
    return picked == 1 and indexed >= 1


def sizes_of(shape: cst.BaseExpression) -> list[cst.BaseExpression]:
    match shape:
        case cst.Tuple(elements=parts) | cst.List(elements=parts):
            return [part.value for part in parts]
    return [shape]
