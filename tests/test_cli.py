"""`fusionlint check` as a user runs it: what it prints, what it writes, and how it ends."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from fusionlint.cli import main
from fusionlint.finding import Finding, Location, Suggestion
from fusionlint.hlo.reasons import REASONS
from fusionlint.report.text import full
from fusionlint.rule import all_rules

COLUMNS = """\
import jax.numpy as jnp


def swap(s):
    n = s.shape[0]
    return jnp.zeros((n, 2)).at[:, 0].set(s[:, 1]).at[:, 1].set(s[:, 0])
"""
RULE = "columns-by-at-set"
SCRIPT = str(Path(sys.executable).with_name("fusionlint"))
CLEAN = "import jax.numpy as jnp\n\n\ndef pack(x, v):\n    return jnp.stack([x, v], axis=-1)\n"
SCAN = "jax.lax.scan(lambda x, r: (0.9 * x + 0.1 * r, x), x, rows, unroll=16)"
SEARCH = "\n\ndef at(x):\n    return jnp.searchsorted(x, x)\n"
UNROLLED = f"import jax\n\n\ndef smoothed(x, rows):\n    return {SCAN}\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "env.py").write_text(COLUMNS)
    return tmp_path


def run(*args: str) -> Result:
    result = CliRunner().invoke(main, list(args))
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exc_info
    return result


def test_a_finding_shows_its_line_a_caret_the_numbers_and_the_advice(folder: Path) -> None:
    result = run("check", "env.py")
    first, gap, code, caret, numbers, advice, assumed, last = result.stdout.splitlines()
    assert first.startswith("env.py:6:12: columns-by-at-set: ")
    assert gap == "  |"
    assert code == "6 |     return jnp.zeros((n, 2)).at[:, 0].set(s[:, 1]).at[:, 1].set(s[:, 0])"
    assert caret.index("^") == code.index("jnp")
    assert caret.count("^") in (len("jnp.zeros((n, 2)).at[:, 0].set(s[:, 1])"), len(code) - code.index("jnp"))
    assert numbers.startswith("  = measured on the rule's page: cpu ")
    assert "-> 1 launches; h100 " in numbers
    assert "jnp.stack([s[:, 1], s[:, 0]], axis=" in advice
    assert assumed.startswith("  = assumed: ")
    assert last.startswith("Found 1 hazard in 1 file")
    assert last.endswith("`fusionlint rule columns-by-at-set` says more.")
    assert result.exit_code == 1


def test_what_says_more_of_findings_of_several_rules_is_no_single_page(folder: Path) -> None:
    (folder / "sort.py").write_text("import jax.numpy as jnp\n\n\ndef f(x):\n    return jnp.sort(x)[-1]\n")
    assert run("check").stdout.splitlines()[-1].endswith("`fusionlint rule NAME` says more.")


def test_a_count_that_hardly_differs_gives_way_to_bytes_that_do(folder: Path) -> None:
    """1163 launches become 1162, and 1.2 MB become 804 kB."""
    (folder / "inv.py").write_text(
        "import jax, jax.numpy as jnp\n\n@jax.jit\ndef f(a, b):\n    return jnp.linalg.inv(a) @ b\n"
    )
    assert "cpu 1.2 MB -> 804 kB; h100 " in run("check", "inv.py", "--select", "inverse-then-matmul").stdout


def test_bytes_are_told_where_they_are_many_times_as_many_and_launches_are_not_twice(folder: Path) -> None:
    """On the page of h100 4 -> 3 launches, 50.3 MB -> 10.3 kB; of v5e in a loop 2504 -> 2306, and more bytes."""
    kept = "import functools, jax\n\n@functools.partial(jax.jit, donate_argnums=0)\ndef put(t, row, k, p):\n"
    (folder / "put.py").write_text(f"{kept}    return jax.lax.cond(p, lambda: t.at[k].set(row), lambda: t)\n")
    assert "page: h100 50.3 MB -> 10.3 kB; " in run("check", "put.py", "--select", "cond-around-a-write").stdout
    loop = "import jax\n\ndef f(t, rows):\n    return jax.lax.scan(lambda t, r: (\n"
    body = "        jax.lax.cond(r[0] > 0, lambda: t.at[0].set(r), lambda: t), None), t, rows)\n"
    (folder / "scan.py").write_text(loop + body)
    told = run("check", "scan.py", "--select", "cond-around-a-write").stdout
    assert "page: h100 107 MB -> 11.8 MB; v5e 2504 -> 2306 launches; " in told


def test_clean_code_is_silent_and_ends_with_zero(folder: Path) -> None:
    (folder / "env.py").write_text(CLEAN)
    result = run("check")
    assert (result.stdout, result.exit_code) == ("No hazards found in 1 file.\n", 0)


def test_a_folder_of_tests_is_left_out_and_the_summary_says_so(folder: Path) -> None:
    (folder / "tests").mkdir()
    (folder / "tests" / "env.py").write_text(COLUMNS)
    result = run("check", "tests")
    assert result.stdout == (
        "No hazards found in 0 files. Tests, benchmarks, plots and what `exclude` or .gitignore names are left out.\n"
    )
    assert result.exit_code == 0


@pytest.mark.parametrize("names", [["test_env.py"], ["check_env.py", "tests/env.py"]])
def test_of_files_that_few_rules_mean_the_summary_says_so(folder: Path, names: list[str]) -> None:
    (folder / "tests").mkdir()
    for name in names:
        (folder / name).write_text(COLUMNS)
    whose = "Its path says" if len(names) == 1 else "Their paths say"
    said = run("check", *names).stdout
    assert said.endswith(f". {whose} test, plot, benchmark or the like: most rules do not apply.\n")
    assert "most rules" not in run("check", "env.py", "--ignore", RULE, *names).stdout


def test_of_a_target_without_counts_of_its_own_the_summary_says_whose_it_goes_by(folder: Path) -> None:
    said = run("check", "--target", "a100,h100,tpu", "--target", "a100").stdout
    assert said.count(" goes by ") == 2
    assert " a100 goes by what was counted for h100. tpu goes by what was counted for v5e. " in said
    assert " goes by " not in run("check", "--target", "h100").stdout


def test_concise_is_one_line_a_finding(folder: Path) -> None:
    lines = run("check", "--output-format", "concise").stdout.splitlines()
    assert len(lines) == 2
    assert lines[0].startswith("env.py:6:12: columns-by-at-set: ")


def test_json_is_the_documented_shape(folder: Path) -> None:
    (folder / "bad.py").write_text("def f(:\n")
    document = json.loads(run("check", "--output-format", "json").stdout)
    assert set(document) == {"version", "findings", "errors", "warnings"}
    (finding,) = document["findings"]
    assert {
        "rule",
        "path",
        "line",
        "column",
        "end_line",
        "end_column",
        "message",
        "targets",
        "suggestion",
        "evidence",
    } <= (set(finding))
    assert (finding["path"], finding["line"], finding["column"]) == ("env.py", 6, 12)
    assert "h100" in finding["targets"]
    assert {"target", "quantity", "bad", "good"} == set(finding["evidence"][0])
    (error,) = document["errors"]
    assert (error["path"], error["line"]) == ("bad.py", 1)


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("syntax.py", b"def f(:\n    pass\n", "syntax.py:1: does not parse"),
        ("latin.py", b"x = '\xe9'\n", "latin.py:1: does not parse"),
        ("null.py", b"x = 1\0\n", "null.py"),
        ("wide.py", "x = 1\n".encode("utf-16"), "wide.py: does not parse: it is in UTF-16"),
        ("deep.py", b"x = " + b"(" * 300 + b")" * 300 + b"\n", "deep.py"),
    ],
)
def test_a_file_that_cannot_be_read_is_reported_and_the_run_goes_on(
    folder: Path, name: str, data: bytes, message: str
) -> None:
    (folder / name).write_bytes(data)
    result = run("check", "--output-format", "concise")
    assert message in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert "env.py:6:12" in result.stdout
    assert result.exit_code == 1


def test_a_pipe_is_no_file_and_nothing_is_called_clean(folder: Path) -> None:
    os.mkfifo("piped.py")
    result = run("check", "piped.py", "env.py")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "piped.py: no file that can be read twice; `fusionlint check -` reads a text from stdin" in result.stderr


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("check", "nowhere"), "nowhere: no such file or folder"),
        (("check", "--select", "columns-by-at-sett"), "did you mean 'columns-by-at-set'?"),
        (("check", "--select", "Columns-By-AT-set"), "did you mean 'columns-by-at-set'?"),
        (("explain", "env.py:swap", "--target", "h10"), "there is no target 'h10'; did you mean 'h100'?"),
        (("explain", "env.py", "--target", "cpu"), "env.py names no function; it has swap: write env.py:swap"),
        (("check", "--ignore", "x"), "there is no rule 'x'; `fusionlint rule` lists them"),
        (("check", "--target", "h10"), "there is no target 'h10'; did you mean 'h100'?"),
        (("check", "--select", "sort-for-max", "--ignore", "sort-for-max"), "no rule is left to look for"),
        (("check", "--baseline", "nodir/k.json", "--write-baseline"), "there is no folder nodir to write it to"),
        (("rule", "columns"), "there is no rule 'columns'"),
        (("rule", "unused-ignore"), "unused-ignore is switched by --warn-unused-ignores; it has no page"),
        (("check", "--select", "unused-ignore"), "unused-ignore is switched by --warn-unused-ignores"),
        (("rule", "--reasons", "columns-by-at-set"), "leave the rule's name out"),
    ],
)
def test_a_users_mistake_is_one_line_and_exit_two(folder: Path, args: tuple[str, ...], message: str) -> None:
    result = run(*args)
    assert result.exit_code == 2
    assert message in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert result.stdout == ""


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("env.py",), "No such command 'env.py'; did you mean `fusionlint check env.py`?"),
        (("gymnax/",), "No such command 'gymnax/'; did you mean `fusionlint check gymnax/`?"),
        (("chek",), "No such command 'chek'; did you mean `fusionlint check`?"),
        (("rules",), "No such command 'rules'; did you mean `fusionlint rule`?"),
        (("xyz",), "No such command 'xyz'."),
        (
            ("check", "--exclude", "x"),
            "No such option '--exclude': set `exclude` in [tool.fusionlint] of pyproject.toml.",
        ),
    ],
)
def test_what_is_no_command_and_no_option_is_told_what_is(folder: Path, args: tuple[str, ...], message: str) -> None:
    result = run(*args)
    assert (result.exit_code, result.stderr.splitlines()[-1]) == (2, f"Error: {message}")


def test_every_command_is_listed_with_a_whole_sentence(folder: Path) -> None:
    listed = run("--help").stdout.partition("Commands:\n")[2].splitlines()
    assert len(listed) > 5
    assert all(line.endswith(".") and not line.endswith("...") for line in listed)


def test_a_target_is_known_in_capitals(folder: Path) -> None:
    assert run("check", "--target", "H100").stdout == run("check", "--target", "h100").stdout


def test_select_and_ignore_choose_the_rules(folder: Path) -> None:
    assert run("check", "--ignore", "columns-by-at-set").exit_code == 0
    assert run("check", "--select", "loop-over-jit,jit-per-call").exit_code == 0
    assert run("check", "--select", "columns-by-at-set").exit_code == 1


def test_a_target_keeps_the_rules_that_harm_it_and_its_numbers(folder: Path) -> None:
    document = json.loads(run("check", "--target", "h100", "--output-format", "json").stdout)
    (finding,) = document["findings"]
    assert {m["target"] for m in finding["evidence"]} == {"h100"}


@pytest.mark.parametrize(
    ("args", "exit_code"),
    [((), 0), (("--target", "h100"), 0), (("--target", "cpu"), 1), (("--select", "unrolled-scan-on-cpu"), 1)],
)
def test_what_only_makes_a_cpu_compute_more_is_found_where_a_cpu_is_named(
    folder: Path, args: tuple[str, ...], exit_code: int
) -> None:
    (folder / "env.py").write_text(UNROLLED)
    assert run("check", *args).exit_code == exit_code


@pytest.mark.parametrize(
    ("args", "exit_code"),
    [((), 0), (("--target", "h100"), 0), (("--target", "cpu"), 1), (("--select", "one-hot-scatter"), 1)],
)
def test_what_helps_a_cpu_at_the_cost_of_an_accelerator_is_found_where_a_cpu_is_named(
    folder: Path, args: tuple[str, ...], exit_code: int
) -> None:
    """A cache that is written by a one-hot: on an H100 a write by itself is a launch more in every step."""
    (folder / "env.py").write_text(
        "import jax\nimport jax.numpy as jnp\n\nclass Cache:\n    def __call__(self, key, place):\n"
        "        cached = self.variable('cache', 'key', jnp.zeros, self.shape)\n"
        "        cached.value = cached.value + key[..., None] * jax.nn.one_hot(place, self.shape[-1])\n"
        "        return cached.value\n"
    )
    assert run("check", *args).exit_code == exit_code


def test_a_target_of_the_configuration_names_it_too(folder: Path) -> None:
    (folder / "env.py").write_text(UNROLLED)
    (folder / "pyproject.toml").write_text("[tool.fusionlint]\ntarget = ['cpu', 'h100']\n")
    assert run("check").exit_code == 1


@pytest.mark.parametrize(
    ("comment", "exit_code"),
    [
        ("# fusionlint: ignore[columns-by-at-set]", 0),
        ("# fusionlint: ignore[loop-over-jit, columns-by-at-set]", 0),
        ("# fusionlint: ignore", 0),
        ("# fusionlint: ignore[loop-over-jit]", 1),
        ("# ignore", 1),
    ],
)
def test_a_comment_on_the_line_silences_the_rules_it_names(folder: Path, comment: str, exit_code: int) -> None:
    (folder / "env.py").write_text(COLUMNS.rstrip() + f"  {comment}\n")
    assert run("check").exit_code == exit_code


def test_statistics_count_findings_by_rule(folder: Path) -> None:
    (folder / "other.py").write_text(COLUMNS)
    rows = run("check", "--statistics", "--output-format", "concise").stdout.splitlines()
    assert any(row.split()[:2] == ["2", "columns-by-at-set"] for row in rows)


def test_diff_shows_the_change_and_makes_none(folder: Path) -> None:
    result = run("check", "--diff", "--unsafe-fixes")
    assert "-    return jnp.zeros((n, 2)).at[:, 0].set(s[:, 1]).at[:, 1].set(s[:, 0])\n" in result.stdout
    assert "+    return jnp.stack([s[:, 1], s[:, 0]], axis=" in result.stdout
    assert (folder / "env.py").read_text() == COLUMNS
    assert result.exit_code == 1


def test_a_diff_without_a_fix_says_that_there_are_hazards(folder: Path) -> None:
    result = run("check", "--diff")
    told = "No fixes to show for 1 hazard; 1 with --unsafe-fixes. For the advice, run without --diff.\n"
    assert (result.stdout, result.stderr, result.exit_code) == ("", told, 0)
    (folder / "env.py").write_text(CLEAN)
    assert run("check", "--diff").stderr == "Would fix 0 hazards in 0 files.\n"


def test_unsafe_fixes_need_to_be_asked_for(folder: Path) -> None:
    assert run("check", "--fix").exit_code == 1
    assert (folder / "env.py").read_text() == COLUMNS


def test_fix_writes_the_file_and_leaves_it_silent(folder: Path) -> None:
    result = run("check", "--fix", "--unsafe-fixes")
    assert "Fixed 1 hazard in 1 file." in result.stdout
    assert "jnp.stack([s[:, 1], s[:, 0]], axis=" in (folder / "env.py").read_text()
    assert result.exit_code == 0
    assert run("check").exit_code == 0


def test_many_processes_find_what_one_finds(folder: Path) -> None:
    for i in range(30):
        (folder / f"env_{i}.py").write_text(COLUMNS if i % 2 else CLEAN)
    (folder / "broken.py").write_text("def f(:\n")
    # In processes of its own: the pool forks, which a test process with jax in it must not.
    command = [sys.executable, "-m", "fusionlint", "check", "--output-format", "json", "--jobs"]
    one, two = (json.loads(subprocess.run([*command, n], capture_output=True).stdout) for n in ("1", "2"))
    assert one == two
    assert len(one["findings"]) == 16


def test_names_are_followed_into_files_that_are_not_checked(folder: Path) -> None:
    package = folder / "lib"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "types.py").write_text("import jax.numpy as jnp\n")
    (package / "env.py").write_text(COLUMNS.replace("import jax.numpy as jnp", "from lib.types import jnp"))
    assert "lib/env.py:6:12" in run("check", os.path.join("lib", "env.py"), "--output-format", "concise").stdout  # noqa: PTH118


def test_rules_are_listed_with_what_they_harm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    rows = run("rule").stdout.splitlines()
    assert any(row.split()[:2] == ["columns-by-at-set", "fusion"] for row in rows)


@pytest.mark.parametrize("width", [40, 80, 120])
def test_a_row_of_the_list_never_wraps(folder: Path, monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    rows = run("rule").stdout.splitlines()
    assert len(rows) == len(all_rules()) + 2
    assert max(map(len, rows)) == width
    assert sum(row.endswith("...") for row in rows) > 10


def test_a_terminal_shows_a_head_and_what_to_do_next_and_costs_where_it_is_wide(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for columns, titles in ((80, ["rule", "summary"]), (120, ["rule", "costs", "summary"])):
        monkeypatch.setenv("COLUMNS", str(columns))
        head, *rows, last = run("rule").stdout.splitlines()
        assert head.split() == titles
        assert last == f"{len(rows)} rules. `fusionlint rule NAME` shows one."
        assert max(map(len, run("rule", "--reasons").stdout.splitlines())) <= columns


def test_a_wide_terminal_shows_whole_summaries(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "1000")
    summaries = [rule.page.summary for rule in all_rules()]
    assert all(row.endswith(s) for row, s in zip(run("rule").stdout.splitlines()[1:-1], summaries, strict=True))


def test_xlas_reasons_are_listed_with_what_they_mean(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    shown = run("rule", "--reasons").stdout
    assert all(f'\n"{reason.part}"\n    {reason.words}\n' in shown for reason in REASONS)
    assert "    sort: a sort reads it\n" in shown


def test_a_rules_page_is_shown(folder: Path) -> None:
    assert run("rule", "columns-by-at-set").stdout.startswith("# columns-by-at-set")


def test_help_and_version_come_without_jax(folder: Path) -> None:
    assert "check" in run("--help").stdout
    assert run("--version").exit_code == 0


@pytest.mark.parametrize(("text", "code"), [(COLUMNS, 1), (CLEAN, 0), (None, 2)], ids=["a hazard", "none", "no file"])
def test_the_script_which_ends_at_once_says_all_and_ends_as_the_module_does(
    text: str | None, code: int, tmp_path: Path
) -> None:
    if text is not None:
        (tmp_path / "a.py").write_text(text)
    done = [
        subprocess.run([*command, "check", "a.py", "--no-cache"], cwd=tmp_path, capture_output=True, check=False)
        for command in ([SCRIPT], [sys.executable, "-m", "fusionlint"])
    ]
    assert [(one.returncode, one.stdout, one.stderr) for one in done] == [(code, done[1].stdout, done[1].stderr)] * 2
    assert done[0].stdout or done[0].stderr


def test_who_reads_no_further_ends_the_script_without_a_word(tmp_path: Path) -> None:
    for number in range(400):
        (tmp_path / f"a{number}.py").write_text(COLUMNS)
    command = [SCRIPT, "check", ".", "--no-cache"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as script:
        assert script.stdout is not None
        assert script.stderr is not None
        script.stdout.readline()
        script.stdout.close()
        assert script.stderr.read() == b""
    assert script.returncode == 1


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
@pytest.mark.parametrize("arguments", [("rule",), ("check", "a.py", "--no-cache")])
@pytest.mark.parametrize("command", [[SCRIPT], [sys.executable, "-m", "fusionlint"]], ids=["script", "module"])
def test_a_full_disk_is_one_line_and_exit_2(command: list[str], arguments: tuple[str, ...], tmp_path: Path) -> None:
    """It was a traceback, and exit 1: something was found."""
    (tmp_path / "a.py").write_text(COLUMNS)
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [*command, *arguments], cwd=tmp_path, stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.stderr == "fusionlint: the output cannot be written: no space left on the device\n"
    assert done.returncode == 2


def test_a_working_folder_that_is_gone_is_one_line_and_exit_2(tmp_path: Path) -> None:
    folder = tmp_path / "gone"
    folder.mkdir()
    program = "import os, sys; os.rmdir(os.getcwd()); from fusionlint.cli import main; main(['explain', 'a.py:f'])"
    done = subprocess.run([sys.executable, "-c", program], cwd=folder, capture_output=True, text=True, check=False)
    assert done.stderr == "fusionlint: the working folder is not there any more: go to one that is\n"
    assert done.returncode == 2


def test_the_configuration_chooses_unless_the_command_line_selects(folder: Path) -> None:
    (folder / "pyproject.toml").write_text(f'[tool.fusionlint]\nignore = ["{RULE}", "sort-for-max"]\n')
    assert run("check").exit_code == 0
    assert run("check", "--select", RULE).exit_code == 1
    assert run("check", "--ignore", "chained-at-set").exit_code == 0  # besides what is ignored there


def test_a_name_in_the_configuration_that_no_rule_has_is_told_with_file_and_key(folder: Path) -> None:
    (folder / "pyproject.toml").write_text('[tool.fusionlint]\nignore = ["sort-for-mx"]\n')
    result = run("check")
    assert result.exit_code == 2
    assert "pyproject.toml: [tool.fusionlint] ignore: there is no rule 'sort-for-mx'; did you mean" in result.stderr


def test_a_file_whose_name_is_not_utf8_does_not_stop_the_rest(folder: Path) -> None:
    try:
        Path(os.fsdecode(b"b\xe9.py")).write_bytes((folder / "env.py").read_bytes())
    except OSError:
        pytest.skip("no such name can be given here")
    result = run("check", "--output-format", "concise")
    assert RULE in result.stdout
    assert "b\\udce9.py: is not checked: its name is not UTF-8" in result.stdout + result.stderr


def test_what_to_write_is_wrapped_in_a_terminal_alone() -> None:
    advice = Suggestion("one of several " * 20)
    finding = Finding("some-rule", Location("a.py", 2, 1, 2, 2), "told", advice)
    assert full(finding, ["", "x = 1"]).count("\n") == 4
    first, *more = full(finding, ["", "x = 1"], 80).splitlines()[4:]
    assert first.startswith("  = write: one of several")
    assert more
    assert all(len(row) <= 80 and row.startswith(" " * 11) and row[11] != " " for row in more)


def test_the_list_of_rules_is_not_cut_in_a_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    assert all(not line.endswith("...") for line in run("rule").stdout.splitlines())


@pytest.mark.parametrize("how", ["c.program()", "import runpy; runpy.run_module('fusionlint', run_name='__main__')"])
def test_a_mistake_of_ours_is_a_traceback_and_no_finding(folder: Path, how: str) -> None:
    program = "import sys; sys.argv = ['fusionlint', 'check', '-', '--fix']\nimport fusionlint.cli as c\n"
    program += f"import fusionlint.source.check as s; s.check_files = None\n{how}"
    done = subprocess.run([sys.executable, "-c", program], input=COLUMNS, capture_output=True, text=True, cwd=folder)
    assert (done.returncode, done.stdout) == (2, "")
    assert "TypeError: " in done.stderr


@pytest.mark.parametrize(
    ("also", "told"),
    [
        ("", "1 of them fixable with --fix --unsafe-fixes."),
        (SEARCH, "1 of them fixable with --fix, 1 more with --fix --unsafe-fixes."),
    ],
)
def test_what_more_the_unsafe_fixes_do_is_said_as_more(folder: Path, also: str, told: str) -> None:
    (folder / "env.py").write_text(COLUMNS + also)
    assert f" in 1 file, {told}" in run("check").stdout.splitlines()[-1]


@pytest.mark.parametrize(
    ("environment", "is_colored"),
    [
        ({"FORCE_COLOR": "1"}, True),
        ({}, False),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
        ({"NO_COLOR": ""}, False),
    ],
)
def test_the_environment_decides_about_colors(folder: Path, environment: dict[str, str], is_colored: bool) -> None:
    told = {name: text for name, text in os.environ.items() if name not in ("FORCE_COLOR", "NO_COLOR", "TERM")}
    done = subprocess.run(
        [SCRIPT, "check", "env.py"], env=told | environment, capture_output=True, text=True, check=False
    )
    assert ("\x1b[" in done.stdout) is is_colored


@pytest.mark.skipif(sys.platform != "linux", reason="a terminal of Linux")
@pytest.mark.parametrize(
    ("environment", "is_colored"), [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)]
)
def test_a_terminal_is_colored_unless_it_is_told_not_to_be(
    folder: Path, environment: dict[str, str], is_colored: bool
) -> None:
    told = {name: text for name, text in os.environ.items() if name not in ("FORCE_COLOR", "NO_COLOR")}
    ours, theirs = os.openpty()
    with subprocess.Popen([SCRIPT, "check", "env.py"], env={**told, "TERM": "xterm", **environment}, stdout=theirs):
        os.close(theirs)
        shown = b""
        try:
            while some := os.read(ours, 4096):
                shown += some
        except OSError:  # the other end is closed
            pass
    os.close(ours)
    assert (b"\x1b[1menv.py:6:12:" in shown) is is_colored


@pytest.mark.parametrize("command", [("explain", "env.py:swap(f32[4,2])"), ("diff", "a.json", "b.json")])
def test_an_interrupt_of_any_command_is_no_finding(
    folder: Path, command: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """click ends with 1, by which a rule knows a way around, or `diff` found something worse."""

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(f"fusionlint.commands.{command[0]}.one_line_errors", interrupted)
    result = run(*command)
    assert (result.stderr, result.exit_code) == ("fusionlint: interrupted\n", 130)
