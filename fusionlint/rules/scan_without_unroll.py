"""A scan over rows in tiny elementwise steps that nothing unrolls: a generalised advantage, a chain of thermostats."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from fusionlint.finding import Edit, Finding
from fusionlint.patterns.at import constant, inside, is_none
from fusionlint.patterns.calls import argument, hides_some
from fusionlint.patterns.concrete import is_concrete
from fusionlint.patterns.layout import added, quoted
from fusionlint.patterns.loop_bodies import bodies_of, definitions
from fusionlint.patterns.recurrence import unrolled_times
from fusionlint.patterns.step import except_on_cpu, recurrence
from fusionlint.rule import Rule
from fusionlint.source.tree import Source

if TYPE_CHECKING:
    from fusionlint.hlo import parse as hlo
    from fusionlint.hlo.barriers import Barrier

rule = Rule(__name__, harm="fusion")

_SCAN = "jax.lax.scan"
# Whoever writes four has thought of it.
_FEW = 4
_STEPS = 16
# What every step reduces stays a kernel of its own. Of more steps than this a GPU's kernels compute it again and again,
# as soon as its gradient is taken, or where they are all the steps there are; fewer are nearly as few launches.
_REDUCTIONS, _REDUCING_STEPS = 2, 8


@rule.source("Call", calls=(_SCAN,))
def tiny_steps(node: cst.Call, source: Source) -> Iterator[Finding]:
    """Every step is seen to be elementwise, takes a row, and uses what the one before it left."""
    if not source.calls(node, _SCAN) or not source.is_traced(node):
        return
    if hides_some(node):
        return  # which may unroll it already
    given = argument(node, 5, "unroll")
    if given is not None and ((number := constant(given)) is None or number >= _FEW):
        return
    is_elementwise = recurrence(node, source) is not None
    if not (is_elementwise or recurrence(node, source, _REDUCTIONS)) or is_concrete(node, source):
        return
    if _makes_a_table(node, source):
        return
    steps = "each step is" if given is None else f"every {source.code(given)} steps are"
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
        f"{steps} {does}, in kernels of their own",
        pair=0 if is_elementwise else 1,
        write=f"`unroll={unroll}`: {gain}",
        edits=(_edit(node, given, unroll, source),) if source.alias_at(node, "jax") else (),
    )


def _makes_a_table(scan: cst.Call, source: Source) -> bool:
    """Whether a step multiplies each of some by each of others, `k[:, :, None] * v[:, None, :]`: the state of a linear
    attention, next to which a launch is nothing."""
    for body in definitions(bodies_of(scan, source), source):
        for part in inside(body.body):
            match part:
                case cst.BinaryOperation(left=left, operator=cst.Multiply(), right=right):
                    new, other = _new_axes(left), _new_axes(right)
                    if new and other and new != other:
                        return True
    return False


def _new_axes(node: cst.BaseExpression) -> list[int]:
    """The places of `None` in `k[:, :, None]`."""
    match node:
        case cst.Subscript(slice=parts):
            found = (part.slice.value if isinstance(part.slice, cst.Index) else None for part in parts)
            return [i for i, value in enumerate(found) if is_none(value)]
    return []


@rule.barrier
def crosses_between_tiny_steps(barrier: Barrier, module: hlo.Module) -> str | None:
    """Whatever crosses memory inside of a loop over rows in tiny elementwise steps."""
    times = unrolled_times(barrier.computation, module)
    if times is None or times >= _FEW:
        return None
    return f"a scan with unroll={_STEPS}: that many steps fuse into one kernel, with what is carried in registers"


def _edit(scan: cst.Call, given: cst.BaseExpression | None, unroll: str, source: Source) -> Edit:
    unroll = quoted(unroll, source)
    return source.replace(given, unroll) if given is not None else added(scan, f"unroll={unroll}", source)
