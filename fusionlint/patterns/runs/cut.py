"""What of an array is as long as values say, `x[x > 0]`, `x[:i]`: no trace knows how long that is.

In: nodes of a Source, and the function that they may be an end of: where it always gets there, or does so where
`beside` stands.
"""

from __future__ import annotations

import libcst as cst

from fusionlint.patterns.runs.gated import is_gated
from fusionlint.patterns.values.kinds import kind
from fusionlint.source.tree import Source


def is_cut_by_a_mask(part: cst.CSTNode, function: cst.FunctionDef, source: Source, beside: cst.CSTNode) -> bool:
    """`x[x > 0]` or `x[:, hits]`, which is as long as there are hits; not a write there."""
    match part:
        case cst.Subscript(value=value, slice=parts) if source.function(part) is function:
            if isinstance(value, cst.Attribute) and value.attr.value == "at":
                return False
            indices = (one.slice.value for one in parts if isinstance(one.slice, cst.Index))
            return any(_is_mask(index, source) for index in indices) and not is_gated(part, function, source, beside)
    return False


def _is_mask(index: cst.BaseExpression, source: Source) -> bool:
    """`x > 0`, of an array of jax, or what combines such: whatever it is taken from, numpy's too."""
    match source.meant(index):
        case cst.Comparison() as compared:
            return kind(compared, source) == "array"
        case cst.BinaryOperation(left=left, operator=cst.BitAnd() | cst.BitOr(), right=right):
            return _is_mask(left, source) or _is_mask(right, source)
        case cst.UnaryOperation(operator=cst.BitInvert(), expression=inner):
            return _is_mask(inner, source)
    return False


def is_cut_at_an_array(part: cst.CSTNode, function: cst.FunctionDef, source: Source, beside: cst.CSTNode) -> bool:
    """`x[:i]`, where what is in an array says how long it is."""
    match part:
        case cst.Slice(lower=lower, upper=upper) if source.function(part) is function:
            bounds = [bound for bound in (lower, upper) if bound is not None]
            return any(kind(b, source) == "array" for b in bounds) and not is_gated(part, function, source, beside)
    return False
