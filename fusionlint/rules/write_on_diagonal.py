"""The diagonal of an array written by a scatter: `K.at[jnp.diag_indices(n)].add(noise)`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from fusionlint.finding import Edit, Finding
from fusionlint.lazily import regex
from fusionlint.patterns.code.at import WRITES, Write, at_write, inside, is_literal
from fusionlint.patterns.code.calls import argument, as_argument, as_operand, brief, has_only
from fusionlint.patterns.code.layout import Called, in_place_of
from fusionlint.patterns.code.left_unused import left_unused
from fusionlint.patterns.code.passed_over import is_short
from fusionlint.patterns.code.same import is_same_at
from fusionlint.patterns.code.unpacked import meant_in_the_end
from fusionlint.patterns.compiled.scattered import is_diagonal, is_of_elementwise_work, scatters_at
from fusionlint.patterns.runs.concrete import is_concrete
from fusionlint.patterns.runs.for_one_caller import is_decomposed
from fusionlint.patterns.values.annotations import is_said_to_be_a_list
from fusionlint.patterns.values.kinds import kind
from fusionlint.patterns.values.two_axes import is_matrix
from fusionlint.patterns.writes.chain import chain, is_last
from fusionlint.patterns.writes.diagonal_shapes import (
    has_more_axes,
    is_a_row,
    is_as_long,
    is_of_two,
    is_square,
    is_the_shorter,
)
from fusionlint.patterns.writes.folded import is_folded
from fusionlint.patterns.writes.places import DIAGONAL_OF, axes_before, diagonal, has_axes_behind
from fusionlint.rule import Rule
from fusionlint.source.facts import CONSTRUCTORS, last_name
from fusionlint.source.tree import Source
from fusionlint.source.walk import dotted

if TYPE_CHECKING:
    from fusionlint.hlo import parse as hlo
    from fusionlint.hlo.barriers import Barrier

rule = Rule(__name__, harm="fusion")

_FILL = "jax.numpy.fill_diagonal"
_METHODS = ("set", "add", "multiply", "mul")
_LONG = 40
# What a write may be promised.
_PROMISES = ("indices_are_sorted", "unique_indices")
# A truth value, and what is called as a vector of a diagonal is.
_ONE_EACH = regex(r"^(True|False)$|diag", re.I)
_INITIALIZER = regex(r"(^|[._])init(ializer)?$")


@rule.source("Call", calls=WRITES)
def diagonal_scattered(node: cst.Call, source: Source) -> Iterator[Finding]:
    """`.at[diag_indices(n)]` or `.at[arange(n), arange(n)]`, one write alone."""
    write = at_write(node)
    if write is None or write.value is None or write.method not in _METHODS:
        return
    length = diagonal(write, source)
    if length is None or not is_last(write, source) or len(chain(write, source)) > 1:
        return  # of several writes chained-at-set speaks
    if is_of_two(length, source) or (is_the_shorter(length, source) and not axes_before(write)):
        return  # of a matrix that need not be square, no mask takes the values as they are
    if is_folded([write], source) or is_concrete(node, source) or _is_first(write.array, source):
        return
    if is_decomposed(node, source) or _is_of_a_constructor(node, source):
        return
    yield source.finding(
        node,
        "a scatter writes the diagonal, by kernels of its own",
        write=_with_eye(write, length, source),
        edits=_fix(write, length, source),
    )


@rule.source("Call", calls=(_FILL,))
def diagonal_filled(node: cst.Call, source: Source) -> Iterator[Finding]:
    """`jnp.fill_diagonal(x, value, inplace=False)`, which makes a scatter of it; in place it raises."""
    array, value = argument(node, 0, "a"), argument(node, 1, "val")
    if array is None or value is None:
        return
    in_place = argument(node, 3, "inplace")
    if in_place is None or (isinstance(in_place, cst.Name) and in_place.value == "True"):
        return
    if argument(node, 2, "wrap") is not None or is_concrete(node, source) or _is_first(array, source):
        return
    if _is_of_a_constructor(node, source):
        return
    numpy = source.alias_at(node, "jax.numpy")
    jnp = numpy or "jnp"
    shown, size = _shown(array, source), f"{_shown(array, source)}.shape[0]"
    eye = f"{jnp}.eye({size}, dtype=bool)"
    is_false = isinstance(value, cst.Name) and value.value == "False"
    text = (
        f"{shown} & ~{eye}"
        if is_false
        else f"{jnp}.where({eye}, {_as_array(value, jnp, as_argument(value, source))}, {shown})"
    )
    is_named = numpy is not None and isinstance(array, cst.Name)
    is_plain = is_named and not _is_a_list(value, source) and not source.has_comment(node)
    is_plain = is_plain and (not is_false or _is_of_truths(array, source)) and has_only(node, 2, "a", "val", "inplace")
    yield source.finding(
        node,
        "a scatter writes the diagonal, by kernels of its own",
        write=text,
        edits=(source.replace(node, text),) if is_plain else (),
    )


@rule.barrier
def diagonal_by_a_scatter(barrier: Barrier, module: hlo.Module) -> str | None:
    """What goes into a scatter that writes a diagonal, or comes out of it."""
    for scatter in scatters_at(barrier, module):
        if is_diagonal(scatter, module) and is_of_elementwise_work(scatter, module):
            return "jnp.where(jnp.eye(n, dtype=bool), ...) in place of the write: the mask costs no memory, and fuses"
    return None


def _is_of_a_constructor(node: cst.CSTNode, source: Source) -> bool:
    """Whether this is done once, when an object is made; a function inside may be asked for later."""
    return last_name(source.place(node).scope) in CONSTRUCTORS


def _is_first(array: cst.BaseExpression, source: Source) -> bool:
    """Whether the array is what an initializer makes, `init(key, (n, n))`: the first weights of a layer, made once."""
    made = meant_in_the_end(array, source)
    return isinstance(made, cst.Call) and _INITIALIZER.search(dotted(made.func)) is not None


def _with_eye(write: Write, length: cst.BaseExpression, source: Source) -> str:
    """`jnp.where(jnp.eye(n, dtype=bool), value, K)`, which holds for a scalar and for a vector."""
    assert write.value is not None
    jnp = source.jnp
    array, value = _shown(write.array, source), _as_array(write.value, jnp, _shown(write.value, source))
    eye = f"{jnp}.eye({_size(write, length, source)}, dtype=bool)"
    if has_axes_behind(write, source):
        return f"{jnp}.where(mask, ..., {array}), mask {eye} with an axis of one behind it for each axis that follows"
    if axes_before(write):
        value, unless = _of_each(write, value, source), ""
        if is_the_shorter(length, source):
            eye = f"{jnp}.eye(*{array}.shape[-2:], dtype=bool)"
            unless = f", where {array} is square" if ".expand_dims(" in value else ""
        return f"{jnp}.where({eye}, {_written(write, array, value)}, {array}){unless}"
    if len(write.index) == 3:
        return f"{jnp}.where({eye}, values[..., None], {array})"
    if _may_be_rows(write, source) or has_more_axes(write.array, source) or is_a_row(write.value, length, source):
        return f"{jnp}.where(mask, ..., {array}), mask {eye} with an axis of one behind it for each axis of a row"
    if write.method in ("set", "add") and _is_zeros(write.array, source) and is_matrix(write.array, source):
        if not is_as_long(write.array, _size(write, length, source), source):
            return f"{jnp}.diag of the values, brought to the size of {array} by {jnp}.pad"
        return f"{value} * {jnp}.eye({_size(write, length, source)}), or {jnp}.diag({value}) of a vector"
    of_more = "" if is_matrix(write.array, source) else "; of an array of more axes a mask with one of one for each"
    if write.method == "set" and isinstance(write.value, cst.Name) and write.value.value == "False":
        return f"{array} & ~{eye}{of_more}"
    value = f"({value})" if _is_in_parts(write.value) and write.method != "set" else value
    return f"{jnp}.where({eye}, {_written(write, array, value)}, {array}){of_more}"


def _written(write: Write, array: str, value: str) -> str:
    """What stands on the diagonal afterwards."""
    return {"set": value, "add": f"{array} + {value}"}.get(write.method, f"{array} * {value}")


def _of_each(write: Write, value: str, source: Source) -> str:
    """The values for the matrices of a batch, with an axis more: a mask holds for the last two. A number too may have
    one."""
    if write.value is None or is_literal(write.value) or _is_number(write, source):
        return value
    named = "values" if value != source.code(write.value) else value
    return f"{source.jnp}.expand_dims({named}, -1)"


def _may_be_rows(write: Write, source: Source) -> bool:
    """Whether what is set under a name may be a row for each place: of an array that is not seen to be a matrix."""
    is_named = isinstance(write.value, cst.Name) and not _ONE_EACH.search(write.value.value)
    return is_named and write.method == "set" and not is_matrix(write.array, source) and not _is_number(write, source)


def _is_number(write: Write, source: Source) -> bool:
    return write.value is not None and kind(write.value, source) == "scalar"


def _fix(write: Write, length: cst.BaseExpression, source: Source) -> tuple[Edit, ...]:
    """The `where`, of a square array that is read and not computed.

    Not safe: `where` takes its dtype from both, the write from the array; of an array that is not square, or of more
    axes, it does not hold.
    """
    jnp, value, is_batch = source.alias_at(write.call, "jax.numpy"), write.value, bool(axes_before(write))
    if jnp is None or value is None or not is_short(write.array) or not has_only(write.call, 1, *_PROMISES):
        return ()
    if (
        _is_a_list(value, source)
        or len(write.index) - is_batch > 2
        or has_axes_behind(write, source)
        or source.has_comment(write.call)
        or (_is_zeros(write.array, source) and not is_batch)
        or has_more_axes(write.array, source)
        or is_a_row(value, length, source)
        or (not is_batch and _may_be_a_row(write, source))
        or not is_same_at(length, write.call, source)
        or not is_square(write.array, length, write.call, source)
    ):
        return ()
    array, shown = source.code(write.array), as_argument(value, source)
    if is_batch and not _is_plain(value):
        shown = f"{jnp}.expand_dims({shown}, -1)"  # a number too
    elif write.method != "set" and _is_in_parts(value):
        shown = f"({shown})"
    eye = f"{jnp}.eye({_size(write, length, source)}, dtype=bool)"
    chosen = Called(f"{jnp}.where", [eye, _written(write, array, shown), array])
    return (in_place_of(write.call, chosen, source), *left_unused(write.call, str(chosen), source))


def _may_be_a_row(write: Write, source: Source) -> bool:
    """The same of whatever is not plainly a number, or made of a diagonal."""
    if write.value is None or _is_plain(write.value) or is_matrix(write.array, source):
        return False
    if isinstance(write.value, cst.Name):
        return _may_be_rows(write, source)
    return write.method == "set" and not _ONE_EACH.search(source.code(write.value)) and not _is_number(write, source)


def _is_a_list(value: cst.BaseExpression, source: Source) -> bool:
    """Whether `where` would not take it."""
    if isinstance(value, cst.Name) and is_said_to_be_a_list(value, source):
        return True
    return isinstance(source.meant(value), cst.List | cst.Tuple | cst.ListComp | cst.SimpleString | cst.Ellipsis)


def _is_of_truths(array: cst.BaseExpression, source: Source) -> bool:
    """`a == b`, `(a == b).all(-1)`, `a & b`: of numbers `&` would work on their bits."""
    match meant_in_the_end(array, source):
        case cst.Comparison():
            return True
        case cst.BinaryOperation(left=left, operator=cst.BitAnd() | cst.BitOr(), right=right):
            return all(_is_of_truths(side, source) for side in (left, right))
        case cst.UnaryOperation(operator=cst.BitInvert(), expression=inner):
            return _is_of_truths(inner, source)
        case cst.Subscript(value=inner):
            return _is_of_truths(inner, source)
        case cst.Call(func=cst.Attribute(value=cst.Comparison(), attr=cst.Name("all" | "any"))):
            return True
    return False


def _size(write: Write, length: cst.BaseExpression, source: Source) -> str:
    """How long the diagonal is, as code for the place of the write: where its names mean something else there, by the
    array itself."""
    if not is_same_at(length, write.call, source):
        return f"{_shown(write.array, source)}.shape[0]"
    is_asked = source.calls(source.handed_to(length) or length, DIAGONAL_OF)
    return f"{as_operand(length, source.code(length))}.shape[0]" if is_asked else source.code(length)


def _is_plain(value: cst.BaseExpression) -> bool:
    """Whether this is a number, and no list of some: `where` takes none."""
    brackets = (cst.List, cst.Tuple, cst.SimpleString, cst.Ellipsis)
    return is_literal(value) and not any(isinstance(part, brackets) for part in inside(value))


def _as_array(value: cst.BaseExpression, jnp: str, shown: str) -> str:
    """What a `where` takes instead of a list of numbers."""
    return f"{jnp}.array({shown})" if isinstance(value, cst.List | cst.Tuple) else shown


def _is_zeros(array: cst.BaseExpression, source: Source) -> bool:
    fresh = meant_in_the_end(array, source)
    return source.calls(fresh, "jax.numpy.zeros", "jax.numpy.zeros_like")


def _shown(node: cst.BaseExpression, source: Source) -> str:
    return brief(as_argument(node, source), _LONG)


def _is_in_parts(value: cst.CSTNode | None) -> bool:
    """Whether this has to stand in parentheses beside an operator."""
    return isinstance(value, cst.UnaryOperation | cst.BinaryOperation | cst.Comparison | cst.IfExp)
