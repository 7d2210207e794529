"""The compiled side: a loop that goes over rows in small elementwise steps, each of which uses what the last left."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from fusionlint.patterns.compiled.round import MOVES

if TYPE_CHECKING:
    from fusionlint.hlo import parse as hlo

# As in the source: longer steps are no longer short next to a launch. And a GPU moves this much in less than one.
_MOST_OPERATIONS = 40
_MOST_BYTES = 1 << 20
_FEWEST_STEPS = 4

_ELEMENTWISE = frozenset(
    (
        *("abs", "add", "and", "atan2", "cbrt", "ceil", "clamp", "compare", "convert", "cosine", "divide", "erf"),
        *("exponential", "exponential-minus-one", "floor", "is-finite", "log", "log-plus-one", "logistic", "maximum"),
        *("minimum", "multiply", "negate", "not", "or", "power", "remainder", "round-nearest-afz"),
        *("round-nearest-even", "rsqrt", "select", "sign", "sine", "sqrt", "subtract", "tan", "tanh", "xor"),
    )
)
_NO_WORK = MOVES | {"parameter", "constant", "broadcast", "fusion", "slice"}
_ROWS = frozenset(("dynamic-slice", "dynamic-update-slice"))


def unrolled_times(name: str, module: hlo.Module) -> int | None:
    """How many rows a loop's body takes at once, if all that it does is little, and elementwise, on a row and on what
    it carries; None if it does else, or if the computation of that name is no loop's body."""
    from fusionlint.hlo.trips import trip_count

    found = _loop(name, module)
    trips = trip_count(module, *found) if found else None
    if trips is None or trips < _FEWEST_STEPS:
        return None
    body = module.computations[name]
    steps = [*_steps(body, module)]
    worked = [step for step in steps if step.opcode in _ELEMENTWISE and step.shape.dims]
    if any(step.opcode not in _ELEMENTWISE | _NO_WORK | _ROWS or _is_random(step) for step in steps):
        return None
    if len(worked) > _MOST_OPERATIONS or any(step.shape.nbytes > _MOST_BYTES for step in worked):
        return None
    lengths = {length // trips for length in _lengths(body, module) if length >= trips}
    if not lengths or not _carries(body, {times * trips for times in lengths}):
        return None
    # A scan that is unrolled takes rows together, and cuts them apart.
    return max(*lengths, sum(step.opcode == "slice" for step in steps))


def _loop(name: str, module: hlo.Module) -> tuple[hlo.Computation, hlo.Instruction] | None:
    from fusionlint.hlo.parse import names

    for computation in module.computations.values():
        for item in computation.instructions.values():
            if item.opcode == "while" and name in names(item.attributes["body"]):
                # A gather or a scatter that XLA makes a loop of has no steps of the user's.
                is_theirs = item.op_name.rpartition("/")[2].startswith("while")
                return (computation, item) if is_theirs else None
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
    """The first sizes of the arrays of which the body takes a row, and which it hands on as they are."""
    items = body.instructions
    kept = {one for number, one in enumerate(_handed_on(body)) if _number(items[one]) == number}
    for item in items.values():
        inside = module.body(item)
        sliced = [item.operands[0]] if item.opcode == "dynamic-slice" else []
        if inside:
            taken = {step.operands[0] for step in inside.instructions.values() if step.opcode == "dynamic-slice"}
            sliced = [item.operands[number] for number, one in enumerate(inside.parameters) if one.name in taken]
        yield from (items[name].shape.dims[0] for name in sliced if name in kept)


def _carries(body: hlo.Computation, lengths: set[int]) -> bool:
    """Whether a step uses what the last one left, that is neither its number nor the outputs so far."""
    items = body.instructions
    changed = {number for number, one in enumerate(_handed_on(body)) if _number(items[one]) != number}
    for item in items.values():
        shape, number = item.shape, _number(item)
        counts = not shape.dims and shape.dtype[:1] in "su"
        if number in changed and item.users and not counts and not lengths.intersection(shape.dims[:1]):
            return True
    return False


def _handed_on(body: hlo.Computation) -> tuple[str, ...]:
    """What the next step gets, by its number in the carry."""
    root = body.instructions[body.root]
    return root.operands if root.opcode == "tuple" else ()


def _number(item: hlo.Instruction) -> int | None:
    """Of what the body was given, its number in the carry."""
    return int(item.attributes["index"]) if item.opcode == "get-tuple-element" else None
