"""The text of code with some of its parts written anew.

In: a node of a Source, and new texts for nodes inside it. Out: the node's text with those; the parentheses around a
part are no part of it, and stay.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

import libcst as cst

from fusionlint.finding import Edit, Location
from fusionlint.source.fix import apply
from fusionlint.source.tree import Source

Node = TypeVar("Node", bound="cst.CSTNode")


def rewritten(node: cst.CSTNode, texts: Mapping[Node, str], source: Source) -> str:
    """The code of `node`, with `texts` in place of what stands there; no part may be inside another."""
    where = source.location(node)
    edits = [Edit(_within(source.location(part), where), text) for part, text in texts.items()]
    return apply(source.code(node), edits)


def _within(part: Location, whole: Location) -> Location:
    """Where a part stands in the text of the whole alone."""

    def column(line: int, column: int) -> int:
        return column - (whole.column - 1) if line == whole.line else column

    return Location(
        part.path,
        part.line - whole.line + 1,
        column(part.line, part.column),
        part.end_line - whole.line + 1,
        column(part.end_line, part.end_column),
    )
