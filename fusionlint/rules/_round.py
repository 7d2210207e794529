"""The compiled side: what a loop hands from one iteration to the next."""

from __future__ import annotations

from fusionlint.hlo import parse as hlo
from fusionlint.hlo.barriers import Barrier

# What hands a value on as it is.
_SAME = frozenset(("copy", "bitcast", "get-tuple-element", "copy-start", "copy-done", "tuple", "reshape"))


def goes_round(barrier: Barrier, module: hlo.Module) -> bool:
    """Whether a loop's body makes the value and hands it to its next iteration."""
    bodies = {
        name
        for computation in module.computations.values()
        for item in computation.instructions.values()
        if item.opcode == "while"
        for name in hlo.names(item.attributes["body"])
    }
    if barrier.computation not in bodies:
        return False
    computation = module.computations[barrier.computation]
    return computation.root in _handed_on(computation, barrier.value)


def _handed_on(computation: hlo.Computation, value: str) -> set[str]:
    """The value and all that is only another name for it."""
    found, todo = {value}, [value]
    while todo:
        for user in computation.instructions[todo.pop()].users:
            copies = computation.instructions[user].opcode in _SAME or "copy" in computation.instructions[user].name
            if copies and user not in found:
                found.add(user)
                todo.append(user)
    return found
