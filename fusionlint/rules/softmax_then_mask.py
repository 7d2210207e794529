"""A softmax that is masked and normalised again, `p = softmax(x) * mask; p / p.sum(...)`: mask the logits."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from fusionlint.finding import Finding
from fusionlint.patterns.calls import argument
from fusionlint.patterns.softmax import SOFTMAX
from fusionlint.rule import Rule
from fusionlint.source.tree import Source

rule = Rule(__name__, harm="fusion")

_WHERE = "jax.numpy.where"
_SUM = "jax.numpy.sum"


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
    summed = _summed(divisor, source)
    if summed is None or summed.value != name.value or (written := source.written(summed)) is None:
        return
    masked = source.value(summed)
    softmax = _masked(masked, source) if masked is not None else None
    if softmax is None or not source.is_traced(node):
        return
    # Read elsewhere too, the masked numbers are needed before they are normalised again.
    if set(source.reads(written)) - {name, summed}:
        return
    numpy = source.alias("jax.numpy") or "jnp"
    logits = argument(softmax, 0, "x")
    x = source.code(logits) if logits is not None else "x"
    write = f"{source.code(softmax.func)}({numpy}.where(mask, {x}, -{numpy}.inf))"
    yield source.finding(node, "a softmax is masked and then normalised again", write=write)


def _summed(node: cst.BaseExpression, source: Source) -> cst.Name | None:
    """p of `p.sum(-1, keepdims=True)` or `jnp.sum(p, ...)`, with or without a small number beside it."""
    match node:
        case cst.BinaryOperation(left=left, operator=cst.Add(), right=cst.Float() | cst.Name()):
            return _summed(left, source)
        case cst.Call() if source.calls(node, _SUM):
            array = argument(node, 0, "a")
            return array if isinstance(array, cst.Name) else None
        case cst.Call(func=cst.Attribute(value=cst.Name() as name, attr=cst.Name("sum"))):
            return name
    return None


def _masked(node: cst.BaseExpression, source: Source) -> cst.Call | None:
    """The softmax of `softmax(x) * mask` or `where(mask, softmax(x), 0)`, if nothing else reads it."""
    match node:
        case cst.BinaryOperation(left=left, operator=cst.Multiply(), right=right):
            return _softmax(left, source) or _softmax(right, source)
        case cst.Call(args=[_, cst.Arg(value=kept), cst.Arg(value=cst.Integer("0") | cst.Float("0.0" | "0." | ".0"))]):
            return _softmax(kept, source) if source.calls(node, _WHERE) else None
    return None


def _softmax(node: cst.BaseExpression, source: Source) -> cst.Call | None:
    if isinstance(node, cst.Name):
        written = source.written(node)
        if written is None or any(read is not node for read in source.reads(written)):
            return None
        node = source.value(node) or node
    return node if isinstance(node, cst.Call) and source.calls(node, *SOFTMAX) else None
