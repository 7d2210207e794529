"""The defs and lambdas of a file: which one a name stands for, what it is handed, and what it returns.

In: expressions of a Source, or places. What another file defines is not seen here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias, TypeVar

import libcst as cst

from fusionlint.patterns.code.at import inside
from fusionlint.source.places import Place
from fusionlint.source.tree import Source
from fusionlint.source.walk import children

Node = TypeVar("Node", bound="cst.CSTNode")
Function: TypeAlias = "cst.FunctionDef | cst.Lambda"


def function_named(node: cst.BaseExpression, source: Source) -> Function | None:
    """The def or lambda of this file that `node` stands for."""
    if isinstance(node, cst.Name) and isinstance(value := source.value(node), cst.Lambda):
        node = value
    if isinstance(node, cst.Lambda):
        return node
    place = source.project.find(source.qualified_name(node))
    return next(iter(definitions([place], source)), None) if place else None


def behind_a_lambda(function: Function, source: Source) -> Function:
    """`turn` of `lambda carry: turn(carry)`, which hands on what it is given; else the function itself."""
    match function:
        case cst.Lambda(body=cst.Call(func=called, args=args)):
            own = [each.name.value for each in parameters(function)]
            given = [arg.value.value if isinstance(arg.value, cst.Name) and not arg.star else "" for arg in args]
            named = function_named(called, source) if given == own else None
            return named if named is not None else function
    return function


def result_of(function: Function, source: Source) -> cst.BaseExpression | None:
    """What a function returns, where it returns in one place only."""
    if isinstance(function, cst.Lambda):
        return function.body
    found = [*returns_of(function, source)]
    return found[0].value if len(found) == 1 else None


def returns_of(function: cst.FunctionDef, source: Source) -> Iterator[cst.Return]:
    """The `return`s of a def itself, not of functions inside it."""
    return own_parts(function, cst.Return, source)


def own_parts(function: Function, kind: type[Node], source: Source) -> Iterator[Node]:
    """The nodes of a type that stand in a function itself, not in functions inside it."""
    return (part for part in inside(function.body, kind) if source.function(part) is function)


def definitions(places: list[Place], source: Source) -> list[Function]:
    """The functions of this file that stand at `places`."""
    found = [source.definition(place.scope) for place in dict.fromkeys(places) if place.path == source.path]
    return [node for node in found if isinstance(node, cst.FunctionDef | cst.Lambda)]


def mentioned(node: cst.CSTNode, source: Source) -> Iterator[str]:
    """The full names of what the code in `node` reads from modules, `jnp.nan`; what it imports is no reading."""
    if isinstance(node, cst.Import | cst.ImportFrom):
        return
    if isinstance(node, cst.Attribute) and (name := source.qualified_name(node)) is not None:
        yield name
    for child in children(node):
        yield from mentioned(child, source)


def parameters(function: Function) -> Iterator[cst.Param]:
    """What a function takes, but for `*args` and `**kwargs`."""
    yield from (*function.params.posonly_params, *function.params.params, *function.params.kwonly_params)
