"""A project's own words for what jax.lax does: `def cond(pred, a, f, b, g): return lax.cond(pred, a, f, b, g)`, beside
what it does instead, in Python, for who looks for a mistake.

In: the facts of a function. Out: the calls to which it hands all that it is handed.
"""

from __future__ import annotations

from collections.abc import Iterator

from fusionlint.source.facts import Function, Value

# What a project may have a word of its own for.
OF_LAX = frozenset(f"jax.lax.{name}" for name in ("scan", "fori_loop", "while_loop", "cond", "switch", "map"))
# What these are handed at least.
_FEWEST = 2


def passed_on(function: Function) -> Iterator[Value]:
    """The calls that a def, no method, returns, of all its parameters in their order, or each by its own name."""
    if not function.owner and not function.decorators and len(function.parameters) >= _FEWEST:
        yield from (value for value in function.returns if value.is_call and _is_of_all(value, function.parameters))


def _is_of_all(call: Value, parameters: tuple[str, ...]) -> bool:
    given = tuple(argument.name for argument in call.arguments)
    named = {name: value.name for name, value in call.keywords}
    return given == parameters[: len(given)] and named == {name: name for name in parameters[len(given) :]}
