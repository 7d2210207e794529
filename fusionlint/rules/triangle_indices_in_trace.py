"""The places of a triangle, found anew in every call: `distances[jnp.triu_indices(n, 1)]`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import libcst as cst

from fusionlint.finding import Edit, Finding
from fusionlint.patterns.code.at import constant, elements
from fusionlint.patterns.code.calls import brief
from fusionlint.patterns.code.imports import Imported, imported
from fusionlint.patterns.code.unpacked import bound_by
from fusionlint.patterns.compiled.of_jax import is_of_call
from fusionlint.patterns.compiled.readers import value_of, writer_of
from fusionlint.patterns.dispatch.jit import is_jitted
from fusionlint.patterns.runs.concrete import is_concrete
from fusionlint.patterns.runs.made_once import is_for_hosts_alone
from fusionlint.patterns.runs.often import is_called_as_once, is_memoized
from fusionlint.rule import Rule
from fusionlint.source.facts import last_name
from fusionlint.source.tree import Source

if TYPE_CHECKING:
    from fusionlint.hlo import parse as hlo
    from fusionlint.hlo.barriers import Barrier

rule = Rule(__name__, harm="fusion")

_TRIANGLES = ("triu", "tril")
_WHOLE_NUMBERS = ("s32", "s64", "u32", "u64")
_NAMES = ("triu_indices", "tril_indices", "triu_indices_from", "tril_indices_from")
_INDICES = tuple(f"jax.numpy.{name}" for name in _NAMES)
# What jax had until early in 2022: until then, and a while after, its indices of a triangle were numpy's own.
_OF_AN_OLD_JAX = frozenset(f"jax.ops.index_{name}" for name in ("update", "add", "mul", "min", "max"))
_OLD_MODULE = "jax.experimental.loops"
_LONG = 60
_OF_JAX = frozenset(("at", "block_until_ready"))
# jax keeps the numbers of the rows and those of the columns in 4 bytes each.
_SIZE = ", 4 bytes for every element of the matrix: leave it where that has thousands of rows"


@rule.source("Call", calls=_INDICES)
def triangle_found_anew(node: cst.Call, source: Source) -> Iterator[Finding]:
    """Wherever a trace may get to, but for what runs once."""
    if is_concrete(node, source):
        return
    place = source.place(node)
    name = (source.qualified_name(node.func) or "").rpartition(".")[2]
    if last_name(place.scope) == name:  # which only hands on what jax has, to whoever asks for that
        return
    if _is_of_a_class(node, source) or _is_for_an_old_jax(source):
        return
    if is_called_as_once(last_name(place.scope)) or is_memoized(source.project, place):
        return
    if is_for_hosts_alone(source.project, source.contexts, place):
        return
    if _is_looked_into(node, source) or _is_handed_over(node, source):
        return
    given = brief(", ".join(source.code(arg).rstrip(", ") for arg in node.args), _LONG)
    numpy = imported("numpy", node, source)
    yield source.finding(
        node,
        "the places of a triangle are found by a running sum and a search in every call, and gathers and scatters get "
        "places that XLA does not know",
        write=f"{numpy.name if numpy else 'numpy'}.{name}({given}), which is a constant of the program"
        f"{'' if node.args and constant(node.args[0].value) is not None else _SIZE}",
        edits=_fix(node, name, numpy, source),
    )


@rule.barrier
def places_of_a_triangle(barrier: Barrier, module: hlo.Module) -> str | None:
    """Whole numbers that are made of nothing but a triangle of ones: of places that are known beforehand."""
    if value_of(barrier, module).shape.dtype not in _WHOLE_NUMBERS:
        return None
    counted = (step for step in module.every("iota") if step.stack == barrier.stack)
    triangles = {step.name for step in counted if is_of_call(step, _TRIANGLES)}
    kernels = _made_of_nothing(barrier, module) if triangles else ()
    steps = [step for kernel in kernels for step in module.work_of(kernel)]
    if triangles.isdisjoint(step.name for step in steps) or not any(step.opcode == "reduce-window" for step in steps):
        return None  # a mask alone may be of an array's own triangle
    return "numpy's function of the same name: it runs while jax traces, and the places are constants"


def _made_of_nothing(barrier: Barrier, module: hlo.Module) -> Sequence[hlo.Instruction]:
    """The kernels that the value is made by, where none of them is given anything; none where one is."""
    here = module.computations[barrier.computation].instructions
    found, seen = [writer_of(barrier, module)], {barrier.writer}
    for item in found:
        if item.opcode == "parameter":
            return ()
        found += [here[name] for name in item.operands if name not in seen]
        seen.update(item.operands)
    return found


def _is_of_a_class(node: cst.Call, source: Source) -> bool:
    """Whether a class method around makes an object of what it is given: once, and then others work with it."""
    function = source.function(node)
    return isinstance(function, cst.FunctionDef) and any(
        isinstance(each.decorator, cst.Name) and each.decorator.value == "classmethod" for each in function.decorators
    )


def _is_for_an_old_jax(source: Source) -> bool:
    """Whether the file asks for what jax no longer has: it runs with one whose places are constants already."""
    if not _OF_AN_OLD_JAX.isdisjoint(source.names):
        return True
    return any(f"{name}.".startswith(f"{_OLD_MODULE}.") for name in source.facts.imports())


def _is_looked_into(node: cst.Call, source: Source) -> bool:
    """Whether one of the places is looked up by a name, `rows[e]`: of numpy's a tracer can look up none."""
    above = ((read, source.parent(read)) for read in _reads(node, source))
    return any(isinstance(one, cst.Subscript) and one.value is read and _by_a_name(one) for read, one in above)


def _reads(node: cst.Call, source: Source) -> Iterator[cst.Name]:
    """Where the places are read by their names."""
    statement = source.parent(node)
    names = bound_by(statement.targets[0].target) if isinstance(statement, cst.Assign) else ()
    return (read for name in names for read in source.reads(name))


def _is_handed_over(node: cst.Call, source: Source) -> bool:
    """Whether code that is not seen to be traced hands the places to a function that is compiled by itself, `pairs(*
    places, x)`: of that they are no constants, numpy's neither."""
    name = source.assigned_name(node)
    if name is None or source.context(node) == "traced":
        return False
    above = (source.parent(read) for read in source.reads(name))
    calls = (source.parent(arg) for arg in above if isinstance(arg, cst.Arg))
    return any(isinstance(call, cst.Call) and is_jitted(call.func, source) for call in calls)


def _by_a_name(read: cst.Subscript) -> bool:
    return any(isinstance(part, cst.Name | cst.Attribute) for part in elements(read.slice))


def _fix(node: cst.Call, name: str, numpy: Imported | None, source: Source) -> tuple[Edit, ...]:
    """numpy's function in place of jax's, which takes the same, and numpy's import where the file has none.

    Not safe: what is returned is numpy's, of another type of whole numbers.
    """
    if numpy is None or any(map(_is_of_jax_alone, map(source.parent, _reads(node, source)))):
        return ()
    return (*numpy.edits, source.replace(node.func, f"{numpy.name}.{name}"))


def _is_of_jax_alone(above: cst.CSTNode | None) -> bool:
    """`rows.at`, which numpy's have not."""
    return isinstance(above, cst.Attribute) and above.attr.value in _OF_JAX
