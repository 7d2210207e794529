"""Any files, in any order, by any number of processes: the same findings, and nothing ends the run."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import libcst as cst
import pytest

from fusionlint.finding import Finding
from fusionlint.rule import pages
from fusionlint.source import asking, judging
from fusionlint.source.check import check_files
from fusionlint.source.files import python_files
from fusionlint.source.scope import Scope, speaking
from fusionlint.source.tree import Source

EVERYTHING = Scope(speaking(tuple(pages()), ()))
HAZARD = """
from jax import lax, numpy as jnp

def stages(x):
    out = jnp.zeros(8)
    out = out.at[0].set(x)
    out = out.at[1].set(x * 2)
    return out
"""


def fill(folder: Path, number: int) -> list[Path]:
    for i in range(number):
        (folder / f"m{i}.py").write_text(HAZARD + f"# {'x' * (i * 37 % 101)}\nfrom m{(i * 7) % number} import stages\n")
    return python_files([folder])


def test_processes_and_order_change_nothing(tmp_path: Path) -> None:
    paths = fill(tmp_path, 40)
    first = check_files(paths, EVERYTHING, 1)
    assert len(first.findings) == 40
    assert check_files(paths, EVERYTHING, 3) == first
    assert check_files(paths[::-1], EVERYTHING, 2) == first


UNREADABLE = {
    "parentheses": "x = " + "(" * 10_000 + ")" * 10_000,
    "signs": "x = " + "-" * 10_000 + "1",
    "sums": "x = " + "+".join(["y"] * 10_000),
    "brackets": "x = " + "[" * 150 + "]" * 150,
    "attributes": "x = a" + ".b" * 10_000,
    "blocks": "if x:\n" + "".join(" " * i + "if x:\n" for i in range(1, 90)),
    "zero": "\0",
    "no_utf8": "\xff",
    "no_python": "def f(:",
}


@pytest.mark.parametrize("name", UNREADABLE)
def test_a_file_that_cannot_be_parsed_is_reported_or_checked_and_the_others_are(name: str, tmp_path: Path) -> None:
    paths = fill(tmp_path, 2)
    (tmp_path / "z.py").write_text(f"{HAZARD}{UNREADABLE[name]}\n", encoding="latin-1")
    result = check_files([*paths, tmp_path / "z.py"], EVERYTHING)
    assert len(result.findings) == 2 + (not result.problems)
    assert {Path(problem.path).name for problem in result.problems} <= {"z.py"}


def test_files_that_cannot_be_parsed_end_no_process_of_several(tmp_path: Path) -> None:
    fill(tmp_path, 40)
    for name, text in UNREADABLE.items():
        (tmp_path / f"{name}.py").write_text(f"{HAZARD}{text}\n", encoding="latin-1")
    result = check_files(python_files([tmp_path]), EVERYTHING, 2)
    assert len(result.findings) + len(result.problems) == 40 + len(UNREADABLE)
    assert {Path(problem.path).stem for problem in result.problems} <= {*UNREADABLE}


def test_a_long_file_is_checked(tmp_path: Path) -> None:
    (tmp_path / "long.py").write_text(HAZARD + "def f(x):\n    y = [x + 1, g(x)]\n    return y\n\n" * 5_000)
    result = check_files([tmp_path / "long.py"], EVERYTHING)
    assert (len(result.findings), result.problems) == (1, ())


_JUDGE = asking._judge_one


def die_of_one(path: str) -> tuple[str, tuple[object, ...]]:
    if path.endswith("m7.py"):
        signal.raise_signal(signal.SIGKILL)
    return _JUDGE(path)


def test_a_mistake_of_a_rule_is_reported_and_the_other_files_are_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = fill(tmp_path, 3)
    whole = judging.check_source

    def failing(source: Source, scope: Scope) -> Iterator[Finding]:
        if source.path.endswith("m1.py"):
            raise ValueError("no such scope")
        return whole(source, scope)

    monkeypatch.setattr(judging, "check_source", failing)
    found = check_files(paths, EVERYTHING)
    (problem,) = found.problems
    assert Path(problem.path).name == "m1.py"
    assert "ValueError: no such scope (test_check_files.py:" in problem.message
    assert {Path(f.location.path).name for f in found.findings} == {"m0.py", "m2.py"}


def test_a_process_that_dies_takes_one_file_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = fill(tmp_path, 40)
    monkeypatch.setattr(asking, "_judge_one", die_of_one)
    result = check_files(paths, EVERYTHING, 2)
    assert len(result.findings) == 39
    assert [(Path(p.path).name, p.message.partition(":")[0]) for p in result.problems] == [
        ("m7.py", "ends the process that parses it")
    ]


@pytest.mark.parametrize(
    "text",
    ["def first[T](xs: list[T]) -> T: ...", "class Box[T: (int, str), *Ts]: ...", "type Pair[T] = tuple[T, T]",
     "def both[\n    T,\n    U,\n](x: T, y: U) -> None: ...", "x = f'{d['a']}' f'{f'{1}'}'",
     "x = f'{[\n    1\n]}'; y = f'{'a'}'\ntype A = int",
     "text = \"\"\"\nx = f'{d['a']}' is no code\n\"\"\"\ny = f'{d['b']}'",
     "if d:\n    x = f'{d['a']}'\nelse:\n    @f\n    def g(): return f'{d['b']}'",
     "\ufeffx = f'{d['a']}'"],
    ids=["def", "class", "type", "over lines", "quotes in an f-string", "lines in an f-string", "f-strings in a string",
         "f-strings in branches", "a mark at the start"],
)  # fmt: skip
def test_syntax_newer_than_this_python_is_read(text: str, tmp_path: Path) -> None:
    (tmp_path / "newer.py").write_text(text + "\n" + HAZARD)
    result = check_files([tmp_path / "newer.py"], EVERYTHING)
    assert [(f.location.line, result.problems) for f in result.findings] == [(7 + text.count("\n"), ())]


def run(*args: str, text: str, folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "fusionlint", "check", "-", *args]
    return subprocess.run(command, cwd=folder, input=text, capture_output=True, text=True, check=False)


def test_a_text_from_stdin_is_checked_as_the_file_that_it_belongs_to(tmp_path: Path) -> None:
    (tmp_path / "tools.py").write_text("import jax\ndef wrap(f): return jax.jit(f)\n")
    (tmp_path / "main.py").write_text("saved = 1\n")
    text = (
        "from tools import wrap\nstep = wrap(print)\nfor i in range(999):\n    x = step(x)\n    seen.append(float(x))\n"
    )
    done = run("--stdin-filename", "main.py", text=text, folder=tmp_path)
    assert done.returncode == 1
    assert "main.py:5:" in done.stdout
    assert "seen.append(float(x))" in done.stdout
    assert (tmp_path / "main.py").read_text() == "saved = 1\n"
    assert run("--stdin-filename", "main.py", text="x = 1\n", folder=tmp_path).returncode == 0


def test_a_text_from_stdin_needs_no_file(tmp_path: Path) -> None:
    assert "stdin.py:6:" in run("--output-format", "concise", text=HAZARD, folder=tmp_path).stdout


def test_bytes_that_are_no_utf_8_are_the_files_fault(tmp_path: Path) -> None:
    (tmp_path / "latin.py").write_bytes(HAZARD.encode() + b"# caf\xe9\n")
    (problem,) = check_files([tmp_path / "latin.py"], EVERYTHING, 1).problems
    assert problem.message.startswith("does not parse: ")


def test_what_does_not_parse_says_to_whom(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "new.py").write_text("x = = 1\n")
    (problem,) = check_files([tmp_path / "new.py"], EVERYTHING, 1).problems
    here = f"{sys.version_info.major}.{sys.version_info.minor}"
    assert problem.message == f"does not parse: invalid syntax (to Python {here}, which runs fusionlint)"

    def refused(*_: object) -> None:
        raise cst.ParserSyntaxError("parser error", lines=["x"], raw_line=2, raw_column=0)

    monkeypatch.setattr(cst, "parse_module", refused)
    (tmp_path / "new.py").write_text(HAZARD)
    (problem,) = check_files([tmp_path / "new.py"], EVERYTHING, 1).problems
    told = f"does not parse: parser error (to libcst {version('libcst')}; a newer one may read it)"
    assert problem.message == told


def test_a_fixed_text_from_stdin_goes_to_stdout(tmp_path: Path) -> None:
    text = "import jax\n\ndef f(x):\n    return jax.numpy.sort(x)[-1]\n"
    done = run("--fix", "--unsafe-fixes", text=text, folder=tmp_path)
    assert done.stdout == text.replace("jax.numpy.sort(x)[-1]", "jax.numpy.max(x)")
    assert done.returncode == 0
    kept = run("--fix", text=text, folder=tmp_path)
    assert (kept.stdout, kept.returncode) == (text, 1)
    assert run("--fix", text="x = 1\n", folder=tmp_path).stdout == "x = 1\n"
    broken = run("--fix", text="x = = 1\n", folder=tmp_path)
    assert (broken.stdout, broken.returncode) == ("x = = 1\n", 1)


def test_a_text_from_stdin_that_is_excluded_is_left_alone_by_force(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.fusionlint]\nexclude = ['vendored/']\n")
    (tmp_path / "vendored").mkdir()
    text = "import jax\n\ndef f(x):\n    return jax.numpy.sort(x)[-1]\n"
    named = ("--stdin-filename", "vendored/new.py")
    assert run(*named, text=text, folder=tmp_path).returncode == 1
    assert run(*named, "--force-exclude", text=text, folder=tmp_path).returncode == 0
    fixed = run(*named, "--force-exclude", "--fix", "--unsafe-fixes", text=text, folder=tmp_path)
    assert (fixed.stdout, fixed.returncode) == (text, 0)


@pytest.mark.skipif(sys.platform != "linux", reason="asks Linux what processes there are")
def test_an_interrupt_ends_the_run_at_once_and_without_a_traceback(tmp_path: Path) -> None:
    fill(tmp_path, 1500)
    command = [sys.executable, "-m", "fusionlint", "check", ".", "--no-cache", "--jobs", "2"]
    with subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        while not children.read_text():  # it is still being imported
            time.sleep(0.05)
        began = time.monotonic()
        os.killpg(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=20)
    assert time.monotonic() - began < 10
    assert "Traceback" not in out + err
    assert (process.returncode, out) == (130, "")
