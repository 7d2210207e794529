"""A Python loop that repeats a loop of jax.lax: `for _ in range(n): x, _ = jax.lax.scan(step, x, rows)`."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from fusionlint.finding import Finding
from fusionlint.patterns.code.at import inside, names_read
from fusionlint.patterns.code.calls import brief
from fusionlint.patterns.loops.carry import Carry, calls
from fusionlint.rule import Rule
from fusionlint.source.tree import Source

rule = Rule(__name__, harm="compile-time")

_LOOPS = ("jax.lax.scan", "jax.lax.fori_loop", "jax.lax.while_loop")
# So many loops compile fast enough, and are what `unroll` would make of them.
_FEW = 4


@rule.source("For", calls=_LOOPS)
def loops_in_a_loop(loop: cst.For, source: Source) -> Iterator[Finding]:
    """Every iteration writes the same loop into the program: nothing but what is carried differs."""
    count = _count(loop, source)
    if count is None or source.is_idle(loop):
        return
    if source.in_loop(loop) or not _is_plain(loop):
        return
    carry = Carry(loop)
    for write in carry.writes:
        inner = next((call for call in calls(write.value) if source.calls(call, *_LOOPS)), None)
        handed = {name.value for name in names_read(inner)} if inner is not None else set()
        if inner is not None and handed & set(write.names):
            yield _finding(loop, inner, count, source)
            return


def _count(loop: cst.For, source: Source) -> cst.BaseExpression | None:
    """n, of `range(n)` that nothing in the loop counts by, unless it is a small number."""
    match loop:
        case cst.For(target=cst.Name() as counter, iter=cst.Call(args=[cst.Arg(value=count)]) as over) if source.calls(
            over, "range"
        ):
            counted = any(loop.body in source.ancestors(name) for name in source.reads(counter))
            few = isinstance(count, cst.Integer) and count.evaluated_value <= _FEW
            return None if counted or few else count
    return None


def _is_plain(loop: cst.For) -> bool:
    """Whether the loop only assigns: what is collected, tested or left early is not one step of a loop of jax.lax."""
    kinds = (cst.Break, cst.Continue, cst.Return, cst.Yield, cst.If, cst.Expr, cst.With, cst.Try, cst.While)
    return not any(isinstance(node, kinds) for node in inside(loop.body) if not _is_comment(node))


def _is_comment(node: cst.CSTNode) -> bool:
    return isinstance(node, cst.Expr) and isinstance(node.value, cst.SimpleString)


def _finding(loop: cst.For, inner: cst.Call, count: cst.BaseExpression, source: Source) -> Finding:
    name = source.code(inner.func).rpartition(".")[2]
    lax = source.alias("jax.lax") or "jax.lax"
    n = brief(source.code(count), 40, "n")
    return source.finding(
        loop,
        f"the same `{name}` is written into the program {n} times: it compiles longer with each of them",
        write=f"{lax}.fori_loop(0, {n}, lambda _, x: ..., x) around one `{name}`; the program runs no faster by it",
    )
