"""Trees of one number a leaf, `jax.tree.map(lambda leaf: jnp.linalg.norm(leaf), params)`: nothing to donate.

In: an argument of a call in a Source. Out: whether it is such a tree, or made of nothing else.
"""

from __future__ import annotations

import libcst as cst

from fusionlint.patterns.donation.first_values import first_values
from fusionlint.patterns.runs.from_callers import given_by_callers
from fusionlint.source.names import TREE_MAPS
from fusionlint.source.tree import Source

# What is made of the norms, and the norms themselves, are seldom more names away.
_DEPTH = 6
_TO_ONE = tuple(f"jax.numpy.{name}" for name in ("linalg.norm", "sum", "mean", "max", "min", "std", "var"))


def is_of_norms(argument: cst.BaseExpression, call: cst.Call, source: Source, depth: int = _DEPTH) -> bool:
    """Whether `argument` of `call` is a tree of norms, or what is made of one alone: `optimizer.init(norms)`,
    `replicate(norms)`, `traversal.update(lambda x: x, norms)`; in the function around or in one that calls it."""
    match argument:
        case cst.Name() if depth:
            values = (*first_values(argument, call, source), *given_by_callers(argument, call, source))
            return any(is_of_norms(value, call, source, depth - 1) for value in values if value is not argument)
        case cst.Call(args=[cst.Arg(value=cst.Lambda(body=one)), _]) if source.calls(argument, *TREE_MAPS):
            return _is_of_all(one, source)
        case cst.Call(args=args):
            handed = [arg.value for arg in args if not isinstance(arg.value, cst.Lambda)]
            return bool(handed) and all(_is_named(each, call, source, depth) for each in handed)
    return False


def _is_named(handed: cst.BaseExpression, call: cst.Call, source: Source, depth: int) -> bool:
    return isinstance(handed, cst.Name) and is_of_norms(handed, call, source, depth)


def _is_of_all(one: cst.BaseExpression, source: Source) -> bool:
    """Whether this takes all of an array to one number."""
    return source.calls(one, *_TO_ONE) and len(one.args) == 1
