"""A scan over rows in tiny elementwise steps that nothing unrolls: a generalised advantage, a chain of thermostats."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from fusionlint.finding import Finding
from fusionlint.patterns.code.calls import argument, hides_some
from fusionlint.patterns.code.functions import definitions
from fusionlint.patterns.code.layout import with_one_more
from fusionlint.patterns.compiled.recurrence import small_turn
from fusionlint.patterns.loops.counted_steps import MOST_TOGETHER, stores_nothing, times_repeated, together
from fusionlint.patterns.loops.step import except_on_cpu, is_elementwise_step
from fusionlint.patterns.loops.step_mixing import looks_up_by_carry
from fusionlint.patterns.loops.unroll import FEW, SCAN, rolled
from fusionlint.patterns.runs.concrete import is_concrete
from fusionlint.patterns.runs.for_one_caller import is_for_numpy
from fusionlint.patterns.runs.loop_bodies import bodies_of
from fusionlint.rule import Rule
from fusionlint.source.tree import Source

if TYPE_CHECKING:
    from fusionlint.hlo import parse as hlo
    from fusionlint.hlo.barriers import Barrier

rule = Rule(__name__, harm="fusion")

_STEPS = 16
# What every step reduces stays a kernel of its own. Of more steps than this a GPU's kernels compute it again and again,
# as soon as its gradient is taken, or where they are all the steps there are; fewer are nearly as few launches.
_REDUCTIONS, _REDUCING_STEPS = 2, 8
# In the compiled program all of them are seen. Of 64 steps with four an H100 takes 103 us for 263, by XLA's own model.
_SUMS = 4
# The pairs of the page about a step that is repeated, and about one that is repeated more often.
_REPEATED, _OFTEN = 2, 3


@rule.source("Call", calls=(SCAN,))
def tiny_steps(node: cst.Call, source: Source) -> Iterator[Finding]:
    """Every step is seen to be elementwise, takes a row, and uses what the one before it left."""
    scan = rolled(node, source)
    if scan is None or looks_up_by_carry(scan.step) or is_for_numpy(node, source):
        return
    body = scan.step.body
    is_elementwise = is_elementwise_step(body, source, 0)
    if not (is_elementwise or is_elementwise_step(body, source, _REDUCTIONS)):
        return
    unroll = except_on_cpu(_STEPS if is_elementwise else _REDUCING_STEPS, source)
    if is_elementwise:
        does, gain = "a few elementwise operations", "that many steps fuse into one kernel, but a CPU repeats them"
    else:
        does, gain = (
            "a small reduction and little more",
            "of the kernels of a step one is left; not on a CPU, which is slower unrolled",
        )
    yield source.finding(
        node,
        f"{scan.steps(source)} {does}, in kernels of their own",
        pair=0 if is_elementwise else 1,
        write=f"`unroll={unroll}`: {gain}",
        edits=scan.edits(unroll, source),
    )


@rule.source("Call", calls=(SCAN,))
def repeated_steps(node: cst.Call, source: Source) -> Iterator[Finding]:
    """A scan over nothing: the few steps of Newton's method, counted out, that only the last result is read of."""
    if argument(node, 5, "unroll") is not None:
        return
    if hides_some(node):
        return  # which may unroll it already
    times = times_repeated(node, source)
    bodies = bodies_of(node, source) if times is not None else []
    functions = definitions(bodies, source)
    if len(bodies) != 1 or len(functions) != 1:
        return
    (body,) = functions
    if len(body.params.params) != 2 or not source.reads(body.params.params[0].name) or not stores_nothing(body):
        return
    unroll = together(times, body, source)
    if unroll is not None and is_elementwise_step(body, source) and not is_concrete(node, source):
        yield source.finding(
            node,
            f"each of {times} steps is a few elementwise operations, in kernels of their own",
            pair=_REPEATED if unroll == "True" else _OFTEN,
            write=f"`unroll={unroll}`: {'all' if unroll == 'True' else 'so many'} of them fuse into one kernel",
            edits=(with_one_more(node, f"unroll={unroll}", source),),
        )


@rule.barrier
def crosses_between_tiny_steps(barrier: Barrier, module: hlo.Module) -> str | None:
    """Whatever crosses memory inside of a loop over rows in tiny elementwise steps."""
    turn = small_turn(barrier.computation, module)
    if turn is None or turn.steps >= FEW or not (turn.is_elementwise and turn.has_rows):
        return None
    return f"a scan with unroll={_STEPS}: that many steps fuse into one kernel, with what is carried in registers"


@rule.barrier(pair=1)
def crosses_between_reductions(barrier: Barrier, module: hlo.Module) -> str | None:
    """The same of steps with a few small reductions."""
    turn = small_turn(barrier.computation, module)
    if turn is None or turn.steps >= FEW or turn.products or turn.moves or not 0 < turn.sums <= _SUMS:
        return None
    return f"a scan or fori_loop with unroll={_REDUCING_STEPS}: of the kernels of a step one is left for each reduction"


@rule.barrier(pair=_OFTEN)
def crosses_between_repeated_steps(barrier: Barrier, module: hlo.Module) -> str | None:
    """The same of a tiny elementwise step that is repeated."""
    turn = small_turn(barrier.computation, module)
    if turn is None or turn.steps >= FEW or turn.has_rows or not turn.is_elementwise:
        return None
    is_whole = turn.trips * turn.operations <= MOST_TOGETHER
    how, what = ("True", "all of them are") if is_whole else ("8", "that many are")
    return f"unroll={how} of the scan or fori_loop: a step is a few elementwise operations, and {what} one kernel then"
