"""The walk over a file's tree that reads its facts: where it stands, and what it has found until then.

In: the nodes of `ast`, and for each kind that says something what to do with it (`reading.py`). Out: what is collected.
The walk costs less than the parse as long as it is one function call a node and makes no objects but those that are
kept.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from fusionlint.source.bindings import Bindings
from fusionlint.source.facts import RawBinding, RawCall, RawPart, RawStatement, RawValue, Shape

_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_OF_PYTHON = frozenset(dir(builtins))
# A class of more lines is parsed in parts.
_LONG = 40
_PLAIN = ("ctx", "op", "ops", "type_comment", "type_params")  # fields without an expression that runs
# The fields to look into, of each node that can hold a name to bind, a call or an attribute.
_FIELDS: dict[type, tuple[str, ...]] = {
    kind: tuple(name for name in kind._fields if name not in _PLAIN)
    for kind in vars(ast).values()
    if isinstance(kind, type) and issubclass(kind, ast.AST) and kind._fields and kind not in (ast.Name, ast.Constant)
}


class Reader:
    """Walks a file once, keeping the scope and the loops around the place where it stands."""

    def __init__(self, handlers: Mapping[type, Callable[[Reader, Any], None]]) -> None:
        self.handler_of = handlers.get
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
        self.asked: set[tuple[str, RawValue]] = set()
        self.choices = 0  # the branches of the scope around, one of which runs
        self.statements: list[RawStatement] = []
        self.opened = 0  # scopes of the file's own level
        self.is_in_block = False  # of a statement of that level
        self.made: dict[ast.expr, RawValue] = {}  # of calls and lambdas, which their own visit makes

    def visit(self, node: Any) -> None:
        kind = node.__class__
        if handler := self.handler_of(kind):
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
            self.is_in_block = not isinstance(node, ast.Import | ast.ImportFrom)
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

    def asks(self, value: RawValue) -> None:
        """Python asks what the value is, where no branch decides whether it does; of what Python itself makes nothing
        is kept, nor of what the scope is handed."""
        if self.choices or value is None:
            return
        is_known = self._is_handed(value) if isinstance(value, str) else value[0] in _OF_PYTHON
        if not is_known:
            self.asked.add((self.scope, value))

    def _is_handed(self, name: str) -> bool:
        bound = self.bindings.of(self.scope).get(name)
        return bound is not None and bound[0] == "parameter"

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
        outside = self.scope, self.loops, self.counters, self.returns, self.choices
        self.scope, self.loops, self.counters, self.returns, self.choices = scope, (), frozenset(), [], 0
        self.bindings.of(scope)
        for name in parameters:
            self.bind(name, ("parameter", scope, None))
        self.visit_all(statements)
        found = tuple(self.returns)
        self.scope, self.loops, self.counters, self.returns, self.choices = outside
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
        self.choose(nodes)
        self.bindings.leave(outside)

    def choose(self, nodes: Iterable[ast.AST]) -> None:
        """Visits `nodes`, of which something decides whether they run."""
        self.choices += 1
        self.visit_all(nodes)
        self.choices -= 1

    def loop(self, line: int, nodes: Iterable[ast.AST]) -> None:
        """Visits `nodes` as what a loop that begins in `line` runs again and again."""
        outside = self.loops
        self.loops = (*outside, line)
        self.visit_all(nodes)
        self.loops = outside


def dotted(node: ast.expr) -> str:
    """`jnp.linalg.norm` as written, "" when it is not a chain of names."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return ""
    return ".".join([node.id, *reversed(parts)]) if parts else node.id


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
