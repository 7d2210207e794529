"""Pieces: a file that is parsed piece by piece says the same as one that is parsed as a whole."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import libcst as cst
import pytest

import fusionlint
from fusionlint.source import fact_walk
from fusionlint.source.facts import Facts
from fusionlint.source.pieces import MODULE, unvalidated
from fusionlint.source.read import read_bytes
from fusionlint.source.tree import Source
from fusionlint.source.walk import Walk, children
from fusionlint.source.world import join

PACKAGE = sorted(Path(fusionlint.__path__[0]).rglob("*.py"))
GRAMMAR = sorted(Path(ast.__file__).parent.joinpath("test").glob("test_[gpl]*.py"))[:12]
KINDS = (cst.Call, cst.FunctionDef, cst.Lambda, cst.For, cst.ClassDef, cst.Name, cst.SimpleStatementLine)

MIXED = b'''"""Doc."""
import jax; x = 1; y = (
    2)
@jax.jit
# a comment
def f(a, b=lambda: x):
    # another
    def g(): return a
    return (g(),
        b)
class C:
    """Doc."""
    @property
    def f(self):
        return """
one"""
    z = [lambda: 1 for _ in y]
if x:
    def f(): ...
else:
    async def f():
        async with f() as z: pass
f = lambda: (lambda: 3)
def f(): return f
@dataclass
class D(
    C,  # a base
):
    # above the first

    @property
    def f(self, k=x): return self.y
    y: int = 1; z = 2
      # in between
    @f.setter
    # a comment
    def f(self, y):
        self.y = [lambda: y for _ in y]
        # the end of it

    class E(Exception):
        """Doc."""
        z = y
        def f(self): return f
    w = x; v = (
        3)
class F:
    def f(self): ...

    def g(self): ...
def h(x):
    match x:
      case 1:
        def inner():
          return g(1)
      case _:
        inner = None
    return inner()
# the end
'''


def source_of(data: bytes) -> Source:
    facts: Facts = read_bytes(data, "m.py")
    world = join({"m.py": facts})
    return Source("m.py", data, world.project, world.contexts)


def said_by_pieces(data: bytes) -> list[tuple[str, str, int, int, int, int]]:
    source = source_of(data)
    places = ((node, source.location(node)) for node in source.nodes(*KINDS))
    return sorted(
        (type(node).__name__, source.scope(node), at.line, at.column, at.end_line, at.end_column) for node, at in places
    )


@cache  # asked for each file twice
def said_by_the_whole(data: bytes) -> list[tuple[str, str, int, int, int, int]]:
    tree = cst.MetadataWrapper(cst.parse_module(data), unsafe_skip_copy=True)
    positions = tree.resolve(cst.metadata.PositionProvider)
    walk = Walk()
    walk.visit(tree.module)
    return sorted(
        (type(node).__name__, scope, at.start.line, at.start.column + 1, at.end.line, at.end.column + 1)
        for node, scope in walk.scopes.items()
        if type(node) in KINDS and (at := positions[node])
    )


@pytest.fixture(params=[0, 40], ids=["cut", "whole"])
def every_class(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Classes of so many lines are parsed in parts."""
    monkeypatch.setattr(fact_walk, "_LONG", request.param)


@pytest.mark.usefixtures("every_class")
@pytest.mark.parametrize("data", [MIXED, MIXED.replace(b"\n", b"\r\n"), b"\xef\xbb\xbf" + MIXED, b"", b"# only\n"])
def test_nodes_scopes_and_places_are_those_of_the_whole_file(data: bytes) -> None:
    assert said_by_pieces(data) == said_by_the_whole(data)


@pytest.mark.usefixtures("every_class")
@pytest.mark.parametrize("path", PACKAGE[::15] + GRAMMAR, ids=lambda path: path.name)
def test_nodes_scopes_and_places_are_those_of_real_files(path: Path) -> None:
    data = path.read_bytes()
    assert said_by_pieces(data) == said_by_the_whole(data)


def test_a_piece_is_parsed_without_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[str] = []
    parse = cst.parse_module
    monkeypatch.setattr(cst, "parse_module", lambda text: parsed.append(text) or parse(text))
    source = source_of(b"import m\ndef f():\n    m.g()\ndef h():\n    m.i()\n")
    assert [source.code(call) for call in source.nodes_in({source.pieces.of_line(5)}, cst.Call)] == ["m.i()"]
    assert parsed == ["def h():\n    m.i()\n"]


CLASS = b"class C:\n    n = 1\n    def f(self, k=n):\n        m.g()\n    def h(self):\n        m.i()\n"


def test_a_method_of_a_long_class_is_parsed_without_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[str] = []
    parse = cst.parse_module
    monkeypatch.setattr(fact_walk, "_LONG", 0)
    monkeypatch.setattr(cst, "parse_module", lambda text: parsed.append(text) or parse(text))
    source = source_of(CLASS)
    (call,) = source.nodes_in({source.pieces.of_line(6)}, cst.Call)
    assert (source.code(call), source.scope(call)) == ("m.i()", "C.h")
    assert parsed == ["class C:\n    n = 1\n\n    pass\n", "class _:\n    def h(self):\n        m.i()\n"]


def test_a_class_that_is_parsed_in_parts_holds_all_its_statements(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fact_walk, "_LONG", 0)
    source = source_of(CLASS)
    (call,) = source.nodes_in({source.pieces.of_line(6)}, cst.Call)
    owner = next(above for above in source.ancestors(call) if isinstance(above, cst.ClassDef))
    assert [type(one).__name__ for one in owner.body.body] == ["SimpleStatementLine", "FunctionDef", "FunctionDef"]
    assert owner.body.body[-1] in source.ancestors(call)
    assert owner is source.definition("C")


def test_a_default_of_a_method_uses_a_variable_of_its_class(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fact_walk, "_LONG", 0)
    source = source_of(CLASS)
    (read,) = (n for n in source.nodes_in({source.pieces.of_scope("C.f")}, cst.Name) if n.value == "n")
    assert source.code(source.value(read)) == "1"
    assert len(source.uses(read)) == 2


def test_functions_in_a_decorator_of_a_long_class_are_read_with_its_head(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fact_walk, "_LONG", 0)
    decorated = b"@register(lambda x: (lambda y: y + x), lambda z: (lambda w: w * z))\n" + CLASS
    source = source_of(decorated)
    assert source.pieces.of_scope("C.f")[1]
    *_, read = (n for n in source.nodes_in({source.pieces.of_line(1)}, cst.Name) if n.value == "w")
    assert source.scope(read).startswith("<lambda>#2.<lambda>")
    assert [source.location(use.node).line for use in source.uses(read)] == [1, 1]


def test_uses_of_a_variable_of_the_file_are_found_in_every_piece() -> None:
    source = source_of(b"x = 1\ndef f():\n    return x\ndef g():\n    global x\n    x = 2\ny = x\n")
    (read,) = (n for n in source.nodes_in({source.pieces.of_scope("f")}, cst.Name) if n.value == "x")
    assert [(source.location(use.node).line, use.is_write) for use in source.uses(read)] == [
        (1, True), (3, False), (6, True), (7, False),
    ]  # fmt: skip
    assert source.written(read) is None


def test_what_one_write_can_have_written_is_known() -> None:
    source = source_of(b"x = 1\ndef f():\n    return x\n")
    (read,) = (n for n in source.nodes_in({source.pieces.of_scope("f")}, cst.Name) if n.value == "x")
    assert source.code(source.value(read)) == "1"


def test_a_scope_of_a_later_piece_is_called_what_facts_call_it() -> None:
    source = source_of(b"def f(): ...\ndef f():\n    return 2\n")
    assert source.code(source.definition("f#2")).startswith("def f():\n    return 2")
    assert source.pieces.of_scope("g") == MODULE


def test_an_error_is_in_the_line_of_the_file() -> None:
    data = b"x = 1\n\ndef f():\n    pass\n\ndef g():\n    return 1\n"
    good = source_of(data)
    source = Source("m.py", data.replace(b"return 1", b"return 1 1"), good.project, good.contexts)
    with pytest.raises(cst.ParserSyntaxError) as caught:
        list(source.nodes(cst.Return))
    assert caught.value.raw_line == 7


def test_an_error_in_a_method_of_a_long_class_is_in_the_line_of_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fact_walk, "_LONG", 0)
    good = source_of(CLASS)
    source = Source("m.py", CLASS.replace(b"m.i()", b"m.i() 1"), good.project, good.contexts)
    with pytest.raises(cst.ParserSyntaxError) as caught:
        list(source.nodes_in({source.pieces.of_line(6)}, cst.Call))
    assert caught.value.raw_line == 6


@pytest.mark.parametrize("path", PACKAGE[::15] + GRAMMAR, ids=lambda path: path.name)
def test_children_are_those_of_libcst_without_blanks_and_brackets(path: Path) -> None:
    punctuation = (
        cst.BaseParenthesizableWhitespace, cst.TrailingWhitespace, cst.EmptyLine, cst.Comment, cst.Comma, cst.Semicolon,
        cst.Dot, cst.AssignEqual, cst.Colon, cst.LeftParen, cst.RightParen, cst.LeftSquareBracket,
        cst.RightSquareBracket, cst.LeftCurlyBrace, cst.RightCurlyBrace,
    )  # fmt: skip
    todo: list[cst.CSTNode] = [cst.parse_module(path.read_bytes())]
    while todo:
        node = todo.pop()
        expected = [child for child in node.children if not isinstance(child, punctuation)]
        assert [id(child) for child in children(node)] == [id(child) for child in expected], type(node)
        todo += expected


def test_nodes_look_themselves_over_again_after_a_run_whatever_ended_it() -> None:
    with pytest.raises(cst.CSTValidationError):
        cst.Name("")
    with pytest.raises(ZeroDivisionError):
        _fail_without_validation()
    with pytest.raises(cst.CSTValidationError):
        cst.Name("")


def _fail_without_validation() -> float:
    with unvalidated():
        return len(cst.Name("").value) / 0
