"""A few tiny elementwise steps, counted out, that nothing unrolls: `lax.fori_loop(0, 10, newton, x)`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from fusionlint.finding import Finding
from fusionlint.patterns.code.calls import argument, hides_some
from fusionlint.patterns.code.functions import Function, definitions
from fusionlint.patterns.code.layout import added
from fusionlint.patterns.compiled.recurrence import MOST_MOVES, is_walk_of_few, small_turn
from fusionlint.patterns.loops.counted_steps import only_adds_up, times_counted, together
from fusionlint.patterns.loops.step import is_elementwise_step, rolls_in
from fusionlint.patterns.loops.turns import walk
from fusionlint.patterns.loops.unroll import FEW
from fusionlint.patterns.runs.loop_bodies import bodies_of
from fusionlint.rule import Rule
from fusionlint.source.tree import Source

if TYPE_CHECKING:
    from fusionlint.hlo import parse as hlo
    from fusionlint.hlo.barriers import Barrier

rule = Rule(__name__, harm="fusion")

_FORI = "jax.lax.fori_loop"
# What a step may ask about all of an array.
_REDUCTIONS = 1
# In the compiled program that is seen of any: of ten leaps by a gradient with two sums an H100 takes 8 us for 44, by
# XLA's own model.
_SUMS = 4
# In one kernel every roll of what was rolled computes that anew: the page's four rolls were 4.4 times as fast so on an
# H200, the seven of pgx's Othello 2.5 times as slow (docs/fixed.md).
_MOST_ROLLS = 4
_ANEW = ", which computes anew what is rolled, for each roll of that: time it"
# The pairs of the page about more steps than one kernel is made of, and about steps that move places round as well.
_MANY, _MOVES = 2, 3


@rule.source("Call", calls=(_FORI,))
def few_steps(node: cst.Call, source: Source) -> Iterator[Finding]:
    """A few steps, by numbers that Python knows, each seen to be elementwise on what is carried; it may be rolled, one
    direction of a board after the other, and asked about once."""
    if argument(node, 4, "unroll") is not None:
        return
    if hides_some(node) or walk(node, source) is not None:
        return  # which may unroll it already; an array that is gone through needs no loop: scalar-loop says so
    steps = times_counted(node, source)
    bodies = bodies_of(node, source)
    functions = definitions(bodies, source)
    if steps is None or len(bodies) != 1 or len(functions) != 1:
        return
    (body,) = functions
    unroll = together(steps, body, source)
    if unroll is None or len(body.params.params) != 2:
        return
    is_elementwise = is_elementwise_step(body, source)
    carry = body.params.params[1].name
    if only_adds_up(body, carry, source) if is_elementwise else steps > MOST_MOVES or not _rolls(body, source):
        return
    if source.reads(carry):
        does = "a few elementwise operations" if is_elementwise else "a few elementwise operations and moves"
        is_anew = rolls_in(body, source) > _MOST_ROLLS
        fused = f"{'all' if unroll == 'True' else 'so many'} of them fuse into one kernel"
        yield source.finding(
            node,
            f"each of {steps} steps is {does}, in kernels of their own",
            pair=_MOVES if not is_elementwise else 0 if unroll == "True" else _MANY,
            write=f"`unroll={unroll}`: {fused}{_ANEW if is_anew else ''}",
            edits=() if is_anew else (added(node, f"unroll={unroll}", source),),
        )


@rule.barrier(pair=_MOVES)
def crosses_between_directions(barrier: Barrier, module: hlo.Module) -> str | None:
    """Whatever crosses memory inside of a loop of few turns that move what they ask about."""
    turn = small_turn(barrier.computation, module)
    if turn is None or turn.steps >= FEW or turn.products or turn.sums > _SUMS or not is_walk_of_few(turn):
        return None
    return f"unroll=True of the fori_loop or scan: all {turn.trips} turns fuse, and how far each moves is known then"


def _rolls(body: Function, source: Source) -> bool:
    """Whether a step moves places round or chooses, beside elementwise work: a reduction alone stays a kernel."""
    is_small = is_elementwise_step(body, source, _REDUCTIONS, rolls=True)
    return is_small and not is_elementwise_step(body, source, _REDUCTIONS)
