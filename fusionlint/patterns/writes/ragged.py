"""Loops whose pieces are of other sizes, which neither a vmap nor a stack can hold.

In: the writes of a loop of a Source. Out: whether their places are seen to be blocks or lists of places, each of a
length of its own: `for block, start, size in ...: x = x.at[start:start + size].set(block)`.
"""

from __future__ import annotations

import libcst as cst

from fusionlint.patterns.code.at import RANGES, TO_ARRAY, Part, Write, elements, inside, is_literal, names_read
from fusionlint.patterns.code.calls import by_position
from fusionlint.patterns.code.unpacked import stored_in
from fusionlint.patterns.writes.axis import SLICES
from fusionlint.patterns.writes.loop import Piecewise, counted_by
from fusionlint.patterns.writes.places import is_fresh_before, is_nested
from fusionlint.source.tree import Source
from fusionlint.source.walk import dotted

_LISTS = ("list", "sorted")
# Which places hold what is asked for: as many as there are.
_FINDS = tuple(
    f"{module}.{name}" for module in ("numpy", "jax.numpy") for name in ("where", "nonzero", "flatnonzero", "argwhere")
)
# A grid of as many rows and columns as there are, which no other grid is joined to.
_GRIDS = ("numpy.ix_", "jax.numpy.ix_")
_OFARRAYS = ("jax.random.permutation", "len")


def is_ragged(found: Piecewise, loop: cst.For, source: Source) -> bool:
    """Whether a place is seen to be as long as each iteration has it."""
    if any(is_nested(part, loop) for write in found.writes for part in write.index):
        return True
    if all(_is_a_rectangle(write) for write in found.writes):
        return True
    counted = counted_by(loop)
    if source.calls(loop.iter, "range") and _are_counted_off(found, loop, counted, source):
        return True
    return any(_is_of_its_own(part, write, counted, source) for write in found.writes for part in write.index)


def are_of_their_own(found: Piecewise, loop: cst.For, source: Source) -> bool:
    """Whether the places of each piece are looked up by its key, `nodes = blocks[name]`: they are of other lengths. So
    are the parts of an array that is there, where somebody names them and says what is new in each, `updates.items()`.
    """
    keys = counted_by(loop)
    if not isinstance(loop.iter, cst.Call):
        places = [[part for part in w.index if isinstance(part, cst.Name)] for w in found.writes]
        return all(any(_kept_under(part, source) in keys for part in each) for each in places)
    if not dotted(loop.iter.func).endswith(".items") or any(is_fresh_before(w, loop, source) for w in found.writes):
        return False
    begins = [[part.lower for part in w.index if isinstance(part, cst.Slice)] for w in found.writes]
    return all(any(_is_of_a_key(_kept_under(begin, source), loop, keys) for begin in each) for each in begins)


def _kept_under(place: cst.BaseExpression | None, source: Source) -> str | None:
    """`name`, of what `x = table[name]` or `x, y = table[name]` stores."""
    if not isinstance(place, cst.Name):
        return None
    match stored_in(place, source):
        case cst.Subscript(slice=[cst.SubscriptElement(slice=cst.Index(value=cst.Name(key)))]):
            return key
    return None


def _is_of_a_key(name: str | None, loop: cst.For, keys: set[str]) -> bool:
    """Whether `name` is a key, or is made of one in the loop: `first = group.variables[0]`."""
    made = (node.value for node in inside(loop.body, cst.Assign) if name and _is_set(name, node))
    return name in keys or any(read.value in keys for value in made for read in names_read(value))


def _is_a_rectangle(write: Write) -> bool:
    """`.at[top:bottom, left:right].set(v)`, of any size, which lies over others as it comes. Not a block of a diagonal,
    `[i:j, i:j]`."""
    sides = [part for part in write.index if isinstance(part, cst.Slice) and not _is_even(part)]
    return len(sides) > 1 and not all(side.deep_equals(sides[0]) for side in sides)


def _are_counted_off(found: Piecewise, loop: cst.For, counted: set[str], source: Source) -> bool:
    """Whether each turn makes some places by a range of another length than the last: `j + jnp.arange(n - j)`,
    `n + jnp.arange(-j, j + 1)`, under names of their own too."""
    places = [part for write in found.writes for part in write.index]
    names = {name.value for part in places for name in names_read(part)}
    assigned = inside(loop.body, cst.Assign)
    made = (node.value for node in assigned if any(_is_set(name, node) for name in names))
    ranges = (node for value in (*places, *made) for node in inside(value) if source.calls(node, *RANGES))
    return any(isinstance(one, cst.Call) and _is_of_another_length(one, counted, source) for one in ranges)


def _is_of_another_length(made: cst.Call, counted: set[str], source: Source) -> bool:
    match by_position(made):
        case [begin, cst.BinaryOperation(left=left, operator=cst.Add(), right=length)] if left.deep_equals(begin):
            lengths = [length]
        case [_] | [_, _] as lengths:
            pass
        case _:
            return False
    meant = [source.meant(length) for length in lengths]
    return any(not counted.isdisjoint(name.value for name in names_read(length)) for length in meant)


def _is_set(name: str, node: cst.Assign) -> bool:
    return any(isinstance(each.target, cst.Name) and each.target.value == name for each in node.targets)


def _is_of_its_own(part: Part, write: Write, counted: set[str], source: Source) -> bool:
    meant = (source.value(part) or part) if isinstance(part, cst.Name) and part.value not in counted else part
    match meant:
        case cst.Call() if source.calls(meant, *_GRIDS):
            return True
        case cst.Call(args=[cst.Arg(value=asked)]) if source.calls(meant, *_FINDS):
            return not counted.isdisjoint(name.value for name in names_read(asked))
        case cst.Name(value=name) if name in counted:
            return write.value is not None and _is_taken_for_many(name, write.value, source)
        case (
            cst.Call(func=cst.Attribute(value=cst.Name(owner), attr=cst.Name(method)))
            | cst.Attribute(value=cst.Name(owner), attr=cst.Name(method))
        ) if owner in counted:
            return bool(SLICES.search(method))
        case cst.Call(args=[cst.Arg(value=cst.Name(places))]) if places in counted:
            return source.calls(meant, *TO_ARRAY, *_LISTS)
        case cst.Call(args=[cst.Arg(value=cst.GeneratorExp(elt=made) | cst.ListComp(elt=made))]):
            return isinstance(made, cst.Call) and dotted(made.func) == "slice" and not _is_as_long_as_ever(made)
        case cst.Subscript(slice=[cst.SubscriptElement(slice=cst.Index(value=hits))]) if _asks_for(
            hits, counted, source
        ):
            return True  # as many as there are hits
        case cst.Subscript(slice=slices) if meant is not part:
            return any(isinstance(one, cst.Slice) and not _is_even(one) for one in elements(slices))
    return False


def _asks_for(hits: cst.BaseExpression, counted: set[str], source: Source) -> bool:
    """Whether this is a mask by what the loop counts, `labels == i`."""
    meant = source.meant(hits)
    return isinstance(meant, cst.Comparison) and not counted.isdisjoint(name.value for name in names_read(meant))


def _is_taken_for_many(name: str, value: cst.BaseExpression, source: Source) -> bool:
    """Whether the value is made of a whole array of places: `jax.random.permutation(key, places)`, `len(places)`."""
    made = (node for node in inside(value, cst.Call) if source.calls(node, *_OFARRAYS))
    return any(isinstance(arg.value, cst.Name) and arg.value.value == name for call in made for arg in call.args)


def _is_as_long_as_ever(made: cst.BaseExpression) -> bool:
    """`slice(start, start + 8)`, and not `slice(start, start + size)` of what is counted beside it."""
    match made:
        case cst.Call(args=[cst.Arg(value=lower), cst.Arg(value=upper)]):
            return _is_even(cst.Slice(lower=lower, upper=upper))
    return False


def _is_even(part: cst.Slice) -> bool:
    """Whether a slice is of a length that is written out, open at an end, or between what is counted: `i:i + 8`."""
    lower, upper = part.lower, part.upper
    if lower is None or upper is None:
        return True
    match upper:
        case cst.BinaryOperation(left=left, operator=cst.Add(), right=right):
            return (left.deep_equals(lower) and is_literal(right)) or not isinstance(lower, cst.Name)
    return not all(isinstance(bound, cst.Name | cst.Subscript) for bound in (lower, upper))
