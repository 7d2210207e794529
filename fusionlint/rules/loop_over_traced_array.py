"""Python loops over an array of indices in traced code: `for i in jnp.arange(n): ... x[i]`."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from fusionlint.finding import Edit, Finding
from fusionlint.patterns.at import inside
from fusionlint.patterns.collected import is_few
from fusionlint.patterns.often import is_for_a_picture
from fusionlint.rule import Rule
from fusionlint.source.tree import Source

rule = Rule(__name__, harm="fusion")

_ARANGE = "jax.numpy.arange"


@rule.source("For", "CompFor", calls=(_ARANGE,))
def indices_from_an_array(loop: cst.For | cst.CompFor, source: Source) -> Iterator[Finding]:
    """The array is `jnp.arange(n)`, and the loop reads the index that it gets from it."""
    arange = source.value(loop.iter) if isinstance(loop.iter, cst.Name) else loop.iter
    if not isinstance(arange, cst.Call) or not source.calls(arange, _ARANGE) or not isinstance(loop.target, cst.Name):
        return
    if not source.is_traced(loop) or is_for_a_picture(source.project, source.place(loop)) or is_few(arange, source):
        return
    reads = source.reads(loop.target)
    if not reads or any(arg.keyword is not None or _is_fraction(arg.value, source) for arg in arange.args):
        return
    counted = ", ".join(source.code(arg.value) for arg in arange.args)
    shown = f"range({counted})" if len(counted) <= 40 and "\n" not in counted else "range(...)"
    yield source.finding(
        loop if isinstance(loop, cst.For) else loop.iter,
        f"each {loop.target.value} is a traced value: what it indexes is sliced at a place that XLA does not know",
        write=shown,
        edits=_edits(loop, arange, source),
        safe=all(_is_index(read, source) for read in reads),
    )


def _edits(loop: cst.For | cst.CompFor, arange: cst.Call, source: Source) -> tuple[Edit, ...]:
    """`range` in place of `jnp.arange`, where all that it takes is seen to be whole numbers."""
    if loop.iter is not arange or not all(_is_whole(arg.value, source) for arg in arange.args):
        return ()
    return (source.replace(arange.func, "range"),)


def _is_fraction(node: cst.BaseExpression, source: Source) -> bool:
    """Whether steps of a fraction are taken: `range` does not go by those."""
    node = source.meant(node)
    return any(isinstance(part, cst.Float | cst.Divide) for part in inside(node))


def _is_whole(node: cst.BaseExpression, source: Source) -> bool:
    """Whether `node` is a whole Python number: written out, a length, or computed from such."""
    match node:
        case cst.Integer() | cst.Subscript(value=cst.Attribute(attr=cst.Name("shape"))):
            return not isinstance(node, cst.Subscript) or isinstance(node.slice[0].slice, cst.Index)
        case cst.Attribute(attr=cst.Name("size" | "ndim")):
            return True
        case cst.Call():
            return source.calls(node, "len")
        case cst.BinaryOperation(
            left=left, operator=cst.Add() | cst.Subtract() | cst.Multiply() | cst.FloorDivide(), right=right
        ):
            return _is_whole(left, source) and _is_whole(right, source)
        case cst.Name():
            value = source.value(node)
            return value is not None and _is_whole(value, source)
    return False


def _is_index(read: cst.Name, source: Source) -> bool:
    """Whether `read` is all of an index, or an index but for whole numbers: `x[i]`, `x[2 * i + 1]`."""
    node: cst.CSTNode = read
    for above in source.ancestors(read):
        match above:
            case cst.Index():
                return True
            case cst.BinaryOperation(left=left, operator=cst.Add() | cst.Subtract() | cst.Multiply(), right=right) if (
                isinstance(right if node is left else left, cst.Integer)
            ):
                node = above
            case _:
                return False
    return False
