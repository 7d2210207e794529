"""Rows that are shuffled each on its own by more sorts than one: `jax.random.permutation(..., independent=True)`."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from fusionlint.finding import Finding
from fusionlint.patterns.calls import argument, as_argument, brief
from fusionlint.rule import Rule
from fusionlint.source.tree import Source

rule = Rule(__name__, harm="fusion")

_PERMUTATION = "jax.random.permutation"
_LONGEST = 40


@rule.source(cst.Call, calls=(_PERMUTATION,))
def shuffled_rows(node: cst.Call, source: Source) -> Iterator[Finding]:
    """Only where `independent=True` is written out: a number instead of an array has one row."""
    if not source.calls(node, _PERMUTATION) or not source.is_traced(node):
        return
    independent = argument(node, 3, "independent")
    if not isinstance(independent, cst.Name) or independent.value != "True":
        return
    yield source.finding(
        node,
        "all rows are sorted several times, lest two numbers drawn for the whole array meet: for a row once will do",
        write=_sorted_once(node, source),
    )


def _sorted_once(node: cst.Call, source: Source) -> str:
    key, array, axis = argument(node, 0, "key"), argument(node, 1, "x"), argument(node, 2, "axis")
    random, lax = source.alias("jax.random") or "jax.random", source.alias("jax.lax") or "jax.lax"
    k = brief(as_argument(key, source), _LONGEST, "key") if key is not None else "key"
    x = brief(as_argument(array, source), _LONGEST, "x") if array is not None else "x"
    along = source.code(axis) if axis is not None else "0"
    return f"{lax}.sort_key_val({random}.bits({k}, {x}.shape), {x}, dimension={along})[1]"
