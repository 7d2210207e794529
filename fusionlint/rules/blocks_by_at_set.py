"""Blocks of an array written one after the other: `zeros((n, n)).at[:k, :k].set(a).at[k:, k:].set(b)`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING

import libcst as cst

from fusionlint.finding import Finding
from fusionlint.patterns.code.at import WRITES, Part, Write, at_write, is_fresh, is_whole, names_read
from fusionlint.patterns.code.paths import go_through_ifs
from fusionlint.patterns.code.unpacked import assigned
from fusionlint.patterns.compiled.written import are_blocks
from fusionlint.patterns.runs.concrete import is_concrete
from fusionlint.patterns.runs.for_one_caller import is_for_numpy
from fusionlint.patterns.values.array_sizes import is_vector
from fusionlint.patterns.writes.beside import is_chosen
from fusionlint.patterns.writes.block_advice import advice, advice_for_a_loop
from fusionlint.patterns.writes.chain import is_only_written, path, root
from fusionlint.patterns.writes.firsts import are_few_firsts
from fusionlint.patterns.writes.folded import is_folded, is_set_up
from fusionlint.patterns.writes.fused import are_columns, axis_of, is_last_of_three, is_worked_on_alone
from fusionlint.patterns.writes.heavy import (
    are_made_by_heavy_work,
    is_beside_a_solver,
    is_made_by_heavy_work,
    is_made_for_a_loop,
)
from fusionlint.patterns.writes.loop import are_windows_apart, are_windows_over, counted_by, piecewise
from fusionlint.patterns.writes.places import is_blocks, is_blocks_of_a_loop
from fusionlint.patterns.writes.rebuilt import rebuilt
from fusionlint.patterns.writes.stands import Stands, stands
from fusionlint.patterns.writes.words import BEHIND_IFS
from fusionlint.rule import Rule
from fusionlint.source.tree import Source
from fusionlint.source.walk import dotted

if TYPE_CHECKING:
    from fusionlint.hlo import parse as hlo
    from fusionlint.hlo.barriers import Barrier

rule = Rule(__name__, harm="fusion")

# The measured pairs of the page: blocks, and blocks that arithmetic alone reads.
_ALONE, _READ = 0, 2


@rule.source("Call", calls=WRITES)
def blocks_written_one_by_one(node: cst.Call, source: Source) -> Iterator[Finding]:
    """Two or more slices of a new array, each by its own write, on one path through `if`s."""
    last = at_write(node)
    if last is None:
        return
    writes = path(last, source)
    if not is_blocks(writes, source) or is_folded(writes, source) or is_concrete(node, source):
        return
    if _is_worked_over(writes, source):
        return
    if are_few_firsts(writes, source) or is_set_up(writes, source) or is_chosen(writes[0].call, source):
        return
    if is_only_written(root(writes[0]), source) or is_for_numpy(node, source):
        return
    if is_made_for_a_loop(node, source):
        return
    if is_beside_a_solver(node, source):
        return
    instead, pair = advice(writes, source), _pair(writes, source)
    if instead is None or pair is None:
        return
    is_path = go_through_ifs([write.call for write in writes], source)
    name, joined = source.assigned_name(node), None if is_path else rebuilt(writes, source)
    subject = f"`{name.value}` is" if name else "an array is"
    blocks = f"{len(writes)} blocks{' on one path' if is_path else ''}"
    yield source.finding(
        writes[0].call,
        f"{subject} put together from {blocks}, each written by a kernel of its own{_where(pair)}",
        until=node,
        write=f"{BEHIND_IFS if is_path else ''}{instead}",
        edits=joined.edits if joined is not None else (),
        safe=joined is not None and joined.is_exact,
        pair=pair,
    )


@rule.source("For", calls=WRITES, in_loop=True)
def blocks_written_in_a_loop(node: cst.For, source: Source) -> Iterator[Finding]:
    """A Python loop that writes one block of a new array in each iteration."""
    found = piecewise(node, source)
    if found is None or not is_blocks_of_a_loop(found, node, source) or is_concrete(node, source):
        return
    if all(is_folded([write], source) for write in found.writes):
        return
    if is_made_by_heavy_work(node, source) or are_made_by_heavy_work(found.writes, source):
        return
    # Windows that overlap are no blocks: what is added up there, or made of what is there, no concatenate says.
    write = next((w for w in found.writes if _is_set_anew(w) or are_windows_apart(w, node, source)), None)
    if write is None or are_windows_over(write, node, source) or _is_vector_of_results(write, source):
        return
    if _may_be_gathered(write, node, source):
        return
    array, pair = dotted(root(write)), _pair_of_a_loop(write, node, source)
    yield source.finding(
        write.call,
        f"`{array}` is put together from blocks in a Python loop, each written by a kernel of its own{_where(pair)}",
        write=advice_for_a_loop(write, node, source),
        pair=pair,
    )


@rule.barrier
def block_after_block(barrier: Barrier, module: hlo.Module) -> str | None:
    """What one write of a block leaves for the next."""
    if not are_blocks(barrier, module):
        return None
    return "put the blocks together at once: jnp.block, jnp.concatenate, or jax.scipy.linalg.block_diag"


def _is_worked_over(writes: Sequence[Write], source: Source) -> bool:
    """Whether there is one block, in which something is added, `.at[:n].set(rows).at[:n, :3].add(-centers)`: that is no
    block beside it, and no join says so."""
    first, *others = writes
    return first.method == "set" and all(
        later.method == "add" and _holds(first.index, later.index, source) for later in others
    )


def _holds(block: Sequence[Part], part: Sequence[Part], source: Source) -> bool:
    """Whether a place is seen to lie within another: on each axis it is the same, or all of that is taken."""
    if any(isinstance(one, cst.Ellipsis) for one in (*block, *part)):
        return False
    pairs = zip_longest(block, part)
    return all(
        one is None or is_whole(one) or (other is not None and source.code(one) == source.code(other))
        for one, other in pairs
    )


def _where(pair: int) -> str:
    """Where that is so: what arithmetic alone reads is one kernel with it elsewhere."""
    return " on a TPU" if pair == _READ else ""


def _may_be_gathered(write: Write, loop: cst.For, source: Source) -> bool:
    """Whether a place beside the slices may be an array of places, `.at[rows, a:b]`: such blocks nothing joins."""
    counted = counted_by(loop)
    names = [part for part in write.index if isinstance(part, cst.Name) and part.value not in counted]
    return any(stands(name, source) in (Stands.MANY, Stands.UNSEEN) for name in names)


def _is_set_anew(write: Write) -> bool:
    """Whether a block is set, to what nothing that was written before goes into."""
    array = root(write)
    read = names_read(write.value) if write.value is not None and isinstance(array, cst.Name) else ()
    return write.method == "set" and all(name.value != dotted(array) for name in read)


def _pair(writes: Sequence[Write], source: Source) -> int | None:
    """Which of the page's pairs this is a case of; None where what reads the blocks is one kernel with them anyway."""
    array = root(writes[0])
    made = source.meant(array)
    if axis_of(writes) is None or are_columns(writes, made, source) or not is_worked_on_alone(writes[-1].call, source):
        return _ALONE
    is_joined = all(write.method == "set" for write in writes)  # a sum of padded parts fuses along every axis
    return None if is_joined and is_last_of_three(writes, made, source) else _READ


def _pair_of_a_loop(write: Write, loop: cst.For, source: Source) -> int:
    """The same for blocks of a loop: along a last axis too, joined ones are less on a TPU."""
    array = root(write)
    before = [use.node for use in source.uses(array) if use.is_write] if isinstance(array, cst.Name) else []
    made = [value for name in before if (value := assigned(name, source)) is not None and is_fresh(value, source)]
    if axis_of([write]) is None or any(are_columns([write], value, source) for value in made):
        return _ALONE
    return _READ if is_worked_on_alone(write.call, source, loop) else _ALONE


def _is_vector_of_results(write: Write, source: Source) -> bool:
    """Whether numbers that a function of the project returns are kept in a vector: what it does is most of the work."""
    array = root(write)
    value = source.value(write.value) if isinstance(write.value, cst.Name) else write.value
    if len(write.index) != 1 or not isinstance(array, cst.Name) or not isinstance(value, cst.Call):
        return False
    return is_vector(array, source) and ":" in (source.qualified_name(value.func) or "")
