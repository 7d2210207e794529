"""Functions whose compiled form runs inside of a program for several devices, that of a `jax.pmap`.

In: a def of a Source and what compiles it. What is donated to a program inside of another one is not donated at all.
"""

from __future__ import annotations

import libcst as cst

from fusionlint.source.traced import reached_from
from fusionlint.source.tree import Source

_PMAPS = frozenset(("jax.pmap",))


def is_mapped_over_devices(node: cst.Call | cst.Name, step: cst.FunctionDef, source: Source) -> bool:
    """Whether what `node`, a jit or the name below one, makes of `step` is handed to a pmap, here or elsewhere."""
    place = source.body_place(step)
    function = source.project.function_at(place)
    above = set(source.project.decorators(source.path, function)) if function is not None else set()
    if source.calls(node, *_PMAPS) or not above.isdisjoint(_PMAPS):
        return False
    return place in reached_from(source.project, _PMAPS)
