"""One matrix solved with several times: `jnp.linalg.solve(m, a), jnp.linalg.solve(m.T, b)`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

import libcst as cst

from fusionlint.finding import Finding
from fusionlint.patterns.at import inside
from fusionlint.patterns.calls import argument
from fusionlint.rule import Rule
from fusionlint.source.traced import is_idle
from fusionlint.source.tree import Source

rule = Rule(__name__, harm="fusion")

_SOLVES = ("jax.numpy.linalg.solve", "jax.scipy.linalg.solve")
_TRANSPOSES = frozenset(("T", "mT"))
# A right-hand side seldom goes through more names than this.
_DEPTH = 8

Body: TypeAlias = "cst.FunctionDef | cst.Lambda"


@rule.source("FunctionDef", "Lambda", calls=_SOLVES)
def solved_several_times(body: Body, source: Source) -> Iterator[Finding]:
    """The solves of one function's own code, by the variable that is their matrix; each told once."""
    groups: dict[tuple[cst.Name, tuple[str, ...]], list[tuple[cst.Call, bool]]] = {}
    for node in inside(body.body):
        if isinstance(node, cst.Call) and source.calls(node, *_SOLVES) and source.function(node) is body:
            name, transposed = _matrix(node)
            written = source.written(name) if name is not None else None
            if written is not None:
                groups.setdefault((written, _options(node, source)), []).append((node, transposed))
    for solves in groups.values():
        yield from _told(solves, source)


def _told(solves: list[tuple[cst.Call, bool]], source: Source) -> Iterator[Finding]:
    first, flipped = solves[0]
    if not source.is_traced(first) or is_idle(source.project, source.place(first)):
        return
    later = [(call, turned) for call, turned in solves[1:] if not source.apart(first, call)]
    turned = [call for call, other in later if other != flipped]
    beside = [call for call, other in later if other == flipped and not _needs(call, source, _DEPTH)]
    if turned:
        yield source.finding(
            turned[0],
            "the matrix and its transpose are factored apart, with a chain of library calls each",
            write="factors = lu_factor(m) of jax.scipy.linalg, and lu_solve(factors, b, trans=1) for the transpose",
            pair=1,
        )
    elif beside:
        yield source.finding(
            beside[0],
            "one more solve with this matrix is one more chain of library calls",
            write="one solve with the right-hand sides side by side, jnp.concatenate([a, b], axis=-1), split after it",
        )


def _options(call: cst.Call, source: Source) -> tuple[str, ...]:
    """What else the call is told, `assume_a` say: other methods share nothing."""
    return tuple(sorted(source.code(arg) for arg in call.args[2:]))


def _matrix(call: cst.Call) -> tuple[cst.Name | None, bool]:
    """The name of the matrix, and whether it is transposed."""
    match argument(call, 0, "a"):
        case cst.Name() as name:
            return name, False
        case cst.Attribute(value=cst.Name() as name, attr=cst.Name(attr)) if attr in _TRANSPOSES:
            return name, True
    return None, False


def _needs(call: cst.Call, source: Source, depth: int) -> bool:
    """Whether the right-hand side is, near or far, made of what a solve returned; where nobody can see, it is."""
    right = argument(call, 1, "b")
    return right is None or _is_of_a_solve(right, source, depth)


def _is_of_a_solve(node: cst.CSTNode, source: Source, depth: int) -> bool:
    if depth == 0:
        return True
    for part in inside(node):
        if source.calls(part, *_SOLVES):
            return True
        value = source.value(part) if isinstance(part, cst.Name) else None
        if value is not None and _is_of_a_solve(value, source, depth - 1):
            return True
    return False
