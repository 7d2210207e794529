"""Where the turns of a `while_loop` lead: from a place to what stands there, down the levels of a tree, off a stack.

In: the body of a loop of a Source, and its condition. Where a walk leads nobody knows before: it has no array form.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import libcst as cst

from fusionlint.patterns.code.at import Part, at_write, elements, inside, names_in
from fusionlint.patterns.code.elementwise import CHOICES
from fusionlint.patterns.code.functions import Function, function_named
from fusionlint.patterns.loops.step_writes import carried, handed_on, result
from fusionlint.source.tree import Source

_UPDATE = "jax.lax.dynamic_update_slice"
# A helper of a turn is seldom further away than this.
_HELPERS = 2
# A choice seldom stands in more choices than this.
_CHOICES = 4


def follows(body: Function, source: Source) -> bool:
    """Whether the next place is what stands at this one, `i = parent[i]`: where it leads nobody knows before."""
    return any(_is_read_at(value, place, source) for place, value in handed_on(body, source))


def _is_read_at(value: cst.BaseExpression, place: cst.Name, source: Source) -> bool:
    meant = source.meant(value)
    match meant:
        case cst.Call(args=[_, cst.Arg(value=one), cst.Arg(value=other)]) if source.calls(meant, *CHOICES):
            return any(_is_read_at(part, place, source) for part in (one, other))
        case cst.Call(func=called) if (function := function_named(called, source)) is not None:
            returned = result(function)
            return returned is not None and any(
                _is_read_at(returned, parameter, source) for parameter in _received(meant, place, function)
            )
        case cst.Subscript(value=array, slice=slices) if (
            not isinstance(array, cst.Attribute) or array.attr.value != "at"
        ):
            read = (node for part in elements(slices) for node in inside(part))
            return any(isinstance(node, cst.Name) and node.value == place.value for node in read)
    return False


def descends(test: Function, body: Function, source: Source) -> bool:
    """Whether the loop goes on by a place that each turn doubles or halves, `i < size` of `i = 2 * i + right`: the
    levels of a tree, as many for all."""
    if not test.params.params or not body.params.params:
        return False
    asked, here = (carried(one.params.params[-1].name, source) for one in (test, body))
    match result(test):
        case cst.Comparison(left=cst.Name(place)) if len(asked) == len(here):
            same = {own.value for name, own in zip(asked, here, strict=True) if name.value == place}
            return any(_is_of_a_level(part, same) for part in inside(body.body))
    return False


def halves(body: Function, source: Source) -> bool:
    """Whether a number of the carry is handed on halved or doubled, `return t // 2, place`: as many turns as that takes
    are few, and nearly as many for all. Or it may be halved: a walk up and down a tree, as long as it gets."""
    for place, value in handed_on(body, source):
        if _is_of_a_level(source.meant(value), {place.value}):
            return True
        if any(_goes_up(one) and _is_of_a_level(one, {place.value}) for one in _chosen(value, source)):
            return True
    return False


def _goes_up(value: cst.BaseExpression) -> bool:
    return isinstance(value, cst.BinaryOperation) and isinstance(value.operator, cst.FloorDivide | cst.RightShift)


def _chosen(value: cst.BaseExpression, source: Source, depth: int = _CHOICES) -> Iterator[cst.BaseExpression]:
    """What `value` may be: both sides of a choice, and of those in it."""
    meant = source.meant(value)
    match meant:
        case cst.Call(args=[_, cst.Arg(value=one), cst.Arg(value=other)]) if depth and source.calls(meant, *CHOICES):
            yield from _chosen(one, source, depth - 1)
            yield from _chosen(other, source, depth - 1)
        case _:
            yield meant


def _is_of_a_level(part: cst.CSTNode, names: set[str]) -> bool:
    """`i << 1`, `2 * i`, `i // 2`, `(i - 1) // 2`; of the step of a line search `0.5 * t`, `t / 2.0`."""
    match part:
        case cst.BinaryOperation(
            left=cst.BinaryOperation(left=cst.Name(place), operator=cst.Add() | cst.Subtract(), right=cst.Integer()),
            operator=cst.FloorDivide() | cst.RightShift(),
            right=cst.Integer(),
        ):
            return place in names
        case (
            cst.BinaryOperation(
                left=cst.Name(place),
                operator=cst.LeftShift() | cst.RightShift() | cst.Multiply() | cst.FloorDivide() | cst.Divide(),
                right=cst.Integer() | cst.Float(),
            )
            | cst.BinaryOperation(left=cst.Integer() | cst.Float(), operator=cst.Multiply(), right=cst.Name(place))
        ):
            return place in names
    return False


def walks(body: Function, source: Source) -> bool:
    """Whether a turn takes the next place off a stack that it carries, `stack[top]`, and puts others there: a walk over
    a tree, of which nobody knows before where it leads."""
    if not body.params.params:
        return False
    parts = carried(body.params.params[-1].name, source)
    stacks, names = {part.value for part in parts if _is_written_by(body, part, source)}, {part.value for part in parts}
    reads = inside(body.body, cst.Subscript)
    return any(_is_on_top(read, stacks, names) for read in reads)


def goes_on_from(body: Function, source: Source) -> bool:
    """Whether a turn reads an array of the carry at one place, `board[there]`, and writes to the same array at another:
    what the next finds is what this one left, and their order matters."""
    parts = carried(body.params.params[-1].name, source) if body.params.params else ()
    names = {part.value for part in parts}
    written = [(array, index) for array, index in _written(body, source) if array in names]
    return any(_is_read_elsewhere(node, written) for node in inside(body.body, cst.Subscript))


def _written(body: Function, source: Source) -> Iterator[tuple[str, Sequence[Part]]]:
    """What a turn writes to, and the index."""
    for node in inside(body.body):
        match node:
            case cst.Call(args=[cst.Arg(value=cst.Name(array)), _, cst.Arg(value=cst.Tuple(elements=starts))]):
                if source.calls(node, _UPDATE):
                    yield array, [start.value for start in starts]
            case cst.Call() if (write := at_write(node)) is not None and isinstance(write.array, cst.Name):
                yield write.array.value, write.index


def _is_read_elsewhere(read: cst.Subscript, written: Sequence[tuple[str, Sequence[Part]]]) -> bool:
    if not isinstance(read.value, cst.Name):
        return False
    here = elements(read.slice)
    return any(
        isinstance(part, cst.Name) and isinstance(other, cst.Name) and part.value != other.value
        for array, index in written
        if array == read.value.value and len(index) == len(here)
        for part, other in zip(here, index, strict=True)
    )


def _is_written_by(function: Function, array: cst.Name, source: Source, depth: int = _HELPERS) -> bool:
    """Whether a function writes to what it calls so, itself or by a helper, `push(stack, top, child)`."""
    for node in inside(function.body):
        if _array_written(node) == array.value:
            return True
        helper = function_named(node.func, source) if isinstance(node, cst.Call) and depth else None
        if isinstance(node, cst.Call) and helper is not None:
            received = _received(node, array, helper)
            if any(_is_written_by(helper, parameter, source, depth - 1) for parameter in received):
                return True
    return False


def _array_written(node: cst.CSTNode) -> str | None:
    """stack, of `stack.at[top + 1].set(child)`."""
    match node:
        case cst.Subscript(value=cst.Attribute(value=cst.Name(array), attr=cst.Name("at"))):
            return array
    return None


def _is_on_top(read: cst.Subscript, stacks: set[str], names: set[str]) -> bool:
    match read:
        case cst.Subscript(value=cst.Name(array), slice=[cst.SubscriptElement(slice=cst.Index(value=cst.Name(top)))]):
            return array in stacks and top in names and top != array
    return False


def _received(call: cst.Call, place: cst.Name, function: Function) -> Iterator[cst.Name]:
    """What `function` calls what `call` hands it of `place`, in its position."""
    for parameter, arg in zip(function.params.params, call.args, strict=False):
        if isinstance(arg.value, cst.Name) and arg.value.value == place.value and arg.keyword is None and not arg.star:
            yield parameter.name


def searches(function: Function) -> bool:
    """Whether the function reads an array where its carry says."""
    if not function.params.params:
        return False
    carry = function.params.params[-1].name
    names = {carry.value}
    for node in inside(function.body):
        match node:
            case cst.Assign(targets=[cst.AssignTarget(target=cst.Tuple(elements=parts))], value=cst.Name(value)):
                if value == carry.value:
                    names.update(part.value.value for part in parts if isinstance(part.value, cst.Name))
    reads = inside(function.body, cst.Subscript)
    return any(
        name.value in names
        for read in reads
        if not isinstance(read.value, cst.Attribute) or read.value.attr.value not in ("at", "shape")
        for part in elements(read.slice)
        for name in names_in(part)
    )
