"""One turn of a `fori_loop` or `while_loop`: what it counts by, what it carries, and what it does to it.

In: the call of the loop. Out: whether it goes over an array element by element, as a loop on the host would.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import libcst as cst

from fusionlint.patterns.code.at import at_write, elements, inside, is_literal, names_in
from fusionlint.patterns.code.calls import argument
from fusionlint.patterns.code.elementwise import CHOICES
from fusionlint.patterns.code.functions import definitions
from fusionlint.patterns.loops.step_writes import carried, lone_write, result
from fusionlint.patterns.runs.loop_bodies import bodies_of, is_small
from fusionlint.patterns.values.array_sizes import FILLED
from fusionlint.source.tree import Source
from fusionlint.source.walk import children

FORI, WHILE = "jax.lax.fori_loop", "jax.lax.while_loop"
_INIT = {FORI: 3, WHILE: 2}
_SCALARS = frozenset(
    ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "bfloat16", "float32",
     "float64", "bool_", "array", "asarray")
)  # fmt: skip
_CONSTANTS = frozenset(("jax.numpy.inf", "numpy.inf", "math.inf", "jax.numpy.nan", "numpy.nan"))
_DEPTH = 3


class Turn(NamedTuple):
    """The body of a loop, the variable that counts its turns, the parts of its carry and what becomes of each."""

    body: cst.FunctionDef | cst.Lambda
    counter: cst.Name
    carried: tuple[cst.Name, ...]
    returned: tuple[cst.BaseExpression, ...]


class Walk(NamedTuple):
    """A loop over the elements of an array: its turn, the element that is read, and whether one is written."""

    turn: Turn
    read: cst.Subscript
    is_writing: bool


def walk(loop: cst.Call, source: Source) -> Walk | None:
    """How `loop` goes over an array one element or row at a time, doing scalar work with each; else None."""
    unroll = argument(loop, 4, "unroll")
    if unroll is not None or writes_kernels(source):
        return None
    bodies = bodies_of(loop, source)
    functions = definitions(bodies, source)
    if len(functions) != 1 or len(bodies) != 1 or not is_small(source.project, bodies[0]):
        return None
    turn = turn_of(loop, functions[0], source)
    if turn is None or (read := _element(turn)) is None or _is_sliced(read, source):
        return None
    if source.calls(loop, FORI) and lone_write(turn.body, loop, source) is not None:
        return None  # no step needs another: write-in-fori-loop
    kinds = _kinds(loop, turn, source)
    if "scalar" not in kinds and "written" not in kinds:
        return None
    # A `fori_loop` that also carries whole arrays does whole arrays' work.
    return None if source.calls(loop, FORI) and "other" in kinds else Walk(turn, read, "written" in kinds)


def turn_of(loop: cst.Call, body: cst.FunctionDef | cst.Lambda, source: Source) -> Turn | None:
    """The turn that `body` makes, where its carry is taken apart and put together again in plain sight."""
    names = [parameter.name for parameter in body.params.params]
    returned = result(body)
    if returned is None or len(names) != (2 if source.calls(loop, FORI) else 1):
        return None
    parts = carried(names[-1], source)
    whole = source.value(returned) if isinstance(returned, cst.Name) and len(parts) > 1 else returned
    given = tuple(e.value for e in whole.elements) if isinstance(whole, cst.Tuple) else (returned,)
    if len(given) != len(parts):
        return None
    if len(names) == 2:
        return Turn(body, names[0], parts, given)
    counter = next((n for n, value in zip(parts, given, strict=True) if _is_next(n, value, source)), None)
    return Turn(body, counter, parts, given) if counter is not None else None


def writes_kernels(source: Source) -> bool:
    """Whether the file writes kernels of its own, whose loops run inside them."""
    bindings = (binding for names in source.facts.bindings.values() for binding in names.values())
    return any(b.kind == "import" and b.target.startswith("jax.experimental.pallas") for b in bindings)


def _is_next(counter: cst.Name, value: cst.BaseExpression, source: Source) -> bool:
    """Whether `value` is the counter and one."""
    match value:
        case cst.BinaryOperation(left=cst.Name() as left, operator=cst.Add() | cst.Subtract(), right=cst.Integer("1")):
            return source.written(left) is counter
        case cst.Name():
            written = source.written(value)
            match source.parent(written) if written is not None else None:
                case cst.AugAssign(operator=cst.AddAssign() | cst.SubtractAssign(), value=cst.Integer("1")):
                    return value.value == counter.value
            meant = source.value(value)
            return meant is not None and not isinstance(meant, cst.Name) and _is_next(counter, meant, source)
    return False


def _element(turn: Turn) -> cst.Subscript | None:
    """The first read of one element or row, by the counter or by what is made of it."""
    counted = {turn.counter.value}
    for node in inside(turn.body.body):
        match node:
            case cst.Assign(targets=[cst.AssignTarget(target=cst.Name(name))], value=value):
                if _is_counted(value, counted):
                    counted.add(name)
    return next((read for read in _reads(turn.body.body) if _is_by(read, counted)), None)


def _is_sliced(read: cst.Subscript, source: Source) -> bool:
    """Whether parts of what is read are taken along its own axes, `row[:, 0]`: then a turn works on whole arrays."""
    name = source.assigned_name(read)
    above = (source.parent(again) for again in source.reads(name)) if name is not None else ()
    return any(
        isinstance(taken, cst.Subscript) and any(isinstance(part, cst.Slice) for part in elements(taken.slice))
        for taken in above
    )


def _is_counted(value: cst.BaseExpression, counted: set[str]) -> bool:
    """Whether `value` is one element by the counter, or arithmetic with the counter alone: one number, no indices."""
    if isinstance(value, cst.Subscript):
        return _is_by(value, counted)
    names = list(names_in(value))
    return bool(names) and all(name.value in counted for name in names)


def _reads(node: cst.CSTNode) -> Iterator[cst.Subscript]:
    """The subscripts in `node` that read an array."""
    if isinstance(node, cst.Subscript):
        match node.value:
            case cst.Attribute(attr=cst.Name("at" | "shape")) | cst.List() | cst.Tuple():
                pass
            case _:
                yield node
    for child in children(node):
        yield from _reads(child)


def _is_by(read: cst.Subscript, counted: set[str]) -> bool:
    """Whether the place that is read depends on the counter, on no axis as a slice."""
    found = False
    for part in elements(read.slice):
        mentions = any(n.value in counted for n in names_in(part))
        if mentions and isinstance(part, cst.Slice):
            return False
        found = found or mentions
    return found


def _kinds(loop: cst.Call, turn: Turn, source: Source) -> set[str]:
    """What becomes of the parts of the carry: "scalar", "written" in places, or "other"."""
    name = source.qualified_name(loop.func) or ""
    given = argument(loop, _INIT[name], "init_val")
    given = source.meant(given)
    first: list[cst.BaseExpression | None] = [None] * len(turn.carried)
    if isinstance(given, cst.Tuple) and len(given.elements) == len(turn.carried) > 1:
        first = [element.value for element in given.elements]
    elif len(turn.carried) == 1:
        first = [given]
    kinds = set()
    for part, value, start in zip(turn.carried, turn.returned, first, strict=True):
        if part is turn.counter or (isinstance(value, cst.Name) and source.written(value) is part):
            continue
        if is_written(value, source):
            kinds.add("other" if _holds_arrays(start, source) else "written")
        else:
            kinds.add("scalar" if _is_scalar(start, source) else "other")
    return kinds


def _holds_arrays(first: cst.BaseExpression | None, source: Source) -> bool:
    """Whether what the loop begins with holds an array in each of its places: `jnp.zeros((k,) + x.shape)`, `(k,
    *x.shape)`."""
    made = source.meant(first)
    shape = argument(made, 0, "shape") if source.calls(made, *FILLED) else None
    shape = source.meant(shape)
    match shape.body if isinstance(shape, cst.IfExp) else shape:
        case cst.BinaryOperation(left=cst.Tuple(), operator=cst.Add(), right=cst.Attribute(attr=cst.Name("shape"))):
            return True
        case cst.Tuple(elements=[*_, cst.StarredElement(value=cst.Attribute(attr=cst.Name("shape")))]):
            return True
    return False


def is_written(value: cst.BaseExpression, source: Source, depth: int = _DEPTH) -> bool:
    """Whether `value` is an array with one place written, or a choice between that and what was there."""
    if isinstance(value, cst.Name) and depth:
        meant = source.value(value)
        return meant is not None and is_written(meant, source, depth - 1)
    if source.calls(value, *CHOICES):
        return bool(depth) and any(is_written(arg.value, source, depth - 1) for arg in value.args[1:])
    write = at_write(value)
    return write is not None and not any(isinstance(part, cst.Slice) for part in write.index)


def _is_scalar(first: cst.BaseExpression | None, source: Source, depth: int = _DEPTH) -> bool:
    """Whether what the loop begins with is one number."""
    match first:
        case None | cst.Tuple() | cst.List():
            return False
        case cst.Name(value=name) if name not in ("True", "False"):
            meant = source.value(first)
            return bool(depth) and meant is not None and _is_scalar(meant, source, depth - 1)
        case cst.Attribute():
            return source.qualified_name(first) in _CONSTANTS
        case cst.UnaryOperation(expression=inner):
            return _is_scalar(inner, source, depth)
        case cst.Call(func=called, args=[cst.Arg(value=value), *_]):
            module, _, kind = (source.qualified_name(called) or "").rpartition(".")
            return module in ("jax.numpy", "numpy") and kind in _SCALARS and _is_scalar(value, source, depth)
    return is_literal(first)
