"""What host code computes of the results of a compiled call, one operation after the other, each dispatched by itself.

In: a def of a Source. What is brought to the host, `np.asarray(reward)`, is computed with there, and is none of it.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from fusionlint.patterns.dispatch.jit import is_jitted
from fusionlint.patterns.loops.carry import read
from fusionlint.source.tree import Source
from fusionlint.source.walk import children, dotted

_OF_JAX = ("jax.numpy.", "jax.nn.", "jax.random.", "jax.lax.")
# What makes of an array something of the host.
_FETCHES = frozenset(("float", "int", "bool", "len", "jax.device_get"))
_METHODS = frozenset(("item", "tolist"))


def operations_after(function: cst.FunctionDef, source: Source) -> list[cst.BaseExpression]:
    """The operations of a function's own statements, those behind an `if` aside, that compute with what a compiled call
    in it returned."""
    held: set[str] = set()
    found: list[cst.BaseExpression] = []
    for statement in _statements(function.body):
        value = statement.value if isinstance(statement, cst.Assign | cst.AugAssign | cst.Return) else None
        if value is None:
            continue
        is_compiled = isinstance(value, cst.Call) and is_jitted(value.func, source)
        made = [] if is_compiled else list(_operations(value, held, source))
        found += made
        names = set(_targets(statement))
        if is_compiled or (made or _is_part(value, held, source)):
            held |= names
        else:
            held -= names
    return found


def _statements(block: cst.CSTNode) -> Iterator[cst.BaseSmallStatement]:
    """What always runs, in order: what stands in a `with` too."""
    for line in children(block):
        match line:
            case cst.SimpleStatementLine(body=body):
                yield from body
            case cst.With(body=inner):
                yield from _statements(inner)


def _targets(statement: cst.BaseSmallStatement) -> Iterator[str]:
    match statement:
        case cst.Assign(targets=targets):
            for target in targets:
                several = target.target.elements if isinstance(target.target, cst.Tuple) else ()
                yield from (dotted(each) for each in (*(part.value for part in several), target.target) if dotted(each))
        case cst.AugAssign(target=target):
            yield dotted(target)


def _operations(node: cst.CSTNode, held: set[str], source: Source) -> Iterator[cst.BaseExpression]:
    """Arithmetic and calls of jax under `node` that read what is on the device."""
    if isinstance(node, cst.Lambda | cst.BaseComp) or _is_fetched(node, source):
        return
    for child in children(node):
        yield from _operations(child, held, source)
    match node:
        case cst.BinaryOperation() | cst.Comparison() | cst.UnaryOperation(operator=cst.Minus() | cst.BitInvert()):
            is_one = True
        case cst.Call(func=func):
            is_one = (source.qualified_name(func) or "").startswith(_OF_JAX)
        case _:
            is_one = False
    if is_one and isinstance(node, cst.BaseExpression) and _reads(node, held, source):
        yield node


def _reads(node: cst.CSTNode, held: set[str], source: Source) -> bool:
    """Whether `node` reads one of the names that hold what is on the device, and not on its way to the host."""
    if _is_fetched(node, source):
        return False
    if isinstance(node, cst.Name | cst.Attribute):
        return not held.isdisjoint(read(node))
    return any(_reads(child, held, source) for child in children(node))


def _is_part(value: cst.BaseExpression, held: set[str], source: Source) -> bool:
    """Whether a value is one of those names, a field of one, or what a method of one returns: `timestep.last()`."""
    match value:
        case cst.Name() | cst.Attribute():
            return _reads(value, held, source)
        case cst.Subscript(value=inner) | cst.Call(func=cst.Attribute(value=inner)) if not _is_fetched(value, source):
            return _is_part(inner, held, source)
    return False


def _is_fetched(node: cst.CSTNode, source: Source) -> bool:
    match node:
        case cst.Call(func=cst.Attribute(attr=cst.Name(method))) if method in _METHODS:
            return True
        case cst.Call(func=func):
            name = source.qualified_name(func) or dotted(func)
            return name.startswith("numpy.") or name in _FETCHES
        case cst.Attribute(attr=cst.Name("shape" | "ndim" | "dtype" | "size")):
            return True
    return False
