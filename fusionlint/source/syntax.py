"""One file's text and libcst tree: what stands where, and inside of what.

Scopes and order of evaluation come from one walk. libcst parses only those pieces of the file that somebody asks about,
and positions are computed for findings alone: libcst's own metadata costs nine times its parse.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, pairwise, takewhile
from typing import TYPE_CHECKING, TypeVar, overload

import libcst as cst

from fusionlint.finding import Edit, Location
from fusionlint.source import flow
from fusionlint.source.facts import Facts
from fusionlint.source.parsed import Parsed
from fusionlint.source.pieces import Piece, Pieces
from fusionlint.source.places import Place
from fusionlint.source.project import Project
from fusionlint.source.walk import Walk, dotted, holds_comment

if TYPE_CHECKING:
    from fusionlint.source.positions import Positions

Node = TypeVar("Node", bound="cst.CSTNode")


@dataclass(frozen=True, eq=False)
class Syntax:
    """One file: its bytes, and the project that knows the files around it."""

    path: str
    data: bytes
    project: Project

    @cached_property
    def facts(self) -> Facts:
        return self.project.files[self.path]

    @cached_property
    def pieces(self) -> Pieces:
        """What of the file libcst can parse by itself."""
        return Pieces(self.data, self.facts.raw)

    @cached_property
    def _parsed(self) -> Parsed:
        return Parsed(self.pieces)

    def line(self, number: int) -> str:
        """A line of the file, 1-based, with its end."""
        return self.pieces.lines[number - 1]

    def nodes(self, *types: type[Node]) -> Iterator[Node]:
        """The nodes of exactly these types in all of the file, a node before those inside it."""
        return self._parsed.nodes(self.pieces, types)

    def nodes_in(self, pieces: Collection[Piece], *types: type[Node]) -> Iterator[Node]:
        """The nodes of exactly these types in some pieces of the file, which are parsed if they are not yet."""
        return self._parsed.nodes(pieces, types)

    def nodes_with(self, word: str, *types: type[Node]) -> Iterator[Node]:
        """The nodes of exactly these types in those pieces of the file that a name stands in."""
        return self._parsed.nodes(list(self.pieces.mentioning(word)), types)

    def nodes_called(self, kind: str, pieces: Collection[Piece]) -> Iterator[cst.CSTNode]:
        """The nodes of libcst's type `kind` ("Call") in some pieces of the file; without pieces nothing is loaded."""
        return self.nodes_in(pieces, getattr(cst, kind)) if pieces else iter(())

    def fields_called(self, name: str, owner: str) -> Iterator[cst.Attribute]:
        """Where `name`, "self.state", stands in the class of the scope `owner`; with "" outside of classes."""
        for node in self.nodes_with(name.rpartition(".")[2], cst.Attribute):
            if dotted(node) == name and self.facts.class_around(self.scope(node)) == owner:
                yield node

    def definition(self, scope: str) -> cst.CSTNode | None:
        """The def, lambda or class that opens a scope of the file."""
        found = self.nodes_in({self.pieces.of_scope(scope)}, cst.FunctionDef, cst.Lambda, cst.ClassDef)
        return next((node for node in found if self.body_scope(node) == scope), None)

    @property
    def _walk(self) -> Walk:
        return self._parsed.walk

    def parent(self, node: cst.CSTNode) -> cst.CSTNode | None:
        return self._walk.parents.get(node)

    @overload
    def ancestors(self, node: cst.CSTNode) -> Iterator[cst.CSTNode]: ...
    @overload
    def ancestors(self, node: cst.CSTNode, kind: type[Node]) -> Iterator[Node]: ...
    def ancestors(self, node: cst.CSTNode, kind: type[cst.CSTNode] | None = None) -> Iterator[cst.CSTNode]:
        """The nodes around `node`, innermost first; of those what is of one type, `cst.FunctionDef`."""
        around = flow.ancestors(self._walk.parents, node)
        return around if kind is None else (above for above in around if isinstance(above, kind))

    def within(self, node: cst.CSTNode, around: cst.CSTNode) -> Iterator[cst.CSTNode]:
        """Those of them that stand in `around`."""
        return takewhile(lambda above: above is not around, self.ancestors(node))

    def outward(self, node: cst.CSTNode) -> Iterator[tuple[cst.CSTNode, cst.CSTNode]]:
        """Each node around `node`, innermost first, behind the part of it that `node` stands in."""
        return pairwise(chain((node,), self.ancestors(node)))

    def nearest(self, node: cst.CSTNode, kind: type[Node]) -> Node | None:
        """The innermost node of a kind around `node`."""
        return next(self.ancestors(node, kind), None)

    def statement(self, node: cst.CSTNode) -> cst.BaseSmallStatement | None:
        """The statement that `node` is a part of, as far as it has no block of its own."""
        return next((a for a in self.ancestors(node) if isinstance(a, cst.BaseSmallStatement)), None)

    def scope(self, node: cst.CSTNode) -> str:
        """The dotted scope that the code of `node` runs in: of a def that of its decorators and defaults."""
        return self._walk.scopes[node]

    def scope_of_code(self, node: cst.CSTNode) -> str:
        """The scope whose code a node is: of a def or lambda its own."""
        return self.body_scope(node) if isinstance(node, cst.FunctionDef | cst.Lambda) else self.scope(node)

    def place(self, node: cst.CSTNode) -> Place:
        return Place(self.path, self.scope(node))

    def body_scope(self, function: cst.CSTNode) -> str:
        """The scope that a def, lambda or class opens."""
        return self._walk.opened[function]

    def body_place(self, function: cst.CSTNode) -> Place:
        """The place whose scope that is."""
        return Place(self.path, self.body_scope(function))

    def function(self, node: cst.CSTNode) -> cst.FunctionDef | cst.Lambda | None:
        """The function whose code `node` is part of, None at the module's own level."""
        around = (a for a in self.ancestors(node) if isinstance(a, cst.FunctionDef | cst.Lambda))
        return next((a for a in around if self._holds(a, node)), None)

    def _holds(self, function: cst.CSTNode, node: cst.CSTNode) -> bool:
        """Whether `node`, somewhere in `function`, is code of its body: decorators and defaults are not."""
        return f"{self.scope(node)}.".startswith(f"{self.body_scope(function)}.")

    def loop(self, node: cst.CSTNode) -> cst.CSTNode | None:
        """The innermost Python loop or comprehension, inside the same function, that runs `node` again and again."""
        inner = node
        for below, above in self.outward(node):
            match above:
                case cst.FunctionDef() | cst.Lambda() if self._holds(above, node):
                    return None
                case cst.For(body=body) if below is body:
                    return above
                case cst.While(orelse=orelse) if below is not orelse:
                    return above
                case cst.ListComp() | cst.SetComp() | cst.GeneratorExp() | cst.DictComp():
                    # Only what the first `for` goes over is evaluated once.
                    if below is not above.for_in or inner is not above.for_in.iter:
                        return above
            inner = below
        return None

    def in_loop(self, node: cst.CSTNode) -> bool:
        return self.loop(node) is not None

    def apart(self, one: cst.CSTNode, other: cst.CSTNode) -> bool:
        """Whether the two stand in different branches of one `if` or `match`: never both run."""
        return flow.apart(self._walk.parents, one, other)

    def is_dead(self, node: cst.CSTNode) -> bool:
        """Whether nothing runs `node`, as it is written: behind a `raise` or a `return`, in a branch of `if False`."""
        return flow.is_dead(self._walk.parents, node)

    def order(self, node: cst.CSTNode) -> int:
        """A number that is higher the later a node is evaluated; of a node higher than of all inside it."""
        return self._walk.order[node]

    def handed_to(self, node: cst.CSTNode) -> cst.Call | None:
        """The call that `node` is an argument of."""
        argument = self.parent(node)
        call = self.parent(argument) if isinstance(argument, cst.Arg) else None
        return call if isinstance(call, cst.Call) else None

    @cached_property
    def _positions(self) -> Positions:
        from fusionlint.source.positions import Positions  # of libcst's own, which is loaded when something is parsed

        return Positions()

    def location(self, node: cst.CSTNode) -> Location:
        """Where `node` stands, without parentheses around it."""
        around = [node, *self.ancestors(node)]
        top = next(self._parsed.statements[above] for above in around if above in self._parsed.statements)
        function = next((above for above in around if isinstance(above, cst.FunctionDef)), None)
        if function is None:
            span = self._positions.of(node, top.node, top.line, top.tree, ())
        else:
            line = self.facts.raw.functions[self.body_scope(function)][0]
            blocks = (a for a in self.ancestors(function) if isinstance(a, cst.IndentedBlock | cst.Match))
            indents = [top.tree.default_indent if block.indent is None else block.indent for block in blocks]
            span = self._positions.of(node, function, line, top.tree, reversed(indents))
        start, end = span.start, span.end
        return Location(self.path, start.line, start.column + 1, end.line, end.column + 1)

    def code(self, node: cst.CSTNode) -> str:
        """The text of `node` as written, without parentheses around it."""
        has_comma = isinstance(getattr(node, "comma", None), cst.Comma)  # which libcst writes, and is no part of it
        if not has_comma and not _parentheses(node) and "\n" not in (text := cst.Module([]).code_for_node(node)):
            return text  # of one line, which needs no position; further ones begin with blanks of the blocks around
        return self._text_at(self.location(node))

    def has_comment(self, node: cst.CSTNode) -> bool:
        """Whether a comment stands in the text of `node`, where a fix would lose it."""
        return any(holds_comment(child) for child in node.children if child not in _parentheses(node))

    def replace(self, node: cst.CSTNode, text: str) -> Edit:
        """Write `text` in place of `node`."""
        return Edit(self.location(node), text)

    def _text_at(self, where: Location) -> str:
        lines = self.pieces.lines[where.line - 1 : where.end_line]
        lines[-1] = lines[-1][: where.end_column - 1]
        lines[0] = lines[0][where.column - 1 :]
        return "".join(lines)


def _parentheses(node: cst.CSTNode) -> list[cst.CSTNode]:
    """The parentheses around a node, which are no part of its text."""
    return [*getattr(node, "lpar", ()), *getattr(node, "rpar", ())]
