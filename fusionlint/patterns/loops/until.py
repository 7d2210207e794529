"""Until when a `while_loop` goes on: a count is reached, an array settles, a mask is empty, a step is small enough.

In: the condition and the body of a loop of a Source.
"""

from __future__ import annotations

import re

import libcst as cst

from fusionlint.lazily import regex
from fusionlint.patterns.code.at import inside, names_in
from fusionlint.patterns.code.calls import argument
from fusionlint.patterns.code.functions import Function, definitions
from fusionlint.patterns.loops.step_writes import carried, handed_on, result
from fusionlint.patterns.loops.turns import turn_of
from fusionlint.source.tree import Source

_TESTS = ("jax.numpy.any", "jax.numpy.all")
_COMPARISONS = (
    *(f"jax.numpy.{name}" for name in ("less", "less_equal", "greater", "greater_equal", "not_equal")),
    *(f"jax.lax.{name}" for name in ("lt", "le", "gt", "ge", "ne")),
)
_COUNTS = ("jax.numpy.sum", "jax.numpy.count_nonzero")
_SIZES = ("jax.numpy.abs", "jax.numpy.absolute", "jax.numpy.linalg.norm", "jax.numpy.square", "abs", "jax.lax.abs")
_TOLERANCE = regex(r"(^|_)([ar]?tol|[ar]tols|eps|epsilon|tolerance|precision|threshold)(_|$)", re.I)
_SMALL = 1e-3


def tests_of(loop: cst.Call, source: Source) -> list[Function]:
    """The functions of this file that say whether the loop goes on."""
    given = argument(loop, 0, "cond_fun")
    if isinstance(given, cst.Lambda):
        return [given]
    if not isinstance(given, cst.Name):
        return []
    qualified = source.qualified_name(given)
    found = source.project.find(qualified)
    return definitions([found], source) if found is not None else []


def only_counts(loop: cst.Call, test: Function, body: Function, source: Source) -> bool:
    """Whether the loop goes on while its counter has not reached something that the loop does not change."""
    if not test.params.params:
        return False
    carry = test.params.params[0].name.value
    match asked := result(test):
        case cst.Comparison(left=left, comparisons=[cst.ComparisonTarget(comparator=limit)]):
            pass
        case cst.Call(args=[cst.Arg(value=left), cst.Arg(value=limit)]) if source.calls(asked, *_COMPARISONS):
            pass
        case _:
            return False
    if any(node.value == carry for node in names_in(limit)):
        return False
    match left:
        case cst.Subscript(value=cst.Name(value)) | cst.Attribute(value=cst.Name(value)) if value == carry:
            if _steps(body, source.code(left)[len(carry) :], source):
                return True
    turn = turn_of(loop, body, source)
    if turn is None:
        return False
    match left:
        case cst.Subscript(value=cst.Name(value), slice=[cst.SubscriptElement(slice=cst.Index(value=index))]):
            place = turn.carried.index(turn.counter)
            return value == carry and isinstance(index, cst.Integer) and index.evaluated_value == place
        case cst.Name(value):
            if value == (carry if len(turn.carried) == 1 else turn.counter.value):
                return True
            # The test may take the carry apart under names of its own.
            own = [name.value for name in carried(test.params.params[0].name, source)]
            return value in own and own.index(value) == turn.carried.index(turn.counter)
    return False


def _steps(body: Function, part: str, source: Source) -> bool:
    """Whether the body adds one to this part of its carry, `[0]` or `.count`."""
    following = {f"{parameter.name.value}{part} + 1" for parameter in body.params.params}
    return any(isinstance(node, cst.BinaryOperation) and source.code(node) in following for node in inside(body))


def settles(function: Function, source: Source) -> bool:
    """Whether the loop asks if anything in an array still changes: a fill or an iteration to a fixed point."""
    return any(_asks_all(node, source) for node in inside(function.body))


def _asks_all(node: cst.CSTNode, source: Source) -> bool:
    match node:
        case cst.Call(func=cst.Attribute(attr=cst.Name("any" | "all")), args=[]):
            return True
    return source.calls(node, *_TESTS)


def empties(test: Function, body: Function, source: Source) -> bool:
    """Whether the loop goes on while anything is left of a mask of which each turn takes something away,
    `jnp.sum(left) > 0` of `left = jnp.where(found, 0, left)`: what to take, only the last turn's rest says."""
    if not test.params.params:
        return False
    match result(test):
        case cst.Comparison(
            left=cst.Call(args=[cst.Arg(value=mask)]) as counted,
            comparisons=[cst.ComparisonTarget(operator=cst.GreaterThan(), comparator=cst.Integer("0"))],
        ) if source.calls(counted, *_COUNTS):
            here = list(handed_on(body, source))
            number = _number_in_carry(mask, test, source)
            return number is not None and number < len(here) and _takes_from(*here[number], source)
    return False


def spreads(test: Function, body: Function, source: Source) -> bool:
    """Whether the loop goes on while a front is not empty, `jnp.any(front)`, and what was reached is kept in a mask
    that grows, `reached | new`: each turn is of whole arrays, and how many there are only the last front says."""
    asked = result(test)
    match asked:
        case cst.Call(args=[cst.Arg(value=front)]) if source.calls(asked, "jax.numpy.any"):
            pass
        case cst.Call(func=cst.Attribute(value=front, attr=cst.Name("any")), args=[]):
            pass
        case _:
            return False
    if not test.params.params or _number_in_carry(front, test, source) is None:
        return False
    return any(_joins(part.value, source.meant(value), source) for part, value in handed_on(body, source))


def _joins(part: str, value: cst.BaseExpression, source: Source) -> bool:
    """`part | new`, `jnp.logical_or(part, new)`."""
    match value:
        case cst.BinaryOperation(left=left, operator=cst.BitOr(), right=right):
            sides = [left, right]
        case cst.Call(args=[cst.Arg(value=left), cst.Arg(value=right)]) if source.calls(value, "jax.numpy.logical_or"):
            sides = [left, right]
        case _:
            return False
    return any(isinstance(side, cst.Name) and side.value == part for side in sides)


def _number_in_carry(part: cst.BaseExpression, test: Function, source: Source) -> int | None:
    """Which part of the carry is asked about: 1 of `state[1]`, or of `left` behind `rank, left = state`."""
    carry = test.params.params[-1].name
    match part:
        case cst.Subscript(value=cst.Name(value), slice=[cst.SubscriptElement(cst.Index(cst.Integer() as number))]):
            return number.evaluated_value if value == carry.value else None
    asked = [name.value for name in carried(carry, source)]
    return asked.index(part.value) if isinstance(part, cst.Name) and part.value in asked else None


def _takes_from(mask: cst.Name, value: cst.BaseExpression, source: Source) -> bool:
    """`jnp.where(found, 0, mask)`."""
    made = source.meant(value)
    match made:
        case cst.Call(args=[_, _, cst.Arg(value=cst.Name(kept))]) if source.calls(made, "jax.numpy.where"):
            return kept == mask.value
    return False


def converges(function: Function, source: Source) -> bool:
    """Whether the loop goes on until a step is small enough, `jnp.abs(term) < tol * jnp.abs(total)`, `old - new > tol`:
    a series or an iterative solver, of which nobody knows how many turns it takes."""
    return any(isinstance(node, cst.Comparison) and _is_of_sizes(node, source) for node in inside(function.body))


def _is_of_sizes(comparison: cst.Comparison, source: Source) -> bool:
    sides = [comparison.left, *(target.comparator for target in comparison.comparisons)]
    sized = [_is_difference(side) or any(source.calls(part, *_SIZES) for part in inside(side)) for side in sides]
    tolerated = [any(map(_is_tolerance, inside(side))) for side in sides]
    return len(sides) == 2 and ((sized[0] and tolerated[1]) or (sized[1] and tolerated[0]))


def _is_difference(side: cst.BaseExpression) -> bool:
    return isinstance(side, cst.BinaryOperation) and isinstance(side.operator, cst.Subtract)


def _is_tolerance(node: cst.CSTNode) -> bool:
    match node:
        case cst.Name(value=name):
            return bool(_TOLERANCE.search(name))
        case cst.Float():
            return 0.0 < node.evaluated_value <= _SMALL
    return False
