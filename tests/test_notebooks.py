"""Notebooks: their code is checked cell by cell, said by cell, and fixed without a byte of anything else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from commands import run

from fusionlint.source.notebooks import cell_at, code_of, with_code

IMPORTS = "%matplotlib inline\nimport jax\nimport jax.numpy as jnp\nfiles = !ls\n"
LARGEST = "@jax.jit\ndef largest(x):\n    return jnp.sort(x)[-1]  # <é> & 😀 'more'"
SHELL = "%%bash\nls | sort )\n"
TIMED = "%%time\n@jax.jit\ndef top(y):\n    return jnp.sort(y)[-1]\n"


def notebook(*sources: str, **about: Any) -> dict[str, Any]:
    text = {"cell_type": "markdown", "metadata": {}, "source": ["# Title\n", "jnp.sort(x)[-1]"]}
    code = [{"cell_type": "code", "outputs": [], "source": one.splitlines(keepends=True)} for one in sources]
    return {"cells": [text, *code], "metadata": about, "nbformat": 4, "nbformat_minor": 5}


def as_colab(document: dict[str, Any]) -> bytes:
    text = json.dumps(document, indent=2, ensure_ascii=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026").encode()


def as_one_string(document: dict[str, Any]) -> bytes:
    cells = [{**cell, "source": "".join(cell["source"])} for cell in document["cells"]]
    return json.dumps({**document, "cells": cells}, separators=(",", ":")).encode()


WRITTEN = {
    "by Jupyter": lambda document: f"{json.dumps(document, indent=1, ensure_ascii=False)}\n".encode(),
    "by Colab": as_colab,
    "in one line, a string a cell": as_one_string,
    "with Windows' ends of lines": lambda document: json.dumps(document, indent=1).replace("\n", "\r\n").encode(),
    "with odd space": lambda document: json.dumps(document, indent=3).replace('"source": [', '"source"  :  [').encode(),
}


@pytest.mark.parametrize(
    "cell",
    [
        "await fetched()",
        "async with opened() as file:\n    pass",
        "[x async for x in fetched()]",
        "from __future__ import annotations",
    ],
)
def test_what_only_a_cell_may_say_does_not_stop_fixes(cell: str, folder: Path) -> None:
    (folder / "train.ipynb").write_text(json.dumps(notebook(IMPORTS, cell, LARGEST)))
    assert run("check", "train.ipynb", "--fix", "--unsafe-fixes", "--no-cache").exit_code == 0


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    document = notebook(IMPORTS, LARGEST, SHELL, TIMED)
    (tmp_path / "train.ipynb").write_bytes(WRITTEN["by Jupyter"](document))
    return tmp_path


@pytest.mark.parametrize("written", WRITTEN)
def test_a_fix_changes_the_line_that_it_is_about_and_no_other_byte(folder: Path, written: str) -> None:
    path = folder / "train.ipynb"
    data = WRITTEN[written](notebook(IMPORTS, LARGEST, SHELL, TIMED))
    path.write_bytes(data)
    assert run("check", "train.ipynb", "--fix", "--unsafe-fixes", "--no-cache").exit_code == 0
    fixed = data.replace(b"return jnp.sort(x)[-1]", b"return jnp.max(x)")
    assert path.read_bytes() == fixed.replace(b"return jnp.sort(y)[-1]", b"return jnp.max(y)")


@pytest.mark.parametrize("written", WRITTEN)
@pytest.mark.parametrize(
    "sources",
    [
        (IMPORTS, LARGEST, SHELL, TIMED),
        ("",),
        ("\n\n", "x = 1\n\n", "!ls \\\n  -l\nx = 2"),
        ("%%html\n<b>\n\n", "?jax.jit\njax.jit?\nif 1:\n    %time f()\nelse:\n    a, b = %who_ls\n"),
        ('s = """\n%time\n!ls\n"""', "# %% [1]\nx %= 2\n", "x ="),
    ],
)
def test_code_that_nobody_changed_comes_back_as_it_was(written: str, sources: tuple[str, ...]) -> None:
    data = WRITTEN[written](notebook(*sources))
    assert with_code(data, code_of(data)) == data


def test_what_ipython_alone_understands_stands_in_comments_line_for_line() -> None:
    source = "!ls \\\n  -l\nif 1:\n    %time f()\nnames = !ls\nf?"
    code = code_of(WRITTEN["by Jupyter"](notebook(source, SHELL)))
    compile(code, "cells", "exec")
    lines = code.decode().splitlines()
    assert lines[0] == "# %% fusionlint: cell 2"
    assert lines[4:7] == ["    pass  # IPython: %time f()", "names = None  # IPython: !ls", "pass  # IPython: f?"]
    assert len(lines) == 2 + len(source.splitlines()) + len(SHELL.splitlines())


def test_a_cell_that_is_python_is_not_looked_through_for_magic() -> None:
    source = 's = """\n%time\n"""'
    assert code_of(WRITTEN["by Jupyter"](notebook(source))).decode().endswith(f"\n{source}\n")


def test_cells_are_counted_from_the_top_those_of_text_too() -> None:
    code = code_of(WRITTEN["by Jupyter"](notebook("a = 1\nb = 2", "c = 3"))).decode()
    where = {line: cell_at(code, number) for number, line in enumerate(code.splitlines(), 1)}
    assert where["a = 1"] == (2, 1)
    assert where["b = 2"] == (2, 2)
    assert where["c = 3"] == (3, 1)


@pytest.mark.parametrize("about", [{"language_info": {"name": "R"}}, {"kernelspec": {"language": "julia"}}])
def test_other_languages_have_no_code_to_check(about: dict[str, Any]) -> None:
    assert code_of(WRITTEN["by Jupyter"](notebook(LARGEST, **about))) == b""


def test_findings_say_the_cell_and_its_line(folder: Path) -> None:
    result = run("check", "train.ipynb", "--output-format", "concise")
    found = result.stdout.splitlines()
    assert result.exit_code == 1
    assert found[0].startswith("train.ipynb:cell 3:3:12: sort-for-max: ")
    assert found[1].startswith("train.ipynb:cell 5:4:12: sort-for-max: ")
    assert "\n3 |     return jnp.sort(x)[-1]  # <é> & 😀 'more'\n" in run("check", "train.ipynb").stdout


def test_json_has_the_cell_and_the_lines_in_it(folder: Path) -> None:
    first, _ = json.loads(run("check", "train.ipynb", "--output-format", "json").stdout)["findings"]
    assert (first["cell"], first["line"], first["end_line"], first["column"]) == (3, 3, 3, 12)
    (edit,) = first["suggestion"]["edits"]
    assert (edit["cell"], edit["line"], edit["end_line"]) == (3, 3, 3)


@pytest.mark.parametrize("written", WRITTEN)
def test_annotations_and_sarif_are_at_the_line_of_the_file_and_name_the_cell(folder: Path, written: str) -> None:
    data = WRITTEN[written](notebook(IMPORTS, LARGEST, SHELL, TIMED, "x =\n"))
    (folder / "train.ipynb").write_bytes(data)
    here = next(n for n, line in enumerate(data.split(b"\n"), 1) if b"return jnp.sort(x)[-1]" in line)
    broken = next(n for n, line in enumerate(data.split(b"\n"), 1) if b"x =" in line)
    first, _, problem = run("check", "train.ipynb", "--output-format", "github").stdout.splitlines()
    place = f"file=train.ipynb,line={here},endLine={here},title=sort-for-max"
    assert first.startswith(f"::warning {place}::cell 3, line 3: everything is sorted")
    assert problem.startswith(
        f"::error file=train.ipynb,line={broken},title=fusionlint::cell 6, line 1: does not parse"
    )
    (told,) = json.loads(run("check", "train.ipynb", "--output-format", "sarif").stdout)["runs"]
    result = told["results"][0]
    assert result["message"]["text"].startswith("cell 3, line 3: everything is sorted")
    assert result["locations"][0]["physicalLocation"]["region"] == {"startLine": here, "endLine": here}
    assert "fixes" not in result  # its regions would be columns of JSON
    (note,) = told["invocations"][0]["toolExecutionNotifications"]
    assert note["locations"][0]["physicalLocation"]["region"] == {"startLine": broken}


def test_a_cell_that_does_not_parse_is_named_with_its_line_and_the_others_are_told(folder: Path) -> None:
    bad = notebook("x = 1", "y = 2\nwith y:\nz = 3")
    (folder / "bad.ipynb").write_bytes(WRITTEN["by Jupyter"](bad))
    result = run("check", "bad.ipynb", "train.ipynb")
    assert "bad.ipynb:cell 3:3: does not parse: expected an indented block after 'with' statement on line 2" in (
        result.stderr
    )
    assert "Found 2 hazards in 2 files" in result.stdout


@pytest.mark.parametrize("broken", ["y = 2\nwith y:\nz = 3", ",f a b", "%%time\n!ls\nx = (1,\n", "def f(:"])
def test_one_broken_cell_leaves_the_others_checked_and_fixed(folder: Path, broken: str) -> None:
    document = notebook(IMPORTS, broken, LARGEST, "also = = 1")
    path = folder / "train.ipynb"
    path.write_bytes(WRITTEN["by Jupyter"](document))
    for _ in range(2):  # the second time from the cache
        result = run("check", "train.ipynb", "--output-format", "concise")
        assert result.stdout.startswith("train.ipynb:cell 4:3:12: sort-for-max: ")
        first, second = result.stderr.splitlines()
        assert first.startswith("train.ipynb:cell 3:")
        assert "does not parse: " in first
        assert second.startswith("train.ipynb:cell 5:1: does not parse: ")
        assert "Found 1 hazard in 1 file" in result.stdout
        assert "2 cells could not be checked." in result.stdout
        assert result.exit_code == 1
    assert run("check", "train.ipynb", "--fix", "--unsafe-fixes").exit_code == 1  # two cells are left
    assert path.read_bytes() == WRITTEN["by Jupyter"](document).replace(b"jnp.sort(x)[-1]  #", b"jnp.max(x)  #")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"{", "cannot be read: no notebook: Expecting property name"),
        (b"[]", "cannot be read: no notebook of version 4: it has no cells"),
        (b'{"worksheets": []}', "cannot be read: no notebook of version 4: it has no cells"),
        (b"\xff\xfe\xfa", "cannot be read: no notebook: "),
    ],
)
def test_what_is_no_notebook_is_one_line_and_the_run_goes_on(folder: Path, data: bytes, message: str) -> None:
    (folder / "bad.ipynb").write_bytes(data)
    result = run("check", "bad.ipynb", "train.ipynb")
    assert f"bad.ipynb: {message}" in result.stderr
    assert result.exit_code == 1
    assert "cell 3:3" in result.stdout


def test_a_folders_notebooks_are_read_when_they_are_named(folder: Path) -> None:
    result = run("check", ".")
    assert "No hazards found in 0 files" in result.stdout
    assert result.stderr == "notebooks are read where they are named: fusionlint check *.ipynb\n"
    (folder / "env.py").write_text("")
    assert run("check", ".").stderr == ""


def test_a_comment_in_a_cell_silences_its_line(folder: Path) -> None:
    quiet = LARGEST.replace("# <é>", "# fusionlint: ignore[sort-for-max] <é>")
    (folder / "train.ipynb").write_bytes(WRITTEN["by Jupyter"](notebook(IMPORTS, quiet)))
    assert run("check", "train.ipynb").exit_code == 0


def test_a_baseline_knows_the_lines_of_cells(folder: Path) -> None:
    run("check", "train.ipynb", "--baseline", "known.json", "--write-baseline")
    moved = notebook("import jax", IMPORTS, LARGEST, SHELL, TIMED)
    (folder / "train.ipynb").write_bytes(WRITTEN["by Jupyter"](moved))
    assert run("check", "train.ipynb", "--baseline", "known.json").exit_code == 0


def test_a_diff_says_that_it_is_of_the_code(folder: Path) -> None:
    shown = run("check", "train.ipynb", "--diff", "--unsafe-fixes", "--no-cache").stdout
    assert shown.startswith("--- train.ipynb (its code)\n+++ train.ipynb (its code)\n")
    assert (folder / "train.ipynb").read_bytes() == WRITTEN["by Jupyter"](notebook(IMPORTS, LARGEST, SHELL, TIMED))
