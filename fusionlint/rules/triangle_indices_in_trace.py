"""The places of a triangle, found anew in every call: `distances[jnp.triu_indices(n, 1)]`."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from fusionlint.finding import Edit, Finding
from fusionlint.patterns.at import elements, inside
from fusionlint.patterns.calls import brief
from fusionlint.patterns.concrete import is_concrete
from fusionlint.patterns.often import is_called_as_once, is_for_a_picture, is_memoized
from fusionlint.rule import Rule
from fusionlint.source.facts import last_name
from fusionlint.source.tree import Source

rule = Rule(__name__, harm="fusion")

_NAMES = ("triu_indices", "tril_indices", "triu_indices_from", "tril_indices_from")
_INDICES = tuple(f"jax.numpy.{name}" for name in _NAMES)
_LONG = 60


@rule.source("Call", calls=_INDICES)
def triangle_found_anew(node: cst.Call, source: Source) -> Iterator[Finding]:
    """Wherever a trace may get to, but for what runs once."""
    if not source.calls(node, *_INDICES) or not source.is_traced(node) or is_concrete(node, source):
        return
    place = source.place(node)
    name = (source.qualified_name(node.func) or "").rpartition(".")[2]
    if last_name(place.scope) == name:  # which only hands on what jax has, to whoever asks for that
        return
    if _is_of_a_class(node, source):
        return
    if is_called_as_once(last_name(place.scope)) or is_memoized(source.project, place):
        return
    if is_for_a_picture(source.project, place) or _is_looked_into(node, source):
        return
    numpy = source.alias_at(node, "numpy")
    given = brief(", ".join(source.code(arg).rstrip(", ") for arg in node.args), _LONG)
    yield source.finding(
        node,
        "the places of a triangle are found by a running sum and a search in every call, and gathers and scatters get "
        "places that XLA does not know",
        write=f"{numpy or source.alias('numpy') or 'np'}.{name}({given}), which is a constant of the program",
        edits=_fix(node, name, numpy, source),
    )


def _is_of_a_class(node: cst.Call, source: Source) -> bool:
    """Whether a class method around makes an object of what it is given: once, and then others work with it."""
    function = source.function(node)
    return isinstance(function, cst.FunctionDef) and any(
        isinstance(each.decorator, cst.Name) and each.decorator.value == "classmethod" for each in function.decorators
    )


def _is_looked_into(node: cst.Call, source: Source) -> bool:
    """Whether one of the places is looked up by a name, `rows[e]`: of numpy's a tracer can look up none."""
    statement = source.parent(node)
    names = inside(statement.targets[0].target) if isinstance(statement, cst.Assign) else ()
    reads = (read for name in names if isinstance(name, cst.Name) for read in source.reads(name))
    above = ((read, source.parent(read)) for read in reads)
    return any(isinstance(one, cst.Subscript) and one.value is read and _by_a_name(one) for read, one in above)


def _by_a_name(read: cst.Subscript) -> bool:
    return any(isinstance(part, cst.Name | cst.Attribute) for part in elements(read.slice))


def _fix(node: cst.Call, name: str, numpy: str | None, source: Source) -> tuple[Edit, ...]:
    """numpy's function in place of jax's, which takes the same.

    Not safe: what is returned is numpy's, which has no `.at`.
    """
    return (source.replace(node.func, f"{numpy}.{name}"),) if numpy is not None else ()
