"""Code that runs beside scans: in the same turn as an implicit step along each axis, by Thomas; or once before the
steps of a simulation.

In: a node of a Source. A scan that solves eliminates row after row, each by kernels of its own, and goes back the same
way: beside that a launch more or less is nothing. What other scans do may be as short as what stands beside them.
"""

from __future__ import annotations

import libcst as cst

from fusionlint.lazily import regex
from fusionlint.patterns.code.functions import function_named, own_parts
from fusionlint.patterns.runs.loop_bodies import LOOPS, all_loop_bodies
from fusionlint.patterns.runs.often import runs_often
from fusionlint.patterns.runs.under import LOOPS as UNDER
from fusionlint.patterns.runs.under import VMAPS, under_loop
from fusionlint.source.answers import of_project
from fusionlint.source.facts import last_name
from fusionlint.source.places import Place
from fusionlint.source.project import Project
from fusionlint.source.traced import calls_in_use, reached_from
from fusionlint.source.tree import Source

_SCAN = "jax.lax.scan"
# What a scan may do in a few steps nobody sees; what calls itself so goes through all rows of a system.
_SOLVES = regex(r"thomas|tri_?diag|solve|implicit|sweep|substitut")
# From who is told to solve to the scan that does, there are seldom more calls.
_CALLS = 3


def is_beside_scans(node: cst.CSTNode, source: Source) -> bool:
    """Whether those that are seen to call the function around `node` solve by scans, themselves or by what they call,
    outside of loops of Python: in the same turn as often as it runs, or more often. Beside them others may call it that
    are not seen to run again and again."""
    function = source.function(node)
    if not isinstance(function, cst.FunctionDef) or source.in_loop(node):
        return False
    calls, running = calls_in_use(source.project, source.body_place(function)), solve_by_scans(source.project)
    if any(call.loops for _, call in calls):
        return False
    others = [caller for caller, _ in calls if caller not in running]
    return len(others) < len(calls) and not any(_is_in_a_loop(caller, source.project) for caller in others)


def _is_in_a_loop(caller: Place, project: Project) -> bool:
    return caller in reached_from(project, UNDER) or runs_often(project, caller)


def is_given_by_whole_loops(made: cst.CSTNode | None, source: Source) -> bool:
    """Whether a function that runs loops of jax.lax, mapped over its runs or not, gives what `made` is: beside all of
    their steps what is read of that once is nothing."""
    if not isinstance(made, cst.Call):
        return False
    function: cst.BaseExpression = made.func
    if source.calls(function, *VMAPS) and function.args:
        function = function.args[0].value
    named = function_named(function, source)
    place = source.project.find(source.qualified_name(function)) if named is None else source.body_place(named)
    return place is not None and place in run_loops(source.project)


def is_beside_whole_loops(node: cst.CSTNode, source: Source) -> bool:
    """Whether this is done once for each run of a whole loop of jax.lax, by a traced function that calls what runs one,
    or by all that call it: the loss of a simulation, in the same program. A few steps are nothing beside those."""
    function, below = source.function(node), node
    while isinstance(function, cst.FunctionDef | cst.Lambda) and not source.in_loop(below):
        if isinstance(function, cst.FunctionDef) and _runs_whole_loops(function, source):
            return True
        place = source.body_place(function)
        if place in all_loop_bodies(source.project):
            return False
        below, function = function, source.function(function)
        if function is None:
            return _is_called_beside(place, source)
    return False


def _runs_whole_loops(function: cst.FunctionDef, source: Source) -> bool:
    if source.context(function.body) == "host":
        return False
    return any(is_given_by_whole_loops(call, source) for call in own_parts(function, cst.Call, source))


def _is_called_beside(place: Place, source: Source) -> bool:
    """Whether all that are seen to call a function of this file do so, here, beside whole loops of jax.lax."""
    project = source.project
    callers = {caller for caller, _ in calls_in_use(project, place)}
    if not callers or any(call.loops for _, call in calls_in_use(project, place)):
        return False
    functions = [source.definition(caller.scope) for caller in callers if caller.path == source.path and caller.scope]
    return len(functions) == len(callers) and all(
        isinstance(function, cst.FunctionDef) and _runs_whole_loops(function, source) for function in functions
    )


def is_made_for_scans(node: cst.CSTNode, source: Source) -> bool:
    """Whether the function around `node` is seen to run in no loop, and all that call it run scans, by what they call
    too, and are not called again and again either: once, before so many steps."""
    function = source.function(node)
    if not isinstance(function, cst.FunctionDef) or source.in_loop(node) or under_loop(node, source):
        return False
    place, project = source.body_place(function), source.project
    calls, running = calls_in_use(project, place), run_scans(project)
    return bool(calls) and all(
        caller in running and not call.loops and not any(above.loops for _, above in calls_in_use(project, caller))
        for caller, call in calls
    )


@of_project
def solve_by_scans(project: Project) -> frozenset[Place]:
    """The functions that solve by a scan, in themselves or a function that they define, or call one that does."""
    return _running(project, [place for place in project.callers(_SCAN) if _SOLVES.search(last_name(place.scope))])


@of_project
def run_scans(project: Project) -> frozenset[Place]:
    """The same of any scan."""
    return _running(project, project.callers(_SCAN))


@of_project
def run_loops(project: Project) -> frozenset[Place]:
    """The same of any loop of jax.lax."""
    return _running(project, [place for loop in sorted(LOOPS) for place in project.callers(loop)])


def _running(project: Project, callers: list[Place]) -> frozenset[Place]:
    found = set[Place]()
    for _ in range(_CALLS):
        around = {above for caller in callers for above in _around(caller)} - found
        new = {place for place in around if project.function_at(place) is not None}
        found |= new
        callers = [caller for place in new for caller in project.callers(project.name_of(place))]
    return frozenset(found)


def _around(place: Place) -> list[Place]:
    around = []
    while place.scope:
        around.append(place)
        place = place.outer
    return around
