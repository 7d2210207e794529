"""The compiled side: a loop whose turns need nothing of one another, so that all of them can be done at once.

In: the name of the computation that is its body. What such a loop hands on are numbers that it counts up, arrays of
which each turn writes a part and that nothing else reads, what it was given, and what each turn only adds something to,
or a maximum of what all turns make.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, Literal, NamedTuple

from fusionlint.patterns.compiled.matrices import At, made_at
from fusionlint.patterns.compiled.of_jax import is_loop_of_jax
from fusionlint.patterns.compiled.of_module import by_computation
from fusionlint.patterns.compiled.readers import steps_of
from fusionlint.patterns.compiled.recurrence import counts_up, loop_of

if TYPE_CHECKING:
    from fusionlint.hlo import parse as hlo

# What takes long next to a launch, or needs much memory where all turns do it at once; so does what devices exchange.
_LONG = frozenset(
    ("dot", "convolution", "custom-call", "sort", "fft", "cholesky", "triangular-solve", "reduce-window", "while")
) | {"call", "rng-bit-generator", "topk"}
# Bytes: that an accelerator moves in less than a launch takes, and that every program may have for a while.
_MOST_IN_A_TURN, _MOST_AT_ONCE = 1 << 20, 1 << 26
_FEWEST_TURNS = 4

Writes = Literal["stack", "array", "sum"]
# What may be done to all at once that turns do one after the other.
_REDUCTIONS = frozenset(("add", "and", "maximum", "minimum", "multiply", "or"))


class Apart(NamedTuple):
    """Such a loop: how many turns it has, if that is known, and what it does with what a turn makes."""

    turns: int | None
    writes: frozenset[Writes]

    @property
    def only_stacks(self) -> bool:
        return self.writes == {"stack"}

    @property
    def sums(self) -> bool:
        return "sum" in self.writes


@by_computation
def turns_apart(name: str, module: hlo.Module) -> Apart | None:
    """The loop, if what a turn does is little; None if its turns need one another, or that is no loop's body."""
    from fusionlint.hlo.trips import trip_count

    found = loop_of(name, module)
    body = module.computations[name]
    if found is None or body.instructions[body.root].opcode != "tuple":
        return None
    turns = trip_count(module, *found)
    if (turns is not None and turns < _FEWEST_TURNS) or not _is_little(body, turns or 1, module):
        return None
    steps = (step for item in body.instructions.values() for step in steps_of(item, module) if step.stack)
    if all(is_loop_of_jax(found[1].op_name, step, module) for step in steps):
        return None
    written = _written(body, found[1], module)
    return Apart(turns, frozenset(written)) if written else None


def _is_little(part: hlo.Computation, turns: int, module: hlo.Module) -> bool:
    """Whether a turn does nothing that takes long, and all turns together make nothing that is large."""
    from fusionlint.hlo.collectives import collective
    from fusionlint.hlo.cost import traffic
    from fusionlint.hlo.work import NO_WORK

    made = 0
    for item in part.instructions.values():
        if any(_is_long(step) or collective(step) for step in steps_of(item, module)):
            return False
        if item.opcode == "conditional":
            if not all(_is_little(module.computations[branch], turns, module) for branch in item.called):
                return False
        elif item.opcode not in NO_WORK:
            moved = traffic(module, part, item)
            if moved.read + moved.written > _MOST_IN_A_TURN:
                return False
            made += moved.written
    return made * turns <= _MOST_AT_ONCE


def _is_long(step: hlo.Instruction) -> bool:
    """Not the call by which a TPU packs the places of a look-up or a write."""
    from fusionlint.hlo.causes import BY_PLACES

    if step.opcode == "custom-call" and step.op_name.rpartition("/")[2].startswith(BY_PLACES):
        return False
    return step.opcode in _LONG


def _written(body: hlo.Computation, loop: hlo.Instruction, module: hlo.Module) -> list[Writes] | None:
    """What is written to of all that a turn changes but for what it counts; None where it changes anything else."""
    from fusionlint.hlo.flow import is_handed_on

    found: list[Writes] = []
    for index, _ in enumerate(body.instructions[body.root].operands):
        if is_handed_on(module, loop, (index,)) or counts_up(body, index, module):
            continue
        writes = "sum" if _is_summed(body, index, module) else _write(body, index, module)
        if writes is None:
            return None
        found.append(writes)
    return found


def _is_summed(body: hlo.Computation, index: int, module: hlo.Module) -> bool:
    """Whether a turn does no more with element `index` than to add something to it, or take the larger of both."""
    made = made_at(At(body.instructions[body.root].operands[index], None, body), module)
    step = made.step(module)
    if step.opcode not in _REDUCTIONS:
        return False
    kernel = made.kernel or step
    readers = [*_readers(body, index)]
    if len(readers) != 1 or readers[0][0] != kernel.name:
        return False
    inside = module.body(kernel)
    if inside is None:
        return True
    given = inside.parameters[readers[0][1]]
    while len(given.users) == 1 and inside.instructions[given.users[0]].opcode == "bitcast":
        given = inside.instructions[given.users[0]]
    return given.users == (step.name,) and step.operands.count(given.name) == 1


def _write(body: hlo.Computation, index: int, module: hlo.Module) -> Writes | None:
    """How element `index` is written to: by one kernel, which hands it on, and which alone reads it."""
    from fusionlint.hlo.causes import STACKS
    from fusionlint.hlo.flow import written_under
    from fusionlint.hlo.work import update_in_place, updated_in_place

    (_, name), path = written_under(body, body.instructions[body.root].operands[index])
    update = update_in_place(module, (body.name, name), path)
    updated = updated_in_place(module, (body.name, name), path)
    if update is None or updated is None:
        return None
    readers = [*_readers(body, index)]
    if (name, updated[0]) not in readers or not all(_reads_no_other(body, one, module) for one in readers):
        return None
    return "stack" if STACKS.search(update[0].op_name) else "array"


def _reads_no_other(body: hlo.Computation, reader: tuple[str, int], module: hlo.Module) -> bool:
    """Whether a kernel reads of an array no more than what it writes over, or what stays where the place to write to is
    out of bounds: XLA's own step, which has no name."""
    name, number = reader
    item = body.instructions[name]
    inside = module.body(item)
    given = inside.parameters[number] if inside else body.instructions[item.operands[number]]
    steps = inside.instructions if inside else {name: item}
    users = [steps[user] for user in given.users if user in steps]
    places = {step.operands[2:] for step in users if step.opcode == "dynamic-update-slice"}
    return bool(users) and all(_overwrites(step, given) or _cuts(step, places) for step in users)


def _overwrites(step: hlo.Instruction, array: hlo.Instruction) -> bool:
    from fusionlint.hlo.cost import IN_PLACE

    return step.opcode in IN_PLACE and step.operands.index(array.name) == 0 and step.operands.count(array.name) == 1


def _cuts(step: hlo.Instruction, places: Collection[tuple[str, ...]]) -> bool:
    return step.opcode == "dynamic-slice" and (step.operands[1:] in places or not step.op_name)


def _readers(body: hlo.Computation, index: int) -> Iterator[tuple[str, int]]:
    """The kernels that read element `index` of what a turn is given, and as which operand."""
    given = body.parameters[0]
    for item in (body.instructions[name] for name in given.users):
        if item.opcode == "get-tuple-element" and item.attributes["index"] == str(index):
            yield from _reading(item.name, body)


def _reading(name: str, body: hlo.Computation) -> Iterator[tuple[str, int]]:
    from fusionlint.hlo.flow import SAME_VALUE

    for user in (body.instructions[one] for one in body.instructions[name].users):
        if user.opcode in SAME_VALUE:
            yield from _reading(user.name, body)
        else:
            yield from ((user.name, number) for number, operand in enumerate(user.operands) if operand == name)
