"""Scans over rows that nobody has unrolled, and how to write it.

In: a call of `jax.lax.scan` in a Source.
"""

from __future__ import annotations

from typing import NamedTuple

import libcst as cst

from fusionlint.finding import Edit
from fusionlint.patterns.code.at import constant, inside, is_none
from fusionlint.patterns.code.calls import argument, hides_some
from fusionlint.patterns.code.functions import definitions
from fusionlint.patterns.code.imports import imported
from fusionlint.patterns.code.layout import quoted, with_one_more
from fusionlint.patterns.loops.step import Step, step_over_rows
from fusionlint.patterns.runs.concrete import is_concrete
from fusionlint.patterns.runs.loop_bodies import bodies_of
from fusionlint.source.tree import Source

SCAN = "jax.lax.scan"
# Whoever writes four has thought of it.
FEW = 4


class Rolled(NamedTuple):
    """A scan over rows, the `unroll` that it is given, if any, and what a step is."""

    scan: cst.Call
    given: cst.BaseExpression | None
    step: Step

    def steps(self, source: Source) -> str:
        """The steps that are compiled together."""
        if self.given is None or constant(self.given) == 1:
            return "each step is"
        return f"every {source.code(self.given)} steps are"

    def edits(self, unroll: str, source: Source) -> tuple[Edit, ...]:
        jax = imported("jax", self.scan, source)
        if jax is None:
            return ()
        unroll = quoted(unroll, source)
        if self.given is not None:
            return (*jax.edits, source.replace(self.given, unroll))
        return (*jax.edits, with_one_more(self.scan, f"unroll={unroll}", source))


def rolled(scan: cst.Call, source: Source) -> Rolled | None:
    """A scan over rows under a trace, each of whose steps uses what the one before it left, and of which not even four
    are unrolled."""
    if not source.calls(scan, SCAN) or not source.is_traced(scan):
        return None
    if hides_some(scan):
        return None  # which may unroll it already
    given = argument(scan, 5, "unroll")
    if given is not None and ((number := constant(given)) is None or number >= FEW):
        return None
    step = step_over_rows(scan, source)
    if step is None or is_concrete(scan, source) or _makes_a_table(scan, source):
        return None
    return Rolled(scan, given, step)


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
