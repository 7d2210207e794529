"""Whether the places of writes are many each: arrays of places, which are joined and not listed.

In: writes of a Source that follow one another. Out: whether nobody doubts that each place is an array.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import libcst as cst

from fusionlint.lazily import regex
from fusionlint.patterns.code.at import (
    FRESH_BY_SHAPE,
    RANGES,
    Part,
    Write,
    constant,
    inside,
    is_fresh,
    is_literal,
    is_whole,
    names_read,
)
from fusionlint.patterns.code.calls import by_position, keyword
from fusionlint.patterns.code.unpacked import kept_in, unpacked
from fusionlint.patterns.values.kinds import kind
from fusionlint.patterns.values.reads import attributes_of
from fusionlint.patterns.writes.chain import root
from fusionlint.source.tree import Source
from fusionlint.source.walk import dotted

_JOINS = tuple(
    f"{module}.{name}" for module in ("numpy", "jax.numpy") for name in ("stack", "concatenate", "array", "arange")
)
# Of these nobody doubts that they are arrays: sets of places, and masks, which are places where a trace knows them.
_MANY = regex(
    r"(^|_)(nodes|ids|idxs|inds|indices|rows|cols|columns|atoms|edges|faces|places|dofs|particles|masks?|filter)$"
    r"|[a-z](Nodes|Ids|Indices|Rows|Columns|Atoms|Edges|Faces|Dofs)$|^is(_|[A-Z])|^ind(ex|ices)[A-Z]"
)
# A table of numbers, one under each name: `INDEX["density"]`.
_INDEX = regex(r"(^|[_.])(index|idx)$", re.I)
# What finds them axis by axis: `i, j = np.triu_indices(n, 1)`.
_OF_AXES = tuple(
    f"{module}.{name}"
    for module in ("numpy", "jax.numpy")
    for name in ("triu_indices", "tril_indices", "nonzero", "where")
)
_WHERE = ("numpy.where", "jax.numpy.where")
# A name seldom stands for more names than this.
_DEPTH = 8
# What says what an array holds, and of which shape.
_TYPES = frozenset(("Bool", "Complex", "Float", "Inexact", "Int", "Integer", "Num", "Real", "Shaped", "UInt"))
_LISTS = regex(r"(nodes|ids|idxs|inds|indices|rows|cols|columns|atoms|edges|faces|places|dofs|particles)(_lists?|s)?$")
FINDS = tuple(
    f"{module}.{name}"
    for module in ("numpy", "jax.numpy")
    for name in ("nonzero", "flatnonzero", "argwhere", "where", "setdiff1d", "intersect1d", "unique")
)


def are_arrays(writes: Sequence[Write], source: Source) -> bool:
    """Whether the places are seen to be many, `.at[rows, kept]` and `.at[rows, cut]`, of rows that are a range; or each
    is an array that is put together before, looked up by its name, or called as arrays are; or each takes a row of
    values in an array of one axis."""
    if _is_vector(root(writes[0]), source) and all(w.value is not None and _is_row(w.value, source) for w in writes):
        return True
    ranges = ({source.code(part) for part in write.index if _is_range(part, source)} for write in writes)
    many = [any(is_many(part, source) for part in write.index) for write in writes]
    return bool(set.intersection(*ranges)) or all(many) or _are_named_beside_arrays(writes, source)


def _are_named_beside_arrays(writes: Sequence[Write], source: Source) -> bool:
    """Whether one place is made as an array of places is, and no other is seen to be one number."""
    places = [part for write in writes for part in write.index if not is_whole(part)]
    if not all(isinstance(part, cst.Name) and kind(part, source) != "scalar" for part in places):
        return False
    return any(isinstance(part, cst.Name) and _is_made_an_array(part, source) for part in places)


def _is_made_an_array(name: cst.Name, source: Source) -> bool:
    """`jnp.arange(n)`, `jnp.arange(n).astype("i8")`, `jnp.arange(n)[kept]`, `np.flatnonzero(mask)`, a table."""
    value = source.value(name)
    is_range = value is not None and (source.calls(value, *RANGES) or _is_range_of_a_type(value, source))
    return is_range or _is_joined(name, source) or _is_a_table(name, source)


def _is_a_table(name: cst.Name, source: Source) -> bool:
    """Whether this is a constant of the module that is an array."""
    return name.value.isupper() and kind(name, source) == "array"


def _is_vector(array: cst.BaseExpression, source: Source) -> bool:
    """`jnp.zeros(n)`, and not `jnp.zeros((n, m))`."""
    made = source.meant(array)
    return source.calls(made, *FRESH_BY_SHAPE) and _has_one_axis(made, source)


def _is_row(value: cst.BaseExpression, source: Source) -> bool:
    """Whether arithmetic with `jnp.ones(n)` or the like makes the value: one number it is not."""
    match value:
        case cst.Name():
            meant = source.value(value)
            return meant is not None and not isinstance(meant, cst.Name) and _is_row(meant, source)
        case cst.BinaryOperation(left=left, right=right):
            return _is_row(left, source) or _is_row(right, source)
    return source.calls(value, *FRESH_BY_SHAPE, "jax.numpy.arange") and _has_one_axis(value, source)


def _has_one_axis(made: cst.BaseExpression, source: Source) -> bool:
    match made:
        case cst.Call(args=[cst.Arg(keyword=None, value=shape), *_]):
            return not isinstance(shape, cst.Tuple | cst.List) and not source.code(shape).endswith("shape")
    return False


def is_many(part: Part, source: Source, depth: int = _DEPTH) -> bool:
    """Whether nobody doubts that this is an array of places."""
    if isinstance(part, cst.Name) and _is_made_an_array(part, source):
        return True
    value = source.value(part) if isinstance(part, cst.Name) else None
    if isinstance(value, cst.Tuple):
        return any(is_many(element.value, source) for element in value.elements)
    if _is_found_along_an_axis(part if value is None else value, source):
        return True
    match value if isinstance(value, cst.BinaryOperation) else part:
        case cst.BinaryOperation(left=left, right=right):
            return depth > 0 and any(is_many(side, source, depth - 1) for side in (left, right))
        case cst.Call() as made:
            return source.calls(made, *RANGES) or _is_an_array_of_places(made, source) or _is_of_columns(made, source)
        case cst.Name() if value is not None and is_literal(value):
            return False
        case cst.Name() as name if _has_axes(name, source) or _is_a_column(value) or _is_measured(name, source):
            return True
        case cst.Attribute(attr=cst.Name(name)) as field:
            return bool(_MANY.search(name)) or any(_is_an_array_of_places(v, source) for v in kept_in(field, source))
        case cst.Name(value=name):
            return bool(_MANY.search(name))
        case cst.Subscript() as places:
            return _are_looked_up(places, source, depth)
    return False


def _are_looked_up(part: cst.Subscript, source: Source, depth: int) -> bool:
    """`NODES["surface"]`, `starts[rows]`, `locations[:, 0]`."""
    match part:
        case cst.Subscript(value=table, slice=[cst.SubscriptElement(slice=cst.Index(value=cst.SimpleString()))]):
            return _INDEX.search(dotted(table)) is None
        case cst.Subscript(slice=[cst.SubscriptElement(slice=cst.Index(value=cst.Name() | cst.Attribute() as at))]):
            return depth > 0 and is_many(at, source, depth - 1)
    return any(isinstance(each.slice, cst.Slice) for each in part.slice)


def _is_found_along_an_axis(part: Part, source: Source) -> bool:
    """`jnp.nonzero(mask, size=2)[0]`: as many places as are asked for."""
    match part:
        case cst.Subscript(value=cst.Call() as found, slice=[cst.SubscriptElement(slice=cst.Index(value=axis))]):
            size = keyword(found, "size")
            is_one = size is not None and constant(size) == 1
            is_place = constant(axis) is not None and not is_one and not chooses(found, source)
            return is_place and source.calls(found, *_OF_AXES)
    return False


def _is_of_columns(made: cst.Call, source: Source) -> bool:
    """`tuple(places.T)`: one place has nothing to be turned round."""
    match made.args:
        case [cst.Arg(value=cst.Attribute(attr=cst.Name("T")))]:
            return source.calls(made, "tuple")
    return False


def _is_measured(name: cst.Name, source: Source) -> bool:
    """Whether somebody asks how many there are, `places.shape[0]`: one number has no length."""
    return any(each.attr.value in ("shape", "size") for each in attributes_of(name, source))


def _is_a_column(value: cst.BaseExpression | None) -> bool:
    """`edges[:, 0]`."""
    match value:
        case cst.Subscript(slice=[cst.SubscriptElement(slice=cst.Slice(lower=None, upper=None)), *others]):
            return bool(others)
    return False


def _is_range_of_a_type(value: cst.BaseExpression, source: Source) -> bool:
    """`jnp.arange(n).astype("i8")`, `jnp.arange(n)[kept]`."""
    match value:
        case cst.Call(func=cst.Attribute(value=whole, attr=cst.Name("astype"))) | cst.Subscript(value=whole):
            return source.calls(whole, *RANGES)
    return False


def _is_joined(part: cst.Name, source: Source) -> bool:
    """Whether this is a name for `np.stack(places)`, `np.arange(1, n)`, `np.flatnonzero(mask)` or the like, for a list,
    or for what is found along one of several axes."""
    match unpacked(source.written(part), source):
        case cst.Call() as found:
            return source.calls(found, *_OF_AXES)
        case cst.GeneratorExp(elt=each) | cst.ListComp(elt=each):
            return _is_an_array_of_places(each, source)
    made = source.value(part)
    return made is not None and (isinstance(made, cst.List | cst.ListComp) or _is_an_array_of_places(made, source))


def _is_an_array_of_places(made: cst.BaseExpression, source: Source) -> bool:
    """`np.stack(places)`, `jnp.concatenate(places)[:-1]`, `jnp.where(mask)`; not `jnp.where(p, one, other)`, which may
    be one number."""
    match made:
        case cst.Subscript(value=whole, slice=[cst.SubscriptElement(slice=cst.Slice())]):
            return _is_an_array_of_places(whole, source)
    return not chooses(made, source) and source.calls(made, *_JOINS, *FINDS)


def chooses(made: cst.BaseExpression, source: Source) -> bool:
    """`jnp.where(p, one, other)`, which finds no places."""
    return isinstance(made, cst.Call) and len(by_position(made)) > 1 and source.calls(made, *_WHERE)


def _has_axes(name: cst.Name, source: Source) -> bool:
    """Whether this is a parameter that jaxtyping says has axes: `rows: Int[Array, "n"]`, `rows: Int["n"]`."""
    match source.binder(name):
        case cst.Param(
            annotation=cst.Annotation(
                annotation=cst.Subscript(
                    value=cst.Name(of) | cst.Attribute(attr=cst.Name(of)),
                    slice=[*before, cst.SubscriptElement(slice=cst.Index(cst.SimpleString() as axes))],
                )
            )
        ) if len(before) == 1 or (not before and of in _TYPES):
            return bool(str(axes.evaluated_value).strip(" ."))
    return False


def _is_range(part: Part, source: Source) -> bool:
    """`jnp.arange(n)`, a name for it, or that in another shape."""
    meant = source.meant(part)
    return any(source.calls(node, "jax.numpy.arange") for node in inside(meant))


def are_rows_of_ranges(writes: Sequence[Write], source: Source) -> bool:
    """Whether a new array is set at numbers and at ranges along one axis, `.at[0].set(a).at[jnp.arange(1, n)].set(b)`:
    as slices are, but that a scatter writes them."""
    if not is_fresh(root(writes[0]), source) or any(write.method != "set" for write in writes):
        return False
    places = [[(i, part) for i, part in enumerate(write.index) if not is_whole(part)] for write in writes]
    along = [part for several in places for _, part in several]
    if any(len(several) != 1 for several in places) or len({several[0][0] for several in places}) > 1:
        return False
    ranges = [_counts(part, source) for part in along]
    return any(ranges) and all(a or constant(part) is not None for a, part in zip(ranges, along, strict=True))


def _counts(part: Part, source: Source) -> bool:
    """`jnp.arange(n)`, a name for it, or that and a number."""
    meant = source.meant(part)
    match meant:
        case cst.BinaryOperation(left=left, operator=cst.Add() | cst.Subtract(), right=right):
            return isinstance(right, cst.Integer) and _counts(left, source)
    return source.calls(meant, *RANGES)


def is_one_of_many(part: Part, loop: cst.For) -> bool:
    """Whether each turn of a loop takes an array of places out of a list of them: `node_inds_list[i]`, or what the
    loop goes over is called so, `for name, indices in groups`."""
    match part:
        case cst.Name(name):
            return name in {each.value for each in names_read(loop.target)} and bool(_LISTS.search(name))
        case cst.Subscript(
            value=cst.Name(name) | cst.Attribute(attr=cst.Name(name)),
            slice=[cst.SubscriptElement(slice=cst.Index(value=cst.Name(counter)))],
        ):
            counted = {each.value for each in names_read(loop.target)}
            return counter in counted and bool(_LISTS.search(name))
    return False


def are_added_up(writes: Sequence[Write], source: Source) -> bool:
    """Whether many places are set and then added to, `.at[sinks].set(0.0).at[sinks].add(flows)`: of those that are
    there twice one write keeps the last alone."""
    first, *others = writes
    is_said_once = keyword(first.call, "unique_indices") is not None
    if first.method != "set" or any(write.method != "add" for write in others) or is_said_once:
        return False
    same = {tuple(map(source.code, write.index)) for write in writes}
    return len(same) == 1 and any(is_many(part, source) for part in first.index)
