"""Values that take so long to make that a write of each is nothing: what a network, a decomposition or a kernel gives.

In: a Python loop, or writes of a Source. Out: whether such work is seen to be done in every turn, or for a write.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import libcst as cst

from fusionlint.lazily import regex
from fusionlint.patterns.at import Write, at_write, inside
from fusionlint.patterns.carry import calls
from fusionlint.source.tree import Source
from fusionlint.source.walk import dotted

# Library calls of many kernels each, one after the other for a batch too.
_DECOMPOSES = regex(
    r"^jax\.(numpy|scipy|lax)\.linalg\.(svd|svdvals|eig|eigh|eigvals|eigvalsh|schur|lu|lu_factor|lu_solve|cho_solve)$"
)
_NETWORK = regex(r"(^|[._])(\w*network|model|net|decoder|encoder|transformer)(_fn|_apply)?$|attention\w*$")
_PARAMETERS = regex(r"(^|[._])(params?|parameters|variables)$")
# A value seldom has more names on its way.
_NAMES = 4


def is_made_by_heavy_work(loop: cst.For, source: Source) -> bool:
    """Whether each turn of `loop` itself does such work."""
    return any(_is_heavy(call, source) for call in calls(loop.body))


def are_made_by_heavy_work(writes: Sequence[Write], source: Source) -> bool:
    """Whether what is written is made by such work, under names of its own too."""
    values = [write.value for write in writes if write.value is not None]
    return any(_is_heavy(call, source) for value in values for call in _calls_for(value, source, _NAMES))


def is_beside_a_network(node: cst.CSTNode, source: Source) -> bool:
    """Whether the function around `node` calls a network, or hands one that it was handed on, `sde.denoise(model, x)`:
    beside that a kernel or two are nothing."""
    function = source.function(node)
    return function is not None and any(
        _is_heavy(call, source) or any(_is_network(arg.value, source) for arg in call.args)
        for call in calls(function.body)
    )


def _is_network(given: cst.BaseExpression, source: Source) -> bool:
    return isinstance(given, cst.Name) and bool(_NETWORK.search(given.value)) and source.parameter(given) is not None


def _calls_for(value: cst.BaseExpression, source: Source, depth: int) -> Iterator[cst.Call]:
    yield from calls(value)
    for name in inside(value) if depth else ():
        meant = source.value(name) if isinstance(name, cst.Name) else None
        if meant is not None and at_write(meant) is None:
            yield from _calls_for(meant, source, depth - 1)


def _is_heavy(call: cst.Call, source: Source) -> bool:
    """`jnp.linalg.svd(x)`, `model(x)`, `module.apply(params, x)`, `attention(q, k, v)`; not `x.at[i].apply(f)`."""
    if _DECOMPOSES.match(source.qualified_name(call.func) or ""):
        return True
    match call:
        case cst.Call(func=cst.Attribute(attr=cst.Name("apply")), args=[cst.Arg(value=first, keyword=None), _, *_]):
            return _PARAMETERS.search(dotted(first)) is not None
    return _NETWORK.search(dotted(call.func)) is not None
