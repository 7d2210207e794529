"""Functions whose compiled form runs inside of a program for several devices, that of a `jax.pmap`.

In: a def of a Source and what compiles it. What is donated to a program inside of another one is not donated at all.
"""

from __future__ import annotations

import libcst as cst

from fusionlint.patterns.code.at import inside
from fusionlint.source.traced import reached_from
from fusionlint.source.tree import Source

_PMAPS = frozenset(("jax.pmap",))
# What speaks to the others along an axis, and what gives an axis its name.
_COLLECTIVES = frozenset(f"jax.lax.{name}" for name in ("all_gather", "axis_index", "pmax", "pmean", "pmin", "psum"))
_BINDERS = frozenset(("jax.vmap", "jax.pmap", "jax.shard_map", "jax.experimental.shard_map.shard_map"))


def is_mapped_over_devices(node: cst.Call | cst.Name, step: cst.FunctionDef, source: Source) -> bool:
    """Whether what `node`, a jit or the name below one, makes of `step` is handed to a pmap, here or elsewhere."""
    place = source.body_place(step)
    function = source.project.function_at(place)
    above = set(source.project.decorators(source.path, function)) if function is not None else set()
    if source.calls(node, *_PMAPS) or not above.isdisjoint(_PMAPS):
        return False
    return place in reached_from(source.project, _PMAPS) or _takes_an_axis(step, source)


def _takes_an_axis(step: cst.FunctionDef, source: Source) -> bool:
    """Whether a function speaks to others along an axis, `jax.lax.pmean(grads, "i")`, that has no name in its file: who
    calls it gives it one."""
    if not _BINDERS.isdisjoint(source.names) or _COLLECTIVES.isdisjoint(source.names):
        return False
    return any(source.calls(node, *_COLLECTIVES) for node in inside(step.body))
