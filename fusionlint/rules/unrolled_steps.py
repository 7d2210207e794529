"""A Python loop in compiled code that takes one step after the other: each of them is in the program."""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

from fusionlint.finding import Finding
from fusionlint.lazily import regex
from fusionlint.patterns.dispatch.jit import is_jitted
from fusionlint.patterns.dispatch.updates import APPLY, applied_by_a_state, may_apply
from fusionlint.patterns.loops.carry import Carry, calls, read
from fusionlint.patterns.loops.collected import is_few
from fusionlint.patterns.runs.alternatives import comments_above
from fusionlint.rule import Rule
from fusionlint.source.facts import RawValue
from fusionlint.source.tree import Source
from fusionlint.source.walk import dotted

rule = Rule(__name__, harm="compile-time")

# A step hands on a state and a key, or parameters and what the optimizer keeps; a sum or a picture is one value.
_OF_A_STEP = 2
# An iteration of jaxopt, and of what is written like it: `params, state = solver.update(params, state)`.
_ITERATES = regex(r"(^|[._])(solver|optimi[sz]er|minimi[sz]er)\.(update|step)$")
# What takes the next batch off an iterator, `next(iter(loader))`, is no code for a trace: each step is called.
_ASKS = "next"
# What says above a loop, as close as this, that a scan was measured.
_CLOSE = 4
_TRIED = regex(r"test|slow|fast|measur|benchmark", re.I)


def _stepping_in_a_loop(source: Source) -> Iterator[str]:
    """The scopes of traced code whose loops update parameters, iterate a solver, or call what is compiled by itself:
    asked of the facts, before libcst parses."""
    project = source.project
    for place, name, ((called, _, _), scope, loops, _) in project.named_calls(source.path):
        if not loops or not source.runs(scope, "traced"):
            continue
        if may_apply(name, called) or _may_iterate(called) or project.dispatches(place, name, called):
            yield scope


@rule.source("For", when=_stepping_in_a_loop)
def stepped_in_a_loop(loop: cst.For, source: Source) -> Iterator[Finding]:
    """The loop goes on with the parameters that it has updated, or counts the steps of a compiled function or a solver
    that it hands its own outcome, in code that is seen to be traced."""
    if source.context(loop) != "traced" or is_few(loop.iter, source) or _was_tried(loop, source):
        return
    carry = Carry(loop)
    own = [c for c in calls(loop.body) if source.loop(c) is loop]
    if any(dotted(c.func) == _ASKS for c in own):
        return
    if any((applied_by_a_state(c) or source.calls(c, APPLY)) and _handed_on(c, carry, source) for c in own):
        what = "every update is written into the program, gradient and all: it compiles longer with each"
        write = (
            "jax.lax.scan over the batches, or their indices or keys, carrying the parameters and the optimizer's state"
        )
    elif _is_by_a_setting(loop, source) and any(
        (is_jitted(c.func, source) or _may_iterate(dotted(c.func))) and _handed_on(c, carry, source) >= _OF_A_STEP
        for c in own
    ):
        what = "every step is written into the program that is compiled here: it compiles longer with each"
        write = "jax.lax.scan, carrying what one step hands to the next, and returning what each of them stores"
    else:
        return
    yield source.finding(loop, what, write=write)


def _may_iterate(called: RawValue) -> bool:
    return isinstance(called, str) and bool(_ITERATES.search(called))


def _was_tried(loop: cst.For, source: Source) -> bool:
    """Whether a comment close above the loop says how the scan that it could be went: `# Tested jax.lax.scan`."""
    above = comments_above(source.location(loop).line, _CLOSE, source)
    return any("scan" in text and _TRIED.search(text) for text in above)


def _handed_on(call: cst.Call, carry: Carry, source: Source) -> int:
    """How many of the names that `call` writes it was handed in the iteration before."""
    own = carry.write_of(call, source)
    if own is None or not own.always:
        return 0
    return len({name for node in (call.func, *call.args) for name in read(node)}.intersection(own.names))


def _is_by_a_setting(loop: cst.For, source: Source) -> bool:
    """Whether the loop counts to what is not written out, `range(args.num_steps)`; not through a list, `range(len(
    delays))`, each of whose elements may be of another size."""
    if not source.calls(loop.iter, "range"):
        return False
    bounds = [arg.value for arg in loop.iter.args]
    meant = [source.meant(bound) for bound in bounds]
    if any(source.calls(bound, "len") for bound in meant):
        return False
    return not all(isinstance(bound, cst.Integer) for bound in meant)
