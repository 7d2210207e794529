"""The logsumexp of two arrays that are stacked for it: `logsumexp(jnp.stack([a, b]), axis=0)`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from fusionlint.finding import Finding
from fusionlint.patterns.code.at import constant, is_literal
from fusionlint.patterns.code.calls import argument, as_argument, has_only
from fusionlint.patterns.compiled.of_two import is_logsumexp_of_two
from fusionlint.patterns.operations.join import axis, parts
from fusionlint.rule import Rule
from fusionlint.source.tree import Source

if TYPE_CHECKING:
    from fusionlint.hlo import parse as hlo
    from fusionlint.hlo.barriers import Barrier

rule = Rule(__name__, harm="fusion")

_SUMS = ("jax.nn.logsumexp", "jax.scipy.special.logsumexp")
_STACK = "jax.numpy.stack"
_MADE = (_STACK, "jax.numpy.array", "jax.numpy.asarray")


@rule.source("Call", calls=_SUMS)
def reduced_over_two(node: cst.Call, source: Source) -> Iterator[Finding]:
    """Along the axis that was made for the two, and no other."""
    if not has_only(node, 2, "a", "axis"):
        return
    made = _made(node, source)
    if made is None or not has_only(made, 2 if source.calls(made, _STACK) else 1, "axis"):
        return  # the second argument of `jnp.array` is its dtype
    pair = parts(made, source)
    if len(pair) != 2 or any(isinstance(part, cst.List | cst.Tuple) for part in pair):
        return
    along = argument(node, 1, "axis")
    if constant(along) != axis(made, source) if along is not None else not _are_numbers(made, pair, source):
        return
    numpy = source.alias("jax.numpy") or "jax.numpy"
    text = f"{numpy}.logaddexp({', '.join(as_argument(part, source) for part in pair)})"
    yield source.finding(
        node,
        "two arrays are put into one, to be read by a maximum and a sum along the axis of two",
        write=text,
        edits=(source.replace(node, text),) if made is argument(node, 0, "a") else (),
    )


@rule.barrier
def joined_to_be_summed(barrier: Barrier, module: hlo.Module) -> str | None:
    """What crosses memory for a maximum and a sum over two arrays in one."""
    if not is_logsumexp_of_two(barrier, module):
        return None
    return "jnp.logaddexp(a, b), with a zero for one of them jax.nn.softplus: it is elementwise, and fuses"


@rule.barrier(pair=1)
def joined_with_a_zero(barrier: Barrier, module: hlo.Module) -> str | None:
    """The same."""
    return joined_to_be_summed(barrier, module)


def _made(node: cst.Call, source: Source) -> cst.Call | None:
    """The call that makes what is reduced, where nothing else reads that."""
    array = argument(node, 0, "a")
    written = source.written(array) if isinstance(array, cst.Name) else None
    if array is None or (written is not None and len(source.reads(written)) != 1):
        return None
    made = source.meant(array)
    return made if source.calls(made, *_MADE) else None


def _are_numbers(made: cst.Call, pair: tuple[cst.BaseExpression, ...], source: Source) -> bool:
    """Whether `jnp.array` makes a vector of the two, as one is a number: to sum over all is to sum over them."""
    return not source.calls(made, _STACK) and any(map(is_literal, pair))
