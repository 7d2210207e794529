"""Python loops whose time somebody takes, or that wait on purpose.

In: a loop. Out: whether how long it takes is what is asked for.
"""

from __future__ import annotations

import libcst as cst

from fusionlint.patterns.code.at import number_in
from fusionlint.patterns.loops.carry import Loop, calls
from fusionlint.patterns.loops.loop_gates import is_gated
from fusionlint.patterns.runs.concrete import CLOCKS
from fusionlint.source.tree import Source
from fusionlint.source.walk import dotted

_WAITS = frozenset(
    (*CLOCKS, "time.process_time", "time.perf_counter_ns", "time.sleep", "jax.block_until_ready",
     "datetime.datetime.now", "datetime.datetime.utcnow")
)  # fmt: skip


def is_timed(loop: Loop, source: Source) -> bool:
    """Whether every iteration takes the time, or waits on purpose: each is meant to be seen by itself."""
    waits = (call for call in calls(loop.body) if source.qualified_name(call.func) in _WAITS)
    return any(not is_gated(wait, loop, source) for wait in waits)


def is_measured(loop: Loop, source: Source) -> bool:
    """Whether the time is taken right before the loop and right after it, or once its outcome is there: how long so
    many calls take is what is asked for. A name may be assigned in between."""
    block = source.parent(loop)
    if not isinstance(block, cst.IndentedBlock):
        return False
    place = number_in(block.body, loop)
    before, after = block.body[max(place - 2, 0) : place], block.body[place + 1 : place + 3]
    ends = after if after and _waits(after[0]) else after[:1]
    return any(_asks_the_time(one, source) for one in before) and any(_asks_the_time(one, source) for one in ends)


def _waits(statement: cst.CSTNode) -> bool:
    """`x.block_until_ready()`."""
    return any(dotted(call.func).endswith("block_until_ready") for call in calls(statement))


def _asks_the_time(statement: cst.CSTNode, source: Source) -> bool:
    """Whether a simple statement calls a clock."""
    is_simple = isinstance(statement, cst.SimpleStatementLine)
    return is_simple and any(source.calls(call, *CLOCKS) for call in calls(statement))
