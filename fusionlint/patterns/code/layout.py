"""What a fix writes, laid out as the code around it is: an argument a line, quotes of one kind, no line too long."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise, starmap
from typing import NamedTuple, TypeAlias

import libcst as cst

from fusionlint.finding import Edit, Location
from fusionlint.lazily import regex
from fusionlint.patterns.code.broken import Lines, Stands, in_one_line
from fusionlint.source.pieces import Pieces
from fusionlint.source.tree import Source
from fusionlint.source.walk import holds_comment

# Formatters break lines at 79 to 120 characters: what is longer than this few would leave.
# A long file shows how long its own are, but for those of texts and comments, and one in so many that was let pass.
_WIDE, _NARROWEST, _WIDEST, _MANY, _FEW = 100, 79, 120, 100, 200
_LIMITS = (88, 100)
_TEXT = regex(r"#|[\"']{3}|[\"'][^\"']{30}")
# The head of a def or class of the file's own level, and where it ends, perhaps lines later.
_DEF, _ENDS = regex(r"(async +)?def +\w|class +\w+ *[:(\[]"), regex(r":\s*(#.*)?$")
_DOUBLE, _SINGLE = regex(r'"[\w.-]+"'), regex(r"'[\w.-]+'")
_BLANKS = regex(r"[ \t]*")
_BLOCK = "    "
_UNITS = ("  ", _BLOCK, "\t")
_OPENS = frozenset("([{")
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


def with_one_more(call: cst.Call, text: str, source: Source) -> Edit:
    """The same, where nothing else in the call is edited: arguments of one line that it would make too long get lines
    of their own."""
    first, last = source.location(call.args[0]), source.location(call.args[-1])
    is_long = len(source.line(first.line).rstrip()) + len(f", {text}") > width(source)
    if not is_long or last.end_line > first.line or holds_comment(call):
        return added(call, text, source)
    if (whole := _all_around(call, source)) is not None:
        line, (start, end) = source.line(first.line), (whole.column - 1, whole.end_column - 1)
        code = f"{line[start : last.end_column - 1]}, {text}{line[last.end_column - 1 : end]}"
        return Edit(whole, _laid_out(code, whole, Stands.OPEN, "", source))
    return in_place_of(call, Called(source.code(call.func), [*map(source.code, call.args), text]), source)


def _all_around(call: cst.Call, source: Source) -> Location | None:
    """The calls that a call is an argument of, where they stand in one line and are all that is assigned or returned;
    None where there is none."""
    node: cst.CSTNode = call
    while isinstance(arg := source.parent(node), cst.Arg) and isinstance(above := source.parent(arg), cst.Call):
        node = above
    where = source.location(node)
    is_all = isinstance(source.parent(node), cst.Assign | cst.AnnAssign | cst.AugAssign | cst.Return | cst.Expr)
    return where if node is not call and is_all and where.end_line == where.line else None


def quoted(text: str, source: Source) -> str:
    """`text`, which has double quotes, with those that most words of the file stand in."""
    code = source.pieces.text
    return text.replace('"', "'") if len(_SINGLE.findall(code)) > len(_DOUBLE.findall(code)) else text


def in_place_of(node: cst.CSTNode, called: Part, source: Source) -> Edit:
    """`called` for `node`: in one line, or, where that would be too long, broken at its brackets."""
    where = source.location(node)
    is_all = isinstance(source.parent(node), cst.Assign | cst.AnnAssign | cst.AugAssign | cst.Return | cst.Expr)
    within = _hang(source.line(where.line), source.line(where.line + 1)) if where.end_line > where.line else ""
    brackets = getattr(node, "lpar", ())
    if is_all and len(brackets) == 1 and (around := _with_brackets(where, source)) is not None:
        text = _laid_out(called, around, Stands.OPEN, within, source)
        if _is_an_expression(text):
            return Edit(around, text)
    stands = Stands.OPEN if is_all and not brackets else Stands.BEHIND
    return Edit(where, _laid_out(called, where, stands, within, source))


def _laid_out(called: Part, where: Location, stands: Stands, within: str, source: Source) -> str:
    line, rest = source.line(where.line), source.line(where.end_line)[where.end_column - 1 :].rstrip()
    style = _Style(within or hang_of(source), end_of(line), width(source))
    return style.laid_out(called, _blanks(line), where.column - 1, len(rest), stands)


def _with_brackets(where: Location, source: Source) -> Location | None:
    """The same with the brackets right around it; None where something else, a comment say, stands between."""
    first, last = where.line, where.end_line
    before, behind = source.line(first)[: where.column - 1], source.line(last)[where.end_column - 1 :]
    while first > 1 and not before.strip():
        first, before = first - 1, source.line(first - 1)
    while not behind.strip() and last < len(source.pieces.lines):
        last, behind = last + 1, source.line(last + 1)
    opened, closed = before.rstrip(), behind.lstrip()
    if not opened.endswith("(") or not closed.startswith(")"):
        return None
    end = len(source.line(last)) - len(closed) + 1
    return where._replace(line=first, column=len(opened), end_line=last, end_column=end + 1)


def _is_an_expression(text: str) -> bool:
    """Whether code needs no brackets around it, be it of several lines."""
    try:
        ast.parse(text, mode="eval")
    except SyntaxError:
        return False
    return True


def named_as(name: str, called: Called, node: cst.CSTNode, source: Source) -> str:
    """`name = called`, as it stands in a line of its own before the statement of `node`: each argument in one of its
    own where it would be too long."""
    return _behind(f"{name} = ", called, node, source)


def returned(called: Called, node: cst.CSTNode, source: Source) -> str:
    """`return called`, just so."""
    return _behind("return ", called, node, source)


def _behind(said: str, called: Called, node: cst.CSTNode, source: Source) -> str:
    line = source.line(source.location(node).line)
    blanks = _blanks(line)
    style = _Style(hang_of(source), end_of(line), width(source))
    return f"{said}{style.laid_out(called, blanks, len(blanks) + len(said), 0, Stands.OPEN)}"


def step_of(source: Source) -> str:
    """What a block of the file is further to the right than the one around it, as its first def or class shows."""
    lines = iter(source.pieces.lines)
    for line in lines:
        if _DEF.match(line):
            if not _ENDS.search(line):
                next(filter(_ENDS.search, lines), "")
            step = _blanks(next(filter(str.strip, lines), ""))
            if step in _UNITS:
                return step
    return _BLOCK


def hang_of(source: Source) -> str:
    """What the lines within a bracket are further to the right than the one that opens it, as most of the file are:
    four where blocks are moved by two, as a rule."""
    step = step_of(source)
    return _most_hang(source.pieces) or (step if step == "\t" else _BLOCK)


@lru_cache(maxsize=1)  # of a file with a fix in every function it is asked as often
def _most_hang(pieces: Pieces) -> str:
    """As most lines of a file hang; "" where none does."""
    hangs = Counter(starmap(_hang, pairwise(pieces.lines)))
    del hangs[""]
    return max(hangs, key=hangs.__getitem__, default="")


def _hang(line: str, behind: str) -> str:
    """How much further to the right a line begins than the one before it, which ends by opening a bracket."""
    code = line.rstrip()
    hang = _blanks(behind).removeprefix(_blanks(line)) if code[-1:] in _OPENS and behind.strip() else ""
    return hang if hang in _UNITS else ""


def width(source: Source) -> int:
    """How long lines may be: as the longest of a long file are, but for a few beyond what most formatters leave."""
    return _width(source.pieces)


@lru_cache(maxsize=1)
def _width(pieces: Pieces) -> int:
    lines = pieces.lines
    if len(lines) < _MANY:
        return _WIDE
    lengths = [len(line.rstrip()) for line in lines if not _TEXT.search(line)]
    most = next((most for most in _LIMITS if sum(length > most for length in lengths) <= len(lengths) // _FEW), _WIDEST)
    return max(min(max(lengths, default=0), most), _NARROWEST)


class _Style(NamedTuple):
    """What lines within a bracket are further to the right than its own, how lines end, and how long they may be."""

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
        parts = (self.laid_out(part, inner, len(inner), 1, Stands.ALONE) for part in called.parts)
        lines = f",{self.end}".join(f"{inner}{part}" for part in parts)
        return f"{called.function}{opened}{self.end}{lines}{last}{self.end}{blanks}{closed}{called.behind}"


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
