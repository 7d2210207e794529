"""`jax.random.choice(key, n, p=p)`: a running sum and a search through it, in a loop, where one reduction draws."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from fusionlint.finding import Finding
from fusionlint.patterns.code.at import inside, is_literal, is_none, names_read
from fusionlint.patterns.compiled.searches import searched_for
from fusionlint.patterns.operations.choice import (
    CHOICE,
    Choice,
    choice,
    coin,
    is_beside_a_call,
    is_drawn_once,
    is_one,
    listed,
    number,
    starts_a_loop,
    written_shape,
)
from fusionlint.patterns.operations.softmax import SOFTMAX
from fusionlint.patterns.runs.concrete import is_concrete
from fusionlint.patterns.runs.under import VMAPS
from fusionlint.patterns.values.kinds import kind
from fusionlint.rule import Rule
from fusionlint.source.facts import Value
from fusionlint.source.tree import Source

if TYPE_CHECKING:
    from fusionlint.hlo import parse as hlo
    from fusionlint.hlo.barriers import Barrier

rule = Rule(__name__, harm="fusion")

_FACTORIZATIONS = tuple(
    f"jax.{module}.linalg.{name}" for module in ("numpy", "scipy") for name in ("svd", "eigh", "eig", "qr", "schur")
)
_OF_LOGITS = ("jax.numpy.exp", *SOFTMAX)


@rule.source("Call", calls=(CHOICE,))
def choice_with_p(node: cst.Call, source: Source) -> Iterator[Finding]:
    """Draws with replacement and probabilities, in code that runs under a trace."""
    made = choice(node, source)
    if made is None or made.p is None or not source.is_traced(node) or is_concrete(node, source):
        return
    if not _is_given(made.p, source) or is_drawn_once(node, source) or starts_a_loop(node, source):
        return
    if is_beside_a_call(node, _FACTORIZATIONS, source) or _is_mapped_over_keys(node, made.p, source):
        return  # beside a factorization no draw counts
    is_many = made.shape is not None and not is_literal(made.shape)
    yield source.finding(
        node,
        "`choice` with `p` sums the probabilities up and searches the sums in a loop",
        write=_two(made, made.p, source) or (_searched if is_many else _few)(made, made.p, source),
        pair=1 if is_many else 0,
    )


@rule.source("Call", calls=(CHOICE,))
def one_without_replacement(node: cst.Call, source: Source) -> Iterator[Finding]:
    """One draw with probabilities that says `replace=False`: several are another distribution."""
    made = choice(node, source, replace=False)
    if made is None or made.p is None or not is_one(made.shape) or not source.is_traced(node):
        return
    if not is_concrete(node, source):
        yield source.finding(
            node,
            "`choice` with `p` and `replace=False` sorts noise for everything to draw one, with nothing to replace",
            write=_few(made, made.p, source),
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


def _is_mapped_over_keys(node: cst.Call, p: cst.BaseExpression, source: Source) -> bool:
    """Whether it is all that `jax.vmap(lambda key: choice(key, n, p=p))` does: many draws from one table, which is
    summed up once, where a categorical would draw as many numbers for each as the table has."""
    function = source.parent(node)
    if not isinstance(function, cst.Lambda) or function.body is not node:
        return False
    mapped = source.handed_to(function)
    own = {parameter.name.value for parameter in function.params.params}
    is_the_same = own.isdisjoint(name.value for name in names_read(p)) and listed(p, source) is None
    return mapped is not None and source.calls(mapped, *VMAPS) and is_the_same


def _is_given(p: cst.BaseExpression, source: Source) -> bool:
    """Whether there are probabilities at all: of a parameter that is None by default, and that nobody asks for that,
    some call has to be seen that hands them on. Who calls a method is seldom seen."""
    parameter = source.binder(p) if isinstance(p, cst.Name) else None
    match parameter:
        case cst.Param(name=cst.Name(name), default=cst.Name("None")):
            function = source.nearest(parameter, cst.FunctionDef)
            if function is None or _asks(function, name) or source.scope(function) in source.facts.raw.classes:
                return True
            called = source.project.name_of(source.body_place(function))
            place = next((i for i, each in enumerate(function.params.params) if each is parameter), None)
            return any(_hands(call.value, name, place) for _, call in source.project.calls_of(called))
    return True


def _asks(function: cst.FunctionDef, name: str) -> bool:
    """Whether something is done by whether the parameter is None: `if p is None: ...`."""
    tests = (node.test for node in inside(function.body) if isinstance(node, cst.If | cst.IfExp))
    return any(name == read.value for test in tests for read in names_read(test))


def _hands(call: Value, name: str, place: int | None) -> bool:
    return name in dict(call.keywords) or (place is not None and len(call.arguments) > place)


def _two(made: Choice, p: cst.BaseExpression, source: Source) -> str | None:
    """A coin, where both values and both probabilities are written out."""
    values, chances = listed(made.among, source), listed(p, source)
    if values is None or chances is None or len(values) != 2 or len(chances) != 2:
        return None
    numpy = source.alias("jax.numpy") or "jax.numpy"
    first, second = (source.code(value) for value in values)
    thrown = coin(made.key, _chance(chances[0], chances[1], source), made.shape, source)
    if (first, second) == ("True", "False"):
        return thrown
    return f"{numpy}.where({thrown}, {first}, {second})"


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


def _few(made: Choice, p: cst.BaseExpression, source: Source) -> str:
    random, numpy = source.alias("jax.random") or "jax.random", source.alias("jax.numpy") or "jax.numpy"
    shape = f", shape={written_shape(made.shape, source)}" if made.shape is not None else ""
    text = f"{random}.categorical({source.code(made.key)}, {_logits(p, source, numpy)}{shape})"
    among = source.code(made.among)
    if not _is_index(made, source):
        text += f" (an index into `{among}`, if an array)" if _is_short(among) else " (an index)"
    return text


def _logits(p: cst.BaseExpression, source: Source, numpy: str) -> str:
    """The logarithm of what `p` is in proportion to: of `jnp.exp(x)` and `jax.nn.softmax(x)` it is there already."""
    match p:
        case cst.Call(args=[cst.Arg(value=x, keyword=None, star="")]) if source.calls(p, *_OF_LOGITS):
            return _in_one_line(x, source)
    return f"{numpy}.log({_in_one_line(p, source)})"


def _in_one_line(node: cst.BaseExpression, source: Source) -> str:
    if isinstance(node, cst.IfExp) and is_none(node.orelse):
        node = node.body  # of nothing there are no sums
    return " ".join(source.code(node).split())


def _searched(made: Choice, p: cst.BaseExpression, source: Source) -> str:
    """Of many draws each would look at every value: the search as it is, written out, finds their places."""
    assert made.shape is not None
    random, numpy = source.alias("jax.random") or "jax.random", source.alias("jax.numpy") or "jax.numpy"
    draws = f"{random}.uniform({source.code(made.key)}, {written_shape(made.shape, source)})"
    among = source.code(made.among)
    into = "" if _is_index(made, source) or not _is_short(among) else f" into `{among}`, if that is an array"
    return (
        f"`sums = {numpy}.cumsum({_in_one_line(p, source)})`, then "
        f'`{numpy}.searchsorted(sums, sums[-1] * (1 - {draws}), method="scan_unrolled")`: the same draws, as indices'
        f"{into}"
    )


def _is_index(made: Choice, source: Source) -> bool:
    """Whether what is drawn is a number below another, and no element of an array."""
    return kind(made.among, source) == "scalar" or source.calls(made.among, "jax.numpy.arange")


def _is_short(code: str) -> bool:
    return len(code) <= 24 and "\n" not in code
