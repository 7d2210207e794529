"""Calls of one compiled function that write what they return over what they are handed: `state = step(state, batch)`.

In: what makes the compiled function. Out: its calls, all of them or none, and which arguments each of them replaces.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from fusionlint.patterns.at import names_read
from fusionlint.patterns.calls import hides_some
from fusionlint.patterns.values import kind
from fusionlint.source.names import JIT
from fusionlint.source.places import Place
from fusionlint.source.traced import is_idle
from fusionlint.source.tree import Source
from fusionlint.source.walk import dotted

# What keeps an array beyond the call that replaces it.
_KEEPS = frozenset(("append", "add", "put", "put_nowait", "insert", "extend", "setdefault", "submit", "appendleft"))
# What hands out the arrays that it is handed, or may: also `device_put`, where they are on that device already.
_HANDS_ON = frozenset(("unreplicate", "device_put", "freeze", "unfreeze"))


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
            case cst.Arg() if depth and (parameter := _parameter(parent, source)):
                inner = calls_of_name(parameter, source, depth - 1)
                if inner is None:
                    return None
                found += inner
            case cst.Element() | cst.Return() if depth and (received := _received(read, source)):
                inners = [calls_of_name(each, source, depth - 1) for each in received]
                if None in inners:
                    return None
                found += [call for inner in inners for call in inner or ()]
            case _:
                return None
    return found


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
    number = next(i for i, each in enumerate(call.args) if each is arg)
    parameters = function.params.params
    return parameters[number].name if number < len(parameters) else None


def _received(read: cst.Name, source: Source) -> list[cst.Name]:
    """What the callers of the function around call its result `read`: `step, state = setup(config)`, where it returns
    `step, state`; none where a caller is not seen to unpack it."""
    place, returned = _result(read, source)
    callers = source.project.calls_of(source.project.name_of(place)) if place is not None else []
    callers = [(caller, call) for caller, call in callers if not is_idle(source.project, caller)]
    if place is None or returned is None or any(caller.path != source.path for caller, _ in callers):
        return []
    name = source.project.name_of(place)
    made = [call for call in source.calls_of((name,)) if isinstance(call, cst.Call) and source.calls(call, name)]
    names = [_unpacked(call, returned, source) for call in made if not is_idle(source.project, source.place(call))]
    return [name for name in names if name is not None] if None not in names and len(names) == len(callers) else []


def _result(read: cst.Name, source: Source) -> tuple[Place | None, tuple[int, int] | None]:
    """The function that returns `read`, and its place among how many results."""
    function, element = source.function(read), source.parent(read)
    if not isinstance(function, cst.FunctionDef):
        return None, None
    place = Place(source.path, source.body_scope(function))
    if isinstance(element, cst.Return):
        return place, (0, 1)
    values = source.parent(element) if element is not None else None
    if isinstance(values, cst.Tuple) and isinstance(source.parent(values), cst.Return):
        return place, (next(i for i, e in enumerate(values.elements) if e is element), len(values.elements))
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
    place = Place(source.path, source.body_scope(function))
    name = source.project.name_of(place)
    callers = source.project.callers(name)
    if any(caller.path != source.path and not is_idle(source.project, caller) for caller in callers):
        return None
    if not source.facts.functions[place.scope].owner:
        return calls_of_name(function.name, source)
    calls = calls_of_method(f"self.{function.name.value}", place, source)
    is_all = calls is not None and len(calls) >= sum(caller.path == source.path for caller in callers)
    return calls if is_all else None  # else the class itself, or one that is derived from it, calls it too


def replaced(call: cst.Call, source: Source) -> dict[int | str, str]:
    """The arguments of `call`, by position or by keyword, that are written with what it returns, and that nothing else
    keeps."""
    statement = source.parent(call)
    if not isinstance(statement, cst.Assign) or hides_some(call):
        return {}
    written = {name for target in statement.targets for name in names_of(target.target)}
    written |= {name for target in statement.targets for name in _taken_out(target.target, call, source)}
    written |= {name for target in statement.targets for name in _stored(target.target, call, source)}
    given = {number if a.keyword is None else a.keyword.value: a.value for number, a in enumerate(call.args)}
    names = {key: dotted(value) for key, value in given.items()}
    return {k: name for k, name in names.items() if name in written and not _is_kept(given[k], call, name, source)}


def given_at(call: cst.Call, key: int | str) -> cst.BaseExpression:
    """The argument of `call` at a place, or under a keyword, that `replaced` names."""
    if isinstance(key, int):
        return call.args[key].value
    return next(arg.value for arg in call.args if arg.keyword is not None and arg.keyword.value == key)


def _taken_out(target: cst.CSTNode, call: cst.Call, source: Source) -> Iterator[str]:
    """What is taken out of a result by a later line of the same block: `state` of `out = step(state)`, `state =
    out.state`."""
    for read in source.reads(target) if isinstance(target, cst.Name) else ():
        part = source.parent(read)
        statement = source.parent(part) if isinstance(part, cst.Attribute) else None
        if isinstance(statement, cst.Assign):
            yield from _written_later(statement, call, source)


def _stored(target: cst.CSTNode, call: cst.Call, source: Source) -> Iterator[str]:
    """What a part of the result is stored as by a later line of the same block: `actor` of `new_actor, info =
    update(actor)`, `actor = new_actor`."""
    parts = [each.value for each in target.elements] if isinstance(target, cst.Tuple | cst.List) else [target]
    for part in parts:
        for read in source.reads(part) if isinstance(part, cst.Name) else ():
            store = source.parent(read)
            if isinstance(store, cst.Assign) and store.value is read:
                yield from _written_later(store, call, source)


def _written_later(store: cst.Assign, call: cst.Call, source: Source) -> Iterator[str]:
    """What `store` writes, a later line of the block around `call`, where nothing between reads what stood there."""
    line = next((above for above in source.ancestors(call) if isinstance(above, cst.SimpleStatementLine)), None)
    block = source.parent(line) if line is not None else None
    if not isinstance(block, cst.IndentedBlock):
        return
    first = next(i for i, each in enumerate(block.body) if each is line)
    last = next((i for i, each in enumerate(block.body) if each is source.parent(store)), 0)
    between = [read for each in block.body[first + 1 : last] for read in names_read(each)]
    stored = [name for each in store.targets for name in names_of(each.target)] if last > first else []
    yield from (name for name in stored if not any(_is_read_as(read, name, source) for read in between))


def _is_read_as(read: cst.Name, name: str, source: Source) -> bool:
    """Whether what begins with `read` is called `name`, or is all that holds it."""
    if read.value != name.partition(".")[0]:
        return False
    whole: cst.CSTNode = read
    while isinstance(above := source.parent(whole), cst.Attribute) and above.value is whole:
        whole = above
    written = dotted(whole)
    is_target = isinstance(source.parent(whole), cst.AssignTarget)
    return not is_target and (f"{written}.".startswith(f"{name}.") or f"{name}.".startswith(f"{written}."))


def names_of(target: cst.CSTNode) -> Iterator[str]:
    """`a` and `self.b`, of `a, self.b = ...`."""
    match target:
        case cst.Tuple(elements=elements) | cst.List(elements=elements):
            for element in elements:
                yield from names_of(element.value)
        case _ if name := dotted(target):
            yield name


def _is_kept(argument: cst.BaseExpression, call: cst.Call, name: str, source: Source) -> bool:
    """Whether the function, or for `self.x` the class, keeps the array under another name too: `best = params`."""
    if isinstance(argument, cst.Name):
        places: Iterator[cst.CSTNode] = (use.node for use in source.uses(argument) if not use.is_write)
        written = source.uses(argument)
        if any(_is_alias(use.node, call, source) for use in written if use.is_write):
            return True
    else:
        owner = source.facts.class_around(source.scope(call))
        fields = list(source.fields_called(name, owner))
        if any(_is_written_with_a_field(field, source) for field in fields):
            return True
        places = iter(fields)
    return any(_keeps(place, source) or _is_put_away(place, source) for place in places)


def is_kept_by_a_caller(argument: cst.BaseExpression, call: cst.Call, source: Source) -> bool:
    """Whether the function around `call` was handed `argument`, and somebody who calls it in this file keeps that, a
    variable, under another name: `best = state` beside `state = train_epoch(state)`."""
    return any(
        isinstance(arg.value, cst.Name) and not arg.star and _is_kept(arg.value, outer, arg.value.value, source)
        for outer, arg in _handed(argument, call, source)
    )


def given_by_callers(argument: cst.BaseExpression, call: cst.Call, source: Source) -> Iterator[cst.BaseExpression]:
    """What those who call the function around `call` in this file hand it as `argument`, where that is a parameter."""
    return (arg.value for _, arg in _handed(argument, call, source) if not arg.star)


def _handed(argument: cst.BaseExpression, call: cst.Call, source: Source) -> Iterator[tuple[cst.Call, cst.Arg]]:
    """The calls of the function around `call`, each with the value of what is `argument` in it."""
    function, numbers = _parameters(argument, call, source)
    calls = (calls_of_function(function, source) or ()) if function is not None else ()
    return ((outer, outer.args[number]) for outer in calls for number in numbers if number < len(outer.args))


def is_of_a_caller(argument: cst.BaseExpression, call: cst.Call, source: Source) -> bool:
    """Whether the function around `call` was handed `argument`, by whom is not seen: they may go on with it."""
    function, _ = _parameters(argument, call, source)
    return function is not None and not calls_of_function(function, source)


def _parameters(
    argument: cst.BaseExpression, call: cst.Call, source: Source
) -> tuple[cst.FunctionDef | None, list[int]]:
    """The function around `call`, and which of its parameters `argument` is; no function where it is none."""
    function = source.function(call)
    if not isinstance(argument, cst.Name) or not isinstance(function, cst.FunctionDef):
        return None, []
    written = [use.node for use in source.writes(argument)]
    numbers = [number for number, parameter in enumerate(function.params.params) if parameter.name in written]
    return (function, numbers) if numbers else (None, [])


def _is_written_with_a_field(field: cst.CSTNode, source: Source) -> bool:
    """`self.average = self.params`: both hold one array."""
    target = source.parent(field)
    statement = source.parent(target) if isinstance(target, cst.AssignTarget) else None
    return isinstance(statement, cst.Assign) and dotted(statement.value).startswith("self.")


def _is_alias(written: cst.Name, call: cst.Call, source: Source) -> bool:
    """`params = initial`: the array is somebody else's too, unless it is what `call` has just returned."""
    target = source.parent(written)
    statement = source.parent(target) if isinstance(target, cst.AssignTarget) else None
    value = statement.value if isinstance(statement, cst.Assign) else None
    match value:
        case cst.Call(func=cst.Attribute(value=copied, attr=cst.Name("copy")), args=[]) if (
            kind(copied, source) != "array"
        ):
            value = copied  # of a dict of arrays the arrays are the same
    if not isinstance(value, cst.Name | cst.Attribute):
        return False
    owner = value.value if isinstance(value, cst.Attribute) else value
    result = source.assigned_name(call)
    return result is None or not isinstance(owner, cst.Name) or source.written(owner) is not result


def _is_put_away(read: cst.CSTNode, source: Source, depth: int = 2) -> bool:
    """Whether a part of it goes into a queue or a list, where a thread may read it during the next call:
    `queue.put(device_put(unreplicate(state.params), device))`, in as many statements."""
    part: cst.CSTNode = read
    while True:
        match above := source.parent(part):
            case cst.Attribute(value=whole) | cst.Subscript(value=whole) if whole is part:
                part = above
            case cst.Arg():
                call = source.parent(above)
                if not isinstance(call, cst.Call) or _called(call) not in _HANDS_ON:
                    return isinstance(call, cst.Call) and _called(call) in _KEEPS
                part = call
            case cst.Assign(targets=[cst.AssignTarget(target=cst.Name() as name)]) if depth and part is not read:
                return any(_is_put_away(each, source, depth - 1) for each in source.reads(name))
            case _:
                return False


def _called(call: cst.Call) -> str:
    """`put`, of `queues[0].put(params)`."""
    match call.func:
        case cst.Name(value=name) | cst.Attribute(attr=cst.Name(value=name)):
            return name
    return ""


def _keeps(read: cst.CSTNode | None, source: Source) -> bool:
    """Whether the array as it is read here goes into another name, a list or a function that may keep it."""
    match parent := source.parent(read) if read else None:
        case cst.Assign(value=value) | cst.AnnAssign(value=value) | cst.NamedExpr(value=value):
            return value is read
        case cst.Arg():
            call = source.parent(parent)
            return isinstance(call, cst.Call) and _called(call) in _KEEPS
        case cst.Element() | cst.DictElement():
            collection = source.parent(parent)
            return collection is not None and not _is_only_returned(collection, source) and _keeps(collection, source)
        case cst.Yield() | cst.IfExp() | cst.Lambda():
            return True
    return False


def _is_only_returned(collection: cst.CSTNode, source: Source) -> bool:
    """`return {"state": state}`, by a name or not."""
    match source.parent(collection):
        case cst.Return():
            return True
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Name() as name)]):
            reads = source.reads(name)
            return bool(reads) and all(isinstance(source.parent(read), cst.Return) for read in reads)
    return False
