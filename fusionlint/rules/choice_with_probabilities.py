"""`jax.random.choice(key, n, p=p)`: a running sum and a search through it, in a loop, where one reduction draws."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from fusionlint.finding import Finding
from fusionlint.patterns.at import is_literal
from fusionlint.patterns.choice import CHOICE, Choice, choice, coin, listed, written_shape
from fusionlint.rule import Rule
from fusionlint.source.tree import Source

rule = Rule(__name__, harm="fusion")


@rule.source(cst.Call, calls=(CHOICE,))
def choice_with_p(node: cst.Call, source: Source) -> Iterator[Finding]:
    """A draw with replacement and probabilities, in code that runs under a trace."""
    made = choice(node, source)
    if made is None or made.p is None or not source.is_traced(node):
        return
    is_many = made.shape is not None and not is_literal(made.shape)
    yield source.finding(
        node,
        "`choice` with `p` sums the probabilities up and searches the sums in a loop",
        write=_two(made, made.p, source) or (_sorted if is_many else _few)(made, made.p, source),
        pair=1 if is_many else 0,
    )


def _two(made: Choice, p: cst.BaseExpression, source: Source) -> str | None:
    """A coin, where both values and both probabilities are written out."""
    values, chances = listed(made.among, source), listed(p, source)
    if values is None or chances is None or len(values) != 2 or len(chances) != 2:
        return None
    numpy = source.alias("jax.numpy") or "jax.numpy"
    first, second = (source.code(value) for value in values)
    return f"{numpy}.where({coin(made.key, source.code(chances[0]), made.shape, source)}, {first}, {second})"


def _few(made: Choice, p: cst.BaseExpression, source: Source) -> str:
    random, numpy = source.alias("jax.random") or "jax.random", source.alias("jax.numpy") or "jax.numpy"
    shape = f", shape={written_shape(made.shape, source)}" if made.shape is not None else ""
    text = f"{random}.categorical({source.code(made.key)}, {numpy}.log({source.code(p)}){shape})"
    is_index = isinstance(made.among, cst.Integer) or source.calls(made.among, "jax.numpy.arange")
    among = source.code(made.among)
    if not is_index:
        text += f" (an index into `{among}`, if an array)" if _is_short(among) else " (an index)"
    return text


def _sorted(made: Choice, p: cst.BaseExpression, source: Source) -> str:
    """Of many draws each would look at every value: one sort of draws and sums together finds all places."""
    assert made.shape is not None
    random, numpy = source.alias("jax.random") or "jax.random", source.alias("jax.numpy") or "jax.numpy"
    draws = f"{random}.uniform({source.code(made.key)}, {written_shape(made.shape, source)})"
    return (
        f"`sums = {numpy}.cumsum({source.code(p)})`, then "
        f'`{numpy}.searchsorted(sums, sums[-1] * (1 - {draws}), method="sort")`: the same draws, as indices'
    )


def _is_short(code: str) -> bool:
    return len(code) <= 24 and "\n" not in code
