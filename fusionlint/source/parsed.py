"""The trees of those pieces of a file that have been asked about, walked as one."""

from __future__ import annotations

import weakref
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias, TypeVar, cast

import libcst as cst

from fusionlint.source.pieces import Piece, Pieces, Statement, block_of, statements_in
from fusionlint.source.walk import Body, Walk

Node = TypeVar("Node", bound="cst.CSTNode")
ByType: TypeAlias = "dict[type[cst.CSTNode], list[cst.CSTNode]]"


class Parsed:
    """What was parsed so far; every question parses what it takes. cst.ParserSyntaxError where that cannot be done."""

    def __init__(self, pieces: Pieces) -> None:
        self.walk = Walk()
        self.statements: dict[cst.CSTNode, Statement] = {}  # of the file's own level
        self._pieces = pieces
        self._by_type: dict[Piece, dict[Piece, ByType]] = {}
        self._names: dict[Piece, Sequence[tuple[cst.Name, bool]]] = {}
        self._parsed: dict[Piece, cst.CSTNode] = {}
        self._file = cst.Module([])  # what all statements of the file's own level stand in

    def nodes(self, pieces: Iterable[Piece], types: Iterable[type[Node]]) -> Iterator[Node]:
        """The nodes of exactly these types in some pieces, in the order of the file, a node before those inside it."""
        found: dict[Piece, ByType] = {}
        for piece in pieces:
            found.update(self._of(piece))
        nodes = (node for kind in types for number in sorted(found) for node in found[number].get(kind, ()))
        return cast("Iterator[Node]", nodes)

    def names(self, piece: Piece) -> Sequence[tuple[cst.Name, bool]]:
        """The appearances of variables in a piece, each with whether it is written to."""
        self._of(piece)
        return self._names[piece]

    def _of(self, piece: Piece) -> dict[Piece, ByType]:
        """The nodes of a piece by their type, of each of its statements."""
        if piece not in self._by_type:
            around = self._around(piece)
            found: dict[Piece, ByType] = {}
            before = len(self.walk.names)
            for statement in self._pieces.parse(piece):
                found[statement.piece] = self._walked(statement, around)
            self._by_type[piece] = found
            self._names[piece] = self.walk.names[before:]
        return self._by_type[piece]

    def _around(self, piece: Piece) -> cst.CSTNode:
        """What a piece stands in."""
        number, part = piece
        return block_of(self._statement((number, 0))) if part else self._file

    def _statement(self, piece: Piece) -> cst.CSTNode:
        """The one statement of a piece."""
        self._of(piece)
        return self._parsed[piece]

    def _walked(self, statement: Statement, around: cst.CSTNode) -> ByType:
        node = self._parsed[statement.piece] = statement.node
        if not statement.scope:
            self.statements[node] = statement
        walked = self.walk.statement(node, around, statement.piece, statement.scope, statement.taken)
        if statement.are_cut_out:
            # Nodes keep neither this alive nor themselves: what was made of a file is gone with it, and no garbage.
            this, (number, _), are_cut_out = weakref.proxy(self), statement.piece, statement.are_cut_out
            block, own = block_of(node), block_of(node).body
            object.__setattr__(block, "body", Body(lambda: this.whole(number, are_cut_out, own), own))
        found: ByType = defaultdict(list)
        for one in walked:
            found[type(one)].append(one)
        return found

    def whole(self, number: int, are_cut_out: Sequence[bool], own: Sequence[cst.CSTNode]) -> Iterator[cst.CSTNode]:
        """All statements of a class that is cut, of which `own` are left."""
        left, part, several = iter(own), 0, 0
        for is_cut_out in are_cut_out:
            if is_cut_out:
                part += 1
                yield self._statement((number, part))
            elif several > 1:  # those that share a line are one node
                several -= 1
            else:
                node = next(left)
                several = statements_in(node)
                yield node
