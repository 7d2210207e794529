"""What a function takes and what it gives back, place by place, and which loops hand the one on as the other.

A place is a path through tuples: of `step(carry, x)` and `return (state, key), y`, the state is at (0, 0) of both. For
a field of an object it ends in the field's name.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import libcst as cst

from fusionlint.patterns.code.at import number_in
from fusionlint.patterns.code.elementwise import is_update, worked_on
from fusionlint.patterns.code.functions import Function, parameters
from fusionlint.source.answers import of_project
from fusionlint.source.facts import Value
from fusionlint.source.places import Place
from fusionlint.source.project import Project
from fusionlint.source.transforms import TRANSFORMS
from fusionlint.source.tree import Source
from fusionlint.source.walk import dotted

Path = tuple[int | str, ...]

# Loop -> its body's position and keyword, the number of the body's parameter that is carried, where it returns it.
_LOOPS: dict[str, tuple[int, str, int, Path]] = {
    "jax.lax.scan": (0, "f", 0, (0,)),
    "jax.lax.fori_loop": (2, "body_fun", 1, ()),
    "jax.lax.while_loop": (1, "body_fun", 0, ()),
}


class Input(NamedTuple):
    """An array that a function takes: where, what it is called, and where it is read."""

    path: Path
    name: str
    reads: tuple[cst.BaseExpression, ...]


class Output(NamedTuple):
    """Where a function gives a value back, and what it was called last."""

    path: Path
    name: str


def inputs(function: Function, source: Source) -> Iterator[Input]:
    """The parameters, what they are unpacked into at once, and the fields of objects among them that are read."""
    for number, parameter in enumerate(parameters(function)):
        yield from _inputs(parameter.name, (number,), source)


def _inputs(name: cst.Name, path: Path, source: Source) -> Iterator[Input]:
    reads = source.reads(name)
    fields: dict[str, list[cst.BaseExpression]] = {}
    for read in reads:
        match parent := source.parent(read):
            case cst.Attribute(attr=cst.Name(field)) if field not in ("T", "shape", "ndim", "dtype", "at"):
                fields.setdefault(field, []).append(parent)
            case cst.Assign(targets=[cst.AssignTarget(target=cst.Tuple(elements=targets))], value=value) if (
                value is read
            ):
                yield from _unpacked(targets, path, source)
    yield Input(path, name.value, tuple(reads))
    for field, places in fields.items():
        yield Input((*path, field), f"{name.value}.{field}", tuple(places))


def _unpacked(targets: Sequence[cst.BaseElement], path: Path, source: Source) -> Iterator[Input]:
    for number, target in enumerate(targets):
        match target:
            case cst.Element(value=cst.Name() as name):
                yield from _inputs(name, (*path, number), source)
            case cst.Element(value=cst.Tuple(elements=inner)):
                yield from _unpacked(inner, (*path, number), source)
            case cst.StarredElement():
                return


def outputs(value: cst.CSTNode, source: Source, name: str = "", depth: int = 8) -> Iterator[Output]:
    """Where the function around `value` gives it back: as it is, worked on elementwise, or in a field of an object."""
    top = worked_on(value, source)
    yield from _handed_on(top, source, name if top is value else "", depth)


def _handed_on(value: cst.CSTNode, source: Source, name: str, depth: int) -> Iterator[Output]:
    if depth == 0:
        return
    match parent := source.parent(value):
        case cst.Return():
            yield Output((), name)
        case cst.Lambda(body=body) if body is value:
            yield Output((), name)
        case cst.Assign(targets=targets):
            for stored in (target.target for target in targets):
                for read in source.reads(stored) if isinstance(stored, cst.Name) else ():
                    yield from outputs(read, source, dotted(stored), depth - 1)
        case cst.Element():
            yield from _in_tuple(parent, source, name, depth - 1)
        case cst.Arg(keyword=cst.Name(field)):
            call = source.parent(parent)
            if isinstance(call, cst.Call) and is_update(call, source):
                yield from (Output((*o.path, field), field) for o in _handed_on(call, source, "", depth - 1))


def _in_tuple(element: cst.Element, source: Source, name: str, depth: int) -> Iterator[Output]:
    values = source.parent(element)
    if isinstance(values, cst.Tuple):
        number = number_in(values.elements, element)
        # The array's own name, not the tuple's.
        yield from (Output((*o.path, number), name or o.name) for o in _handed_on(values, source, name, depth))


def is_next(output: Output, given: Input, function: Function, source: Source) -> bool:
    """Whether the next step takes as `given` what this one gives back as `output`."""
    field = output.path[-1] if output.path else None
    if isinstance(field, str) or isinstance(given.path[-1], str):
        return given.path[-1] == field
    if output.path and output.name == given.name:
        return True
    return any(before == given.path and after == output.path for before, after in _laps(function, output, source))


def _laps(function: Function, output: Output, source: Source) -> Iterator[tuple[Path, Path]]:
    """Pairs of places that a loop of the project ties together: it hands on what it got at the second as the first."""
    here = source.body_place(function)
    offset = _offset(here, source)
    for carried, returned in _bodies(source.project).get(here, ()):
        if output.path[: len(returned)] == returned:
            yield (carried + offset, *output.path[len(returned) :]), output.path
    for taken, arguments in _steps(source.project).get(here, ()):
        for number, argument in enumerate(arguments):
            if argument.name == taken:
                yield (number + offset, *output.path), output.path
            elif not argument.name and not argument.is_call and output.path:  # step(*carry)
                yield (number + offset + int(output.path[0]), *output.path[1:]), output.path


@of_project
def _bodies(project: Project) -> dict[Place, list[tuple[int, Path]]]:
    """The bodies of the project's loops: which parameter is the carry, and where in what they return it is."""
    found: dict[Place, list[tuple[int, Path]]] = defaultdict(list)
    for loop, (position, keyword, carried, returned) in _LOOPS.items():
        for place, call in project.calls_of(loop):
            handed = call.value.argument(position, keyword)
            for body in project.functions_behind(place, handed, TRANSFORMS):
                found[body].append((carried, returned))
    return found


@of_project
def _steps(project: Project) -> dict[Place, list[tuple[str, tuple[Value, ...]]]]:
    """The functions that such a body calls for its next carry: the body's name for its carry, and the arguments."""
    found: dict[Place, list[tuple[str, tuple[Value, ...]]]] = defaultdict(list)
    for body, ways in _bodies(project).items():
        function = project.function_at(body)
        for carried, returned in ways:
            for carry in _carries(project, body, returned):
                if function is None or carry.callee is None or len(function.parameters) <= carried:
                    continue
                for step in dict.fromkeys(project.functions_behind(body, carry.callee, TRANSFORMS)):
                    found[step].append((function.parameters[carried], carry.arguments))
    return found


def _carries(project: Project, body: Place, returned: Path) -> Iterator[Value]:
    """What a loop's body returns as its next carry."""
    function = project.function_at(body)
    for value in function.returns if function else ():
        carry = value.arguments[0] if returned and value.arguments and not value.is_call else value
        bound = project.value_of(body, carry.name) if carry.name else None
        yield bound.value if bound else carry


def _offset(place: Place, source: Source) -> int:
    """1 for a method, whose `self` nobody hands over."""
    function = source.project.function_at(place)
    return 1 if function and function.owner and function.parameters[:1] == ("self",) else 0
