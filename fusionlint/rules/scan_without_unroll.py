"""A scan over rows in tiny elementwise steps that nothing unrolls: a generalised advantage, a chain of thermostats."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from fusionlint.finding import Finding
from fusionlint.patterns.recurrence import unrolled_times
from fusionlint.patterns.step import except_on_cpu, is_elementwise_step
from fusionlint.patterns.step_mixing import looks_up_by_carry
from fusionlint.patterns.unroll import FEW, SCAN, rolled
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


@rule.source("Call", calls=(SCAN,))
def tiny_steps(node: cst.Call, source: Source) -> Iterator[Finding]:
    """Every step is seen to be elementwise, takes a row, and uses what the one before it left."""
    scan = rolled(node, source)
    if scan is None or looks_up_by_carry(scan.step):
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


@rule.barrier
def crosses_between_tiny_steps(barrier: Barrier, module: hlo.Module) -> str | None:
    """Whatever crosses memory inside of a loop over rows in tiny elementwise steps."""
    times = unrolled_times(barrier.computation, module)
    if times is None or times >= FEW:
        return None
    return f"a scan with unroll={_STEPS}: that many steps fuse into one kernel, with what is carried in registers"
