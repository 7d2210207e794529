"""The logsumexp of two arrays that are stacked for it: `logsumexp(jnp.stack([a, b]), axis=0)`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from fusionlint.finding import Finding
from fusionlint.patterns.code.at import constant, is_literal
from fusionlint.patterns.code.calls import argument, as_argument, has_only
from fusionlint.patterns.compiled.matrices import At, made_at
from fusionlint.patterns.compiled.of_jax import is_of_jax
from fusionlint.patterns.compiled.readers import kernels_around
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
_JOINS = frozenset(("concatenate", "pad"))


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


@rule.barrier(pair=1)
@rule.barrier
def joined_to_be_summed(barrier: Barrier, module: hlo.Module) -> str | None:
    """What crosses memory for a maximum and a sum over two arrays in one."""
    if not _is_logsumexp_of_two(barrier, module):
        return None
    return "jnp.logaddexp(a, b), with a zero for one of them jax.nn.softplus: it is elementwise, and fuses"


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


def _is_logsumexp_of_two(barrier: Barrier, module: hlo.Module) -> bool:
    """Whether the kernel that makes the value, or one that reads it, takes those exponentials at the barrier's line."""
    here = module.computations[barrier.computation]
    for item in kernels_around(barrier, module):
        for step in module.work_of(item):
            is_here = step.opcode == "exponential" and step.stack == barrier.stack and bool(step.stack)
            kernel = item if module.body(item) is not None else None
            if is_here and not is_of_jax(step) and _is_of_two(At(step.name, kernel, here), module):
                return True
    return False


def _is_of_two(exponential: At, module: hlo.Module) -> bool:
    without = made_at(exponential.operand(0, module), module)
    if without.step(module).opcode != "subtract":
        return False
    array, most = (made_at(without.operand(number, module), module) for number in range(2))
    if not _is_finite(most, module):
        return False
    dims, left = [*exponential.step(module).shape.dims], [size for size in most.step(module).shape.dims if size != 1]
    pairs = [axis for axis, size in enumerate(dims) if size == 2]
    of_two = any([size for size in dims[:axis] + dims[axis + 1 :] if size != 1] == left for axis in pairs)
    return of_two and _is_joined(array, module)


def _is_finite(most: At, module: hlo.Module) -> bool:
    """Whether a value is a maximum where that is finite, and something else elsewhere."""
    if most.step(module).opcode != "select":
        return False
    return made_at(most.operand(0, module), module).step(module).opcode == "is-finite"


def _is_joined(array: At, module: hlo.Module) -> bool:
    """A TPU widens the parts, and takes their maximum or their sum."""
    step = array.step(module)
    if step.opcode in ("maximum", "add"):
        return any(made_at(array.operand(n, module), module).step(module).opcode == "pad" for n in range(2))
    return step.opcode in _JOINS
