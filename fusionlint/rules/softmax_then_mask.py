"""A softmax that is masked and normalised again, `p = softmax(x) * mask; p / p.sum(...)`: mask the logits."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

import libcst as cst

from fusionlint.finding import Finding
from fusionlint.lazily import regex
from fusionlint.patterns.code.at import constant
from fusionlint.patterns.code.calls import argument, as_argument, brief, has_only
from fusionlint.patterns.operations.picked import is_same_axis
from fusionlint.patterns.operations.softmax import SOFTMAX
from fusionlint.rule import Rule
from fusionlint.source.tree import Source
from fusionlint.source.walk import dotted

rule = Rule(__name__, harm="fusion")

_WHERE = "jax.numpy.where"
_SUM = "jax.numpy.sum"
# What is called so says of each whether it is kept: a prior, or weights, do more to a softmax than a mask does.
_MASK = regex(
    r"mask|valid|legal|avail|allow|alive|active|dead|done|keep|kept|pad|possible|feasible|present|exist|enabled"
    r"|(^|_)(is|has|can)(_|$)",
    re.I,
)
_LOGICAL = tuple(f"jax.numpy.{name}" for name in ("logical_and", "logical_or", "logical_not", "logical_xor", "isin"))
_LONG = 40
# A mask is seldom made in more steps than this.
_DEPTH = 5


class _Masked(NamedTuple):
    """A softmax, and what is kept of it."""

    softmax: cst.Call
    mask: cst.BaseExpression


@rule.source("BinaryOperation", calls=SOFTMAX)
def normalised_again(node: cst.BinaryOperation, source: Source) -> Iterator[Finding]:
    """`p / p.sum(...)`."""
    if isinstance(node.operator, cst.Divide) and isinstance(node.left, cst.Name):
        yield from _found(node, node.left, node.right, source)


@rule.source("AugAssign", calls=SOFTMAX)
def normalised_in_place(node: cst.AugAssign, source: Source) -> Iterator[Finding]:
    """`p /= p.sum(...)`."""
    if isinstance(node.operator, cst.DivideAssign) and isinstance(node.target, cst.Name):
        yield from _found(node, node.target, node.value, source)


def _found(node: cst.CSTNode, name: cst.Name, divisor: cst.BaseExpression, source: Source) -> Iterator[Finding]:
    total = _sum(divisor, source)
    summed = _summed(total, source) if total is not None else None
    if total is None or summed is None or summed.value != name.value or (written := source.written(summed)) is None:
        return
    made = source.value(summed)
    masked = _masked(made, source) if made is not None else None
    if masked is None or not _are_along_one_axis(masked.softmax, total, source):
        return
    # Read elsewhere too, the masked numbers are needed before they are normalised again.
    if set(source.reads(written)) - {name, summed}:
        return
    numpy = source.jnp
    logits, axis = argument(masked.softmax, 0, "x"), argument(masked.softmax, 1, "axis")
    x = brief(as_argument(logits, source), _LONG, "x") if logits is not None else "x"
    mask = brief(as_argument(masked.mask, source), _LONG, "mask")
    along = f", axis={source.code(axis)}" if axis is not None else ""
    write = f"{source.code(masked.softmax.func)}({numpy}.where({mask}, {x}, -{numpy}.inf){along})"
    yield source.finding(node, "a softmax is masked and then normalised again", write=write)


def _sum(node: cst.BaseExpression, source: Source) -> cst.Call | None:
    """`p.sum(-1, keepdims=True)` or `jnp.sum(p, ...)`, with or without a small number beside it."""
    match node:
        case cst.BinaryOperation(left=left, operator=cst.Add(), right=cst.Float() | cst.Name()):
            return _sum(left, source)
    return node if isinstance(node, cst.Call) else None


def _summed(total: cst.Call, source: Source) -> cst.Name | None:
    """p of a sum."""
    match total:
        case cst.Call() if source.calls(total, _SUM):
            array = argument(total, 0, "a")
            return array if isinstance(array, cst.Name) else None
        case cst.Call(func=cst.Attribute(value=cst.Name() as name, attr=cst.Name("sum"))):
            return name
    return None


def _are_along_one_axis(softmax: cst.Call, total: cst.Call, source: Source) -> bool:
    """Whether the sum goes along the axis of the softmax, or says none, as for what has one axis."""
    if not has_only(softmax, 2, "x", "axis"):
        return False
    one, other = argument(softmax, 1, "axis"), argument(total, 1 if source.calls(total, _SUM) else 0, "axis")
    if one is not None and other is not None and one.deep_equals(other):
        return True
    along = constant(one) if one is not None else -1
    return other is None or is_same_axis(along, constant(other) or 0)


def _masked(node: cst.BaseExpression, source: Source) -> _Masked | None:
    """The softmax of `softmax(x) * mask` or `where(mask, softmax(x), 0)`, if nothing else reads it."""
    match node:
        case cst.BinaryOperation(left=left, operator=cst.Multiply(), right=right):
            for one, other in ((left, right), (right, left)):
                if (softmax := _softmax(one, source)) is not None and _is_a_mask(other, source):
                    return _Masked(softmax, other)
        case cst.Call(
            args=[
                cst.Arg(value=mask),
                cst.Arg(value=kept),
                cst.Arg(value=cst.Integer("0") | cst.Float("0.0" | "0." | ".0")),
            ]
        ) if source.calls(node, _WHERE):
            softmax = _softmax(kept, source)
            return _Masked(softmax, mask) if softmax is not None else None
    return None


def _is_a_mask(factor: cst.BaseExpression, source: Source, depth: int = _DEPTH) -> bool:
    """Whether this is made as a truth value is, `x > 0`, `1 - dead`, or called as one."""
    match factor:
        case _ if depth == 0:
            return False
        case cst.Comparison() | cst.UnaryOperation(operator=cst.BitInvert()):
            return True
        case cst.Name() | cst.Attribute():
            meant = source.meant(factor)
            is_named = _MASK.search(dotted(factor).rpartition(".")[2]) is not None
            return is_named or (meant is not factor and _is_a_mask(meant, source, depth - 1))
        case cst.BinaryOperation(left=cst.Integer() | cst.Float(), operator=cst.Subtract(), right=right):
            return _is_a_mask(right, source, depth - 1)
        case cst.BinaryOperation(left=left, operator=cst.BitAnd() | cst.BitOr() | cst.Multiply(), right=right):
            return all(_is_a_mask(side, source, depth - 1) for side in (left, right))
        case cst.Call(func=cst.Attribute(value=owner, attr=cst.Name("astype"))) | cst.Subscript(value=owner):
            return _is_a_mask(owner, source, depth - 1)
        case cst.Call():
            return source.calls(factor, *_LOGICAL)
    return False


def _softmax(node: cst.BaseExpression, source: Source) -> cst.Call | None:
    if isinstance(node, cst.Name):
        written = source.written(node)
        if written is None or any(read is not node for read in source.reads(written)):
            return None
        node = source.value(node) or node
    return node if source.calls(node, *SOFTMAX) else None
