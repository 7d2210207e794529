"""The trees of those pieces of a file that have been asked about, walked as one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias

import libcst as cst

from fusionlint.source.pieces import Piece, Pieces, Statement
from fusionlint.source.walk import Walk

ByType: TypeAlias = "dict[type[cst.CSTNode], list[cst.CSTNode]]"


class Parsed:
    """What was parsed so far; every question parses what it takes. cst.ParserSyntaxError where that cannot be done."""

    def __init__(self, pieces: Pieces) -> None:
        self.walk = Walk()
        self.statements: dict[cst.CSTNode, Statement] = {}
        self._pieces = pieces
        self._by_type: dict[Piece, dict[int, ByType]] = {}
        self._names: dict[Piece, Sequence[tuple[cst.Name, bool]]] = {}
        self._file = cst.Module([])  # what all statements of the file's own level stand in

    def nodes(self, pieces: Iterable[Piece], types: Iterable[type[cst.CSTNode]]) -> Iterator[cst.CSTNode]:
        """The nodes of exactly these types in some pieces, in the order of the file, a node before those inside it."""
        found: dict[int, ByType] = {}
        for piece in pieces:
            found.update(self._of(piece))
        return (node for kind in types for number in sorted(found) for node in found[number].get(kind, ()))

    def names(self, piece: Piece) -> Sequence[tuple[cst.Name, bool]]:
        """The appearances of variables in a piece, each with whether it is written to."""
        self._of(piece)
        return self._names[piece]

    def _of(self, piece: Piece) -> dict[int, ByType]:
        """The nodes of a piece by their type, of each of its statements."""
        if piece not in self._by_type:
            found: dict[int, ByType] = {}
            before = len(self.walk.names)
            for statement in self._pieces.parse(piece):
                found[statement.number] = self._walked(statement)
            self._by_type[piece] = found
            self._names[piece] = self.walk.names[before:]
        return self._by_type[piece]

    def _walked(self, statement: Statement) -> ByType:
        self.statements[statement.node] = statement
        walked = self.walk.statement(statement.node, self._file, statement.number, statement.taken)
        found: ByType = defaultdict(list)
        for node in walked:
            found[type(node)].append(node)
        return found
