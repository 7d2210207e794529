"""Where the nodes of a libcst tree stand in the text.

libcst finds positions by writing a tree out again, which takes longer than its parse. Here only the functions, and the
statements of the file's own level, that somebody asks about are written out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import cast

import libcst as cst
from libcst.metadata import CodePosition, CodeRange, PositionProvider
from libcst.metadata.position_provider import PositionProvidingCodegenState


class Positions:
    """The positions of nodes; found when they are asked for."""

    def __init__(self) -> None:
        self._written: dict[cst.CSTNode, Mapping[cst.CSTNode, CodeRange]] = {}

    def of(
        self, node: cst.CSTNode, statement: cst.CSTNode, line: int, tree: cst.Module, indents: Iterable[str]
    ) -> CodeRange:
        """Where `node` stands. `statement` is a def around it, or what it is part of at the file's own level; `line` is
        the one that this begins in, 1-based: a def after its decorators, anything else with them."""
        if statement not in self._written:
            self._written[statement] = _written_out(statement, tree, indents)
        spans = self._written[statement]
        down = line - (spans[statement].start.line if isinstance(statement, cst.FunctionDef) else 1)
        start, end = spans[node].start, spans[node].end
        return CodeRange(CodePosition(start.line + down, start.column), CodePosition(end.line + down, end.column))


def _written_out(statement: cst.CSTNode, tree: cst.Module, indents: Iterable[str]) -> Mapping[cst.CSTNode, CodeRange]:
    provider = PositionProvider()
    # What PositionProvider does with a module, without its visits of every node.
    state = PositionProvidingCodegenState(tree.default_indent, tree.default_newline, provider=provider)
    for indent in indents:
        state.increase_indent(indent)
    statement._codegen(state)  # noqa: SLF001 - libcst has no public way to less than a module
    return cast(Mapping[cst.CSTNode, CodeRange], provider._computed)  # noqa: SLF001
