"""A scan that stores the output of every step, of which only the last or the sum is read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from fusionlint.finding import Finding
from fusionlint.patterns.branches.cheap import MAPS
from fusionlint.patterns.code.at import constant, elements, is_whole
from fusionlint.patterns.code.calls import argument
from fusionlint.patterns.code.unpacked import bound_by
from fusionlint.patterns.compiled.every_turn import is_own_scan
from fusionlint.patterns.compiled.readers import bounds, first_uses, value_of
from fusionlint.patterns.runs.loop_bodies import bodies_of, is_small
from fusionlint.rule import Rule
from fusionlint.source.tree import Source

if TYPE_CHECKING:
    from fusionlint.hlo import parse as hlo
    from fusionlint.hlo.barriers import Barrier

rule = Rule(__name__, harm="fusion")

_SCAN = "jax.lax.scan"
# What a reduction starts from, and what a step makes of it.
_REDUCTIONS = {
    "sum": ("zeros", "total + y"),
    "mean": ("zeros", "total + y"),
    "max": ("the least there is", "jnp.maximum(most, y)"),
    "min": ("the most there is", "jnp.minimum(least, y)"),
    "prod": ("ones", "product * y"),
    "any": ("False", "jnp.logical_or(found, y)"),
    "all": ("True", "jnp.logical_and(held, y)"),
}
# An attribute of an array is read of the stacked array, not of a field that holds one.
_OF_ARRAYS = frozenset(("T", "mT", "shape", "dtype", "ndim", "size", "at", "real", "imag"))

# Bytes: an H100 writes that much in a thirtieth of the time that a launch takes, and a step's copy takes a launch.
_MUCH = 100_000

# "last", or the name of a reduction.
Part = str


@rule.source("Call", calls=(_SCAN,))
def outputs_kept(node: cst.Call, source: Source) -> Iterator[Finding]:
    """Every read of the outputs takes the last of them or reduces them over the steps."""
    last = 0 if _goes_backwards(node) else -1
    parts = [_part(read, last, source) for read in _reads_of_outputs(node, source)]
    if not parts or None in parts or (_is_written_out(node) and {*parts} == {"last"}):
        return
    bodies = bodies_of(node, source)
    if not bodies or not all(is_small(source.project, body) for body in bodies):
        return
    if {*parts} != {"last"}:
        message = "the output of every step is stored, only to be reduced afterwards"
        write = _accumulated([part for part in parts if part is not None and part != "last"])
    else:
        message = "the output of every step is stored, and only the last is read"
        write = "keep it in the carry: the body returns `(carry, y), None`"
    yield source.finding(node, message, write=write)


@rule.barrier
def stored_by_every_step(barrier: Barrier, module: hlo.Module) -> str | None:
    """What a loop filled step by step, and readers cut to one step or reduce over the steps."""
    dims = value_of(barrier, module).shape.dims
    if barrier.detail != "read after the loop" or "dynamic-update-slice" not in barrier.opcodes or len(dims) < 2:
        return None
    uses = [*first_uses(barrier, module)]
    if not uses:  # it is the program's result
        return None
    for use in uses:
        cut = use.opcode == "slice" and bounds(use) == [(dims[0] - 1, dims[0]), *((0, size) for size in dims[1:])]
        summed = use.opcode == "reduce" and use.shape.dims == dims[1:]
        if not (cut or summed):
            return None
    return "keep the last output, or the running sum, in the scan's carry instead of its outputs"


@rule.barrier
def stacked_although_the_same(barrier: Barrier, module: hlo.Module) -> str | None:
    """What a scan stacks in every turn, and no turn changes."""
    stacked = barrier.stacked
    if stacked is None or stacked.shape.nbytes * barrier.launches < _MUCH or not is_own_scan(stacked.loop, module):
        return None
    _, *dims = stacked.shape.dims
    what = f"`{stacked.given}`" if stacked.given else "an output"
    often = f"all {stacked.turns} turns" if stacked.turns else "every turn"
    shape = f"{stacked.shape.dtype}[{','.join(map(str, dims))}]{stacked.number and f' of {stacked.number}'}"
    return f"{what}, {shape}, is the same in {often}, and stacked in each: return it once, beside the scan's outputs"


@rule.barrier
def stacked_and_returned_twice(barrier: Barrier, module: hlo.Module) -> str | None:
    """What a scan stacks, and the program returns more than once: each time more is a copy of the whole."""
    size = value_of(barrier, module).shape.nbytes
    if barrier.detail != "read after the loop" or barrier.returned < 2 or size < _MUCH:
        return None
    return f"the stacked output is returned {barrier.returned} times, all but once as a copy: return it once"


def _accumulated(reductions: list[str]) -> str:
    """How the scan itself reduces its outputs; a mean is a sum until the scan is over."""
    starts, steps = zip(*dict.fromkeys(_REDUCTIONS[each] for each in reductions), strict=True)
    mean = "; the mean is the total by the number of steps" if "mean" in reductions else ""
    start = f"{' and '.join(starts)} of the result's shape and dtype"
    return f"accumulate it in the carry, from {start}: the body returns `(carry, {', '.join(steps)}), None`{mean}"


def _goes_backwards(scan: cst.Call) -> bool:
    """Whether the last step is the one of the first row: `reverse=True`."""
    match argument(scan, 4, "reverse"):
        case cst.Name("True"):
            return True
    return False


def _is_written_out(scan: cst.Call) -> bool:
    """`unroll=True`: without a loop nothing is stored, and what nobody reads XLA leaves out."""
    match argument(scan, 5, "unroll"):
        case cst.Name("True"):
            return True
    return False


def _reads_of_outputs(scan: cst.Call, source: Source) -> Iterator[cst.BaseExpression]:
    """Where the stacked outputs of `scan` are read: by name, or at once, as `lax.scan(...)[1]`."""
    above = source.parent(scan)
    match above:
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Tuple(elements=[_, cst.Element(value=outputs)]))]):
            for name in bound_by(outputs):
                yield from source.reads(name)
        case cst.Subscript(value=value) if value is scan and elements(above.slice)[:1]:
            if constant(elements(above.slice)[0]) not in (1, -1):
                return
            stored = source.assigned_name(above)
            yield from source.reads(stored) if stored else (above,)


def _part(read: cst.BaseExpression, last: int, source: Source) -> Part | None:
    """What of the stacked array is used where `read` stands; `last` is the place that the last step fills."""
    node: cst.BaseExpression = read
    while (field := _field(node, source)) is not None:
        node = field
    match source.parent(node):
        case cst.Subscript(value=value) as above if value is node:
            return "last" if _is_at(last, above) else None
        case cst.Attribute(attr=cst.Name(method)) as above:
            call = source.parent(above)
            return _reduction(method, argument(call, 0, "axis")) if isinstance(call, cst.Call) else None
        case cst.Arg(keyword=None) as arg:
            call = source.parent(arg)
            return _handed_to(call, node, last, source) if isinstance(call, cst.Call) else None
    return None


def _field(node: cst.BaseExpression, source: Source) -> cst.BaseExpression | None:
    """`ys.reward` or `ys["reward"]` around `ys`: outputs come in trees too."""
    match source.parent(node):
        case cst.Attribute(value=value, attr=cst.Name(name)) as above if value is node:
            match source.parent(above):
                case cst.Call(func=function) if function is above:
                    return None
            return None if name in _OF_ARRAYS else above
        case cst.Subscript(value=value) as above if value is node:
            return above if isinstance(elements(above.slice)[0], cst.SimpleString) else None
    return None


def _handed_to(call: cst.Call, node: cst.BaseExpression, last: int, source: Source) -> Part | None:
    """What a call makes of the outputs: `jnp.sum(ys, axis=0)`, `jax.tree.map(lambda y: y[-1], ys)`."""
    name = source.qualified_name(call.func) or ""
    if name in MAPS and len(call.args) == 2 and isinstance(call.args[0].value, cst.Lambda):
        function = call.args[0].value
        parameters = function.params.params
        reads = source.reads(parameters[0].name) if len(parameters) == 1 else []
        parts = {_part(read, last, source) for read in reads}
        return parts.pop() if len(parts) == 1 else None
    module, _, reduction = name.rpartition(".")
    is_first = call.args[0].value is node
    return _reduction(reduction, argument(call, 1, "axis")) if module == "jax.numpy" and is_first else None


def _reduction(name: str, axis: cst.BaseExpression | None) -> Part | None:
    return name if name in _REDUCTIONS and axis is not None and constant(axis) == 0 else None


def _is_at(last: int, subscript: cst.Subscript) -> bool:
    step, *others = elements(subscript.slice)
    return constant(step) == last and all(map(is_whole, others))
