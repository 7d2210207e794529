"""Fixes: every byte outside the edits stays, overlapping ones wait, and the rounds end."""

from __future__ import annotations

import codecs
import shutil
import subprocess
from pathlib import Path

import libcst as cst
import pytest
from click.testing import CliRunner
from commands import HAZARD, run

from fusionlint.cli import main
from fusionlint.finding import Edit, Finding, Location, Suggestion
from fusionlint.source import fixing
from fusionlint.source.fix import apply, fixes, split_lines
from fusionlint.source.fixing import Fixed, diff, fix_text
from fusionlint.source.judging import check_text
from fusionlint.source.scope import Scope
from fusionlint.source.world import World, join

COLUMNS = Scope(("columns-by-at-set",))
BAD = "jnp.zeros((8, 2)).at[:, 0].set(a[:, 1]).at[:, 1].set(a[:, 0])"
GOOD = "jnp.stack([a[:, 1], a[:, 0]], axis=1)"
HEAD = "import jax.numpy as jnp\n"


def edit(start: tuple[int, int], end: tuple[int, int], text: str) -> Edit:
    return Edit(Location("m.py", *start, *end), text)


def finding(*edits: Edit, safe: bool = True) -> Finding:
    return Finding("rule", edits[0].location, "message", Suggestion("write", edits, safe))


def fixed(data: bytes, folder: Path) -> Fixed:
    """The file after what `check --fix --unsafe-fixes` does to it."""
    path = folder / "m.py"
    path.write_bytes(data)
    return fix_text(str(path), data, check_text(data, str(path), COLUMNS), COLUMNS, join({}), unsafe=True)


# Edits


def test_apply_replaces_spans_whatever_their_order() -> None:
    text = "a = one\nb = two + three\n"
    edits = [edit((2, 5), (2, 8), "2"), edit((1, 5), (1, 8), "1"), edit((2, 11), (2, 16), "3")]
    assert apply(text, edits) == "a = 1\nb = 2 + 3\n"


def test_apply_replaces_over_lines_and_inserts() -> None:
    assert apply("f(a,\n  b)\n", [edit((1, 3), (2, 4), "c")]) == "f(c)\n"
    assert apply("f()\n", [edit((1, 1), (1, 1), "x = ")]) == "x = f()\n"


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("", [""]),
        ("a", ["a"]),
        ("a\nb\r\nc\rd", ["a\n", "b\r\n", "c\r", "d"]),
        ("a\x0cb\u2028c\x1cd\n", ["a\x0cb\u2028c\x1cd\n"]),
        ("\n\n", ["\n", "\n"]),
    ],
)
def test_lines_end_where_python_ends_them(text: str, lines: list[str]) -> None:
    assert split_lines(text) == lines


# Which fixes go together


def test_of_two_overlapping_fixes_the_first_is_made() -> None:
    outer, inner = finding(edit((1, 1), (1, 9), "x")), finding(edit((1, 3), (1, 5), "y"))
    assert fixes([outer, inner], unsafe=False) == [outer.suggestion]


def test_touching_fixes_are_both_made_but_not_two_at_one_point() -> None:
    left, right = finding(edit((1, 1), (1, 3), "x")), finding(edit((1, 3), (1, 5), "y"))
    assert fixes([left, right], unsafe=False) == [left.suggestion, right.suggestion]
    one, same = finding(edit((1, 1), (1, 1), "x")), finding(edit((1, 1), (1, 1), "x"))
    assert fixes([one, same], unsafe=False) == [one.suggestion]


def test_a_fix_of_several_edits_is_made_whole_or_not_at_all() -> None:
    first, second = finding(edit((1, 1), (1, 3), "x")), finding(edit((1, 2), (1, 4), "y"), edit((2, 1), (2, 2), "y"))
    assert fixes([first, second], unsafe=False) == [first.suggestion]


def test_unsafe_fixes_and_advice_are_left() -> None:
    unsafe = finding(edit((1, 1), (1, 3), "x"), safe=False)
    advice = Finding("rule", unsafe.location, "message", Suggestion("write"))
    bare = Finding("rule", unsafe.location, "message")
    assert fixes([advice, bare, unsafe], unsafe=False) == []
    assert fixes([advice, bare, unsafe], unsafe=True) == [unsafe.suggestion]


# Files: what is not edited stays, byte for byte


@pytest.mark.parametrize(
    "around",
    [
        pytest.param("def f(a):\n    return {}\n", id="plain"),
        pytest.param("def f(a):\n    return {}", id="no newline at the end"),
        pytest.param("def f(a):\n    return {}  \n\n\n\n# end  \n", id="trailing blanks"),
        pytest.param("def f(a):\n\tif a:\n\t\treturn {}\n", id="tabs"),
        pytest.param("def f(a):\n    return (  # why\n        {}  # so\n    )\n", id="comments"),
        pytest.param("def f(a):\n    s = 'é😀\u2028\t'; return s, {}, 'ü'\n", id="not ASCII, before on the line"),
        pytest.param("def f(a):\n    return {0}, [{0}], {0}\n", id="several"),
        pytest.param("def f(a): return \\\n    {}\n", id="continued line"),
        pytest.param("def f(a):\n    '''x\n    {{}}\n    '''\n    return {}\n", id="strings over lines"),
    ],
)
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", [b"", codecs.BOM_UTF8])
def test_nothing_but_the_span_changes(around: str, newline: str, mark: bytes, tmp_path: Path) -> None:
    def made(expression: str) -> bytes:
        return mark + (HEAD + around.format(expression)).replace("\n", newline).encode()

    result = fixed(made(BAD), tmp_path)
    assert result.after == made(GOOD)
    assert result.count == around.replace("{{}}", "").count("{")
    assert result.before == made(BAD)


def test_a_declared_encoding_stays(tmp_path: Path) -> None:
    def made(expression: str) -> bytes:
        return f"# -*- coding: latin-1 -*-\n{HEAD}def f(a):\n    s = 'é'; return s, {expression}\n".encode("latin-1")

    assert fixed(made(BAD), tmp_path).after == made(GOOD)


def test_a_comment_inside_is_not_lost(tmp_path: Path) -> None:
    commented = f"({BAD[:40]}  # why\n        {BAD[40:]})"
    data = f"{HEAD}def f(a):\n    return {commented}\n".encode()
    assert check_text(data, "m.py", COLUMNS)
    assert fixed(data, tmp_path).count == 0


@pytest.mark.parametrize(
    "around",
    [
        pytest.param("\x0c\ndef f(a):\n    return {}\n", id="form feed on a line of its own"),
        pytest.param("\x0cdef f(a):\n    return {}\n", id="form feed before a def"),
        pytest.param("def f(a):\n\x0c    return {}\n", id="form feed before an indent"),
        pytest.param("x = 1 \x0c\ndef f(a):\n    return\x0c{}\n", id="form feed as a blank"),
        pytest.param("x = 1\rdef f(a):\n    return {}\n", id="lone CR"),
        pytest.param("def f(a):\r    return {}\r", id="only CRs"),
        pytest.param("def f(a):\n    # a\rb\n    return {}\n", id="CR in a comment"),
        pytest.param("def f(a):\n    s = '''\r'''\n    return {}\n", id="CR in a string"),
        pytest.param("def f(a):\r\n    return {}\n", id="mixed line ends"),
        pytest.param("def f(a):\n\tif a:\n            return {}\n", id="tab and blanks"),
    ],
)
def test_where_positions_may_be_wrong_the_fix_is_right_or_not_made(around: str, tmp_path: Path) -> None:
    before, after = ((HEAD + around.format(expression)).encode() for expression in (BAD, GOOD))
    try:
        result = fixed(before, tmp_path)
    except (SyntaxError, cst.ParserSyntaxError):  # then it is not fixed either: `check` reports it
        return
    assert (result.after, result.count) in ((after, 1), (before, 0))


def test_a_file_that_libcst_does_not_give_back_is_left_alone(tmp_path: Path) -> None:
    data = f"{HEAD}\x0cdef f(a):\n    return {BAD}\n".encode()
    assert cst.parse_module(data).bytes != data
    assert fixed(data, tmp_path).after == data


@pytest.mark.parametrize(
    "around",
    [
        pytest.param("def first[T](xs: list[T]) -> T:\n    return xs[0]\n\ndef f(a):\n    return {}\n", id="types"),
        pytest.param('def f(a):\n    print(f"{{a.f("x")}}")\n    return {}\n', id="quotes"),
    ],
)
def test_a_file_of_a_newer_python_than_this_one_is_fixed(around: str, tmp_path: Path) -> None:
    before, after = ((HEAD + around.format(expression)).encode() for expression in (BAD, GOOD))
    assert fixed(before, tmp_path).after == after


@pytest.mark.parametrize(
    "around",
    [
        pytest.param("def f(a):\r    return {}\r", id="lone CRs"),
        pytest.param("\x0cdef f(a):\n    return {}\n", id="form feed before a def"),
    ],
)
def test_a_fix_that_will_not_be_made_is_not_promised(around: str, tmp_path: Path) -> None:
    data = (HEAD + around.format(BAD)).encode()
    assert fixed(data, tmp_path).after == data
    (found,) = check_text(data, "m.py", COLUMNS)
    assert found.suggestion is not None
    assert not found.suggestion.edits


@pytest.mark.parametrize(("inside", "is_offered"), [("{}", True), ("f'{{{}}}'", False)])
def test_what_brings_quotes_into_an_f_string_is_not_promised(inside: str, is_offered: bool) -> None:
    code = f"{HEAD}def f(a, v):\n    return {inside.format('jnp.searchsorted(a, v)')}\n"
    (found,) = check_text(code.encode(), "m.py", Scope(("default-searchsorted",)))
    assert found.suggestion is not None
    assert bool(found.suggestion.edits) is is_offered


def test_a_nested_finding_is_fixed_in_a_later_round(tmp_path: Path) -> None:
    inner = BAD.replace("a[", "b[")
    outer = BAD.replace("a[:, 1]", f"a[:, 1] * ({inner})[:, 0]")
    result = fixed(f"{HEAD}def f(a, b):\n    return {outer}\n".encode(), tmp_path)
    assert result.count == 2
    assert b"at[" not in result.after


# Rounds


def test_fixes_that_undo_each_other_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "m.py"
    path.write_bytes(b"a\n")

    def flip(data: bytes, *_: object) -> tuple[Finding, ...]:
        return (finding(edit((1, 1), (1, 2), "b" if data == b"a\n" else "a")),)

    monkeypatch.setattr(fixing, "check_text", flip)
    world = World(join({}).project, {})
    result = fix_text(str(path), path.read_bytes(), flip(b"a\n"), COLUMNS, world, unsafe=False)
    assert result.after in (b"a\n", b"b\n")
    assert result.count <= 10


def test_a_fix_that_breaks_the_file_does_not_stop_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "m.py"
    path.write_bytes(b"a\nb\n")
    monkeypatch.setattr(fixing, "check_text", lambda *_: ())
    found = [finding(edit((1, 1), (1, 2), "(")), finding(edit((2, 1), (2, 2), "c"))]
    result = fix_text(str(path), path.read_bytes(), found, COLUMNS, World(join({}).project, {}), unsafe=False)
    assert (result.after, result.count) == (b"a\nc\n", 1)


def test_a_file_nested_too_deeply_to_be_written_is_left_alone_and_the_others_are_fixed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    deep = f"{HAZARD}\n\ndef last(x):\n    return x{' + x' * 2600}\n"
    (tmp_path / "deep.py").write_text(deep)
    (tmp_path / "env.py").write_text(HAZARD)
    assert "Found 2 hazards in 2 files" in run("check", "--no-cache").stdout
    result = run("check", "--no-cache", "--fix", "--unsafe-fixes")
    assert (result.stderr, result.exit_code) == ("deep.py: is nested too deeply to fix\n", 1)
    assert (tmp_path / "deep.py").read_text() == deep
    assert (tmp_path / "env.py").read_text() != HAZARD
    whole = CliRunner().invoke(main, ["check", "-", "--fix", "--unsafe-fixes"], input=deep)
    assert (whole.stdout, whole.exit_code) == (deep, 1)


# Diffs


@pytest.mark.skipif(shutil.which("patch") is None, reason="needs patch")
@pytest.mark.parametrize("end", ["\n", ""])
def test_a_diff_is_what_patch_reads(end: str, tmp_path: Path) -> None:
    before, after = (f"s = 'a\x0cb\u2028é'\nx = {value}{end}".encode() for value in (1, 2))
    (tmp_path / "m.py").write_bytes(before)
    patch = diff(Fixed("m.py", before, after, 1)).encode()
    subprocess.run(["patch", "-p0"], input=patch, cwd=tmp_path, check=True, stdout=subprocess.DEVNULL)
    assert (tmp_path / "m.py").read_bytes() == after


SEARCH = "{}\ndef f(x, edges):\n    {}\n    return np.searchsorted(edges, x)\n"


@pytest.mark.parametrize(
    ("head", "inside", "is_offered"),
    [
        ("import jax.numpy as np", "", True),
        ("import jax.numpy as jnp\nimport numpy as onp", "np = jnp", True),
        ("import jax.numpy as jnp\nimport numpy as onp", "np = jnp if ON else onp", False),
        ("try:\n    import jax.numpy as np\nexcept ImportError:\n    import numpy as np", "", False),
        ("import numpy\nif ON:\n    import jax.numpy as np\nelse:\n    np = numpy", "", False),
        ("", "import jax.numpy as np\n    if OFF:\n        import numpy as np", False),
        ("import jax.numpy as np\nx = 1 if ON else 2\nedges = x if ON else 3", "", True),
    ],
)
def test_where_a_name_may_be_numpy_the_finding_stays_and_offers_no_edit(
    head: str, inside: str, is_offered: bool
) -> None:
    """numpy's searchsorted has no method."""
    search = Scope(("default-searchsorted",))
    (one,) = check_text(SEARCH.format(head, inside or "pass").encode(), "m.py", search)
    assert one.suggestion is not None
    assert bool(one.suggestion.edits) is one.suggestion.safe is is_offered


def test_a_file_that_cannot_be_written_is_told_and_the_others_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It ended the run, behind what was written already, and nothing was told of that."""
    monkeypatch.chdir(tmp_path)
    for name in ("a.py", "b.py", "c.py"):
        (tmp_path / name).write_text(HAZARD)
    write = Path.write_bytes

    def guarded(path: Path, data: bytes) -> int:
        if path.name == "b.py":
            raise PermissionError(13, "Permission denied", str(path))
        return write(path, data)

    monkeypatch.setattr(Path, "write_bytes", guarded)
    done = run("check", ".", "--fix", "--unsafe-fixes", "--no-cache", "--output-format", "concise")
    assert done.exit_code == 1
    assert done.stderr == "b.py: cannot be written: Permission denied\n"
    assert done.stdout.startswith("b.py:6:12: ")
    assert "Fixed 2 hazards in 2 files.\nFound 1 hazard in 3 files" in done.stdout
    assert (tmp_path / "b.py").read_text() == HAZARD
