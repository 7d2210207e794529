"""A roll by a number that differs between the elements of a `vmap`: `vmap(lambda x, n: jnp.roll(x, n))`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from fusionlint.finding import Finding
from fusionlint.lazily import regex
from fusionlint.patterns.code.calls import argument
from fusionlint.patterns.compiled.moved_in_a_loop import moved_in_a_loop
from fusionlint.patterns.compiled.of_jax import is_of_call
from fusionlint.patterns.runs.mapped import differs, is_mapped_by, is_of_constants
from fusionlint.rule import Rule
from fusionlint.source.tree import Source

if TYPE_CHECKING:
    from fusionlint.hlo import parse as hlo
    from fusionlint.hlo.barriers import Barrier

rule = Rule(__name__, harm="fusion")

_ROLL = "jax.numpy.roll"
_VMAP = "jax.vmap"
_AXES = regex(r"(^|_)(axes|dims)$")


@rule.source("Call", calls=(_ROLL,))
def roll_per_element(node: cst.Call, source: Source) -> Iterator[Finding]:
    """All of an array, or several of its axes, by a mapped number or one of an environment's state."""
    shift, axis = argument(node, 1, "shift"), argument(node, 2, "axis")
    # Along one axis whole rows are moved, which is a gather on a TPU too, until they are large.
    if shift is None or not (axis is None or _is_several(axis)):
        return
    if differs(shift, source):
        yield _finding(node, source)


@rule.source("Call", calls=(_VMAP,))
def mapped_itself(node: cst.Call, source: Source) -> Iterator[Finding]:
    """`vmap(jnp.roll)`, which makes one axis of all."""
    handed = argument(node, 0, "fun")
    if not isinstance(handed, cst.Name | cst.Attribute) or source.qualified_name(handed) != _ROLL:
        return
    if is_mapped_by(node, 1, source) and not is_of_constants(node, 2, source):
        yield _finding(node, source)


@rule.barrier
def rolled_one_by_one(barrier: Barrier, module: hlo.Module) -> str | None:
    """What crosses memory in the loop that a TPU rolls one array after the other by."""
    loop = moved_in_a_loop(barrier, module)
    if loop is None or not is_of_call(loop, ("_roll_dynamic",)):
        return None
    return "take from the places that come round, x[(jnp.arange(n) - k) % n]: one gather in place of a roll"


def _is_several(axis: cst.BaseExpression) -> bool:
    match axis:
        case cst.Tuple(elements=elements) | cst.List(elements=elements):
            return len(elements) > 1
        case cst.Name(value=name) | cst.Attribute(attr=cst.Name(value=name)):
            return _AXES.search(name) is not None
    return False


def _finding(node: cst.Call, source: Source) -> Finding:
    return source.finding(
        node,
        "each element of the batch is rolled by a number of its own: a loop over the batch on a TPU",
        write="x[(jnp.arange(n) - shift) % n], with an index for each axis that is rolled",
    )
