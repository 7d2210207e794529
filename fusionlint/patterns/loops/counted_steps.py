"""Loops of jax.lax that repeat a step as often as is written out: how often, and whether all of it may be one kernel.

In: a call of `fori_loop` or `scan` in a Source.
"""

from __future__ import annotations

import libcst as cst

from fusionlint.patterns.code.at import is_no_array, names_read
from fusionlint.patterns.code.calls import argument
from fusionlint.patterns.code.functions import Function
from fusionlint.patterns.loops.step import Allowed, short_work
from fusionlint.patterns.loops.step_mixing import made_of
from fusionlint.patterns.loops.step_writes import result
from fusionlint.patterns.loops.turns import writes_kernels
from fusionlint.patterns.values.how_many import whole_number
from fusionlint.patterns.values.known_values import is_static_name
from fusionlint.source.names import JIT
from fusionlint.source.tree import Source

# A bisection makes about so many steps at most. Of more operations than this, of all the steps together, a compiler
# takes long to make one kernel; eight steps are then as good.
_MOST_STEPS, MOST_TOGETHER = 128, 320


def times_counted(loop: cst.Call, source: Source) -> int | None:
    """How many steps a `fori_loop` makes, where both its ends are numbers that Python knows."""
    first, last = (_number(argument(loop, place, name), source) for place, name in enumerate(("lower", "upper")))
    return None if first is None or last is None else last - first


def times_repeated(scan: cst.Call, source: Source) -> int | None:
    """How many steps a scan over nothing makes."""
    rows, length = argument(scan, 2, "xs"), argument(scan, 3, "length")
    if rows is not None and not is_no_array(rows):
        return None
    return _number(length, source, is_known=True)


def _number(value: cst.BaseExpression | None, source: Source, *, is_known: bool = False) -> int | None:
    """A number that is written out, or that a parameter is by default, where that is no argument of what is compiled;
    a length is known in any case."""
    parameter = source.parameter(value) if isinstance(value, cst.Name) else None
    if parameter is None or not isinstance(value, cst.Name):
        return whole_number(value, source)
    is_known = is_known or is_static_name(value, source) or not _is_compiled(value, source)
    return whole_number(parameter.default, source) if is_known else None


def _is_compiled(parameter: cst.Name, source: Source) -> bool:
    """Whether `jax.jit` stands above the function around, or one of those around it."""
    scopes = map(source.body_scope, source.ancestors(parameter, cst.FunctionDef))
    functions = (source.facts.functions.get(scope) for scope in scopes)
    return any(one and not JIT.isdisjoint(source.project.decorators(source.path, one)) for one in functions)


def stores_nothing(body: Function) -> bool:
    """Whether a step hands its carry on and no more: `return carry, None`, or the nothing that it is given."""
    match result(body):
        case cst.Tuple(elements=[_, cst.Element(value=cst.Name(value=name))]):
            return name == "None" or name == body.params.params[-1].name.value
        case cst.Tuple(elements=[_, cst.Element(value=value)]):
            return is_no_array(value)
    return False


def together(times: int | None, body: Function, source: Source) -> str | None:
    """How many of so many steps are best compiled together, as the `unroll` of the loop: all, or eight of them; None
    where there are too many, or more to a step than arithmetic, or where the file's loops run inside of kernels. What a
    step may hold beside arithmetic has to be asked elsewhere."""
    if times is None or not 1 < times <= _MOST_STEPS or writes_kernels(source):
        return None
    work = short_work(body, source, Allowed(True, True, rolls=True))
    if work is None:
        return None
    return "True" if len(work) * times <= MOST_TOGETHER else "8"


def only_adds_up(body: Function, carry: cst.Name, source: Source) -> bool:
    """Whether a step adds to what it carries what is made without it, `h ^ table[i]`: all of that is made at once, and
    reduced, without a loop."""
    reads, made = source.reads(carry), made_of(carry, body)
    match result(body):
        case cst.BinaryOperation(
            left=one,
            operator=cst.Add() | cst.Multiply() | cst.BitXor() | cst.BitOr() | cst.BitAnd(),  # in any order
            right=other,
        ):
            sides = ((one, other), (other, one))
            return any(side in reads and not any(n.value in made for n in names_read(rest)) for side, rest in sides)
    return False
