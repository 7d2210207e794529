"""A whole sort of which only the k largest are read: `jnp.argsort(-x)[:k]`, `jnp.sort(x)[-k:]`."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from fusionlint.finding import Finding
from fusionlint.hlo import parse as hlo
from fusionlint.hlo.barriers import Barrier
from fusionlint.patterns.calls import as_argument
from fusionlint.patterns.readers import sliced_to
from fusionlint.patterns.sort import SORTS, Sorted, Taken, reads_of
from fusionlint.rule import Rule
from fusionlint.source.tree import Source

rule = Rule(__name__, harm="fusion")


@rule.source(cst.Call, calls=SORTS)
def largest_of_a_sort(node: cst.Call, source: Source) -> Iterator[Finding]:
    """Every read of the sorted array takes some of the largest, along the last axis: what `top_k` takes.

    The smallest are left alone: for them `top_k` needs the negated array, which costs what it saves.
    """
    found = reads_of(node, source) if source.calls(node, *SORTS) and source.is_traced(node) else None
    if found is None:
        return
    made, taken = found
    counted = [one for one in taken if one.count is not None]
    if not counted or any(one.end == "smallest" or not _is_last_axis(made, one) for one in taken):
        return
    shown = source.code(counted[0].count) if counted[0].count is not None else "k"
    yield source.finding(
        node,
        f"everything is sorted, and only the `{shown}` largest are read",
        write=_instead(made, counted[0], source),
    )


@rule.barrier
def sorted_for_some(barrier: Barrier, module: hlo.Module) -> str | None:
    """A sort whose readers cut several elements from it."""
    length = sliced_to(barrier, module) if "sort" in barrier.opcodes else None
    return "lax.top_k instead of a part of a whole sort" if length is not None and length > 1 else None


def _is_last_axis(made: Sorted, one: Taken) -> bool:
    return made.axis == -1 or (made.axis == one.length - 1 > 0)


def _instead(made: Sorted, one: Taken, source: Source) -> str:
    """`lax.top_k(x, k)[1]`, turned round where the largest came last."""
    lax = source.alias("jax.lax") or "jax.lax"
    count = source.code(one.count) if one.count is not None else "k"
    text = f"{lax}.top_k({as_argument(made.array, source)}, {count})[{1 if made.is_order else 0}]"
    if one.is_single:
        return f"{text}[..., -1]"
    return f"{text}[..., ::-1]" if one.from_back else text
