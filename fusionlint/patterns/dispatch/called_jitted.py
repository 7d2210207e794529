"""What a project calls its own way to compile a function, `@jit_with_docstring(...)`, which may stand in a package that
is not here: what is in it is traced, whatever else is seen."""

from __future__ import annotations

import libcst as cst

from fusionlint.lazily import regex
from fusionlint.source.tree import Source

_COMPILES = regex(r"(^|[._])jit(ted)?(_|$)|jit$")


def is_called_jitted(node: cst.CSTNode, source: Source) -> bool:
    """Whether a function around is decorated by what is called a jit. A jit in a trace is inlined, and a Python loop
    in one is written out: nothing is dispatched from there."""
    scopes = source.place(node).scope.split(".")
    around = (source.facts.functions.get(".".join(scopes[:n])) for n in range(1, len(scopes) + 1))
    decorators = (decorator for facts in around if facts is not None for decorator in facts.decorators)
    return any(_COMPILES.search((d.callee or d).name) for d in decorators)
