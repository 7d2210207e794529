"""Whether an array is a mask, by what it is made of: comparisons, and what combines such."""

from __future__ import annotations

import libcst as cst

from fusionlint.source.tree import Source

_MADE = tuple(
    f"jax.numpy.{name}"
    for name in ("logical_and", "logical_or", "logical_not", "logical_xor", "greater", "greater_equal", "less",
                 "less_equal", "equal", "not_equal", "isnan", "isinf", "isfinite", "isin", "isclose")
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
