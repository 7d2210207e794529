"""Reading `jnp.concatenate([a, b], axis=1)` and its like: shared by the rules about joined arrays."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from fusionlint.patterns.code.at import TO_JAX_ARRAY, constant, listed
from fusionlint.patterns.code.calls import argument
from fusionlint.source.facts import Call
from fusionlint.source.tree import Source
from fusionlint.source.walk import children

_CONCATENATES = ("jax.numpy.concatenate", "jax.numpy.concat", "jax.lax.concatenate", "jax.numpy.hstack")
_APPEND = "jax.numpy.append"
CONCATENATES = frozenset((*_CONCATENATES, _APPEND))
_STACKS = frozenset(("jax.numpy.stack", "jax.numpy.vstack", "jax.numpy.dstack", "jax.numpy.column_stack"))
JOINS = CONCATENATES.union(_STACKS, TO_JAX_ARRAY)


def lists_parts(call: Call) -> bool:
    """Whether the facts of a call say that two parts or more are written out in it."""
    arguments = call.value.arguments
    return len(arguments[:1] and arguments[0].arguments) > 1 or len(arguments) > 1


def parts(call: cst.Call, source: Source) -> tuple[cst.BaseExpression, ...]:
    """The arrays that `call` joins, where they are written out in it."""
    if source.calls(call, _APPEND):
        found = [argument(call, 0, "arr"), argument(call, 1, "values")]
        return tuple(part for part in found if part is not None)
    return tuple(listed(call.args[0].value if call.args and not call.args[0].star else None) or ())


def axis(call: cst.Call, source: Source) -> int | None:
    """The axis that `call` joins along, None where that is not plain to see."""
    name = source.qualified_name(call.func) or ""
    if name in TO_JAX_ARRAY or name == "jax.numpy.vstack":
        return 0
    if name in ("jax.numpy.column_stack", "jax.numpy.hstack", "jax.numpy.dstack", _APPEND):
        return None
    position, word = (1, "dimension") if name == "jax.lax.concatenate" else (1, "axis")
    given = argument(call, position, word)
    return 0 if given is None else constant(given)


def builds_array(call: cst.Call, source: Source) -> bool:
    """Whether `call` joins computed values: of `jnp.array` only a flat list of them does."""
    if source.qualified_name(call.func) not in TO_JAX_ARRAY:
        return True
    found = parts(call, source)
    computed = [part for part in found if any(isinstance(node, cst.Name) for node in _within(part))]
    return len(computed) > 1 and not any(isinstance(part, cst.List | cst.Tuple) for part in found)


def _within(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    yield node
    for child in children(node):
        yield from _within(child)
