"""A scan that moves a small state on by products, parts or look-ups, and that nothing unrolls, as a filter does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import libcst as cst

from fusionlint.finding import Finding
from fusionlint.patterns.loops.step import Allowed, Does, Step, except_on_cpu, is_elementwise_step, short_work
from fusionlint.patterns.loops.step_mixing import has_small_products, looks_up_by_carry
from fusionlint.patterns.loops.unroll import SCAN, rolled
from fusionlint.rule import Rule
from fusionlint.source.tree import Source

rule = Rule(__name__, harm="fusion")

# Each stays a kernel. With more of them less is gained, and XLA takes long.
_REDUCTIONS, _PRODUCTS = 2, 5


class Kind(NamedTuple):
    """What the steps of a scan are: how many of them to take at once, the page's pair, what each does, and what comes
    of taking them at once."""

    steps: int
    pair: int
    does: str
    gain: str


_MULTIPLYING = Kind(8, 0, "a product of small matrices or vectors and little more", "a step has a third of the kernels")
_MOVING = Kind(8, 1, "a few operations on parts of what it carries", "a step has less than one kernel")
# What is looked up by what was looked up takes long to compile, under vmap.
_LOOKING = Kind(4, 2, "a look-up by what the one before it found", "that many are one kernel")


@rule.source("Call", calls=(SCAN,))
def small_state_moved_on(node: cst.Call, source: Source) -> Iterator[Finding]:
    """Every step is seen to be little work on a row and on what the one before it left, and not elementwise alone."""
    scan = rolled(node, source)
    kind = _kind(scan.step, source) if scan is not None else None
    if scan is None or kind is None:
        return
    unroll = except_on_cpu(kind.steps, source)
    yield source.finding(
        node,
        f"{scan.steps(source)} {kind.does}, in kernels of their own",
        pair=kind.pair,
        write=f"`unroll={unroll}`: {kind.gain} then; not on a CPU, which is slower unrolled",
        edits=scan.edits(unroll, source),
    )


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
