"""The largest or smallest value picked from where it was found: `d[jnp.argmin(d)]`, which is `jnp.min(d)`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import libcst as cst

from fusionlint.finding import Edit, Finding
from fusionlint.patterns.code.at import at_write, constant, elements
from fusionlint.patterns.code.before import free_name, line_before
from fusionlint.patterns.code.calls import argument, as_argument, beside, brief, has_only
from fusionlint.patterns.code.left_unused import left_unused
from fusionlint.patterns.code.same import is_unchanged_between
from fusionlint.patterns.code.unpacked import unpacked, unpacked_at
from fusionlint.patterns.compiled.behind import Made, steps_in
from fusionlint.patterns.compiled.of_jax import is_of_jax
from fusionlint.patterns.compiled.round import axes_joined
from fusionlint.patterns.operations.picked import Pick, picks, taken_off
from fusionlint.patterns.runs.beside_scans import is_given_by_whole_loops
from fusionlint.patterns.runs.concrete import is_concrete
from fusionlint.patterns.runs.often import is_called_as_once
from fusionlint.patterns.runs.under import under_vmap
from fusionlint.rule import Rule
from fusionlint.source.facts import last_name
from fusionlint.source.tree import Source

if TYPE_CHECKING:
    from fusionlint.hlo import parse as hlo
    from fusionlint.hlo.barriers import Barrier

rule = Rule(__name__, harm="fusion")

_PLACES = ("jax.numpy.argmax", "jax.numpy.argmin")
_LOOPS = ("jax.lax.map", "jax.lax.scan", "jax.lax.while_loop", "jax.lax.fori_loop")
_LONG = 40
# Written out so often a reduction wants a name.
_SEVERAL = 3
# The page's pair about an array that is there already.
_THERE = 1
_CALLED = ("take_along_axis", "take", "argmax", "argmin")
_SIZES = {"gather": "slice_sizes", "dynamic-slice": "dynamic_slice_sizes"}


@rule.source("Call", calls=_PLACES)
def picked_where_it_was_found(node: cst.Call, source: Source) -> Iterator[Finding]:
    """Reads of an array at the place where it is largest or smallest."""
    array, axis = argument(node, 0, "a"), argument(node, 1, "axis")
    if array is None or not has_only(node, 2, "a", "axis", "keepdims"):
        return
    along = constant(axis) if axis is not None else None
    if axis is not None and along is None:
        return
    kept = argument(node, -1, "keepdims")
    is_kept = kept is not None and source.code(kept) == "True"
    if kept is not None and not is_kept and source.code(kept) != "False":
        return
    sure = (pick for pick in picks(node, along, source) if pick.is_sure and not (is_kept and pick.is_kept))
    found = [pick for pick in sure if is_unchanged_between(array, pick.array, source)]
    if not found or is_concrete(node, source):
        return
    if is_called_as_once(last_name(source.place(node).scope)) or _is_given_by_a_loop(array, source):
        return
    if all(_goes_back(pick.node, source) for pick in found) and not under_vmap(node, source):
        return
    is_there = isinstance(array, cst.Attribute) or (isinstance(array, cst.Name) and _is_in_memory(array, source))
    shown = brief(source.code(array), _LONG, "an array")
    once = _named_once(node, found, source, is_kept=is_kept) if len(found) >= _SEVERAL else ()
    for pick in found:
        off = taken_off(pick, along, source) if pick.is_kept else None
        text = _reduced(node, array, axis, source, is_kept=is_kept or (pick.is_kept and off is None))
        message = (
            f"`{shown}` is read once more, by a gather" if is_there else f"`{shown}` is written to memory for a gather"
        )
        yield source.finding(
            pick.node,
            f"{message}, for the value that a reduction has at hand",
            write=text,
            edits=once or _edits(pick.node if off is None else off, text, source),
            pair=_THERE if is_there else 0,
        )


@rule.barrier
def found_and_picked(barrier: Barrier, module: hlo.Module) -> str | None:
    """The place that a search has found, for the element there; or the array, which is written for that."""
    if not _is_picked(barrier, module):
        return None
    return "jnp.max or jnp.min of the array in place of reading it at the argmax or argmin: both are one reduction"


def _goes_back(pick: cst.Subscript | cst.Call, source: Source) -> bool:
    """Whether what is read is part of what is written at its own place, `x.at[i].set(x[i] - 1)`: the kernel that writes
    one number reads it, whoever found the place."""
    for above in source.ancestors(pick):
        write = at_write(above)
        if write is not None and isinstance(pick, cst.Subscript) and write.value is not None:
            is_own = source.code(write.array) == source.code(pick.value)
            return is_own and [*map(source.code, write.index)] == [*map(source.code, elements(pick.slice))]
        if isinstance(above, cst.BaseSmallStatement | cst.Lambda):
            return False
    return False


def _is_in_memory(array: cst.Name, source: Source) -> bool:
    """Whether an array is handed in, or is a part of what is: `state["counts"]`."""
    made = _part(array, source)
    match made:
        case (
            cst.Attribute(value=cst.Name() as whole)
            | cst.Subscript(
                value=cst.Name() as whole, slice=[cst.SubscriptElement(slice=cst.Index(value=cst.SimpleString()))]
            )
        ):
            return source.parameter(whole) is not None
    return source.parameter(array) is not None


def _part(array: cst.Name, source: Source) -> cst.BaseExpression | None:
    """What a name stands for, as one of several too: `counts` of `rng, counts = state["rng"], state["counts"]`."""
    if (several := unpacked_at(source.written(array), source)) is None:
        return source.value(array)
    match several:
        case cst.Tuple(elements=values), place, count if len(values) == count:
            return values[place].value
    return None


def _is_given_by_a_loop(array: cst.BaseExpression, source: Source) -> bool:
    """Whether a loop of jax.lax gave the array, or what it is a part of, in the same function, or a function that runs
    such loops did, `vmap(fitted)(keys).loss`: beside all the steps one more read is nothing."""
    whole = array
    while isinstance(whole, cst.Attribute):
        whole = whole.value
    if not isinstance(whole, cst.Name):
        return False
    made = unpacked(source.written(whole), source) or source.value(whole)
    if made is None or source.function(made) is not source.function(array):
        return False
    return (whole is array and source.calls(made, *_LOOPS)) or is_given_by_whole_loops(made, source)


def _edits(pick: cst.BaseExpression, text: str, source: Source) -> tuple[Edit, ...]:
    if source.has_comment(pick):
        return ()
    return (source.replace(pick, text), *left_unused(pick, text, source))


def _named_once(node: cst.Call, found: list[Pick], source: Source, *, is_kept: bool) -> tuple[Edit, ...]:
    """The edits for all of several reads of one number, which gets a name before it is searched for."""
    array, axis = argument(node, 0, "a"), argument(node, 1, "axis")
    if not isinstance(array, cst.Name) or any(pick.is_kept or source.has_comment(pick.node) for pick in found):
        return ()
    if len(source.readers(node)) <= len(found):
        return ()  # nothing else reads the place, which is left unused
    name = free_name(f"{array.value}_{'max' if source.calls(node, _PLACES[0]) else 'min'}", node, source)
    line = line_before(node, f"{name} = {_reduced(node, array, axis, source, is_kept=is_kept)}", source)
    if line is None or any(source.function(pick.node) is not source.function(node) for pick in found):
        return ()
    return (line, *(source.replace(pick.node, name) for pick in found))


def _reduced(
    node: cst.Call, array: cst.BaseExpression, axis: cst.BaseExpression | None, source: Source, *, is_kept: bool
) -> str:
    """`jnp.min(d, axis=1)`, with the user's own names."""
    name = "max" if source.calls(node, _PLACES[0]) else "min"
    arguments = [as_argument(array, source)]
    if axis is not None:
        arguments.append(f"axis={source.code(axis)}")
    if is_kept:
        arguments.append("keepdims=True")
    numpy = source.alias_at(node, "jax.numpy") or "jnp"
    return f"{beside(node.func, name, source) or f'{numpy}.{name}'}({', '.join(arguments)})"


class _Pick(NamedTuple):
    """The kernels that made the array, that searched it, and that pick from it."""

    array: str
    search: str
    pick: str


def _is_picked(barrier: Barrier, module: hlo.Module) -> bool:
    """Whether the value is the place that was found, for a reader that takes the element there from the very array that
    was searched; or that array, which nobody else reads."""
    here = module.computations[barrier.computation]
    kernels = [here.instructions[name] for name in barrier.readers if name in here.instructions]
    picks = [one for kernel in kernels for one in _picks(kernel, here, module)]
    if any(one.search == barrier.writer for one in picks):
        return True
    taken = {name for one in picks if one.array == barrier.writer for name in (one.search, one.pick)}
    return bool(taken) and {*barrier.readers} <= taken


def _picks(kernel: hlo.Instruction, here: hlo.Computation, module: hlo.Module) -> Iterator[_Pick]:
    for opcode, sizes in _SIZES.items():
        for pick in steps_in(kernel, here, module, opcode):
            if set(pick.step.attributes[sizes].strip("{}").split(",")) == {"1"} and not is_of_jax(pick.step, _CALLED):
                array, search = pick.operand(0, module), _search(pick, module)
                if search is not None and search.operand(0, module).step is array.step:
                    yield _Pick(array.kernel.name, search.kernel.name, kernel.name)


def _search(pick: Made, module: hlo.Module) -> Made | None:
    """The argmax or argmin whose result is the place on the axis that it searched; on all others each has its own."""
    array = pick.operand(0, module).step.shape.dims
    place, axis = pick.operand(1, module), 0
    if place.step.opcode == "concatenate":
        (joined,) = axes_joined(place.step)
        parts = [place.operand(number, module) for number in range(len(place.step.operands))]
        others = [number for number, part in enumerate(parts) if part.step.opcode != "iota"]
        if joined != len(place.step.shape.dims) - 1 or len(others) != 1 or len(parts) != len(array):
            return None
        axis = others[0]
        place = parts[axis]
    elif len(array) != 1:
        return None
    found = _counted(place, array[axis], module)
    return found if found is not None and found.step.attributes.get("dimensions") == f"{{{axis}}}" else None


def _counted(place: Made, length: int, module: hlo.Module) -> Made | None:
    """What found a place, where that is read as it is: but for what counts from the end."""
    while place.step.opcode in ("select", "convert", "broadcast", "clamp"):
        if place.step.opcode == "select":
            other = place.operand(1, module)
            if other.step.opcode != "add" or other.operand(0, module).step is not place.operand(2, module).step:
                return None
            by = other.operand(1, module)
            while by.step.opcode in ("broadcast", "convert"):
                by = by.operand(0, module)
            if by.step.literal != str(length):
                return None
        place = place.operand({"select": 2, "clamp": 1}.get(place.step.opcode, 0), module)
    if place.step.opcode != "reduce" or len(place.step.operands) != 4:
        return None
    return place if place.operand(1, module).step.opcode == "iota" else None
