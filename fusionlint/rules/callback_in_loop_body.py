"""A call from the device to Python, or a print, in the body of a `lax` loop: every step of it goes to the host."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from fusionlint.finding import Finding
from fusionlint.patterns.callbacks import (
    CALLBACKS,
    PRINT,
    RETURNS,
    is_a_bar,
    is_asked_for,
    is_printed,
    is_progress,
    is_rare,
    is_shown,
    is_summary,
    is_switched,
    is_tried,
    loop_around,
    only_tells,
    runs_a_loop,
)
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
    # What is printed where somebody asked for it, or once in many small steps, is printed to be read.
    if name == PRINT and (is_switched(node, source) or is_tried(node, source) or runs_a_loop(body, source)):
        return
    if name not in RETURNS and any(asked(node, source) for asked in (is_asked_for, is_printed)):
        return
    if is_a_bar(node, source) or (is_progress(node, source) and (name not in RETURNS or only_tells(node, source))):
        return
    if is_summary(node, body, source) or is_rare(node, body, source) or is_shown(node, source):
        return
    if name in RETURNS:
        message = "each step of the loop waits for Python on the host"
        write = "write it with jax.numpy; or call once, before or after the loop, with all steps' values"
    else:
        message = "each step of the loop hands its values to Python on the host"
        write = "return the values as outputs of the scan, reduced, and report them once after it"
    yield source.finding(node, message, write=write)
