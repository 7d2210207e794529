"""The update of an optimizer: a def that takes gradients first, which a factory returns beside the one that makes its
state, `(init, update)` or `GradientTransformation(init_fn, update_fn)`. A training step runs it under a trace, and not
for many at once, as the adaptation of a sampler is run for its chains.

In: nodes of a Source.
"""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from fusionlint.lazily import regex
from fusionlint.source.tree import Source

_INIT, _UPDATE = regex(r"_?init(_|$)"), regex(r"_?update(_|$)")
_GRADIENTS = regex(r"^_?(\w+_)?(g|gs|grads?|gradients?|updates?)$")
# Of jax.example_libraries' triple, `(init, update, get_params)`.
_PARAMS = regex(r"_?get_params(_|$)")
# Some are told the number of the step before them, those of a triple a key too.
_FIRST, _FIRST_OF_TRIPLE = 2, 3


def in_an_update(node: cst.CSTNode, source: Source) -> bool:
    """Whether the code at `node` is part of an optimizer's update."""
    function = source.function(node)
    scope = source.body_scope(function) if function is not None else ""
    while scope:
        outer, _, name = scope.rpartition(".")
        beside = _returned_beside(outer, name, source) if _UPDATE.match(name) else ()
        first = _FIRST_OF_TRIPLE if any(map(_PARAMS.match, beside)) else _FIRST
        if any(map(_INIT.match, beside)) and _takes_gradients(scope, first, source):
            return True
        scope = outer
    return False


def _takes_gradients(scope: str, first: int, source: Source) -> bool:
    """Whether gradients are among what the def is handed `first`, before a state."""
    update = source.facts.functions.get(scope)
    return update is not None and any(map(_GRADIENTS.match, update.parameters[:first]))


def _returned_beside(scope: str, update: str, source: Source) -> Sequence[str]:
    """What a function returns together with its def `update`: one that makes a first state, with luck."""
    factory = source.facts.functions.get(scope)
    for value in factory.returns if factory is not None else ():
        names = [part.name for part in (*value.arguments, *(part for _, part in value.keywords))]
        if update in names and any(map(_INIT.match, names)):
            return names
    return ()
