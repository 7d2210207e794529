"""What is done once in front of a loop of jax that goes on with it: many steps beside one.

In: code of a Source. Out: whether what it makes is handed to such a loop by the same function, or to one that runs the
loop; unknown is no.
"""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from fusionlint.patterns.runs.under import LOOPS, under_loop
from fusionlint.source.places import Place
from fusionlint.source.tree import Source

# From what is made to the loop that starts with it there are seldom more names.
_STEPS = 3


def starts_a_loop(node: cst.CSTNode, source: Source) -> bool:
    """Whether what is made here is handed to a loop of jax that the same function runs, alone or with others: once,
    before many steps. Who is called in each step of another loop makes it in each of them."""
    function = source.function(node)
    if function is None or source.in_loop(node) or under_loop(node, source):
        return False
    loops = [call for call in source.calls_of(_loops(source)) if source.function(call) is function]
    return bool(loops) and _is_handed_to(node, loops, source, _STEPS)


def _loops(source: Source) -> list[str]:
    """What runs a loop of jax: those themselves, and functions of this file that call one."""
    running = {place.scope for name in LOOPS for place, _ in source.called(name)}
    project, functions = source.project, source.facts.functions
    return [*LOOPS, *(project.name_of(Place(source.path, scope)) for scope in running if scope in functions)]


def _is_handed_to(node: cst.CSTNode, loops: Sequence[cst.Call], source: Source, depth: int) -> bool:
    """Whether `node`, or what is made of it under another name, is an argument of one of the loops."""
    for read in source.readers(node):
        around = list(source.ancestors(read))
        if any(loop in around for loop in loops):
            return True
        made = next((above for above in around if source.assigned_name(above) is not None), None)
        if depth and made is not None and made is not node and _is_handed_to(made, loops, source, depth - 1):
            return True
    return False
