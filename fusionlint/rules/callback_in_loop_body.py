"""A call from the device to Python, or a print, in the body of a `lax` loop: every step of it goes to the host."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from fusionlint.finding import Finding
from fusionlint.patterns.loop_bodies import all_loop_bodies
from fusionlint.rule import Rule
from fusionlint.source.project import Place
from fusionlint.source.traced import is_idle
from fusionlint.source.tree import Source

rule = Rule(__name__, harm="transfer")

_PRINT = "jax.debug.print"
_RETURNS = frozenset(("jax.pure_callback", "jax.experimental.io_callback"))
_CALLBACKS = (_PRINT, "jax.debug.callback", *sorted(_RETURNS))
_INNER_LOOPS = ("jax.lax.scan", "jax.lax.fori_loop", "jax.lax.while_loop", "jax.lax.map")
# A helper of a body is seldom further away than this.
_DEPTH = 3

Body = cst.FunctionDef | cst.Lambda


@rule.source(cst.Call, calls=_CALLBACKS)
def called_in_every_step(node: cst.Call, source: Source) -> Iterator[Finding]:
    """Callbacks in loop bodies and in what those call every time; prints that no flag switches on."""
    name = source.qualified_name(node.func)
    body = _loop_around(node, source, _DEPTH) if name in _CALLBACKS else None
    if body is None or is_idle(source.project, source.place(node)):
        return
    # What is printed where somebody asked for it, or once in many small steps, is printed to be read.
    if name == _PRINT and (_is_switched(node, source) or _runs_a_loop(body, source)):
        return
    if name in _RETURNS:
        message = "each step of the loop waits for Python on the host"
        write = "write it with jax.numpy; or call once, before or after the loop, with all steps' values"
    else:
        message = "each step of the loop hands its values to Python on the host"
        write = "return the values as outputs of the scan, reduced, and report them once after it"
    yield source.finding(node, message, write=write)


def _loop_around(node: cst.CSTNode, source: Source, depth: int) -> Body | None:
    """The loop's body that makes the call at `node`: its own, or that of a function it calls in every step."""
    function = source.function(node)
    if function is None or depth == 0:
        return None
    place = Place(source.path, source.body_scope(function))
    if place in all_loop_bodies(source.project):
        return function
    if source.project.calls_of.get(source.project.name_of(place)) is None:
        return None
    calls = (c for c in source.nodes(cst.Call) if isinstance(c, cst.Call))
    found = (c for c in calls if source.qualified_name(c.func) == source.project.name_of(place))
    bodies = (_loop_around(c, source, depth - 1) for c in found if not _is_switched(c, source))
    return next((body for body in bodies if body is not None), None)


def _is_switched(node: cst.CSTNode, source: Source) -> bool:
    """Whether an `if` of the function around `node` decides if it runs."""
    function = source.function(node)
    for above in source.ancestors(node):
        if above is function:
            return False
        if isinstance(above, cst.If | cst.IfExp | cst.BooleanOperation | cst.ExceptHandler | cst.Match):
            return True
    return False


def _runs_a_loop(body: Body, source: Source) -> bool:
    scope = f"{source.body_scope(body)}."
    project, path = source.project, source.path
    return any(
        f"{call.scope}.".startswith(scope) and project.callee(Place(path, call.scope), call.value) in _INNER_LOOPS
        for call in source.facts.calls
    )
