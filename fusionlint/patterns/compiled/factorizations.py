"""The compiled side: matrices that a library factors although they are factored already, or need it less.

In: a Barrier. What a module factors is found once. Each call of `jnp.linalg.solve` and its like is a factorization and
what goes with it, all at one line; what crosses memory there is part of it. Small matrices are another rule's.
"""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

from fusionlint.lazily import regex
from fusionlint.patterns.compiled.matrices import Form, form_of, is_gram_and_more, leaves
from fusionlint.patterns.compiled.of_jax import is_of_jax
from fusionlint.patterns.compiled.of_module import OfModule
from fusionlint.patterns.compiled.readers import made_and_taken, made_of, steps_of

if TYPE_CHECKING:
    from fusionlint.hlo import parse as hlo
    from fusionlint.hlo.barriers import Barrier

# What the user calls of a library that factors or solves.
_CALLED = (
    *("cho_solve", "cholesky", "det", "inv", "lu_factor", "slogdet", "solve", "solve_triangular", "_cho_solve"),
    *("_cholesky", "_det", "_lu_solve", "_slogdet_lu", "_slogdet_qr", "_solve", "_solve_triangular"),
)
_PARTS = regex(
    r"\bjit\((_?solve|inv|_?cholesky|_?cho_solve|_lu_solve|_?slogdet\w*|_?det|lu_factor|_?lu|_solve_triangular)\)"
    r"|/(lu|cholesky|triangular_solve|lu_pivots_to_permutation)$"
)
_INVERSE = regex(r"\bjit\(inv\)")
# Of fewer rows the inverse is written out.
_FEWEST_ROWS = 4

Stack = tuple["hlo.Frame", ...]
# One matrix twice by elimination with pivots; by Cholesky and once more; a factor of Cholesky by elimination; a product
# with its own transpose by that; and of one factorization several solutions that need none of another.
What = Literal["twice", "two ways", "factor", "inverse of a factor", "gram", "sides"]


class Factored(NamedTuple):
    """A factorization: by which method, of which form of a matrix."""

    method: Literal["lu", "cholesky"]
    call: hlo.Instruction
    form: Form | None

    @property
    def matrix(self) -> str:
        return self.call.operands[0]


def factored_needlessly(barrier: Barrier, module: hlo.Module, what: What) -> bool:
    """Whether the value is a part of a factorization, or of what goes with it, that is `what` says."""
    if "custom-call" not in module.opcodes:
        return False
    known = _found(OfModule(module)).get(what)
    if not known:
        return False
    steps = made_and_taken(barrier, module)
    return any(step.stack in known and _PARTS.search(step.op_name) is not None for step in steps)


@functools.lru_cache(maxsize=1)
def _found(of: OfModule) -> dict[What, frozenset[Stack]]:
    found: defaultdict[What, set[Stack]] = defaultdict(set)
    for part in of.module.computations.values():
        every = [*_factorizations(part, of.module)]
        for what, calls in _judged(every, part, of.module):
            found[what].update(one.call.stack for one in calls)
        for stacks in _sides(every, part, of.module):
            found["sides"].update(stacks)
    return {what: frozenset(stacks) for what, stacks in found.items()}


def _factorizations(part: hlo.Computation, module: hlo.Module) -> Iterator[Factored]:
    for call in part.instructions.values():
        method = call.op_name.rpartition("/")[2]
        if call.opcode != "custom-call" or method not in ("lu", "cholesky") or not call.operands or not call.stack:
            continue
        rows = part.instructions[call.operands[0]].shape.dims[-2:]
        if len(rows) == 2 and rows[0] == rows[1] >= _FEWEST_ROWS and not is_of_jax(call, _CALLED):
            form = form_of(call.operands[0], part, module)
            yield Factored("lu" if method == "lu" else "cholesky", call, form)


def _judged(
    every: Sequence[Factored], part: hlo.Computation, module: hlo.Module
) -> Iterator[tuple[What, Sequence[Factored]]]:
    by_form: defaultdict[Form, list[Factored]] = defaultdict(list)
    factors = {one.call.name for one in every if one.method == "cholesky"}
    for one in every:
        if one.form is None:
            continue
        if one.method == "lu" and factors and {*_values(one.form, part, module)} <= factors:
            yield ("inverse of a factor" if _INVERSE.search(one.call.op_name) else "factor"), (one,)
        else:
            by_form[one.form].append(one)
    for alike in by_form.values():
        if len(alike) > 1 and not any(_may_fail(one, part, module) for one in alike):
            yield ("twice" if {one.method for one in alike} == {"lu"} else "two ways"), alike
    for one in every:
        if one.method == "lu" and is_gram_and_more(one.matrix, part, module):
            yield "gram", (one,)


def _values(form: Form, part: hlo.Computation, module: hlo.Module) -> Iterator[str]:
    """The calls whose results a form is made of; of any other value its name. Whether a call has failed a TPU finds in
    the factor, by work that is called like the call."""
    for leaf in leaves(form):
        kernel, _, name = leaf.rpartition("/")
        inside = module.body(part.instructions[kernel]) if kernel else None
        item = (inside or part).instructions[name]
        if item.opcode == "get-tuple-element":
            yield item.operands[0]
        elif item.op_name.endswith("/cholesky"):
            alike = (one.name for one in module.every("custom-call") if _is_one_call(one, item))
            yield next(alike, leaf)
        else:
            yield leaf


def _is_one_call(one: hlo.Instruction, other: hlo.Instruction) -> bool:
    return one.op_name == other.op_name and one.stack == other.stack


def _may_fail(one: Factored, part: hlo.Computation, module: hlo.Module) -> bool:
    """Whether it is asked whether a factorization has failed: another may stand in for it then."""
    todo, seen = [one.call.name], {one.call.name}
    while todo:
        item = part.instructions[todo.pop()]
        if item is not one.call and any(map(_asks_for_nan, steps_of(item, module))):
            return True
        if item is one.call or _PARTS.search(item.op_name) or item.opcode in ("bitcast", "copy", "get-tuple-element"):
            for user in item.users:
                if user not in seen:
                    seen.add(user)
                    todo.append(user)
    return False


def _asks_for_nan(step: hlo.Instruction) -> bool:
    """Whether it asks if numbers are any, and the user does so: a library asks for its own sake."""
    is_itself = step.opcode == "compare" and step.operands[0] == step.operands[1]
    return (is_itself or step.opcode == "is-finite") and not _PARTS.search(step.op_name)


def _sides(every: Sequence[Factored], part: hlo.Computation, module: hlo.Module) -> Iterator[set[Stack]]:
    """Of each factorization the lines that solve with it, for several right-hand sides of which none needs another's
    solution. Each is two triangular solutions, one after the other."""
    calls = {one.call.name for one in every}
    solves: defaultdict[str, list[hlo.Instruction]] = defaultdict(list)
    for item in part.instructions.values():
        if item.opcode == "custom-call" and item.op_name.endswith("/triangular_solve") and len(item.operands) > 1:
            form = form_of(item.operands[0], part, module)
            values = {*_values(form, part, module)} if form is not None else set()
            if len(values & calls) == 1 and not is_of_jax(item, _CALLED):
                solves[values.pop()].append(item)
    for group in solves.values():
        names = {one.name for one in group}
        starts = [one for one in group if not made_of(one.operands[1], names, part)]
        if len(starts) > 1 and len(group) == 2 * len(starts):
            yield {one.stack for one in group}
