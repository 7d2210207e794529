"""Whether what chooses an action is itself a row of operations that are dispatched one by one.

In: an action that a loop hands to an environment, `env.step(action)`, and the loop. Where the function that chooses it
is seen, by its name or as what the callers of a rollout hand it, not compiled, and works with jax, it dispatches many
times what stands beside it, and there is no compiled function yet that could do that as well.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from fusionlint.lazily import regex
from fusionlint.patterns.code.at import inside
from fusionlint.patterns.code.calls import argument
from fusionlint.patterns.code.functions import definitions, parameters, returns_of
from fusionlint.patterns.code.unpacked import unpacked_at
from fusionlint.patterns.dispatch.jit import is_jitted, value
from fusionlint.patterns.loops.carry import Loop
from fusionlint.patterns.runs.all_calls import calls_of_function
from fusionlint.source.facts import NOTHING
from fusionlint.source.places import Place
from fusionlint.source.project import Project
from fusionlint.source.transforms import TRANSFORMS
from fusionlint.source.tree import Source
from fusionlint.source.walk import dotted

_OPERATIONS = regex(r"^jax\.(numpy|nn|random|lax|scipy)\.")
# A network, outside of a compiled function: dozens of operations.
_NETWORK = regex(r"\.apply(_fn)?$")
# So many beside one another are more than what a loop does between two steps.
_MANY = 4


def is_chosen_by_operations(action: cst.BaseExpression, loop: Loop, source: Source) -> bool:
    """Whether a function that makes `action` in the loop is not compiled, and dispatches many operations itself."""
    return any(
        _dispatches(place, source.project)
        for call in _behind(action, loop)
        for each in (call.func, *_handed(call.func, source))
        if not is_jitted(each, source)
        for place in _functions(each, source)
    )


def _functions(named: cst.BaseExpression, source: Source) -> Iterator[Place]:
    return source.project.functions_behind(source.place(named), value(named), TRANSFORMS)


def _handed(callee: cst.BaseExpression, source: Source) -> Iterator[cst.BaseExpression]:
    """What those in this file who call the function around `callee` hand it for that, `rollout(policy=policy)`."""
    parameter = source.parameter(callee) if isinstance(callee, cst.Name) else None
    function = source.function(callee)
    if parameter is None or not isinstance(function, cst.FunctionDef) or parameter not in parameters(function):
        return
    is_method = bool(source.facts.class_around(source.body_scope(function)))
    places = {id(each): number - is_method for number, each in enumerate(function.params.params)}
    for call in calls_of_function(function, source) or ():
        given = argument(call, places.get(id(parameter), -1), parameter.name.value)
        if given is not None:
            yield given
            yield from _returned(given, source)


def _returned(given: cst.BaseExpression, source: Source) -> Iterator[cst.BaseExpression]:
    """What stands at the place of `policy`, of `policy, params = train()`, in what a function of the file returns."""
    match unpacked_at(source.written(given), source) if isinstance(given, cst.Name) else None:
        case cst.Call(func=maker), number, count:
            for function in definitions([*_functions(maker, source)], source):
                for each in returns_of(function, source) if isinstance(function, cst.FunctionDef) else ():
                    if isinstance(each.value, cst.Tuple) and len(each.value.elements) == count:
                        yield each.value.elements[number].value


def _behind(action: cst.BaseExpression, loop: Loop) -> Iterator[cst.Call]:
    """The calls that stand in `action`, and in what the loop assigns to its name."""
    found = [action]
    if isinstance(action, cst.Name):
        found += [
            node.value
            for node in inside(loop.body, cst.Assign)
            if any(_holds(target.target, action.value) for target in node.targets)
        ]
    return (part for each in found for part in inside(each, cst.Call))


def _holds(target: cst.BaseExpression, name: str) -> bool:
    parts = [part.value for part in target.elements] if isinstance(target, cst.Tuple) else [target]
    return any(dotted(part) == name for part in parts)


def _dispatches(place: Place, project: Project) -> bool:
    """Whether the function at `place` works with jax itself, or runs a function that it makes anew each time."""
    many = 0
    for where, call in project.calls_within(place):
        written = call.value.callee or NOTHING
        if (written.is_call or _NETWORK.search(written.name)) and not project.is_jitted(where, written):
            return True
        many += bool(_OPERATIONS.match(project.callee(where, call.value) or ""))
    return many >= _MANY
