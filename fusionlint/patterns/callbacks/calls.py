"""Calls from compiled code to Python, and the loops around and beside them.

In: calls of a Source. What the host does is asked in `on_the_host.py`, what it is told in `summaries.py`, and what may
switch a call off in `switches.py`.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from fusionlint.patterns.code.at import is_about, is_none
from fusionlint.patterns.code.calls import argument
from fusionlint.patterns.code.functions import Function
from fusionlint.patterns.dispatch.jit import value
from fusionlint.patterns.runs.loop_bodies import LOOPS, all_loop_bodies
from fusionlint.patterns.runs.switches import is_switched
from fusionlint.source.names import PARTIAL
from fusionlint.source.places import Place
from fusionlint.source.tree import Source

PRINT = "jax.debug.print"
_FOR_WHAT_IT_DOES = "jax.experimental.io_callback"
RETURNS = frozenset(("jax.pure_callback", "equinox.filter_pure_callback", _FOR_WHAT_IT_DOES))
CALLBACKS = (PRINT, "jax.debug.callback", *sorted(RETURNS))
# What says how a callback is made, not what it is handed.
SETTINGS = frozenset(("ordered", "partitioned", "sharding", "vmap_method"))
# A helper of a body is seldom further away than this.
DEPTH = 3


def loop_around(node: cst.CSTNode, source: Source, depth: int = DEPTH) -> Function | None:
    """The loop's body that makes the call at `node`: its own, or that of a function it calls in every step."""
    function = source.function(node)
    if function is None or depth == 0:
        return None
    place = source.body_place(function)
    if place in all_loop_bodies(source.project):
        return function
    if not source.project.calls_of(source.project.name_of(place)):
        return None
    found = source.calls_of((source.project.name_of(place),))
    bodies = (loop_around(c, source, depth - 1) for c in found if not is_switched(c, source))
    return next((body for body in bodies if body is not None), None)


def gives_back(node: cst.Call, source: Source) -> bool:
    """Whether the compiled code waits for what the host returns: `io_callback(log, None, x)` returns nothing."""
    if not source.calls(node, _FOR_WHAT_IT_DOES):
        return source.calls(node, *RETURNS)
    shape = argument(node, 1, "result_shape_dtypes")
    return shape is None or not is_none(shape)


def is_for_the_host(made: cst.CSTNode, source: Source) -> bool:
    """Whether callbacks alone are handed this, in a tuple or not: `args = (x, y)`, `pure_callback(f, shape, *args)`."""
    calls = [*_calls_handed(made, source, DEPTH)]
    return bool(calls) and all(call is not None and _is_a_callback(call, source) for call in calls)


def _calls_handed(made: cst.CSTNode, source: Source, depth: int) -> Iterator[cst.Call | None]:
    """The calls that what is made is handed to, by its name too; None where something else reads it."""
    for read in source.readers(made):
        if isinstance(read, cst.Name) and is_about(read, source):
            continue
        element = source.parent(read)
        several = source.parent(element) if isinstance(element, cst.Element) else None
        if isinstance(several, cst.Tuple | cst.List) and depth:
            yield from _calls_handed(several, source, depth - 1)
        else:
            yield source.handed_to(read)


def _is_a_callback(call: cst.Call, source: Source) -> bool:
    """Whether this calls one, or a function that does nothing but return what one gives back, as factories make them:
    `solve = on_threads(f, shapes)`."""
    if source.calls(call, *CALLBACKS):
        return True
    project = source.project
    behind = project.functions_behind(source.place(call), value(call.func), PARTIAL)
    returned = [(place, each) for place in behind if (f := project.function_at(place)) for each in f.returns]
    return bool(returned) and all(project.callee(place, each) in RETURNS for place, each in returned)


def holds_a_loop(body: Function, source: Source) -> bool:
    """Whether the function holds a loop of jax.lax itself."""
    return _holds_a_loop(source.body_place(body), source)


def takes_many_steps(body: Function, source: Source) -> bool:
    """The same, or whether it calls a function of the project that holds one."""
    place = source.body_place(body)
    return holds_a_loop(body, source) or any(_holds_a_loop(helper, source) for helper in _called_by(place, source))


def _holds_a_loop(place: Place, source: Source) -> bool:
    return any(name in LOOPS for name in names_called(place, source))


def _called_by(place: Place, source: Source) -> Iterator[Place]:
    found = (source.project.find(name) for name in names_called(place, source) if name is not None)
    return (helper for helper in found if helper is not None)


def names_called(place: Place, source: Source) -> Iterator[str | None]:
    """What the function at `place`, and what is defined in it, calls."""
    return (source.project.callee(where, call.value) for where, call in source.project.calls_within(place))
