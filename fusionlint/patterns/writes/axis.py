"""Writes to rows or elements along one axis: `x.at[i].set(a).at[j].set(b)`, `x.at[..., 0].add(a)`.

In: writes of a Source that follow one another. Out: the stack or the `where` that says the same. Either fuses with what
is around it, a scatter with nothing: measured, both beat one on every target, wherever the places come from.
"""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from fusionlint.lazily import regex
from fusionlint.patterns.code.at import (
    FRESH_BY_SHAPE,
    Part,
    Write,
    constant,
    counted_axis,
    first_axis,
    is_fresh,
    is_literal,
    is_whole,
    names_in,
)
from fusionlint.patterns.code.calls import brief
from fusionlint.patterns.code.constants import is_called_constant
from fusionlint.patterns.values.kinds import kind
from fusionlint.patterns.values.known_values import is_static_name
from fusionlint.patterns.writes.chain import root, shown
from fusionlint.patterns.writes.words import SIGNS, all_of
from fusionlint.source.edited import with_names
from fusionlint.source.names import JIT, PARTIAL
from fusionlint.source.tree import Source

# A value longer than this says less than its outline, and so does an advice.
_LONG, _LONGEST = 30, 150
# What arrays are called, of which nobody sees that they are of one length: `left_nodes`, `isBoundary`, `indexR`.
_ARRAY = regex(r"(?<!po)(?<!i)(?<!s)s$|filter$|mask$|indices$|^is[A-Z]|^ind(ex|ices)[A-Z]")
# So many rows a stack lists.
_FEW = 16
# What Python knows of a layout: `variables.density_index.x`.
LAYOUT = regex(r"(^|_)(index|idx|axis)$")
# What is called slices, and what one slice is called.
SLICES = regex(r"(^|_)slices?(_|$)")
_SLICE = regex(r"^(s_\w{3}|(sl|slices?)_)|_(s|sl|slices?)$|^slices?$")
_LIKE = ("jax.numpy.zeros_like", "jax.numpy.ones_like", "jax.numpy.full_like", "jax.numpy.empty_like")
# Whose results cross memory; so do those of a branch.
_PROGRAMS = JIT | {"jax.lax.scan", "jax.lax.fori_loop", "jax.lax.while_loop", "jax.lax.cond", "jax.lax.switch"}


def is_called_a_slice(part: Part) -> bool:
    """Whether a part of an index is called as slices are: `s_velocity`."""
    match part:
        case cst.Name(value=name) | cst.Attribute(attr=cst.Name(name)):
            return bool(_SLICE.search(name))
    return False


def leaves_rows_out(part: Part, source: Source) -> bool:
    """Whether a part of an index takes every so manieth row alone: `x[1::3]`, or `rows = slice(1, n, 3)`."""
    match part:
        case cst.Slice(step=step):
            return step is not None
        case cst.Name():
            match source.meant(part):
                case cst.Call(func=cst.Name("slice"), args=[_, _, _]):
                    return True
    return False


def is_called_an_array(part: Part) -> bool:
    """Whether a part of an index is called as arrays of places are: `left_nodes`, `edge_mask`."""
    match part:
        case cst.Name(value=name) | cst.Attribute(attr=cst.Name(name)):
            return bool(_ARRAY.search(name))
        case cst.Subscript(slice=[cst.SubscriptElement(slice=cst.Index(value=cst.SimpleString()))]):
            return True
        case cst.Subscript(slice=slices):
            return any(isinstance(each.slice, cst.Slice) for each in slices)
    return False


def is_place(part: Part) -> bool:
    """A number, a name, an element, a sum of those: what can stand in a list of indices."""
    match part:
        case cst.Name("None" | "True" | "False"):
            return False
        case cst.Name() | cst.Attribute() | cst.Subscript():
            return not is_called_a_slice(part) and not is_called_an_array(part)
        case cst.Integer():
            return True
        case cst.UnaryOperation(expression=inner):
            return is_place(inner)
        case cst.BinaryOperation(left=left, right=right):
            return is_place(left) and is_place(right)
    return False


def along_one_axis(writes: Sequence[Write]) -> list[Part] | None:
    """The places on the one axis that all of `writes` are told apart by; None for other writes."""
    found = []
    for write in writes:
        before = [part for part in write.index if not is_whole(part)]
        if len(before) != 1 or not is_place(before[0]):
            return None
        found.append((write.index.index(before[0]), before[0]))
    return [part for _, part in found] if len({axis for axis, _ in found}) == 1 else None


def said_along(
    writes: Sequence[Write], places: Sequence[Part], array: str, source: Source, jnp: str, *, are_numbers: bool
) -> str:
    """`jnp.stack` of what a new array is made of, a `where` over the places of one that is there; and what holds of
    arrays of places, where those are not seen to be numbers."""
    or_arrays = "" if are_numbers else _of_arrays(writes)
    if is_fresh(root(writes[0]), source):
        axis = first_axis(writes[0])
        added = ", those of one place summed first" if _is_twice(writes, places, source) else ""
        stack = (
            f"{jnp}.stack([...]{f', axis={axis}' if axis else ''}) of the parts and of what is left as it was{added}"
        )
        numbers = [constant(place) for place in places]
        if len({number < 0 for number in numbers if number is not None}) > 1:  # nobody says how long a stack would be
            return _chosen(writes, places, "the fill", source, jnp) + or_arrays
        chosen = _chosen(writes, places, "the fill", source, jnp)
        if all(number is not None for number in numbers):
            return stack if _is_short(root(writes[0]), axis, source) else f"{stack}; of a long array {chosen}"
        return f"{stack}, where Python knows the places; else {chosen}{or_arrays}"
    return _chosen(writes, places, array, source, jnp) + or_arrays


def are_rows_of_a_short_one(writes: Sequence[Write], source: Source) -> bool:
    """Whether rows of a new array, of a few as far as is seen, are set at places that are written out, from one end."""
    numbers = [constant(place) for place in along_one_axis(writes) or ()]
    if None in numbers or len({number < 0 for number in numbers if number is not None}) != 1:
        return False
    axis = first_axis(writes[0])
    is_open = any(isinstance(part, cst.Ellipsis) for part in writes[0].index[:axis])
    is_set = all(write.method == "set" for write in writes)
    return is_set and not is_open and is_fresh(root(writes[0]), source) and _is_short(root(writes[0]), axis, source)


def _is_short(array: cst.BaseExpression, axis: int, source: Source) -> bool:
    """Whether a new array is seen to have a few rows: `jnp.zeros((4, n))`; or of nothing is seen how many it has."""
    match source.meant(array):
        case cst.Call(args=[cst.Arg(keyword=None, value=cst.Tuple(elements=sizes)), *_]):
            length = sizes[axis].value if axis < len(sizes) else None
        case cst.Call(args=[cst.Arg(keyword=None, value=length), *_]) as made if source.calls(made, *FRESH_BY_SHAPE):
            pass
        case _:
            return True
    number = constant(length) if length is not None else None
    return number is not None and number <= _FEW


def _of_arrays(writes: Sequence[Write]) -> str:
    """What holds where a place is more than one number: `halo_index`, and not `i`."""
    if len({write.method for write in writes}) > 1:
        return "; of places that are arrays one write for each method"
    return f"; of places that are arrays one `.{writes[0].method}` at all of them, joined as their values are"


def _chosen(writes: Sequence[Write], places: Sequence[Part], array: str, source: Source, jnp: str) -> str:
    """`jnp.where(k == j, b, jnp.where(k == i, a, x))`: what is written last is asked for first."""
    methods = {write.method for write in writes}
    values = (shown(write.value, source) for write in writes)
    told = [*zip((as_counted(place, source) for place in places), values, strict=True)]
    text = array
    for place, value in told:
        text = f"{jnp}.where(«k» == {place}, {value}, {text})"
    sign, nothing = SIGNS.get(writes[0].method, ("", ""))
    if sign:
        text = f" {sign} ".join([array, *(f"{jnp}.where(«k» == {place}, {value}, {nothing})" for place, value in told)])
    is_long = len(with_names(text)) > _LONGEST
    if sign and len(methods) == 1 and is_long:
        text = f"{array} {sign} {jnp}.where(«k» == «i», value, {nothing}), one for each place,"
    elif len(methods) > 1 or not (sign or methods == {"set"}) or is_long:
        text = f"{jnp}.where(«k» == «i», value, {array}), one inside the other,"
    return f"{text} with {numbers_along(writes[0], source, jnp)}"


def numbers_along(write: Write, source: Source, jnp: str) -> str:
    """The places that a `where` over one axis compares, and how its values stand beside them."""
    return f"`«k» = {jnp}.arange(«n»)` along that axis{_behind(write, source, jnp)}"


def _behind(write: Write, source: Source, jnp: str) -> str:
    """What an array among the values needs to stand in a `where`, if other axes come before the one of the places."""
    axis = first_axis(write)
    if axis == 0 or write.value is None or is_literal(write.value) or kind(write.value, source) == "scalar":
        return ""
    return f"; of an array {jnp}.expand_dims(value, {counted_axis(axis, write.index)})"


def as_counted(place: Part, source: Source) -> str:
    """A place as `arange` counts it: -1 is n - 1, and -h - 1 is n - h - 1."""
    text = source.code(place)
    if _is_from_the_end(place):
        return f"«n» - {text[1:].lstrip()}"
    meant = source.value(place) if isinstance(place, cst.Name) else None
    return f"«n» + {text}" if meant is not None and _is_from_the_end(meant) else text


def _is_from_the_end(place: Part) -> bool:
    """Whether a place is written with a minus first: `-1`, `-h - 1`, `-(h + 1)`."""
    match place:
        case cst.UnaryOperation(operator=cst.Minus()):
            return True
        case cst.BinaryOperation(left=left, operator=cst.Add() | cst.Subtract()):
            return not left.lpar and _is_from_the_end(left)
    return False


def _is_twice(writes: Sequence[Write], places: Sequence[Part], source: Source) -> bool:
    return writes[0].method == "add" and len({source.code(place) for place in places}) < len(places)


def fuses_on_a_gpu(writes: Sequence[Write], places: Sequence[Part], source: Source) -> bool:
    """Whether XLA is likely to make one kernel of the writes and of what reads them: rows at places that are known when
    the program is compiled, of an array that does not leave the program here."""
    array = root(writes[0])
    known = all(_is_known(place, source) for place in places)
    has_rows = _has_rows(array, source) or all(map(_is_a_row, writes))
    if not has_rows and not (known and not all(constant(place) is not None for place in places)):
        return False
    return (known or is_fresh(array, source)) and not leaves(writes[-1].call, source)


def _has_rows(array: cst.BaseExpression, source: Source) -> bool:
    """`jnp.zeros((n, m))` and `jnp.zeros_like(x)`, which nobody writes for a few numbers."""
    array = source.meant(array)
    if source.calls(array, *_LIKE):
        return True
    match array:
        case cst.Call(args=[cst.Arg(value=cst.Tuple(elements=[_, _, *_])), *_]):
            return is_fresh(array, source)
    return False


def _is_a_row(write: Write) -> bool:
    """`.at[1, :]`, of an array that is there already: read elementwise, two of them are one kernel on a GPU."""
    _, *others = write.index
    return bool(others) and all(map(is_whole, others))


def _is_known(place: Part, source: Source) -> bool:
    """A number, a static argument, or what a layout or a setting says: `variables.density_index`, a name for it,
    `DENSITY`."""
    for _ in range(2):
        if isinstance(place, cst.Name) and (value := source.value(place)) is not None:
            place = value
    match place:
        case cst.Name(value=name):
            return is_called_constant(name) or is_static_name(place, source)
        case cst.Attribute():
            names = [node.value for node in names_in(place)]
            return any(LAYOUT.search(name) for name in names[1:]) or names[-1].isupper()
    return constant(place) is not None


def leaves(value: cst.CSTNode, source: Source) -> bool:
    """Whether what is written is what a compiled function, a step of a loop or a branch hands out as it is."""
    function = source.function(value)
    if function is None or not _is_program(function, source):
        return False
    return any(_is_handed_out(end, source) for end in source.readers(value))


def _is_handed_out(value: cst.CSTNode, source: Source) -> bool:
    above = source.parent(value)
    while isinstance(above, cst.Element | cst.Tuple):
        above = source.parent(above)
    return isinstance(above, cst.Return)


def _is_program(function: cst.CSTNode, source: Source) -> bool:
    """Whether this is what `jax.jit`, a loop or a conditional of jax.lax is handed."""
    place = source.place(function)
    scope = source.body_scope(function)
    facts = source.facts.functions.get(scope)
    wanted = place._replace(scope=scope)
    if facts is not None and not _PROGRAMS.isdisjoint(source.project.decorators(place.path, facts)):
        # Of what another trace calls, XLA makes no program of its own.
        callers = source.project.callers(source.project.name_of(wanted))
        return not any(caller.scope and source.contexts.get(caller) != "host" for caller in callers)
    for name in _PROGRAMS.intersection(source.names):
        for where, call in source.called(name):
            handed = source.whole(call).value.arguments
            if any(wanted in source.project.functions_behind(where, one, PARTIAL) for one in handed):
                return True
    return False


def compared(part: Part, source: Source) -> str:
    """The places of a part of an index, as a comparison: `i == 0`, `i < 3`, `(i >= a) & (i < b)`, `i % 2 == 1`."""
    if isinstance(part, cst.Slice) and part.step is not None:
        first = source.code(part.lower) if part.lower is not None else "0"
        return f"«i» % {source.code(part.step)} == {first}"
    bounds = ((">=", part.lower), ("<", part.upper)) if isinstance(part, cst.Slice) else (("==", part),)
    asked = [f"«i» {sign} {brief(as_counted(bound, source), _LONG)}" for sign, bound in bounds if bound is not None]
    return all_of(asked)
