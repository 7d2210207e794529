"""An array for each element, with that element written into it, summed up: `vmap(deposit)(particles).sum(axis=0)`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from fusionlint.finding import Finding
from fusionlint.patterns.code.at import Write, at_write, constant, inside, is_fresh, is_none
from fusionlint.patterns.code.calls import argument, call_of, has_only
from fusionlint.patterns.code.functions import Function, function_named, result_of
from fusionlint.patterns.compiled.scattered import is_grid_of_each
from fusionlint.patterns.runs.under import VMAPS
from fusionlint.patterns.writes.chain import root
from fusionlint.rule import Rule
from fusionlint.source.tree import Source

if TYPE_CHECKING:
    from fusionlint.hlo import parse as hlo
    from fusionlint.hlo.barriers import Barrier

rule = Rule(__name__, harm="fusion")

# What each reduction over the elements leaves of their writes, as one write.
_ONE_WRITE = {"sum": "add", "any": "max", "max": "max"}


@rule.source("Call", calls=VMAPS)
def written_apart_and_joined(node: cst.Call, source: Source) -> Iterator[Finding]:
    """A vmapped function returns an array with places written, and of the stack of them only a reduction is read."""
    mapped = call_of(node, source)
    if mapped is None or not has_only(node, 2, "fun", "in_axes"):
        return
    if source.is_idle(node):
        return
    reductions = {_reduction(read, source) for read in source.readers(mapped)}
    method = next(iter(reductions), None) if len(reductions) == 1 else None
    function = function_named(node.args[0].value, source) if node.args else None
    write = _written(function, source) if function is not None and method is not None else None
    if function is None or method is None or write is None or not _begins_alike(write, function, node, source):
        return
    yield source.finding(
        node,
        "every element writes into an array of its own, and all of them are read to be joined",
        write=f"the places and values of all elements at once, then one {_one_write(write, method, function, source)}",
        pair=1 if method == "any" else 0,
    )


@rule.barrier
def written_for_each_and_summed(barrier: Barrier, module: hlo.Module) -> str | None:
    """The grids of all elements, of which only the sum is read."""
    if not is_grid_of_each(barrier, module):
        return None
    return "one write for all elements, .at[all_rows, all_columns].add(values) or .max, in place of a grid for each"


def _one_write(write: Write, method: str, function: Function, source: Source) -> str:
    """What the reduction leaves: of places that meet, `any` finds one that holds, where a set keeps one of them."""
    array = source.code(root(write)) if isinstance(root(write), cst.Name) else "x"
    if method == "any" and write.value is not None and source.code(write.value) == "True":
        return f"`{array}.at[places].set(True)`"
    text = f"`{array}.at[places].{_ONE_WRITE[method]}(values)`"
    if method == "any":
        return f"{text}, both of bools: a `set` keeps any of those that meet at one place"
    # An array that every element is handed is summed up as often.
    is_handed = array in {parameter.name.value for parameter in function.params.params}
    return f"{text}, where `{array}` is all zeros" if method == "sum" and is_handed else text


def _reduction(stack: cst.CSTNode, source: Source) -> str | None:
    """The name of the reduction over the first axis that is all that reads `stack` here."""
    match above := source.parent(stack):
        case cst.Attribute(value=value, attr=cst.Name(method)) if value is stack and method in _ONE_WRITE:
            call = source.parent(above)
            return method if isinstance(call, cst.Call) and _is_first_axis(argument(call, 0, "axis")) else None
        case cst.Arg():
            call = source.parent(above)
            for method in _ONE_WRITE:
                if source.calls(call, f"jax.numpy.{method}"):
                    assert isinstance(call, cst.Call)
                    is_whole = call.args[0] is above and _is_first_axis(argument(call, 1, "axis"))
                    return method if is_whole else None
    return None


def _is_first_axis(axis: cst.BaseExpression | None) -> bool:
    return axis is not None and constant(axis) == 0


def _written(function: Function, source: Source) -> Write | None:
    """A write whose array the function returns, as it is or in arithmetic."""
    result = result_of(function, source)
    if result is None:
        return None
    found = next((write for node in inside(result) if (write := at_write(node)) is not None), None)
    if found is not None or not isinstance(result, cst.Name):
        return found
    for node in inside(function.body):
        write = at_write(node)
        name = source.assigned_name(node) if write is not None else None
        if name is not None and name.value == result.value:
            return write
    return None


def _begins_alike(write: Write, function: Function, vmap: cst.Call, source: Source) -> bool:
    """Whether what is written to is the same for all elements: new and empty, or an argument that is not mapped."""
    array = root(write)
    if is_fresh(array, source) or any(is_fresh(stored, source) for stored in _stored(array, function)):
        return True
    names = [parameter.name.value for parameter in function.params.params]
    if not isinstance(array, cst.Name) or array.value not in names:
        return False
    match argument(vmap, 1, "in_axes"):
        case cst.Tuple(elements=axes) | cst.List(elements=axes) if len(axes) == len(names):
            axis = axes[names.index(array.value)].value
            return is_none(axis)
    return False


def _stored(array: cst.BaseExpression, function: Function) -> Iterator[cst.BaseExpression]:
    """What the function stores under the array's name anywhere: a loop that writes to it makes its value unknown."""
    for node in inside(function.body) if isinstance(array, cst.Name) else ():
        match node:
            case cst.Assign(targets=[cst.AssignTarget(target=cst.Name(name))], value=value):
                if isinstance(array, cst.Name) and name == array.value:
                    yield value
