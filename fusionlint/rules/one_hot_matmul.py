"""`jax.nn.one_hot(i, n) @ w`: a product with zeros that reads all of a table, for rows that a gather reads alone."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from fusionlint.finding import Finding
from fusionlint.lazily import regex
from fusionlint.patterns.code.at import constant
from fusionlint.patterns.code.calls import argument, as_operand
from fusionlint.patterns.code.functions import function_named
from fusionlint.patterns.code.same import is_same_at
from fusionlint.patterns.compiled.of_jax import is_of_call
from fusionlint.patterns.compiled.readers import readers_of, value_of, writer_of
from fusionlint.patterns.loops.step_writes import result
from fusionlint.patterns.operations.one_hot import (
    MAKERS,
    OneHot,
    factors,
    factors_of_einsum,
    has_many_classes,
    is_einsum,
    making_one_hots,
    one_hot,
)
from fusionlint.patterns.runs.alternatives import comments_above, is_beside, is_way_asked_for
from fusionlint.rule import Rule
from fusionlint.source.tree import Source
from fusionlint.source.walk import dotted

if TYPE_CHECKING:
    from fusionlint.hlo import parse as hlo
    from fusionlint.hlo.barriers import Barrier

rule = Rule(__name__, harm="fusion")

# Of fewer classes a product is as good.
_MANY = 32
_FEW = regex(r"(^|[._])(num_|n_)?(\w+_)?(buckets?|beams?|beam_size|beam_width|experts?|segments?)$")
_WAY = regex(r"one_?hot|mat_?mul|iota", re.I)
# Who says so close above knows of the gather, and why it is none.
_CHOSEN = regex(r"\bTPUs?\b|\b[Gg]athers?\b")
# As many lines as making the one-hot takes.
_CLOSE = 8
_GATHERS = ("jax.numpy.take", "jax.numpy.take_along_axis")
_LAYERS = ("flax.linen.Dense", "haiku.Linear")


@rule.source("BinaryOperation", "Call", when=making_one_hots, needs=MAKERS)
def picked_by_a_product(node: cst.BinaryOperation | cst.Call, source: Source) -> Iterator[Finding]:
    """`one_hot(i, n) @ w`, `jnp.matmul`, `jnp.dot`, the einsums that do so, and layers of a one-hot; not where a
    setting asks for that, or for a gather otherwise, or a comment says that it is for TPUs, where it is no harm, or
    instead of a gather."""
    found = list(_products(node, source))
    if is_beside(node, source, *_GATHERS):
        return
    if found and not is_way_asked_for(node, _WAY, source) and not _is_said_to_be_meant(found[0].location.line, source):
        yield from found


@rule.barrier
def one_hot_for_a_product(barrier: Barrier, module: hlo.Module) -> str | None:
    """A one-hot that nothing reads but products over its classes."""
    dims = value_of(barrier, module).shape.dims
    made = (step for step in module.work_of(writer_of(barrier, module)) if step.shape.dims == dims)
    if len(dims) < 2 or dims[-1] < _MANY or not any(is_of_call(step, ("_one_hot", "one_hot")) for step in made):
        return None
    kernels = [[step for step in module.work_of(one) if _is_product(step)] for one in readers_of(barrier, module)]
    if not all(kernels):
        return None
    # What is summed over is in no result; of the gradient of the table it is.
    over_classes = [dims[-1] not in step.shape.dims for steps in kernels for step in steps if not _is_of_gradient(step)]
    return (
        "take the rows at the places, table[i], in place of a product with a one-hot"
        if any(over_classes) and all(over_classes)
        else None
    )


def _is_product(step: hlo.Instruction) -> bool:
    return step.opcode in ("dot", "convolution", "custom-call") and step.op_name.endswith("dot_general")


def _is_of_gradient(step: hlo.Instruction) -> bool:
    return "transpose(jvp(" in step.op_name


def _is_said_to_be_meant(line: int, source: Source) -> bool:
    """Whether a comment close above a line speaks of TPUs, or of the gather that this is instead of."""
    return any(map(_CHOSEN.search, comments_above(line, _CLOSE, source)))


def _products(node: cst.BinaryOperation | cst.Call, source: Source) -> Iterator[Finding]:
    if (sides := factors(node, source)) is not None:
        yield from _picked(node, *sides, source)
    elif is_einsum(node, source):
        yield from _picked_by_einsum(node, source)
    elif isinstance(node, cst.Call) and isinstance(node.func, cst.Call) and len(node.args) == 1:
        yield from _picked_by_layer(node, node.func, source)
    elif isinstance(node, cst.Call) and len(node.args) == 1:
        yield from _picked_by_helper(node, source)


def _picked_by_layer(node: cst.Call, layer: cst.Call, source: Source) -> Iterator[Finding]:
    """`nn.Dense(features)(one_hot(i, n))`: of a few classes it is cheap, so they have to be seen to be none."""
    if not source.calls(layer, *_LAYERS):
        return
    found = one_hot(node.args[0].value, source)
    if found is None or found.classes is None or isinstance(found.classes, cst.Integer):
        return
    embed = "hk.Embed" if source.calls(layer, "haiku.Linear") else "nn.Embed"
    write = f"{embed}({source.code(found.classes)}, ...)({source.code(found.index)}), and a bias if it is needed"
    yield source.finding(node, _MESSAGE, write=write)


def _picked_by_helper(node: cst.Call, source: Source) -> Iterator[Finding]:
    """`self.quantize(one_hot(i, n))`, of a method or function of the file that returns a product with what it is
    handed: `return jnp.dot(z, codebook)`."""
    found = one_hot(node.args[0].value, source)
    helper = function_named(node.func, source) if found is not None else None
    returned = result(helper) if helper is not None else None
    sides = factors(returned, source) if isinstance(returned, cst.BinaryOperation | cst.Call) else None
    if found is None or helper is None or sides is None or not isinstance(sides[0], cst.Name):
        return
    handed = helper.params.params[-1].name if helper.params.params else None
    if handed is None or source.written(sides[0]) is not handed:
        return
    rows = f"{as_operand(sides[1], source.code(sides[1]))}[{source.code(found.index)}]"
    yield source.finding(node, _MESSAGE, write=f"{rows}, instead of the product in `{source.code(node.func)}`", pair=2)


def _picked(
    node: cst.CSTNode, left: cst.BaseExpression, table: cst.BaseExpression, source: Source
) -> Iterator[Finding]:
    index, rows = _index(left, source), _rows(table, source)
    if index is None or rows is None:
        return
    at, what = _at(index, node, source)
    yield source.finding(node, _MESSAGE, write=f"{as_operand(rows, source.code(rows))}[{at}]{what}")


def _at(index: cst.BaseExpression, node: cst.CSTNode, source: Source) -> tuple[str, str]:
    """How to name the places, and what that is: not by a name that holds the one-hot by now, `i = one_hot(i, n)`."""
    said = source.code(index)
    return (said, "") if is_same_at(index, node, source) else ("i", f", i the places `{said}` before they are one-hot")


def _rows(table: cst.BaseExpression, source: Source) -> cst.BaseExpression | None:
    """What has the rows on its first axis: of a table behind axes of one, `jnp.expand_dims(table, 0)`, the table
    itself; None where axes are put elsewhere."""
    made = source.meant(table)
    if not source.calls(made, "jax.numpy.expand_dims"):
        return table
    axis = argument(made, 1, "axis")
    is_in_front = axis is not None and (constant(axis) == 0 or source.calls(axis, "range"))
    return argument(made, 0, "a") if is_in_front else None


_MESSAGE = "a product with a one-hot reads the whole table, and multiplies it with zeros, to pick from it"


def _picked_by_einsum(node: cst.Call, source: Source) -> Iterator[Finding]:
    for chosen, picks, table, axes, left in factors_of_einsum(node):
        found = one_hot(chosen, source)
        if found is None or not _picks(picks, axes, left) or _are_few(found):
            continue
        if _picks_rows_of_each(picks, axes) and not _has_more_rows(found, source):
            continue  # of a few rows most are picked: a reorder, as of the beams of a search
        index = found.index
        if set(picks) & set(axes) == {picks[-1]} and axes[0] == picks[-1] and left == picks[:-1] + axes[1:]:
            write = f"{as_operand(table, source.code(table))}[{source.code(index)}]"
        else:
            write = _taken(source.code(table), source.code(index), picks, axes, left, source)
        yield source.finding(node, _MESSAGE, write=write)
        return


def _taken(table: str, index: str, picks: str, axes: str, result: str, source: Source) -> str:
    """What takes the rows along the axis of the classes: there come the axes of the index that the table lacks."""
    numpy = source.jnp
    at, new = axes.index(picks[-1]), [letter for letter in picks[:-1] if letter not in axes]
    axis = at - len(axes) if "." in axes[:at] else at
    if len(new) > 1:
        return f"{table} at `{index}` along axis {axis}, beside {numpy}.arange along each axis that both have"
    along = f"{numpy}.take_along_axis({table}, i, axis={axis})"
    taken = axes.replace(picks[-1], "".join(new))
    moved = "" if taken == result else f", its axes, `{taken}`, put as in `{result}`".replace(".", "...")
    return f"{along}{'' if new else f'.squeeze({axis})'}{moved}, i as `{index}` broadcast"


def _picks(one_hot: str, table: str, result: str) -> bool:
    """Whether the einsum sums over the classes of `one_hot` alone, and more than one number is picked at a time: where
    the table has no axis of its own, the sum fuses as it is."""
    classes = one_hot[-1:]
    distinct = len(set(one_hot)) == len(one_hot) and len(set(table)) == len(table)
    own = set(table) - set(one_hot)
    kept = set(one_hot[:-1]) | own
    return distinct and classes in table and classes != "." and bool(own) and set(result) == kept


def _are_few(found: OneHot) -> bool:
    """Whether the classes are called as a few are: the buckets of relative positions, the beams of a search. A product
    with so few is what is meant for TPUs."""
    return found.classes is not None and _FEW.search(dotted(found.classes)) is not None


def _picks_rows_of_each(one_hot: str, table: str) -> bool:
    """Whether rows are picked for each element of a batch from a table of its own: `bkt,bjk->bjt`."""
    batch = set(one_hot[:-1]) & set(table)
    before = set(table[: table.index(one_hot[-1])])
    return bool(batch & before) and bool(set(one_hot[:-1]) - batch) and table[-1] != one_hot[-1]


def _has_more_rows(found: OneHot, source: Source) -> bool:
    """Whether the table is seen to have many rows: not as many as are picked, `one_hot(i, i.shape[1])`."""
    classes = found.classes
    match classes:
        case cst.Subscript(value=cst.Attribute(value=counted, attr=cst.Name("shape"))):
            if source.code(counted) == source.code(found.index):
                return False
    return has_many_classes(found, source)


def _index(node: cst.BaseExpression, source: Source) -> cst.BaseExpression | None:
    """i of `one_hot(i, n)`, or of a name for it."""
    found = one_hot(node, source)
    return found.index if found else None
