"""Whether a function always gets to a place in it, and whether jax computes there what is known early.

In: nodes of a Source.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from fusionlint.source.tree import Source

_EARLY = "jax.ensure_compile_time_eval"


def is_gated(call: cst.CSTNode, function: cst.FunctionDef, source: Source, beside: cst.CSTNode | None = None) -> bool:
    """Whether a branch or a handler decides if `call` runs, other than one that `beside` stands in too, or jax computes
    there what is known early. What an `if` asks runs in any case."""
    around = set(source.ancestors(beside)) if beside is not None else set()
    for below, above in source.outward(call):
        match above:
            case cst.If(test=asked) | cst.IfExp(test=asked) if asked is below:
                pass
            case cst.If() if below in around:
                pass
            case cst.If() | cst.IfExp() | cst.BooleanOperation() | cst.Try() | cst.Match():
                return True
            case cst.With(items=items) if any(source.calls(item.item, _EARLY) for item in items):
                return True
        if above is function:
            return False
    return True


def is_known_early(node: cst.CSTNode, source: Source) -> bool:
    """Whether what `node` does is computed when something else is compiled, and never again."""
    return any(source.calls(opened, _EARLY) for opened in held_open(node, source))


def held_open(node: cst.CSTNode, source: Source) -> Iterator[cst.BaseExpression]:
    """What the `with` statements around `node` hold open, `open(path)` of `with open(path) as file:`; inside out."""
    return (item.item for above in source.ancestors(node, cst.With) for item in above.items)
