"""Lengths that are the same by what their names stand for: `last + 1` and `k`, of `last = n - w` and `k = n - w + 1`.

In: two expressions of a Source. Out: whether both are one sum of whole numbers and of what stands for itself.
"""

from __future__ import annotations

from collections import Counter

import libcst as cst

from fusionlint.source.tree import Source

_NUMBER = ""
# A name seldom stands for more names than this.
_DEPTH = 8


def are_equal(one: cst.BaseExpression, other: cst.BaseExpression, source: Source) -> bool:
    """Whether the two are seen to be the same number."""
    return _terms(one, source, _DEPTH) == _terms(other, source, _DEPTH)


def _terms(node: cst.BaseExpression, source: Source, depth: int) -> dict[str, int]:
    """How often each term stands in a sum, whole numbers together; none that is left zero times."""
    found = Counter[str]()
    match node:
        case cst.Integer():
            found[_NUMBER] = node.evaluated_value
        case cst.Name() if depth and (value := source.value(node)) is not None:
            return _terms(value, source, depth - 1)
        case cst.BinaryOperation(left=left, operator=cst.Add() | cst.Subtract() as operator, right=right):
            sign = 1 if isinstance(operator, cst.Add) else -1
            found.update(_terms(left, source, depth))
            found.update({term: sign * times for term, times in _terms(right, source, depth).items()})
        case _:
            found[source.code(node)] = 1
    return {term: times for term, times in found.items() if times}


def are_a_step_apart(one: cst.BaseExpression, other: cst.BaseExpression, source: Source) -> bool:
    """Whether the two are seen to differ by a number, `y - 1` and `y`."""
    terms, others = _terms(one, source, _DEPTH), _terms(other, source, _DEPTH)
    is_of_more = {*terms, *others} != {_NUMBER}  # numbers may count from either end
    return is_of_more and terms != others and _without_number(terms) == _without_number(others)


def _without_number(terms: dict[str, int]) -> dict[str, int]:
    return {term: times for term, times in terms.items() if term != _NUMBER}
