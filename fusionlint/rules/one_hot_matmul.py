"""`jax.nn.one_hot(i, n) @ w`: a product with zeros that reads all of a table, for rows that a gather reads alone."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from fusionlint.finding import Finding
from fusionlint.patterns.calls import argument, has_only
from fusionlint.rule import Rule
from fusionlint.source.tree import Source

rule = Rule(__name__, harm="fusion")

_ONE_HOT = ("jax.nn.one_hot", "flax.linen.one_hot", "flax.nnx.one_hot")
_PRODUCTS = ("jax.numpy.matmul", "jax.numpy.dot")
_EINSUM = "jax.numpy.einsum"


@rule.source(cst.BinaryOperation, calls=_ONE_HOT)
def picked_by_operator(node: cst.BinaryOperation, source: Source) -> Iterator[Finding]:
    """`one_hot(i, n) @ w`."""
    if isinstance(node.operator, cst.MatrixMultiply):
        yield from _picked(node, node.left, node.right, source)


@rule.source(cst.Call, calls=_ONE_HOT)
def picked_by_call(node: cst.Call, source: Source) -> Iterator[Finding]:
    """`jnp.matmul(one_hot(i, n), w)`, `jnp.dot` and the einsums that do so."""
    if source.calls(node, *_PRODUCTS):
        left, right = argument(node, 0, "a"), argument(node, 1, "b")
        if left is not None and right is not None:
            yield from _picked(node, left, right, source)
    elif source.calls(node, _EINSUM) and has_only(node, 3, "precision", "preferred_element_type", "optimize"):
        yield from _picked_by_einsum(node, source)


def _picked(
    node: cst.CSTNode, left: cst.BaseExpression, table: cst.BaseExpression, source: Source
) -> Iterator[Finding]:
    index = _index(left, source)
    if index is None or not source.is_traced(node):
        return
    yield source.finding(node, _MESSAGE, write=f"{_operand(table, source)}[{source.code(index)}]")


_MESSAGE = "a product with a one-hot reads the whole table, and multiplies it with zeros, to pick from it"


def _picked_by_einsum(node: cst.Call, source: Source) -> Iterator[Finding]:
    letters = _letters(argument(node, 0, "subscripts"))
    operands = [arg.value for arg in node.args[1:] if arg.keyword is None]
    if letters is None or len(operands) != 2 or not source.is_traced(node):
        return
    (first, second), result = letters
    for one_hot, picks, table, axes in (
        (operands[0], first, operands[1], second),
        (operands[1], second, operands[0], first),
    ):
        index = _index(one_hot, source)
        if index is None or not _picks(picks, axes, result):
            continue
        if set(picks) & set(axes) == {picks[-1]} and axes[0] == picks[-1] and result == picks[:-1] + axes[1:]:
            write = f"{_operand(table, source)}[{source.code(index)}]"
        else:
            numpy = source.alias("jax.numpy") or "jnp"
            where = f"axis={axes.index(picks[-1])}" if "." not in axes[: axes.index(picks[-1])] else "axis=..."
            write = f"{numpy}.take_along_axis({source.code(table)}, i, {where}), i as `{source.code(index)}` broadcast"
        yield source.finding(node, _MESSAGE, write=write)
        return


def _picks(one_hot: str, table: str, result: str) -> bool:
    """Whether the einsum sums over the classes of `one_hot` alone, and more than one number is picked at a time: where
    the table has no axis of its own, the sum fuses as it is."""
    classes = one_hot[-1:]
    distinct = len(set(one_hot)) == len(one_hot) and len(set(table)) == len(table)
    own = set(table) - set(one_hot)
    kept = set(one_hot[:-1]) | own
    return distinct and classes in table and classes != "." and bool(own) and set(result) == kept


def _letters(spec: cst.BaseExpression | None) -> tuple[tuple[str, str], str] | None:
    """The axes of two operands and of the result, one character each, "." for an ellipsis."""
    if not isinstance(spec, cst.SimpleString) or not isinstance(spec.evaluated_value, str):
        return None
    before, arrow, result = spec.evaluated_value.replace(" ", "").replace("...", ".").partition("->")
    operands = before.split(",")
    return ((operands[0], operands[1]), result) if arrow and len(operands) == 2 else None


def _index(node: cst.BaseExpression, source: Source) -> cst.BaseExpression | None:
    """i of `one_hot(i, n)`, or of a name for it; None for anything else, or with its classes on another axis."""
    if isinstance(node, cst.Name):
        node = source.value(node) or node
    if not isinstance(node, cst.Call) or not source.calls(node, *_ONE_HOT):
        return None
    return argument(node, 0, "x") if has_only(node, 2, "x", "num_classes", "dtype") else None


def _operand(node: cst.BaseExpression, source: Source) -> str:
    """`node` as it can stand before brackets."""
    text = source.code(node)
    return text if isinstance(node, cst.Name | cst.Attribute | cst.Subscript | cst.Call) else f"({text})"
