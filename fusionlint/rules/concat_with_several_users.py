"""A concatenate of computed parts whose result several separate results are computed from."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import TYPE_CHECKING

import libcst as cst

from fusionlint.finding import Finding
from fusionlint.patterns.code.calls import beside
from fusionlint.patterns.code.elementwise import ends, is_worked_on, operands
from fusionlint.patterns.compiled.round import goes_round, is_elementwise, joiners, joins_at_every_level, joins_blocks
from fusionlint.patterns.operations.join import CONCATENATES, lists_parts, parts
from fusionlint.rule import Rule
from fusionlint.source.tree import Source

if TYPE_CHECKING:
    from fusionlint.hlo import parse as hlo
    from fusionlint.hlo.barriers import Barrier

rule = Rule(__name__, harm="fusion")

_LAX = "jax.lax.concatenate"
_FRESH = ("zeros", "ones", "full", "empty", "zeros_like", "ones_like", "full_like", "arange", "linspace", "eye")
_CONSTANTS = frozenset(f"jax.numpy.{name}" for name in _FRESH)
_SPLITS = frozenset(("jax.numpy.split", "jax.numpy.array_split", "jax.numpy.unstack"))


@rule.source("Call", calls=CONCATENATES, like=lists_parts)
def joined_for_several(node: cst.Call, source: Source) -> Iterator[Finding]:
    """Elementwise work on the whole ends in two places or more, and elementwise work made the parts."""
    whole = source.assigned_name(node)
    if whole is None or not _are_fusible(parts(node, source), source):
        return
    used = [read for read in source.reads(whole) if is_worked_on(read, source)]
    results = list(dict.fromkeys(end for read in used for end in ends(read, source)))
    if len(used) < 2 or not any(not source.apart(one, other) for one, other in combinations(results, 2)):
        return
    where = beside(node.func, "where", source) if source.qualified_name(node.func) != _LAX else None
    yield source.finding(
        node,
        f"`{whole.value}` is put together for several results: each reads it, or the parts, again",
        write=f"{where or 'jnp.where'}(position < n, ...) of parts as wide as the whole, or the parts apart to the end",
    )


@rule.barrier
def joined_for_several_kernels(barrier: Barrier, module: hlo.Module) -> str | None:
    """A concatenate that several elementwise kernels read within one iteration, or each make out of the parts again. In
    a gradient nobody wrote one: it is that of a split."""
    if barrier.cause != "concatenate" or barrier.of_gradient or joins_at_every_level(barrier, module):
        return None
    computation = module.computations[barrier.computation]
    here = computation.instructions
    joined = [name for name in joiners(barrier, module) if joins_blocks(name, computation, module)]
    whole = joined == [barrier.writer] and not goes_round(barrier.value, barrier, module)
    makers = joined if joined != [barrier.writer] else barrier.readers if whole else ()
    if sum(name in here and is_elementwise(here[name], module) for name in makers) < 2:
        return None
    return "choose between the parts by position (jnp.where), or keep them apart"


def _are_fusible(joined: tuple[cst.BaseExpression, ...], source: Source) -> bool:
    """Whether elementwise work made the parts, two different ones at least: one array twice is a tile."""
    varying = [part for part in joined if not _is_constant(part, source)]
    written = {source.code(_unsigned(part)) for part in varying}
    return len(varying) > 1 and len(written) == len(varying) and all(_is_fusible(part, source) for part in varying)


def _unsigned(part: cst.BaseExpression) -> cst.BaseExpression:
    return part.expression if isinstance(part, cst.UnaryOperation) else part


def _is_fusible(part: cst.BaseExpression, source: Source, depth: int = 8) -> bool:
    """Whether a part is an input, a piece of one, or computed elementwise from those; else it is in memory anyway, or
    nobody knows."""
    if depth == 0:
        return False
    match part:
        case cst.Name():
            return _is_input(part, source, depth)
        case cst.Attribute(value=value) | cst.Subscript(value=value):
            return _is_fusible(value, source, depth - 1)
        case cst.Integer() | cst.Float():
            return True
    found = operands(part, source)
    return found is not None and all(_is_fusible(operand, source, depth - 1) for operand in found)


def _is_input(name: cst.Name, source: Source, depth: int) -> bool:
    written = source.written(name)
    if written is None:
        return source.qualified_name(name) is not None
    value = source.value(name)
    if value is not None:
        return _is_constant(value, source) or _is_fusible(value, source, depth - 1)
    match source.parent(written):
        case cst.Param():
            return True
        case cst.Element() as element:
            return _is_unpacked_input(element, source, depth)
    return False


def _is_unpacked_input(element: cst.Element, source: Source, depth: int) -> bool:
    """`a, b = carry`, `a, b = jnp.split(x, 2)`."""
    target = next(a for a in source.ancestors(element) if not isinstance(a, cst.Tuple | cst.List | cst.Element))
    statement = source.parent(target)
    if not isinstance(target, cst.AssignTarget) or not isinstance(statement, cst.Assign):
        return False
    if isinstance(statement.value, cst.Call):
        return source.qualified_name(statement.value.func) in _SPLITS
    return _is_fusible(statement.value, source, depth - 1)


def _is_constant(part: cst.BaseExpression, source: Source) -> bool:
    """A part that XLA knows, or turns into padding."""
    if isinstance(part, cst.Name):
        value = source.value(part)
        return value is not None and not isinstance(value, cst.Name) and _is_constant(value, source)
    if isinstance(part, cst.Call):
        name = source.qualified_name(part.func) or ""
        return name in _CONSTANTS or name.startswith("numpy.")
    return isinstance(part, cst.BaseNumber | cst.List | cst.Tuple)
