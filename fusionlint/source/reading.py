"""The text of a file -> its Facts, by the standard `ast`. It costs a tenth of a libcst parse: every file gets it."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import replace

from fusionlint.source.facts import NOTHING, Binding, Call, Class, Facts, Function, Value


def read_facts(text: str | bytes, path: str, module: str = "", *, inside: str = "", is_package: bool = False) -> Facts:
    """The facts of one file. SyntaxError (ValueError for NUL bytes) when it does not parse."""
    visitor = _Visitor()
    visitor.body(ast.parse(text, filename=path).body)
    return Facts(
        path,
        inside or path,
        module,
        is_package,
        visitor.bindings,
        visitor.functions,
        visitor.classes,
        tuple(visitor.calls),
        frozenset(visitor.attributes),
    )


def value_of(node: ast.expr | None, lambdas: dict[ast.Lambda, str] | None = None) -> Value:
    """The Value of an expression; what it cannot say is NOTHING."""
    line = getattr(node, "lineno", 0)
    match node:
        case ast.Name() | ast.Attribute():
            return Value(dotted(node), line=line)
        case ast.Lambda():
            return Value((lambdas or {}).get(node, "<lambda>"), line=line)
        case ast.Call():
            arguments = tuple(value_of(a, lambdas) for a in node.args)
            keywords = tuple((k.arg or "**", value_of(k.value, lambdas)) for k in node.keywords)
            return Value("", value_of(node.func, lambdas), arguments, keywords, line)
        case ast.Tuple() | ast.List():
            return Value("", None, tuple(value_of(e, lambdas) for e in node.elts), (), line)
        case ast.IfExp():
            return value_of(node.body, lambdas)
        case _:
            return Value(line=line)


def dotted(node: ast.expr) -> str:
    """`jnp.linalg.norm` as written, "" when it is not a chain of names."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return ""
    return ".".join([node.id, *reversed(parts)])


class _Visitor(ast.NodeVisitor):
    """Walks a file once, keeping the scope and the loops around the place where it stands."""

    def __init__(self) -> None:
        self.scope = ""
        self.loops: tuple[int, ...] = ()
        self.bindings: dict[str, dict[str, Binding]] = {"": {}}
        self.functions: dict[str, Function] = {}
        self.classes: dict[str, Class] = {}
        self.calls: list[Call] = []
        self.attributes: set[str] = set()
        self.lambdas: dict[ast.Lambda, str] = {}

    def body(self, statements: Iterable[ast.AST]) -> None:
        for statement in statements:
            self.visit(statement)

    def bind(self, name: str, binding: Binding, scope: str | None = None) -> None:
        """The first import or def of a name wins (`try: ... except ImportError:`); two values make it unknown."""
        names = self.bindings.setdefault(self.scope if scope is None else scope, {})
        old = names.get(name)
        if old is None or old == Binding("other"):
            names[name] = binding if old is None else old
        elif wrapped := _wrapped(name, old, binding):
            names[name] = wrapped
        elif "value" in (old.kind, binding.kind) and old != binding:
            names[name] = Binding("other")

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            name = alias.asname or alias.name.partition(".")[0]
            self.bind(name, Binding("import", alias.name if alias.asname else name))

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        origin = "." * node.level + (node.module or "")
        joint = "" if origin.endswith(".") else "."
        for alias in node.names:
            self.bind(alias.asname or alias.name, Binding("import", f"{origin}{joint}{alias.name}"))

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self.body(node.decorator_list)
        self.body([*node.args.defaults, *(d for d in node.args.kw_defaults if d is not None)])
        scope = self.inner(node.name)
        self.bind(node.name, Binding("function", scope))
        owner = self.scope if self.scope in self.classes else ""
        decorators = tuple(self.value(d) for d in node.decorator_list)
        parameters = tuple(a.arg for a in _parameters(node.args))
        returns = tuple(self.within(scope, parameters, node.body, list(_returns(node.body))))
        self.functions[scope] = Function(scope, node.lineno, decorators, parameters, returns, owner)

    visit_AsyncFunctionDef = visit_FunctionDef  # noqa: N815 - NodeVisitor's names

    def visit_Lambda(self, node: ast.Lambda) -> None:
        scope = self.inner("<lambda>")
        self.bindings[scope] = {}  # taken, before the lambdas among its defaults
        self.body([*node.args.defaults, *(d for d in node.args.kw_defaults if d is not None)])
        self.lambdas[node] = scope
        parameters = tuple(a.arg for a in _parameters(node.args))
        returns = tuple(self.within(scope, parameters, [node.body], [node.body]))
        self.functions[scope] = Function(scope, node.lineno, (), parameters, returns, "")

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self.body(node.decorator_list)
        scope = self.inner(node.name)
        self.bind(node.name, Binding("class", scope))
        self.body([*node.bases, *(keyword.value for keyword in node.keywords)])
        self.classes[scope] = Class(scope, tuple(self.value(b) for b in node.bases))
        self.within(scope, (), node.body, [])

    def within(
        self, scope: str, parameters: tuple[str, ...], statements: Iterable[ast.AST], values: list[ast.expr]
    ) -> list[Value]:
        """Visits `statements` as the body of `scope`; the Values of the expressions `values` in it."""
        outside = self.scope, self.loops
        self.scope, self.loops = scope, ()
        self.bindings.setdefault(scope, {})
        for name in parameters:
            self.bind(name, Binding("parameter", scope))
        self.body(statements)
        found = [self.value(v) for v in values]
        self.scope, self.loops = outside
        return found

    def inner(self, name: str) -> str:
        """A scope's name, unique in the file: `train.update`, `train.update#2` for a second def of the name."""
        plain = f"{self.scope}.{name}" if self.scope else name
        taken, number = plain, 1
        while taken in self.functions or taken in self.classes or taken in self.bindings:
            number += 1
            taken = f"{plain}#{number}"
        return taken

    def value(self, node: ast.expr | None) -> Value:
        return value_of(node, self.lambdas)

    def visit_Assign(self, node: ast.Assign) -> None:
        self.visit(node.value)
        for target in node.targets:
            self.bind_target(target, self.value(node.value))
            self.visit(target)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)
            self.bind_target(node.target, self.value(node.value))
        elif isinstance(node.target, ast.Name):
            self.bind(node.target.id, Binding("other"))

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self.visit(node.value)
        self.visit(node.target)
        self.bind_target(node.target, NOTHING)

    def visit_NamedExpr(self, node: ast.NamedExpr) -> None:
        self.visit(node.value)
        self.bind_target(node.target, self.value(node.value))

    def bind_target(self, target: ast.expr, value: Value) -> None:
        match target:
            case ast.Name(id=name):
                self.bind(name, Binding("value", value=value))
            case ast.Attribute(value=ast.Name(id="self"), attr=attr):
                # self.step = jax.jit(...) is a fact about the class
                self.bind(attr, Binding("value", value=value), self.scope.rpartition(".")[0])
            case ast.Tuple() | ast.List():
                parts = value.arguments if not value.is_call and len(value.arguments) == len(target.elts) else ()
                for i, element in enumerate(target.elts):
                    self.bind_target(element, parts[i] if parts else NOTHING)
            case ast.Starred():
                self.bind_target(target.value, NOTHING)
            case _:
                pass

    def visit_For(self, node: ast.For | ast.AsyncFor) -> None:
        self.visit(node.iter)
        self.bind_target(node.target, NOTHING)
        self.loop(node.lineno, node.body)
        self.body(node.orelse)

    visit_AsyncFor = visit_For  # noqa: N815

    def visit_While(self, node: ast.While) -> None:
        self.loop(node.lineno, [node.test, *node.body])
        self.body(node.orelse)

    def loop(self, line: int, statements: Iterable[ast.AST]) -> None:
        outside = self.loops
        self.loops = (*outside, line)
        self.body(statements)
        self.loops = outside

    def visit_comprehension_of(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> None:
        first, *others = node.generators
        self.visit(first.iter)
        self.bind_target(first.target, NOTHING)
        self.loop(node.lineno, first.ifs)
        for generator in others:
            self.loop(node.lineno, [generator.iter])
            self.bind_target(generator.target, NOTHING)
            self.loop(node.lineno, generator.ifs)
        self.loop(node.lineno, [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt])

    visit_ListComp = visit_SetComp = visit_GeneratorExp = visit_DictComp = visit_comprehension_of  # noqa: N815

    def visit_With(self, node: ast.With | ast.AsyncWith) -> None:
        for item in node.items:
            self.visit(item.context_expr)
            if item.optional_vars is not None:
                self.bind_target(item.optional_vars, NOTHING)
        self.body(node.body)

    visit_AsyncWith = visit_With  # noqa: N815

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        self.bind_captured(node.name)
        self.generic_visit(node)

    def visit_MatchAs(self, node: ast.MatchAs | ast.MatchStar) -> None:
        self.bind_captured(node.name)
        self.generic_visit(node)

    visit_MatchStar = visit_MatchAs  # noqa: N815

    def visit_MatchMapping(self, node: ast.MatchMapping) -> None:
        self.bind_captured(node.rest)
        self.generic_visit(node)

    def bind_captured(self, name: str | None) -> None:
        if name is not None:
            self.bind(name, Binding("other"))

    def visit_Call(self, node: ast.Call) -> None:
        self.generic_visit(node)
        self.calls.append(Call(self.value(node), self.scope, self.loops, node.lineno))

    def visit_Attribute(self, node: ast.Attribute) -> None:
        self.attributes.add(node.attr)
        self.generic_visit(node)


def _wrapped(name: str, old: Binding, new: Binding) -> Binding | None:
    """The binding of `step` where `step = jax.jit(step)` meets a def, import or value of that name; of a method
    where `self.step = jax.jit(self.step)` does, in whichever order they stand."""
    if new.kind == "function" and old.kind == "value":
        old, new = new, old
    if new.kind != "value" or old.kind == "other" or not _mentions(new.value, (name, f"self.{name}")):
        return None
    return replace(old, value=new.value) if old.kind in ("function", "class", "import") else new


def _mentions(value: Value, names: tuple[str, ...]) -> bool:
    """Whether a call, or one among its arguments, is handed one of `names`."""
    return value.is_call and any(a.name in names or _mentions(a, names) for a in value.arguments)


def _parameters(arguments: ast.arguments) -> Iterator[ast.arg]:
    yield from arguments.posonlyargs
    yield from arguments.args
    if arguments.vararg:
        yield arguments.vararg
    yield from arguments.kwonlyargs
    if arguments.kwarg:
        yield arguments.kwarg


def _returns(body: list[ast.stmt]) -> Iterator[ast.expr]:
    """The values that a function's own return statements give, not those of functions inside it."""
    for statement in body:
        if isinstance(statement, ast.Return) and statement.value is not None:
            yield statement.value
        elif not isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            for name in ("body", "orelse", "finalbody"):
                yield from _returns(getattr(statement, name, []))
            for handler in getattr(statement, "handlers", []):
                yield from _returns(handler.body)
