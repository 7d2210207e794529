"""How results that are read one after the other are read at once: what a fix writes.

In: the reads of a call's results, or a question about each of some arrays. Out: the edits; none where they are not all
that it takes.
"""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from fusionlint.finding import Edit, Location
from fusionlint.patterns.code.at import names_read
from fusionlint.patterns.code.imports import imported
from fusionlint.patterns.code.layout import end_of
from fusionlint.patterns.values.reads import Read
from fusionlint.source.names import TREE_MAPS
from fusionlint.source.tree import Source
from fusionlint.source.walk import holds_comment

_GET = "jax.device_get"


def read_at_once(found: Sequence[Read], source: Source) -> tuple[Edit, ...]:
    """A line before the first of the reads that fetches all of them, where nothing else reads what they are of; of one
    tree that is fetched leaf by leaf, all of it."""
    names = {read.what: name for read in found for name in names_read(read.node) if name.value == read.what}
    jax = imported("jax", found[0].node, source)
    if len({read.what for read in found}) == 1:
        return _of_a_tree(found[0].node, source)
    if jax is None or len(names) != len({read.what for read in found}):
        return ()  # parts of results, which are made by programs of their own
    nodes = [read.node for read in found]
    for name in names.values():
        written = source.written(name)
        if written is None or not all(_is_inside(read, nodes, source) for read in source.reads(written)):
            return ()
    line = source.nearest(nodes[0], cst.SimpleStatementLine)
    if line is None or not all(
        source.always_precedes(line, node) or _is_inside(node, [line], source) for node in nodes
    ):
        return ()
    where = source.location(line)
    blanks = source.line(where.line)[: where.column - 1]
    end = end_of(source.line(where.line))
    if blanks.strip():
        return ()
    listed = ", ".join(names)
    text = f"{blanks}{listed} = {jax.name}.device_get(({listed})){end}"
    return (*jax.edits, Edit(Location(source.path, where.line, 1, where.line, 1), text))


def _is_inside(node: cst.CSTNode, around: Sequence[cst.CSTNode], source: Source) -> bool:
    above = {node, *source.ancestors(node)}
    return any(each in above for each in around)


def _of_a_tree(node: cst.Call, source: Source) -> tuple[Edit, ...]:
    """`jax.device_get(jax.tree.map(lambda x: x[0], out))` of `jax.tree.map(lambda x: jax.device_get(x[0]), out)`."""
    match node:
        case cst.Call(
            args=[
                cst.Arg(value=cst.Lambda(params=params, body=cst.Call(args=[cst.Arg(value=part, star="")]) as get)),
                tree,
            ]
        ) if source.calls(node, *TREE_MAPS) and source.calls(get, _GET) and not holds_comment(node):
            if tree.keyword is not None or tree.star or len(params.params) != 1 or "\n" in source.code(node):
                return ()
            leaf = f"lambda {params.params[0].name.value}: {source.code(part)}"
            mapped = f"{source.code(node.func)}({leaf}, {source.code(tree.value)})"
            return (source.replace(node, f"{source.code(get.func)}({mapped})"),)
    return ()


def asked_at_once(node: cst.Call, source: Source) -> tuple[Edit, ...]:
    """`all(jax.device_get([...]))` of `all(... for ...)`."""
    jax = imported("jax", node, source)
    match node:
        case cst.Call(args=[cst.Arg(value=cst.GeneratorExp() | cst.ListComp() as each)]) if jax is not None:
            if holds_comment(node) or isinstance(each.elt, cst.BooleanOperation) or _is_of_python(each.elt, source):
                return ()
            inner = f"{source.code(each.elt)} {source.code(each.for_in).strip()}"
            return (*jax.edits, source.replace(node, f"{source.code(node.func)}({jax.name}.device_get([{inner}]))"))
    return ()


def _is_of_python(truth: cst.BaseExpression, source: Source) -> bool:
    """`bool(x)` and `not x`, which wait themselves."""
    is_not = isinstance(truth, cst.UnaryOperation) and isinstance(truth.operator, cst.Not)
    return is_not or source.calls(truth, "bool")
