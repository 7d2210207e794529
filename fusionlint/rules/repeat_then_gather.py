"""Rows that are written several times, and then gathered: `jnp.repeat(x, k, axis=0)[order]` is `x[order // k]`."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from fusionlint.finding import Finding
from fusionlint.lazily import regex
from fusionlint.patterns.code.at import constant, elements, holds, inside, is_whole, names_in
from fusionlint.patterns.code.calls import argument, as_operand, brief, has_only
from fusionlint.patterns.code.functions import function_named
from fusionlint.patterns.operations.sort import is_order
from fusionlint.patterns.runs.alternatives import otherwise
from fusionlint.patterns.values.kinds import kind
from fusionlint.rule import Rule
from fusionlint.source.facts import Call
from fusionlint.source.tree import Source
from fusionlint.source.walk import dotted

rule = Rule(__name__, harm="fusion")

_REPEAT = "jax.numpy.repeat"
_TAKE = "jax.numpy.take"
# Names of as many numbers as there are rows, by which no order is divided.
_ONE_FOR_EACH = regex(r"(counts|sizes|lengths|lens|degrees|repeats|multiplicities)$")
_LONGEST = 40
# What of an array is no work.
_KNOWN = ("shape", "ndim", "dtype")


def _is_of_rows(call: Call) -> bool:
    """Whether an axis is said, and no length in all, as it is where every row has a number of its own."""
    keywords = [keyword for keyword, _ in call.value.keywords]
    return ("axis" in keywords or len(call.value.arguments) > 2) and "total_repeat_length" not in keywords


@rule.source("Call", calls=(_REPEAT,), like=_is_of_rows)
def repeated_and_gathered(node: cst.Call, source: Source) -> Iterator[Finding]:
    """All that is done with the repeated rows is to gather them, here or by a function of the file."""
    rows, count = argument(node, 0, "a"), argument(node, 1, "repeats")
    if rows is None or count is None:
        return
    if not has_only(node, 3, "a", "repeats", "axis") or _number(argument(node, 2, "axis")) != 0:
        return
    reader = _only_reader(node, source) if _is_one_number(count, source) else None
    if reader is None:
        return
    order = _order_of(reader, source)
    helper = _order_handed_on(reader, source) if order is None else None
    places = order or helper
    if (
        places is None
        or _is_done_otherwise(node, source)
        or not (is_order(places, source) or kind(places, source) == "array")
    ):
        return
    k = brief(source.code(count), _LONGEST, "k")
    instead = f"{_operand(rows, source, 'x')}[{_operand(places, source, 'order')} // {_operand(count, source, 'k')}]"
    yield source.finding(
        node,
        f"all rows are written `{k}` times over, only to be gathered once",
        write=instead + (f"; a backward pass of its own then adds up each row's `{k}`" if helper is not None else ""),
        pair=int(helper is not None),
    )


def _only_reader(node: cst.Call, source: Source) -> cst.BaseExpression | None:
    """The repeated rows as what alone reads them has them: the call itself, or a name for it."""
    name = source.assigned_name(node)
    if name is None:
        return node
    reads = source.reads(name)
    return reads[0] if len(reads) == 1 and source.value(reads[0]) is node else None


def _is_done_otherwise(node: cst.Call, source: Source) -> bool:
    """Whether a setting chooses between this and a gather by what is divided: somebody knows what each costs."""
    return any(
        isinstance(part, cst.Subscript) and holds(part, cst.FloorDivide)
        for _, branch in otherwise(node, source)
        for part in inside(branch)
    )


def _is_one_number(count: cst.BaseExpression, source: Source) -> bool:
    """Whether every row is repeated as often, as far as can be seen, and more than once."""
    if _ONE_FOR_EACH.search(dotted(count)) or kind(count, source) in ("array", "numpy", "list"):
        return False
    return not isinstance(source.meant(count), cst.List | cst.Tuple) and _number(count) != 1


def _order_of(rows: cst.BaseExpression, source: Source) -> cst.BaseExpression | None:
    """What `rows[order]`, `rows[order, ...]` or `jnp.take(rows, order, axis=0)` gathers by."""
    above = source.parent(rows)
    match above:
        case cst.Subscript(value=value) if value is rows:
            first, *others = elements(above.slice)
            return first if isinstance(first, cst.BaseExpression) and all(map(is_whole, others)) else None
        case cst.Arg():
            call = source.parent(above)
            if source.calls(call, _TAKE) and call.args[0] is above:
                return argument(call, 1, "indices") if _number(argument(call, 2, "axis")) == 0 else None
    return None


def _order_handed_on(rows: cst.BaseExpression, source: Source) -> cst.BaseExpression | None:
    """The order that a function of the file is handed with the rows, and does nothing but gather them by."""
    call = source.handed_to(rows)
    function = function_named(call.func, source) if call is not None else None
    if call is None or not isinstance(function, cst.FunctionDef):
        return None
    names = [param.name.value for param in function.params.params]
    if len(call.args) > len(names) or any(arg.star or arg.keyword is not None for arg in call.args[:2]):
        return None
    handed = dict(zip((id(arg.value) for arg in call.args), names, strict=False))
    given = {name: arg.value for arg, name in zip(call.args, names, strict=False) if arg.keyword is None}
    order = _gathered_by(function, handed[id(rows)], source)
    return given.get(order) if order is not None else None


def _gathered_by(function: cst.FunctionDef, rows: str, source: Source) -> str | None:
    """The parameter by which a function gathers its parameter `rows`, which it reads otherwise only for its shape, or
    to hand it to another function with that one: to the same with a backward pass of its own."""
    reads = [part for part in names_in(function.body) if part.value == rows]
    orders = {by.value for by in (_order_of(read, source) for read in reads) if isinstance(by, cst.Name)}
    order = next(iter(orders), None)
    if order is None or len(orders) > 1:
        return None
    return order if all(_is_moved(read, order, source) for read in reads) else None


def _is_moved(read: cst.Name, order: str, source: Source) -> bool:
    match above := source.parent(read):
        case cst.Subscript():
            return _order_of(read, source) is not None
        case cst.Attribute(attr=cst.Name(known)):
            return known in _KNOWN
        case cst.Arg():
            call = source.parent(above)
            given = [arg.value for arg in call.args] if isinstance(call, cst.Call) else []
            return any(isinstance(value, cst.Name) and value.value == order for value in given)
    return False


def _number(node: cst.BaseExpression | None) -> int | None:
    return constant(node) if node is not None else None


def _operand(node: cst.BaseExpression, source: Source, otherwise: str) -> str:
    """`node` as it can be divided or subscripted."""
    text = brief(source.code(node), _LONGEST, otherwise)
    return text if text == otherwise else as_operand(node, text)
