"""Function objects that are made anew every time, and the loop or function that makes them.

In: nodes of a Source. jax finds what it has traced and compiled by the function object: with another it starts anew.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from fusionlint.patterns.code.at import inside
from fusionlint.patterns.code.unpacked import assigned
from fusionlint.patterns.dispatch.host import is_short
from fusionlint.patterns.dispatch.jit import value
from fusionlint.patterns.loops.carry import Carry
from fusionlint.patterns.runs.few_times import runs_a_few_times
from fusionlint.patterns.runs.often import is_memoized, runs_often
from fusionlint.source.names import PARTIAL
from fusionlint.source.traced import is_idle
from fusionlint.source.tree import Source

# A function seldom stands for more functions than these.
_DEPTH = 4
# What hands its function on.
_WRAPPING = ("jax.", "functools.", "equinox.", "flax.")


def repeats(node: cst.CSTNode, source: Source) -> cst.CSTNode | None:
    """The loop, or else the function, that runs the host code at `node` again and again; None where it runs once, a few
    times, under a trace, or in what nobody needs to be fast."""
    place = source.place(node)
    if source.context(node) == "traced" or is_idle(source.project, place) or is_memoized(source.project, place):
        return None
    loop = source.loop(node)
    if isinstance(loop, cst.For | cst.While):
        return None if is_short(loop, source) else loop
    function = source.function(node)
    if loop is not None or not isinstance(function, cst.FunctionDef):
        return None
    is_often = runs_often(source.project, source.body_place(function))
    return function if is_often and not runs_a_few_times(function, source) else None


def made_anew(
    function: cst.BaseExpression, where: cst.CSTNode, source: Source, wrappers: frozenset[str] = PARTIAL
) -> str | None:
    """What `function` is, in words, where each time round `where` makes it another object: a lambda, a def, what one of
    `wrappers` returns."""
    match function:
        case cst.Lambda():
            return "a lambda"
        case cst.Name():
            return _made_by_name(function, where, source, wrappers)
        case cst.Call(func=made_by):
            is_seen = _is_wrapped(function, wrappers, source) and not _is_of_a_factory(function, wrappers, source)
            return f"what `{source.code(made_by)}` returns" if is_seen else None
    return None


def _is_wrapped(call: cst.Call, wrappers: frozenset[str], source: Source) -> bool:
    return source.project.callee(source.place(call), value(call)) in wrappers


def _is_of_a_factory(wrapped: cst.Call, wrappers: frozenset[str], source: Source) -> bool:
    """Whether what is wrapped is made by a call of something else, `vmap(make_train(config))`: who makes a function of
    other settings each time has to have each compiled."""
    function = wrapped.args[0].value if wrapped.args else None
    if not isinstance(function, cst.Call):
        return False
    return not _is_wrapped(function, wrappers, source) or _is_of_a_factory(function, wrappers, source)


def is_of_another(function: cst.BaseExpression, loop: cst.For | cst.While, source: Source, depth: int = _DEPTH) -> bool:
    """Whether `function` is other code in every iteration of `loop`: `jax.vmap(env.step)` of another `env`, one of
    several `functions[i]`, what a factory makes of other settings. That has to be traced and compiled for itself."""
    carry = Carry(loop)
    match function:
        case cst.Call(func=made_by, args=[cst.Arg(value=wrapped), *_]):
            if (source.qualified_name(made_by) or "").startswith(_WRAPPING):
                return is_of_another(wrapped, loop, source, depth)
            return any(carry.varies(arg.value) for arg in function.args)
        case cst.Subscript(value=functions):
            return not carry.varies(functions) and carry.varies(function)
        case cst.Attribute(value=cst.Name() as owner):
            return owner.value in carry.targets or isinstance(_made_in(owner, loop, source), cst.Call)
        case cst.Lambda(body=cst.Call(func=cst.Subscript() as called)):  # lambda x: functions[i](x)
            return is_of_another(called, loop, source, depth)
        case cst.Name() if depth:
            meant = [*_stored_in(function, loop, source), *_called_in(function, loop, source)]
            return function.value in carry.targets or any(is_of_another(f, loop, source, depth - 1) for f in meant)
    return False


def _called_in(name: cst.Name, loop: cst.For | cst.While, source: Source) -> Iterator[cst.Name]:
    """The variables that a def inside of `loop` calls."""
    for use in source.writes(name):
        function = source.parent(use.node)
        if isinstance(function, cst.FunctionDef) and loop in source.ancestors(function):
            calls = inside(function.body, cst.Call)
            yield from (call.func for call in calls if isinstance(call.func, cst.Name) and source.value(call.func))


def _stored_in(name: cst.Name, loop: cst.For | cst.While, source: Source) -> Iterator[cst.BaseExpression]:
    """All that an iteration of `loop` may store under `name`."""
    for use in source.writes(name):
        value = assigned(use.node, source)
        if value is not None and not isinstance(value, cst.Name) and loop in source.ancestors(use.node):
            yield value


def _made_in(name: cst.Name, loop: cst.For | cst.While, source: Source) -> cst.BaseExpression | None:
    """What each iteration of `loop` stores under `name` before it is read."""
    written = source.written(name)
    return source.value(name) if written is not None and loop in source.ancestors(written) else None


def _made_by_name(name: cst.Name, where: cst.CSTNode, source: Source, wrappers: frozenset[str]) -> str | None:
    written = source.written(name)
    if written is None or where not in source.ancestors(written):
        return None
    if isinstance(source.parent(written), cst.FunctionDef):
        return f"the function `{name.value}`"
    made = source.value(name)
    return None if made is None or isinstance(made, cst.Name) else made_anew(made, where, source, wrappers)
