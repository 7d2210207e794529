"""What Python counts by, and so has to know: a variable that numbers alone are put in, the counter of a loop.

In: a name of a Source. Out: whether it is one.
"""

from __future__ import annotations

import libcst as cst

from fusionlint.patterns.code.at import is_literal
from fusionlint.patterns.code.unpacked import put
from fusionlint.source.tree import Source


def is_counted_on(name: cst.Name, source: Source) -> bool:
    """`count = 0`, then `count += 1`: what a variable holds in which numbers alone are put."""
    writes = source.writes(name)
    return bool(writes) and all(is_literal(put(use.node, source)) for use in writes)


def is_counted(name: cst.Name, source: Source) -> bool:
    """Whether this is what a loop over `range(...)` or `enumerate(...)` counts by, which Python has to know."""
    target: cst.CSTNode = name
    match source.parent(name):
        case cst.Element() as first:
            both = source.parent(first)
            if not isinstance(both, cst.Tuple) or both.elements[0] is not first:
                return False
            target, counts = both, "enumerate"
        case _:
            counts = "range"
    match source.parent(target):
        case cst.For(target=counted, iter=over) | cst.CompFor(target=counted, iter=over):
            return counted is target and source.calls(over, counts)
    return False
