"""benchmarks/check_speed.py: whole processes are timed, files chosen, and the table and the limits written from them.
How fast anything is, is for the benchmark to say."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture
def benchmark(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A module of benchmarks/ by its name; they import each other as scripts do."""
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    return importlib.import_module


@pytest.fixture
def speeds(benchmark: Any) -> ModuleType:
    return benchmark("speeds")


@pytest.fixture
def corpora(benchmark: Any) -> ModuleType:
    return benchmark("corpora")


@pytest.fixture
def processes(benchmark: Any) -> ModuleType:
    return benchmark("processes")


@pytest.fixture
def peers(benchmark: Any) -> ModuleType:
    return benchmark("peers")


def written(folder: Path, **texts: str) -> Path:
    """The folder with the files `a__b="..."` -> a/b.py."""
    for name, text in texts.items():
        path = folder / f"{name.replace('__', '/')}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def test_a_process_is_timed_with_what_it_prints_and_its_exit_code(processes: ModuleType, tmp_path: Path) -> None:
    program = "import sys, time; time.sleep(0.2); print(sys.stdin.read()); print('oops', file=sys.stderr); sys.exit(3)"
    run = processes.timed([sys.executable, "-c", program], tmp_path, b"given")
    assert (run.code, run.output.strip(), run.errors.strip()) == (3, b"given", "oops")
    assert run.crashed
    assert run.seconds > 0.2 > run.cpu > 0


def test_a_traceback_is_a_crash_whatever_the_exit_code(processes: ModuleType, tmp_path: Path) -> None:
    assert processes.timed([sys.executable, "-c", "1 / 0"], tmp_path).crashed
    assert not processes.timed([sys.executable, "-c", "raise SystemExit(1)"], tmp_path).crashed


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory of each process is read from /proc")
def test_memory_is_of_the_process_and_of_what_it_started(processes: ModuleType, tmp_path: Path) -> None:
    below = "import time; data = bytearray(200_000_000); time.sleep(0.5)"
    program = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {below!r}])"
    run = processes.timed([sys.executable, "-c", program], tmp_path)
    assert run.child > 200 > run.parent > 1


def test_what_the_system_says_of_a_process_is_read(processes: ModuleType) -> None:
    assert processes.parent_in("4711 (a name) with (brackets) S 1234 4711 4711 0 -1") == 1234
    assert processes.peak_in("Name:\tpython\nVmPeak:\t 9000 kB\nVmHWM:\t    2000 kB\nVmRSS:\t1 kB\n") == 2.048
    assert processes.peak_in("Name:\tpython\nState:\tZ (zombie)\n") == 0


def test_a_corpus_is_copied_without_what_configures_a_linter(corpora: ModuleType, tmp_path: Path) -> None:
    first = written(tmp_path / "first", a="x = 1\n", b__c="\n\n")
    (first / "pyproject.toml").write_text("[tool.fusionlint]\nexclude = ['a.py']\n")
    (first / ".gitignore").write_text("nothing")
    whole = corpora.copied([first, written(tmp_path / "second", d="")], tmp_path / "home")
    assert [file.as_posix() for file in whole.files] == ["first/a.py", "first/b/c.py", "second/d.py"]
    assert (whole.lines, whole.bytes) == (3, 8)
    assert (whole.folder / "first" / "pyproject.toml").read_text() == ""
    assert not (whole.folder / "first" / ".gitignore").exists()


def test_a_corpus_is_thinned_by_number_and_by_what_can_be_read(corpora: ModuleType, tmp_path: Path) -> None:
    folder = written(tmp_path / "some", a="f(**x)", b="{**x}", c="def f(*, x): 0", d="[x]", e="x[", f="0")
    whole = corpora.copied([folder], tmp_path / "whole")
    second = corpora.thinned(whole, tmp_path / "second", 2)
    assert [file.stem for file in second.files] == ["a", "c", "e"]
    assert (second.folder / "some" / "c.py").read_text() == "def f(*, x): 0"
    readable = corpora.thinned(whole, tmp_path / "readable", 1, corpora.holds_no_gap)
    assert [file.stem for file in readable.files] == ["a", "d", "f"]


def test_the_largest_folder_is_the_one_with_most_bytes(corpora: ModuleType, tmp_path: Path) -> None:
    many = written(tmp_path / "many", a="", b="", c="x = 1\n")
    whole = corpora.copied([many, written(tmp_path / "few", b__d="x = 1\n" * 9)], tmp_path / "whole")
    found = corpora.largest(whole)
    assert (found.folder, found.files) == (whole.folder / "few", (Path("b/d.py"),))


def test_files_are_chosen_by_size_and_by_who_imports_them(corpora: ModuleType, tmp_path: Path) -> None:
    jax = "import jax\n"
    folder = written(
        tmp_path / "some",
        src__pack__core=jax * 5,
        src__pack__other=jax * 9 + "from pack import core\nfrom pack.core import f\n",
        src__pack__third="from pack.core import g\nimport pack.other\n",
        test_core=jax * 7,
        plain="\n" * 7,
    )
    whole = corpora.copied([folder], tmp_path / "whole")
    assert corpora.nearest(whole, 7) == Path("some/src/pack/core.py")
    assert corpora.most_imported(whole) == Path("some/src/pack/core.py")


def test_functions_to_copy_are_the_longest_of_files_all_over_the_corpus(corpora: ModuleType, tmp_path: Path) -> None:
    both = "import jax\n\n\ndef short(x):\n    return x\n\n\n@jax.jit\ndef long(x):\n    y = x\n    return y\n"
    files = dict.fromkeys("abcdefgh", both)
    folder = written(
        tmp_path / "some", **files, no_jax="def f():\n    pass\n", no_function="import jax\n", odd="import jax ("
    )
    whole = corpora.copied([folder], tmp_path / "whole")
    found = corpora.functions(whole, 3)
    assert [file.stem for file, _ in found] == ["b", "d", "f"]
    assert {text for _, text in found} == {"@jax.jit\ndef long_copied(x):\n    y = x\n    return y"}
    assert len(corpora.functions(whole, 20)) == 8


def test_a_peer_is_called_with_its_cache_and_jobs(peers: ModuleType) -> None:
    for peer in peers.PEERS:
        command = peer.command(Path("/bin/x"), Path("/cache"), Path("/rules.yml"), 2)
        assert command[0] == "/bin/x"
        assert ("/cache" in command) == peer.has_cache
        assert not any("{" in word for word in command)
    ruff = peers.PEERS[0]
    assert (ruff.name, ruff.home) == ("ruff", "ruff")


def test_a_flake8_without_torchfix_is_not_taken_for_torchfix(
    peers: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    (peer,) = (peer for peer in peers.PEERS if peer.name == "TorchFix in flake8")
    scripts = tmp_path / "torchfix" / "bin"
    scripts.mkdir(parents=True)
    (scripts / "flake8").touch()
    assert peers.program(peer, tmp_path) is None
    (scripts / "torchfix").touch()
    assert peers.program(peer, tmp_path) == scripts / "flake8"


@pytest.mark.parametrize(
    ("said", "version"),
    [("ruff 0.17.6\n", "0.17.6"), ("7.5.0 (mccabe: 0.7.0)", "7.5.0"), ("jaxlint 0.1.0a1", "0.1.0a1"), ("none", "")],
)
def test_a_version_is_read(peers: ModuleType, said: str, version: str) -> None:
    assert peers.version_in(said) == version


@pytest.fixture
def row(speeds: ModuleType, processes: ModuleType) -> Any:
    def made(what: str, *seconds: float, files: int = 10, lines: int = 1000, scale: float = 1.0, **more: float) -> Any:
        runs = tuple(processes.Run(s, s / 2, more.get("parent", 50), more.get("child", 0), 0) for s in seconds)
        return speeds.Row(what, runs, files, lines, scale)

    return made


def test_the_table_shows_medians_the_highest_memory_and_scaled_ratios(speeds: ModuleType, row: Any) -> None:
    rows = [
        row(speeds.PARSE, 2.0, 9.0, 2.2),
        row("Fixit", 30.0, files=3, lines=250, scale=4.0, child=70.4),
        row(speeds.ALONE, 0.5, files=1, lines=300),
        row(speeds.CLICK, 0.04, files=0, lines=0),
    ]
    assert speeds.table(rows).splitlines()[2:] == [
        "| ast.parse, one process | 10 | 2.20 s | 1.10 s | 50 MB | 1.00 | 1.00 |  |",
        "| Fixit | 3 | 30.0 s | 15.0 s | 50 MB, 70 MB | 54.55 | 54.55 | 250 lines, 120.0 s if scaled to all |",
        "| one file alone, no cache | 1 | 0.50 s | 0.25 s | 50 MB |  |  |  |",
        "| python -c 'import click' |  | 0.04 s | 0.02 s | 50 MB |  |  |  |",
    ]


def test_limits_are_held_against_the_rows_that_are_there(speeds: ModuleType, row: Any) -> None:
    rows = {
        row.what: row
        for row in (
            row(speeds.PARSE, 8.0),
            row(speeds.CLICK, 0.1, files=0),
            row(speeds.UNCACHED, 15.0, child=350),
            row(speeds.LARGEST, 6.0, child=310),
            row(speeds.HALF, 7.0, files=5, lines=500, scale=2.0),
            row(speeds.ALONE, 0.3, files=1),
            row("Fixit", 90.0, files=2, scale=8.0),
            row(speeds.ours("Fixit"), 3.0, files=2, scale=8.0),
            row("semgrep", 12.0),
        )
    }
    said = {claim.what: claim for claim in speeds.claims(rows)}
    assert {what: (round(claim.value, 2), claim.holds) for what, claim in said.items()} == {
        "cold, beside ast.parse": (1.88, True),
        "one file alone, no cache, beyond import click": (0.2, True),
        "memory of the parent, the largest folder": (50, True),
        "memory of a worker, the largest folder": (310, False),
        "twice the files, beside twice the time": (1.07, False),
        "faster than Fixit, same files": (30.0, True),
        "faster than semgrep, same files": (0.8, False),
    }
    more = {**rows, speeds.WARM: row(speeds.WARM, 0.8), speeds.FUNCTION: row(speeds.FUNCTION, 1.4)}
    cached = {claim.what: claim.holds for claim in speeds.claims(more)}
    assert cached["warm"]
    assert not cached["a function more in one file, beyond warm"]


def test_a_claim_says_its_limit(speeds: ModuleType) -> None:
    assert speeds.claim_line(speeds.Claim("warm", 1.25, 1.0, "s")) == "warm: 1.25 s, at most 1: DOES NOT HOLD"
    faster = speeds.Claim("faster", 25.0, 20.0, "times", least=True)
    assert speeds.claim_line(faster) == "faster: 25.00 times, at least 20: holds"


def test_what_a_version_does_not_know_is_skipped_with_a_reason(speeds: ModuleType) -> None:
    assert speeds.skipped_rows(["--cache-dir", "--stdin-filename", "--no-cache"]) == []
    (line,) = speeds.skipped_rows(["--cache-dir"])
    assert line.endswith("stdin, the same text again, warm: this check knows no --stdin-filename")
    (line,) = speeds.skipped_rows(["--stdin-filename"])
    assert line.startswith("check, cold cache")
    assert line.endswith("this check knows no --cache-dir")


def test_the_json_holds_every_round(speeds: ModuleType, row: Any) -> None:
    rows = [row(speeds.PARSE, 2.0, 3.0)]
    claim = speeds.Claim("warm", 1.25, 1.0, "s")
    read = json.loads(speeds.as_json({"python": "3.11"}, rows, [claim], ["jaxlint: not installed"]))
    assert [run["seconds"] for run in read["rows"][0]["runs"]] == [2.0, 3.0]
    assert (read["python"], read["claims"][0]["holds"], read["skipped"]) == ("3.11", False, ["jaxlint: not installed"])


def test_the_whole_benchmark_runs_on_a_small_project(
    benchmark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    chained = "import jax.numpy as jnp\n\n\ndef f(x):\n    x = x.at[0].set(1)\n    x = x.at[1].set(2)\n    return x\n"
    folder = written(tmp_path / "some", a=chained, b="from a import f\n", c="x = 1\n")
    out = tmp_path / "speed.json"
    check_speed = benchmark("check_speed")
    monkeypatch.setattr(sys, "argv", ["check_speed.py", str(folder), "--rounds", "1", "--no-peers", "--json", str(out)])
    assert check_speed.main() in (0, 1)  # three files are no measure of the limits
    read = json.loads(out.read_text())
    assert (read["files"], read["lines"], read["not parsed by ast"]) == (3, 9, 0)
    assert {claim["what"]: claim["value"] for claim in read["claims"]}["runs that the cache changed"] == 0
    assert "| check, warm | 3 |" in capsys.readouterr().out
    assert sorted(path.name for path in folder.iterdir()) == ["a.py", "b.py", "c.py"]
