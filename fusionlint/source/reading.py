"""The text of a file -> its Facts, by the standard `ast`. It costs a tenth of a libcst parse: every file gets it.

The walk over the tree costs less than the parse as long as it is one function call a node and makes no objects but
those that are kept.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from typing import Any

from fusionlint.source.bindings import OTHER, Bindings
from fusionlint.source.facts import (
    Facts,
    Raw,
    RawBinding,
    RawCall,
    RawPart,
    RawStatement,
    RawValue,
    Shape,
    other_meaning,
)
from fusionlint.source.shapes import is_few, names_in, shapes_of_loop

_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
# A class of more lines is parsed in parts.
_LONG = 40


def read_facts(text: str | bytes, path: str, module: str = "", *, inside: str = "", is_package: bool = False) -> Facts:
    """The facts of one file. SyntaxError (ValueError for NUL bytes) when it does not parse."""
    return Facts(path, inside or path, module, read_raw(text, path), is_package=is_package)


def read_raw(text: str | bytes, path: str) -> Raw:
    """What is kept of a file's text; errors as `read_facts` raises them."""
    reader = _Reader()
    reader.visit_module(ast.parse(text, filename=path).body)
    return Raw(
        reader.bindings.by_scope,
        reader.functions,
        reader.classes,
        tuple(reader.calls),
        frozenset(reader.attributes),
        frozenset(reader.shapes),
        tuple(reader.statements),
    )


def dotted(node: ast.expr) -> str:
    """`jnp.linalg.norm` as written, "" when it is not a chain of names."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return ""
    return ".".join([node.id, *reversed(parts)]) if parts else node.id


class _Reader:
    """Walks a file once, keeping the scope and the loops around the place where it stands."""

    def __init__(self) -> None:
        self.scope = ""
        self.loops: tuple[int, ...] = ()
        self.counters: frozenset[str] = frozenset()  # the variables of those that are `for` loops over one
        self.bindings = Bindings()
        self.functions: dict[str, tuple[int, tuple[RawValue, ...], tuple[str, ...], tuple[RawValue, ...], str]] = {}
        self.classes: dict[str, tuple[tuple[RawValue, ...], tuple[RawValue, ...]]] = {}
        self.returns: list[RawValue] = []
        self.calls: list[RawCall] = []
        self.attributes: set[str] = set()
        self.shapes: set[tuple[str, str]] = set()
        self.statements: list[RawStatement] = []
        self.opened = 0  # scopes of the file's own level
        self.made: dict[ast.expr, RawValue] = {}  # of calls and lambdas, which their own visit makes

    def visit(self, node: Any) -> None:
        kind = node.__class__
        if handler := _HANDLERS.get(kind):
            handler(self, node)
            return
        for name in _FIELDS.get(kind, ()):
            child = getattr(node, name)
            if child.__class__ is list:
                for one in child:
                    if one.__class__ in _FIELDS:
                        self.visit(one)
            elif child.__class__ in _FIELDS:
                self.visit(child)

    def visit_all(self, nodes: Iterable[Any]) -> None:
        for node in nodes:
            if node.__class__ in _FIELDS:  # names and constants, half of a tree, are not
                self.visit(node)

    def visit_module(self, statements: list[ast.stmt]) -> None:
        """Visits the statements of the file's own level, and notes where each of them stands."""
        for node in statements:
            first, last, is_definition = _part(node)
            is_long = node.__class__ is ast.ClassDef and last - first >= _LONG
            parts = tuple(map(_part, node.body)) if is_long else ()  # type: ignore[attr-defined]
            self.statements.append((first, last, is_definition, self.opened, parts))
            self.visit(node)

    def value(self, node: ast.expr) -> RawValue:
        """What is kept of an expression that was visited."""
        kind = node.__class__
        if kind is ast.Name:
            return node.id  # type: ignore[attr-defined, no-any-return]
        if kind is ast.Attribute:
            return dotted(node) or _place(node)  # type: ignore[arg-type]
        if kind is ast.Call or kind is ast.Lambda:
            return self.made[node]
        if kind is ast.Tuple or kind is ast.List:
            return (tuple(map(self.value, node.elts)),)  # type: ignore[attr-defined]
        if kind is ast.IfExp:
            return self.value(node.body)  # type: ignore[attr-defined]
        return None

    def bind(self, name: str, binding: RawBinding) -> None:
        self.bindings.bind(self.scope, name, binding)

    def bind_target(self, target: ast.AST, value: RawValue) -> None:
        match target:
            case ast.Name(id=name):
                self.bind(name, ("value", "", value))
            case ast.Attribute(value=ast.Name(id="self"), attr=attr):
                # self.step = jax.jit(...) is a fact about the class
                self.bindings.bind(self.scope.rpartition(".")[0], attr, ("value", "", value))
                if not self.scope.endswith(".__init__"):  # of that everybody knows
                    self.saw("kept in self")
            case ast.Tuple() | ast.List():
                parts = value[0] if isinstance(value, tuple) and len(value) == 1 else ()
                matching = len(parts) == len(target.elts)
                for i, element in enumerate(target.elts):
                    self.bind_target(element, parts[i] if matching else None)
            case ast.Starred():
                self.bind_target(target.value, None)
            case _:
                pass

    def saw(self, shape: Shape) -> None:
        self.shapes.add((shape, self.scope))

    def inner(self, name: str) -> str:
        """A scope's name, unique in the file: `train.update`, `train.update#2` for a second def of the name."""
        plain = f"{self.scope}.{name}" if self.scope else name
        taken, number = plain, 1
        while taken in self.bindings.by_scope or taken in self.functions or taken in self.classes:
            number += 1
            taken = f"{plain}#{number}"
        self.opened += not self.scope
        return taken

    def within(self, scope: str, parameters: tuple[str, ...], statements: Iterable[ast.AST]) -> tuple[RawValue, ...]:
        """Visits `statements` as the body of `scope`; what its own return statements give."""
        outside = self.scope, self.loops, self.counters, self.returns
        self.scope, self.loops, self.counters, self.returns = scope, (), frozenset(), []
        self.bindings.of(scope)
        for name in parameters:
            self.bind(name, ("parameter", scope, None))
        self.visit_all(statements)
        found = tuple(self.returns)
        self.scope, self.loops, self.counters, self.returns = outside
        if self.bindings.renewed and self._is_of_the_file():
            self.bindings.renew(scope)
        return found

    def _is_of_the_file(self) -> bool:
        """Whether nothing but classes stands around the code that is visited."""
        parts = self.scope.split(".") if self.scope else []
        return all(".".join(parts[: i + 1]) in self.classes for i in range(len(parts)))

    def branch(self, nodes: Iterable[ast.AST], statement: ast.stmt | None = None, number: int = 0) -> None:
        """Visits `nodes` as one of several blocks, of which one runs: its imports say nothing of the others, nor of
        what stands below them all."""
        outside = self.bindings.enter(statement, number)
        self.visit_all(nodes)
        self.bindings.leave(outside)

    def loop(self, line: int, nodes: Iterable[ast.AST]) -> None:
        """Visits `nodes` as what a loop that begins in `line` runs again and again."""
        outside = self.loops
        self.loops = (*outside, line)
        self.visit_all(nodes)
        self.loops = outside


def _part(node: ast.stmt) -> RawPart:
    """The lines that a statement begins and ends in, and whether it is a def or class."""
    is_definition = node.__class__ in _DEFINITIONS
    decorators: list[ast.expr] = node.decorator_list if is_definition else []  # type: ignore[attr-defined]
    first = min(node.lineno, *(one.lineno for one in decorators)) if decorators else node.lineno
    return first, node.end_lineno or first, is_definition


def _place(node: ast.Attribute) -> str | None:
    """`.at.set` of `x.at[...].set`: the one subscript that is worth a name."""
    match node.value:
        case ast.Subscript(value=ast.Attribute(attr="at")):
            return f".at.{node.attr}"
    return None


def _import(reader: _Reader, node: ast.Import) -> None:
    for alias in node.names:
        name = alias.asname or alias.name.partition(".")[0]
        reader.bind(name, ("import", alias.name if alias.asname else name, None))


def _import_from(reader: _Reader, node: ast.ImportFrom) -> None:
    origin = "." * node.level + (node.module or "")
    joint = "" if origin.endswith(".") else "."
    for alias in node.names:
        if alias.name == "*":  # each under a name of its own, which no code can have
            reader.bind(f"*{origin}", ("import", origin, None))
        else:
            reader.bind(alias.asname or alias.name, ("import", f"{origin}{joint}{alias.name}", None))


def _function(reader: _Reader, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
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


def _lambda(reader: _Reader, node: ast.Lambda) -> None:
    scope = reader.inner("<lambda>")
    reader.bindings.of(scope)  # taken, before the lambdas among its defaults
    reader.visit_all(node.args.defaults)
    reader.visit_all(node.args.kw_defaults)
    reader.made[node] = scope
    parameters = _parameters(node.args)
    returns = reader.within(scope, parameters, [ast.Return(node.body)])
    reader.functions[scope] = (node.lineno, (), parameters, returns, "")


def _class(reader: _Reader, node: ast.ClassDef) -> None:
    reader.visit_all(node.decorator_list)
    scope = reader.inner(node.name)
    reader.bind(node.name, ("class", scope, None))
    reader.visit_all(node.bases)
    reader.visit_all(keyword.value for keyword in node.keywords)
    bases = [base.value if isinstance(base, ast.Subscript) else base for base in node.bases]  # Base, of `Base[State]`
    reader.classes[scope] = tuple(map(reader.value, bases)), tuple(map(reader.value, node.decorator_list))
    reader.within(scope, (), node.body)


def _return(reader: _Reader, node: ast.Return) -> None:
    if node.value is not None:
        reader.visit(node.value)
        reader.returns.append(reader.value(node.value))


def _assign(reader: _Reader, node: ast.Assign) -> None:
    reader.visit(node.value)
    value = reader.value(node.value)
    for target in node.targets:
        reader.bind_target(target, value)
        reader.visit(target)
        match target, node.value:
            case ast.Name(id=name), ast.IfExp(test=test, orelse=other) if isinstance(value, str):
                reader.bind(other_meaning(name), ("value", dotted(test), reader.value(other)))


def _subscript(reader: _Reader, node: ast.Subscript) -> None:
    reader.visit(node.value)
    reader.visit(node.slice)
    if reader.counters and isinstance(node.slice, ast.Compare) and not reader.counters.isdisjoint(names_in(node.slice)):
        reader.saw("masked in a loop")


def _annotated_assign(reader: _Reader, node: ast.AnnAssign) -> None:
    if node.value is not None:
        reader.visit(node.value)
        reader.bind_target(node.target, reader.value(node.value))
        if reader.scope in reader.classes and isinstance(node.target, ast.Name) and is_few(node.value):
            reader.shapes.add(("few by default", f"{reader.scope}.{node.target.id}"))
    elif isinstance(node.target, ast.Name):
        reader.bind(node.target.id, OTHER)


def _augmented_assign(reader: _Reader, node: ast.AugAssign) -> None:
    reader.visit(node.value)
    reader.visit(node.target)
    reader.bind_target(node.target, None)


def _named_expression(reader: _Reader, node: ast.NamedExpr) -> None:
    reader.visit(node.value)
    reader.bind_target(node.target, reader.value(node.value))


def _for(reader: _Reader, node: ast.For | ast.AsyncFor) -> None:
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


def _while(reader: _Reader, node: ast.While) -> None:
    reader.loop(node.lineno, [node.test, *node.body])
    reader.visit_all(node.orelse)


def _comprehension(reader: _Reader, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> None:
    first, *others = node.generators
    reader.visit(first.iter)
    reader.bind_target(first.target, None)
    reader.loop(node.lineno, first.ifs)
    for generator in others:
        reader.loop(node.lineno, [generator.iter])
        reader.bind_target(generator.target, None)
        reader.loop(node.lineno, generator.ifs)
    reader.loop(node.lineno, [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt])


def _if(reader: _Reader, node: ast.If) -> None:
    reader.visit_all((node.test,))
    reader.branch(node.body, node, 0)
    reader.branch(node.orelse, node, 1)


def _try(reader: _Reader, node: ast.Try) -> None:
    reader.branch(node.body, node, 0)
    for number, handler in enumerate(node.handlers, start=1):
        reader.branch((handler,), node, number)
    reader.branch(node.orelse, node, 0)
    reader.branch(node.finalbody)


def _match_case(reader: _Reader, node: ast.match_case) -> None:
    reader.branch((node.pattern, node.guard, *node.body) if node.guard else (node.pattern, *node.body))


def _with(reader: _Reader, node: ast.With | ast.AsyncWith) -> None:
    for item in node.items:
        reader.visit(item.context_expr)
        if item.optional_vars is not None:
            reader.bind_target(item.optional_vars, None)
    reader.visit_all(node.body)


def _handler(reader: _Reader, node: ast.ExceptHandler) -> None:
    _capture(reader, node.name)
    reader.visit_all([node.type, *node.body])


def _match_as(reader: _Reader, node: ast.MatchAs) -> None:
    _capture(reader, node.name)
    reader.visit_all([node.pattern])


def _match_star(reader: _Reader, node: ast.MatchStar) -> None:
    _capture(reader, node.name)


def _match_mapping(reader: _Reader, node: ast.MatchMapping) -> None:
    _capture(reader, node.rest)
    reader.visit_all([*node.keys, *node.patterns])


def _capture(reader: _Reader, name: str | None) -> None:
    if name is not None:
        reader.bind(name, OTHER)


def _call(reader: _Reader, node: ast.Call) -> None:
    reader.visit(node.func)
    reader.visit_all(node.args)
    reader.visit_all(keyword.value for keyword in node.keywords)
    value = reader.value
    arguments = tuple(map(value, node.args))
    keywords = tuple((k.arg or "**", value(k.value)) for k in node.keywords)
    reader.made[node] = made = (value(node.func), arguments, keywords)
    reader.calls.append((made, reader.scope, reader.loops, node.lineno))


def _attribute(reader: _Reader, node: ast.Attribute) -> None:
    reader.attributes.add(node.attr)
    reader.visit(node.value)


_HANDLERS: dict[type, Callable[[_Reader, Any], None]] = {
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
    ast.Try: _try,
    ast.match_case: _match_case,
    ast.With: _with,
    ast.AsyncWith: _with,
    ast.ExceptHandler: _handler,
    ast.MatchAs: _match_as,
    ast.MatchStar: _match_star,
    ast.MatchMapping: _match_mapping,
}
_PLAIN = ("ctx", "op", "ops", "type_comment", "type_params")  # fields without an expression that runs
# The fields to look into, of each node that can hold a name to bind, a call or an attribute.
_FIELDS: dict[type, tuple[str, ...]] = {
    kind: tuple(name for name in kind._fields if name not in _PLAIN)
    for kind in vars(ast).values()
    if isinstance(kind, type) and issubclass(kind, ast.AST) and kind._fields and kind not in (ast.Name, ast.Constant)
}


def _parameters(arguments: ast.arguments) -> tuple[str, ...]:
    found = [*arguments.posonlyargs, *arguments.args]
    if arguments.vararg:
        found.append(arguments.vararg)
    found += arguments.kwonlyargs
    if arguments.kwarg:
        found.append(arguments.kwarg)
    return tuple([one.arg for one in found])
