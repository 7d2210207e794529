"""A Python loop that makes each row of an array of the row before: `x = x.at[i].set(f(x[i - 1]))`."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from fusionlint.finding import Finding
from fusionlint.patterns.code.at import WRITES
from fusionlint.patterns.runs.concrete import is_concrete
from fusionlint.patterns.runs.for_traces import is_for_traces
from fusionlint.patterns.writes.beside import is_of_numpy, is_taken_to_the_host
from fusionlint.patterns.writes.chain import is_only_written, root
from fusionlint.patterns.writes.loop import recurrent
from fusionlint.patterns.writes.recurrence_fix import of_recurrence
from fusionlint.rule import Rule
from fusionlint.source.tree import Source

rule = Rule(__name__, harm="fusion")


@rule.source("For", calls=WRITES, in_loop=True)
def rows_of_rows(node: cst.For, source: Source) -> Iterator[Finding]:
    """All that a turn reads of the array is the row beside the one that it writes."""
    found = recurrent(node, source) if is_for_traces(node, source) else None
    if found is None or is_concrete(node, source):
        return
    arrays = [root(write) for write in found.writes]
    if any(is_only_written(array, source) or is_of_numpy(array, source) for array in arrays):
        return
    if any(write.method != "set" or is_taken_to_the_host(write.call, source) for write in found.writes):
        return
    array, jnp = found.arrays[0], source.jnp
    more = f" and {len(found.arrays) - 1} more are" if len(found.arrays) > 1 else " is"
    yield source.finding(
        found.writes[0].call,
        f"`{array}`{more} written row by row, each made of the row before, which is read back out of the array",
        write=f"a name for the last row, a list that begins with the first, and one {jnp}.stack of it after the loop",
        edits=of_recurrence(found, node, source),
    )
