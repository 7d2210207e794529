"""Lines that a fix leaves without a reader: `i = jnp.argmin(d)`, where `d[i]` has become `jnp.min(d)`.

In: the node that is written anew, and its new text. Out: the edits that take such lines away.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set

import libcst as cst

from fusionlint.finding import Edit, Location
from fusionlint.patterns.code.at import holds, names_read
from fusionlint.patterns.code.unpacked import assignment
from fusionlint.source.edited import names_in
from fusionlint.source.tree import Source


def left_unused(node: cst.BaseExpression, text: str, source: Source) -> Iterator[Edit]:
    """The lines that make by jax.numpy, or ask of a shape, what `node` alone reads, and `text` does not."""
    read = {name.value: name for name in names_read(node)}
    for name in sorted(read.keys() - names_in(text)):
        assign = assignment(source.written(read[name]), source)
        if assign is not None and _is_for(node, read[name], assign, source):
            line = whole_line(assign, source)
            if line is not None:
                yield Edit(line, "")


def _is_for(node: cst.BaseExpression, read: cst.Name, assign: cst.Assign, source: Source) -> bool:
    """Whether an assignment does nothing but make one value, in a function, and nothing outside `node` reads it."""
    if len(assign.targets) != 1 or not _only_makes(assign.value, source):
        return False
    if source.function(assign) is None or _is_global(read, source):
        return False  # what the file's own level holds other files may read
    uses = source.uses(read)
    inside = all(node in (use.node, *source.ancestors(use.node)) for use in uses if not use.is_write)
    return inside and sum(use.is_write for use in uses) == 1


def _only_makes(value: cst.BaseExpression, source: Source) -> bool:
    """`jnp.argmin(d)`, `np.prod(x.shape)`, `len(x)`, `x.shape[0]`."""
    match value:
        case cst.Call(func=function):
            name = source.qualified_name(function) or ""
            return name.startswith(("jax.numpy.", "jax.nn.", "numpy.prod")) or source.calls(value, "len")
        case cst.Subscript(value=cst.Attribute() as whole) | (cst.Attribute() as whole):
            return whole.attr.value == "shape" and not holds(whole, cst.Call)
    return False


def _is_global(read: cst.Name, source: Source) -> bool:
    """Whether some function of the file says `global` of that name."""
    said = (line.split("#")[0].replace(",", " ").split() for line in source.pieces.lines if "global" in line)
    return any(words[:1] == ["global"] and read.value in words for words in said)


def whole_line(statement: cst.BaseSmallStatement, source: Source) -> Location | None:
    """All of the lines of a statement; None where more stands there, or nothing beside it in the block."""
    block = source.parent(source.parent(statement) or statement)
    if not isinstance(block, cst.IndentedBlock) or len(block.body) == 1:
        return None
    where = source.location(statement)
    last = source.line(where.end_line)
    beside = source.line(where.line)[: where.column - 1] + last[where.end_column - 1 :]
    is_alone = not beside.strip() and last.endswith("\n")
    return where._replace(column=1, end_line=where.end_line + 1, end_column=1) if is_alone else None


def without_gaps(edits: Iterable[Edit], source: Source) -> tuple[Edit, ...]:
    """The same edits, where the blank lines behind whole lines that go do so too, if there are some before them, or the
    block begins there."""
    told = [*edits]
    gone = {n for edit in told if _is_of_lines(edit) for n in range(edit.location.line, edit.location.end_line)}
    return tuple(_with_blanks(edit, gone, source) if _is_of_lines(edit) else edit for edit in told)


def _is_of_lines(edit: Edit) -> bool:
    where = edit.location
    return not edit.text and where.column == where.end_column == 1 and where.end_line > where.line


def _with_blanks(edit: Edit, gone: Set[int], source: Source) -> Edit:
    where, lines = edit.location, source.pieces.lines
    before, behind = where.line - 1, where.end_line
    while before in gone:
        before -= 1
    if behind in gone or (lines[before - 1].strip() and not lines[before - 1].rstrip().endswith(":")):
        return edit
    while behind < len(lines) and not lines[behind - 1].strip():
        behind += 1
    return Edit(where._replace(end_line=behind), "")
