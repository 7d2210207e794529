"""A product or a reduction in the body of a `lax` loop whose operands no step changes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import libcst as cst

from fusionlint.finding import Finding
from fusionlint.lazily import regex
from fusionlint.patterns.code.at import constant, holds, names_read
from fusionlint.patterns.code.calls import brief
from fusionlint.patterns.code.functions import Function
from fusionlint.patterns.compiled.every_turn import (
    is_factorization,
    is_part,
    place_apart,
    same_in_every_turn,
    same_within,
)
from fusionlint.patterns.compiled.words import in_bytes, line_of
from fusionlint.patterns.runs.loop_bodies import LOOPS, all_loop_bodies
from fusionlint.patterns.values.kinds import kind
from fusionlint.rule import Rule
from fusionlint.source.traced import is_idle
from fusionlint.source.tree import Source
from fusionlint.source.walk import children

if TYPE_CHECKING:
    from fusionlint.hlo import parse as hlo
    from fusionlint.hlo.barriers import Barrier
    from fusionlint.hlo.kernels import Kernel

rule = Rule(__name__, harm="fusion")

# What XLA does not move out of a loop on GPU. Random numbers and callbacks are no values.
_DEAR = regex(
    r"^jax\.numpy\.(matmul|dot|einsum|tensordot|vdot|inner|sum|mean|prod|max|min|std|var|cumsum|cumprod|sort|argsort"
    r"|linalg\.(norm|inv|det|slogdet|cholesky|eigh|eigvalsh|svd|qr|pinv|matrix_power|solve|lstsq))$"
    r"|^jax\.scipy\.linalg\.(cho_factor|cholesky|det|eigh|expm|inv|lu|lu_factor|qr|schur|solve|sqrtm|svd)$"
    r"|^jax\.lax\.linalg\.(cholesky|eigh|lu|qr|svd)$"
)
_REDUCES = regex(r"\.(sum|mean|prod|max|min|std|var|norm)$")
# Measured on an H100: of 12 numbers the reduction fuses with what reads it, of 64 it is a kernel in each step.
_FEW = 12
# The page's pair of what a TPU leaves in the loop too.
_DISTANCES = 1
# A name of the body seldom stands for more names than this.
_DEPTH = 4


@rule.source("FunctionDef", "Lambda", calls=LOOPS)
def same_in_every_step(body: Function, source: Source) -> Iterator[Finding]:
    """The outermost such expressions of a body, those of functions inside it aside."""
    place = source.body_place(body)
    if place not in all_loop_bodies(source.project) or is_idle(source.project, place):
        return
    around = source.function(body)
    if around is None or source.context(body) == "host":
        return
    for node in _repeated(body.body, body, source):
        yield source.finding(
            node,
            "every step computes the same value anew",
            write=f"value = {_shown(node, source)} before the loop, and `value` in its body",
        )


@rule.barrier
@rule.barrier(pair=_DISTANCES)
def made_in_every_turn(barrier: Barrier, module: hlo.Module) -> str | None:
    """What a kernel in the body of a loop makes of nothing that a turn changes."""
    found = same_in_every_turn(barrier, module)
    if found is None:
        return _made_on_the_way(barrier, module)
    loop, kernels = found
    apart = place_apart(barrier, loop, module)
    file = f"{Path(apart.path).name}:" if apart and apart.path != barrier.stack[0].path else ""
    what = f"what it is given, made in {file or 'line '}{apart.line}:{apart.column}, is " if apart else ""
    if is_factorization(barrier, module) and is_part(barrier, module):
        write = "factor the matrix once before it (jax.scipy.linalg.cho_factor, lu_factor), and solve by the factors"
    else:
        write = "compute it once before it"
    return f"{what}the same in every turn of the loop at {line_of(loop)}: {write} ({_spent(kernels)})"


def _made_on_the_way(barrier: Barrier, module: hlo.Module) -> str | None:
    """A product or a sum in the kernel, where what follows it there is not the same."""
    found = same_within(barrier, module)
    if found is None:
        return None
    loop, step = found
    what = f"the {'product' if 'dot' in step.op_name else 'sum'} of line {step.stack[0].line}"
    return (
        f"{what}, made here on the way, is the same in every turn of the loop at {line_of(loop)}: compute it before it"
    )


def _spent(kernels: tuple[Kernel, ...]) -> str:
    """What all that is the same costs the loop."""
    launches = sum(kernel.launches for kernel in kernels)
    moved = sum(kernel.launches * (kernel.bytes_read + kernel.bytes_written) for kernel in kernels)
    often = " a turn" if any(kernel.per_iteration for kernel in kernels) else ""
    who = f"{len(kernels)} such kernels in it" if len(kernels) > 1 else "one such kernel in it"
    return f"{who}, {launches} {'launches' if launches > 1 else 'launch'}, {in_bytes(moved)}{often}"


def _shown(node: cst.BaseExpression, source: Source) -> str:
    return brief(source.code(node), 60, "this")


def _repeated(node: cst.CSTNode, body: Function, source: Source) -> Iterator[cst.BaseExpression]:
    """The outermost products and reductions under `node` that no step changes; those behind an `if` aside."""
    if isinstance(node, cst.FunctionDef | cst.Lambda | cst.If | cst.IfExp):
        return
    if isinstance(node, cst.BaseExpression) and _is_dear(node, source) and _stays(node, body, source):
        yield node
        return
    for child in children(node):
        yield from _repeated(child, body, source)


def _stays(node: cst.BaseExpression, body: Function, source: Source) -> bool:
    return _is_invariant(node, body, source, _DEPTH) and _reads_an_array(node, body, source, _DEPTH)


def _is_dear(node: cst.CSTNode, source: Source) -> bool:
    match node:
        case cst.BinaryOperation(operator=cst.MatrixMultiply()):
            return True
        case cst.Call(func=func):
            return bool(_DEAR.match(source.qualified_name(func) or "")) and not _is_of_a_few(node, source)
    return False


def _is_of_a_few(call: cst.Call, source: Source) -> bool:
    """Whether a reduction goes over a few numbers, `jnp.linalg.norm(x[:3])`: it fuses with what reads it."""
    if not _REDUCES.search(source.qualified_name(call.func) or "") or len(call.args) != 1:
        return False
    length = _length(call.args[0].value, source, _DEPTH)
    return length is not None and length <= _FEW


def _length(vector: cst.BaseExpression, source: Source, depth: int) -> int | None:
    """How long a vector is that is cut out, `x[:3]`, or turned by matrices, `rotation @ x[:3]`."""
    match vector:
        case cst.Name() if depth:
            meant = source.value(vector)
            return _length(meant, source, depth - 1) if meant is not None else None
        case cst.BinaryOperation(operator=cst.MatrixMultiply(), right=right):
            return _length(right, source, depth)
        case cst.Subscript(
            slice=[cst.SubscriptElement(slice=cst.Slice(lower=lower, upper=cst.BaseExpression() as upper, step=None))]
        ):
            begin, end = 0 if lower is None else constant(lower), constant(upper)
            is_counted = begin is not None and end is not None and (begin < 0) == (end < 0)
            return end - begin if is_counted and begin is not None and end is not None else None
    return None


def _is_invariant(node: cst.CSTNode, body: Function, source: Source, depth: int) -> bool:
    """Whether every name in `node` is one of the functions around the body, or of the body and invariant itself."""
    if depth == 0 or holds(node, cst.Lambda, cst.Yield, cst.NamedExpr):
        return False
    return all(_is_from_around(name, body, source, depth) for name in names_read(node))


def _is_from_around(name: cst.Name, body: Function, source: Source, depth: int) -> bool:
    scope = source.body_scope(body)
    bound = source.facts.lookup(source.scope(name), name.value)
    if bound is None:
        return name.value in ("True", "False", "None", "float", "int", "len", "slice")
    if not f"{bound[0]}.".startswith(f"{scope}."):
        return bound[1].kind == "import" or not _changes(name, source)
    value = source.value(name)
    return value is not None and _is_invariant(value, body, source, depth - 1)


def _changes(name: cst.Name, source: Source) -> bool:
    """Whether the function around writes the name more than once: another array with each."""
    return len(source.writes(name)) > 1


def _reads_an_array(node: cst.CSTNode, body: Function, source: Source, depth: int) -> bool:
    """Whether an operand is an array that the function around takes or computes: a module's own is a constant."""
    scope = source.body_scope(body)
    for name in names_read(node) if depth else ():
        bound = source.facts.lookup(source.scope(name), name.value)
        if bound is None or not bound[0]:
            continue
        if f"{bound[0]}.".startswith(f"{scope}."):
            value = source.value(name)
            if value is not None and _reads_an_array(value, body, source, depth - 1):
                return True
        elif bound[1].kind == "parameter" and name.value != "self":
            if kind(name, source) not in ("scalar", "numpy"):
                return True
        elif kind(name, source) == "array" and _is_given(name, source, _DEPTH):
            return True
    return False


def _is_given(name: cst.Name, source: Source, depth: int) -> bool:
    """Whether an array is made of what the functions around are given: of anything else a trace knows it, and XLA
    computes with it once and for all."""
    bound = source.facts.lookup(source.scope(name), name.value)
    if bound is None or not bound[0]:
        return False
    value = source.value(name)
    if bound[1].kind == "parameter" or value is None or depth == 0:
        return True
    return any(_is_given(part, source, depth - 1) for part in names_read(value))
