"""A product with a matrix of two or three rows that is written out, `points @ jnp.array([[c, -s], [s, c]])`, in what is
mapped over many: a library's product for a few multiplications and additions."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from fusionlint.finding import Finding
from fusionlint.patterns.at import is_literal
from fusionlint.patterns.calls import argument
from fusionlint.patterns.choice import listed
from fusionlint.patterns.concrete import is_concrete
from fusionlint.patterns.environments import in_environment
from fusionlint.patterns.matrices import TRANSPOSES, small_matrix
from fusionlint.patterns.one_hot import factors
from fusionlint.patterns.under import under_vmap
from fusionlint.rule import Rule
from fusionlint.source.facts import NOTHING, Value
from fusionlint.source.places import Place
from fusionlint.source.traced import is_idle
from fusionlint.source.tree import Source

rule = Rule(__name__, harm="fusion")

_ARRAYS = ("jax.numpy.array", "jax.numpy.asarray")
_STACK = "jax.numpy.stack"
_SIZES = (2, 3)


def _making_small(source: Source) -> Iterator[str]:
    """The scopes that write out a small matrix, or have a function of the project do so: asked of the facts."""
    for place, name, raw in source.project.named_calls(source.path):
        if name in _ARRAYS or name == _STACK:
            if _rows(source.whole(raw).value):
                yield place.scope
        elif _is_of_a_maker(name, source):
            yield place.scope


def _rows(made: Value) -> int | None:
    """How many rows of as many entries, not all numbers, a call is handed; of a stack of stacks its two."""
    given = next(iter(made.arguments), NOTHING)
    rows = given.arguments
    if made.callee is not None and rows and all(row.is_call for row in rows):
        rows = tuple(next(iter(row.arguments), NOTHING) for row in rows)
    if len(rows) not in _SIZES or any(len(row.arguments) != len(rows) for row in rows):
        return None
    return len(rows) if any(entry != NOTHING for row in rows for entry in row.arguments) else None


def _is_of_a_maker(name: str | None, source: Source) -> bool:
    """Whether a function of the project returns a small matrix that it writes out: `def rotation(angle): ...`."""
    place = source.project.find(name)
    function = source.project.function_at(place)
    if place is None or function is None or len(function.returns) != 1:
        return False
    (returned,) = function.returns
    made = source.project.callee(Place(place.path, function.scope), returned) if returned.is_call else None
    return made in _ARRAYS and _rows(returned) is not None


@rule.source("BinaryOperation", "Call", when=_making_small)
def multiplied_by_a_few(node: cst.BinaryOperation | cst.Call, source: Source) -> Iterator[Finding]:
    """One factor is the small matrix, the other an array that is there."""
    sides = factors(node, source)
    if sides is None or not source.is_traced(node) or is_idle(source.project, source.place(node)):
        return
    small = [_size(side, source) for side in sides]
    if (small[0] is None) is (small[1] is None):  # two of them make a third, of which most entries are to be had
        return
    size = small[0] or small[1]
    other = sides[1] if small[0] else sides[0]
    if listed(other, source) is not None or _is_a_product(other, source) or is_concrete(node, source):
        return
    is_stacked = any(source.calls(source.meant(_turned(side)), _STACK) for side in sides)
    if not (is_stacked or under_vmap(node, source) or in_environment(node, source)):
        return
    numpy = source.alias("jax.numpy") or "jnp"
    rows = ", ".join(("x * a + y * b", "x * c + y * d") if size == 2 else ("x * a + y * b + z * c", "..."))
    yield source.finding(
        node,
        f"each element is multiplied by a {size} by {size} matrix of its own: nothing around it fuses with such a product",
        write=f"its rows written out, {numpy}.stack([{rows}], axis=-1), of columns x = points[..., 0] and so on",
    )


def _size(factor: cst.BaseExpression, source: Source) -> int | None:
    """How many rows a factor has, where it is a small matrix, or one turned."""
    meant = source.meant(_turned(factor))
    if (rows := small_matrix(meant, source)) is not None:
        return len(rows)
    if not isinstance(meant, cst.Call):
        return None
    if source.calls(meant, _STACK):
        return _stacked(meant, source)
    return 2 if _is_of_a_maker(source.qualified_name(meant.func), source) else None


def _turned(factor: cst.BaseExpression) -> cst.BaseExpression:
    """m, of `m.T`."""
    match factor:
        case cst.Attribute(value=inner, attr=cst.Name(attr)) if attr in TRANSPOSES:
            return inner
    return factor


def _stacked(call: cst.Call, source: Source) -> int | None:
    """How many rows `jnp.stack([jnp.stack([c, -s], -1), jnp.stack([s, c], -1)], -2)` has."""
    rows = argument(call, 0, "arrays")
    each = [element.value for element in rows.elements] if isinstance(rows, cst.List | cst.Tuple) else []
    entries = [argument(row, 0, "arrays") for row in each if isinstance(row, cst.Call) and source.calls(row, _STACK)]
    if len(each) not in _SIZES or len(entries) != len(each):
        return None
    lists = [entry.elements for entry in entries if isinstance(entry, cst.List | cst.Tuple)]
    if [len(row) for row in lists] != [len(each)] * len(each):
        return None
    return None if all(is_literal(one.value) for row in lists for one in row) else len(each)


def _is_a_product(node: cst.BaseExpression, source: Source) -> bool:
    """Whether the other factor is a product itself, as in a chain of joints."""
    meant = source.meant(_turned(node))
    return isinstance(meant, cst.BinaryOperation | cst.Call) and factors(meant, source) is not None
