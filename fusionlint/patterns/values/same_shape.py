"""Whether two values are seen to be of one shape: made in one way, of what is of one shape.

In: expressions of a Source. Unknown is another shape.
"""

from __future__ import annotations

import libcst as cst

from fusionlint.patterns.code.at import constant, elements, inside, is_literal, is_new_axis, is_whole
from fusionlint.patterns.code.elementwise import atoms, is_elementwise
from fusionlint.patterns.code.unpacked import unpacked
from fusionlint.patterns.values.one_number import is_a_number
from fusionlint.source.tree import Source

# A name seldom stands for more names than this.
_DEPTH = 6
# What an iteration over hands out is of one shape.
_ROWS = ("jax.numpy.split", "jax.numpy.unstack", "jax.numpy.moveaxis", "jax.numpy.transpose")
_REDUCES = tuple(f"jax.numpy.{name}" for name in ("sum", "mean", "max", "min", "linalg.norm", "prod", "cross"))


def are_of_one_shape(one: cst.BaseExpression, other: cst.BaseExpression, source: Source, depth: int = _DEPTH) -> bool:
    """Whether both are seen to be of one shape."""
    if depth == 0:
        return False
    if source.code(one) == source.code(other) or _are_of_one_row(one, other, source):
        return True
    match one, other:
        case cst.UnaryOperation(operator=cst.Minus(), expression=inner), _:
            return are_of_one_shape(inner, other, source, depth)
        case _, cst.UnaryOperation(operator=cst.Minus(), expression=inner):
            return are_of_one_shape(one, inner, source, depth)
        case cst.Subscript(), cst.Subscript():
            return _are_cut_alike(one, other, source, depth)
    if isinstance(one, cst.Name) or isinstance(other, cst.Name):
        pair = [source.value(each) if isinstance(each, cst.Name) else each for each in (one, other)]
        made = [each or alone for each, alone in zip(pair, (one, other), strict=True)]
        return pair != [None, None] and made != [one, other] and are_of_one_shape(made[0], made[1], source, depth - 1)
    return _are_made_alike(one, other, source, depth)


def has_an_axis(value: cst.BaseExpression, source: Source, depth: int = _DEPTH) -> bool:
    """Whether a value is seen to be an array, and no number: rows are picked out of something, an axis is added to it,
    or it is reduced along one of several."""
    for part in inside(value):
        match part:
            case cst.Subscript(slice=slices):
                if any(is_new_axis(each) or _is_many(each, source) for each in elements(slices)):
                    return True
            case cst.Call(args=given) if any(arg.keyword and arg.keyword.value == "axis" for arg in given):
                return True
            case cst.Name() if depth and (meant := source.value(part)) is not None and meant is not value:
                if has_an_axis(meant, source, depth - 1):
                    return True
    return False


def _is_many(part: cst.CSTNode, source: Source) -> bool:
    """Whether a part of an index is a slice of some, or is picked out of several: `x[i]`, with `i = edges[:, 0]`."""
    if isinstance(part, cst.Slice):
        return not is_whole(part)
    found = source.value(part) if isinstance(part, cst.Name) else part
    if isinstance(part, cst.Name) and found is None:
        found = unpacked(source.written(part), source)
        return isinstance(found, cst.Attribute) and found.attr.value == "T"
    return isinstance(found, cst.Subscript) and any(isinstance(each, cst.Slice) for each in elements(found.slice))


def _are_of_one_row(one: cst.BaseExpression, other: cst.BaseExpression, source: Source) -> bool:
    """Whether both are unpacked from the same array: `i, j = edges.T`."""
    if not isinstance(one, cst.Name) or not isinstance(other, cst.Name):
        return False
    several = unpacked(source.written(one), source)
    if several is None or several is not unpacked(source.written(other), source):
        return False
    match several:
        case cst.Attribute(attr=cst.Name("T")):
            return True
        case cst.Tuple():
            return False
    return source.calls(several, *_ROWS)


def _are_cut_alike(one: cst.Subscript, other: cst.Subscript, source: Source, depth: int) -> bool:
    """`x[:, 0]` and `x[:, 1]`, `x[i]` and `x[j]`, `g0[:, None]` and `g1[:, None]`."""
    parts, others = elements(one.slice), elements(other.slice)
    if len(parts) != len(others) or not are_of_one_shape(one.value, other.value, source, depth - 1):
        return False
    for part, beside in zip(parts, others, strict=True):
        if source.code(part) == source.code(beside) or None not in (constant(part), constant(beside)):
            continue
        if isinstance(part, cst.BaseSlice) or isinstance(beside, cst.BaseSlice):
            return False
        if not are_of_one_shape(part, beside, source, depth - 1):
            return False
    return True


def _are_made_alike(one: cst.BaseExpression, other: cst.BaseExpression, source: Source, depth: int) -> bool:
    """Whether elementwise work makes both of what is of the same shapes, in whatever order; or one function of the same
    arguments but for such."""
    if isinstance(one, cst.Call) and isinstance(other, cst.Call) and not is_elementwise(one, source):
        return _are_called_alike(one, other, source, depth)
    arrays, others = _arrays(one, source), _arrays(other, source)
    if not arrays or not others or arrays == [one] or others == [other]:
        return False
    pairs = ((arrays, others), (others, arrays))
    return all(any(are_of_one_shape(a, b, source, depth - 1) for b in there) for here, there in pairs for a in here)


def _arrays(node: cst.BaseExpression, source: Source) -> list[cst.BaseExpression]:
    """What elementwise work is made of, but for numbers."""
    return [one for one in atoms(node, source) if not is_literal(one) and not is_a_number(one, source)]


def _are_called_alike(one: cst.Call, other: cst.Call, source: Source, depth: int) -> bool:
    if (
        not source.calls(one, *_REDUCES)
        or source.code(one.func) != source.code(other.func)
        or len(one.args) != len(other.args)
    ):
        return False
    return all(
        (arg.keyword is None) == (beside.keyword is None)
        and (
            source.code(arg.value) == source.code(beside.value)
            or (arg.keyword is None and are_of_one_shape(arg.value, beside.value, source, depth - 1))
        )
        for arg, beside in zip(one.args, other.args, strict=True)
    )
