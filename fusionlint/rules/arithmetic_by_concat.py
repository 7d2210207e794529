"""A few columns worked on by themselves and joined with the rest again: `concat([x[:, :2], jnp.exp(x[:, 2:])], 1)`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import libcst as cst

from fusionlint.finding import Finding
from fusionlint.patterns.code.at import constant, elements, is_literal, told_axes
from fusionlint.patterns.code.calls import brief
from fusionlint.patterns.code.elementwise import atoms, is_worked_on, operands
from fusionlint.patterns.operations.join import axis, lists_parts, parts
from fusionlint.patterns.runs.concrete import is_concrete
from fusionlint.patterns.runs.under import under_loop
from fusionlint.patterns.values.kinds import kind
from fusionlint.patterns.writes.axis import compared
from fusionlint.patterns.writes.beside import is_of_numpy, is_taken_to_the_host
from fusionlint.rule import Rule
from fusionlint.source.facts import last_name
from fusionlint.source.places import Place
from fusionlint.source.transforms import MODULES
from fusionlint.source.tree import Source

rule = Rule(__name__, harm="fusion")

_CONCATENATES = ("jax.numpy.concatenate", "jax.numpy.concat")
# What makes an array of one value, as wide as what it is handed.
_FILLS = ("jax.numpy.zeros_like", "jax.numpy.ones_like", "jax.numpy.full_like")
# More parts than this are put together, not worked on.
_MOST = 3
# Of rows no longer than this, a vector or a quaternion, a choice takes as many kernels as the join.
_FEW = 4
_LONG = 30
# What parts are called that have no name, and are longer.
_NAMES = ("first", "second", "third")
# Where their argument is large, negative or 0 their slope is no number, or none that can be multiplied by 0.
_STEEP = frozenset(
    ("acos", "acosh", "arccos", "arccosh", "arcsin", "arctanh", "asin", "atanh", "cbrt", "cosh", "divide", "exp",
     "exp2", "expm1", "float_power", "hypot", "log", "log10", "log1p", "log2", "logaddexp", "logaddexp2", "pow",
     "power", "reciprocal", "rsqrt", "sinc", "sinh", "sqrt", "tan", "true_divide")
)  # fmt: skip


class _Cut(NamedTuple):
    """A part of an array along the joined axis, and what is done with it: all of the array in its place."""

    array: str
    columns: cst.Slice
    read: cst.Subscript
    is_changed: bool
    is_known: bool  # XLA folds what is filled


@rule.source("Call", calls=_CONCATENATES, like=lists_parts)
def columns_joined_again(node: cst.Call, source: Source) -> Iterator[Finding]:
    """Parts of one array in their order, without a gap, of which one at least went through elementwise work. Of what
    several results are made of concat-with-several-users speaks."""
    along = axis(node, source)
    if along is None:
        return
    cuts = [_cut(part, along, source) for part in parts(node, source)]
    seen = [cut for cut in cuts if cut is not None]
    if len(seen) < len(cuts) or not 1 < len(seen) <= _MOST or not _is_one_array(seen):
        return
    if not any(cut.is_changed for cut in seen) or all(cut.is_known for cut in seen):
        return
    if _is_short(seen) or _has_several_users(node, source):
        return
    changed = [part for part, cut in zip(parts(node, source), seen, strict=True) if cut.is_changed]
    if all(_is_needed_apart(part, node, source) for part in changed):
        return
    if is_concrete(node, source) or is_of_numpy(seen[0].read.value, source) or is_taken_to_the_host(node, source):
        return
    if _is_of_a_layer(seen[0], source):
        return
    yield source.finding(
        node,
        "the columns are taken apart and joined again for work on some of them, through memory and back",
        pair=int(under_loop(node, source)),
        write=_instead(node, seen, along, source),
    )


def _is_of_a_layer(first: _Cut, source: Source) -> bool:
    """Whether a few columns at most go before the others of what a layer of a module gave, `heads[i](x)`,
    `nn.Dense(4)(x)`: what that makes its few columns of is far wider."""
    end = first.columns.upper
    cut = constant(end) if end is not None else None
    owner = source.facts.class_around(source.scope(first.read))
    if cut is None or not 0 < cut <= _FEW or not owner:
        return False
    if not source.project.inherits(Place(source.path, owner), MODULES):
        return False
    match source.meant(first.read.value):
        case cst.Call(func=cst.Call() | cst.Subscript()):
            return True
        case cst.Call(func=cst.Attribute(value=cst.Name("self"))):
            return True
    return False


def _is_needed_apart(part: cst.BaseExpression, join: cst.Call, source: Source) -> bool:
    """Whether what was made of a part has a name, by which others than the join read it: they need it by itself."""
    written = source.written(part) if isinstance(part, cst.Name) else None
    reads = source.reads(written) if written is not None else ()
    return any(join not in source.ancestors(read) for read in reads)


def _cut(part: cst.BaseExpression, along: int, source: Source) -> _Cut | None:
    """What `part` is of an array: `x[:, :2]` itself, or elementwise work on that and on nothing else of the array."""
    part = source.meant(part)
    reads = list(_read(part, source))
    cuts = [cut for read in reads if (cut := _columns(read, along)) is not None]
    if not cuts:
        return None
    read, columns = cuts[0]
    array = source.code(read.value)
    others = [other for other in reads if other is not read and source.code(other.value) == array]
    if any(source.code(other) != source.code(read) for other in others):
        return None
    if _is_one_wide(columns) and any(kind(leaf, source) == "array" for leaf in _others(part, source)):
        return None  # a column may be spread by what it meets
    return _Cut(array, columns, read, is_changed=part is not read, is_known=source.calls(part, *_FILLS))


def _read(node: cst.BaseExpression, source: Source) -> Iterator[cst.Subscript]:
    """The subscripts that elementwise work, or what fills an array like it, reads."""
    if isinstance(node, cst.Subscript):
        yield node
    found = operands(node, source)
    if found is None and source.calls(node, *_FILLS):
        # What else is brought to the shape of a part, `full_like(x[:1], new)`, is in its place, and no work on it.
        found = (arg.value for arg in node.args[:1]) if all(_is_said(arg.value) for arg in node.args[1:2]) else None
    for each in found or ():
        yield from _read(each, source)


def _is_said(value: cst.BaseExpression) -> bool:
    """`0.0`, `-jnp.inf`."""
    inner = value.expression if isinstance(value, cst.UnaryOperation) else value
    return is_literal(value) or (isinstance(inner, cst.Attribute) and inner.attr.value in ("inf", "nan", "pi"))


def _others(node: cst.BaseExpression, source: Source) -> list[cst.BaseExpression]:
    """What elementwise work reads but for subscripts."""
    return [one for one in atoms(node, source) if not isinstance(one, cst.Subscript) and not source.calls(one, *_FILLS)]


def _is_one_wide(columns: cst.Slice) -> bool:
    """`:1`, `3:4`, `-1:`, or as wide as Python knows: `k:n`."""
    first = 0 if columns.lower is None else constant(columns.lower)
    if columns.upper is None:
        return first is None or first == -1
    last = constant(columns.upper)
    return first is None or last is None or last - first == 1


def _columns(read: cst.Subscript, along: int) -> tuple[cst.Subscript, cst.Slice] | None:
    """A slice of one axis, all others read, where that is the joined one: of `x[1:]` it is the first, of `x[..., 1:]`
    the last, of `x[:, 1:]` the second, which is the last of two."""
    index = elements(read.slice)
    places = told_axes(index)
    if len(places) != 1 or not isinstance(part := index[places[0]], cst.Slice) or part.step is not None:
        return None
    if any(isinstance(one, cst.Ellipsis) for one in index[: places[0]]):
        is_there = along == places[0] - len(index)
    else:
        is_there = along == places[0] or (along == -1 and places[0] == len(index) - 1 > 0)
    return (read, part) if is_there else None


def _is_one_array(cuts: Sequence[_Cut]) -> bool:
    """Whether all are parts of one array, the first from its start, and each begins where the one before it ends."""
    if len({cut.array for cut in cuts}) > 1:
        return False
    first, *_ = cuts
    if first.columns.lower is not None and constant(first.columns.lower) != 0:
        return False
    return all(_is_followed(one.columns, other.columns) for one, other in pairwise(cuts))


def _is_followed(one: cst.Slice, other: cst.Slice) -> bool:
    return one.upper is not None and other.lower is not None and one.upper.deep_equals(other.lower)


def _is_short(cuts: Sequence[_Cut]) -> bool:
    """Whether all cuts together are a few numbers of each row, `x[..., :1]`, `-x[..., 1:2]`, `x[..., 2:3]`."""
    end = cuts[-1].columns.upper
    last = None if end is None else constant(end)
    return last is not None and 0 < last <= _FEW


def _has_several_users(node: cst.Call, source: Source) -> bool:
    name = source.assigned_name(node)
    return name is not None and sum(is_worked_on(read, source) for read in source.reads(name)) > 1


def _instead(node: cst.Call, cuts: Sequence[_Cut], along: int, source: Source) -> str:
    """`jnp.where(i < 2, x, -x)`, and what `i` is."""
    jnp = source.jnp
    array = brief(cuts[0].array, _LONG, "x")
    end = cuts[-1].columns.upper
    whole = array if end is None or constant(end) == -1 else f"{array}[..., :{brief(source.code(end), _LONG)}]"
    joined = [*parts(node, source)]
    works = [source.meant(part) for part in joined]
    done, told, is_guarded = list[str](), list[str](), False
    for part, work, cut in zip(joined, works, cuts, strict=True):
        of = whole
        if cut.is_changed and _is_steep(work, source):
            of, is_guarded = f"{jnp}.where({compared(cut.columns, source)}, {whole}, 1)", True
        text, of_all = _done(work, cut, of, along, source) if cut.is_changed else (whole, "")
        if of_all:
            text = part.value if isinstance(part, cst.Name) else _NAMES[len(done)]
            told.append(f"{text} made of {of_all}")
        done.append(text)
    text = done[-1]
    for cut, made in zip(reversed(cuts[:-1]), reversed(done[:-1]), strict=True):
        text = f"{jnp}.where({compared(cut.columns.with_changes(lower=None), source)}, {made}, {text})"
    text = "; ".join((f"{text}, with `«i» = {jnp}.arange(«n»)` along that axis", *told))
    if is_guarded:
        text += "; the inner choice keeps the others' gradients from being NaN"
    is_beside = any(_is_beside(work, cut, along, source) for work, cut in zip(works, cuts, strict=True))
    return text + ("; what is as wide as the columns is padded" if is_beside else "")


def _is_steep(work: cst.BaseExpression, source: Source) -> bool:
    """Whether the slope of `work` may be no number where the work is not meant: `jnp.exp(x)` of a large one,
    `1 / x` of 0. Its gradient is multiplied by 0 there, and is NaN."""
    match work:
        case cst.BinaryOperation(operator=cst.Divide(), right=right) if any(True for _ in _read(right, source)):
            return True
        case cst.BinaryOperation(operator=cst.Power(), right=right) if not isinstance(right, cst.Integer):
            return True
        case cst.Call(func=func) if last_name(source.qualified_name(func) or "") in _STEEP:
            return True
    return any(_is_steep(each, source) for each in operands(work, source) or ())


def _is_beside(work: cst.BaseExpression, cut: _Cut, along: int, source: Source) -> bool:
    """Whether something beside the columns goes into the work on them that may be as wide as they are."""
    leaves = _others(work, source) if cut.is_changed else []
    reads = {source.code(read) for read in _read(work, source) if source.code(read.value) != cut.array}
    alike = {source.code(read) for read in _cut_alike(work, cut, along, source)}
    return bool(reads - alike) or any(kind(leaf, source) != "scalar" for leaf in leaves)


def _done(work: cst.BaseExpression, cut: _Cut, of: str, along: int, source: Source) -> tuple[str, str]:
    """The work on all columns, of other arrays that are cut so on all of theirs: `jnp.tanh(x)`; and, where that is
    long, what it is made of all of."""
    text, others = source.code(work).replace(source.code(cut.read), of), list[str]()
    for read in _cut_alike(work, cut, along, source):
        array = source.code(read.value)
        text = text.replace(source.code(read), array)
        others += [array] if array not in others else []
    return text, "" if brief(text, 2 * _LONG, "") else f"all of {', '.join((of, *others))}"


def _cut_alike(work: cst.BaseExpression, cut: _Cut, along: int, source: Source) -> Iterator[cst.Subscript]:
    """What else the work reads the same columns of: `cos[1:]`, beside `x[1:]`."""
    for read in _read(work, source):
        found = _columns(read, along) if source.code(read.value) != cut.array else None
        if found is not None and source.code(found[1]) == source.code(cut.columns):
            yield read
