"""Functions that are seen to run a few times: once, or for each of some cases that are written out.

In: a def of a Source. Out: whether all its calls are of that kind; unknown is no.
"""

from __future__ import annotations

import libcst as cst

from fusionlint.patterns.runs.often import is_called_as_step, is_run_often
from fusionlint.source.facts import last_name
from fusionlint.source.traced import is_idle
from fusionlint.source.tree import Source

_FEW = 4
_GOING_THROUGH = ("enumerate", "zip", "reversed", "sorted")


def runs_a_few_times(function: cst.FunctionDef, source: Source) -> bool:
    """Whether all that call `function` are of its file, and call it once or for a few cases, `for name in ("a", "b")`:
    what it compiles each time is as few programs."""
    place = source.body_place(function)
    name = source.project.name_of(place)
    callers = [caller for caller in source.project.callers(name) if not is_idle(source.project, caller)]
    if is_called_as_step(last_name(place.scope)) or any(caller.path != source.path for caller in callers):
        return False
    calls = [call for call in source.calls_of((name,)) if not source.is_idle(call)]
    return bool(calls) and all(_is_made_a_few_times(call, source) for call in calls)


def _is_made_a_few_times(call: cst.CSTNode, source: Source) -> bool:
    if is_run_often(call, source):
        return False
    match loop := source.loop(call):
        case None:
            return True
        case cst.For(iter=cases) | cst.ListComp(for_in=cst.CompFor(iter=cases, inner_for_in=None)):
            return source.loop(loop) is None and _are_few(cases, source)
    return False


def _are_few(cases: cst.BaseExpression, source: Source) -> bool:
    """Whether this is a list or tuple that is written out, here, by a name, or in the file that the name is from; or
    is one unless somebody brings another, `cases if cases is not None else CASES`."""
    match cases:
        case cst.List(elements=elements) | cst.Tuple(elements=elements):
            return len(elements) <= _FEW and all(isinstance(each, cst.Element) for each in elements)
        case cst.IfExp(body=one, orelse=other):
            return _are_few(one, source) or _are_few(other, source)
        case cst.Call(args=args) if source.calls(cases, *_GOING_THROUGH):
            return any(_are_few(arg.value, source) for arg in args)
        case cst.Name():
            if any(isinstance(source.parent(use.node), cst.Attribute | cst.AugAssign) for use in source.uses(cases)):
                return False  # it may grow: `cases.append(case)`
            meant = source.value(cases)
            if meant is not None and not isinstance(meant, cst.Name):
                return _are_few(meant, source)
            bound = source.project.value_of(source.place(cases), cases.value)
            return bound is not None and not bound.value.is_call and 0 < len(bound.value.arguments) <= _FEW
    return False
