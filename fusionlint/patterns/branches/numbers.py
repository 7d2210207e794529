"""Whether a conditional chooses between single numbers or a few, which costs a TPU the same either way.

In: a Conditional. A scalar is known by how it is written, by what made it, or because the test, which is one itself,
computes with it.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from fusionlint.patterns.branches.conditional import Conditional
from fusionlint.patterns.code.calls import keyword
from fusionlint.patterns.code.elementwise import is_elementwise
from fusionlint.patterns.values.one_number import is_a_number, is_scalar_literal
from fusionlint.source.tree import Source
from fusionlint.source.walk import dotted

_TO_SCALAR = frozenset(("jax.numpy.vdot", "jax.numpy.linalg.norm", "optax.tree.vdot", "optax.tree.norm"))
_CONSTANTS = frozenset(("jax.numpy.nan", "jax.numpy.inf", "jax.numpy.pi"))
_DEPTH = 4


def chooses_numbers(found: Conditional, source: Source) -> bool:
    """Whether a branch is seen to return a number, several of them, or a small array that is written out."""
    operands = [operand for branch in found.branches for operand in branch.operands]
    if operands and all(_is_said_to_be_one(operand.value, source) for operand in operands):
        return True
    scalars = {source.code(part) for part in _computed_with(found.test, source)}
    return any(_are_numbers(branch.result, scalars, source) for branch in found.branches)


def _are_numbers(node: cst.BaseExpression, scalars: set[str], source: Source) -> bool:
    match node:
        case cst.BinaryOperation(left=cst.Tuple() as written, operator=cst.Multiply(), right=cst.Integer()):
            node = written  # (0.0,) * 5
    if isinstance(node, cst.Tuple):
        return bool(node.elements) and all(_are_numbers(e.value, scalars, source) for e in node.elements)
    return _is_number(node, scalars, source, _DEPTH) or _is_written_out(node, source)


def _is_written_out(node: cst.BaseExpression, source: Source) -> bool:
    """`jnp.array([[a, b], [c, d]])`, or that times a number."""
    match node:
        case cst.BinaryOperation(left=left, right=right):
            return _is_written_out(left, source) or _is_written_out(right, source)
        case cst.Call(args=[cst.Arg(value=cst.List()), *_]):
            return source.calls(node, "jax.numpy.array", "jax.numpy.asarray")
    return False


def _is_number(node: cst.BaseExpression, scalars: set[str], source: Source, depth: int) -> bool:
    if depth == 0:
        return False
    if is_scalar_literal(node, source) or source.code(node) in scalars:
        return True
    if source.qualified_name(node) in _CONSTANTS or _is_said_to_be_one(node, source) or is_a_number(node, source):
        return True
    match node:
        case cst.Name():
            value = source.value(node)
            return value is not None and _is_number(value, scalars, source, depth - 1)
        case cst.BinaryOperation(left=left, right=right):
            return all(_is_number(part, scalars, source, depth - 1) for part in (left, right))
        case cst.UnaryOperation(expression=inner):
            return _is_number(inner, scalars, source, depth - 1)
        case cst.Call(args=args):
            if source.qualified_name(node.func) in _TO_SCALAR:
                return keyword(node, "axis") is None
            if is_elementwise(node, source) and args:
                return all(_is_number(arg.value, scalars, source, depth - 1) for arg in args)
    return False


def _is_said_to_be_one(node: cst.BaseExpression, source: Source) -> bool:
    """Whether this is an argument that is annotated as a number: `high: float`."""
    match source.binder(node) if isinstance(node, cst.Name) else None:
        case cst.Param(annotation=cst.Annotation(annotation=cst.Name(said))):
            return said in ("float", "int", "bool")
    return False


def _computed_with(test: cst.BaseExpression, source: Source) -> Iterator[cst.BaseExpression]:
    """What a test is computed from element by element: a scalar as well, as the test is one."""
    match test:
        case cst.Comparison(left=left, comparisons=targets):
            # A membership or an identity is asked of other things than numbers.
            if not any(isinstance(t.operator, cst.In | cst.NotIn | cst.Is | cst.IsNot) for t in targets):
                for part in (left, *(target.comparator for target in targets)):
                    yield from _computed_with(part, source)
        case cst.BinaryOperation(left=left, right=right) | cst.BooleanOperation(left=left, right=right):
            yield from _computed_with(left, source)
            yield from _computed_with(right, source)
        case cst.UnaryOperation(expression=inner):
            yield from _computed_with(inner, source)
        case cst.Call(args=args) if is_elementwise(test, source):
            for arg in args:
                yield from _computed_with(arg.value, source)
        case cst.Name() | cst.Attribute() if dotted(test):
            yield test
