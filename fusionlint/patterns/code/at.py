"""Reading `x.at[index].set(value)`: shared by the rules about indexed updates."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypeGuard, TypeVar, overload

import libcst as cst

from fusionlint.source.tree import Source
from fusionlint.source.walk import children

Part: TypeAlias = "cst.BaseExpression | cst.BaseSlice"
Node = TypeVar("Node", bound="cst.CSTNode")

_METHODS = frozenset(("set", "add", "subtract", "multiply", "mul", "divide", "div", "power", "min", "max", "apply"))
# What sensors look for.
WRITES = frozenset(f".at.{method}" for method in _METHODS)
FRESH_BY_SHAPE = ("jax.numpy.zeros", "jax.numpy.ones", "jax.numpy.empty", "jax.numpy.full")
RANGES = ("numpy.arange", "jax.numpy.arange")
# What makes an array of a list.
TO_JAX_ARRAY = ("jax.numpy.array", "jax.numpy.asarray")
TO_ARRAY = ("numpy.array", "numpy.asarray", *TO_JAX_ARRAY)
# What is asked of an array without reading what is in it.
ABOUT = frozenset(("shape", "dtype", "ndim", "size"))
_FRESH = (
    *FRESH_BY_SHAPE,
    *("jax.numpy.zeros_like", "jax.numpy.ones_like", "jax.numpy.empty_like", "jax.numpy.full_like"),
)
# numpy's ways to write an index down before it is used.
_MAKES_AN_INDEX = frozenset(("index_exp", "s_"))


@dataclass(frozen=True, slots=True)
class Write:
    """One `array.at[index].method(value)`."""

    call: cst.Call
    array: cst.BaseExpression
    index: tuple[Part, ...]
    method: str
    value: cst.BaseExpression | None


def at_write(node: cst.CSTNode | None) -> Write | None:
    """The write that `node` is, None for anything else."""
    match node:
        case cst.Call(
            func=cst.Attribute(
                value=cst.Subscript(value=cst.Attribute(value=array, attr=cst.Name("at")), slice=slices),
                attr=cst.Name(method),
            ),
            args=args,
        ) if method in _METHODS and not any(map(_is_text, elements(slices))):
            value = args[0].value if args and args[0].keyword is None else None
            return Write(node, array, elements(slices), method, value)
    return None


def named_axes_written(node: cst.CSTNode) -> cst.BaseExpression | None:
    """The array of `x.at["row", i].set(value)`, of which each place follows the name of its axis, as haliax has it."""
    match node:
        case cst.Call(
            func=cst.Attribute(
                value=cst.Subscript(value=cst.Attribute(value=array, attr=cst.Name("at")), slice=slices),
                attr=cst.Name(method),
            ),
        ) if method in _METHODS:
            parts = elements(slices)
            is_named = all(map(_is_text, parts[::2])) and not any(map(_is_text, parts[1::2]))
            return array if is_named and len(parts) % 2 == 0 else None
    return None


def place_of(write: Write, source: Source) -> str:
    """What stands between the brackets of a write, as code: `i, j`."""
    return ", ".join(map(source.code, write.index))


def _is_text(part: Part) -> bool:
    """Whether this is the name of a leaf: `tree.at["mass"].set(m)` is a setter of somebody's."""
    return isinstance(part, cst.SimpleString | cst.FormattedString | cst.ConcatenatedString)


def elements(slices: Sequence[cst.SubscriptElement]) -> tuple[Part, ...]:
    """What stands between the brackets, one part an axis; a tuple, or numpy's `index_exp[i, j]`, is its parts. There is
    one at least: `()`, which takes all there is, is itself a part."""
    parts = [s.slice.value if isinstance(s.slice, cst.Index) else s.slice for s in slices]
    match parts:
        case [cst.Tuple(elements=[_, *_] as several)]:
            return tuple(element.value for element in several)
        case [cst.Subscript(value=cst.Name(maker) | cst.Attribute(attr=cst.Name(maker)), slice=inner)] if (
            maker in _MAKES_AN_INDEX
        ):
            return elements(inner)
    return tuple(parts)


def is_whole(part: Part) -> bool:
    """`:` or `...`, or `()`."""
    match part:
        case cst.Slice():
            return part.lower is None and part.upper is None and part.step is None
        case cst.Tuple(elements=several):
            return not several
    return isinstance(part, cst.Ellipsis)


def is_cut(part: Part | cst.CSTNode) -> TypeGuard[cst.Slice]:
    """`a:b`, and not `:`."""
    return isinstance(part, cst.Slice) and not is_whole(part)


def is_none(part: Part | cst.CSTNode | None) -> bool:
    """Whether `None` is written there: as an index it makes a new axis. What is not given is nothing written."""
    return isinstance(part, cst.Name) and part.value == "None"


def takes_all(part: Part) -> bool:
    """`:`, `None` or `...`: no element is left out."""
    return is_whole(part) or is_none(part)


def is_no_array(node: cst.CSTNode | None) -> bool:
    """`None` or `()`, of which a scan has no rows."""
    return is_none(node) or (isinstance(node, cst.Tuple) and not node.elements)


def is_new_axis(part: Part | cst.CSTNode | None) -> bool:
    """`None`, or `jnp.newaxis`, as a part of an index."""
    return is_none(part) or (isinstance(part, cst.Attribute) and part.attr.value == "newaxis")


def constant(part: Part) -> int | None:
    """The value of an integer literal, with a sign or not."""
    match part:
        case cst.Integer():
            return part.evaluated_value
        case cst.UnaryOperation(operator=cst.Plus(), expression=cst.Integer() as number):
            return number.evaluated_value
        case cst.UnaryOperation(operator=cst.Minus(), expression=cst.Integer() as number):
            return -number.evaluated_value
    return None


def column(write: Write) -> int | None:
    """k of `.at[:, k]` or `.at[..., k]`, None for other places."""
    *before, last = write.index
    if not before or not all(is_whole(part) for part in before):
        return None
    return constant(last)


def told_axes(index: Sequence[Part]) -> list[int]:
    """The numbers of those parts of an index that are not all of an axis."""
    return [number for number, part in enumerate(index) if not is_whole(part)]


def first_axis(write: Write) -> int:
    """The first axis along which a write does not go to all there is."""
    return told_axes(write.index)[0]


def number_in(among: Sequence[cst.CSTNode], node: cst.CSTNode | None) -> int:
    """Which of several nodes this very one is."""
    return next(number for number, each in enumerate(among) if each is node)


def counted_axis(place: int, index: Sequence[Part]) -> int:
    """The axis that the part at a place of an index stands on: behind `...` counted from the end."""
    return place - len(index) if any(isinstance(part, cst.Ellipsis) for part in index[:place]) else place


def listed(node: cst.CSTNode | None) -> list[cst.BaseExpression] | None:
    """What a list or a tuple holds, where each part of it is written out."""
    match node:
        case cst.List(elements=elements) | cst.Tuple(elements=elements):
            is_seen = not any(isinstance(element, cst.StarredElement) for element in elements)
            return [element.value for element in elements] if is_seen else None
    return None


def is_literal(node: cst.BaseExpression | None) -> bool:
    """A number, a truth value, or numbers in brackets: XLA folds what is made of them alone."""
    match node:
        case cst.UnaryOperation(expression=inner):
            return is_literal(inner)
        case cst.BinaryOperation(left=left, right=right):
            return is_literal(left) and is_literal(right)
        case cst.List(elements=elements) | cst.Tuple(elements=elements):
            return all(is_literal(element.value) for element in elements)
        case cst.Name(value=name):
            return name in ("True", "False")
    return isinstance(node, cst.Integer | cst.Float | cst.Imaginary | cst.SimpleString | cst.Ellipsis)


def is_static(part: Part) -> bool:
    """Whether this part of an index is written out as numbers, slices of numbers and `:` included."""
    if isinstance(part, cst.Slice):
        return all(bound is None or is_literal(bound) for bound in (part.lower, part.upper, part.step))
    return isinstance(part, cst.BaseExpression) and is_literal(part)


def is_fresh(array: cst.BaseExpression, source: Source) -> bool:
    """Whether `array` is new and all of one value: `jnp.zeros(...)` and its like."""
    array = source.meant(array)
    return source.calls(array, *_FRESH)


def is_about(read: cst.Name, source: Source) -> bool:
    """`x.shape`, which is the same after a write."""
    match source.parent(read):
        case cst.Attribute(value=value, attr=cst.Name(attribute)):
            return value is read and attribute in ABOUT
    return False


def indexed_by(part: cst.CSTNode, source: Source) -> cst.Subscript | None:
    """`x[:, i]`, where `part`, `i`, is all of one index of it."""
    index = source.parent(part)
    element = source.parent(index) if isinstance(index, cst.Index) else None
    above = source.parent(element) if isinstance(element, cst.SubscriptElement) else None
    return above if isinstance(above, cst.Subscript) else None


@overload
def inside(node: cst.CSTNode) -> Iterator[cst.CSTNode]: ...
@overload
def inside(node: cst.CSTNode, kind: type[Node]) -> Iterator[Node]: ...
def inside(node: cst.CSTNode, kind: type[cst.CSTNode] | None = None) -> Iterator[cst.CSTNode]:
    """`node` and everything in it, outside in; of that what is of one type, `cst.Call`."""
    todo = [node]
    while todo:
        node = todo.pop()
        if kind is None or isinstance(node, kind):
            yield node
        todo += reversed([*children(node)])


def holds(node: cst.CSTNode, *kinds: type[cst.CSTNode]) -> bool:
    """Whether `node`, or anything in it, is of one of these types."""
    return any(isinstance(part, kinds) for part in inside(node))


def names_in(node: cst.CSTNode) -> Iterator[cst.Name]:
    """The names in `node`, those of its attributes and keywords too."""
    return inside(node, cst.Name)


def names_read(node: cst.CSTNode) -> Iterator[cst.Name]:
    """The names read in `node`, not those of its attributes and keywords."""
    match node:
        case cst.Name():
            yield node
        case cst.Attribute(value=value) | cst.Arg(value=value):
            yield from names_read(value)
        case _:
            for child in children(node):
                yield from names_read(child)


def reads(node: cst.CSTNode, name: str) -> bool:
    """Whether `node` reads a variable of that name."""
    return any(read.value == name for read in names_read(node))
