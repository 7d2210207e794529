"""A function that what a fix writes calls, where jax has none: it stands before the first def or class of the file.

In: the lines of the function, and a node that is to call it. Out: its name and the edits by which the file has it, none
where it has it already; None where the name means something else, or the node may run before a def there.
"""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from fusionlint.finding import Edit, Location
from fusionlint.patterns.code.before import with_comments
from fusionlint.patterns.code.imports import Imported
from fusionlint.patterns.code.layout import end_of, step_of
from fusionlint.source.texts import is_notebook
from fusionlint.source.tree import Source

_STEP = "    "


def helper(name: str, lines: Sequence[str], node: cst.CSTNode, source: Source) -> Imported | None:
    """What code at `node` may call the function of these lines, which go four blanks deeper with each block."""
    if is_notebook(source.path):
        return None  # whose cells run in any order
    end, step = end_of(source.line(1)), step_of(source)
    text = "".join(f"{line.replace(_STEP, step)}{end}" for line in lines)
    if text in source.pieces.text:
        return Imported(name)
    where = _place(node, source)
    if where is None or any(name in bound for bound in source.facts.bindings.values()):
        return None
    return Imported(name, (Edit(where, f"{text}{end}{end}"),))


def _place(node: cst.CSTNode, source: Source) -> Location | None:
    """Before the first def or class, and the comments that stand right above it."""
    first = next((first for first, _, is_definition, *_ in source.facts.raw.statements if is_definition), None)
    if first is None or source.location(node).line < first:
        return None
    above = with_comments(first, source)
    return Location(source.path, above, 1, above, 1)
