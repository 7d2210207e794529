"""What is to be seen of a Python loop before a fix writes another in its place: whether each turn does all of its body,
what that stores, and whether something behind it reads what it counts.

In: a `for` of a Source. Out: truth values, and names.
"""

from __future__ import annotations

import libcst as cst

from fusionlint.patterns.code.at import inside, names_read
from fusionlint.patterns.loops.carry import Carry
from fusionlint.source.tree import Source


def does_all_of_its_body(loop: cst.For, source: Source) -> bool:
    """Whether no turn of a loop leaves its body before the end."""
    if loop.orelse is not None or loop.asynchronous is not None or not isinstance(loop.body, cst.IndentedBlock):
        return False
    leaves = cst.Break | cst.Continue | cst.Return | cst.Yield | cst.Await
    return not any(
        isinstance(node, leaves) and source.function(node) is source.function(loop) for node in inside(loop.body)
    )


def stored_by(loop: cst.For) -> set[str]:
    """The names that the body of a loop gives a value, or a part of one."""
    return {name for write in Carry(loop).writes for name in write.names}


def has_a_comment(loop: cst.For, source: Source) -> bool:
    """Whether a comment stands in a loop: one before it stays."""
    return any(source.has_comment(part) for part in (loop.target, loop.iter, loop.body))


def is_read_behind(loop: cst.For, source: Source) -> bool:
    """Whether something outside reads what the loop counts."""
    reads = (read for name in names_read(loop.target) for read in source.reads(name))
    return any(loop not in source.ancestors(read) for read in reads)
