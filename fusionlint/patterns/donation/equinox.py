"""How a step that `equinox.filter_jit` compiles is told what it may write over: all arrays that it is handed, or all
but those of its first argument.

In: a compiled function and its calls. Out: what to write.
"""

from __future__ import annotations

from collections.abc import Collection

import libcst as cst

from fusionlint.patterns.code.calls import brief
from fusionlint.source.tree import Source

FILTER_JIT = "equinox.filter_jit"
_LONG = 60


def is_equinox(node: cst.Call | cst.Name, source: Source) -> bool:
    """Whether `node`, a call of a jit or the name of a def below one, is compiled by equinox."""
    above = source.parent(node)
    if isinstance(node, cst.Call) or not isinstance(above, cst.FunctionDef):
        return source.calls(node, FILTER_JIT)
    decorators = (each.decorator for each in above.decorators)
    return any(source.calls(one, FILTER_JIT) or source.qualified_name(one) == FILTER_JIT for one in decorators)


def all_but_the_first(call: cst.Call, names: Collection[int | str], source: Source) -> str:
    """`donate="all-except-first"`, where `names` are the arguments of `call` that its results replace."""
    others = [source.code(arg.value) for _, arg in _others(call, names)]
    if not others:
        return 'donate="all" for equinox.filter_jit'
    rest = brief(f"({', '.join(others)})" if len(others) > 1 else others[0], _LONG, "all others, in a tuple")
    return f'donate="all-except-first" for equinox.filter_jit, and as the first argument what is not replaced, {rest}'


def told_alone(call: cst.Call, names: Collection[int | str]) -> str | None:
    """The keyword that says it where the arguments are in that order as they are; None where they are not."""
    match [place for place, _ in _others(call, names)]:
        case []:
            return 'donate="all"'
        case [0]:
            return 'donate="all-except-first"'
    return None


def _others(call: cst.Call, names: Collection[int | str]) -> list[tuple[int | str, cst.Arg]]:
    """The arguments of `call` that are none of `names`, with their places or keywords."""
    keys = ((arg.keyword.value if arg.keyword is not None else i, arg) for i, arg in enumerate(call.args))
    return [(key, arg) for key, arg in keys if key not in names]
