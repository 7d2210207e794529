"""Every call of one function, or none: of what a jit makes, of a def, of a method.

In: where it gets its name. Out: its calls in the file, through what it is handed to and what it is returned from; None
where it goes anywhere else.
"""

from __future__ import annotations

import libcst as cst

from fusionlint.patterns.code.at import number_in
from fusionlint.source.names import JIT, PARTIAL
from fusionlint.source.places import Place
from fusionlint.source.traced import is_idle
from fusionlint.source.tree import Source
from fusionlint.source.walk import dotted


def calls_of_name(name: cst.Name, source: Source, depth: int = 2) -> list[cst.Call] | None:
    """Every call of what `name` was just written with, those of functions of the file that it is handed to included;
    None where it goes anywhere else."""
    found: list[cst.Call] = []
    for read in source.reads(name):
        match parent := source.parent(read):
            case cst.Call(func=func) if func is read:
                found.append(parent)
            case cst.Attribute():  # step.lower(...)
                continue
            case cst.Arg() if depth and (bound := _bound_by_name(parent, source)):
                inner = calls_of_name(bound, source, depth - 1)
                if inner is None:
                    return None
                found += inner
            case cst.Arg() if depth and (parameter := _parameter(parent, source)):
                inner = calls_of_name(parameter, source, depth - 1)
                if inner is None:
                    return None
                found += inner
            case cst.Element() | cst.Return() if depth and (names := received(read, source)):
                inners = [calls_of_name(each, source, depth - 1) for each in names]
                if None in inners:
                    return None
                found += [call for inner in inners for call in inner or ()]
            case _:
                return None
    return found


def _bound_by_name(arg: cst.Arg, source: Source) -> cst.Name | None:
    """What `partial(step, loss=loss)` is called, which takes the other arguments of `step` as that does."""
    call = source.parent(arg)
    if not source.calls(call, *PARTIAL) or call.args[0] is not arg or arg.keyword:
        return None
    name = source.assigned_name(call)
    return name if isinstance(name, cst.Name) and all(each.keyword is not None for each in call.args[1:]) else None


def _parameter(arg: cst.Arg, source: Source) -> cst.Name | None:
    """What the function of this file that is handed `arg` calls it."""
    call = source.parent(arg)
    if not isinstance(call, cst.Call) or arg.star:
        return None
    place = source.project.find(source.qualified_name(call.func))
    if place is None or place.path != source.path:
        return None
    function = source.definition(place.scope)
    if not isinstance(function, cst.FunctionDef):
        return None
    if arg.keyword is not None:
        return next((p.name for p in function.params.params if p.name.value == arg.keyword.value), None)
    number = number_in(call.args, arg)
    parameters = function.params.params
    return parameters[number].name if number < len(parameters) else None


def received(read: cst.CSTNode, source: Source) -> list[cst.Name]:
    """What the callers of the function around call its result `read`: `step, state = setup(config)`, where it returns
    `step, state`; none where a caller is not seen to unpack it."""
    place, returned = among_results(read, source)
    callers = source.project.calls_of(source.project.name_of(place)) if place is not None else []
    callers = [(caller, call) for caller, call in callers if not is_idle(source.project, caller)]
    if place is None or returned is None or any(caller.path != source.path for caller, _ in callers):
        return []
    name = source.project.name_of(place)
    made = [call for call in source.calls_of((name,)) if source.calls(call, name)]
    names = [_unpacked(call, returned, source) for call in made if not source.is_idle(call)]
    return [name for name in names if name is not None] if None not in names and len(names) == len(callers) else []


def among_results(read: cst.CSTNode, source: Source) -> tuple[Place | None, tuple[int, int] | None]:
    """The function that returns `read`, and its place among how many results."""
    function, element = source.function(read), source.parent(read)
    if not isinstance(function, cst.FunctionDef):
        return None, None
    place = source.body_place(function)
    if isinstance(element, cst.Return):
        return place, (0, 1)
    values = source.parent(element) if element is not None else None
    if isinstance(values, cst.Tuple) and isinstance(source.parent(values), cst.Return):
        return place, (number_in(values.elements, element), len(values.elements))
    return None, None


def _unpacked(call: cst.Call, returned: tuple[int, int], source: Source) -> cst.Name | None:
    number, count = returned
    match source.parent(call):
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Name() as name)]) if count == 1:
            return name
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Tuple(elements=parts))]) if len(parts) == count:
            part = parts[number].value
            return part if isinstance(part, cst.Name) else None
    return None


def calls_of_method(attribute: str, place: Place, source: Source) -> list[cst.Call] | None:
    """Every call of `self.step` in the class around `place`; None where it goes anywhere else than into what takes its
    name, `self.step = jax.jit(self.step)`."""
    owner = source.facts.class_around(place.scope)
    found: list[cst.Call] = []
    for node in source.fields_called(attribute, owner):
        match parent := source.parent(node):
            case cst.Call(func=func) if func is node:
                found.append(parent)
            case cst.AssignTarget() | cst.Attribute():
                continue
            case cst.Arg() if _takes_its_name(parent, attribute, source):
                continue
            case _:
                return None
    return found


def _takes_its_name(arg: cst.Arg, attribute: str, source: Source) -> bool:
    """Whether a jit is handed `arg`, and what it makes is called the same."""
    jit = source.parent(arg)
    statement = source.parent(jit) if jit is not None and source.name_called(jit) in JIT else None
    return isinstance(statement, cst.Assign) and any(dotted(each.target) == attribute for each in statement.targets)


def calls_of_function(function: cst.FunctionDef, source: Source) -> list[cst.Call] | None:
    """Every call of a def; None where files call it that are not seen here, or where it goes anywhere else."""
    place = source.body_place(function)
    name = source.project.name_of(place)
    callers = source.project.callers(name)
    if any(caller.path != source.path and not is_idle(source.project, caller) for caller in callers):
        return None
    if not source.facts.functions[place.scope].owner:
        return calls_of_name(function.name, source)
    calls = calls_of_method(f"self.{function.name.value}", place, source)
    is_all = calls is not None and len(calls) >= sum(caller.path == source.path for caller in callers)
    return calls if is_all else None  # else the class itself, or one that is derived from it, calls it too
