"""Compiled steps that have other shapes in each turn of a Python loop: a program for each, of which no scan is made.

In: a call in a loop of a Source. What grows is seen in this file's functions; sizes are told by what they are handed.
"""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from fusionlint.patterns.code.at import inside
from fusionlint.patterns.code.functions import function_named
from fusionlint.patterns.dispatch.jit import value
from fusionlint.patterns.loops.carry import Loop
from fusionlint.source.transforms import TRANSFORMS
from fusionlint.source.tree import Source

_JOINS = ("jax.numpy.concatenate", "jax.numpy.vstack", "jax.numpy.hstack")


def has_other_shapes(step: cst.Call, loop: Loop, source: Source) -> bool:
    """Whether each turn of `loop` is another program, by the shapes of what it makes."""
    return _grows(step, source) or _is_sized_by_its_turn(step, loop, source)


def _is_sized_by_its_turn(step: cst.Call, loop: Loop, source: Source) -> bool:
    """Whether a function with static arguments is handed how many turns there are, and which of them this is: `d =
    recur(d, n, i)` for `i in range(n)`. Both are sizes to it."""
    match loop:
        case cst.For(target=cst.Name(turn), iter=cst.Call(args=[cst.Arg(value=cst.Name(turns))]) as counted) if (
            source.calls(counted, "range")
        ):
            handed = {arg.value.value for arg in step.args if isinstance(arg.value, cst.Name)}
            return {turn, turns} <= handed and _has_static_arguments(step, source)
    return False


def _has_static_arguments(step: cst.Call, source: Source) -> bool:
    behind = source.project.functions_behind(source.place(step), value(step.func), TRANSFORMS)
    functions = (function for place in behind if (function := source.project.function_at(place)) is not None)
    decorators = (decorator for function in functions for decorator in function.decorators)
    return any(keyword.startswith("static_arg") for decorator in decorators for keyword, _ in decorator.keywords)


def _grows(step: cst.Call, source: Source) -> bool:
    """Whether the step joins something to what it is handed, `seen = jnp.concatenate([seen, new])`, or makes rows of it
    that are a part as many, `x.reshape(n // 4, 4)`: no scan carries what has another shape each time."""
    made = source.meant(step.func)
    compiled = made.args[0].value if isinstance(made, cst.Call) and made.args else step.func
    function = function_named(compiled, source)
    if not isinstance(function, cst.FunctionDef):
        return False
    own = {parameter.name.value for parameter in function.params.params}
    for node in inside(function.body):
        match node:
            case cst.Call(func=cst.Attribute(attr=cst.Name("reshape")), args=sizes) if _are_parted(sizes, source):
                return True
            case cst.Assign(
                targets=[cst.AssignTarget(target=cst.Name(name))],
                value=cst.Call(args=[cst.Arg(value=cst.List(elements=parts) | cst.Tuple(elements=parts)), *_]) as join,
            ) if name in own and source.calls(join, *_JOINS):
                if any(isinstance(part.value, cst.Name) and part.value.value == name for part in parts):
                    return True
    return False


def _are_parted(sizes: Sequence[cst.Arg], source: Source) -> bool:
    """Whether a size is a part of a length, `x.shape[0] // 4`, of what is handed in."""
    parts = (part for size in sizes for part in inside(size.value))
    meant = (source.meant(part) if isinstance(part, cst.Name) else part for part in parts)
    return any(
        isinstance(one, cst.BinaryOperation)
        and isinstance(one.operator, cst.FloorDivide)
        and isinstance(one.right, cst.Integer)
        for one in meant
    )
