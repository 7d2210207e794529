"""What a variable or a field holds before the calls that replace it: a few numbers, or one array twice.

In: a call and an argument that its results replace. Out: its first values, where they are written, and what they are
seen to hold. jax donates no array twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeAlias

import libcst as cst

from fusionlint.patterns.code.calls import REPLACES
from fusionlint.patterns.code.functions import function_named, returns_of
from fusionlint.patterns.code.unpacked import stored_in
from fusionlint.patterns.dispatch.jit import is_jitted
from fusionlint.patterns.runs.from_callers import given_by_callers, handed_by_callers
from fusionlint.patterns.values.how_many import how_many
from fusionlint.patterns.values.kinds import kind
from fusionlint.patterns.values.one_number import is_scalar_literal
from fusionlint.source.tree import Source
from fusionlint.source.walk import dotted

_Part: TypeAlias = "cst.Name | cst.Subscript"

_DEPTH = 4
# Fewer numbers than these, a megabyte of float32, nobody misses.
_FEW = 2**18
# What a state of flax is told that it holds besides.
_NO_ARRAYS = frozenset(("apply_fn", "tx"))
# What has as many numbers as space has axes, or one more.
_OF_SPACE = frozenset(("position", "quaternion", "rotation", "translation", "orientation", "scale"))


def held_twice(argument: cst.BaseExpression, call: cst.Call, source: Source) -> str | None:
    """The array, as it is written, that the first value of `argument` holds twice: `State(params, target=params)`."""
    for value in _firsts(argument, call, source):
        for made in _made(value, source, _DEPTH):
            if (found := _twice(made, source)) is not None:
                return found
    return None


def held_by_two(given: Iterable[tuple[cst.Call, cst.BaseExpression]], source: Source) -> str | None:
    """What the first values of two of the arguments hold, as it is written: `self.state = State(params)` beside
    `self.target = params`, `State(begun["params"])` beside `Target(begun["params"])`."""
    held: list[tuple[str, cst.BaseExpression]] = []
    for call, argument in given:
        for value in first_values(argument, call, source):
            for part in _held_by(value, source, _DEPTH):
                whole = whole_of(part, source)
                if any(other != dotted(argument) and _is_same(before, whole, source) for other, before in held):
                    return source.code(whole)
                held.append((dotted(argument), whole))
    return None


def whole_of(part: cst.BaseExpression, source: Source) -> cst.BaseExpression:
    """The field that is read of `part`: `begun.params`."""
    while isinstance(above := source.parent(part), cst.Attribute) and above.value is part:
        part = above
    return part


def _is_same(one: cst.BaseExpression, other: cst.BaseExpression, source: Source) -> bool:
    """Whether two parts that are written alike are one array: of one variable, which is not written in between."""
    if one is other or source.code(one) != source.code(other):
        return one is other
    first, second = _name_in(one), _name_in(other)
    if not isinstance(first, cst.Name) or not source.writes(first):
        return False  # `None`
    uses = source.uses(first)
    orders = sorted(use.order for use in uses if use.node in (first, second))
    return len(orders) == 2 and not any(use.is_write and orders[0] < use.order < orders[1] for use in uses)


def _name_in(part: cst.BaseExpression) -> cst.BaseExpression:
    """The variable of which this is a part."""
    while isinstance(part, cst.Attribute | cst.Subscript):
        part = part.value
    return part


def is_read_elsewhere(argument: cst.BaseExpression, call: cst.Call, source: Source) -> bool:
    """Whether what the first value of `argument` is put together of, `State(params, key)`, is read again, by its own
    name, once a call has run."""
    parts = (part for part in first_parts(argument, call, source) if isinstance(part, cst.Name))
    again = [loop for loop in source.ancestors(call) if isinstance(loop, cst.For | cst.While)]
    reads = (use for part in parts for use in source.uses(part) if not use.is_write)
    return any(
        use.order > source.order(call) or any(loop in source.ancestors(use.node) for loop in again)
        for use in reads
        if call not in source.ancestors(use.node)
    )


def first_parts(argument: cst.BaseExpression, call: cst.Call, source: Source) -> Iterator[_Part]:
    """What the first value of `argument` is put together of."""
    firsts = (value for value in first_values(argument, call, source) if not _is_of_result(value, call, source))
    return (part for value in firsts for part in _held_by(value, source, _DEPTH))


def _is_of_result(value: cst.BaseExpression, call: cst.Call, source: Source) -> bool:
    """Whether this is what `call` returned, or a part of it: `state = out.state`, of `out = step(state)`."""
    while isinstance(value, cst.Attribute):
        value = value.value
    return isinstance(value, cst.Name) and stored_in(value, source) is call


def _held_by(value: cst.BaseExpression, source: Source, depth: int) -> Iterator[_Part]:
    """The variables, or their parts by a name, whose arrays an object, a dict or a tuple holds, that is written out;
    what is called and what updates are no arrays."""
    match value:
        case cst.Name() if isinstance(meant := source.value(value), cst.Name | cst.Dict | cst.Tuple | cst.Call):
            yield value
            if depth and not (isinstance(meant, cst.Call) and not _keeps(meant.func, source)):
                yield from _held_by(meant, source, depth - 1)
        case cst.Name() if not source.is_never_assigned(value) or source.parameter(value) is not None:
            yield value
        case cst.Attribute(value=owner):
            yield from _held_by(owner, source, 0)
        case cst.Subscript(value=cst.Name(), slice=[cst.SubscriptElement(slice=cst.Index(cst.SimpleString()))]):
            yield value
        case cst.Dict(elements=elements) | cst.Tuple(elements=elements) | cst.List(elements=elements):
            for element in elements:
                yield from _held_by(element.value, source, depth)
        case cst.Call(func=function, args=args) if _keeps(function, source):
            for arg in () if any(_are_inputs(arg.value, source) for arg in args) else args:
                if not (arg.keyword is not None and arg.keyword.value in _NO_ARRAYS):
                    yield from _held_by(arg.value, source, depth)


def _keeps(function: cst.BaseExpression, source: Source) -> bool:
    """Whether this makes an object of what it is handed: jax's own functions that begin so make arrays."""
    return _is_constructor(function) and not (source.qualified_name(function) or "").startswith("jax.")


def _are_inputs(value: cst.BaseExpression, source: Source) -> bool:
    """Whether arrays are made of these, and of the definition beside them: `Model.create(net, inputs=[key, example])`
    calls `net.init(key, example)`, and holds neither."""
    match value:
        case (
            cst.List(elements=[cst.Element(value=first), _, *_]) | cst.Tuple(elements=[cst.Element(value=first), _, *_])
        ):
            return kind(first, source) == "key"
    return False


def _firsts(argument: cst.BaseExpression, call: cst.Call, source: Source) -> Iterator[cst.BaseExpression]:
    """The first values of a variable, and of what callers hand over for it."""
    yield from first_values(argument, call, source)
    for outer, arg in handed_by_callers(argument, call, source):
        if not arg.star:
            yield from first_values(arg.value, outer, source)


def is_of_numbers(argument: cst.BaseExpression, call: cst.Call, source: Source) -> bool:
    """Whether the first value of `argument` is a dict of single numbers, `{"mass": jnp.asarray(1.0)}`, or of where
    something is, or is seen to be small: nothing to donate."""
    values = [argument, *first_values(argument, call, source), *given_by_callers(argument, call, source)]
    return any(_is_tiny(value, source) or _holds_numbers(value, source, _DEPTH) for value in values)


def _is_tiny(value: cst.BaseExpression, source: Source) -> bool:
    count = how_many(value, source)
    return count is not None and count < _FEW


def _holds_numbers(value: cst.BaseExpression, source: Source, depth: int) -> bool:
    match value:
        case cst.Name() if depth and (meant := source.value(value)) is not None:
            return _holds_numbers(meant, source, depth - 1)
        case cst.BinaryOperation(left=left, operator=cst.BitOr()):
            return _holds_numbers(left, source, depth)
        case cst.Dict(elements=[_, *_] as elements):
            return all(isinstance(part, cst.DictElement) and _is_small(part, source) for part in elements)
    return False


def _is_small(part: cst.DictElement, source: Source) -> bool:
    is_named = isinstance(part.key, cst.SimpleString) and part.key.evaluated_value in _OF_SPACE
    meant = source.meant(part.value)
    return is_named or is_scalar_literal(meant, source)


def first_values(argument: cst.BaseExpression, call: cst.Call, source: Source) -> Iterator[cst.BaseExpression]:
    """What is written to `argument`, a variable or a field of `self`, elsewhere than by `call`."""
    if isinstance(argument, cst.Name):
        written: Iterator[cst.CSTNode | None] = (source.parent(use.node) for use in source.writes(argument))
    else:
        owner = source.facts.class_around(source.scope(call))
        written = (source.parent(node) for node in source.fields_called(dotted(argument), owner))
    for target in written:
        if isinstance(target, cst.Element):
            yield from _beside(target, call, source)
            continue
        statement = source.parent(target) if isinstance(target, cst.AssignTarget) else target
        if isinstance(statement, cst.Assign) and statement.value is not call:
            yield statement.value


def _beside(target: cst.Element, call: cst.Call, source: Source) -> Iterator[cst.BaseExpression]:
    """What stands where `target` does, in `a, b = 1, 2`, or in what a function of the file returns."""
    targets = source.parent(target)
    above = source.parent(targets) if targets is not None else None
    statement = source.parent(above) if isinstance(above, cst.AssignTarget) else None
    match targets, statement:
        case cst.Tuple(elements=names), cst.Assign(value=cst.Tuple(elements=values)) if len(names) == len(values):
            yield values[list(names).index(target)].value
        case cst.Tuple(elements=names), cst.Assign(value=cst.Call(func=function) as made) if made is not call:
            defined = function_named(function, source)
            returned = returns_of(defined, source) if isinstance(defined, cst.FunctionDef) else ()
            for each in returned if not is_jitted(function, source) else ():
                if isinstance(each.value, cst.Tuple) and len(each.value.elements) == len(names):
                    yield each.value.elements[list(names).index(target)].value


def _made(value: cst.BaseExpression, source: Source, depth: int) -> Iterator[cst.Call]:
    """The calls that make `value`: itself, what its name was written with, what a function of the file returns."""
    if depth == 0:
        return
    match value:
        case cst.Name() if (meant := source.value(value)) is not None:
            yield from _made(meant, source, depth - 1)
        case cst.Call(func=function):
            yield value
            defined = function_named(function, source)
            # What a compiled function returns twice are two arrays.
            if isinstance(defined, cst.FunctionDef) and not is_jitted(function, source):
                for value in (part.value for part in returns_of(defined, source) if part.value is not None):
                    yield from _made(value, source, depth - 1)


def _twice(made: cst.Call, source: Source, depth: int = _DEPTH) -> str | None:
    """The array that an object made by `made` holds in two of its fields."""
    if not _is_constructor(made.func) or depth == 0:
        return None
    seen: set[cst.Name] = set()
    for arg in made.args:
        if (first := _same_as(arg.value, source)) is not None:
            if first in seen:
                return source.code(arg.value)
            seen.add(first)
        inner = source.meant(arg.value)
        if isinstance(inner, cst.Call) and (found := _twice(inner, source, depth - 1)) is not None:
            return found
    return None


def _is_constructor(function: cst.BaseExpression) -> bool:
    """Whether a call of `function` keeps what it is given as it is: a class, or `replace` of an object of one."""
    match function:
        case cst.Name(value=last) | cst.Attribute(attr=cst.Name(value=last)) if last[:1].isupper() or last in REPLACES:
            return True
        case cst.Attribute(value=owner, attr=cst.Name(value="create")):
            return dotted(owner).rpartition(".")[2][:1].isupper()
    return False


def _same_as(value: cst.BaseExpression, source: Source, depth: int = _DEPTH) -> cst.Name | None:
    """The variable that `value` is another name of, where a call has filled it."""
    meant = source.value(value) if isinstance(value, cst.Name) else None
    if isinstance(value, cst.Name) and isinstance(meant, cst.Call):
        return source.written(value)
    return _same_as(meant, source, depth - 1) if isinstance(meant, cst.Name) and depth else None
