"""A drawn token handed on as a one-hot, for the next step to multiply: `(h, one_hot(token, n))`, then `x @ w`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from fusionlint.finding import Finding
from fusionlint.patterns.code.functions import parameters
from fusionlint.patterns.compiled.one_hots import is_handed_on_for_a_product
from fusionlint.patterns.loops.step_writes import carried, result
from fusionlint.patterns.operations.one_hot import ONE_HOTS, factors, one_hot
from fusionlint.rule import Rule
from fusionlint.source.tree import Source

if TYPE_CHECKING:
    from fusionlint.hlo import parse as hlo
    from fusionlint.hlo.barriers import Barrier

rule = Rule(__name__, harm="fusion")

# What says which class it is to be, of the numbers that a step computes.
_DRAWS = ("jax.numpy.argmax", "jax.random.categorical", "jax.random.choice")
_CELLS = ("LSTMCell", "OptimizedLSTMCell", "GRUCell", "MGUCell", "SimpleCell", "Dense")
_LAYERS = (
    *(f"flax.linen.{name}" for name in _CELLS),
    *(f"haiku.{name}" for name in ("LSTM", "GRU", "VanillaRNN", "Linear")),
)


@rule.source("Call", calls=ONE_HOTS)
def multiplied_in_the_next_step(node: cst.Call, source: Source) -> Iterator[Finding]:
    """The one-hot of what a step has drawn is part of the carry that it returns, and where the step is handed it, it is
    a factor of a product, or all that a layer gets."""
    found = one_hot(node, source)
    if found is None or not source.calls(source.meant(found.index), *_DRAWS):
        return
    function = source.function(node)
    if not isinstance(function, cst.FunctionDef):
        return
    handed = _handed_over(node, function, source)
    if handed is None or not any(_is_multiplied(read, source) for read in _reads(handed, source)):
        return
    yield source.finding(
        node,
        "the next step multiplies zeros with all of its weights, to pick the row of one token",
        write=f"hand on `{source.code(found.index)}`, and take its row, nn.Embed(n, features)(token) or w[token]",
    )


@rule.barrier
def one_hot_handed_on(barrier: Barrier, module: hlo.Module) -> str | None:
    """The one-hot on its way to the next step."""
    if not is_handed_on_for_a_product(barrier, module):
        return None
    return "carry the token, and take its row in the next step, w[token], or nn.Embed for the layer"


def _handed_over(node: cst.Call, function: cst.FunctionDef, source: Source) -> cst.Name | None:
    """The part of the carry, as the step is handed it, that `node` is in the one that the step returns."""
    returned = result(function)
    match returned:
        case cst.Tuple(elements=[cst.Element(value=cst.Tuple(elements=parts)), _]):
            places = [place for place, part in enumerate(parts) if source.meant(part.value) is node]
        case _:
            return None
    own = [parameter.name for parameter in parameters(function) if parameter.name.value not in ("self", "cls")]
    names = carried(own[0], source) if own else ()
    return names[places[0]] if places and len(names) == len(parts) else None


def _reads(name: cst.Name, source: Source) -> Iterator[cst.Name]:
    """Where the value of a name is read, under another name too: `x = last`."""
    for read in source.reads(name):
        yield read
        match source.parent(read):
            case cst.Assign(targets=[cst.AssignTarget(target=cst.Name() as other)]):
                yield from source.reads(other)


def _is_multiplied(read: cst.Name, source: Source) -> bool:
    """Whether a name is the left factor of a product, or what a layer that is made there gets: `nn.Dense(8)(x)`."""
    match above := source.parent(read):
        case cst.BinaryOperation():
            sides = factors(above, source)
            return sides is not None and sides[0] is read
        case cst.Arg(star=""):
            call = source.parent(above)
            if not isinstance(call, cst.Call):
                return False
            sides = factors(call, source)
            return sides[0] is read if sides is not None else source.calls(call.func, *_LAYERS)
    return False
