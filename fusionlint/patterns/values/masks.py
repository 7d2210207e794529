"""Whether an array is a mask, by what it is made of: comparisons, and what combines such."""

from __future__ import annotations

import ast
import re

import libcst as cst

from fusionlint.source.tree import Source

_MADE = tuple(
    f"jax.numpy.{name}"
    for name in ("logical_and", "logical_or", "logical_not", "logical_xor", "greater", "greater_equal", "less",
                 "less_equal", "equal", "not_equal", "isnan", "isinf", "isfinite", "isin", "isclose", "all", "any")
)  # fmt: skip
_DEPTH = 3


def is_mask(node: cst.BaseExpression, source: Source, depth: int = _DEPTH, *, as_numbers: bool = False) -> bool:
    """Whether `node` is a mask, or, `as_numbers`, one that was made numbers: `mask.astype(jnp.int32)`."""
    match node:
        case cst.Call(func=cst.Attribute(value=inner, attr=cst.Name("astype"))) if as_numbers:
            return is_mask(inner, source, depth, as_numbers=True)
        case cst.Comparison() | cst.UnaryOperation(operator=cst.BitInvert()):
            return True
        case cst.BinaryOperation(left=left, operator=cst.BitAnd() | cst.BitOr()):
            return is_mask(left, source, depth, as_numbers=as_numbers)
        case cst.Name() if depth and (value := source.value(node)) is not None:
            return is_mask(value, source, depth - 1, as_numbers=as_numbers)
    return source.calls(node, *_MADE)


def is_kept_mask(node: cst.CSTNode, source: Source) -> bool:
    """Whether `node` is a field of `self` that is given comparisons alone, wherever in the file that is: `self.dark =
    self.wave < 2700`."""
    if not isinstance(node, cst.Attribute) or not isinstance(node.value, cst.Name) or node.value.value != "self":
        return False
    given = re.findall(rf"^[ \t]*self\.{node.attr.value}[ \t]*=(?!=)(.*)$", source.pieces.text, re.M)
    return bool(given) and all(map(_compares, given))


def _compares(text: str) -> bool:
    try:
        made = ast.parse(text.strip(), mode="eval").body
    except SyntaxError:
        return False
    while isinstance(made, ast.BinOp) and isinstance(made.op, ast.BitAnd | ast.BitOr):
        made = made.left
    return isinstance(made, ast.Compare)
