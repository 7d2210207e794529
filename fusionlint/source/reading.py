"""The text of a file -> its Facts, by the standard `ast`. It costs a tenth of a libcst parse: every file gets it.

What each kind of node says stands here; `fact_walk.py` goes over them.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from fusionlint.source.bindings import OTHER
from fusionlint.source.fact_walk import Reader, dotted
from fusionlint.source.facts import Facts, Raw, other_meaning
from fusionlint.source.shapes import asked_first, is_early, is_few, names_in, shapes_of_loop

# What makes a number of Python of an array.
_NUMBERS = ("float", "int", "bool")
# And an array of numpy, if it is numpy's.
_ARRAYS = (".asarray", ".array")


def read_facts(text: str | bytes, path: str, module: str = "", *, inside: str = "", is_package: bool = False) -> Facts:
    """The facts of one file. SyntaxError (ValueError for NUL bytes) when it does not parse."""
    return Facts(path, inside or path, module, read_raw(text, path), is_package=is_package)


def read_raw(text: str | bytes, path: str) -> Raw:
    """What is kept of a file's text; errors as `read_facts` raises them."""
    reader = Reader(_HANDLERS)
    reader.visit_module(ast.parse(text, filename=path).body)
    return Raw(
        reader.bindings.by_scope,
        reader.functions,
        reader.classes,
        tuple(reader.calls),
        frozenset(reader.attributes),
        frozenset(reader.shapes),
        tuple(reader.statements),
        frozenset(reader.asked),
    )


def _import(reader: Reader, node: ast.Import) -> None:
    _stands(reader)
    for alias in node.names:
        name = alias.asname or alias.name.partition(".")[0]
        reader.bind(name, ("import", alias.name if alias.asname else name, None))


def _import_from(reader: Reader, node: ast.ImportFrom) -> None:
    _stands(reader)
    origin = "." * node.level + (node.module or "")
    joint = "" if origin.endswith(".") else "."
    for alias in node.names:
        if alias.name == "*":  # each under a name of its own, which no code can have
            reader.bind(f"*{origin}", ("import", origin, None))
        else:
            reader.bind(alias.asname or alias.name, ("import", f"{origin}{joint}{alias.name}", None))


def _type_alias(reader: Reader, node: Any) -> None:
    """`type Rows = jax.Array`, which others import."""
    reader.bind(node.name.id, OTHER)
    reader.visit(node.value)


def _stands(reader: Reader) -> None:
    if reader.is_in_block and not reader.scope:
        reader.saw("imports in a block")


def _function(reader: Reader, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
    reader.visit_all(node.decorator_list)
    reader.visit_all(node.args.defaults)
    reader.visit_all(node.args.kw_defaults)
    scope = reader.inner(node.name)
    reader.bind(node.name, ("function", scope, None))
    owner = reader.scope if reader.scope in reader.classes else ""
    decorators = tuple(map(reader.value, node.decorator_list))
    parameters = _parameters(node.args)
    returns = reader.within(scope, parameters, node.body)
    reader.functions[scope] = (node.lineno, decorators, parameters, returns, owner)


def _lambda(reader: Reader, node: ast.Lambda) -> None:
    scope = reader.inner("<lambda>")
    reader.bindings.of(scope)  # taken, before the lambdas among its defaults
    reader.visit_all(node.args.defaults)
    reader.visit_all(node.args.kw_defaults)
    reader.made[node] = scope
    parameters = _parameters(node.args)
    returns = reader.within(scope, parameters, [ast.Return(node.body)])
    reader.functions[scope] = (node.lineno, (), parameters, returns, "")


def _class(reader: Reader, node: ast.ClassDef) -> None:
    reader.visit_all(node.decorator_list)
    scope = reader.inner(node.name)
    reader.bind(node.name, ("class", scope, None))
    reader.visit_all(node.bases)
    reader.visit_all(keyword.value for keyword in node.keywords)
    bases = [base.value if isinstance(base, ast.Subscript) else base for base in node.bases]  # Base, of `Base[State]`
    reader.classes[scope] = tuple(map(reader.value, bases)), tuple(map(reader.value, node.decorator_list))
    reader.within(scope, (), node.body)


def _return(reader: Reader, node: ast.Return) -> None:
    if node.value is not None:
        reader.visit(node.value)
        reader.returns.append(reader.value(node.value))


def _assign(reader: Reader, node: ast.Assign) -> None:
    reader.visit(node.value)
    value = reader.value(node.value)
    for target in node.targets:
        reader.bind_target(target, value)
        reader.visit(target)
        match target, node.value:
            case ast.Name(id=name), ast.IfExp(test=test, orelse=other) if isinstance(value, str):
                reader.bind(other_meaning(name), ("value", dotted(test), reader.value(other)))


def _subscript(reader: Reader, node: ast.Subscript) -> None:
    reader.visit(node.value)
    reader.visit(node.slice)
    if reader.counters and isinstance(node.slice, ast.Compare) and not reader.counters.isdisjoint(names_in(node.slice)):
        reader.saw("masked in a loop")


def _annotated_assign(reader: Reader, node: ast.AnnAssign) -> None:
    if node.value is not None:
        reader.visit(node.value)
        reader.bind_target(node.target, reader.value(node.value))
        if reader.scope in reader.classes and isinstance(node.target, ast.Name) and is_few(node.value):
            reader.shapes.add(("few by default", f"{reader.scope}.{node.target.id}"))
    elif isinstance(node.target, ast.Name):
        reader.bind(node.target.id, OTHER)


def _augmented_assign(reader: Reader, node: ast.AugAssign) -> None:
    reader.visit(node.value)
    reader.visit(node.target)
    reader.bind_target(node.target, None)


def _named_expression(reader: Reader, node: ast.NamedExpr) -> None:
    reader.visit(node.value)
    reader.bind_target(node.target, reader.value(node.value))


def _for(reader: Reader, node: ast.For | ast.AsyncFor) -> None:
    reader.visit(node.iter)
    reader.bind_target(node.target, None)
    outside = reader.counters
    if isinstance(node.target, ast.Name):
        reader.counters = outside | {node.target.id}
    reader.loop(node.lineno, node.body)
    reader.counters = outside
    reader.visit_all(node.orelse)
    for shape in shapes_of_loop(node):
        reader.saw(shape)


def _while(reader: Reader, node: ast.While) -> None:
    reader.loop(node.lineno, [node.test, *node.body])
    _test(reader, node.test)
    reader.visit_all(node.orelse)


def _comprehension(reader: Reader, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> None:
    first, *others = node.generators
    reader.visit(first.iter)
    reader.bind_target(first.target, None)
    reader.loop(node.lineno, first.ifs)
    for generator in others:
        reader.loop(node.lineno, [generator.iter])
        reader.bind_target(generator.target, None)
        reader.loop(node.lineno, generator.ifs)
    reader.loop(node.lineno, [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt])


def _test(reader: Reader, node: ast.expr) -> None:
    """What a statement asks first, once that is visited."""
    for call in asked_first(node):
        reader.asks(reader.value(call))


def _if(reader: Reader, node: ast.If) -> None:
    reader.visit_all((node.test,))
    _test(reader, node.test)
    reader.branch(node.body, node, 0)
    reader.branch(node.orelse, node, 1)


def _try(reader: Reader, node: ast.Try) -> None:
    reader.branch(node.body, node, 0)
    for number, handler in enumerate(node.handlers, start=1):
        reader.branch((handler,), node, number)
    reader.branch(node.orelse, node, 0)
    reader.branch(node.finalbody)


def _if_expression(reader: Reader, node: ast.IfExp) -> None:
    reader.visit_all((node.test,))
    reader.choose((node.body, node.orelse))


def _either(reader: Reader, node: ast.BoolOp) -> None:
    first, *others = node.values
    reader.visit_all((first,))
    reader.choose(others)


def _assert(reader: Reader, node: ast.Assert) -> None:
    reader.visit_all((node.test,))
    _test(reader, node.test)
    if node.msg is not None:
        reader.choose((node.msg,))


def _match_case(reader: Reader, node: ast.match_case) -> None:
    reader.branch((node.pattern, node.guard, *node.body) if node.guard else (node.pattern, *node.body))


def _with(reader: Reader, node: ast.With | ast.AsyncWith) -> None:
    for item in node.items:
        reader.visit(item.context_expr)
        if item.optional_vars is not None:
            reader.bind_target(item.optional_vars, None)
    if any(is_early(item.context_expr) for item in node.items):
        reader.choose(node.body)
    else:
        reader.visit_all(node.body)


def _handler(reader: Reader, node: ast.ExceptHandler) -> None:
    _capture(reader, node.name)
    reader.visit_all([node.type, *node.body])


def _match_as(reader: Reader, node: ast.MatchAs) -> None:
    _capture(reader, node.name)
    reader.visit_all([node.pattern])


def _match_star(reader: Reader, node: ast.MatchStar) -> None:
    _capture(reader, node.name)


def _match_mapping(reader: Reader, node: ast.MatchMapping) -> None:
    _capture(reader, node.rest)
    reader.visit_all([*node.keys, *node.patterns])


def _capture(reader: Reader, name: str | None) -> None:
    if name is not None:
        reader.bind(name, OTHER)


def _call(reader: Reader, node: ast.Call) -> None:
    reader.visit(node.func)
    reader.visit_all(node.args)
    reader.visit_all(keyword.value for keyword in node.keywords)
    value = reader.value
    arguments = tuple(map(value, node.args))
    keywords = tuple((k.arg or "**", value(k.value)) for k in node.keywords)
    reader.made[node] = made = (value(node.func), arguments, keywords)
    reader.calls.append((made, reader.scope, reader.loops, node.lineno))
    if made[0] in _NUMBERS and len(arguments) == 1:
        reader.asks(arguments[0])
    elif arguments and made[0].__class__ is str and made[0].endswith(_ARRAYS):
        reader.asks(made)


def _attribute(reader: Reader, node: ast.Attribute) -> None:
    reader.attributes.add(node.attr)
    reader.visit(node.value)


_HANDLERS: dict[type, Callable[[Reader, Any], None]] = {
    ast.Attribute: _attribute,
    ast.Subscript: _subscript,
    ast.Call: _call,
    ast.Assign: _assign,
    ast.AnnAssign: _annotated_assign,
    ast.AugAssign: _augmented_assign,
    ast.NamedExpr: _named_expression,
    ast.FunctionDef: _function,
    ast.AsyncFunctionDef: _function,
    ast.Lambda: _lambda,
    ast.ClassDef: _class,
    ast.Return: _return,
    ast.Import: _import,
    ast.ImportFrom: _import_from,
    ast.For: _for,
    ast.AsyncFor: _for,
    ast.While: _while,
    ast.ListComp: _comprehension,
    ast.SetComp: _comprehension,
    ast.GeneratorExp: _comprehension,
    ast.DictComp: _comprehension,
    ast.If: _if,
    ast.IfExp: _if_expression,
    ast.BoolOp: _either,
    ast.Assert: _assert,
    ast.Try: _try,
    ast.match_case: _match_case,
    ast.With: _with,
    ast.AsyncWith: _with,
    ast.ExceptHandler: _handler,
    ast.MatchAs: _match_as,
    ast.MatchStar: _match_star,
    ast.MatchMapping: _match_mapping,
}
if hasattr(ast, "TypeAlias"):  # of Python 3.12
    _HANDLERS[ast.TypeAlias] = _type_alias


def _parameters(arguments: ast.arguments) -> tuple[str, ...]:
    found = [*arguments.posonlyargs, *arguments.args]
    if arguments.vararg:
        found.append(arguments.vararg)
    found += arguments.kwonlyargs
    if arguments.kwarg:
        found.append(arguments.kwarg)
    return tuple([one.arg for one in found])
