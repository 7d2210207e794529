"""Whether anything keeps an array beyond the call that replaces it: another name, a list, a queue.

In: an argument that a call replaces. What is not seen to be kept is not.
"""

from __future__ import annotations

from collections.abc import Iterator, Set

import libcst as cst

from fusionlint.patterns.code.at import is_none
from fusionlint.patterns.code.calls import call_of
from fusionlint.patterns.code.unpacked import assigned
from fusionlint.patterns.donation.parts import gives_back
from fusionlint.patterns.runs.from_callers import handed_by_callers
from fusionlint.patterns.values.kinds import kind
from fusionlint.source.places import Place
from fusionlint.source.tree import Source
from fusionlint.source.walk import dotted

# What keeps an array beyond the call that replaces it.
_KEEPS = frozenset(("append", "add", "put", "put_nowait", "insert", "extend", "setdefault", "submit", "appendleft"))
# What hands out the arrays that it is handed, or may: also `device_put`, where they are on that device already.
_HANDS_ON = frozenset(("unreplicate", "device_put", "freeze", "unfreeze"))
# What makes another collection of the same arrays.
_COPIES = frozenset(("dict", "list", "tuple", "copy"))


def is_kept(argument: cst.BaseExpression, call: cst.Call, name: str, source: Source) -> bool:
    """Whether the function, or for `self.x` the class, keeps the array under another name too: `best = params`."""
    if isinstance(argument, cst.Name):
        places: Iterator[cst.CSTNode] = source.reads_at_all(argument)
        written = source.uses(argument)
        if any(_is_alias(use.node, call, source) for use in written if use.is_write):
            return True
    else:
        owner = source.facts.class_around(source.scope(call))
        fields = [field for each in _classes(owner, source) for field in source.fields_called(name, each)]
        if any(_is_written_with_a_field(field, source) or _is_filled_with_a_field(field, source) for field in fields):
            return True
        if _is_filled_elsewhere(name, owner, source):
            return True
        places = iter(fields)
    around = {source.function(call)}
    kept = (p for p in places if _keeps(p, source) or _is_put_away(p, source))
    return any(not _is_gathered_for_others(place, around, source) for place in kept)


def _classes(owner: str, source: Source) -> list[str]:
    """A class, and those of this file that it is made of."""
    every = source.project.lineage(Place(source.path, owner)) if owner else [Place(source.path, owner)]
    return [each.scope for each in every if each.path == source.path]


def is_kept_by_a_caller(argument: cst.BaseExpression, call: cst.Call, source: Source) -> bool:
    """Whether the function around `call` was handed `argument`, and somebody who calls it in this file keeps that, a
    variable, under another name: `best = state` beside `state = train_epoch(state)`."""
    return any(
        isinstance(arg.value, cst.Name) and not arg.star and is_kept(arg.value, outer, arg.value.value, source)
        for outer, arg in handed_by_callers(argument, call, source)
    )


def _is_written_with_a_field(field: cst.CSTNode, source: Source) -> bool:
    """`self.average = self.params`: both hold one array; so do `self.first = params` and `self.params = params`."""
    stored = assigned(field, source)
    if is_none(stored):
        return False
    if not isinstance(stored, cst.Name):
        return stored is not None and dotted(stored).startswith("self.")
    others = [target for use in source.uses(stored) if (target := _field_given(use.node, source)) is not None]
    return any(dotted(target) != dotted(field) for target in others)


def _is_filled_with_a_field(field: cst.CSTNode, source: Source) -> bool:
    """`self.params["net"] = self.net.weights`, or `self.params.update({"net": self.net.weights})`: the other holds that
    array, too."""
    match above := source.parent(field):
        case cst.Subscript(value=whole) if whole is field:
            return _is_field(assigned(above, source))
        case cst.Attribute(value=whole, attr=cst.Name("update")) if whole is field:
            call = call_of(above, source)
            given = [part for arg in call.args for part in _parts(arg.value)] if call is not None else []
            return any(map(_is_field, given))
    return False


def _parts(value: cst.BaseExpression) -> list[cst.BaseExpression]:
    return [part.value for part in value.elements] if isinstance(value, cst.Dict) else [value]


def _is_field(value: cst.BaseExpression | None) -> bool:
    return value is not None and dotted(value).startswith("self.")


def _is_filled_elsewhere(name: str, owner: str, source: Source) -> bool:
    """Whether a class of another file that this one is derived from puts more into it, `self.params.update(...)`:
    what, and who else holds that, is not seen here."""
    project, methods = source.project, source.project.methods()
    bases = [each for each in project.lineage(Place(source.path, owner)) if each.path != source.path] if owner else []
    within = (call for base in bases for method in methods.get(base, ()) for _, call in project.calls_within(method))
    return any(call.value.callee is not None and call.value.callee.name == f"{name}.update" for call in within)


def _field_given(value: cst.CSTNode, source: Source) -> cst.Attribute | None:
    """The field that a variable is written to as it is: `self.params = params`."""
    match source.parent(value):
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Attribute(value=cst.Name("self")) as field)], value=given):
            return field if given is value else None
    return None


def _is_alias(written: cst.Name, call: cst.Call, source: Source) -> bool:
    """`params = initial`: the array is somebody else's too, unless it is what `call` has just returned."""
    value = assigned(written, source)
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


def _is_gathered_for_others(read: cst.CSTNode, around: Set[cst.CSTNode | None], source: Source) -> bool:
    """Whether another function puts this into a dict of its own that it hands to calls, and is done with then, as a
    checkpoint is written: `saved = {"policy": self.policy}`, `saver.save(path, saved)`."""
    part = read
    while isinstance(above := source.parent(part), cst.DictElement | cst.Element | cst.Dict | cst.List | cst.Tuple):
        part = above
    match source.parent(part):
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Name() as name)]) if part is not read:
            reads = source.reads(name)
            here = source.function(read)
            is_apart = here is not None and around.isdisjoint((here, *map(source.function, reads)))
            return is_apart and bool(reads) and all(_is_handed_on(each, source) for each in reads)
    return False


def _is_handed_on(read: cst.CSTNode, source: Source) -> bool:
    """Whether a call is handed this, that hands no array back as it is, nor keeps it by its name."""
    match above := source.parent(read):
        case cst.Arg():
            call = source.parent(above)
            if not isinstance(call, cst.Call) or _called(call) in _KEEPS | _HANDS_ON | _COPIES:
                return False
            return not gives_back(call, above, source)
    return False


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
                if not isinstance(call, cst.Call):
                    return False
                if _called(call) not in _HANDS_ON and not gives_back(call, above, source):
                    return _called(call) in _KEEPS
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
