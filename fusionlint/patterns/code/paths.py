"""One path through the `if`s of a function: what is read on it, and what never runs with it.

In: nodes of a Source. A trace takes one branch of each `if`, for it asks what Python knows: what is compiled is
straight code, as if the branches taken stood there without their `if`s.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import libcst as cst

from fusionlint.source.tree import Source


def stored_before(read: cst.Name, path: Sequence[cst.CSTNode], source: Source) -> cst.Name | None:
    """The write that `read` reads where all of `path` runs and each branch before it that may: the last one in the text
    that nothing but `if`s stands between."""
    writes = (use.node for use in source.writes(read) if use.order < source.order(read))
    may_run = [name for name in writes if not any(never_both(name, each, source) for each in (read, *path))]
    return may_run[-1] if may_run and is_behind_ifs(may_run[-1], read, source) else None


def is_behind_ifs(one: cst.CSTNode, other: cst.CSTNode, source: Source) -> bool:
    """Whether both run once, or never, in the code that is around both: each on its side stands in `if`s alone."""
    apart = {*source.ancestors(one)} ^ {*source.ancestors(other)}
    return not any(map(_may_run_otherwise, apart))


def _may_run_otherwise(block: cst.CSTNode) -> bool:
    """Whether what is in it may run another number of times than what is around it, or elsewhere."""
    several = cst.For | cst.While | cst.Try | cst.TryStar | cst.Match
    return isinstance(block, several | cst.FunctionDef | cst.Lambda | cst.ClassDef)


def go_through_ifs(nodes: Sequence[cst.CSTNode], source: Source) -> bool:
    """Whether an `if` stands around one of the nodes and not around another."""
    around = (set(source.ancestors(node, cst.If)) for node in nodes)
    first, *others = around
    return any(other != first for other in others)


def never_both(one: cst.CSTNode, other: cst.CSTNode, source: Source) -> bool:
    """Whether the two stand in branches of which one path has only one: of one `if`, or of two `if`s that ask the
    same, `if a:` and `if not a:`, `if side == "left":` and `if side == "right":`."""
    if source.apart(one, other) or source.apart(other, one):  # the first may be in a branch that returns
        return True
    asked, asked_other = [*_asked(one, source)], [*_asked(other, source)]
    return any(_exclude(a, b, source) for a in asked for b in asked_other)


def _asked(node: cst.CSTNode, source: Source) -> Iterator[tuple[cst.BaseExpression, bool]]:
    """What the `if`s around `node` ask, and what the answer is where `node` runs."""
    for below, above in source.outward(node):
        match above:
            case cst.FunctionDef() | cst.Lambda() | cst.ClassDef():
                return
            case cst.If(test=test, body=body) if below is not test:
                yield _plain(test, is_so=below is body)


def _plain(test: cst.BaseExpression, *, is_so: bool) -> tuple[cst.BaseExpression, bool]:
    """A question without its `not`."""
    while isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
        test, is_so = test.expression, not is_so
    return test, is_so


def _exclude(one: tuple[cst.BaseExpression, bool], other: tuple[cst.BaseExpression, bool], source: Source) -> bool:
    (test, is_so), (asked, answer) = one, other
    if source.code(test) == source.code(asked):
        return is_so is not answer
    match test, asked:
        case (
            cst.Comparison(left=left, comparisons=[cst.ComparisonTarget(operator=first, comparator=value)]),
            cst.Comparison(left=again, comparisons=[cst.ComparisonTarget(operator=second, comparator=another)]),
        ) if source.code(left) == source.code(again):
            if source.code(value) == source.code(another):
                return is_so is answer and _are_opposite(first, second)
            return is_so and answer and isinstance(first, cst.Equal) and isinstance(second, cst.Equal)
    return False


def _are_opposite(one: cst.BaseCompOp, other: cst.BaseCompOp) -> bool:
    return {type(one), type(other)} in ({cst.Is, cst.IsNot}, {cst.Equal, cst.NotEqual})
