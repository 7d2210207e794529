"""Places that may count from the end of an axis, as a negative number does.

In: a place of a Source. Out: whether that is seen; what a function is handed is taken for what it is called.
"""

from __future__ import annotations

import libcst as cst

from fusionlint.patterns.code.at import inside, names_read
from fusionlint.source.tree import Source


def may_be_below_zero(part: cst.BaseExpression, source: Source) -> bool:
    """Whether a place may count from the end: something is subtracted, or stands behind a minus."""
    seen = [part, *(value for name in names_read(part) if (value := source.value(name)) is not None)]
    nodes = [node for each in seen for node in inside(each)]
    return any(isinstance(node, cst.Subtract | cst.Minus) for node in nodes)
