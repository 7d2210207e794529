"""Code that runs beside scans: in the same turn as an implicit step along each axis, by Thomas; or once before the
steps of a simulation.

In: a node of a Source. A scan that solves eliminates row after row, each by kernels of its own, and goes back the same
way: beside that a launch more or less is nothing. What other scans do may be as short as what stands beside them.
"""

from __future__ import annotations

import libcst as cst

from fusionlint.lazily import regex
from fusionlint.patterns.runs.under import under_loop
from fusionlint.source.answers import of_project
from fusionlint.source.facts import last_name
from fusionlint.source.places import Place
from fusionlint.source.project import Project
from fusionlint.source.traced import calls_in_use
from fusionlint.source.tree import Source

_SCAN = "jax.lax.scan"
# What a scan may do in a few steps nobody sees; what calls itself so goes through all rows of a system.
_SOLVES = regex(r"thomas|tri_?diag|solve|implicit|sweep|substitut")
# From who is told to solve to the scan that does, there are seldom more calls.
_CALLS = 3


def is_beside_scans(node: cst.CSTNode, source: Source) -> bool:
    """Whether all that are seen to call the function around `node` solve by scans, themselves or by what they call,
    outside of loops of Python: in the same turn as often as it runs, or more often."""
    function = source.function(node)
    if not isinstance(function, cst.FunctionDef) or source.in_loop(node):
        return False
    calls, running = calls_in_use(source.project, source.body_place(function)), solve_by_scans(source.project)
    return bool(calls) and all(caller in running and not call.loops for caller, call in calls)


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
