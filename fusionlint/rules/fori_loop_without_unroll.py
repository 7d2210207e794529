"""A few tiny elementwise steps, counted out, that nothing unrolls: `lax.fori_loop(0, 10, newton, x)`."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from fusionlint.finding import Finding
from fusionlint.patterns.at import constant
from fusionlint.patterns.calls import argument, hides_some
from fusionlint.patterns.functions import Function, definitions
from fusionlint.patterns.layout import added
from fusionlint.patterns.loop_bodies import bodies_of
from fusionlint.patterns.step import is_elementwise_step
from fusionlint.rule import Rule
from fusionlint.source.tree import Source

rule = Rule(__name__, harm="fusion")

_FORI = "jax.lax.fori_loop"
# More steps take long to compile, and are seldom meant to be one kernel.
_MOST = 16
# What a step may ask about all of an array, and the pair of the page about steps that move places round as well.
_REDUCTIONS = 1
_MOVES = 2


@rule.source("Call", calls=(_FORI,))
def few_steps(node: cst.Call, source: Source) -> Iterator[Finding]:
    """Two to sixteen steps, by numbers that are written out, each seen to be elementwise on what is carried; it may be
    rolled, one direction of a board after the other, and asked about once."""
    if not source.calls(node, _FORI) or not source.is_traced(node) or argument(node, 4, "unroll") is not None:
        return
    if hides_some(node):
        return  # which may unroll it already
    steps = _steps(node)
    bodies = bodies_of(node, source)
    functions = definitions(bodies, source)
    if steps is None or not 1 < steps <= _MOST or len(bodies) != 1 or len(functions) != 1:
        return
    (body,) = functions
    if len(body.params.params) != 2:
        return
    is_elementwise = is_elementwise_step(body, source)
    if not (is_elementwise or _rolls(body, source)):
        return
    if source.reads(body.params.params[1].name):
        does = "a few elementwise operations" if is_elementwise else "a few elementwise operations and moves"
        yield source.finding(
            node,
            f"each of {steps} steps is {does}, in kernels of their own",
            pair=0 if is_elementwise else _MOVES,
            write="`unroll=True`: all of them fuse into one kernel",
            edits=(added(node, "unroll=True", source),),
        )


def _rolls(body: Function, source: Source) -> bool:
    """Whether a step moves places round or chooses, beside elementwise work: a reduction alone stays a kernel."""
    is_small = is_elementwise_step(body, source, _REDUCTIONS, rolls=True)
    return is_small and not is_elementwise_step(body, source, _REDUCTIONS)


def _steps(loop: cst.Call) -> int | None:
    """How many steps a `fori_loop` makes, where both its ends are written out."""
    lower, upper = argument(loop, 0, "lower"), argument(loop, 1, "upper")
    first = constant(lower) if lower is not None else None
    last = constant(upper) if upper is not None else None
    return None if first is None or last is None else last - first
