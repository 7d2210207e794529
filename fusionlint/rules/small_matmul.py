"""A product with a matrix of two or three rows that is written out, `points @ jnp.array([[c, -s], [s, c]])`, in what is
mapped over many: a library's product for a few multiplications and additions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from math import prod
from typing import TYPE_CHECKING

import libcst as cst

from fusionlint.finding import Finding
from fusionlint.lazily import regex
from fusionlint.patterns.code.at import TO_JAX_ARRAY, constant, elements, inside, is_literal
from fusionlint.patterns.code.calls import argument
from fusionlint.patterns.compiled.matrices import At, made_at
from fusionlint.patterns.compiled.of_jax import is_of_jax
from fusionlint.patterns.compiled.readers import kernels_around
from fusionlint.patterns.operations.choice import listed
from fusionlint.patterns.operations.one_hot import factors
from fusionlint.patterns.runs.concrete import is_concrete
from fusionlint.patterns.runs.under import is_vectorized
from fusionlint.patterns.values.matrices import TRANSPOSES, small_matrix
from fusionlint.rule import Rule
from fusionlint.source.facts import NOTHING, Value
from fusionlint.source.places import Place
from fusionlint.source.tree import Source
from fusionlint.source.walk import dotted

if TYPE_CHECKING:
    from fusionlint.hlo import parse as hlo
    from fusionlint.hlo.barriers import Barrier

rule = Rule(__name__, harm="fusion")

_STACK = "jax.numpy.stack"
_SIZES = (2, 3)
_MATRIX = regex(r"matri(x|ces)$|(^|[._])rot(ation)?(_[xyz])?$", re.I)
_MOST_ROWS = 3
# Points of each, that a matrix turns.
_MOST_POINTS = 32
_FEWEST = 64
_JOINS = ("stack", "hstack", "vstack", "column_stack", "concatenate")


def _making_small(source: Source) -> Iterator[str]:
    """The scopes that write out a small matrix, or have a function of the project do so: asked of the facts."""
    for place, name, raw in source.project.named_calls(source.path):
        if name in TO_JAX_ARRAY or name == _STACK:
            if _rows(source.whole(raw).value):
                yield place.scope
        elif _made_by(name, source):
            yield place.scope


def _rows(made: Value) -> int | None:
    """How many rows of as many entries, not all numbers, a call is handed; of a stack of stacks its two."""
    given = next(iter(made.arguments), NOTHING)
    rows = given.arguments
    if made.callee is not None and rows and all(row.is_call for row in rows):
        rows = tuple(next(iter(row.arguments), NOTHING) for row in rows)
    if len(rows) not in _SIZES or any(len(row.arguments) != len(rows) for row in rows):
        return None
    return len(rows) if any(entry != NOTHING for row in rows for entry in row.arguments) else None


def _made_by(name: str | None, source: Source) -> int | None:
    """How many rows the small matrix has that a function of the project writes out and returns, `rotation(angle)`."""
    place = source.project.find(name)
    function = source.project.function_at(place)
    if place is None or function is None or len(function.returns) != 1:
        return None
    (returned,) = function.returns
    made = source.project.callee(Place(place.path, function.scope), returned) if returned.is_call else None
    return _rows(returned) if made in TO_JAX_ARRAY else None


@rule.source("BinaryOperation", "Call", when=_making_small)
def multiplied_by_a_few(node: cst.BinaryOperation | cst.Call, source: Source) -> Iterator[Finding]:
    """One factor is the small matrix, the other an array that is there; the first such product of a function."""
    size = _multiplied(node, source)
    if size is None or source.is_idle(node):
        return
    is_batch = any(_is_a_batch(source.meant(_turned(side)), source) for side in factors(node, source) or ())
    if not (is_batch or is_vectorized(node, source)) or is_concrete(node, source):
        return
    others = [other for other in _products(node, source) if _multiplied(other, source) is not None]
    if (others and others[0] is not node) or any(_is_of_a_vector(other, source) for other in others):
        return
    numpy = source.jnp
    rows = ", ".join(("x * a + y * b", "x * c + y * d") if size == 2 else ("x * a + y * b + z * c", "..."))
    more = f", here and {len(others) - 1} more" if others[1:] else ""
    yield source.finding(
        node,
        f"each element is multiplied by a {size} by {size} matrix of its own{more}: nothing around fuses with that",
        write=f"its rows written out, {numpy}.stack([{rows}], axis=-1), of columns x = points[..., 0] and so on",
    )


@rule.barrier
def multiplied_by_small_matrices(barrier: Barrier, module: hlo.Module) -> str | None:
    """A matrix of two or three rows that is put together for a product, for each of many, and that product."""
    if not _is_small_product(barrier, module):
        return None
    return "the product written out, x * c + y * s, or (points[..., :, None] * matrix).sum(-2): arithmetic that fuses"


def _products(node: cst.CSTNode, source: Source) -> Iterator[cst.BinaryOperation | cst.Call]:
    """The products of the function around, in their order."""
    function = source.function(node)
    for part in inside(function.body) if function is not None else ():
        if isinstance(part, cst.BinaryOperation | cst.Call) and source.function(part) is function:
            yield part


def _multiplied(node: cst.BinaryOperation | cst.Call, source: Source) -> int | None:
    """How many rows the small matrix has that something is multiplied by. Two of them make a third, of which most
    entries are to be had, and with a vector of numbers there is one kernel already."""
    sides = factors(node, source)
    first, second = (_size(side, source) for side in sides) if sides is not None else (None, None)
    if sides is None or (first is None) is (second is None):
        return None
    other = sides[1] if first else sides[0]
    if listed(other, source) is not None or _is_a_product(other, source) or (first and _multiplies(node, source)):
        return None
    return first or second


def _multiplies(product: cst.BaseExpression, source: Source) -> bool:
    """Whether a product, turned or not, is the left factor of another, `turned = (a @ b).T`, `turned @ point`: a matrix
    too, not a vector or points."""
    above = source.parent(product)
    whole = above if isinstance(above, cst.Attribute) and above.attr.value in TRANSPOSES else product
    for read in source.readers(whole):
        around = source.parent(read)
        sides = factors(around, source) if isinstance(around, cst.BinaryOperation) else None
        if sides is not None and sides[0] is read:
            return True
    return False


def _is_of_a_vector(product: cst.BinaryOperation | cst.Call, source: Source) -> bool:
    """Whether numbers are read from a factor one by one, `v[2]`: a vector, with which a product is a sum that fuses.
    Written out, 3 by 3 times three numbers took an H100 17 launches for 14."""
    names = (side for side in factors(product, source) or () if isinstance(side, cst.Name))
    reads = ((use.node, source.parent(use.node)) for name in names for use in source.uses(name) if not use.is_write)
    return any(isinstance(one, cst.Subscript) and one.value is read and _is_of_one(one) for read, one in reads)


def _is_of_one(read: cst.Subscript) -> bool:
    return len(read.slice) == 1 and constant(elements(read.slice)[0]) is not None


def _size(factor: cst.BaseExpression, source: Source) -> int | None:
    """How many rows a factor has, where it is a small matrix, or one turned."""
    meant = source.meant(_turned(factor))
    if (rows := small_matrix(meant, source)) is not None:
        return len(rows)
    if not isinstance(meant, cst.Call):
        return None
    if source.calls(meant, _STACK):
        return _stacked(meant, source)
    return _made_by(source.qualified_name(meant.func), source)


def _turned(factor: cst.BaseExpression) -> cst.BaseExpression:
    """m, of `m.T`."""
    match factor:
        case cst.Attribute(value=inner, attr=cst.Name(attr)) if attr in TRANSPOSES:
            return inner
    return factor


def _stacked(call: cst.Call, source: Source) -> int | None:
    """How many rows `jnp.stack([jnp.stack([c, -s], -1), jnp.stack([s, c], -1)], -2)` has."""
    rows = argument(call, 0, "arrays")
    each = [element.value for element in rows.elements] if isinstance(rows, cst.List | cst.Tuple) else []
    entries = [argument(row, 0, "arrays") for row in each if source.calls(row, _STACK)]
    if len(each) not in _SIZES or len(entries) != len(each):
        return None
    lists = [entry.elements for entry in entries if isinstance(entry, cst.List | cst.Tuple)]
    if [len(row) for row in lists] != [len(each)] * len(each):
        return None
    return None if all(is_literal(one.value) for row in lists for one in row) else len(each)


def _is_a_batch(node: cst.BaseExpression, source: Source) -> bool:
    """Whether matrices are stacked along the last axes, behind those of a batch."""
    axis = argument(node, 1, "axis") if source.calls(node, _STACK) else None
    return axis is not None and (constant(axis) or 0) < 0


def _is_a_product(node: cst.BaseExpression, source: Source) -> bool:
    """Whether the other factor is a product itself, as in a chain of joints, or what a function makes that calls itself
    a matrix."""
    meant = source.meant(_turned(node))
    if isinstance(meant, cst.Call) and _MATRIX.search(dotted(meant.func)):
        return True
    return isinstance(meant, cst.BinaryOperation | cst.Call) and factors(meant, source) is not None


def _is_small_product(barrier: Barrier, module: hlo.Module) -> bool:
    """Whether the value is such a matrix, or such a product."""
    here = module.computations[barrier.computation]
    for item in kernels_around(barrier, module):
        step = _product(item, module)
        if step is None:
            continue
        operands = [At(one, item if item.opcode == "fusion" else None, here) for one in step.operands]
        if not _is_of_many_small(step, operands[0].step(module).shape.dims):
            continue
        joined = [
            made
            for one in operands
            if _is_joined((made := made_at(one, module)).step(module), len(_axes(step, "lhs_batch_dims")))
        ]
        if joined and (item.name == barrier.writer or any(_maker(one) == barrier.writer for one in joined)):
            return True
    return False


def _product(item: hlo.Instruction, module: hlo.Module) -> hlo.Instruction | None:
    steps = module.work_of(item)
    return next(
        (s for s in steps if s.opcode == "dot" and s.op_name.endswith("dot_general") and not is_of_jax(s)), None
    )


def _is_of_many_small(dot: hlo.Instruction, given: tuple[int, ...]) -> bool:
    """Whether it multiplies, for each of many, a few points by a matrix of two or three rows."""
    batch = _axes(dot, "lhs_batch_dims")
    summed = _axes(dot, "lhs_contracting_dims")
    if not batch or len(summed) != 1:
        return False
    many = prod(given[axis] for axis in batch)
    each = prod(dot.shape.dims) // max(many, 1)
    return many >= _FEWEST and given[summed[0]] <= _MOST_ROWS and each <= _MOST_ROWS * _MOST_POINTS


def _axes(dot: hlo.Instruction, name: str) -> list[int]:
    return [int(axis) for axis in dot.attributes.get(name, "").strip("{}").split(",") if axis]


def _is_joined(step: hlo.Instruction, batch: int) -> bool:
    """Whether it joins a matrix of two or three rows for each of many, on so many axes, wherever those stand."""
    is_small = sum(size > _MOST_ROWS for size in step.shape.dims) <= batch
    return step.opcode == "concatenate" and not is_of_jax(step, _JOINS) and is_small


def _maker(made: At) -> str:
    return made.kernel.name if made.kernel is not None else made.name
