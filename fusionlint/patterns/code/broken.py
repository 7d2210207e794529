"""Code of one line in several, where it is too long: broken at its brackets, and within them before its operators.

In: an expression as it would stand in one line, and how long a line may be. Out: the same expression, laid out.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from enum import Enum, auto
from itertools import pairwise
from typing import NamedTuple

from fusionlint.lazily import regex

# Brackets with less in them are not worth a line of their own, where others can be broken.
_FEW = 16
_KEYWORD = regex(r"\w+ ?= ?(?!=)")
_LAST_COMMA = regex(r",(?=[)\]}])")
_OPENS, _CLOSES = frozenset("([{"), frozenset(")]}")
# What goes over several lines with the blanks that they begin with, and what ends with its line.
_TEXTS = ('"""', "'''", "\\\n", "\\\r\n", "#")
_PRODUCTS = (ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.MatMult)
_LEVELS = ((ast.Add, ast.Sub), _PRODUCTS, (ast.BitOr,), (ast.BitXor,), (ast.BitAnd,), (ast.LShift, ast.RShift))


class Stands(Enum):
    """Where code stands: in a statement, alone on a line within brackets, or behind something else on a line there."""

    OPEN = auto()
    ALONE = auto()
    BEHIND = auto()


class _Bracket(NamedTuple):
    """Where brackets begin and end, and each of what they hold; of several a comma can stand behind the last."""

    start: int
    end: int
    parts: Sequence[str]


class Lines(NamedTuple):
    """What lines within a bracket are further to the right than its own, how lines end, and how long they may be."""

    unit: str
    end: str
    width: int

    def of(self, code: str, blanks: str, before: int, behind: int = 0, stands: Stands = Stands.OPEN) -> str:
        """`code`, which begins `before` characters into a line that begins with `blanks`; `behind` more follow it."""
        if before + len(code) + behind <= self.width or "\n" in code:
            return code
        if keyword := _KEYWORD.match(code):
            end = keyword.end()
            return code[:end] + self.of(code[end:], blanks, before + end, behind, Stands.BEHIND)
        node = _parsed(code)
        if node is None:
            return code
        at = _characters(code)
        if at(node.col_offset) == 1 and code[at(node.end_col_offset) :] == ")":
            return self._in_brackets(code[1:-1], blanks)
        brackets = [*_brackets(node, code, at)]
        if brackets:
            return self._at_brackets(code, brackets, blanks, before, behind)
        operands = _operands(node, code, at)
        if len(operands) < 2 or stands is Stands.BEHIND:
            return code
        if stands is Stands.ALONE:
            return self._at_operators(code, operands, blanks, behind)
        return self._in_brackets(code, blanks)

    def _in_brackets(self, code: str, blanks: str) -> str:
        inner = blanks + self.unit
        return f"({self.end}{inner}{self.of(code, inner, len(inner), 0, Stands.ALONE)}{self.end}{blanks})"

    def _at_brackets(self, code: str, brackets: Sequence[_Bracket], blanks: str, before: int, behind: int) -> str:
        """At the longest of the brackets, after which no line is too long; else at all that hold much."""
        by_length = sorted(brackets, key=lambda one: one.start - one.end)
        for one in by_length:
            head, tail = before + one.start + 1, len(blanks) + len(code) - one.end + 1 + behind
            if head <= self.width and tail <= self.width:
                return self._broken(code, [one], blanks)
        several = [one for one in brackets if one.end - one.start > _FEW]
        return self._broken(code, several or by_length[:1], blanks)

    def _broken(self, code: str, brackets: Sequence[_Bracket], blanks: str) -> str:
        inner, made, done = blanks + self.unit, "", 0
        for one in brackets:
            opened, closed = code[one.start], code[one.end - 1]
            parts = [part for part in one.parts if part]  # behind the last comma there may be none
            last = "," if len(parts) > 1 else ""
            lines = f",{self.end}".join(inner + self.of(part, inner, len(inner), 1, Stands.ALONE) for part in parts)
            made += f"{code[done : one.start]}{opened}{self.end}{lines}{last}{self.end}{blanks}{closed}"
            done = one.end
        return made + code[done:]

    def _at_operators(self, code: str, operands: Sequence[int], blanks: str, behind: int) -> str:
        """A line for each operand, with its operator before it."""
        bounds = zip((0, *operands[1:]), (*operands[1:], None), strict=True)
        *parts, last = [code[first:end].strip() for first, end in bounds]
        lines = [self._behind_its_operator(part, blanks, 0) for part in parts]
        return f"{self.end}{blanks}".join([*lines, self._behind_its_operator(last, blanks, behind)])

    def _behind_its_operator(self, part: str, blanks: str, behind: int) -> str:
        operator, blank, operand = part.partition(" ")
        if not blank or _parsed(operator) is not None or _parsed(operand) is None:
            return self.of(part, blanks, len(blanks), behind, Stands.ALONE)
        before = len(blanks) + len(operator) + 1
        return f"{operator} {self.of(operand, blanks, before, behind, Stands.ALONE)}"


def in_one_line(code: str) -> str:
    """Code of several lines in one, where none of them is a comment or a text; else as it is."""
    if "\n" not in code or any(mark in code for mark in _TEXTS):
        return code
    lines = [line.strip() for line in code.splitlines() if line.strip()]
    for keeps_commas in (False, True):
        joined = lines[0]
        for line in lines[1:]:
            is_closed = line[0] in _CLOSES
            if is_closed and not keeps_commas:
                joined = joined.removesuffix(",")
            joined += line if is_closed or joined[-1] in _OPENS or line[0] == "." else f" {line}"
        if not keeps_commas:
            joined = _LAST_COMMA.sub("", joined)
        if _is_the_same(joined, code):
            return joined
    return code


def _is_the_same(one: str, other: str) -> bool:
    """Whether two texts are the same code: `(a,)` without its comma is another."""
    try:
        trees = [ast.dump(ast.parse(f"_({text}\n)")) for text in (one, other)]
    except (SyntaxError, ValueError):
        return False
    return trees[0] == trees[1]


def _parsed(code: str) -> ast.expr | None:
    """The expression; None of what is none, a slice or a keyword."""
    try:
        return ast.parse(code, mode="eval").body
    except (SyntaxError, ValueError):
        return None


class _Characters(NamedTuple):
    """Which character of a line of code begins at a byte, by which Python counts."""

    data: bytes
    is_ascii: bool

    def __call__(self, byte: int | None) -> int:
        return (byte or 0) if self.is_ascii else len(self.data[: byte or 0].decode())


def _characters(code: str) -> _Characters:
    return _Characters(code.encode(), code.isascii())


def _brackets(node: ast.expr, code: str, at: _Characters) -> Iterator[_Bracket]:
    """The brackets that follow one another in `a[...].b(...)`, or those of a list."""
    inner: Sequence[ast.expr | ast.keyword] = ()
    above: ast.expr | None = None
    before, end = at(node.col_offset), at(node.end_col_offset)
    match node:
        case ast.Call(func=above, args=args, keywords=keywords):
            inner = sorted([*args, *keywords], key=lambda one: one.col_offset)
        case ast.Subscript(value=above, slice=index):
            is_in_brackets = code[at(index.col_offset)] == "(" and code[at(index.end_col_offset) - 1] == ")"
            is_one = is_in_brackets or code[end - 2] == ","
            inner = index.elts if isinstance(index, ast.Tuple) and not is_one else [index]
        case ast.List(elts=elements):
            inner = elements
        case ast.Attribute(value=above):
            pass
        case _:
            if code[before - 1 : before] == "(" and code[end : end + 1] == ")" and end + 1 < len(code):  # (a + b).f()
                yield _Bracket(before - 1, end + 1, [code[before:end]])
            return
    if above is not None:
        yield from _brackets(above, code, at)
        before = at(above.end_col_offset)
        before += code[before:].startswith(")")  # (a + b)
    if inner and not any(isinstance(one, ast.GeneratorExp) for one in inner):  # whose brackets are those of the call
        start = code.index("[" if not isinstance(node, ast.Call) else "(", before)
        commas = [code.index(",", at(one.end_col_offset)) for one in inner[:-1]]
        bounds = zip((start, *commas), (*commas, end - 1), strict=True)
        yield _Bracket(start, end, [code[first + 1 : last].strip() for first, last in bounds])


def _operands(node: ast.expr, code: str, at: _Characters) -> list[int]:
    """Where the operands of a sum, a product or the like begin, each with its operator but the first."""
    match node:
        case ast.BoolOp(values=values):
            pairs = [*pairwise(values)]
        case ast.BinOp(op=operator):
            level = next((level for level in _LEVELS if isinstance(operator, level)), ())
            pairs = _pairs(node, level, code, at)
        case _:
            return []
    found = [0]
    for left, right in pairs:
        between = code[at(left.end_col_offset) : at(right.col_offset)]
        found.append(at(left.end_col_offset) + len(between) - len(between.lstrip(" )")))
    return found


def _pairs(
    node: ast.expr, level: tuple[type[ast.operator], ...], code: str, at: _Characters
) -> list[tuple[ast.expr, ast.expr]]:
    """Each two operands that stand side by side, of operators that are as strong as one another."""
    match node:
        case ast.BinOp(left=left, op=operator, right=right) if isinstance(operator, level):
            is_in_brackets = code[: at(left.col_offset)].rstrip().endswith("(")
            before = [] if is_in_brackets else _pairs(left, level, code, at)
            return [*before, (left, right)]
    return []
