"""Where the nodes of a libcst tree stand in the text.

libcst finds positions by writing a tree out again, token by token, and noting the place of each: that takes longer than
its parse. Here only the functions, and the statements of the file's own level, that somebody asks about are written
out, and lines and columns are counted for the nodes asked about alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import libcst as cst
from libcst._nodes.internal import CodegenState
from libcst.metadata import CodePosition, CodeRange

from fusionlint.source.fix import split_lines


class Positions:
    """The positions of nodes; found when they are asked for."""

    def __init__(self) -> None:
        self._written: dict[cst.CSTNode, _Written] = {}

    def of(
        self, node: cst.CSTNode, statement: cst.CSTNode, line: int, tree: cst.Module, indents: Iterable[str]
    ) -> CodeRange:
        """Where `node` stands. `statement` is a def around it, or what it is part of at the file's own level; `line` is
        the one that this begins in, 1-based: a def after its decorators, anything else with them."""
        if statement not in self._written:
            self._written[statement] = _written_out(statement, tree, indents)
        written = self._written[statement]
        start, end = written.begin(node), written.end(node)
        down = line - (written.begin(statement).line if isinstance(statement, cst.FunctionDef) else 1)
        return CodeRange(CodePosition(start.line + down, start.column), CodePosition(end.line + down, end.column))


class _Written(CodegenState):
    """What is written, and after how many tokens each node begins and ends, without the blanks around it."""

    def __init__(self, tree: cst.Module) -> None:
        super().__init__(tree.default_indent, tree.default_newline)
        self._spans: dict[cst.CSTNode, tuple[int, int]] = {}
        self._begun: list[int] = []

    def begin(self, node: cst.CSTNode) -> CodePosition:
        """Where a node begins: the line from 1 on, the column from 0."""
        return self._place(self._spans[node][0])

    def end(self, node: cst.CSTNode) -> CodePosition:
        return self._place(self._spans[node][1])

    def _place(self, tokens: int) -> CodePosition:
        lines = split_lines("".join((*self.tokens[:tokens], "|")))  # the mark stands in a line, be it a new one
        return CodePosition(len(lines), len(lines[-1]) - 1)

    def before_codegen(self, _: cst.CSTNode) -> None:
        self._begun.append(len(self.tokens))

    def after_codegen(self, node: cst.CSTNode) -> None:
        self._spans.setdefault(node, (self._begun.pop(), len(self.tokens)))

    @contextmanager
    def record_syntactic_position(
        self, node: cst.CSTNode, *, start_node: cst.CSTNode | None = None, end_node: cst.CSTNode | None = None
    ) -> Iterator[None]:
        start = len(self.tokens)
        yield
        first = self._spans[start_node][0] if start_node is not None else start
        last = self._spans[end_node][1] if end_node is not None else len(self.tokens)
        self._spans[node] = first, last


def _written_out(statement: cst.CSTNode, tree: cst.Module, indents: Iterable[str]) -> _Written:
    written = _Written(tree)
    for indent in indents:
        written.increase_indent(indent)
    statement._codegen(written)  # noqa: SLF001 - libcst has no public way to less than a module
    return written
