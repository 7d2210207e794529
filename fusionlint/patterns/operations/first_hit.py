"""The place of a mask's first hit, by the mask itself: `jnp.argmax(m)` for `jnp.nonzero(m, size=1)[0][0]`.

In: the call that looks for the hits, of which the first alone is read, its mask, and what is read where there is none.
Out: the code and the edits that write it, in as many axes as the code around takes it from; None where that is not
sure.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import libcst as cst

from fusionlint.finding import Edit
from fusionlint.patterns.code.at import constant, elements, is_literal
from fusionlint.patterns.code.before import free_name, line_before
from fusionlint.patterns.code.calls import as_operand, keyword
from fusionlint.patterns.code.left_unused import whole_line
from fusionlint.patterns.code.modules import named
from fusionlint.patterns.code.unpacked import assignment
from fusionlint.patterns.values.factors import axes_of
from fusionlint.patterns.values.masks import is_mask
from fusionlint.patterns.values.one_number import is_a_number
from fusionlint.patterns.values.two_axes import has_rows, is_matrix, is_read_by_rows
from fusionlint.source.tree import Source

# How many subscripts of 0 lead to one number.
_TO_NUMBER = {"jax.numpy.nonzero": 2, "jax.numpy.where": 2, "jax.numpy.argwhere": 2, "jax.numpy.flatnonzero": 1}
_ROWS = ("jax.numpy.unique", "jax.numpy.ravel", "jax.numpy.arange")


class FirstHit(NamedTuple):
    """What to write, and the edits that do it."""

    text: str
    edits: tuple[Edit, ...]


def first_hit(
    node: cst.Call, mask: cst.BaseExpression, fill: cst.BaseExpression | None, source: Source
) -> FirstHit | None:
    """`argmax` counts through all axes: what is read of one axis alone is taken for a place on the only one, unless
    more are seen; what is read of all of them is told apart by the mask's shape."""
    name = source.qualified_name(node.func) or ""
    outer, depth = _taken(node, source)
    missing = _TO_NUMBER.get(name, -1) - depth
    if missing < 0 or (missing and name.endswith(".argwhere")) or source.has_comment(outer):
        return None
    is_alone = missing == 2 and _is_unpacked_alone(node, source)
    is_of_all = missing == 2 and not is_alone
    may_be_flat = name.endswith(".flatnonzero") or is_alone or not may_have_more_axes(mask, source)
    if (is_of_all and fill is not None) or not (is_of_all or may_be_flat):
        return None
    truth = source.code(mask) if is_mask(mask, source) else f"{as_operand(mask, source.code(mask))} != 0"
    is_read_again = (is_of_all or fill is not None) and not isinstance(mask, cst.Name)
    hits = free_name("hits", node, source) if is_read_again else truth
    before = line_before(node, f"{hits} = {truth}", source) if is_read_again else None
    if is_read_again and before is None:
        return None
    text = _written(node, hits, source.code(mask), fill, source, is_of_all=is_of_all)
    taken = _taken_out(node, source) if is_alone else None
    text = f"{text}[None]" if missing == 1 else f"({text}[None],)" if is_alone and taken is None else text
    edits = (*([before] if before is not None else ()), source.replace(outer, text), *(taken or ()))
    return FirstHit(f"{hits} = {truth}; {text}" if is_read_again else text, edits)


def has_more_axes(mask: cst.BaseExpression, source: Source) -> bool:
    """Whether a mask is seen to have more axes than one: itself, or by how what is compared is read elsewhere."""
    if is_matrix(mask, source) or has_rows(mask, source):
        return True
    written = (source.written(name) for name in _compared(source.meant(mask), source))
    return any(is_read_by_rows(read, source) for name in written if name is not None for read in source.reads(name))


def _compared(mask: cst.CSTNode, source: Source) -> Iterator[cst.Name]:
    """The names that a mask compares as they are: `x` of `x == -1`, none of `x[:, 0] == -1`."""
    match mask:
        case cst.Name():
            yield mask
        case cst.Comparison(left=left, comparisons=comparisons):
            for side in (left, *(each.comparator for each in comparisons)):
                yield from _compared(side, source)
        case cst.BinaryOperation(left=left, right=right):
            yield from _compared(left, source)
            yield from _compared(right, source)
        case cst.UnaryOperation(expression=inner):
            yield from _compared(inner, source)


def may_have_more_axes(mask: cst.BaseExpression, source: Source) -> bool:
    """Whether a mask is seen to have more axes than one, or may well have, for two things with names are compared and
    neither is seen to be a number or a row of such: `wall.position == position`, as well rows of coordinates."""
    if has_more_axes(mask, source):
        return True
    match source.meant(mask):
        case cst.Comparison(left=left, comparisons=[cst.ComparisonTarget(comparator=right)]):
            return not any(
                is_literal(side) or is_a_number(side, source) or _is_a_row(side, source) for side in (left, right)
            )
    return False


def _is_a_row(side: cst.BaseExpression, source: Source) -> bool:
    """Whether a side has one axis: the other, which picks one place of it, is a number then."""
    made = source.meant(side)
    if source.calls(made, *_ROWS):
        return keyword(made, "axis") is None
    return axes_of(made, source) == "vector"


def _written(
    node: cst.Call, hits: str, mask: str, fill: cst.BaseExpression | None, source: Source, *, is_of_all: bool
) -> str:
    numpy = named("jax.numpy", node, source)
    first = f"{numpy}.argmax({hits})"
    if is_of_all:
        whole = hits if hits.isidentifier() else mask
        return f"{numpy}.unravel_index({first}[None], {whole}.shape)"
    if fill is None:
        return first
    whole = hits if hits.isidentifier() else mask  # of numbers `any` asks the same
    return f"{numpy}.where({whole}.any(), {first}, {source.code(fill)})"


def _taken(node: cst.Call, source: Source) -> tuple[cst.BaseExpression, int]:
    """The subscripts of 0 around a call, and how many numbers stand in them."""
    outer: cst.BaseExpression = node
    depth = 0
    while isinstance(above := source.parent(outer), cst.Subscript) and above.value is outer:
        parts = elements(above.slice)
        if any(isinstance(part, cst.BaseSlice) or constant(part) != 0 for part in parts):
            break
        outer, depth = above, depth + len(parts)
    return outer, depth


def _taken_out(node: cst.Call, source: Source) -> tuple[Edit, ...] | None:
    """The edits by which `i` is the number in `(i,) = jnp.where(m, size=1)`, `i = i[0]`; None where other code reads
    `i`."""
    statement = source.parent(node)
    target = statement.targets[0].target if isinstance(statement, cst.Assign) else None
    name = target.elements[0].value if isinstance(target, cst.Tuple) else None
    reads = source.reads(name) if isinstance(name, cst.Name) else []
    element = source.parent(reads[0]) if len(reads) == 1 else None
    if name is None or target is None or not isinstance(element, cst.Subscript):
        return None
    again = source.assigned_name(element)
    statement = assignment(again, source)
    is_number = [constant(part) for part in elements(element.slice) if isinstance(part, cst.BaseExpression)] == [0]
    line = whole_line(statement, source) if statement is not None else None
    if again is None or again.value != source.code(name) or line is None or not is_number:
        return None
    where = source.location(target)
    text = source.line(where.line)
    opened, closed = text[: where.column - 1].rstrip(" \t")[-1:], text[where.end_column - 1 :].lstrip(" \t")[:1]
    if (opened, closed) == ("(", ")"):
        where = where._replace(column=text.rindex("(", 0, where.column) + 1)
        where = where._replace(end_column=text.index(")", where.end_column - 1) + 2)
    return Edit(where, source.code(name)), Edit(line, "")


def _is_unpacked_alone(node: cst.Call, source: Source) -> bool:
    """`(i,) = jnp.where(m, size=1)`, which a mask of one axis alone allows."""
    match source.parent(node):
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Tuple(elements=[cst.Element(value=cst.Name())]))]):
            return True
    return False
