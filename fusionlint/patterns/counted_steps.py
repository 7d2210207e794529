"""Loops of jax.lax that repeat a step as often as is written out: how often, and whether all of it may be one kernel.

In: a call of `fori_loop` or `scan` in a Source.
"""

from __future__ import annotations

import libcst as cst

from fusionlint.patterns.at import is_none
from fusionlint.patterns.calls import argument
from fusionlint.patterns.how_many import whole_number
from fusionlint.patterns.step import Allowed, Body, short_work
from fusionlint.patterns.step_writes import result
from fusionlint.source.tree import Source

# A bisection makes about so many steps at most. Of more operations than this, of all the steps together, a compiler
# takes long to make one kernel; eight steps are then as good.
_MOST_STEPS, _MOST_OPERATIONS = 128, 320


def times_counted(loop: cst.Call, source: Source) -> int | None:
    """How many steps a `fori_loop` makes, where both its ends are numbers that Python knows."""
    first = whole_number(argument(loop, 0, "lower"), source)
    last = whole_number(argument(loop, 1, "upper"), source)
    return None if first is None or last is None else last - first


def times_repeated(scan: cst.Call, source: Source) -> int | None:
    """How many steps a scan over nothing makes, and stores nothing of; by the default of what it is handed too, for a
    length is known to a trace in any case."""
    rows, length = argument(scan, 2, "xs"), argument(scan, 3, "length")
    if rows is not None and not is_nothing(rows):
        return None
    parameter = source.parameter(length) if isinstance(length, cst.Name) else None
    return whole_number(length if parameter is None else parameter.default, source)


def stores_nothing(body: Body) -> bool:
    """Whether a step hands its carry on and no more: `return carry, None`, or the nothing that it is given."""
    match result(body):
        case cst.Tuple(elements=[_, cst.Element(value=cst.Name(value=name))]):
            return name == "None" or name == body.params.params[-1].name.value
        case cst.Tuple(elements=[_, cst.Element(value=value)]):
            return is_nothing(value)
    return False


def is_nothing(node: cst.BaseExpression) -> bool:
    """`None` or `()`."""
    return is_none(node) or (isinstance(node, cst.Tuple) and not node.elements)


def together(times: int | None, body: Body, source: Source) -> str | None:
    """How many of so many steps are best compiled together, as the `unroll` of the loop: all, or eight of them; None
    where there are too many, or more to a step than arithmetic. What that may be has to be asked elsewhere."""
    if times is None or not 1 < times <= _MOST_STEPS:
        return None
    work = short_work(body, source, Allowed(True, True, rolls=True))
    if work is None:
        return None
    return "True" if len(work) * times <= _MOST_OPERATIONS else "8"
