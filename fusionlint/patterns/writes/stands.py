"""What stands on an axis of an index: all of it, a slice, one number, many places, or nothing that anybody sees.

In: a part of an index in a Source. An exact rewrite asks for one of the seen ones; of what is not seen only words that
hold for a number and for an array alike are said.
"""

from __future__ import annotations

import re
from enum import Enum, auto

import libcst as cst

from fusionlint.lazily import regex
from fusionlint.patterns.code.at import Part, constant, inside, is_whole, names_in
from fusionlint.patterns.code.calls import argument
from fusionlint.patterns.code.constants import is_called_constant
from fusionlint.patterns.runs.loop_bodies import is_counted_body
from fusionlint.patterns.values.kinds import kind
from fusionlint.patterns.writes.axis import LAYOUT, SLICES, is_called_a_slice, is_called_an_array
from fusionlint.patterns.writes.many import is_many
from fusionlint.source.tree import Source
from fusionlint.source.walk import dotted

# A name seldom stands for more names than this.
_DEPTH = 6
# One letter counts: `i`, `t`.
_COUNTER = 1
# A table of numbers, one under each name: `INDEX["density"]`.
_TABLE = regex(r"(^|[_.])(index|idx)$", re.IGNORECASE)
# What makes one number of a whole array, where no axis is given.
_FOUND = tuple(
    f"jax.numpy.{name}" for name in ("argmax", "argmin", "nanargmax", "nanargmin", "sum", "count_nonzero", "max", "min")
)
# Numbers, of numbers.
_KEPT = tuple(
    f"jax.numpy.{name}"
    for name in ("where", "minimum", "maximum", "clip", "abs", "mod", "remainder", "floor_divide", "int32", "int64")
)
_ONE = ("int", "len", "round", "jax.lax.axis_index")
_DRAWN = {"jax.random.randint": (1, "shape"), "jax.random.choice": (2, "shape")}


class Stands(Enum):
    """What a part of an index is seen to be."""

    WHOLE = auto()
    SLICE = auto()
    NUMBER = auto()
    MANY = auto()
    INDEX = auto()  # of several axes, however many: `before + (0,)`, `tuple(slices)`
    UNSEEN = auto()


def stands(part: Part, source: Source) -> Stands:
    """What `part` is seen to be; a mask and what is computed somewhere else are unseen."""
    if is_whole(part):
        return Stands.WHOLE
    meant = source.meant(part)
    if isinstance(meant, cst.Slice) or _makes_a_slice(meant, source) or _is_called_a_slice(part, source):
        return Stands.SLICE
    if _is_an_index(meant) and not (isinstance(meant, cst.Tuple) and is_many(part, source)):
        return Stands.INDEX
    if not isinstance(part, cst.BaseExpression):
        return Stands.UNSEEN
    if is_one_place(part, source):
        return Stands.NUMBER
    if is_many(part, source) or is_called_an_array(part):
        return Stands.MANY
    return Stands.UNSEEN


def _is_an_index(meant: cst.CSTNode) -> bool:
    """Whether this is a tuple, which an index takes for as many axes as it is long."""
    match meant:
        case cst.Tuple() | cst.Call(func=cst.Name("tuple")):
            return True
        case cst.BinaryOperation(left=left, right=right):
            return any(isinstance(side, cst.Tuple) or _is_an_index(side) for side in (left, right))
    return False


def holds_slices(part: Part, source: Source) -> bool:
    """Whether an index of several axes is seen to be made of slices: `tuple(cut)` of `cut = [slice(None)] * n`."""
    match source.meant(part):
        case cst.Call(func=cst.Name("tuple"), args=[cst.Arg(value=parts)]):
            made = inside(source.meant(parts))
            return is_called_a_slice(parts) or any(
                isinstance(node, cst.Call) and _makes_a_slice(node, source) for node in made
            )
    return False


def _makes_a_slice(meant: cst.CSTNode, source: Source) -> bool:
    """Whether this is `slice(a, b)`, or a function of the project that is called so: `_slice_of(offset)`."""
    if not isinstance(meant, cst.Call):
        return False
    name = source.qualified_name(meant.func) or ""
    return dotted(meant.func) == "slice" or (":" in name and SLICES.search(dotted(meant.func)) is not None)


def _is_called_a_slice(part: Part, source: Source) -> bool:
    """Whether a part is called as slices are, or what a loop takes it from."""
    match source.binder(part) if isinstance(part, cst.Name) else None:
        case cst.For(iter=over):
            return SLICES.search(dotted(over).rpartition(".")[2]) is not None
    match part:
        case cst.Subscript(value=cst.Call(func=made)):  # irreps.slices()[i]
            return SLICES.search(dotted(made).rpartition(".")[2]) is not None
    return is_called_a_slice(part)


def is_one_place(part: cst.BaseExpression, source: Source, depth: int = _DEPTH) -> bool:
    """Whether this is seen to be one number, known to Python or not."""
    if depth == 0:
        return False
    if constant(part) is not None or kind(part, source) == "scalar":
        return True
    match part:
        case cst.Name():
            return _is_one_name(part, source, depth)
        case cst.Attribute():
            return kind(part, source) is None and _is_of_a_layout(part) and not is_many(part, source)
        case cst.Subscript(value=table, slice=[cst.SubscriptElement(slice=cst.Index(value=cst.SimpleString()))]):
            return _TABLE.search(dotted(table)) is not None
        case cst.UnaryOperation(expression=inner):
            return is_one_place(inner, source, depth)
        case cst.BinaryOperation(left=left, right=right):
            return all(is_one_place(side, source, depth - 1) for side in (left, right))
        case cst.Call():
            return _is_one_call(part, source, depth)
    return False


def _is_one_name(name: cst.Name, source: Source, depth: int) -> bool:
    """A counter, by its length; what a loop of jax.lax counts by; a parameter that is a number unless one is given; or
    a name for one number."""
    value = source.value(name)
    if value is not None:
        return is_one_place(value, source, depth - 1)
    if name.value.isupper() and kind(name, source) is None:
        return not name.value.endswith("S")
    match source.binder(name):
        case cst.Param(default=cst.BaseExpression() as default) if constant(default) is not None:
            return True
        case cst.Param() as parameter if _is_step(parameter, source):
            return True
    return len(name.value) <= _COUNTER and kind(name, source) is None


def _is_step(parameter: cst.Param, source: Source) -> bool:
    """`i` of what `jax.lax.fori_loop` runs."""
    function = source.owner(parameter)
    return function.params.params[:1] == (parameter,) and is_counted_body(function, source)


def _is_of_a_layout(part: cst.Attribute) -> bool:
    """`registered_variables.density_index.x`, `Node.GOAL`, `Block.TREE.value`: what a layout or a list of names has."""
    *owners, last = [node.value for node in names_in(part)]
    named = owners[-1] if last == "value" and owners else last
    if any(LAYOUT.search(name) for name in [*owners[1:], last]):
        return True
    return is_called_constant(named) and not is_called_an_array(part)


def _is_one_call(call: cst.Call, source: Source, depth: int) -> bool:
    if source.calls(call, *_ONE):
        return True
    if source.calls(call, *_FOUND):
        return len(call.args) == 1
    name = source.qualified_name(call.func) or ""
    if name in _DRAWN:
        match argument(call, *_DRAWN[name]):
            case cst.Tuple(elements=sizes):
                return not sizes
            case None:
                return True
        return False
    if source.calls(call, *_KEPT):
        # Of `where` the places that are chosen, whatever the condition is called.
        among = call.args[1:] if name.endswith(".where") else call.args
        return bool(among) and all(is_one_place(arg.value, source, depth - 1) for arg in among)
    match call.func:
        case cst.Attribute(value=value, attr=cst.Name("astype")):
            return is_one_place(value, source, depth - 1)
        case cst.Attribute(attr=cst.Name("argmax" | "argmin" | "sum" | "max" | "min")):
            return not call.args
    return False
