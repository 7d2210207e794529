"""What a conditional asks of a loop's counter: whether this is its first step, or how many there were."""

from __future__ import annotations

import libcst as cst

from fusionlint.patterns.branches.conditional import Conditional
from fusionlint.patterns.branches.tests import counter_name
from fusionlint.patterns.code.at import names_read
from fusionlint.patterns.code.functions import Function
from fusionlint.patterns.runs.loop_bodies import COUNTERS, is_counted_body
from fusionlint.patterns.values.predicates import depends_on_input
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


def asks_a_counter(test: cst.BaseExpression, source: Source) -> bool:
    """Whether a test goes by the counter of a `fori_loop` alone, `i > 0`: a `vmap` around the loop leaves the counter
    as it is, and so the conditional."""
    asked = [name for name in names_read(test) if depends_on_input(name, source)]
    return bool(asked) and all(_is_counter(name, source) for name in asked)


def _is_counter(name: cst.Name, source: Source) -> bool:
    function = _handed_first(name, source)
    return function is not None and function is source.function(name) and is_counted_body(function, source)


def _counts(counter: cst.Name, source: Source) -> bool:
    """Whether `counter` is the first parameter of a loop's body, or of a function whose first is called like one."""
    function = _handed_first(counter, source)
    if function is None:
        return False
    if is_counted_body(function, source):
        return True
    return counter.value in COUNTERS and isinstance(function, cst.FunctionDef) and len(function.params.params) > 1


def _handed_first(name: cst.Name, source: Source) -> Function | None:
    """The function around whose first parameter `name` is."""
    if source.parameter(name) is None:
        return None
    function = source.function(name)
    while function is not None and counter_name(function) != name.value:
        function = source.function(function)
    return function
