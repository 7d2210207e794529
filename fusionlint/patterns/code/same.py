"""Whether code means at one place what it means at another: what a fix copies, and what reads like something else.

In: expressions of a Source, the one evaluated first. Out: yes only where nothing is seen that could make it no.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from fusionlint.patterns.code.at import holds, inside, names_read
from fusionlint.source.facts import CONSTRUCTORS, last_name
from fusionlint.source.tree import Source
from fusionlint.source.walk import dotted

# What changes a list where it stands, and what changes a list or a dict that it is asked of.
CHANGES_A_LIST = frozenset(("append", "clear", "extend", "insert", "pop", "remove", "reverse", "sort"))
_CHANGES = CHANGES_A_LIST | {"popitem", "setdefault", "update"}


def is_same_at(node: cst.CSTNode, there: cst.CSTNode, source: Source, *, dropped: cst.Name | None = None) -> bool:
    """Whether each name that `node` reads is the same variable for code at `there`, which runs later, and has the same
    value then; `dropped` is a name whose assignment is not to stay."""
    return all(_is_same_name(name, there, source, dropped) for name in names_read(node))


def is_unchanged_between(one: cst.BaseExpression, other: cst.BaseExpression, source: Source) -> bool:
    """Whether both say the same of the same values: no name in them is another variable or written anew in between, no
    field assigned, and nothing is called, which may give something else each time."""
    text = source.code(one)
    if text != source.code(other) or holds(one, cst.Call):
        return False
    return is_same_at(one, other, source) and (isinstance(one, cst.Name) or _is_kept(text, one, other, source))


def _is_same_name(name: cst.Name, there: cst.CSTNode, source: Source, dropped: cst.Name | None) -> bool:
    bound = source.facts.lookup(source.scope(name), name.value)
    if bound != source.facts.lookup(source.scope(there), name.value):
        return False
    if bound is None or bound[1].kind in ("import", "function", "class"):
        return True
    first, last = source.order(name), source.order(there)
    is_called_later = source.function(name) is not source.function(there)
    around = {*source.ancestors(name)}
    again = [above for above in source.ancestors(there) if isinstance(above, cst.For | cst.While)]
    loops = [loop for loop in again if loop not in around]
    for use in source.writes(name):
        if use.node is dropped:
            continue
        if source.scope(use.node) != (bound[0] if bound else ""):
            return False  # by `nonlocal` or `global`: whenever that function is called
        if first < use.order and (use.order < last or is_called_later):
            return False
        if any(loop in source.ancestors(use.node) for loop in loops):
            return False
    return True


def _is_kept(text: str, one: cst.BaseExpression, other: cst.BaseExpression, source: Source) -> bool:
    """Whether nothing in the function is seen to change the field or element `text`: nor does a method, called in
    between, that its class has for that."""
    function = source.function(one)
    if function is None:
        return False
    parts = [*inside(function.body)]
    if any(_is_of(source.code(target), text) for target in _targets(parts)):
        return False
    for part in parts:
        match part:
            case cst.Call(func=cst.Attribute(value=owner, attr=cst.Name(method))):
                if method in _CHANGES and _is_of(source.code(owner), text):
                    return False
                is_between = source.order(one) < source.order(part) < source.order(other)
                if dotted(owner) == "self" and is_between and _is_written_by_a_method(text, one, source):
                    return False
    return True


def _is_of(owner: str, text: str) -> bool:
    """Whether `text` is `owner`, or a part of it."""
    return text == owner or text.startswith((f"{owner}.", f"{owner}["))


def _targets(parts: list[cst.CSTNode]) -> Iterator[cst.BaseExpression]:
    """The fields and elements that statements write to, or delete."""
    for part in parts:
        match part:
            case cst.AssignTarget(target=whole) | cst.AnnAssign(target=whole) | cst.AugAssign(target=whole):
                pass
            case cst.For(target=whole) | cst.Del(target=whole) | cst.AsName(name=whole):
                pass
            case _:
                continue
        yield from (each for each in inside(whole) if isinstance(each, cst.Attribute | cst.Subscript))


def _is_written_by_a_method(text: str, node: cst.CSTNode, source: Source) -> bool:
    """Whether a method of the class around, but for what makes an object, assigns the field `text`."""
    owner = source.facts.class_around(source.scope(node))
    for field in source.fields_called(text, owner):
        above = source.parent(field)
        is_target = isinstance(above, cst.AssignTarget | cst.Element) or (
            isinstance(above, cst.AugAssign | cst.AnnAssign) and above.target is field
        )
        if is_target and last_name(source.scope(field)) not in CONSTRUCTORS:
            return True
    return False
