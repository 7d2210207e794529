"""What a fix writes, laid out as the code around it is: an argument a line, quotes of one kind, no line too long."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeAlias

import libcst as cst

from fusionlint.finding import Edit
from fusionlint.lazily import regex
from fusionlint.source.tree import Source

# Formatters break lines at 79 to 120 characters: what is longer than this few would leave.
_WIDE = 100
_DOUBLE, _SINGLE = regex(r'"[\w.-]+"'), regex(r"'[\w.-]+'")
_BLANKS = regex(r"[ \t]*")
_UNITS = ("  ", "    ", "\t")
_CLOSES, _OPERATORS = frozenset(")]}"), frozenset("=<>!+-*/%&|^@")
# What goes over several lines with the blanks that they begin with.
_TEXTS = ('"""', "'''", "\\\n", "\\\r\n")

Part: TypeAlias = "str | Called"


class Called(NamedTuple):
    """A call to write, `jnp.where(p, a, b)`; with other brackets an element, `x[i]`, or a list; `behind` it stands what
    is asked of its result."""

    function: str
    parts: Sequence[Part]
    brackets: str = "()"
    behind: str = ""

    def __str__(self) -> str:
        opened, closed = self.brackets[0], self.brackets[1]
        return f"{self.function}{opened}{', '.join(map(str, self.parts))}{closed}{self.behind}"


def in_a_list(*parts: Part) -> Called:
    """A list to write, `[a, b]`."""
    return Called("", parts, "[]")


def in_parts(code: str) -> Part:
    """Code of one line, as what can be broken where it is too long: at the longest of its brackets, and so within
    them."""
    try:
        node = ast.parse(code, mode="eval").body
    except (SyntaxError, ValueError):
        return code
    if "\n" in code or not code.isascii():  # Python counts bytes
        return code
    brackets = [*_brackets(node, code)]
    if not brackets:
        return code
    start, end, elements = max(brackets, key=lambda one: one[1] - one[0])
    parts = [in_parts(code[first:last]) for first, last in elements]
    return Called(code[:start], parts, f"{code[start]}{code[end - 1]}", code[end:])


def _brackets(node: ast.expr, code: str) -> Iterator[tuple[int, int, list[tuple[int, int]]]]:
    """The brackets that follow one another in `a[...].b(...)`, or those of a list: where they begin and end, and where
    each of their elements does."""
    inner: Sequence[ast.expr | ast.keyword] = ()
    above: ast.expr | None = None
    before = node.col_offset
    match node:
        case ast.Call(func=above, args=args, keywords=keywords):
            inner = sorted([*args, *keywords], key=lambda one: one.col_offset)
        case ast.Subscript(value=above, slice=index):
            inner = index.elts if isinstance(index, ast.Tuple) and len(index.elts) > 1 else [index]
        case ast.List(elts=elements):
            inner = elements
        case ast.Attribute(value=above):
            pass
        case _:
            return
    if above is not None:
        yield from _brackets(above, code)
        before = above.end_col_offset or 0
    if inner and not any(isinstance(one, ast.GeneratorExp) for one in inner):  # whose brackets are those of the call
        start = code.index("[" if not isinstance(node, ast.Call) else "(", before)
        yield start, node.end_col_offset or 0, [(one.col_offset, one.end_col_offset or 0) for one in inner]


def added(call: cst.Call, text: str, source: Source, *, last: str | None = None) -> Edit:
    """One more argument behind the last, for which `last` is written instead; on a line of its own where that one is,
    unless a comment is beside it."""
    behind = call.args[-1]
    where = source.location(behind)
    line, rest = source.line(where.line), source.line(where.end_line)[where.end_column - 1 :]
    before = line[: where.column - 1]
    between = f",{end_of(line)}{before}" if not before.strip() and "#" not in rest else ", "
    return source.replace(behind, f"{source.code(behind) if last is None else last}{between}{text}")


def quoted(text: str, source: Source) -> str:
    """`text`, which has double quotes, with those that most words of the file stand in."""
    code = "".join(source.pieces.lines)
    return text.replace('"', "'") if len(_SINGLE.findall(code)) > len(_DOUBLE.findall(code)) else text


def in_place_of(node: cst.BaseExpression, called: Part, source: Source) -> Edit:
    """`called` for `node`: in one line, or, where that would be too long, each argument in one of its own."""
    where, text = source.location(node), str(called)
    line, rest = source.line(where.line), source.line(where.end_line)[where.end_column - 1 :].rstrip()
    is_short = "\n" not in text and where.column - 1 + len(text) + len(rest) <= _WIDE
    if isinstance(called, str) or is_short or any(mark in text for mark in _TEXTS):
        return source.replace(node, text)
    within = _blanks(source.line(where.line + 1)) if where.end_line > where.line else ""
    unit = within.removeprefix(_blanks(line))
    style = _Style(unit if unit in _UNITS else "\t" if line.startswith("\t") else "    ", end_of(line))
    return source.replace(node, style.broken(called, _blanks(line)))


def named_as(name: str, called: Called, node: cst.CSTNode, source: Source) -> str:
    """`name = called`, as it stands in a line of its own before the statement of `node`: each argument in one of its
    own where it would be too long."""
    line = source.line(source.location(node).line)
    blanks, text = _blanks(line), f"{name} = {called}"
    if len(blanks) + len(text) <= _WIDE:
        return text
    unit = "\t" if line.startswith("\t") else "  " if len(blanks) % 4 else "    "
    return f"{name} = {_Style(unit, end_of(line)).broken(called, blanks)}"


class _Style(NamedTuple):
    """What one block is further to the right than the one around it, and how lines end."""

    unit: str
    end: str

    def broken(self, called: Called, blanks: str) -> str:
        inner = blanks + self.unit
        opened, closed = called.brackets[0], called.brackets[1]
        last = "," if opened == "(" or len(called.parts) > 1 else ""  # x[i,] is read as x[(i,)]
        lines = f",{self.end}".join(f"{inner}{self.fitted(part, inner)}" for part in called.parts)
        return f"{called.function}{opened}{self.end}{lines}{last}{self.end}{blanks}{closed}{called.behind}"

    def fitted(self, part: Part, blanks: str) -> str:
        if isinstance(part, str):
            return self.moved(part, blanks)
        is_short = "\n" not in str(part) and len(blanks) + len(str(part)) < _WIDE
        return str(part) if is_short else self.broken(part, blanks)

    def moved(self, text: str, blanks: str) -> str:
        """Code of several lines: those behind the first a step to the right, unless operators begin them, or the last
        one closes a bracket."""
        first, *more = text.splitlines(keepends=True)
        least = min((len(_blanks(line)) for line in more if line.strip()), default=0)
        is_even = bool(more) and (more[-1].strip()[:1] in _CLOSES or more[0].strip()[:1] in _OPERATORS)
        deeper = blanks if is_even else blanks + self.unit
        return first + "".join(deeper + line[least:] if line.strip() else line for line in more)


def _blanks(line: str) -> str:
    found = _BLANKS.match(line)
    return found.group() if found else ""


def end_of(line: str) -> str:
    """How a line ends, as those that a fix adds beside it do."""
    return "\r\n" if line.endswith("\r\n") else "\n"
