"""Rows that are shuffled each on its own by more sorts than one: `jax.random.permutation(..., independent=True)`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, TypedDict

import libcst as cst

from fusionlint.finding import Edit, Finding
from fusionlint.patterns.code.before import free_name, line_before
from fusionlint.patterns.code.calls import argument, as_argument, brief, has_only
from fusionlint.patterns.code.layout import Called, in_place_of
from fusionlint.patterns.code.modules import named
from fusionlint.patterns.compiled.of_jax import is_of_call
from fusionlint.patterns.compiled.readers import sorts_of, value_of
from fusionlint.patterns.operations.drawn import draws_again
from fusionlint.patterns.runs.concrete import is_concrete
from fusionlint.patterns.runs.made_once import is_for_hosts_alone
from fusionlint.patterns.values.factors import axes_of
from fusionlint.rule import Rule
from fusionlint.source.tree import Source

if TYPE_CHECKING:
    from fusionlint.hlo import parse as hlo
    from fusionlint.hlo.barriers import Barrier

rule = Rule(__name__, harm="fusion")

# Of more in a row so many meet that a second sort is none too many.
_LONG_ROW = 4096
_PERMUTATION = "jax.random.permutation"
_LONGEST = 40


@rule.source("Call", calls=(_PERMUTATION,))
def shuffled_rows(node: cst.Call, source: Source) -> Iterator[Finding]:
    """Only where `independent=True` is written out, and where there may be rows."""
    independent = argument(node, 3, "independent")
    if not isinstance(independent, cst.Name) or independent.value != "True" or _is_one_row(node, source):
        return
    if is_concrete(node, source) or is_for_hosts_alone(source.project, source.contexts, source.place(node)):
        return
    yield source.finding(
        node,
        "all rows are sorted several times, lest two numbers drawn for the whole array meet: for a row once will do",
        **_sorted_once(node, source),
    )


@rule.barrier
def rows_sorted_again(barrier: Barrier, module: hlo.Module) -> str | None:
    """Rows that are permuted each by itself, by sorts of all of them one after the other."""
    dims = value_of(barrier, module).shape.dims
    if "sort" not in barrier.opcodes or len(dims) < 2 or dims[-1] > _LONG_ROW:
        return None
    rounds = [
        sort
        for sort in module.every("sort")
        if sort.stack == barrier.stack and is_of_call(sort, ("_shuffle",)) and "vmap(" not in sort.op_name
    ]
    if len(rounds) < 2 or not any(sort in rounds for sort in sorts_of(barrier, module)):
        return None
    return "one lax.sort_key_val(jax.random.bits(key, x.shape), x): elements meet in their own row alone"


def _is_one_row(node: cst.Call, source: Source) -> bool:
    """Whether all elements are of one row: a number, `jnp.arange(n)`, or what a vmap calls for each of its rows. Who
    says no axis has one, unless more are seen."""
    array = argument(node, 1, "x")
    return argument(node, 2, "axis") is None and (array is None or axes_of(array, source) != "matrix")


class _Instead(TypedDict):
    """What a finding says to write."""

    write: str
    edits: tuple[Edit, ...]


def _sorted_once(node: cst.Call, source: Source) -> _Instead:
    """`jax.lax.sort_key_val(jax.random.bits(key, x.shape), x, dimension=0)[1]`; a line before names what is none."""
    key, array, axis = argument(node, 0, "key"), argument(node, 1, "x"), argument(node, 2, "axis")
    if key is None or array is None:
        return {"write": "one jax.lax.sort_key_val of random bits", "edits": ()}
    is_named = isinstance(array, cst.Name | cst.Attribute)
    shown = brief(as_argument(array, source), _LONGEST, "x")
    x = source.code(array) if is_named else free_name("values", node, source)
    k = as_argument(key, source)
    before = line_before(node, f"{x} = {source.code(array)}", source) if not is_named else None
    is_whole = has_only(node, 4, "key", "x", "axis", "independent") and not source.has_comment(node)
    is_whole = is_whole and not draws_again(node, source)
    drawn = _sort(node, k, x, axis, source)
    if not is_whole or not (is_named or before is not None):
        short = _sort(node, brief(k, _LONGEST, "key"), shown, axis, source)
        return {"write": str(short), "edits": ()}
    write = str(drawn) if is_named else f"{x} = {shown}; {drawn}"
    return {"write": write, "edits": (*([before] if before is not None else ()), in_place_of(node, drawn, source))}


def _sort(node: cst.Call, key: str, x: str, axis: cst.BaseExpression | None, source: Source) -> Called:
    random, lax = named("jax.random", node, source), named("jax.lax", node, source)
    along = source.code(axis) if axis is not None else "0"
    bits = Called(f"{random}.bits", (key, f"{x}.shape"))
    return Called(f"{lax}.sort_key_val", (bits, x, f"dimension={along}"), behind="[1]")
