"""The compiled side: a loop of a known number of small steps, each of which uses what the last left.

It goes over rows, as a scan does, or repeats a step, as Newton's method does. What is told of it is what all its
kernels do: arithmetic, and what stays a kernel or moves elements besides.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from math import prod
from typing import TYPE_CHECKING, NamedTuple

from fusionlint.patterns.compiled.matrices import At, form_of_value, leaves, made_at
from fusionlint.patterns.compiled.of_jax import is_path_of_jax
from fusionlint.patterns.compiled.of_module import by_computation
from fusionlint.patterns.compiled.readers import steps_of
from fusionlint.patterns.compiled.round import MOVES

if TYPE_CHECKING:
    from fusionlint.hlo import parse as hlo

# As in the source: longer steps are no longer short next to a launch. And a GPU moves this much in less than one.
_MOST_OPERATIONS = 40
_MOST_BYTES = 1 << 20
_FEWEST_STEPS = 4
# More directions than this has no board.
MOST_MOVES = 16
# What is summed is summed again by each kernel that needs it, where several steps are one loop's body.
_MOST_SUMMED = 1 << 16

_ELEMENTWISE = frozenset(
    (
        *("abs", "add", "and", "atan2", "cbrt", "ceil", "clamp", "compare", "convert", "cosine", "divide", "erf"),
        *("exponential", "exponential-minus-one", "floor", "is-finite", "log", "log-plus-one", "logistic", "maximum"),
        *("minimum", "multiply", "negate", "not", "or", "power", "remainder", "round-nearest-afz"),
        *("round-nearest-even", "rsqrt", "select", "sign", "sine", "sqrt", "subtract", "tan", "tanh", "xor"),
    )
)
_NO_WORK = MOVES | {"parameter", "constant", "broadcast", "fusion", "iota", "slice"}
_ROWS = frozenset(("dynamic-slice", "dynamic-update-slice"))
_PRODUCTS = frozenset(("dot", "convolution"))
_MOVES = frozenset(("concatenate", "pad", "reverse"))
_LOOKS_UP = frozenset(("gather",))
_SUMS = _PRODUCTS | {"reduce"}


class Turn(NamedTuple):
    """What one turn of such a loop is: how many of the user's steps, whether it takes rows, and how much it does; of
    sums and products how many the user wrote."""

    trips: int
    steps: int
    has_rows: bool
    operations: int
    sums: int
    products: int
    moves: bool
    looks_up: bool  # by places that are in the data
    looks_up_carried: bool  # or in what the last step found, one at a time
    stacks: bool
    is_of_a_tpu: bool

    @property
    def is_elementwise(self) -> bool:
        return not (self.sums or self.products or self.moves or self.looks_up or self.looks_up_carried)


@by_computation
def small_turn(name: str, module: hlo.Module) -> Turn | None:
    """The turn of a loop whose body is the computation of that name, if all that it does is little, on what it carries
    on; None if it does else, or if that is no loop's body."""
    from fusionlint.hlo.trips import is_written_down, trip_count

    found = loop_of(name, module)
    trips = trip_count(module, *found) if found else None
    if trips is None or trips < _FEWEST_STEPS:
        return None
    body = module.computations[name]
    steps = [*_steps(body, module)]
    operations = _operations(body, module)
    if operations > _MOST_OPERATIONS or not _is_little(steps) or any(map(_is_random, steps)):
        return None
    lengths = {length // trips for length in _lengths(body, module) if length >= trips}
    stacks = any(step.opcode == "dynamic-update-slice" for step in steps)
    carried = {*_carried(body, {trips, *(times * trips for times in lengths)} if stacks else set(), module)}
    if not carried:
        return None
    sums = {(step.op_name, step.stack) for step in steps if step.opcode in _SUMS}
    products = {one for one in sums if one[0].endswith("dot_general")}
    moves = any(step.opcode in _MOVES for step in steps)
    looks_up = any(step.opcode in _LOOKS_UP for step in steps)
    # A scan that is unrolled takes rows together, and cuts them apart.
    cuts = 0 if moves or not lengths else sum(step.opcode == "slice" for step in steps)
    together = max(*(lengths if stacks else ()), 1, cuts, _times_alike(body, module))
    is_of_a_tpu = found is not None and not is_written_down(found[1])
    return Turn(
        trips=trips,
        steps=together,
        has_rows=bool(lengths),
        operations=operations,
        sums=len(sums - products),
        products=len(products),
        moves=moves,
        looks_up=looks_up,
        looks_up_carried=_looks_up(carried, body, module),
        stacks=stacks,
        is_of_a_tpu=is_of_a_tpu,
    )


def is_walk_of_few(turn: Turn) -> bool:
    """Whether it is one of few turns that move what they ask about, and only carry on what they find: the directions of
    a board. All of them together know how far they move."""
    return (turn.moves or turn.looks_up) and not turn.stacks and turn.trips <= MOST_MOVES


def _operations(body: hlo.Computation, module: hlo.Module) -> int:
    """How many operations on arrays a turn is; what several kernels do, each by itself, is one."""
    found: Counter[tuple[str, str, tuple[hlo.Frame, ...]]] = Counter()
    for item in body.instructions.values():
        worked = [step for step in steps_of(item, module) if step.opcode in _ELEMENTWISE and step.shape.dims]
        found |= Counter((step.opcode, step.op_name, step.stack) for step in worked)
    return found.total()


def _is_little(steps: Sequence[hlo.Instruction]) -> bool:
    from fusionlint.hlo.causes import STACKS

    if any(step.opcode not in _ELEMENTWISE | _NO_WORK | _ROWS | _SUMS | _MOVES | _LOOKS_UP for step in steps):
        return False
    # What is written to else than by the loop's own outputs is an array, and not what a step hands on.
    if any(step.opcode == "dynamic-update-slice" and not STACKS.search(step.op_name) for step in steps):
        return False
    if any(step.shape.nbytes > _MOST_BYTES for step in steps if step.opcode in _ELEMENTWISE):
        return False
    by_name = {step.name: step for step in steps}
    read = (step for step in steps if step.opcode in _SUMS | _LOOKS_UP)
    summed = (prod(by_name[name].shape.dims) for step in read for name in step.operands)
    return max(summed, default=0) <= _MOST_SUMMED


def _times_alike(body: hlo.Computation, module: hlo.Module) -> int:
    """How often most operations of a kernel, or of those that are in none, stand there and are one in the source, or
    how often one kernel does: as many steps were written out."""
    from fusionlint.hlo.causes import STACKS

    items = body.instructions.values()
    alone = [item for item in items if item.opcode != "fusion"]
    inside = (part.instructions.values() for item in items if (part := module.body(item)))
    counts = [
        Counter((step.opcode, step.op_name, step.stack) for step in group if step.opcode in _ELEMENTWISE)
        for group in (alone, *inside)
    ]
    working = (item for item in items if item.opcode == "fusion" and not STACKS.search(item.op_name))
    kernels = Counter((item.op_name, item.stack) for item in working)
    medians = (sorted(count.values())[(len(count) - 1) // 2] for count in counts if count)
    return max(1, *kernels.values(), *medians)


def loop_of(name: str, module: hlo.Module) -> tuple[hlo.Computation, hlo.Instruction] | None:
    """The loop whose body is the computation of that name, behind where it stands; None if it is not the user's."""
    from fusionlint.hlo.parse import names

    for around, item in module.callers(name):
        if item.opcode == "while" and name in names(item.attributes["body"]):
            # A gather or a scatter that XLA makes a loop of has no steps of the user's.
            is_named = item.op_name.rpartition("/")[2].startswith("while")
            is_theirs = is_named and not is_path_of_jax(item.op_name, item.stack)
            return (module.computations[around], item) if is_theirs else None
    return None


def _steps(body: hlo.Computation, module: hlo.Module) -> Iterator[hlo.Instruction]:
    for item in body.instructions.values():
        yield item
        if inside := module.body(item):
            yield from _steps(inside, module)


def _is_random(step: hlo.Instruction) -> bool:
    from fusionlint.hlo.causes import RANDOM

    return RANDOM.search(step.op_name) is not None


def _lengths(body: hlo.Computation, module: hlo.Module) -> Iterator[int]:
    """The sizes along which the body takes a part of arrays that it hands on as they are."""
    items = body.instructions
    kept = {one for number, one in enumerate(_handed_on(body)) if _number(items[one]) == number}
    for item in items.values():
        inside = module.body(item)
        given = dict(zip((one.name for one in inside.parameters), item.operands, strict=True)) if inside else {}
        for step in module.work_of(item):
            array = step.operands[0] if step.operands else ""
            if step.opcode == "dynamic-slice" and given.get(array, array) in kept:
                whole = (inside or body).instructions[array].shape.dims
                cut = (a for a, b in zip(whole, step.shape.dims, strict=True) if a != b)
                yield next(cut, 1)


def _carried(body: hlo.Computation, lengths: set[int], module: hlo.Module) -> Iterator[str]:
    """What a step uses that the last one left, and is neither its number nor the outputs so far."""
    items = body.instructions
    changed = {number for number, one in enumerate(_handed_on(body)) if _number(items[one]) != number}
    for item in items.values():
        shape, number = item.shape, _number(item)
        if number is None or number not in changed or not item.users or lengths.intersection(shape.dims[:1]):
            continue
        if shape.dims or shape.dtype[:1] not in "su" or not counts_up(body, number, module):
            yield item.name


def counts_up(body: hlo.Computation, number: int, module: hlo.Module) -> bool:
    """Whether a turn only adds a constant to element `number` of what it carries, in a kernel of its own or in that of
    what else the turn does."""
    from fusionlint.hlo.trips import counts

    made = made_at(At(_handed_on(body)[number], None, body), module)
    step = made.step(module)
    if step.opcode != "add" or len(step.operands) != 2:
        return counts(module, body, number)
    one, other = (made_at(made.operand(side, module), module) for side in range(2))
    for base, by in ((one, other), (other, one)):
        start = base.step(module)
        is_carried = start.opcode == "get-tuple-element" and start.operands[0] == body.parameters[0].name
        if is_carried and _number(start) == number and by.step(module).opcode == "constant":
            return True
    return counts(module, body, number)


def _looks_up(carried: set[str], body: hlo.Computation, module: hlo.Module) -> bool:
    """Whether a step takes what stands at a place that the last one has found."""
    given = body.parameters[0].name
    carried = {name for name in carried if given in body.instructions[name].operands}
    for item in body.instructions.values():
        for step in module.work_of(item):
            if step.opcode == "dynamic-slice":
                within = item if module.body(item) is not None else None
                places = (form_of_value(At(name, within, body), module) for name in step.operands[1:])
                if any(not carried.isdisjoint(leaves(place)) for place in places):
                    return True
    return False


def _handed_on(body: hlo.Computation) -> tuple[str, ...]:
    """What the next step gets, by its number in the carry."""
    root = body.instructions[body.root]
    return root.operands if root.opcode == "tuple" else ()


def _number(item: hlo.Instruction) -> int | None:
    """Of what the body was given, its number in the carry."""
    return int(item.attributes["index"]) if item.opcode == "get-tuple-element" else None
