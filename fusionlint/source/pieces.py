"""The text of a file, cut where libcst can parse it piece by piece: each def and class of the file's own level by
itself, and all other code of that level together.

What is asked of a file mostly concerns one of its functions; a libcst parse costs ten times one by `ast`, whose lines
say where to cut.
"""

from __future__ import annotations

import io
import re
import tokenize
from bisect import bisect_right
from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple, TypeAlias

import libcst as cst

from fusionlint.source.facts import Raw
from fusionlint.source.fix import split_lines

# A piece is called by the place of its def or class among the statements of the file; the rest is called MODULE.
Piece: TypeAlias = int
MODULE: Piece = -1


class Statement(NamedTuple):
    """A statement of the file's own level, its place among them, the tree that it was parsed in, and the line, 1-based,
    that it begins in, decorators included. `taken` are the names of scopes that are opened before it."""

    node: cst.CSTNode
    number: int
    tree: cst.Module
    line: int
    taken: frozenset[str]


class Pieces:
    """The pieces of the text `data`, of which the facts `raw` were read."""

    def __init__(self, data: bytes, raw: Raw) -> None:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        self.lines = split_lines(data.decode(encoding))
        self._statements = raw.statements
        self._first_lines = [first for first, *_ in raw.statements]
        self._opened = [scope for scope in raw.bindings if scope and "." not in scope]

    def __iter__(self) -> Iterator[Piece]:
        yield from (number for number, (_, _, is_definition, _) in enumerate(self._statements) if is_definition)
        yield MODULE

    def of_line(self, line: int) -> Piece:
        """The piece with the code of a line, 1-based."""
        number = bisect_right(self._first_lines, line) - 1
        return number if number >= 0 and self._statements[number][2] else MODULE

    def of_scope(self, scope: str) -> Piece:
        """The piece with the code of a scope."""
        return self._homes.get(scope.partition(".")[0], MODULE)

    def mentioning(self, name: str) -> Iterator[Piece]:
        """The pieces that could use a variable of the file's own level."""
        word = re.compile(rf"\b{re.escape(name)}\b")
        for piece in self:
            if piece == MODULE or word.search(self._text(piece)):
                yield piece

    def writing(self, name: str) -> Iterator[Piece]:
        """The pieces that could write to a variable of the file's own level."""
        globally = re.compile(rf"\bglobal\b.*\b{re.escape(name)}\b", re.DOTALL)
        for piece in self:
            if piece in (MODULE, self.of_scope(name)) or globally.search(self._text(piece)):
                yield piece

    def parse(self, piece: Piece) -> Iterator[Statement]:
        """The statements of a piece. cst.ParserSyntaxError when it does not parse."""
        numbers = [piece] if piece != MODULE else [n for n, s in enumerate(self._statements) if not s[2]]
        if not numbers:
            return
        tree = self._tree(numbers)
        at = 0
        for node in tree.body:
            first, _, _, opened = self._statements[numbers[at]]
            yield Statement(node, numbers[at], tree, first, frozenset(self._opened[:opened]))
            at += len(node.body) if isinstance(node, cst.SimpleStatementLine) else 1

    def _tree(self, numbers: list[int]) -> cst.Module:
        lines = self._lines_of(numbers)
        try:
            return cst.parse_module("".join(self.lines[line - 1] for line in lines))
        except cst.ParserSyntaxError as error:
            line = lines[min(error.raw_line, len(lines)) - 1]
            raise cst.ParserSyntaxError(
                error.message, lines=self.lines, raw_line=line, raw_column=error.raw_column
            ) from error

    def _lines_of(self, numbers: list[int]) -> list[int]:
        """The lines of statements, each once: several may share one."""
        found: list[int] = []
        for number in numbers:
            first, last, _, _ = self._statements[number]
            found.extend(range(max(first, found[-1] + 1 if found else 1), last + 1))
        return found

    def _text(self, number: int) -> str:
        first, last, _, _ = self._statements[number]
        return "".join(self.lines[first - 1 : last])

    @cached_property
    def _homes(self) -> dict[str, Piece]:
        """The definition that opens each scope of the file's own level, or that it stands in."""
        bounds = [opened for *_, opened in self._statements] + [len(self._opened)]
        return {
            scope: number
            for number, (_, _, is_definition, _) in enumerate(self._statements)
            if is_definition
            for scope in self._opened[bounds[number] : bounds[number + 1]]
        }
