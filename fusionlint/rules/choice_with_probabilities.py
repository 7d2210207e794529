"""`jax.random.choice(key, n, p=p)`: a running sum and a search through it, in a loop, where one reduction draws."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, TypedDict

import libcst as cst

from fusionlint.finding import Edit, Finding
from fusionlint.patterns.code.at import constant, is_literal, is_none, names_read
from fusionlint.patterns.code.before import free_name, line_before
from fusionlint.patterns.code.calls import argument
from fusionlint.patterns.code.layout import Called, Part, in_place_of, quoted
from fusionlint.patterns.code.left_unused import left_unused
from fusionlint.patterns.code.modules import named
from fusionlint.patterns.code.same import is_same_at
from fusionlint.patterns.compiled.searches import searched_for
from fusionlint.patterns.operations.chances import is_given, may_be_none
from fusionlint.patterns.operations.choice import (
    CHOICE,
    FACTORIZATIONS,
    Choice,
    are_numbers,
    choice,
    is_beside_a_call,
    is_drawn_once,
    is_one,
    listed,
    number,
    one_of_two,
    written_shape,
)
from fusionlint.patterns.operations.drawn import count_of, drawn_from, draws_again, only_picks
from fusionlint.patterns.operations.softmax import SOFTMAX
from fusionlint.patterns.runs.before_loops import starts_a_loop
from fusionlint.patterns.runs.concrete import is_concrete
from fusionlint.patterns.runs.under import GRADIENTS, VMAPS
from fusionlint.rule import Rule
from fusionlint.source.for_nobody import is_never_read
from fusionlint.source.tree import Source

if TYPE_CHECKING:
    from fusionlint.hlo import parse as hlo
    from fusionlint.hlo.barriers import Barrier

rule = Rule(__name__, harm="fusion")

_SUM = "jax.numpy.sum"
_FEW = 1000
_OF_LOGITS = ("jax.numpy.exp", *SOFTMAX)


@rule.source("Call", calls=(CHOICE,))
def choice_with_p(node: cst.Call, source: Source) -> Iterator[Finding]:
    """Draws with replacement and probabilities, in code that runs under a trace."""
    made = choice(node, source)
    if made is None or made.p is None or is_concrete(node, source):
        return
    if any(is_never_read(above, source) for above in (node, *source.ancestors(node))):
        return
    if not is_given(made.p, source) or is_drawn_once(node, source) or starts_a_loop(node, source):
        return
    if is_beside_a_call(node, FACTORIZATIONS, source) or _is_mapped_over_keys(node, made.p, source):
        return  # beside a factorization no draw counts
    if _is_beside_a_gradient(node, source):
        return
    is_many = made.shape is not None and not _is_few(made.shape)
    yield source.finding(
        node,
        "`choice` with `p` sums the probabilities up and searches the sums in a loop",
        **_instead(node, made, made.p, source, is_many=is_many),
        pair=1 if is_many else 0,
    )


@rule.source("Call", calls=(CHOICE,))
def one_without_replacement(node: cst.Call, source: Source) -> Iterator[Finding]:
    """One draw with probabilities that says `replace=False`: several are another distribution."""
    made = choice(node, source, replace=False)
    if made is None or made.p is None or not is_one(made.shape):
        return
    if not is_concrete(node, source):
        yield source.finding(
            node,
            "`choice` with `p` and `replace=False` sorts noise for everything to draw one, with nothing to replace",
            **_instead(node, made, made.p, source, is_many=False),
            pair=2,
        )


@rule.barrier
def drawn_by_a_search(barrier: Barrier, module: hlo.Module) -> str | None:
    """What crosses memory in the loop by which a choice looks its draws up in the sums of the probabilities."""
    if searched_for(barrier, module) != "choice":
        return None
    return (
        "jax.random.categorical(key, jnp.log(p)) instead of choice(p=p): other draws for a key, without a loop; many "
        'draws from many values: jnp.searchsorted of their sums with method="scan_unrolled"'
    )


def _is_beside_a_gradient(node: cst.CSTNode, source: Source) -> bool:
    """Whether the function around, a training step, takes a gradient: beside that one draw is nothing."""
    function = source.function(node)
    if function is None or source.in_loop(node):
        return False
    return any(source.function(call) is function for call in source.calls_of(GRADIENTS))


def _is_few(shape: cst.BaseExpression) -> bool:
    """Whether so few draws are written out that a noise for each and for every value is little."""
    sizes = shape.elements if isinstance(shape, cst.Tuple | cst.List) else ()
    return is_literal(shape) and math.prod(constant(size.value) or 1 for size in sizes) <= _FEW


def _is_mapped_over_keys(node: cst.Call, p: cst.BaseExpression, source: Source) -> bool:
    """Whether it is all that `jax.vmap(lambda key: choice(key, n, p=p))` does: many draws from one table, which is
    summed up once, where a categorical would draw as many numbers for each as the table has."""
    function = source.parent(node)
    if not isinstance(function, cst.Lambda) or function.body is not node:
        return False
    mapped = source.handed_to(function)
    own = {parameter.name.value for parameter in function.params.params}
    is_the_same = own.isdisjoint(name.value for name in names_read(p)) and listed(p, source) is None
    return source.calls(mapped, *VMAPS) and is_the_same


class _Instead(TypedDict):
    """What a finding says to write."""

    write: str
    edits: tuple[Edit, ...]


def _instead(node: cst.Call, made: Choice, p: cst.BaseExpression, source: Source, *, is_many: bool) -> _Instead:
    """The advice, and the edits where all of it is code."""
    coin = _two(node, made, p, source)
    if coin is None and is_many:
        return _searched(node, made, p, source)
    places = coin or _categorical(node, made, p, source)
    drawn = coin or drawn_from(made.among, places, node, source)
    is_sure = (
        not draws_again(node, source)
        and _is_sure(node, p, source)
        and (coin is None or are_numbers(made, listed(made.among, source) or (), source))
    )
    edits = _edits(node, drawn, "", source) if drawn is not None and is_sure else ()
    return {"write": _in_line(drawn or places) + ("" if drawn else _into(made, source)), "edits": edits}


def _edits(node: cst.Call, drawn: Part, read_before: str, source: Source) -> tuple[Edit, ...]:
    """The draw, and without `indices = jnp.arange(n)` where neither that nor what is read before it needs that."""
    return (in_place_of(node, drawn, source), *left_unused(node, f"{drawn}, {read_before}", source))


def _is_sure(node: cst.Call, p: cst.BaseExpression, source: Source) -> bool:
    """Whether there are probabilities in any case, nobody chooses whether to replace, and no comment is lost."""
    replace = argument(node, 3, "replace")
    if replace is not None and source.code(replace) not in ("True", "False"):
        return False
    return not (may_be_none(node, p, source) or source.has_comment(node))


def _two(node: cst.Call, made: Choice, p: cst.BaseExpression, source: Source) -> Part | None:
    """A coin, where both values and both probabilities are written out: of False and True, which it is itself, the
    second comes first."""
    values, chances = listed(made.among, source), listed(p, source)
    if values is None or chances is None or len(values) != 2 or len(chances) != 2:
        return None
    if [source.code(value) for value in values] == ["False", "True"]:
        values, chances = values[::-1], chances[::-1]
    return one_of_two(node, made, values, _chance(chances[0], chances[1], source), source)


def _chance(one: cst.BaseExpression, other: cst.BaseExpression, source: Source) -> str:
    """How probable the first of two is: `choice` takes weights, which need not sum to one, a coin does not."""
    first, second = source.code(one), source.code(other)
    if _is_rest(other, first, source) or _is_rest(one, second, source):
        return first
    a, b = number(one), number(other)
    if a is not None and b is not None and math.isclose(a + b, 1.0):
        return first
    first, second = (text if _binds(p) else f"({text})" for p, text in ((one, first), (other, second)))
    return f"{first} / ({first} + {second})"


def _is_rest(p: cst.BaseExpression, of: str, source: Source) -> bool:
    """Whether `p` is `1 - of`."""
    match p:
        case cst.BinaryOperation(left=left, operator=cst.Subtract(), right=right):
            return number(left) == 1.0 and source.code(right) == of
    return False


def _binds(node: cst.BaseExpression) -> bool:
    """Whether `node` needs no parentheses before a division."""
    if isinstance(node, cst.BinaryOperation):
        return isinstance(node.operator, cst.Multiply | cst.Divide)
    return isinstance(node, cst.Name | cst.Attribute | cst.Subscript | cst.Call | cst.BaseNumber)


def _categorical(node: cst.Call, made: Choice, p: cst.BaseExpression, source: Source) -> Called:
    """`jax.random.categorical(key, jnp.log(p), shape=shape)`, which draws one where no shape is said."""
    is_said = made.shape is not None and not (isinstance(made.shape, cst.Tuple) and not made.shape.elements)
    shape = [f"shape={written_shape(made.shape, source)}"] if made.shape is not None and is_said else []
    parts = [source.code(made.key), _logits(p, named("jax.numpy", node, source), source), *shape]
    return Called(f"{named('jax.random', node, source)}.categorical", parts)


def _into(made: Choice, source: Source) -> str:
    """What the places are places of."""
    among = source.code(made.among)
    return f" (an index into `{among}`, if an array)" if _is_short(among) else " (an index)"


def _logits(p: cst.BaseExpression, numpy: str, source: Source) -> Part:
    """The logarithm of what `p` is in proportion to: of `jnp.exp(x)` and `jax.nn.softmax(x)` it is there already."""
    match source.meant(p):
        case cst.Call(args=[cst.Arg(value=x, keyword=None, star="")]) as made if source.calls(made, *_OF_LOGITS):
            if made is p or (not isinstance(x, cst.Call) and is_same_at(x, p, source)):
                return source.code(x)
    return Called(f"{numpy}.log", (source.code(_weights(p, source)),))


def _weights(p: cst.BaseExpression, source: Source) -> cst.BaseExpression:
    """What `p` is in proportion to, without the sum that it is divided by; of `p if there is one else None` p: of
    nothing there are no sums."""
    match p:
        case cst.IfExp(body=body, orelse=orelse) if is_none(orelse):
            return _weights(body, source)
        case cst.BinaryOperation(left=left, operator=cst.Divide(), right=right) if _is_a_sum(
            source.meant(right), source
        ):
            return _weights(left, source)
        case cst.BinaryOperation(left=left, operator=cst.Multiply(), right=right) if number(right) == 1.0:
            return _weights(left, source)
    return p


def _is_a_sum(node: cst.CSTNode, source: Source) -> bool:
    """`jnp.sum(x)`, `x.sum()`."""
    match node:
        case cst.Call(func=cst.Attribute(attr=cst.Name("sum"))) as call:
            return (source.qualified_name(call.func) or _SUM) == _SUM
    return False


def _in_line(code: Part) -> str:
    return " ".join(str(code).split())


def _searched(node: cst.Call, made: Choice, p: cst.BaseExpression, source: Source) -> _Instead:
    """Of many draws each would look at every value: the search as it is, written out, finds their places."""
    assert made.shape is not None
    random, numpy = named("jax.random", node, source), named("jax.numpy", node, source)
    draws = f"{random}.uniform({source.code(made.key)}, {written_shape(made.shape, source)})"
    sums = free_name("sums", node, source)
    cumsum = f"{numpy}.cumsum({source.code(_weights(p, source))})"
    summed = f"{sums} = {cumsum}"
    method = quoted('method="scan_unrolled"', source)
    # A choice counts as jax does, by 64 bits where those are asked for; a search always by 32.
    counted = "" if count_of(made.among, source) is None or only_picks(node, source) else ".astype(int)"
    places = Called(f"{numpy}.searchsorted", (sums, f"{sums}[-1] * (1 - {draws})", method), behind=counted)
    drawn = drawn_from(made.among, places, node, source)
    before = line_before(node, summed, source) if drawn is not None and _is_sure(node, p, source) else None
    edits = (before, *_edits(node, drawn, cumsum, source)) if before is not None and drawn is not None else ()
    among = source.code(made.among)
    into = "" if drawn is not None or not _is_short(among) else f", as indices into `{among}`, if that is an array"
    write = f"`{_in_line(summed)}`, then `{_in_line(drawn or places)}`: the same draws{into}"
    return {"write": write, "edits": edits}


def _is_short(code: str) -> bool:
    return len(code) <= 24 and "\n" not in code
