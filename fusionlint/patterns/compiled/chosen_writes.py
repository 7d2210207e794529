"""The compiled side: writes to one array in a row, each of which is there only if its condition holds.

In: a Barrier. Of each write XLA makes a scatter, and a choice between the whole array as it was and as it is written.
Told is a chain of two and more, of whose array nothing but the next write and the next choice reads in between.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from fusionlint.patterns.compiled.matrices import At, made_at
from fusionlint.patterns.compiled.of_jax import is_of_jax
from fusionlint.patterns.compiled.of_module import OfModule
from fusionlint.patterns.compiled.readers import uses_of

if TYPE_CHECKING:
    from fusionlint.hlo import parse as hlo
    from fusionlint.hlo.barriers import Barrier

_WRITES = frozenset(("scatter", "dynamic-update-slice"))
_COPIES = frozenset(("copy", "copy-start", "copy-done"))
# What jax jits of a choice that the user calls.
_CHOICES = ("_where", "where")


class _Link(NamedTuple):
    """A choice, and where the array is made that it leaves or has written to; the kernels that write and choose."""

    choice: At
    before: At
    write: hlo.Instruction
    chooses: hlo.Instruction


def is_chosen_write_after_write(barrier: Barrier, module: hlo.Module) -> bool:
    """Whether the value is the array between two such writes, or between a write and its choice."""
    if "select" not in module.opcodes or _WRITES.isdisjoint(module.opcodes):
        return False
    known = _known(OfModule(module)).get(barrier.computation, frozenset())
    return barrier.writer in known and any(name in known for name in barrier.readers)


@functools.lru_cache(maxsize=1)
def _known(of: OfModule) -> dict[str, frozenset[str]]:
    """By computation the kernels of such chains, with the copies that they take."""
    found: dict[str, set[str]] = {}
    for part in of.module.computations.values():
        links = {link.choice.names: link for link in _links(part, of.module)}
        for link in links.values():
            first = links.get(link.before.names)
            if first is None or not _is_read_by_no_other(first, link, part, of.module):
                continue
            kernels = {link.write.name, link.chooses.name, first.write.name, first.chooses.name}
            copies = {
                operand
                for one in (link.write, first.write)
                for operand in one.operands
                if part.instructions[operand].opcode in _COPIES
            }
            found.setdefault(part.name, set()).update(kernels | copies)
    return {name: frozenset(kernels) for name, kernels in found.items()}


def _links(part: hlo.Computation, module: hlo.Module) -> Iterator[_Link]:
    for item in part.instructions.values():
        body = module.body(item)
        if body is None and item.opcode != "select":
            continue
        for step in body.instructions.values() if body is not None else (item,):
            if step.opcode == "select" and step.shape.dims and not is_of_jax(step, _CHOICES):
                choice = At(step.name, item if body is not None else None, part)
                yield from _linked(choice, item, module)


def _linked(choice: At, chooses: hlo.Instruction, module: hlo.Module) -> Iterator[_Link]:
    one, other = (made_at(choice.operand(number, module), module) for number in (1, 2))
    for written, kept in ((one, other), (other, one)):
        step = written.step(module)
        is_write = step.opcode in _WRITES and step.op_name.rpartition("/")[2].startswith("scatter")
        if is_write and not is_of_jax(step) and made_at(written.operand(0, module), module).names == kept.names:
            write = written.kernel if written.kernel is not None else step
            yield _Link(choice, kept, write, chooses)
            return


def _is_read_by_no_other(first: _Link, link: _Link, part: hlo.Computation, module: hlo.Module) -> bool:
    """Whether what is chosen goes into the next write and its choice alone."""
    body = module.body(first.chooses)
    if body is not None and any(user.opcode != "tuple" for user, _ in uses_of(first.choice.name, body.instructions)):
        return False
    todo, taking = [first.chooses.name], {link.write.name, link.chooses.name}
    while todo:
        for user, _ in uses_of(todo.pop(), part.instructions):
            if user.opcode in _COPIES:
                todo.append(user.name)
            elif user.name not in taking:
                return False
    return True
