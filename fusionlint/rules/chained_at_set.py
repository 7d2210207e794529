"""Writes to one array one after the other: `x.at[i].set(a).at[j].set(b)`, in one expression or in statements."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import libcst as cst

from fusionlint.finding import Finding
from fusionlint.lazily import regex
from fusionlint.patterns.code.at import WRITES, Part, Write, at_write
from fusionlint.patterns.code.paths import go_through_ifs
from fusionlint.patterns.compiled.links import (
    are_pieces_of_a_chain,
    chain_of,
    is_cut_to_be_written,
    line_of_pieces,
    made_by,
)
from fusionlint.patterns.compiled.of_jax import is_of_jax
from fusionlint.patterns.compiled.readers import first_uses, value_of, writer_of
from fusionlint.patterns.compiled.written import are_columns
from fusionlint.patterns.runs.alternatives import is_way_asked_for
from fusionlint.patterns.runs.beside_scans import is_beside_scans
from fusionlint.patterns.runs.concrete import is_concrete
from fusionlint.patterns.runs.dropped_results import is_dropped
from fusionlint.patterns.runs.for_one_caller import is_decomposed, is_for_a_decomposition, is_for_numpy
from fusionlint.patterns.runs.for_traces import is_for_traces
from fusionlint.patterns.runs.options import is_instead_of_a_scan, is_none_by_default
from fusionlint.patterns.runs.pictured import is_asked_for_by_pictures
from fusionlint.patterns.writes.advice import advice
from fusionlint.patterns.writes.beside import (
    are_picked_by_python,
    is_beside_more,
    is_chosen,
    is_of_numpy,
    is_of_the_host,
    is_taken_to_the_host,
)
from fusionlint.patterns.writes.by_ones import are_ones_within_a_kernel
from fusionlint.patterns.writes.carried import are_layers_of_a_carry
from fusionlint.patterns.writes.chain import is_columns, is_only_written, path, root
from fusionlint.patterns.writes.chain_fix import of_chain
from fusionlint.patterns.writes.entries import are_entries
from fusionlint.patterns.writes.firsts import are_few_firsts
from fusionlint.patterns.writes.folded import is_folded, is_grid, is_set_up
from fusionlint.patterns.writes.fused import are_known_elements
from fusionlint.patterns.writes.heavy import (
    are_given_by_a_loop,
    is_beside_a_solver,
    is_for_steps,
    is_made_by_heavy_work,
    is_made_for_a_loop,
)
from fusionlint.patterns.writes.hits import are_as_many_as_found
from fusionlint.patterns.writes.loop import Piecewise, piecewise
from fusionlint.patterns.writes.loop_advice import of_pieces, works_on_what_is_there
from fusionlint.patterns.writes.loop_fix import of_loop
from fusionlint.patterns.writes.loop_pair import are_numbers
from fusionlint.patterns.writes.loop_turns import has_two_turns, is_counted_out, is_in_order
from fusionlint.patterns.writes.many import are_added_up
from fusionlint.patterns.writes.needed import is_one_needed
from fusionlint.patterns.writes.one_write import (
    behind_a_fill,
    could_be_one,
    folded_first,
    is_set_and_added,
    of_one_kind,
)
from fusionlint.patterns.writes.places import is_blocks, is_blocks_of_a_loop, is_boundary
from fusionlint.patterns.writes.ragged import are_of_their_own, is_ragged
from fusionlint.patterns.writes.told import ELEMENTS, FUSED
from fusionlint.patterns.writes.windows import are_each_of_a_kind, are_grids, are_windows, is_mirrored, of_one_rank
from fusionlint.patterns.writes.words import BEHIND_IFS
from fusionlint.rule import Rule
from fusionlint.source.environments import is_for_a_reset_of_bodies
from fusionlint.source.tree import Source
from fusionlint.source.walk import dotted

if TYPE_CHECKING:
    from fusionlint.hlo import parse as hlo
    from fusionlint.hlo.barriers import Barrier

rule = Rule(__name__, harm="fusion")

# A setting of that name has pieces made one by one, lest all of them be there at once.
_MEMORY = regex(r"memory")
# What is cut up for devices is cut before anything runs on them: `for d in range(n_devices)`.
_DEVICES = regex(r"\b(n|num)_(local_)?devices\b|\b(local_)?device(s|_count)\(")
# Of fewer pieces a line may be two calls.
_PIECES = 4
_BY_A_MASK = "write all places at once: one jnp.where, with a mask of the places"
_OF_WRITES = ("scatter", "in-place update")
# An update in place, and the look at what stood there, which stays where the index is outside.
_OF_ONE_SLICE = ("dynamic-update-slice", "dynamic-slice")


@rule.source("Call", calls=WRITES)
def written_one_after_the_other(node: cst.Call, source: Source) -> Iterator[Finding]:
    """Two or more writes in a straight line that one could do."""
    last = at_write(node)
    if last is None or not is_for_traces(node, source):
        return
    written = path(last, source)
    if len(written) < 2:
        return
    writes = of_one_rank(of_one_kind(behind_a_fill(written), source))
    writes = writes[folded_first(writes, source) :]
    if len(writes) < 2 or not could_be_one(writes, source) or is_set_up(writes, source):
        return
    array = root(writes[0])
    if is_set_and_added(writes, source) or is_only_written(array, source) or is_of_numpy(array, source):
        return
    if _is_told_elsewhere(writes, source) or are_ones_within_a_kernel(writes, source):
        return
    if are_few_firsts(writes, source) or are_windows(writes, source) or is_mirrored(writes, source):
        return
    if are_grids(writes) or are_each_of_a_kind(writes, source) or is_taken_to_the_host(writes[-1].call, source):
        return
    if are_added_up(writes, source) or is_one_needed(writes, source) or are_as_many_as_found(writes, source):
        return
    name = _name(writes, source)
    if _is_of_a_loop(node, name, source) or is_concrete(node, source) or is_chosen(writes[0].call, source):
        return
    if _is_nothing(writes, source) or are_picked_by_python(writes, source) or is_for_numpy(node, source):
        return
    subject = f"`{name}`" if name else "an array"
    instead = advice(writes, name, source)
    if instead.pair == ELEMENTS and are_known_elements(writes, source):
        return  # one scatter would be more
    is_path = go_through_ifs([write.call for write in writes], source)
    on_a_path = " on one path" if is_path else ""
    yield source.finding(
        writes[0].call,
        f"{subject} is written {len(writes)} times in a row{on_a_path}, each time by kernels of its own",
        until=writes[-1].call,
        write=f"{BEHIND_IFS if is_path else ''}{instead.text}",
        edits=of_chain(writes, instead.form, source, is_path=is_path),
        pair=FUSED if is_grid(writes, source) else instead.pair,
    )


@rule.source("For", calls=WRITES, in_loop=True)
def written_piece_by_piece(node: cst.For, source: Source) -> Iterator[Finding]:
    """A Python loop that writes another place of an array in each iteration."""
    found = piecewise(node, source) if is_for_traces(node, source) else None
    if found is None or is_way_asked_for(node, _MEMORY, source) or is_none_by_default(node.iter, source):
        return
    if has_two_turns(node, source) or is_instead_of_a_scan(node, source):
        return
    if is_blocks_of_a_loop(found, node, source) or is_concrete(node, source) or _DEVICES.search(source.code(node.iter)):
        return
    if all(is_folded([write], source) or is_only_written(root(write), source) for write in found.writes):
        return
    if all(is_counted_out(write, node, source) for write in found.writes) or are_layers_of_a_carry(found, node, source):
        return
    if _are_pairs(found, source) or are_of_their_own(found, node, source) or works_on_what_is_there(found, source):
        return
    if (
        is_ragged(found, node, source)
        or is_in_order(found, node, source)
        or is_asked_for_by_pictures(source.project, source.place(node))
    ):
        return
    if is_of_the_host(node, source) or is_chosen(node, source) or is_made_by_heavy_work(node, source):
        return
    if is_for_a_reset_of_bodies(node, source) or _is_decomposed(found, source) or are_numbers(found, node, source):
        return
    if all(is_taken_to_the_host(w.call, source) or is_of_numpy(root(w), source) for w in found.writes):
        return
    instead = of_pieces(found, node, source)
    yield source.finding(
        found.writes[0].call,
        f"{_names(found)} written piece by piece in a Python loop, each piece by kernels of its own",
        write=instead.text,
        edits=of_loop(found, node, source),
        pair=instead.pair,
    )


@rule.barrier
def written_by_one_kernel_after_the_other(barrier: Barrier, module: hlo.Module) -> str | None:
    """What one scatter has written and another kernel's scatter writes to again, or an update in place of one slice
    that XLA has made of either; and the places and values that only such scatters take."""
    if barrier.writer in barrier.readers:
        return None  # one write in each step of a loop, whatever else looks at the array
    uses = [*first_uses(barrier, module)]
    if not uses or are_columns(barrier, module):
        return None
    if barrier.opcodes[-1:] == ("scatter",):
        return _by_one_scatter(barrier, uses, module)
    if barrier.cause == "in-place update" and are_pieces_of_a_chain(barrier, module):
        return "write all pieces at once: jnp.stack or jnp.concatenate of them, or one jnp.where with a mask"
    return _by_a_mask(barrier, uses, module) or _for_one_of_several(barrier, module)


@rule.barrier
def written_in_a_loop_of_python(barrier: Barrier, module: hlo.Module) -> str | None:
    """What crosses memory for a line that sets one piece of an array after the other, whatever goes into a piece."""
    found = line_of_pieces(barrier, module) if barrier.cause == "in-place update" else None
    if found is None or found[1] < _PIECES:
        return None
    line, pieces = found
    where = "this line" if barrier.stack[:1] == (line,) else f"line {line.line}"
    return (
        f"one jnp.stack of the {pieces} pieces that {where} writes one after the other, or one write of that; "
        "where none needs another, jax.vmap makes them all"
    )


def _by_one_scatter(barrier: Barrier, uses: Sequence[hlo.Instruction], module: hlo.Module) -> str | None:
    dims = value_of(barrier, module).shape.dims
    if any(use.opcode != "scatter" or use.shape.dims != dims for use in uses):
        return None
    own = [s for s in module.work_of(writer_of(barrier, module)) if s.opcode == "scatter" and not is_of_jax(s)]
    methods = {made_by(step, module) for step in (*own, *uses)}
    # What is set and what is added is no one scatter.
    return _at_once(methods.pop()) if len(methods) == 1 else None


def _for_one_of_several(barrier: Barrier, module: hlo.Module) -> str | None:
    """A place, or what comes there, that is made by a kernel of its own for writes one after the other."""
    place = chain_of(barrier, module) if barrier.cause in _OF_WRITES else None
    if place is None:
        return None
    return _at_once(place.method) if place.method else _BY_A_MASK


def _at_once(method: str) -> str:
    return f"write all places at once: one .at[indices].{method}(values), with arrays of indices"


def _by_a_mask(barrier: Barrier, uses: Sequence[hlo.Instruction], module: hlo.Module) -> str | None:
    dims, here = value_of(barrier, module).shape.dims, module.computations[barrier.computation]
    if any(use.opcode not in _OF_ONE_SLICE and not is_cut_to_be_written(use, here, module) for use in uses):
        return None  # something needs the array in between
    beside = {
        name for reader in barrier.readers if reader in here.instructions for name in here.instructions[reader].operands
    }
    if any(_slices_set(name, dims, here, module) for name in beside - {barrier.value}):
        return None  # what is written next is made of another piece
    written = _slices_set(barrier.writer, dims, here, module)
    if not any(written & _slices_set(name, dims, here, module) for name in barrier.readers):
        return None
    return _BY_A_MASK


def _slices_set(
    name: str, dims: tuple[int, ...], computation: hlo.Computation, module: hlo.Module
) -> set[tuple[int, ...]]:
    """The sizes of the slices that a kernel sets in an array of `dims`, where `.at[...].set` said so."""
    item = computation.instructions.get(name)  # a loop's condition, or a branch, has its own
    if item is None:
        return set()
    body = (module.body(item) or computation).instructions
    return {
        body[step.operands[1]].shape.dims
        for step in module.work_of(item)
        if step.opcode == "dynamic-update-slice"
        and step.shape.dims == dims
        and step.op_name.rpartition("/")[2] == "scatter"
        and not is_of_jax(step)
    }


def _is_told_elsewhere(writes: list[Write], source: Source) -> bool:
    """Whether rules of their own say what to write instead of these."""
    if is_columns(writes) or are_entries(writes, source):
        return True
    return is_boundary(writes, source) or is_blocks(writes, source)


def _is_nothing(writes: Sequence[Write], source: Source) -> bool:
    """Whether what is around them, or what is made of them, takes so long that nobody minds the writes."""
    last = writes[-1].call
    if is_beside_more(writes, source):
        return True
    if is_made_for_a_loop(last, source) or is_for_a_reset_of_bodies(last, source):
        return True
    if is_for_steps(last, source) or is_beside_a_solver(last, source) or is_beside_scans(last, source):
        return True
    if is_for_a_decomposition(last, source) or is_decomposed(last, source) or is_dropped(last, source):
        return True
    return are_given_by_a_loop(writes, source)


def _is_decomposed(found: Piecewise, source: Source) -> bool:
    """Whether the one array that a loop writes is handed to a decomposition behind it."""
    return len(found.arrays) == 1 and any(is_decomposed(write.call, source) for write in found.writes)


def _name(writes: Sequence[Write], source: Source) -> str:
    """What the code calls the array: where it ends, where it begins, or on the way."""
    array = root(writes[0])
    last, *others = [source.assigned_name(write.call) for write in reversed(writes)]
    candidates = [last, array if isinstance(array, cst.Name) else None, *others]
    named = next((name.value for name in candidates if name is not None), "")
    return named or dotted(array)


def _is_of_a_loop(node: cst.Call, name: str, source: Source) -> bool:
    """Whether the loop around `node` is what is to be said."""
    loop = source.loop(node)
    found = piecewise(loop, source) if isinstance(loop, cst.For) else None
    return found is not None and name in found.arrays and not _are_pairs(found, source)


def _are_pairs(found: Piecewise, source: Source) -> bool:
    """Whether each array is written twice at one place that is looked up, `x.at[places[edge]].mul(a)`, then `.add(b)`:
    those two are one write; that the pieces are of one shape, to be written at once, is not seen."""
    places = Counter((source.code(w.array), *map(source.code, w.index)) for w in found.writes)
    looked_up = all(any(_is_looked_up(part, source) for part in w.index) for w in found.writes)
    return looked_up and min(places.values()) > 1


def _is_looked_up(part: Part, source: Source) -> bool:
    meant = source.value(part) if isinstance(part, cst.Name) else part
    return isinstance(meant, cst.Subscript)


def _names(found: Piecewise) -> str:
    first, *others = found.arrays
    if not others:
        return f"`{first}` is"
    return f"`{first}` and `{others[0]}` are" if len(others) == 1 else f"`{first}` and {len(others)} more are"
