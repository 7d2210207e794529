"""One draw for several of one distribution: `jax.random.uniform(key, (3,), minval=jnp.array([0.0, 1.0, 2.0]))`.

In: draws of a Source, each with a key of its own, of which none needs what another drew. Out: the edits that draw all
by the first key; none where a key is read elsewhere too, or where the draws are of several shapes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import libcst as cst

from fusionlint.finding import Edit, Location
from fusionlint.patterns.code.at import TO_JAX_ARRAY, constant
from fusionlint.patterns.code.before import free_name, line_before
from fusionlint.patterns.code.calls import argument
from fusionlint.patterns.code.layout import Called, in_a_list, named_as, returned
from fusionlint.patterns.code.modules import named
from fusionlint.patterns.code.moved import is_same_before
from fusionlint.patterns.code.unpacked import assignment
from fusionlint.patterns.operations.split_keys import without
from fusionlint.patterns.values.kinds import kind
from fusionlint.source.tree import Source

# So many lines behind, nobody knows any more which number `drawn[2]` is.
_FAR = 40
# What makes a vector of numbers.
_OF_NUMBERS = (*TO_JAX_ARRAY, "jax.numpy.hstack", "jax.numpy.stack")


class Kind(NamedTuple):
    """Where the shape and the dtype of a draw stand among its arguments, and what else there is, with its default."""

    shape: int
    dtype: int
    others: tuple[tuple[str, int, str | None], ...] = ()


DRAWS = {
    "uniform": Kind(1, 2, (("minval", 3, "0.0"), ("maxval", 4, "1.0"))),
    "randint": Kind(1, 4, (("minval", 2, None), ("maxval", 3, None))),
    "bernoulli": Kind(2, 9, (("p", 1, "0.5"),)),
    "truncated_normal": Kind(3, 4, (("lower", 1, None), ("upper", 2, None))),
    **dict.fromkeys(("normal", "exponential", "gumbel", "laplace"), Kind(1, 2)),
}


class Draw(NamedTuple):
    """A call, of what kind it is, and its shape, None where it is one number."""

    call: cst.Call
    name: str
    shape: cst.BaseExpression | None


def one_draw(draws: Sequence[Draw], name: str, source: Source) -> tuple[Edit, ...]:
    """All numbers by the first key, in place of assignments that follow one another, else in a line before the first of
    them, and each of them in its place. Keys that nobody draws by are not split off."""
    first, made = draws[0].call, DRAWS[draws[0].name]
    dtype, keys = dtype_of(draws[0], source), [_only_key(draw, source) for draw in draws]
    written = [key for key in keys if key is not None]
    bounds = [value for draw in draws for value in others_of(draw)]
    is_known = all(value is None or is_same_before(value, first, source) for value in bounds)
    statement = source.statement(first)
    if statement is None or not is_known or len(written) < len(draws):
        return ()
    sizes = _sizes(draws, source)
    if sizes is None or any(source.has_comment(draw.call) for draw in draws):
        return ()
    called, edits = without(written[1:], written[0], first, source)
    shape = f"({len(draws)}, {', '.join(sizes)})" if sizes else f"({len(draws)},)"
    parts = [called, shape if made.shape == 1 else f"shape={shape}", *_bounds(draws, len(sizes), first, source)]
    one = Called(name, [*parts, f"dtype={dtype}"] if dtype else parts)
    in_a_row = _assigned_in_a_row(draws, source)
    if in_a_row is not None:
        where, names = in_a_row
        again = stacked_again(draws, source) if not sizes else None
        if again is not None:
            return (*_in_one(again, where, one, first, source), *edits)
        return (Edit(where, named_as(names, one, statement, source)), *edits)
    if source.location(draws[-1].call).line - source.location(first).line > _FAR:
        return ()
    drawn = free_name("drawn", first, source)
    before = line_before(first, named_as(drawn, one, statement, source), source)
    if before is None:
        return ()
    return (before, *(source.replace(draw.call, f"{drawn}[{place}]") for place, draw in enumerate(draws)), *edits)


def stacked_again(draws: Sequence[Draw], source: Source) -> cst.Call | None:
    """The call that makes a vector of the drawn numbers in their order, where nothing else reads them:
    `jnp.hstack([ahead, aside, turn])`."""
    names = [source.assigned_name(draw.call) for draw in draws]
    reads = [source.reads(name) for name in names if name is not None]
    if len(reads) < len(draws) or any(len(each) != 1 for each in reads):
        return None
    element = source.parent(reads[0][0])
    vector = source.parent(element) if isinstance(element, cst.Element) else None
    call = source.handed_to(vector) if isinstance(vector, cst.List | cst.Tuple) else None
    if call is None or len(call.args) != 1 or not source.calls(call, *_OF_NUMBERS):
        return None
    listed = [part.value for part in vector.elements] if isinstance(vector, cst.List | cst.Tuple) else []
    return call if listed == [read for (read,) in reads] and not source.has_comment(call) else None


def _in_one(again: cst.Call, where: Location, one: Called, first: cst.Call, source: Source) -> Iterator[Edit]:
    """The draw in place of its numbers and of the vector that is made of them: of both, where that comes next."""
    statement = source.statement(first)
    line = source.parent(source.statement(again) or again)
    block = source.parent(line) if line is not None else None
    body: list[cst.CSTNode] = [*block.body] if isinstance(block, cst.IndentedBlock) else []
    before = body[body.index(line) - 1] if line in body[1:] else None
    is_next = before is not None and source.location(before).end_line == where.end_line
    end = source.location(again)
    both = where._replace(end_line=end.end_line, end_column=end.end_column)
    is_plain = not any("#" in source.line(number) for number in range(where.end_line, end.line + 1))
    match source.parent(again):
        case cst.Return() if is_next and is_plain and statement is not None:
            yield Edit(both, returned(one, statement, source))
            return
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Name(name))]) if is_next and is_plain and statement:
            yield Edit(both, named_as(name, one, statement, source))
            return
    drawn = free_name("drawn", first, source)
    yield Edit(where, named_as(drawn, one, statement or first, source))
    yield source.replace(again, drawn)


def _assigned_in_a_row(draws: Sequence[Draw], source: Source) -> tuple[Location, str] | None:
    """Where assignments of nothing but the draws follow one another, and the names that they are given."""
    names = [source.assigned_name(draw.call) for draw in draws]
    statements = [assignment(name, source) for name in names]
    lines = [source.parent(statement) if statement is not None else None for statement in statements]
    block = source.parent(lines[0]) if lines[0] is not None else None
    are_apart = len({name.value for name in names if name is not None}) == len(names)
    if None in lines or not isinstance(block, cst.IndentedBlock) or not are_apart:
        return None
    if any(len(statement.targets) > 1 for statement in statements if statement is not None):
        return None
    body: list[cst.CSTNode] = [*block.body]
    places = [body.index(line) if line in body else -1 for line in lines]
    if places != [*range(places[0], places[0] + len(places))] or -1 in places:
        return None
    first, last = (source.location(statement) for statement in (statements[0], statements[-1]) if statement is not None)
    where = first._replace(end_line=last.end_line, end_column=last.end_column)
    has_a_comment = any("#" in source.line(number) for number in range(where.line, where.end_line + 1))
    return (where, ", ".join(name.value for name in names if name is not None)) if not has_a_comment else None


def _only_key(draw: Draw, source: Source) -> cst.Name | None:
    """Where the key of a draw is written, if nothing else is drawn by it: two by one key are the same, or go
    together."""
    key = argument(draw.call, 0, "key")
    written = source.written(key) if isinstance(key, cst.Name) else None
    return written if written is not None and len(source.reads(written)) == 1 else None


def others_of(draw: Draw) -> list[cst.BaseExpression | None]:
    return [argument(draw.call, place, other) for other, place, _ in DRAWS[draw.name].others]


def _sizes(draws: Sequence[Draw], source: Source) -> list[str] | None:
    """The sizes of each draw, none of numbers; None where some are of other shapes, or what bounds them may be."""
    shapes = {source.code(draw.shape) if draw.shape is not None else "" for draw in draws}
    shape = draws[0].shape
    if len(shapes) > 1 or not isinstance(shape, cst.Tuple | None):
        return None
    if shape is None:
        return []
    bounds = (value for draw in draws for value in others_of(draw))
    if any(value is not None and kind(value, source) == "array" for value in bounds):
        return None
    is_open = any(isinstance(size, cst.StarredElement) or constant(size.value) is None for size in shape.elements)
    return None if is_open else [source.code(size.value) for size in shape.elements]


def _bounds(draws: Sequence[Draw], axes: int, node: cst.CSTNode, source: Source) -> Iterator[Called | str]:
    """`minval=jnp.array([0.0, 1.0, 2.0])`, with axes for the sizes of each draw, or one number where all have it."""
    behind = f"[:, {', '.join(['None'] * axes)}]" if axes else ""
    several = zip(*map(others_of, draws), strict=True)
    for (other, _, default), given in zip(DRAWS[draws[0].name].others, several, strict=True):
        texts = [" ".join(source.code(value).split()) if value is not None else str(default) for value in given]
        if len(set(texts)) > 1:
            listed = in_a_list(*texts)
            yield Called(f"{other}={named('jax.numpy', node, source)}.array", (listed,), behind=behind)
        elif texts[0] != default:
            yield f"{other}={texts[0]}"


def dtype_of(draw: Draw, source: Source) -> str:
    dtype = argument(draw.call, DRAWS[draw.name].dtype, "dtype")
    return "" if dtype is None else source.code(dtype)
