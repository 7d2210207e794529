"""The text of a file, cut where libcst can parse it piece by piece: each def and class of the file's own level by
itself, of a long class each def and class by itself as well, and all other code of the file's own level together.

What is asked of a file mostly concerns one of its functions; a libcst parse costs ten times one by `ast`, whose lines
say where to cut.
"""

from __future__ import annotations

import io
import tokenize
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import NamedTuple, TypeAlias

import libcst as cst

from fusionlint.lazily import regex
from fusionlint.source.deep import refuse_what_is_too_deep
from fusionlint.source.facts import Raw
from fusionlint.source.fix import split_lines

# A piece is called by the place of its def or class among the statements of the file, and by its own among those of the
# class that it is cut out of, from 1 on: 0 is all of a statement, or what is left of a class. MODULE is the rest.
Piece: TypeAlias = tuple[int, int]
MODULE: Piece = (-1, 0)
_WORD = regex(r"\w+")
# What stands behind `global`, on lines that go on too.
_GLOBALS = regex(r"\bglobal[ \t\\]+((?:\\\n|[^\n#;])*)")


class Statement(NamedTuple):
    """A statement of the file's own level or of a class that is cut: its piece, the tree that it was parsed in, and the
    line, 1-based, that it, or the class, begins in, decorators included. It stands in `scope`, where the scopes `taken`
    are opened before it. Of what is left of a class, `are_cut_out` says which of its statements are other pieces."""

    node: cst.CSTNode
    piece: Piece
    tree: cst.Module
    line: int
    scope: str
    taken: frozenset[str]
    are_cut_out: tuple[bool, ...] = ()


class _Cut(NamedTuple):
    """How a class is cut: its scope, those that its defs and classes open, the lines of these, with the comments above
    them, and the lines that are left. `indent` is what begins their first."""

    scope: str
    opened: list[str]
    parts: list[range]
    left: list[int]
    indent: str


class Pieces:
    """The pieces of the text `data`, of which the facts `raw` were read."""

    def __init__(self, data: bytes, raw: Raw) -> None:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        self.lines = split_lines(data.decode(encoding))
        self._raw = raw
        self._statements = raw.statements
        self._first_lines = [first for first, *_ in raw.statements]
        self._cuts: dict[int, _Cut | None] = {}
        self._said: dict[Piece, frozenset[str]] = {}

    def __iter__(self) -> Iterator[Piece]:
        for number, (_, _, is_definition, *_) in enumerate(self._statements):
            if is_definition:
                yield number, 0
                yield from self._parts(number)
        yield MODULE

    def of_line(self, line: int) -> Piece:
        """The piece with the code of a line, 1-based."""
        number = bisect_right(self._first_lines, line) - 1
        if number < 0 or not self._statements[number][2]:
            return MODULE
        cut = self._cut(number)
        return number, next((part for part, lines in enumerate(cut.parts, 1) if line in lines), 0) if cut else 0

    def of_scope(self, scope: str) -> Piece:
        """The piece with the code of a scope."""
        number = self._homes.get(scope.partition(".")[0])
        if number is None:
            return MODULE
        cut, opened = self._cut(number), ".".join(scope.split(".")[:2])
        # What no part opens stands above them: the functions in a decorator of the class.
        return number, cut.opened.index(opened) + 1 if cut and opened in cut.opened else 0

    def holding(self, statement: Piece) -> Piece:
        """The piece that a statement, called as pieces are, is parsed in."""
        return statement if self._statements[statement[0]][2] else MODULE

    def mentioning(self, name: str) -> Iterator[Piece]:
        """The pieces that could use a variable of the file's own level."""
        return (piece for piece in self if piece == MODULE or name in self._words(piece))

    def writing(self, name: str) -> Iterator[Piece]:
        """The pieces that could write to a variable of the file's own level."""
        homes = {MODULE, self.of_scope(name)}
        yield from homes
        yield from (piece for piece, names in self._globals if name in names and piece not in homes)

    @cached_property
    def text(self) -> str:
        """All lines, as one text."""
        return "".join(self.lines)

    @cached_property
    def has_global(self) -> bool:
        """Whether a function may write to a variable of the file's own level."""
        return any("global" in line for line in self.lines)

    def seeing(self, scope: str, name: str) -> Iterator[Piece]:
        """The pieces that could use a variable of a scope below the file's own level: of a class that is cut, its parts
        have decorators and defaults that are its code."""
        home = self.of_scope(scope)
        yield home
        if scope in self._raw.classes and "." not in scope:
            yield from (part for part in self._parts(home[0]) if name in self._words(part))

    def parse(self, piece: Piece) -> Iterator[Statement]:
        """The statements of a piece. cst.ParserSyntaxError when it does not parse."""
        number, part = piece
        if piece == MODULE:
            yield from self._parse_module()
            return
        cut = self._cut(number)
        first, last, _, opened, statements = self._statements[number]
        taken = frozenset(self._opened[""][:opened])
        if cut is None:
            tree = self._tree(range(first, last + 1))
            yield Statement(tree.body[0], piece, tree, first, "", taken)
        elif part:
            tree = self._tree(cut.parts[part - 1], "class _:\n")
            (node,) = block_of(tree.body[0]).body
            yield Statement(node, piece, tree, first, cut.scope, frozenset(cut.opened[: part - 1]))
        else:
            tree = self._tree(cut.left, "", f"\n{cut.indent}pass\n")  # there may be nothing else
            block = block_of(tree.body[0])
            node = tree.body[0].with_changes(body=block.with_changes(body=block.body[:-1]))
            yield Statement(node, piece, tree, first, "", taken, tuple(is_cut_out for _, _, is_cut_out in statements))

    def _parse_module(self) -> Iterator[Statement]:
        numbers = [number for number, (_, _, is_definition, *_) in enumerate(self._statements) if not is_definition]
        if not numbers:
            return
        lines: list[int] = []
        for number in numbers:  # each line once: several statements may share one
            first, last, *_ = self._statements[number]
            lines.extend(range(max(first, lines[-1] + 1 if lines else 1), last + 1))
        tree = self._tree(lines)
        at = 0
        for node in tree.body:
            first, _, _, opened, _ = self._statements[numbers[at]]
            yield Statement(node, (numbers[at], 0), tree, first, "", frozenset(self._opened[""][:opened]))
            at += statements_in(node)

    def _tree(self, lines: Sequence[int], before: str = "", after: str = "") -> cst.Module:
        """The tree of some lines, and of a text before and after them. RecursionError where nobody could walk it."""
        try:
            text = "".join((before, *(self.lines[line - 1] for line in lines), after))
            refuse_what_is_too_deep(text)
            return cst.parse_module(text)
        except cst.ParserSyntaxError as error:
            line = lines[min(max(error.raw_line - before.count("\n"), 1), len(lines)) - 1]
            raise cst.ParserSyntaxError(
                error.message, lines=self.lines, raw_line=line, raw_column=error.raw_column
            ) from error

    @cached_property
    def _globals(self) -> tuple[tuple[Piece, frozenset[str]], ...]:
        """The pieces that say `global`, each with the words behind it: of few files is there any."""
        said = ((p, _GLOBALS.findall(self._text(p))) for p in self if p != MODULE) if self.has_global else ()
        return tuple((piece, frozenset(_WORD.findall(" ".join(names)))) for piece, names in said if names)

    def _words(self, piece: Piece) -> frozenset[str]:
        """All words of a piece: asked for many names, each of which is a search of its own otherwise."""
        if piece not in self._said:
            self._said[piece] = frozenset(_WORD.findall(self._text(piece)))
        return self._said[piece]

    def _text(self, piece: Piece) -> str:
        number, part = piece
        cut = self._cut(number)
        if cut is None:
            first, last, *_ = self._statements[number]
            return "".join(self.lines[first - 1 : last])
        return "".join(self.lines[line - 1] for line in (cut.parts[part - 1] if part else cut.left))

    def _parts(self, number: int) -> Iterator[Piece]:
        """The pieces that are cut out of a statement."""
        cut = self._cut(number)
        return ((number, part) for part in range(1, len(cut.parts) + 1 if cut else 1))

    def _cut(self, number: int) -> _Cut | None:
        """How a statement is cut; None for one that is not."""
        if number not in self._cuts:
            self._cuts[number] = self._cut_of(number) if self._statements[number][4] else None
        return self._cuts[number]

    def _cut_of(self, number: int) -> _Cut | None:
        first, _, _, _, statements = self._statements[number]
        scope = next(scope for scope, home in self._homes.items() if home == number and scope in self._raw.classes)
        opened = self._opened[scope]
        inner = [begin for begin, _, is_definition in statements if is_definition]
        # Where something else opens a scope, a lambda or a def below an `if`, nothing is cut: scopes are numbered.
        if not inner or len(opened) != len(inner):
            return None
        head = statements[0][0] - 1
        while not self.lines[head - 1].partition("#")[0].strip():  # what stands above a statement belongs to it
            head -= 1
        parts, left, begin = list[range](), [*range(first, head + 1)], head + 1
        for _, end, is_definition in statements:
            if is_definition:
                parts.append(range(begin, end + 1))
            else:
                left += range(begin, end + 1)
            begin = end + 1
        line = self.lines[inner[0] - 1]
        return _Cut(scope, opened, parts, left, line[: len(line) - len(line.lstrip())])

    @cached_property
    def _opened(self) -> dict[str, list[str]]:
        """The scopes that are opened right in a scope, in their order."""
        found: dict[str, list[str]] = defaultdict(list)
        for scope in self._raw.bindings:
            if scope:
                found[scope.rpartition(".")[0]].append(scope)
        return found

    @cached_property
    def _homes(self) -> dict[str, int]:
        """The definition that opens each scope of the file's own level, or that it stands in."""
        scopes = self._opened[""]
        bounds = [opened for _, _, _, opened, _ in self._statements] + [len(scopes)]
        return {
            scope: number
            for number, (_, _, is_definition, *_) in enumerate(self._statements)
            if is_definition
            for scope in scopes[bounds[number] : bounds[number + 1]]
        }


@contextmanager
def unvalidated() -> Iterator[None]:
    """Inside, nodes of libcst are taken as they are made. Each looks itself over for what nobody could write, which its
    own parser never makes: a fifth of the time that parsing takes."""
    validates = cst.CSTNode.__post_init__
    setattr(cst.CSTNode, "__post_init__", _take_as_it_is)  # noqa: B010 - to mypy a method is not to be assigned
    try:
        yield
    finally:
        setattr(cst.CSTNode, "__post_init__", validates)  # noqa: B010


def _take_as_it_is(_: cst.CSTNode) -> None:
    """In place of what validates a node."""


def block_of(node: cst.CSTNode) -> cst.IndentedBlock:
    """The block of a class that is cut."""
    match node:
        case cst.ClassDef(body=cst.IndentedBlock() as block):
            return block
    raise TypeError(f"{type(node).__name__} is no class with a block")


def statements_in(node: cst.CSTNode) -> int:
    """How many statements a node of a block is: several may share a line."""
    return len(node.body) if isinstance(node, cst.SimpleStatementLine) else 1
