"""Whether a conditional asks of a loop's counter if this is its first step."""

from __future__ import annotations

import libcst as cst

from fusionlint.patterns.branches import Conditional, counter_name
from fusionlint.patterns.loop_bodies import COUNTERS, loop_bodies
from fusionlint.source.project import Place
from fusionlint.source.tree import Source


def asks_for_first_step(found: Conditional, source: Source) -> bool:
    """`cond(i == 0, ...)` where `i` counts the steps of a `fori_loop`, here or in what calls this function."""
    match found.test:
        case cst.Comparison(
            left=cst.Name() as counter, comparisons=[cst.ComparisonTarget(operator=cst.Equal(), comparator=other)]
        ) if isinstance(other, cst.Integer) and other.value == "0":
            return _counts(counter, source)
        case cst.Call(func=function, args=[cst.Arg(value=cst.Name() as counter), cst.Arg(value=cst.Integer("0"))]) if (
            source.qualified_name(function) == "jax.numpy.equal"
        ):
            return _counts(counter, source)
    return False


def _counts(counter: cst.Name, source: Source) -> bool:
    """Whether `counter` is the first parameter of a loop's body, or of a function whose first is called like one."""
    function = source.function(counter)
    written = source.written(counter)
    while function is not None and written is not None and counter_name(function) != counter.value:
        function = source.function(function)
    if function is None or written is None or not isinstance(source.parent(written), cst.Param):
        return False
    if loop_bodies(source.project).get(Place(source.path, source.body_scope(function))) == "jax.lax.fori_loop":
        return True
    return counter.value in COUNTERS and isinstance(function, cst.FunctionDef) and len(function.params.params) > 1
