"""What code that is written at a place may call a module: `jnp`, `jr`, `jax.random`.

In: a module's own name, and the node that is written anew. Out: the name as the code around has it; where the file
imports neither the module nor one around it, the module's own, with which no fix is made.
"""

from __future__ import annotations

import libcst as cst

from fusionlint.patterns.code.at import inside
from fusionlint.source.tree import Source


def named(module: str, node: cst.CSTNode, source: Source) -> str:
    """`jrandom` for "jax.random", where `node` writes `jrandom.choice(...)` or the file imports that; `jax.random`
    where it imports jax."""
    for part in inside(node, cst.Attribute):
        if source.qualified_name(part.value) == module:
            return source.code(part.value)
    above, _, last = module.rpartition(".")
    alias = source.alias_at(node, module)
    return alias or f"{(source.alias_at(node, above) if above else None) or above}.{last}"


def is_of_either(function: cst.BaseExpression, source: Source) -> bool:
    """Whether the code decides which module a function is of, `np = jnp if on_device else onp`: the same lines run with
    a library that has less."""
    while isinstance(function, cst.Attribute):
        function = function.value
    return isinstance(function, cst.Name) and isinstance(source.value(function), cst.IfExp)
