"""Whether a choice has probabilities at all: of what is None by default somebody has to be seen to give them.

In: the `p` of a choice of a Source. Out: whether some call gives it, and whether it may be None where the choice is.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from fusionlint.patterns.code.at import inside, is_none, names_read
from fusionlint.patterns.code.unpacked import assigned
from fusionlint.source.facts import Value
from fusionlint.source.places import Place
from fusionlint.source.tree import Source
from fusionlint.source.walk import dotted


def is_given(p: cst.BaseExpression, source: Source) -> bool:
    """Whether there are probabilities: of a parameter that is None by default, or a field that is made of one, some
    call has to be seen that hands them on, unless there are no calls and the code asks whether it is None. Who calls a
    method is seldom seen."""
    if isinstance(p, cst.Attribute):
        return _is_field_given(p, source)
    parameter = source.binder(p) if isinstance(p, cst.Name) else None
    match parameter:
        case cst.Param(name=cst.Name(name), default=cst.Name("None")):
            function = source.nearest(parameter, cst.FunctionDef)
            if function is None or source.scope(function) in source.facts.raw.classes:
                return True
            calls = _calls_of(source.body_place(function), source)
            place = _place(parameter, function)
            return any(_hands(call, name, place) for call in calls) or (not calls and _asks(function, name))
    return True


def may_be_none(node: cst.CSTNode, p: cst.BaseExpression, source: Source) -> bool:
    """Whether there may be no probabilities where `node` is: a parameter is None by default, `p if there is one else
    None`, or a field, `self.p`, of which the code around asks whether it is None."""
    match source.meant(p):
        case cst.IfExp(body=body, orelse=orelse) if is_none(body) or is_none(orelse):
            return True
        case cst.Attribute() as field:
            return _is_asked(field, source) and not _is_behind_a_test(node, dotted(field), source)
    parameter = source.binder(p) if isinstance(p, cst.Name) else None
    return isinstance(parameter, cst.Param) and is_none(parameter.default)


def _is_field_given(field: cst.Attribute, source: Source) -> bool:
    """Whether objects of the class around are made with what `field` holds; True where none is seen to be made."""
    around = source.facts.class_around(source.scope(field))
    parameter = _made_of(field, around, source) if around else None
    if parameter is None:
        return True
    maker = source.owner(parameter)
    place = _place(parameter, maker) if isinstance(maker, cst.FunctionDef) else None
    calls = _calls_of(Place(source.path, around), source)
    # An object is no argument of the call that makes it.
    return not calls or any(_hands(call, parameter.name.value, place and place - 1) for call in calls)


def _made_of(field: cst.Attribute, around: str, source: Source) -> cst.Param | None:
    """The parameter of the class's `__init__`, None by default, that `field` is made of: `self.p = p`."""
    for written in source.fields_called(dotted(field), around):
        value = assigned(written, source)
        if value is None or not source.scope(written).endswith(".__init__"):
            continue
        found = (source.parameter(name) for name in names_read(value))
        made = next((each for each in found if each is not None and is_none(each.default)), None)
        if made is not None:
            return made
    return None


def _calls_of(place: Place, source: Source) -> list[Value]:
    return [call.value for _, call in source.project.calls_of(source.project.name_of(place))]


def _place(parameter: cst.Param, function: cst.FunctionDef) -> int | None:
    return next((i for i, each in enumerate(function.params.params) if each is parameter), None)


def _asks(function: cst.FunctionDef, name: str) -> bool:
    """Whether something is done by whether the parameter is None: `if p is None: ...`."""
    tests = (node.test for node in inside(function.body) if isinstance(node, cst.If | cst.IfExp))
    return any(name == read.value for test in tests for read in names_read(test))


def _hands(call: Value, name: str, place: int | None) -> bool:
    return name in dict(call.keywords) or (place is not None and len(call.arguments) > place)


def _is_asked(field: cst.Attribute, source: Source) -> bool:
    """Whether the class or function around compares `field` with None."""
    name, around = dotted(field), source.facts.class_around(source.scope(field))
    for read in source.nodes_with(field.attr.value, cst.Attribute):
        if isinstance(read, cst.Attribute) and dotted(read) == name and _compared(read, source):
            is_near = source.facts.class_around(source.scope(read)) == around
            if source.function(read) is source.function(field) or (is_near and name.startswith("self.")):
                return True
    return False


def _compared(read: cst.CSTNode, source: Source) -> cst.BaseCompOp | None:
    """The operator by which this is compared with None."""
    match source.parent(read):
        case cst.Comparison(left=left, comparisons=[cst.ComparisonTarget(operator=operator, comparator=other)]) if (
            left is read and is_none(other)
        ):
            return operator
    return None


def _is_behind_a_test(node: cst.CSTNode, name: str, source: Source) -> bool:
    """Whether `node` stands in the branch that runs where what is called `name` is not None."""
    return any(isinstance(operator, cst.IsNot if branch else cst.Is) for branch, operator in _tests(node, name, source))


def _tests(node: cst.CSTNode, name: str, source: Source) -> Iterator[tuple[bool, cst.BaseCompOp | None]]:
    """The comparisons of it with None by which the branches around are taken, each with whether it has to hold."""
    for child, above in source.outward(node):
        if isinstance(above, cst.If | cst.IfExp) and child in (above.body, above.orelse):
            match above.test:
                case cst.Comparison(left=left) if dotted(left) == name:
                    yield child is above.body, _compared(left, source)
