"""What a Python loop looks like to rules that ask about loops, by its syntax alone, and a default to those that count;
and what Python asks to be true.

In: a statement or a value of the standard `ast`. Out: the names of what is seen there (`facts.Shape`), or parts of it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from fusionlint.source.facts import Shape

# A default of so many layers says that they are few.
FEW = 4
_EARLY = "ensure_compile_time_eval"


def shapes_of_loop(loop: ast.For | ast.AsyncFor) -> Iterator[Shape]:
    """What is seen of a loop's own statements: that a call in it is handed first what it replaces, `x = layer(x)`,
    `x, state = layer(x, state)`, or what is taken out of what it returns, `out = layer(x)` with `x = out[0]`; and that
    it is handed rows besides, `x = layer(x, w[i])`."""
    stored = [] if _is_written_out(loop.iter) else [*_calls_stored(loop.body)]
    taken = _taken_out(loop.body) if stored else {}
    for name, call in stored:
        handed, *_ = (*call.args, *(keyword.value for keyword in call.keywords))
        if names_in(handed).isdisjoint({name, *taken.get(name, ())}):
            continue
        yield "handed on in a loop"
        if call.args[1:] and all(isinstance(other, ast.Subscript) for other in call.args[1:]):
            yield "handed on with rows in a loop"


def _calls_stored(statements: Iterable[ast.stmt]) -> Iterator[tuple[str, ast.Call]]:
    """The calls with arguments whose result, or the first part of it, is all that a statement stores, each with its
    name."""
    for statement in statements:
        match statement:
            case ast.Assign(
                targets=[ast.Name(name) | ast.Tuple(elts=[ast.Name(name), *_]), *_], value=ast.Call() as call
            ) if call.args or call.keywords:
                yield name, call


def is_few(node: ast.expr) -> bool:
    """Whether this is a number of at most FEW, written out."""
    return isinstance(node, ast.Constant) and type(node.value) is int and 0 <= node.value <= FEW


def asked_first(test: ast.expr) -> Iterator[ast.Call]:
    """The calls whose results a statement asks for in any case: `jnp.any(x < 0)` of `not jnp.any(x < 0) or last`. What
    a name holds may be anything."""
    match test:
        case ast.UnaryOp(op=ast.Not(), operand=asked) | ast.BoolOp(values=[asked, *_]):
            yield from asked_first(asked)
        case ast.Compare(ops=[ast.Eq() | ast.NotEq() | ast.Lt() | ast.LtE() | ast.Gt() | ast.GtE()]):
            for side in (test.left, *test.comparators):
                yield from asked_first(side)
        case ast.Call():
            yield test


def is_early(node: ast.expr) -> bool:
    """`jax.ensure_compile_time_eval()`: of what is known when it is compiled a trace has the values."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == _EARLY


def names_in(node: ast.expr) -> set[str]:
    """The variables that an expression mentions."""
    return {name.id for name in ast.walk(node) if isinstance(name, ast.Name)}


def _is_written_out(iterated: ast.expr) -> bool:
    """Whether a loop goes over what stands in the program: a list, or the numbers up to one."""
    match iterated:
        case ast.Call(func=ast.Name("range"), args=args):
            return all(isinstance(arg, ast.Constant) for arg in args)
    return isinstance(iterated, ast.List | ast.Tuple)


def _taken_out(statements: Iterable[ast.stmt]) -> dict[str, set[str]]:
    """What is assigned each variable, or an element of it, somewhere in the statements."""
    found: dict[str, set[str]] = {}
    for node in (node for statement in statements for node in ast.walk(statement)):
        match node:
            case ast.Assign(targets=[ast.Name(taken)], value=ast.Name(whole) | ast.Subscript(value=ast.Name(whole))):
                found.setdefault(whole, set()).add(taken)
    return found
