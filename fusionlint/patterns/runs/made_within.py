"""Functions inside others that make something once: `def build(mesh)`, which maps a function of its own over elements.

In: nodes of a Source. Out: whether the code runs while something is made, and is not handed out with it.
"""

from __future__ import annotations

import libcst as cst

from fusionlint.patterns.code.at import inside
from fusionlint.patterns.runs.made_once import is_made_once
from fusionlint.source.transforms import TRANSFORMS
from fusionlint.source.tree import Source


def is_made_within(node: cst.CSTNode, source: Source) -> bool:
    """Whether `node` is code of a function inside one that makes something once, outside of a trace, and calls, maps or
    loops over its own functions, but hands none of them on."""
    around = [*source.ancestors(node, cst.FunctionDef)]
    if len(around) < 2:
        return False
    maker = around[-1]
    place = source.body_place(maker)
    return is_made_once(source.project, source.contexts, place) and not _hands_on(maker, source)


def _hands_on(maker: cst.FunctionDef, source: Source) -> bool:
    own = [node.name for node in inside(maker.body, cst.FunctionDef)]
    return any(
        not use.is_write and not is_called_or_mapped(use.node, source) for name in own for use in source.uses(name)
    )


def is_called_or_mapped(read: cst.CSTNode, source: Source) -> bool:
    """`f(x)`, `jax.vmap(f)(x)`, `jax.lax.scan(f, ...)`."""
    above = source.parent(read)
    if isinstance(above, cst.Call):
        return above.func is read
    call = source.handed_to(read)
    if call is None:
        return False
    name = source.qualified_name(call.func) or ""
    return name.startswith(("jax.lax.", "jax.tree")) or (name in TRANSFORMS and is_called_or_mapped(call, source))
