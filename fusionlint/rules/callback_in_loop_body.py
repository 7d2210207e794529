"""A call from the device to Python, or a print, in the body of a `lax` loop: every step of it goes to the host."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from fusionlint.finding import Finding
from fusionlint.patterns.callbacks.calls import CALLBACKS, PRINT, gives_back, loop_around
from fusionlint.patterns.callbacks.on_the_host import is_arithmetic, is_logged, is_printed, is_progress
from fusionlint.patterns.callbacks.summaries import is_rare, is_returned, is_summary
from fusionlint.patterns.code.functions import Function
from fusionlint.patterns.runs.loop_bodies import is_small
from fusionlint.patterns.runs.switches import is_asked_for, is_switched, is_tried
from fusionlint.rule import Rule
from fusionlint.source.tree import Source

rule = Rule(__name__, harm="transfer")


@rule.source("Call", calls=CALLBACKS, where="used")
def called_in_every_step(node: cst.Call, source: Source) -> Iterator[Finding]:
    """Callbacks in loop bodies and in what those call every time; prints that no flag switches on."""
    name = source.qualified_name(node.func)
    body = loop_around(node, source) if name in CALLBACKS else None
    if body is None:
        return
    if gives_back(node, source):
        if not is_arithmetic(node, source):
            return
        message = "each step of the loop waits for Python on the host"
        write = "write it with jax.numpy; or call once, before or after the loop, with all steps' values"
    else:
        if _is_meant(node, body, source):
            return
        message = "each step of the loop hands its values to Python on the host"
        write = (
            "return the values as outputs of the scan, reduced, and report them once after it; what has to be seen "
            "while it runs, in every so many steps, under a jax.lax.cond"
        )
    yield source.finding(node, message, write=write)


def _is_meant(node: cst.Call, body: Function, source: Source) -> bool:
    """Whether somebody asked for what `node` hands out, or it costs little beside the step: a print or a report behind
    a setting, a few numbers of many small steps, what a training step has to say. Where the loop returns the values as
    well, all of it can be said after the loop."""
    is_large = not is_small(source.project, source.body_place(body))
    if source.calls(node, PRINT):
        return is_large or is_switched(node, source) or is_tried(node, source)
    if is_asked_for(node, source) or is_printed(node, source) or is_progress(node, source):
        return True
    if is_summary(node, body, source) or is_rare(node, body, source) or is_logged(node, body, source):
        return True
    if is_returned(node, body, source):
        return False
    return is_large or is_switched(node, source)
