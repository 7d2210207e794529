"""Values that host code holds, by where they come from: what a compiled function returned, here or in a caller.

In: a name of a Source. A call of something compiled may stand in a trace too, where it is inlined: of what is seen to
be traced nothing is said.
"""

from __future__ import annotations

import libcst as cst

from fusionlint.patterns.code.at import names_read
from fusionlint.patterns.code.unpacked import stored_in
from fusionlint.source.facts import Value
from fusionlint.source.tree import Source
from fusionlint.source.walk import dotted


def is_on_the_host(name: cst.Name, source: Source) -> bool:
    """Whether the code at `name` is host code: shown to be, or by what `name` holds."""
    context = source.context(name)
    return context == "host" or (context != "traced" and _is_compiled(name, source))


def _is_compiled(name: cst.Name, source: Source) -> bool:
    """Whether a compiled function returned what `name` holds, alone or among others; or what all calls that this file
    shows of the function around hand to it."""
    if _is_returned(name, source):
        return True
    parameter, function = source.parameter(name), source.function(name)
    if parameter is None or not isinstance(function, cst.FunctionDef):
        return False
    place = source.body_place(function)
    position = next((i for i, one in enumerate(function.params.params) if one is parameter), None)
    calls = [*source.calls_of((source.project.name_of(place),))]
    if position is None or place.outer.scope or not calls:
        return False
    handed = [call.args[position].value for call in calls if position < len(call.args)]
    held = [value for value in handed if isinstance(value, cst.Name) and source.context(value) != "traced"]
    return len(held) == len(calls) and all(_is_returned(value, source) for value in held)


def _is_returned(name: cst.Name, source: Source) -> bool:
    value = stored_in(name, source)
    if not isinstance(value, cst.Call) or not any(names_read(value.func)):
        return False
    return source.project.is_jitted(source.place(value), Value(dotted(value.func)))
