"""The compiled side: what `.at[...]` writes to places that are known when the program is compiled.

XLA makes a scatter of it, or, where the places lie side by side, an update in place of a piece. Around either stands
what asks whether the places are in the array at all.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from fusionlint.lazily import regex
from fusionlint.patterns.compiled.behind import Made, is_number
from fusionlint.patterns.compiled.links import made_by
from fusionlint.patterns.compiled.of_jax import is_of_jax
from fusionlint.patterns.compiled.readers import kernels_around
from fusionlint.patterns.compiled.scattered import is_diagonal, places_axes, scatters_at

if TYPE_CHECKING:
    from fusionlint.hlo import parse as hlo
    from fusionlint.hlo.barriers import Barrier

_ARITHMETIC = regex(r"(?:^|/)scatter[-_](?:add|mul|max|min)$")
_OPERATIONS = frozenset(("add", "multiply", "maximum", "minimum"))
_KNOWN = frozenset(("constant", "iota"))
_ELEMENTWISE = frozenset(("add", "multiply", "broadcast", "convert", "concatenate"))
# Of fewer places than this part of an array a scatter writes less than a choice, which makes all of it.
_FEW = 8
_MOST = 32


def is_of_a_part(barrier: Barrier, module: hlo.Module) -> bool:
    """Whether the value crosses memory for arithmetic with a number at a part of each row, or at every other place:
    that work is in its kernel, or in one that reads it, at the barrier's own line."""
    if barrier.of_gradient:
        return False
    here = module.computations[barrier.computation]
    for kernel in kernels_around(barrier, module):
        for step in module.work_of(kernel):
            is_here = step.stack == barrier.stack and bool(step.stack) and not is_of_jax(step)
            if is_here and _ARITHMETIC.search(step.op_name) and _is_by_a_number(Made(step, kernel, here), module):
                return True
    return False


def _is_by_a_number(made: Made, module: hlo.Module) -> bool:
    match made.step.opcode:
        case "scatter" if len(made.step.operands) == 3 and not is_diagonal(made, module):
            return _is_known(made.operand(1, module), module) and _is_one(made.operand(2, module), module)
        case "dynamic-update-slice":
            whole, piece = made.step.shape.dims, made.operand(1, module)
            begins = [made.operand(number, module).step.opcode for number in range(2, len(made.step.operands))]
            # Whole rows are changed where they stand.
            is_of_rows = piece.step.shape.dims[1:] == whole[1:]
            return not is_of_rows and {*begins} == {"constant"} and _is_changed_by_one(piece, module)
        case "pad":  # of a number into ones, or zeros, that all of the array is worked on with
            return _is_one(made.operand(0, module), module)
    return False


def _is_changed_by_one(piece: Made, module: hlo.Module) -> bool:
    """Whether a piece is what stood there, and a number; or that where the place is in the array."""
    if piece.step.opcode == "select":
        piece = piece.operand(1, module)
    return piece.step.opcode in _OPERATIONS and any(_is_one(piece.operand(n, module), module) for n in range(2))


def _is_one(made: Made, module: hlo.Module) -> bool:
    """Whether a value is a single number, known or not, as often as it has to be."""
    while made.step.opcode in ("broadcast", "convert"):
        made = made.operand(0, module)
    return not made.step.shape.dims


def _is_known(made: Made, module: hlo.Module) -> bool:
    """Whether numbers are written out, or counted."""
    todo, seen = [made], 0
    while todo and seen < _MOST:
        one, seen = todo.pop(), seen + 1
        if one.step.opcode in _ELEMENTWISE:
            todo += [one.operand(number, module) for number in range(len(one.step.operands))]
        elif one.step.opcode not in _KNOWN:
            return False
    return not todo


def is_set_at_known_places(barrier: Barrier, module: hlo.Module) -> bool:
    """Whether the value goes into one scatter that sets many known places, or comes out of it. Of several in a row they
    would all have to be one; of an argument that is copied for it, donation is the matter."""
    found = [*scatters_at(barrier, module)]
    follow_each_other = any(one.operand(0, module).step.opcode == "scatter" for one in found)
    is_copy = barrier.cause == "copy"
    return not follow_each_other and not is_copy and any(_sets_many(one, module) for one in found)


def _sets_many(scatter: Made, module: hlo.Module) -> bool:
    """Whether a scatter sets elements of an array, which is not new, at places that are a constant, and no few of those
    that there are on their axes."""
    places, array = scatter.operand(1, module).step, scatter.operand(0, module)
    if places.opcode != "constant" or made_by(scatter.step, module) != "set":
        return False
    if is_number(array, module) or array.step.opcode == "pad":
        return False
    every = prod(scatter.step.shape.dims[axis] for axis in places_axes(scatter.step))
    count = places.shape.dims[0]
    return count > 1 and every <= _FEW * count < _FEW * every
