"""A tridiagonal system solved as any other: `jnp.linalg.solve(jnp.diag(d) + jnp.diag(u, 1) + jnp.diag(l, -1), b)`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import libcst as cst

from fusionlint.finding import Finding
from fusionlint.patterns.code.at import Part, at_write, constant, inside
from fusionlint.patterns.code.calls import argument, brief
from fusionlint.patterns.operations.quadratic import SOLVES
from fusionlint.patterns.runs.concrete import is_concrete
from fusionlint.patterns.values.matrices import IDENTITIES
from fusionlint.rule import Rule
from fusionlint.source.tree import Source

rule = Rule(__name__, harm="fusion")

_ZEROS = ("jax.numpy.zeros", "jax.numpy.zeros_like")
_JOINS = ("jax.numpy.concatenate", "jax.numpy.hstack", "jax.numpy.append", "jax.numpy.pad")
_LONG = 40
# A matrix seldom goes through more names than this.
_DEPTH = 6
_FAR = 2


@rule.source("Call", calls=SOLVES)
def solved_as_a_whole(node: cst.Call, source: Source) -> Iterator[Finding]:
    """The matrix is seen to be made of its diagonals."""
    matrix, right = argument(node, 0, "a"), argument(node, 1, "b")
    if matrix is None or right is None:
        return
    bands = _Reader(source).of(matrix, _DEPTH)
    if not bands or not min(bands) < 0 < max(bands):
        return  # a triangular one is solved by substitution
    if source.is_idle(node) or is_concrete(node, source):
        return
    b, more = brief(source.code(right), _LONG, "b"), ""
    if any(abs(band) == _FAR for band in bands):
        more = "; a corner outside of the three is taken out first, by its neighbour's equation"
    yield source.finding(
        node,
        f"the matrix has {len(bands)} diagonals, and is factored as if it were full",
        write=f"jax.lax.linalg.tridiagonal_solve(lower, diagonal, upper, {b}), of a vector with {b}[:, None] and "
        f"[:, 0] of what comes of it; the diagonals of one length, a zero in front of `lower` and behind `upper`{more}",
    )


class _Reader(NamedTuple):
    """One question: on which diagonals a matrix is not zero. `assumed` are variables whose writes are being read."""

    source: Source
    assumed: frozenset[str] = frozenset()

    def of(self, node: cst.BaseExpression, depth: int) -> frozenset[int] | None:
        """Their places, 0 for the one in the middle; None where a matrix is not seen to be made of few."""
        if depth == 0:
            return None
        match node:
            case cst.Name():
                return self._of_name(node, depth)
            case cst.UnaryOperation(operator=cst.Minus(), expression=inner):
                return self.of(inner, depth)
            case cst.BinaryOperation(left=left, operator=cst.Add() | cst.Subtract(), right=right):
                return _joined([self.of(left, depth), self.of(right, depth)])
            case cst.BinaryOperation(left=left, operator=cst.Multiply(), right=right):
                return self.of(left, depth) or self.of(right, depth)
            case cst.BinaryOperation(left=left, operator=cst.Divide()):
                return self.of(left, depth)
            case cst.Call():
                return self._of_call(node, depth)
        return None

    def _of_name(self, name: cst.Name, depth: int) -> frozenset[int] | None:
        """Of all that is stored in a variable, or added to it."""
        if name.value in self.assumed:
            return frozenset()
        reader = self._replace(assumed=self.assumed | {name.value})
        stored = [_stored(use.node, self.source) for use in self.source.writes(name)]
        if not stored:
            return None
        return _joined([None if value is None else reader.of(value, depth - 1) for value in stored])

    def _of_call(self, call: cst.Call, depth: int) -> frozenset[int] | None:
        source = self.source
        if (write := at_write(call)) is not None:
            place = _diagonal(write.index, source) if write.method in ("set", "add") else None
            below = self.of(write.array, depth)
            return None if place is None or below is None else below | {place}
        if source.calls(call, *_ZEROS):
            return frozenset()
        if not source.calls(call, "jax.numpy.diag", *IDENTITIES) or not call.args:
            return None
        asked = argument(call, 1 if source.calls(call, "jax.numpy.diag") else 2, "k")
        place = 0 if asked is None else constant(asked)
        if place is None or abs(place) > _FAR or (abs(place) == _FAR and not _is_a_corner(call.args[0].value, source)):
            return None
        return frozenset((place,))


def _joined(several: list[frozenset[int] | None]) -> frozenset[int] | None:
    found: frozenset[int] = frozenset()
    for one in several:
        if one is None:
            return None
        found |= one
    return found


def _stored(name: cst.CSTNode, source: Source) -> cst.BaseExpression | None:
    """What `name = value`, `name += value` and `name -= value` put into a variable."""
    match above := source.parent(name):
        case cst.AssignTarget():
            statement = source.parent(above)
            return statement.value if isinstance(statement, cst.Assign) else None
        case cst.AugAssign(operator=cst.AddAssign() | cst.SubtractAssign(), value=value):
            return value
    return None


def _is_a_corner(vector: cst.BaseExpression, source: Source) -> bool:
    """Whether a diagonal is all zeros but for an end: `jnp.concatenate([first, jnp.zeros(n - 3)])`."""
    made = source.meant(vector)
    return source.calls(made, *_JOINS) and any(source.calls(part, *_ZEROS) for part in inside(made))


def _diagonal(index: tuple[Part, ...], source: Source) -> int | None:
    """k of `.at[i, i + k]`, where one row or all are told by `i`."""
    match index:
        case [cst.BaseExpression() as row, cst.BaseExpression() as column]:
            begins, ends = _shifted(row, source), _shifted(column, source)
            if (begins[1] < 0) != (ends[1] < 0) and not begins[0]:
                return None  # a corner
            if begins[0] == ends[0] and abs(ends[1] - begins[1]) <= 1:
                return ends[1] - begins[1]
    return None


def _shifted(place: cst.BaseExpression, source: Source) -> tuple[str, int]:
    """i and 1, of `i + 1`; of a number nothing and the number."""
    number = constant(place)
    if number is not None:
        return "", number
    match place:
        case cst.BinaryOperation(left=start, operator=cst.Add(), right=cst.Integer() as more):
            return source.code(start), more.evaluated_value
        case cst.BinaryOperation(left=start, operator=cst.Subtract(), right=cst.Integer() as less):
            return source.code(start), -less.evaluated_value
    return source.code(place), 0
