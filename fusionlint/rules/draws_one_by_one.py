"""Several draws of one distribution, each with a key of its own, in what runs in every step: `x = uniform(k1)`,
`y = uniform(k2)`, `z = uniform(k3)`, where one draw makes all the numbers."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import libcst as cst

from fusionlint.finding import Finding
from fusionlint.patterns.code.at import constant, inside, is_none, names_read
from fusionlint.patterns.code.calls import argument, brief, has_only
from fusionlint.patterns.code.functions import own_parts
from fusionlint.patterns.code.unpacked import stored_in
from fusionlint.patterns.compiled.draws import drawn_line_by_line
from fusionlint.patterns.operations.choice import is_drawn_once
from fusionlint.patterns.operations.one_draw import DRAWS, Draw, dtype_of, one_draw
from fusionlint.patterns.runs.concrete import is_concrete
from fusionlint.patterns.runs.often import runs_often
from fusionlint.patterns.runs.under import under_loop
from fusionlint.patterns.values.kinds import kind
from fusionlint.rule import Rule
from fusionlint.source.environments import in_environment, is_stepped
from fusionlint.source.tree import Source

if TYPE_CHECKING:
    from fusionlint.hlo import parse as hlo
    from fusionlint.hlo.barriers import Barrier

rule = Rule(__name__, harm="fusion")


_NAMES = tuple(f"jax.random.{name}" for name in DRAWS)
# Two keys of one split are two kernels at most; of more a step is made longer by each.
_SEVERAL = 3
# Of more numbers than these a kernel of its own is no loss.
_FEW = 64
_DEPTH = 4
_LONG = 60


@rule.source("FunctionDef", calls=_NAMES)
def drawn_one_by_one(function: cst.FunctionDef, source: Source) -> Iterator[Finding]:
    """The draws of a function that runs in every step, by what is drawn and the block that they stand in."""
    groups: dict[tuple[object, ...], list[Draw]] = {}
    for node in own_parts(function, cst.Call, source):
        if draw := _draw(node, source):
            groups.setdefault((draw.name, dtype_of(draw, source), _block(node, source)), []).append(draw)
    for found in groups.values():
        draws = _independent(found, source)
        if len(draws) >= _SEVERAL and _is_hot(draws[0].call, source):
            yield _finding(draws, source)


@rule.barrier
def hashed_line_by_line(barrier: Barrier, module: hlo.Module) -> str | None:
    """What crosses memory between the draws of one function, or their keys."""
    lines = drawn_line_by_line(barrier, module)
    if lines < _SEVERAL:
        return None
    return f"one draw of all numbers, with one key: {lines} lines draw in turn, and bounds and scales may be arrays"


def _draw(node: cst.Call, source: Source) -> Draw | None:
    """A draw of one number, of a few, or of a row of an environment, which is one of thousands."""
    qualified = source.qualified_name(node.func)
    if qualified not in _NAMES:
        return None
    name = qualified.rpartition(".")[2]
    made = DRAWS[name]
    if not has_only(node, 9, "key", "shape", "dtype", *(other for other, *_ in made.others)):
        return None
    shape = argument(node, made.shape, "shape")
    if shape is None or is_none(shape):
        others = (argument(node, place, other) for other, place, _ in made.others)
        is_shaped = made.shape > 1 and any(value is not None and kind(value, source) == "array" for value in others)
        return None if is_shaped else Draw(node, name, None)  # as the probabilities are
    if isinstance(shape, cst.Tuple | cst.List) and not shape.elements:
        return Draw(node, name, None)
    is_short = _is_short(shape) or (_is_a_row(shape) and in_environment(node, source))
    return Draw(node, name, shape) if is_short else None


def _is_short(shape: cst.BaseExpression) -> bool:
    if not isinstance(shape, cst.Tuple):
        return False
    sizes = [constant(size.value) for size in shape.elements]
    return math.prod(size or _FEW + 1 for size in sizes) <= _FEW


def _is_a_row(shape: cst.BaseExpression) -> bool:
    """Whether a shape is that of what is observed, `gyro.shape`, or has one size that is not written out, `(n, 2)`: a
    map of the world, `(height, width)`, has enough in it for a kernel of its own."""
    match shape:
        case cst.Attribute(attr=cst.Name("shape")):
            return True
        case cst.Tuple(elements=sizes):
            return sum(constant(size.value) is None for size in sizes) <= 1
    return False


def _block(node: cst.CSTNode, source: Source) -> cst.CSTNode | None:
    """The statements that `node` is always reached with; itself where only some of it is evaluated."""
    for above in source.ancestors(node):
        if isinstance(above, cst.IndentedBlock):
            return above
        if isinstance(above, cst.IfExp | cst.BaseComp | cst.BooleanOperation):
            return node
    return None


def _independent(draws: Sequence[Draw], source: Source) -> list[Draw]:
    """Those with keys of their own that need nothing of what the others drew, and stand in no loop."""
    calls = [draw.call for draw in draws]
    kept: dict[tuple[object, ...], Draw] = {}
    for draw in draws:
        key = argument(draw.call, 0, "key")
        if key is None or source.loop(draw.call) is not None:
            continue
        rest = [arg.value for arg in draw.call.args if arg.value is not key]
        if not any(_is_of(part, calls, source, _DEPTH) for part in rest):
            told = (source.code(key), *(source.written(name) for name in names_read(key)))
            kept.setdefault(told, draw)
    return list(kept.values())


def _is_of(node: cst.CSTNode, calls: Sequence[cst.Call], source: Source, depth: int) -> bool:
    """Whether `node` is, near or far, made of what one of `calls` returned."""
    if any(part is call for part in inside(node) for call in calls):
        return True
    for name in names_read(node):
        value = stored_in(name, source)
        if depth and value is not None and _is_of(value, calls, source, depth - 1):
            return True
    return False


def _is_hot(node: cst.CSTNode, source: Source) -> bool:
    """Whether this is drawn again and again: outside of what makes something once a few kernels are nothing."""
    if not source.is_traced(node) or is_concrete(node, source) or is_drawn_once(node, source):
        return False
    place = source.place(node)
    return under_loop(node, source) or runs_often(source.project, place) or is_stepped(source.project, place)


def _finding(draws: Sequence[Draw], source: Source) -> Finding:
    first = draws[0].call
    name = source.code(first.func)
    is_numbers = all(draw.shape is None for draw in draws)
    what = "numbers" if is_numbers else "draws"
    return source.finding(
        first,
        f"{len(draws)} {what} of `{name}`, each by a key of its own: the generator is in the program as many times",
        write=_numbers(draws, name, source) if is_numbers else _pieces(draws, name, source),
        edits=one_draw(draws, name, source),
        pair=0 if is_numbers else 1,
    )


def _numbers(draws: Sequence[Draw], name: str, source: Source) -> str:
    """`jax.random.uniform(key, (3,), minval=jnp.array([0.0, 1.0, 2.0]), maxval=4.0)`."""
    made = DRAWS[draws[0].name]
    parts = ["«key»", f"({len(draws)},)" if made.shape == 1 else f"shape=({len(draws)},)"]
    numpy = source.jnp
    for other, at, default in made.others:
        given = [argument(draw.call, at, other) for draw in draws]
        texts = [source.code(value) if value is not None else default for value in given]
        if any(text != default for text in texts):
            several = brief(", ".join(map(str, texts)), _LONG, "...")
            same = len(set(texts)) == 1
            parts.append(f"{other}={texts[0] if same else f'{numpy}.array([{several}])'}")
    return f"one draw, `{name}({', '.join(parts)})`: the numbers are others, of the same distribution"


def _pieces(draws: Sequence[Draw], name: str, source: Source) -> str:
    shapes = {source.code(draw.shape) for draw in draws if draw.shape is not None}
    others = [(other, place) for other, place, _ in DRAWS[draws[0].name].others]
    bounds = {tuple(_text(argument(draw.call, at, other), source) for other, at in others) for draw in draws}
    if len(shapes) == 1 and all(draw.shape is not None for draw in draws):
        how = f"one draw with a leading axis of {len(draws)}"
    else:
        how = f"one draw of all, `{name}(«key», (n,){', ...' * bool(others)})`, cut into pieces"
    if len(bounds) > 1:
        how += f", {' and '.join(other for other, _ in others)} as arrays"
    return f"{how}: the numbers are others, of the same distribution"


def _text(value: cst.BaseExpression | None, source: Source) -> str:
    return "" if value is None else source.code(value)
