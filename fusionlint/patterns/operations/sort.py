"""Reading `jnp.sort(x)[-1]`: what is sorted, along which axis, and which part of the order is read."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

import libcst as cst

from fusionlint.lazily import regex
from fusionlint.patterns.code.at import Part, constant, elements, is_whole, names_read
from fusionlint.patterns.code.calls import argument, has_only
from fusionlint.patterns.code.functions import mentioned
from fusionlint.patterns.operations.softmax import LOG_SOFTMAX, SOFTMAX
from fusionlint.source.tree import Source

SORTS = ("jax.numpy.sort", "jax.numpy.argsort")
# The axis of `sort(x, axis=None)`: that of all elements in a row.
FLAT = "flat"
End = Literal["smallest", "largest"]
_ORDER = "argsort"
_FLIP = "jax.numpy.flip"
# What keeps the order of what it is handed, along one axis.
_MONOTONE = (*SOFTMAX, *LOG_SOFTMAX)
_EIGENVALUES = regex(r"(^|_)(eigen_?val(ue)?s?|eig_?vals?|e_?vals?|eigs|singular_values)(_|$)", re.I)
_FLOATS = frozenset(f"{module}.float{bits}" for module in ("jax.numpy", "numpy") for bits in (16, 32, 64))
# What is sorted is seldom made of them in more steps than this.
_NEAR = 2
_DECOMPOSES = frozenset(
    (
        *(f"jax.numpy.linalg.{name}" for name in ("eigh", "eig", "eigvals", "eigvalsh", "svd", "pinv")),
        *(f"jax.scipy.linalg.{name}" for name in ("eigh", "eigh_tridiagonal", "svd")),
        *("jax.lax.linalg.eig", "jax.lax.linalg.eigh", "jax.lax.linalg.svd"),
    )
)
# Of what is read by its place the second is still at an end: of three in a row all may be wanted.
_SECOND = 1


class Sorted(NamedTuple):
    """A sorted array, or (`is_order`) what sorts it. `descending` is how it reads from the front; of a `reversed` one
    the first among equals comes last, and one that is turned `everywhere` has its other axes turned too. `mapped` is
    the function, as written, that keeps its order and is applied to it: a softmax."""

    array: cst.BaseExpression
    is_order: bool
    axis: int | str
    descending: bool
    reversed: bool = False
    everywhere: bool = False
    mapped: str = ""

    def as_mapped(self, array: str) -> str:
        """The text of an array with `mapped` applied to it."""
        return f"{self.mapped}({array})" if self.mapped else array


@dataclass(frozen=True, slots=True)
class Taken:
    """What a subscript reads of a sorted array: at its `end` one element (`count` is None), or `count` of them, or
    (`is_single`) the last of these alone. `length` is how many indices the subscript, `node`, has."""

    end: End
    count: cst.BaseExpression | None
    is_single: bool
    length: int
    from_back: bool
    node: cst.Subscript


def reads_of(call: cst.Call, source: Source) -> tuple[Sorted, list[Taken]] | None:
    """What is read of the sorted array that `call` makes, directly or by its name; None where that is not plain."""
    found = sorted_call(call, source)
    if found is None:
        return None
    outer: cst.CSTNode = call
    while (further := _further(outer, found, source)) is not None:
        outer, found = further
    subscripts = [(source.parent(read), read) for read in source.sure_readers(outer)]
    if len(subscripts) != len(source.readers(outer)):
        return None
    around = (source.function(call), source.loop(call))
    if any((source.function(value), source.loop(value)) != around for _, value in subscripts):
        return None  # a loop's body, which may read another place each time
    read = [taken(above, value, found) for above, value in subscripts]
    if found.everywhere and any(one is not None and one.length > 1 for one in read):
        return None
    plain = [one for one in read if one is not None]
    return (found, plain) if plain and len(plain) == len(read) else None


def _further(value: cst.CSTNode, found: Sorted, source: Source) -> tuple[cst.CSTNode, Sorted] | None:
    """What is made of a sorted array, or of its name where nothing else reads that, and is in order too: turned round,
    `s[::-1]`, `jnp.flip(s)`, `-s` of `-x`, or `softmax(s)`."""
    reads = source.sure_readers(value)
    if len(reads) != 1 or len(source.readers(value)) != 1:
        return None
    value, above = reads[0], source.parent(reads[0])
    turned = found._replace(descending=not found.descending, reversed=not found.reversed)
    match above, found.array:
        case cst.Subscript(), _ if (part := _subscripted(above, value, found)) and _is_reversal(part):
            return above, turned
        case cst.UnaryOperation(operator=cst.Minus()), cst.UnaryOperation(
            operator=cst.Minus(), expression=array
        ) if not (found.is_order or found.mapped):
            return above, turned._replace(array=array)
        case cst.Arg(keyword=None, star=""), _:
            call = source.parent(above)
            if not isinstance(call, cst.Call) or call.args[0] is not above or not has_only(call, 2, "axis"):
                return None
            axis = argument(call, 1, "axis")
            if source.calls(call, _FLIP) and _axis(axis) == found.axis:
                return call, turned._replace(everywhere=axis is None)
            if source.calls(call, *_MONOTONE) and not (found.is_order or found.mapped) and _axis(axis) == found.axis:
                return call, found._replace(mapped=source.code(call.func))
    return None


def sorted_call(call: cst.Call, source: Source) -> Sorted | None:
    array, axis = argument(call, 0, "a"), _axis(argument(call, 1, "axis"))
    if array is None or axis is None or not has_only(call, 2, "a", "axis", "descending", "stable", "kind"):
        return None
    match argument(call, -1, "descending"):
        case None | cst.Name("False"):
            falls = False
        case cst.Name("True"):
            falls = True
        case _:
            return None
    is_order = source.calls(call, "jax.numpy.argsort")
    match array:
        case cst.UnaryOperation(operator=cst.Minus(), expression=inner) if is_order:
            return Sorted(inner, is_order, axis, not falls)
    return Sorted(array, is_order, axis, falls)


def _axis(node: cst.BaseExpression | None) -> int | str | None:
    match node:
        case None:
            return -1
        case cst.Name("None"):
            return FLAT
    return constant(node)


def _subscripted(above: cst.CSTNode | None, value: cst.CSTNode, found: Sorted) -> Part | None:
    """The index on the sorted axis of `value[...]`, where it takes all of the other axes.

    `s[-1]` and `s[:, -1]` are read as what they are for arrays of one and of two axes.
    """
    if not isinstance(above, cst.Subscript) or above.value is not value:
        return None
    parts = elements(above.slice)
    axis = found.axis if isinstance(found.axis, int) else -1
    place = axis if axis >= 0 else len(parts) + axis
    if not 0 <= place < len(parts):
        return None
    others = (*parts[:place], *parts[place + 1 :])
    counted = parts[:place] if axis >= 0 else parts[place + 1 :]
    is_shifted = any(isinstance(part, cst.Ellipsis) for part in counted)
    return parts[place] if all(map(is_whole, others)) and not is_shifted else None


def _is_reversal(part: Part) -> bool:
    match part:
        case cst.Slice(lower=None, upper=None, step=cst.BaseExpression() as step):
            return constant(step) == -1
    return False


def taken(above: cst.CSTNode | None, value: cst.CSTNode, found: Sorted) -> Taken | None:
    """What `above`, a subscript of the sorted `value`, reads of it; None for anything but some at one end."""
    part = _subscripted(above, value, found)
    if part is None or not isinstance(above, cst.Subscript):
        return None
    ends: tuple[End, End] = ("largest", "smallest") if found.descending else ("smallest", "largest")
    length = len(above.slice)
    match part:
        case cst.Integer() if part.evaluated_value == 0:
            return Taken(ends[0], None, True, length, False, above)
        case cst.Integer() if part.evaluated_value == _SECOND:
            return Taken(ends[0], cst.Integer(str(_SECOND + 1)), True, length, False, above)
        case cst.UnaryOperation(operator=cst.Minus(), expression=count):
            return Taken(ends[1], None if constant(count) == 1 else count, True, length, True, above)
        case cst.Slice(lower=None, upper=cst.BaseExpression() as count, step=None) if not _is_negative(count):
            return Taken(ends[0], None if constant(count) == 1 else count, False, length, False, above)
        case cst.Slice(lower=cst.UnaryOperation(operator=cst.Minus(), expression=count), upper=None, step=None):
            return Taken(ends[1], None if constant(count) == 1 else count, False, length, True, above)
    return None


def is_beside_a_decomposition(node: cst.CSTNode, source: Source) -> bool:
    """Whether the function around, or one of those in it, finds eigenvalues or singular values, `eigh(t)`, `pinv(g)`:
    beside that the order of one vector, most often of just these, is nothing; and those of `eig` are complex, which
    neither `argmax` nor `top_k` takes."""
    around = [*source.ancestors(node, cst.FunctionDef)]
    return bool(around) and any(around[-1] in source.ancestors(call) for call in source.calls_of(_DECOMPOSES))


def is_of_float64(node: cst.Call, source: Source) -> bool:
    """Whether the function around names float64, and no float32: of such numbers `top_k` is a sort too, on a CPU and a
    GPU; the few smallest of many rows are still fewer bytes, for it sorts no places."""
    function = source.function(node)
    kinds = _FLOATS.intersection(mentioned(function.body, source)) if function is not None else frozenset()
    return bool(kinds) and all(name.endswith("64") for name in kinds)


def is_of_eigenvalues(array: cst.BaseExpression, source: Source, depth: int = _NEAR) -> bool:
    """Whether `array` is called eigenvalues, or made of what is, `score(eigenvalues)`: wherever it is sorted, somebody
    found them, and beside that the order of one vector is nothing."""
    return any(
        _EIGENVALUES.search(name.value) is not None
        or bool(depth and (value := source.value(name)) is not None and is_of_eigenvalues(value, source, depth - 1))
        for name in names_read(array)
    )


def sorting(source: Source) -> Iterator[str]:
    """The scopes that make an order of something, by a function or by a method of an array: asked of the facts."""
    if _ORDER not in source.facts.attributes:
        return
    for place, name, ((called, *_), *_) in source.project.named_calls(source.path):
        if (name is None or name in SORTS) and isinstance(called, str) and called.rpartition(".")[2] == _ORDER:
            yield place.scope


def is_order(node: cst.BaseExpression, source: Source) -> bool:
    """Whether `node` is what sorts an array, or a name for that: `jnp.argsort(x)`, `x.argsort()`, either reversed."""
    node = source.meant(node)
    match node:
        case cst.Subscript(value=value, slice=[cst.SubscriptElement(slice=part)]) if _is_reversal(part):
            node = value
    match node:
        case cst.Call(func=cst.Attribute(attr=cst.Name(method)) as function) if method == _ORDER:
            return source.qualified_name(function) in (None, *SORTS)
    return False


def end_cut(above: cst.CSTNode | None, value: cst.CSTNode) -> tuple[str, cst.BaseExpression | None] | None:
    """From which end of its rows `above` reads some of `value`, and how many, None for one: `x[:k]`, `x[-k:]`, `x[0]`.
    None for anything else."""
    if not isinstance(above, cst.Subscript) or above.value is not value:
        return None
    match elements(above.slice)[0]:
        case cst.Integer() as place if place.evaluated_value == 0:
            return "first", None
        case cst.UnaryOperation(operator=cst.Minus(), expression=cst.Integer("1")):
            return "last", None
        case cst.Slice(lower=None, upper=cst.BaseExpression() as count, step=None) if not _is_negative(count):
            return "first", count
        case cst.Slice(lower=cst.UnaryOperation(operator=cst.Minus(), expression=count), upper=None, step=None):
            return "last", count
    return None


def _is_negative(count: cst.BaseExpression) -> bool:
    return isinstance(count, cst.UnaryOperation)
