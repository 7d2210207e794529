"""What runs before what: blocks, branches and loops of a libcst tree.

In: nodes and what each stands in (`Walk.parents`). Out: whether one is sure to run where another does. A node counts as
reached when its block is: what breaks in between, and what returns or raises elsewhere than at a branch's end, is not
followed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import TypeAlias

import libcst as cst

Parents: TypeAlias = "Mapping[cst.CSTNode, cst.CSTNode]"


def ancestors(parents: Parents, node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """The nodes around `node`, innermost first."""
    while (above := parents.get(node)) is not None:
        yield above
        node = above


def always_follows(parents: Parents, first: cst.CSTNode, second: cst.CSTNode) -> bool:
    """Whether `second`, later in the text, runs whenever `first` has run."""
    return next(_blocks(parents, second), None) in list(_blocks(parents, first))


def always_precedes(parents: Parents, first: cst.CSTNode, second: cst.CSTNode) -> bool:
    """Whether `first`, earlier in the text, has run whenever `second` does."""
    return next(_blocks(parents, first), None) in list(_blocks(parents, second))


def apart(parents: Parents, one: cst.CSTNode, other: cst.CSTNode) -> bool:
    """Whether the two stand in different branches of one `if` or `match`, or one in a branch that returns or raises and
    the other of the same function behind it: never both run."""
    below = dict(_steps(parents, one))
    for above, child in _steps(parents, other):
        if above in below:
            mine = below[above]
            match above:
                case cst.If(body=body, orelse=orelse):
                    return {mine, child} == {body, orelse}
                case cst.Match():
                    return mine is not child and isinstance(mine, cst.MatchCase) and isinstance(child, cst.MatchCase)
            return _never_gets_to(parents, one, above, other)
    return False


def is_dead(parents: Parents, node: cst.CSTNode) -> bool:
    """Whether nothing runs `node`: a statement before it, of a block that it stands in, raises or returns, or an `if`
    around it never takes its branch."""
    for above, child in _steps(parents, node):
        match above:
            case cst.IndentedBlock() if child in _unreached(above):
                return True
            case cst.If(test=test, body=body, orelse=orelse) | cst.IfExp(test=test, body=body, orelse=orelse):
                if (child is body and _always(test) is False) or (child is orelse and _always(test) is True):
                    return True
            case cst.FunctionDef() | cst.Lambda():
                return False
    return False


@lru_cache(maxsize=256)
def _unreached(block: cst.IndentedBlock) -> frozenset[cst.CSTNode]:
    """The lines of a block behind one that raises or returns."""
    lines = list(block.body)
    ends = (i for i, line in enumerate(lines, 1) if isinstance(line, cst.SimpleStatementLine) and _ends(line))
    return frozenset(lines[next(ends, len(lines)) :])


def _always(test: cst.BaseExpression) -> bool | None:
    """What a condition is as it is written: `False`, and what is meant by `method == "adam" or "sgd"` is not what it
    says; None where it may be either."""
    match test:
        case cst.Name("True" | "False"):
            return test.value == "True"
        case cst.Integer() | cst.SimpleString():
            return bool(test.evaluated_value)
        case cst.UnaryOperation(operator=cst.Not(), expression=inner):
            found = _always(inner)
            return None if found is None else not found
        case cst.BooleanOperation(left=left, operator=operator, right=right):
            both, decides = (_always(left), _always(right)), isinstance(operator, cst.Or)
            return decides if decides in both else None if None in both else not decides
    return None


def _ends(line: cst.SimpleStatementLine) -> bool:
    return isinstance(line.body[-1], cst.Raise | cst.Return)


def _never_gets_to(parents: Parents, one: cst.CSTNode, around: cst.CSTNode, other: cst.CSTNode) -> bool:
    """Whether a branch with `one`, somewhere in `around` and without `other`, ends the function that both are code of.
    What a `try` catches, or does at last, is not looked into."""
    leaves, is_inside = False, True
    for above, child in _steps(parents, one):
        is_inside = is_inside and above is not around
        match above:
            case cst.If() if is_inside and isinstance(child, cst.IndentedBlock):
                leaves = leaves or _leaves(child)
            case cst.Try() | cst.TryStar():
                return False
            case cst.FunctionDef():
                return leaves and next(_functions(parents, other), None) is above
    return False


def _leaves(block: cst.IndentedBlock) -> bool:
    match block.body[-1:]:
        case [cst.SimpleStatementLine(body=[*_, cst.Return() | cst.Raise()])]:
            return True
    return False


def _functions(parents: Parents, node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    return (above for above in ancestors(parents, node) if isinstance(above, cst.FunctionDef | cst.Lambda))


def loops(parents: Parents, node: cst.CSTNode) -> Iterator[cst.For | cst.While]:
    """The loop statements that run `node` again and again, innermost first; functions are not looked out of."""
    for above, child in _steps(parents, node):
        if isinstance(above, cst.FunctionDef | cst.Lambda | cst.ClassDef):
            return
        if (isinstance(above, cst.For) and child is above.body) or (
            isinstance(above, cst.While) and child is not above.orelse
        ):
            yield above


def _steps(parents: Parents, node: cst.CSTNode) -> Iterator[tuple[cst.CSTNode, cst.CSTNode]]:
    """What stands around `node`, each with the child that `node` is in."""
    for above in ancestors(parents, node):
        yield above, node
        node = above


def _blocks(parents: Parents, node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """The blocks around `node`, innermost first; that of a `with` runs as what is around it does. A parameter is
    written where its function's body begins."""
    match parents.get(node):
        case cst.Param(name=name) as parameter if name is node:
            function = parents[parents[parameter]]
            if isinstance(function, cst.FunctionDef):
                yield function.body
    for above in ancestors(parents, node):
        if isinstance(above, cst.BaseSuite | cst.Module) and not isinstance(parents.get(above), cst.With):
            yield above
