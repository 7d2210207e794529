"""What a function hands back to callers that leave it: `_, grid = board(key)`. XLA drops it, and what made it alone.

In: what makes a value of a Source. Out: whether it goes back to callers and nowhere else, each of them is seen in the
file, and all leave it, or hand it back themselves to such. What is decorated may be a program of its own, which hands
out all that it returns.
"""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from fusionlint.patterns.code.at import is_about
from fusionlint.patterns.runs.all_calls import among_results, received
from fusionlint.source.tree import Source

# A result is seldom handed on further.
_DEPTH = 3


def is_dropped(made: cst.CSTNode, source: Source) -> bool:
    """Whether nobody asks for the value, though the function that makes it hands it back."""
    reads = [read for read in source.readers(made) if not (isinstance(read, cst.Name) and is_about(read, source))]
    return bool(reads) and _are_left(reads, source, _DEPTH)


def _are_left(reads: Sequence[cst.CSTNode], source: Source, depth: int) -> bool:
    """Whether all that reads a value hands it back to callers that leave it."""
    for read in reads:
        function = source.function(read)
        if not depth or not isinstance(function, cst.FunctionDef) or function.decorators:
            return False
        if among_results(read, source)[1] is None:
            return False
        names = received(read, source)
        if not names or not all(_are_left(source.reads(name), source, depth - 1) for name in names):
            return False
    return True
