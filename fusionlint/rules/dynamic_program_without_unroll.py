"""A scan that moves a small state on by products, parts or look-ups, and that nothing unrolls, as a filter does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import libcst as cst

from fusionlint.finding import Finding
from fusionlint.patterns.compiled.recurrence import Turn, is_walk_of_few, small_turn
from fusionlint.patterns.loops.step import Allowed, Does, Step, except_on_cpu, is_elementwise_step, short_work
from fusionlint.patterns.loops.step_mixing import has_small_products, looks_up_by_carry
from fusionlint.patterns.loops.unroll import FEW, SCAN, rolled
from fusionlint.rule import Rule
from fusionlint.source.tree import Source

if TYPE_CHECKING:
    from fusionlint.hlo import parse as hlo
    from fusionlint.hlo.barriers import Barrier

rule = Rule(__name__, harm="fusion")

# Each stays a kernel. With more of them less is gained, and XLA takes long.
_REDUCTIONS, _PRODUCTS = 2, 5


# Steps to take at once. Of eight a GPU makes each of all those before it anew: 128 steps of the filter on the page take
# 0.79 ms as they are, 0.35 by four and 88 by eight, by XLA's own model; of its alignment 527, 178 and 442 us.
_AT_ONCE = 4


class Kind(NamedTuple):
    """What the steps of a scan are: the page's pair, what each does, and what comes of taking several at once."""

    pair: int
    does: str
    gain: str


_MULTIPLYING = Kind(
    0, "a product of small matrices or vectors and little more", "a step has less than half the kernels"
)
_MOVING = Kind(1, "a few operations on parts of what it carries", "a step has one kernel")
_LOOKING = Kind(2, "a look-up by what the one before it found", "that many are one kernel")


@rule.source("Call", calls=(SCAN,))
def small_state_moved_on(node: cst.Call, source: Source) -> Iterator[Finding]:
    """Every step is seen to be little work on a row and on what the one before it left, and not elementwise alone."""
    scan = rolled(node, source)
    kind = _kind(scan.step, source) if scan is not None else None
    if scan is None or kind is None:
        return
    unroll = except_on_cpu(_AT_ONCE, source)
    yield source.finding(
        node,
        f"{scan.steps(source)} {kind.does}, in kernels of their own",
        pair=kind.pair,
        write=f"`unroll={unroll}`: {kind.gain} then; not on a CPU, which is slower unrolled",
        edits=scan.edits(unroll, source),
    )


@rule.barrier
def crosses_between_small_products(barrier: Barrier, module: hlo.Module) -> str | None:
    """Whatever crosses memory inside of a loop whose steps multiply a small matrix."""
    turn = _rolled(barrier, module)
    if turn is None or not 0 < turn.products <= _PRODUCTS:
        return None
    left = "and half of its kernels are left then"
    return f"a scan or fori_loop with unroll={_AT_ONCE}: a step is {_MULTIPLYING.does}, {left}"


@rule.barrier(pair=_MOVING.pair)
def crosses_between_moves(barrier: Barrier, module: hlo.Module) -> str | None:
    """The same of steps that cut what they carry, and join the parts anew."""
    turn = _rolled(barrier, module)
    if turn is None or turn.products or not turn.moves or is_walk_of_few(turn):
        return None
    return f"a scan or fori_loop with unroll={_AT_ONCE}: a step is {_MOVING.does}, of one kernel then"


@rule.barrier(pair=_LOOKING.pair)
def crosses_between_look_ups(barrier: Barrier, module: hlo.Module) -> str | None:
    """The same of steps that take what stands at a place which the last one has found."""
    turn = _rolled(barrier, module)
    if turn is None or turn.products or turn.sums or turn.moves or not turn.looks_up_carried:
        return None
    return f"a scan or fori_loop with unroll={_AT_ONCE}: a step is {_LOOKING.does}, and that many are one kernel then"


def _rolled(barrier: Barrier, module: hlo.Module) -> Turn | None:
    """A turn of the barrier's loop that is one step. By its own estimate a TPU is no faster for products or moves of
    several."""
    turn = small_turn(barrier.computation, module)
    if turn is None or turn.looks_up or turn.is_of_a_tpu or turn.steps >= FEW or turn.sums > _REDUCTIONS:
        return None
    return turn


def _kind(step: Step, source: Source) -> Kind | None:
    work = short_work(step.body, source, Allowed(is_counted=True, reductions=True, parts=True))
    if work is None:
        return None
    reductions, products = work.count(Does.REDUCTION), work.count(Does.PRODUCT)
    if products:
        is_small = reductions + products <= _PRODUCTS and has_small_products(step, source)
        return _MULTIPLYING if is_small else None
    if reductions > _REDUCTIONS:
        return None
    if looks_up_by_carry(step):
        return _LOOKING
    return None if is_elementwise_step(step.body, source, _REDUCTIONS) else _MOVING
