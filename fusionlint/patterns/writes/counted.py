"""The places along an axis, which masks are made of, counted once for all of them: in a line before the first.

In: the writes of a chain in a Source, and the edits that count the places anew for each of them. Out: the same edits
with a name for that, and the line; where no line can stand, as they were.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence

import libcst as cst

from fusionlint.finding import Edit
from fusionlint.lazily import regex
from fusionlint.patterns.code.at import Write, names_read
from fusionlint.patterns.code.before import free_name, lines_beside
from fusionlint.patterns.writes.chain import root
from fusionlint.source.tree import Source
from fusionlint.source.walk import dotted

# How places are counted: `jnp.arange(x.shape[0])[:, None]`, and for a number of axes that nobody sees.
_COUNTED = regex(r"\w+\.(?:arange\([\w.\[\]-]+\)(?:\[:[, \w]*\])?|indices\([^()]+\)\[\d+\])(?= [=<>])")


def counted_once(
    writes: Sequence[Write], arrays: Sequence[cst.BaseExpression], edits: Sequence[Edit], source: Source
) -> Iterator[Edit]:
    """The same edits with the places counted once, in a line before the first of them, where such a line can stand and
    they are counted in the same way more than once."""
    first, array = line_of(writes[0].call, source), root(writes[0])
    texts = [
        re.sub(rf"(?<=[( ]){re.escape(source.code(other))}\.shape(?=[,\[])", f"{source.code(array)}.shape", edit.text)
        for other, edit in zip(arrays, edits, strict=True)
    ]
    axes = _axes_in({found for text in texts for found in _COUNTED.findall(text)})
    counted = sorted(axes, key=lambda code: (axes[code], code))
    counts = [sum(text.count(code) for text in texts) for code in counted]
    if first is None or not isinstance(array, cst.Name | cst.Attribute) or max(counts, default=0) < 2:
        yield from edits
        return
    block, called = source.parent(first), dotted(array).replace(".", "_")
    names = [free_name(f"{called}_{what}", first, source) for what in _called([axes[code] for code in counted])]
    is_around = block is not None and all(block in source.ancestors(write.call) for write in writes)
    if not is_around or not _is_the_same_there(array, first, source) or len({*names}) < len(names):
        yield from edits
        return
    lines = [f"{name} = {code}" for name, code in zip(names, counted, strict=True)]
    for text, edit in zip(texts, edits, strict=True):
        for name, code in sorted(zip(names, counted, strict=True), key=lambda pair: -len(pair[1])):
            text = text.replace(code, name)
        yield edit._replace(text=text)
    yield from lines_beside(first, source, before=lines) or ()  # line_of has seen that they can stand there


def _axes_in(codes: Collection[str]) -> dict[str, int]:
    """The axis along which each such code counts places: 1 of `jnp.arange(x.shape[1])`, of `jnp.indices(x.shape)[1]`;
    where a length is written out, `jnp.arange(3)[:, None]`, by how many axes are behind it."""
    said = {code: int(told[-1]) for code in codes if (told := re.findall(r"\[(-?\d+)\]", code))}
    behind = {code: code.count("None") for code in codes}
    last = max((max(said.get(code, 0), 0) + count for code, count in behind.items()), default=0)
    return {code: said.get(code, last - behind[code]) for code in codes}


def _called(axes: Sequence[int]) -> Sequence[str]:
    """What the numbers of places along some axes are called: another name for each, as two fixes may stand side by
    side."""
    if axes == [0, 1]:
        return ("rows", "columns")
    return ["places" if axis == 0 else "last" if axis == -1 else f"places_{abs(axis)}" for axis in axes]


def line_of(node: cst.CSTNode, source: Source) -> cst.SimpleStatementLine | None:
    """The line that `node` stands in, where another line can be written before it."""
    line = source.nearest(node, cst.SimpleStatementLine)
    if line is None or not isinstance(source.parent(line), cst.IndentedBlock):
        return None
    where = source.location(line)
    return line if not source.line(where.line)[: where.column - 1].strip() else None


def _is_the_same_there(array: cst.Name | cst.Attribute, there: cst.CSTNode, source: Source) -> bool:
    """Whether the array is no parameter of a lambda that stands in the line."""
    return all(
        source.facts.lookup(source.scope(name), name.value) == source.facts.lookup(_scope_of(there, source), name.value)
        for name in names_read(array)
    )


def _scope_of(line: cst.CSTNode, source: Source) -> str:
    function = source.function(line)
    return source.body_scope(function) if function is not None else ""
