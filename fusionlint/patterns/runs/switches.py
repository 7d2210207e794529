"""What decides whether code runs: a setting, an argument that the caller may leave out, a trial of the module.

In: a node of a Source. Unknown is no switch.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from fusionlint.patterns.code.at import inside
from fusionlint.source.tree import Source
from fusionlint.source.walk import dotted


def switches(node: cst.CSTNode, source: Source) -> Iterator[tuple[cst.CSTNode, cst.CSTNode]]:
    """What decides inside its function whether `node` runs, and the part of it that `node` stands in."""
    function = source.function(node)
    for below, above in source.outward(node):
        if above is function:
            return
        if isinstance(above, cst.If | cst.IfExp | cst.BooleanOperation | cst.ExceptHandler | cst.Match):
            yield above, below


def ifs_around(node: cst.CSTNode, source: Source) -> Iterator[tuple[cst.If, cst.CSTNode]]:
    """The `if`s that decide so, and the branch of each that `node` stands in."""
    for above, below in switches(node, source):
        if isinstance(above, cst.If) and below is not above.test:
            yield above, below


def is_switched(node: cst.CSTNode, source: Source) -> bool:
    """Whether an `if` of the function around `node` decides if it runs."""
    return any(True for _ in switches(node, source))


def is_left_before(node: cst.CSTNode, source: Source) -> bool:
    """Whether the function around `node` returns nothing before it gets there, unless a setting says otherwise:
    `if name not in self.shown: return`."""
    function = source.function(node)
    around = {id(above) for above in source.ancestors(node)}
    for line in function.body.body if isinstance(function, cst.FunctionDef) else ():
        if id(line) in around:
            return False
        match line:
            case cst.If(
                test=test, body=cst.IndentedBlock(body=[*_, cst.SimpleStatementLine(body=[*_, cst.Return(value=None)])])
            ):
                if any(isinstance(part, cst.Attribute) and dotted(part)[:5] == "self." for part in inside(test)):
                    return True
    return False


def is_tried(node: cst.CSTNode, source: Source) -> bool:
    """Whether `node` stands under `if __name__ == "__main__":`, in a trial of the module."""
    for above in source.ancestors(node):
        match above:
            case cst.If(test=cst.Comparison(left=cst.Name("__name__"))):
                return True
    return False


def is_asked_for(node: cst.CSTNode, source: Source) -> bool:
    """Whether `node` runs only if the caller gave something to tell it by: `if name is not None`, where the name is an
    argument and None by default."""
    return any(below is above.body and _is_given(above.test, source) for above, below in ifs_around(node, source))


def _is_given(test: cst.BaseExpression, source: Source) -> bool:
    match test:
        case cst.Comparison(
            left=cst.Name() as asked,
            comparisons=[cst.ComparisonTarget(operator=cst.IsNot(), comparator=cst.Name("None"))],
        ):
            match source.binder(asked):
                case cst.Param(default=cst.Name("None")):
                    return True
    return False
