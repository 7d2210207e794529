"""Where the nodes of a libcst tree stand in the text.

libcst finds positions by writing the whole tree out again, which takes longer than its parse. Here only the statements
at the file's own level that somebody asks about are written out: the standard `ast` knows in which line each begins.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Mapping, Sequence

import libcst as cst
from libcst.metadata import CodePosition, CodeRange, MetadataWrapper, PositionProvider


class Positions:
    """The positions of the nodes of `tree`, the tree of the text `data`; found when they are asked for."""

    def __init__(self, tree: cst.Module, data: bytes) -> None:
        self._tree = tree
        self._data = data
        self._first_lines: dict[cst.CSTNode, int] | None = None
        self._written: dict[cst.CSTNode, tuple[Mapping[cst.CSTNode, CodeRange], int]] = {}

    def of(self, node: cst.CSTNode, statement: cst.CSTNode) -> CodeRange:
        """Where `node` stands; `statement` is the one of the file's own level that it is part of, or is."""
        if statement not in self._written:
            self._written[statement] = self._write_out(statement)
        spans, down = self._written[statement]
        start, end = spans[node].start, spans[node].end
        return CodeRange(CodePosition(start.line + down, start.column), CodePosition(end.line + down, end.column))

    def _write_out(self, statement: cst.CSTNode) -> tuple[Mapping[cst.CSTNode, CodeRange], int]:
        """The positions of what is in a statement, and how many lines further down they are in the file."""
        if self._first_lines is None:
            self._first_lines = _first_lines(self._tree, self._data)
        if statement not in self._first_lines:  # written for a newer Python
            return _positions(self._tree), 0
        spans = _positions(self._tree.with_changes(header=(), body=[statement], footer=()))
        return spans, self._first_lines[statement] - spans[statement].start.line


def _positions(tree: cst.Module) -> Mapping[cst.CSTNode, CodeRange]:
    return MetadataWrapper(tree, unsafe_skip_copy=True).resolve(PositionProvider)


def _first_lines(tree: cst.Module, data: bytes) -> dict[cst.CSTNode, int]:
    """The line that each statement of the file's own level begins in, 1-based; none where ast cannot parse the file."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            statements: Sequence[ast.stmt] = ast.parse(data).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {}
    found: dict[cst.CSTNode, int] = {}
    number = 0
    for statement in tree.body:
        found[statement] = statements[number].lineno
        number += len(statement.body) if isinstance(statement, cst.SimpleStatementLine) else 1
    return found
