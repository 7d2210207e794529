"""The columns of an array written one by one: `zeros((n, 4)).at[:, 0].set(x).at[:, 1].set(v)`."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import libcst as cst

from fusionlint.finding import Edit, Finding
from fusionlint.rule import Rule
from fusionlint.rules._at import Write, at_write, chain, column, is_last
from fusionlint.source.tree import Source

rule = Rule(__name__, harm="fusion")

_FRESH = ("jax.numpy.zeros", "jax.numpy.empty", "jax.numpy.ones", "jax.numpy.zeros_like", "jax.numpy.empty_like")


@rule.source(cst.Call, attributes=("at",))
def columns_written_one_by_one(node: cst.Call, source: Source) -> Iterator[Finding]:
    """Two or more columns in a row, each by its own write."""
    last = at_write(node)
    if last is None or column(last) is None or not source.is_traced(node) or not is_last(last, source):
        return
    writes = chain(last, source)
    columns = [w for w in writes if column(w) is not None]
    if len(columns) < 2 or len(columns) < len(writes):
        return
    values = [_shown(w, source) for w in columns[:3]] + ["..."] * bool(columns[3:])
    yield source.finding(
        writes[0].call,
        f"{len(columns)} columns are written one by one, each by a kernel of its own",
        until=node,
        write=f"jnp.stack([{', '.join(values)}], axis=-1)",
        edits=_fix(writes, source),
    )


def _shown(write: Write, source: Source) -> str:
    text = source.code(write.value) if write.value is not None else "..."
    return text if "\n" not in text and len(text) <= 30 else "..."


def _fix(writes: list[Write], source: Source) -> tuple[Edit, ...]:
    """One stack, where the writes are one expression that sets every column of a fresh array.

    Not safe: a stack takes its dtype and its shape from the values, the writes from the array.
    """
    base, last = writes[0].array, writes[-1]
    nested = all(outer.array is inner.call for inner, outer in pairwise(writes))
    whole = [column(w) for w in writes] == list(range(len(writes)))
    sets = all(w.method == "set" and w.value is not None for w in writes)
    if not (isinstance(base, cst.Call) and source.calls(base, *_FRESH) and _width(base) == len(writes)):
        return ()
    if not (nested and whole and sets):
        return ()
    stack = source.code(base.func).rpartition(".")[0] + ".stack"
    values = ", ".join(source.code(w.value) for w in writes if w.value is not None)
    return (source.replace(last.call, f"{stack}([{values}], axis=-1)"),)


def _width(fresh: cst.BaseExpression) -> int | None:
    """The last axis of `zeros((n, 4))`."""
    match fresh:
        case cst.Call(args=[cst.Arg(value=cst.Tuple(elements=[*_, last])), *_]):
            return last.value.evaluated_value if isinstance(last.value, cst.Integer) else None
    return None
