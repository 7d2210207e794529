"""One place of each row written by a scatter: a diagonal, or the ones of a one-hot."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from fusionlint.finding import Finding
from fusionlint.patterns.at import Part, Write, at_write
from fusionlint.rule import Rule
from fusionlint.source.tree import Source

rule = Rule(__name__, harm="fusion")

_ARANGE = ("jax.numpy.arange",)
_DIAGONALS = ("jax.numpy.diag_indices", "jax.numpy.diag_indices_from")
_LONG = 40


@rule.source(cst.Call, attributes=("at",))
def scattered(node: cst.Call, source: Source) -> Iterator[Finding]:
    """`.at[diag_indices(n)]`, `.at[arange(n), arange(n)]`, and `zeros(...).at[arange(n), i].set(1)`."""
    write = at_write(node)
    if write is None or write.value is None or write.method not in ("set", "add", "multiply", "mul"):
        return
    if not source.is_traced(node):
        return
    if _is_diagonal(write, source):
        if at_write(write.array) is None:  # else chained-at-set speaks
            yield source.finding(
                node, "a scatter writes the diagonal, by kernels of its own", write=_with_eye(write, source)
            )
    elif _is_one_hot(write, source):
        nn = f"{source.alias('jax') or 'jax'}.nn.one_hot"
        yield source.finding(
            node,
            "a scatter writes the one of each row into an array of zeros",
            write=f"{nn}({_shown(write.index[1], source)}, ...)",
        )


def _is_diagonal(write: Write, source: Source) -> bool:
    match write.index:
        case [one]:
            return source.calls(_meant(one, source), *_DIAGONALS)
        case [one, other]:
            first, second = _meant(one, source), _meant(other, source)
            return _is_arange(first, source) and source.code(first) == source.code(second)
    return False


def _is_one_hot(write: Write, source: Source) -> bool:
    """Whether zeros get the literal 1 at one index of each row."""
    if len(write.index) != 2 or write.method not in ("set", "add") or not _is_one(write.value):
        return False
    rows, places = (_meant(part, source) for part in write.index)
    if not _is_arange(rows, source) or isinstance(places, cst.Slice | cst.Integer | cst.UnaryOperation):
        return False
    return _is_zeros(write.array, source)


def _is_zeros(array: cst.BaseExpression, source: Source) -> bool:
    fresh = _meant(array, source)
    return isinstance(fresh, cst.Call) and source.calls(fresh, "jax.numpy.zeros", "jax.numpy.zeros_like")


def _is_arange(part: Part, source: Source) -> bool:
    return source.calls(part, *_ARANGE) and isinstance(part, cst.Call) and len(part.args) == 1


def _meant(part: Part, source: Source) -> Part:
    return (source.value(part) or part) if isinstance(part, cst.Name) else part


def _is_one(value: cst.BaseExpression | None) -> bool:
    match value:
        case cst.Integer() | cst.Float():
            return value.evaluated_value == 1
        case cst.Name(value="True"):
            return True
    return False


def _with_eye(write: Write, source: Source) -> str:
    """`jnp.where(jnp.eye(n, dtype=bool), value, K)`, which holds for a scalar and for a vector."""
    assert write.value is not None
    jnp = source.alias("jax.numpy") or "jnp"
    array, value = _shown(write.array, source), _shown(write.value, source)
    eye = f"{jnp}.eye({_length(write, source)}, dtype=bool)"
    if write.method in ("set", "add") and _is_zeros(write.array, source):
        return f"{value} * {jnp}.eye({_length(write, source)})"
    if write.method == "set":
        if isinstance(write.value, cst.Name) and write.value.value == "False":
            return f"{array} & ~{eye}"
        return f"{jnp}.where({eye}, {value}, {array})"
    sign = "+" if write.method == "add" else "*"
    return f"{jnp}.where({eye}, {array} {sign} ({value}), {array})"


def _length(write: Write, source: Source) -> str:
    """The n of `arange(n)` or `diag_indices(n)`."""
    match _meant(write.index[0], source):
        case cst.Call(args=[cst.Arg(value=length), *_]) as call if not source.calls(call, _DIAGONALS[1]):
            return _shown(length, source)
    return f"{_shown(write.array, source)}.shape[0]"


def _shown(node: Part, source: Source) -> str:
    text = source.code(node)
    return text if "\n" not in text and len(text) <= _LONG else "..."
