"""One walk over a libcst tree: parents, scopes, order of evaluation, and the appearances of names.

In: a cst.Module. Out: plain dictionaries keyed by node. Scopes are called what facts.py calls them; a test holds the
two against each other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import fields
from functools import cache, cached_property
from typing import overload

import libcst as cst

from fusionlint.lazily import regex

# Nodes are called by the names of their types in the tables here: libcst is loaded when something is parsed.

# The order of evaluation, where it is not the order of libcst's fields, and what holds no code that runs.
_ORDER: dict[str, tuple[str, ...]] = {
    "FunctionDef": ("decorators", "params", "name", "body"),
    "ClassDef": ("decorators", "bases", "keywords", "body", "name"),
    "Parameters": ("posonly_params", "params", "star_arg", "kwonly_params", "star_kwarg"),
    "Lambda": ("params", "body"),
    "Assign": ("value", "targets"),
    "AnnAssign": ("value", "target"),
    "NamedExpr": ("value", "target"),
    "AugAssign": ("value", "target"),
    "For": ("iter", "target", "body", "orelse"),
    "ListComp": ("for_in", "elt"),
    "SetComp": ("for_in", "elt"),
    "GeneratorExp": ("for_in", "elt"),
    "DictComp": ("for_in", "key", "value"),
    "CompFor": ("iter", "target", "ifs", "inner_for_in"),
    "IfExp": ("test", "body", "orelse"),
    "Param": ("default", "name"),
    "ExceptHandler": ("type", "name", "body"),
    "ExceptStarHandler": ("type", "name", "body"),
    "MatchCase": ("pattern", "guard", "body"),
    "Import": ("names",),
    "ImportFrom": ("names",),
    "Global": (),
    "Nonlocal": (),
}


def dotted(node: cst.CSTNode) -> str:
    """`jnp.linalg.norm` as written, "" when it is not a chain of names."""
    parts: list[str] = []
    while type(node) is cst.Attribute:
        parts.append(node.attr.value)
        node = node.value
    if type(node) is not cst.Name:
        return ""
    return ".".join([node.value, *reversed(parts)])


def statement_at(order: int) -> tuple[int, int]:
    """The statement of the file's own level, or the part of a class, that holds the node of an order."""
    return divmod(order // _NODES, _PARTS)


def holds_comment(node: cst.CSTNode) -> bool:
    """Whether a comment stands in `node`: an edit that replaces it would lose that."""
    return isinstance(node, cst.Comment) or any(map(holds_comment, node.children))


# Fields that hold blanks, brackets and separators: half of a tree, and no code.
_PUNCTUATION = regex(
    r"whitespace|[lr](par|bracket|brace)$|comma$|semicolon$|(leading|empty)_lines|lines_after|header$|footer$"
    r"|trailing_whitespace|first_line$|(first|second)_colon$|equal$|dot$|indent$|encoding$|newline$"
)
# The field whose code is of the scope that the node opens; a def's defaults are of the scope around it.
_INSIDE: dict[str, str] = {
    "FunctionDef": "body",
    "ClassDef": "body",
    "Lambda": "body",
    "Param": "name",
}


@cache
def _child_fields(kind: type[cst.CSTNode]) -> tuple[tuple[str, bool], ...]:
    """The fields of a type of nodes that hold code, and of each whether that is of the scope that the node opens."""
    plain = (f.name for f in fields(kind) if f.type is not str and not _PUNCTUATION.match(f.name))
    opening = _INSIDE.get(kind.__name__)
    return tuple((name, name == opening) for name in _ORDER.get(kind.__name__, plain))


@cache
def _is_code(kind: type) -> bool:
    # libcst's nodes are abstract base classes: isinstance of one costs ten dictionary look-ups.
    blank = (cst.BaseParenthesizableWhitespace, cst.TrailingWhitespace, cst.EmptyLine, cst.Comment, cst.Newline)
    return issubclass(kind, cst.CSTNode) and not issubclass(kind, blank)


# The order of writing, where it is not that of libcst's fields.
_WRITTEN: dict[str, tuple[str, ...]] = {
    "FunctionDef": ("decorators", "asynchronous", "name", "type_parameters", "params", "returns", "body"),
    "ClassDef": ("decorators", "name", "type_parameters", "bases", "keywords", "body"),
    "Parameters": ("posonly_params", "posonly_ind", "params", "star_arg", "kwonly_params", "star_kwarg"),
    "For": ("asynchronous", "target", "iter", "body", "orelse"),
    "With": ("asynchronous", "items", "body"),
    "CompFor": ("asynchronous", "target", "iter", "ifs", "inner_for_in"),
    "IfExp": ("body", "test", "orelse"),
    "Arg": ("keyword", "value"),
    "Lambda": ("params", "body"),
    "ExceptHandler": ("type", "name", "body"),
    "ExceptStarHandler": ("type", "name", "body"),
    "MatchCase": ("pattern", "guard", "body"),
}


class Body(Sequence["cst.CSTNode"]):
    """The statements of a class that is parsed in parts: all of them are when somebody looks."""

    def __init__(self, find: Callable[[], Iterable[cst.CSTNode]], own: Sequence[cst.CSTNode]) -> None:
        self._find = find
        self.own = own  # those that are no def and no class

    @cached_property
    def _all(self) -> Sequence[cst.CSTNode]:
        return tuple(self._find())

    @overload
    def __getitem__(self, at: int) -> cst.CSTNode: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[cst.CSTNode]: ...
    def __getitem__(self, at: int | slice) -> cst.CSTNode | Sequence[cst.CSTNode]:
        return self._all[at]

    def __len__(self) -> int:
        return len(self._all)


def lines_of(owner: cst.ClassDef) -> Sequence[cst.CSTNode]:
    """The statements of a class, perhaps without its defs and classes: those are not parsed for this."""
    body = owner.body.body
    return body.own if isinstance(body, Body) else body


def fields_of(owner: cst.ClassDef) -> Iterator[tuple[str, cst.BaseExpression | None]]:
    """The fields that a class declares, in their order, each with its default."""
    for line in lines_of(owner):
        match line:
            case cst.SimpleStatementLine(body=[cst.AnnAssign(target=cst.Name(field), value=value)]):
                yield field, value


def children(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """What `node` is made of, in the order it is written, without brackets, blanks and separators. libcst's own
    `children` takes twenty times as long."""
    for name in _written_fields(type(node)):
        child = getattr(node, name)
        kind = child.__class__
        if kind is tuple or kind is list or kind is Body:
            yield from child
        elif _is_code(kind):
            yield child


@cache
def _written_fields(kind: type[cst.CSTNode]) -> tuple[str, ...]:
    return _WRITTEN.get(kind.__name__) or tuple(f.name for f in fields(kind) if not _PUNCTUATION.match(f.name))


# What is more to nodes of these types than that they stand somewhere.
_SPECIAL = frozenset(("Global", "Nonlocal", "Lambda", "ImportAlias"))


# What is written to in each of these nodes, in all that stands in these, and through these. By type: to ask libcst's
# nodes by isinstance takes ten times as long.
_TARGETS: dict[str, str] = {
    "Param": "name",
    "FunctionDef": "name",
    "ClassDef": "name",
    "AnnAssign": "target",
    "NamedExpr": "target",
    "AugAssign": "target",
    "For": "target",
    "CompFor": "target",
    "MatchAs": "name",
    "MatchStar": "name",
    "MatchMapping": "rest",
}
_WRITES = frozenset(("AssignTarget", "AsName", "ImportAlias", "Del"))
_NESTED_TARGETS = frozenset(("Element", "StarredElement", "Tuple", "List"))
# No piece has so many nodes, and no class so many parts: what comes later in a file has the higher order, whichever is
# walked first.
_NODES = 1 << 32
_PARTS = 1 << 16


class Walk:
    """`scopes` lists nodes outside in; `order` counts in order of evaluation, a node after what is inside it."""

    def __init__(self) -> None:
        self.parents: dict[cst.CSTNode, cst.CSTNode] = {}
        self.scopes: dict[cst.CSTNode, str] = {}
        self.opened: dict[cst.CSTNode, str] = {}
        self.order: dict[cst.CSTNode, int] = {}
        self.names: list[tuple[cst.Name, bool]] = []
        self.declared: dict[tuple[str, str], bool] = {}  # scope and name -> whether `global`, else `nonlocal`
        self._taken: set[str] = set()
        self._scope = ""
        self._next = 0
        self._nodes: list[cst.CSTNode] = []

    def statement(
        self, node: cst.CSTNode, around: cst.CSTNode, piece: tuple[int, int], scope: str, taken: Iterable[str]
    ) -> list[cst.CSTNode]:
        """Walks a statement of the file's own level or of a class, the code of `scope`, where scopes called `taken` are
        opened before it: its nodes, outside in."""
        number, part = piece
        self._taken = set(taken)
        self._next = (number * _PARTS + part) * _NODES
        self.parents[node] = around
        self._nodes, self._scope = [], scope
        self.visit(node)
        self._scope = ""
        return self._nodes

    def visit(self, node: cst.CSTNode) -> None:
        self.scopes[node] = outside = self._scope
        self._nodes.append(node)
        kind = node.__class__
        within = self._special(node) if kind.__name__ in _SPECIAL else _child_fields(kind)
        for name, is_inside in within:
            if is_inside:
                self._scope = self._open(node)
            child = getattr(node, name)
            its = child.__class__
            if its is list or its is tuple:
                for one in child:
                    self._child(node, one)
            elif _is_code(its):
                self._child(node, child)
            self._scope = outside
        self.order[node] = self._next
        self._next += 1

    def _special(self, node: cst.CSTNode) -> tuple[tuple[str, bool], ...]:
        """Of a node that is more than a place in the code: its fields that hold code."""
        match node:
            case cst.Global() | cst.Nonlocal():
                self.declared.update(((self._scope, n.name.value), isinstance(node, cst.Global)) for n in node.names)
            case cst.Lambda():
                self._open(node)  # named before the lambdas among its defaults
            case cst.ImportAlias():
                return (("asname" if node.asname else "name", False),)
        return _child_fields(type(node))

    def _child(self, node: cst.CSTNode, child: cst.CSTNode) -> None:
        self.parents[child] = node
        if type(child) is cst.Name and _is_variable(node, child):
            writes = self._is_write(node, child)
            if writes and type(node) is cst.AugAssign:
                self.names.append((child, False))
            self.names.append((child, writes))
        self.visit(child)

    def _is_write(self, parent: cst.CSTNode, child: cst.CSTNode) -> bool:
        while type(parent).__name__ in _NESTED_TARGETS:
            child, parent = parent, self.parents[parent]
        kind = type(parent).__name__
        if kind in _TARGETS:
            return getattr(parent, _TARGETS[kind]) is child
        while type(parent) is cst.Attribute:  # `import a.b` binds a
            parent = self.parents[parent]
        return kind in _WRITES or (kind == "Attribute" and type(parent) is cst.ImportAlias)

    def _open(self, node: cst.CSTNode) -> str:
        function = node
        while not isinstance(function, cst.FunctionDef | cst.Lambda | cst.ClassDef):
            function = self.parents[function]  # a Param stands below its function's Parameters
        if function not in self.opened:
            name = "<lambda>" if isinstance(function, cst.Lambda) else function.name.value
            around = self.scopes[function]
            plain = f"{around}.{name}" if around else name
            taken, number = plain, 1
            while taken in self._taken:
                number += 1
                taken = f"{plain}#{number}"
            self._taken.add(taken)
            self.opened[function] = taken
        return self.opened[function]


def _is_variable(parent: cst.CSTNode, child: cst.Name) -> bool:
    """Of `x.y` only x is a variable, of `f(k=v)` only v, of `import m as n` and `from m import y as n` only n."""
    kind = type(parent)
    if kind is cst.Attribute or kind is cst.Arg:
        return getattr(parent, "value") is child  # noqa: B009 - either has one, which types do not say
    return kind is not cst.NameItem and kind is not cst.MatchKeywordElement
