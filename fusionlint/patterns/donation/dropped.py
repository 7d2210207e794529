"""Calls that take a part of what a step returns, and leave the new state: `_, info = agent.update(batch)`.

In: a compiled step of a Source. Out: whether its file shows such a call. Who goes on with the old state then reads what
a donation deletes.
"""

from __future__ import annotations

import libcst as cst

from fusionlint.patterns.code.at import constant, elements
from fusionlint.source.tree import Source
from fusionlint.source.walk import dotted


def is_state_dropped(name: str, source: Source) -> bool:
    """Whether the file shows a call of what is called `name`, first of whose results is the state, that keeps others of
    them alone, or none where another call of it keeps the state: a dictionary's `update` keeps nothing."""
    calls = [call for call in source.nodes(cst.Call) if _is_of(call, name)]
    calls = [call for call in calls if not source.is_idle(call)]
    goes_on = {dotted(call.func) for call in calls if _is_state_kept(call, source)}
    return any(
        _takes_others_alone(call, source)
        or (isinstance(source.parent(call), cst.Expr) and dotted(call.func) in goes_on)
        for call in calls
    )


def _is_of(call: cst.Call, name: str) -> bool:
    return dotted(call.func).rpartition(".")[2] == name


def _takes_others_alone(call: cst.Call, source: Source) -> bool:
    """`_, info = step(state)`, `step(state)[1]`."""
    match source.parent(call):
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Tuple(elements=[first, *_]))]):
            return isinstance(first.value, cst.Name) and first.value.value.strip("_") == ""
        case cst.Subscript(value=value, slice=slices) if value is call:
            return constant(elements(slices)[0]) not in (None, 0)
    return False


def _is_state_kept(call: cst.Call, source: Source) -> bool:
    """`agent = agent.update(batch)`, `agent, info = agent.update(batch)`."""
    owner = dotted(call.func).rpartition(".")[0]
    match source.parent(call):
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Tuple(elements=[first, *_]))]):
            return bool(owner) and dotted(first.value) == owner
        case cst.Assign(targets=[cst.AssignTarget(target=target)]):
            return bool(owner) and dotted(target) == owner
    return False
