"""What the code at a node runs inside of, near or far: a `vmap`, a gradient, or a loop of jax.lax.

In: nodes of a Source. A function that nobody is seen to hand to one is in none: unknown is unknown.
"""

from __future__ import annotations

import libcst as cst

from fusionlint.patterns.code.calls import call_of
from fusionlint.patterns.runs.concrete import asks_for_values, is_concrete
from fusionlint.source.environments import in_environment
from fusionlint.source.places import Place
from fusionlint.source.traced import calls_in_use, reached_from
from fusionlint.source.transforms import SOLVERS
from fusionlint.source.tree import Source

VMAPS = frozenset(("jax.vmap", "jax.numpy.vectorize", "equinox.filter_vmap", "flax.nnx.vmap", "flax.linen.vmap",
                   "haiku.vmap"))  # fmt: skip
LOOPS = SOLVERS | frozenset(
    ("jax.lax.scan", "jax.lax.fori_loop", "jax.lax.while_loop", "jax.lax.map", "jax.lax.associative_scan",
     "flax.linen.scan", "flax.nnx.scan", "haiku.scan", "haiku.fori_loop", "haiku.while_loop",
     "equinox.internal.while_loop", "equinox.internal.scan")
)  # fmt: skip
GRADIENTS = frozenset(("jax.grad", "jax.value_and_grad", "jax.vjp", "equinox.filter_grad", "flax.nnx.grad",
                        "equinox.filter_value_and_grad", "flax.nnx.value_and_grad"))  # fmt: skip

# A caller of a caller is seldom further away than this.
_CALLERS = 3


def under_vmap(node: cst.CSTNode, source: Source) -> bool:
    """Whether the code at `node` is seen to be vectorized."""
    return _is_in(node, source, VMAPS)


def is_vectorized(node: cst.CSTNode, source: Source) -> bool:
    """The same, or whether it is part of an environment, of which those who use it run many."""
    return under_vmap(node, source) or in_environment(node, source)


def under_loop(node: cst.CSTNode, source: Source) -> bool:
    """Whether the code at `node` is seen to run in every step of a loop of jax.lax."""
    return _is_in(node, source, LOOPS)


def under_gradient(node: cst.CSTNode, source: Source) -> bool:
    """Whether the code at `node` is seen to be differentiated in reverse."""
    return _is_in(node, source, GRADIENTS)


def under_map(node: cst.CSTNode, source: Source) -> bool:
    """Whether the code at `node` is seen to run for one element after the other, by `jax.lax.map`."""
    return _is_in(node, source, frozenset(("jax.lax.map",)))


def is_mapped_at_the_top(node: cst.CSTNode, source: Source) -> bool:
    """Whether the function around `node` is only seen to be mapped, and called at once, at the file's own level:
    `patches = jax.vmap(get_patch)(centers)`, which runs once, when a script is run."""
    function = source.function(node)
    place = source.body_place(function) if isinstance(function, cst.FunctionDef) else None
    if place is None or place.outer.scope or source.project.calls_of(source.project.name_of(place)):
        return False
    maps = [call for call in source.calls_of(VMAPS) if call.args]
    own = [c for c in maps if source.project.find(source.qualified_name(c.args[0].value)) == place]
    return bool(own) and all(_is_called_at_the_top(call, source) for call in own)


def is_mapped_in_host_code(node: cst.CSTNode, source: Source) -> bool:
    """Whether the function around `node` stands in one of the host, which maps it itself."""
    function = source.function(node)
    outer = source.function(function) if isinstance(function, cst.FunctionDef) else None
    if function is None or not isinstance(outer, cst.FunctionDef) or not asks_for_values(outer, source):
        return False
    mapped = (call.args[0].value for call in source.calls_of(("jax.vmap",)) if call.args)
    here = source.body_place(function)
    return any(source.function(f) is outer and source.project.find(source.qualified_name(f)) == here for f in mapped)


def is_mapped_by_the_host(node: cst.CSTNode, source: Source) -> bool:
    """Whether host code maps the function around and calls that at once, `jax.vmap(lambda x: ...)(xs)`: every operation
    in it is dispatched by itself, and what jax has compiled already, as `interp`, is one."""
    function = source.function(node)
    handed: list[cst.CSTNode] = [] if function is None else [function]
    name = function.name if isinstance(function, cst.FunctionDef) else None
    if isinstance(function, cst.Lambda):
        name = source.assigned_name(function)
    if name is not None:
        handed = [*source.reads_at_all(name)]
    return bool(handed) and all(_is_mapped_at_once(each, source) for each in handed)


def is_for_the_host(node: cst.CSTNode, source: Source) -> bool:
    """Whether the code at `node` is the host's own, or that of a function which host code calls, and of which no trace
    is seen: a user of a library may trace it, who wrote it does not; or that of one which no trace gets through."""
    if source.context(node) == "host" or is_concrete(node, source):
        return True
    around = [above for above in source.ancestors(node) if isinstance(above, cst.FunctionDef | cst.Lambda)]
    # What is defined in a function it may hand out, to whom nobody sees.
    return len(around) == 1 and _is_called_by_the_host(source.body_place(around[0]), source, _CALLERS)


def _is_called_by_the_host(place: Place, source: Source, depth: int) -> bool:
    if source.contexts.get(place, "library") != "library" or not depth:
        return False
    callers = {one for one, _ in calls_in_use(source.project, place) if one.scope and one != place}
    contexts = [source.contexts.get(one, "library") for one in callers]
    if "traced" in contexts:
        return False
    # Of those nobody knows, one that the host calls says as much.
    return "host" in contexts or any(_is_called_by_the_host(one, source, depth - 1) for one in callers)


def _is_mapped_at_once(function: cst.CSTNode, source: Source) -> bool:
    made = source.handed_to(function)
    if not source.calls(made, *VMAPS) or not is_for_the_host(made, source):
        return False
    return call_of(made, source) is not None


def _is_called_at_the_top(made: cst.Call, source: Source) -> bool:
    return call_of(made, source) is not None and not source.scope(made) and not source.in_loop(made)


def _is_in(node: cst.CSTNode, source: Source, transforms: frozenset[str]) -> bool:
    function = source.function(node)
    if function is None:
        return False
    return source.body_place(function) in reached_from(source.project, transforms)
