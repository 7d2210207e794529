"""What a call is handed that the function around it was handed itself, and by whom.

In: a call and one of its arguments. Out: what the callers in the same file hand over for it.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from fusionlint.patterns.runs.all_calls import calls_of_function
from fusionlint.source.tree import Source


def given_by_callers(argument: cst.BaseExpression, call: cst.Call, source: Source) -> Iterator[cst.BaseExpression]:
    """What those who call the function around `call` in this file hand it as `argument`, where that is a parameter."""
    return (arg.value for _, arg in handed_by_callers(argument, call, source) if not arg.star)


def handed_by_callers(
    argument: cst.BaseExpression, call: cst.Call, source: Source
) -> Iterator[tuple[cst.Call, cst.Arg]]:
    """The calls of the function around `call`, each with the value of what is `argument` in it."""
    function, numbers = _parameters(argument, call, source)
    calls = (calls_of_function(function, source) or ()) if function is not None else ()
    return ((outer, outer.args[number]) for outer in calls for number in numbers if number < len(outer.args))


def is_of_a_caller(argument: cst.BaseExpression, call: cst.Call, source: Source) -> bool:
    """Whether the function around `call` was handed `argument`, by whom is not seen: they may go on with it."""
    function, _ = _parameters(argument, call, source)
    return function is not None and not calls_of_function(function, source)


def _parameters(
    argument: cst.BaseExpression, call: cst.Call, source: Source
) -> tuple[cst.FunctionDef | None, list[int]]:
    """The function around `call`, and which of its parameters `argument` is; no function where it is none."""
    function = source.function(call)
    if not isinstance(argument, cst.Name) or not isinstance(function, cst.FunctionDef):
        return None, []
    written = [use.node for use in source.writes(argument)]
    numbers = [number for number, parameter in enumerate(function.params.params) if parameter.name in written]
    return (function, numbers) if numbers else (None, [])
