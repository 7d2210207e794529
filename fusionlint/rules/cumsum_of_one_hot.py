"""A running sum along the classes of a one-hot, `jnp.cumsum(jax.nn.one_hot(i, n), axis=-1)`: a comparison."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from fusionlint.finding import Finding
from fusionlint.patterns.code.at import constant
from fusionlint.patterns.code.calls import argument
from fusionlint.patterns.compiled.one_hots import is_summed_along_classes
from fusionlint.patterns.operations.one_hot import MAKERS, making_one_hots, one_hot
from fusionlint.rule import Rule
from fusionlint.source.tree import Source

if TYPE_CHECKING:
    from fusionlint.hlo import parse as hlo
    from fusionlint.hlo.barriers import Barrier

rule = Rule(__name__, harm="fusion")

_CUMSUMS = ("jax.numpy.cumsum", "jax.lax.cumsum")


def _summing(source: Source) -> Iterator[str]:
    """The scopes of a file that sums anything up which make one-hots: asked of the facts."""
    is_summed = "cumsum" in source.facts.attributes or any(map(source.names.__contains__, _CUMSUMS))
    return making_one_hots(source) if is_summed else iter(())


@rule.source("Call", when=_summing, needs=MAKERS)
def summed_along_classes(node: cst.Call, source: Source) -> Iterator[Finding]:
    """Only on the last axis, where the classes are: on another it counts what came before."""
    if source.calls(node, *_CUMSUMS):
        array, axis = argument(node, 0, "a") or argument(node, 0, "operand"), argument(node, 1, "axis")
    else:
        match node.func:
            case cst.Attribute(value=array, attr=cst.Name("cumsum")):
                axis = argument(node, 0, "axis")
            case _:
                return
    if array is None or axis is None or constant(axis) != -1:
        return
    found = one_hot(array, source)
    if found is None:
        return
    numpy = source.jnp
    classes = source.code(found.classes) if found.classes is not None else "n"
    index = source.code(found.index)
    index = index if isinstance(found.index, cst.Name | cst.Attribute | cst.Call) else f"({index})"
    write = f"{numpy}.arange({classes}) >= {index}[..., None]"
    yield source.finding(node, "a running sum finds out which places come after one", write=write)


@rule.barrier
def one_hot_summed(barrier: Barrier, module: hlo.Module) -> str | None:
    """What crosses memory where such a sum begins."""
    if not is_summed_along_classes(barrier, module):
        return None
    return "jnp.arange(n) >= i[..., None] for the running sum of a one-hot: a comparison fuses with what reads it"
