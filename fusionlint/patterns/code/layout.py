"""What a fix writes, laid out as the code around it is: an argument a line, quotes of one kind, no line too long."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import libcst as cst

from fusionlint.finding import Edit
from fusionlint.lazily import regex
from fusionlint.patterns.code.broken import Lines, Stands, in_one_line
from fusionlint.source.tree import Source

# Formatters break lines at 79 to 120 characters: what is longer than this few would leave.
# A long file shows how long its own are, but for those of texts and comments.
_WIDE, _NARROWEST, _WIDEST, _MANY = 100, 79, 120, 100
_TEXT = regex(r"#|[\"']{3}|[\"'][^\"']{30}")
# The first block of a file that is moved to the right by two.
_BY_TWO = regex(r"  ((def|return|if|for|with)\b|\w+ = )")
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


def in_place_of(node: cst.CSTNode, called: Part, source: Source) -> Edit:
    """`called` for `node`: in one line, or, where that would be too long, broken at its brackets."""
    where = source.location(node)
    line, rest = source.line(where.line), source.line(where.end_line)[where.end_column - 1 :].rstrip()
    within = _blanks(source.line(where.line + 1)) if where.end_line > where.line else ""
    unit = within.removeprefix(_blanks(line))
    style = _Style(unit if unit in _UNITS else _unit(line, source), end_of(line), width(source))
    is_inside = bool(getattr(node, "lpar", ())) or not isinstance(
        source.parent(node), cst.Assign | cst.AnnAssign | cst.AugAssign | cst.Return | cst.Expr
    )
    stands = Stands.BEHIND if is_inside else Stands.OPEN
    return source.replace(node, style.laid_out(called, _blanks(line), where.column - 1, len(rest), stands))


def named_as(name: str, called: Called, node: cst.CSTNode, source: Source) -> str:
    """`name = called`, as it stands in a line of its own before the statement of `node`: each argument in one of its
    own where it would be too long."""
    line = source.line(source.location(node).line)
    blanks = _blanks(line)
    unit = _unit(line, source)
    before = len(blanks) + len(name) + len(" = ")
    return f"{name} = {_Style(unit, end_of(line), width(source)).laid_out(called, blanks, before, 0, Stands.OPEN)}"


def _unit(line: str, source: Source) -> str:
    """What a block of the file is further to the right than the one around it."""
    if line.startswith("\t"):
        return "\t"
    return "  " if any(map(_BY_TWO.match, source.pieces.lines)) else "    "


def width(source: Source) -> int:
    """How long lines may be: as the longest of a long file are, within what formatters have them be."""
    lines = source.pieces.lines
    if len(lines) < _MANY:
        return _WIDE
    longest = max((len(line.rstrip()) for line in lines if not _TEXT.search(line)), default=0)
    return min(max(longest, _NARROWEST), _WIDEST)


class _Style(NamedTuple):
    """What one block is further to the right than the one around it, how lines end, and how long they may be."""

    unit: str
    end: str
    width: int

    def laid_out(self, called: Part, blanks: str, before: int, behind: int, stands: Stands) -> str:
        flat = _flat(called)
        text = str(flat)
        is_long = "\n" not in text and before + len(text) + behind > self.width
        if is_long and isinstance(flat, Called) and not flat.function and flat.brackets == "()":  # a tuple
            return self.broken(flat, blanks)
        if "\n" not in text:
            return Lines(self.unit, self.end, self.width).of(text, blanks, before, behind, stands)
        return text if isinstance(flat, str) or any(mark in text for mark in _TEXTS) else self.broken(flat, blanks)

    def broken(self, called: Called, blanks: str) -> str:
        inner = blanks + self.unit
        opened, closed = called.brackets[0], called.brackets[1]
        last = "," if opened == "(" or len(called.parts) > 1 else ""  # x[i,] is read as x[(i,)]
        lines = f",{self.end}".join(f"{inner}{self.fitted(part, inner)}" for part in called.parts)
        return f"{called.function}{opened}{self.end}{lines}{last}{self.end}{blanks}{closed}{called.behind}"

    def fitted(self, part: Part, blanks: str) -> str:
        if isinstance(part, str) and "\n" in part:
            return self.moved(part, blanks)
        return self.laid_out(part, blanks, len(blanks), 1, Stands.ALONE)

    def moved(self, text: str, blanks: str) -> str:
        """Code of several lines: those behind the first a step to the right, unless operators begin them, or the last
        one closes a bracket."""
        first, *more = text.splitlines(keepends=True)
        least = min((len(_blanks(line)) for line in more if line.strip()), default=0)
        is_even = bool(more) and (more[-1].strip()[:1] in _CLOSES or more[0].strip()[:1] in _OPERATORS)
        deeper = blanks if is_even else blanks + self.unit
        return first + "".join(deeper + line[least:] if line.strip() else line for line in more)


def _flat(part: Part) -> Part:
    """The same with whatever can be in one line in one line."""
    if isinstance(part, str):
        return in_one_line(part)
    function, behind = in_one_line(part.function), in_one_line(part.behind)
    return part._replace(function=function, parts=[_flat(each) for each in part.parts], behind=behind)


def _blanks(line: str) -> str:
    found = _BLANKS.match(line)
    return found.group() if found else ""


def end_of(line: str) -> str:
    """How a line ends, as those that a fix adds beside it do."""
    return "\r\n" if line.endswith("\r\n") else "\n"
