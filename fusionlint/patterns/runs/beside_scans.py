"""Code that runs beside systems of equations which scans solve: an implicit step along each axis, by Thomas.

In: a node of a Source. Such a scan eliminates row after row, each by kernels of its own, and goes back the same way:
beside that a launch more or less in the same turn is nothing.
"""

from __future__ import annotations

import libcst as cst

from fusionlint.lazily import regex
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


@of_project
def solve_by_scans(project: Project) -> frozenset[Place]:
    """The functions that solve by a scan, in themselves or a function that they define, or call one that does."""
    found = set[Place]()
    callers = [place for place in project.callers(_SCAN) if _SOLVES.search(last_name(place.scope))]
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
