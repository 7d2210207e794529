"""What a name was written with, also where several are written at once: `a, b = x, y`.

In: a name of a Source. Out: the value that is unpacked, or the part of it that the name stands for.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from fusionlint.patterns.code.at import Part, number_in
from fusionlint.source.tree import Source
from fusionlint.source.walk import dotted


def assignment(target: cst.CSTNode | None, source: Source) -> cst.Assign | None:
    """The statement `target = value`, of all that its target is: a name, a field, a tuple of names."""
    above = source.parent(target) if target is not None else None
    statement = source.parent(above) if isinstance(above, cst.AssignTarget) else None
    return statement if isinstance(statement, cst.Assign) else None


def assigned(target: cst.CSTNode | None, source: Source) -> cst.BaseExpression | None:
    """What such a statement stores; None where it is stored otherwise."""
    statement = assignment(target, source)
    return statement.value if statement is not None else None


def kept_in(field: cst.Attribute, source: Source) -> Iterator[cst.BaseExpression]:
    """What the class around stores in a field of its objects, `self.x`, wherever it does."""
    for written in source.fields_called(dotted(field), source.facts.class_around(source.scope(field))):
        value = assigned(written, source)
        if value is not None:
            yield value


def bound_by(target: cst.BaseExpression) -> Iterator[cst.Name]:
    """The names that a target binds: those of `a, (b, *rest)` one by one, of `s.a, x[i]` none."""
    match target:
        case cst.Name():
            yield target
        case cst.Tuple(elements=elements) | cst.List(elements=elements):
            for element in elements:
                yield from bound_by(element.value)


def storing(name: cst.Name, source: Source) -> cst.Assign | None:
    """The statement that a variable was last written by, alone or with others: `last, (xs, ys) = ...`."""
    above: cst.CSTNode | None = source.written(name)
    while isinstance(above, cst.Name | cst.Element | cst.Tuple | cst.List | cst.AssignTarget):
        above = source.parent(above)
    return above if isinstance(above, cst.Assign) else None


def put(name: cst.Name, source: Source) -> cst.BaseExpression | None:
    """What `name = value` and `name += value` put in, or add to, a variable."""
    above = source.parent(name)
    return above.value if isinstance(above, cst.AugAssign) else assigned(name, source)


def unpacked(name: cst.Name | None, source: Source) -> cst.BaseExpression | None:
    """What `a, b = value` unpacks to `name`, where that is written."""
    element = source.parent(name) if name is not None else None
    several = source.parent(element) if isinstance(element, cst.Element) else None
    return assigned(several, source) if isinstance(several, cst.Tuple) else None


def stored_in(name: cst.Name, source: Source) -> cst.BaseExpression | None:
    """What the variable that `name` reads holds, or, where it is one of several, what all of them are unpacked from."""
    return source.value(name) or unpacked(source.written(name), source)


def unpacked_at(name: cst.Name | None, source: Source) -> tuple[cst.BaseExpression, int, int] | None:
    """The same with the place that `name` has, counted from 0, and among how many."""
    value, element = unpacked(name, source), source.parent(name) if name is not None else None
    several = source.parent(element) if element is not None else None
    if value is None or not isinstance(several, cst.Tuple):
        return None
    return value, number_in(several.elements, element), len(several.elements)


def meant_in_the_end(part: Part, source: Source) -> Part:
    """What a name stands for, through names of names, where `source.meant` goes one step; anything else as it is."""
    for _ in range(3):
        if not isinstance(part, cst.Name) or (value := source.value(part)) is None:
            break
        part = value
    return part
