"""Which files are checked."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from folders import tree

from fusionlint.source.files import python_files


def found(root: Path, exclude: tuple[str, ...] = ()) -> list[str]:
    return [path.relative_to(root).as_posix() for path in python_files([root], exclude)]


def test_python_files_below_a_folder_are_found_sorted_and_once(tmp_path: Path) -> None:
    tree(tmp_path, "b.py", "a/c.py", "a/d.pyi", "a/e.txt")
    assert found(tmp_path) == ["a/c.py", "a/d.pyi", "b.py"]
    assert len(python_files([tmp_path, tmp_path / "b.py"])) == 3


def test_environments_and_caches_are_never_entered(tmp_path: Path) -> None:
    tree(tmp_path, ".venv/x.py", "node_modules/x.py", "__pycache__/x.py", "pkg/site-packages/x.py", "ok.py")
    assert found(tmp_path) == ["ok.py"]


def test_gitignore_is_honoured_in_every_folder(tmp_path: Path) -> None:
    tree(tmp_path, "keep.py", "made/x.py", "pkg/gen_a.py", "pkg/b.py", "pkg/deep/gen_c.py", "gen_top.py")
    (tmp_path / ".gitignore").write_text("/made/\n")
    (tmp_path / "pkg" / ".gitignore").write_text("gen_*\n!gen_a.py\n")
    assert found(tmp_path) == ["gen_top.py", "keep.py", "pkg/b.py", "pkg/gen_a.py"]


def test_a_line_of_gitignore_that_is_no_pattern_is_passed_over(tmp_path: Path) -> None:
    tree(tmp_path, "made.py", "kept.py")
    (tmp_path / ".gitignore").write_text("__pycache__\\\n/made.py\n")
    assert found(tmp_path) == ["kept.py"]


def test_lines_that_take_back_others_are_honoured(tmp_path: Path) -> None:
    lines = ("out/*", "!out/kept.py", "/top.py", "**/gen/", "a?[bc].py", "!never.py", "(?P<odd>x).py")
    (tmp_path / ".gitignore").write_text("\n".join(lines))
    tree(tmp_path, "out/gone.py", "out/kept.py", "top.py", "in/top.py", "in/gen/x.py", "aab.py", "aad.py", "never.py")
    tree(tmp_path, "(?P<odd>x).py")
    assert found(tmp_path) == ["aad.py", "in/top.py", "never.py", "out/kept.py"]


def test_gitignore_above_the_folder_counts_inside_a_repository_only(tmp_path: Path) -> None:
    tree(tmp_path, "repo/src/out.py", "repo/src/a.py")
    (tmp_path / "repo" / ".gitignore").write_text("out.py\n")
    assert found(tmp_path / "repo" / "src") == ["a.py", "out.py"]
    (tmp_path / "repo" / ".git").mkdir()
    assert found(tmp_path / "repo" / "src") == ["a.py"]


def test_excludes_of_the_configuration_leave_files_out(tmp_path: Path) -> None:
    tree(tmp_path, "a.py", "docs/b.py", "docs/keep/c.py")
    assert found(tmp_path, ("docs/",)) == ["a.py"]


def test_a_file_named_by_itself_is_always_checked(tmp_path: Path) -> None:
    tree(tmp_path, ".venv/x.py", "script")
    assert python_files([tmp_path / ".venv" / "x.py", tmp_path / "script"], ["*.py"]) == [
        tmp_path / ".venv" / "x.py",
        tmp_path / "script",
    ]


def test_tests_benchmarks_and_pictures_are_left_out_of_folders_unless_asked_for(tmp_path: Path) -> None:
    names = ["examples/plot_fit.py", "pkg/env.py", "pkg/latest.py", "pkg/latest_data.py", "pkg/simple_reference.py"]
    idle = [
        "benchmarks/speed.py",
        "pkg/benchmarking.py",
        "pkg/attention_ref.py",
        "pkg/axes_plot.py",
        "pkg/book_old.py",
        "pkg/env_test.py",
        "pkg/reference/attention.py",
    ]
    idle += [
        "pkg/plotting/maps.py",
        "pkg/_deprecated/env.py",
        "pkg/book_old/book.py",
        "pkg/deprecated/env.py",
        "pkg/speed_benchmark/run.py",
    ]
    idle += [
        "experiments/bugs_and_artifacts/rounding.py",
        "pkg/map_repro.py",
        "pkg/mla/reference.py",
        "unittests/grad/leak.py",
        "docs/source/assets/hero.py",
    ]
    idle += ["pkg/test_scripts/run.py", "pkg/tests/env.py", "pkg/visualize.py", "test_env.py"]
    idle += ["pkg/_test_util.py", "pkg/env_test_utils.py", "pkg/testing.py", "pkg/testing_utils.py"]
    tree(tmp_path, "pyproject.toml", *names, *idle)
    assert found(tmp_path) == names
    assert len(python_files([tmp_path], idle=True)) == len(names) + len(idle)
    assert python_files([tmp_path / "pkg" / "tests"]) == []
    assert python_files([tmp_path / "test_env.py"]) == [tmp_path / "test_env.py"]


def test_where_a_project_lies_does_not_make_it_a_test(tmp_path: Path) -> None:
    tree(tmp_path, "tests/brax/pyproject.toml", "tests/brax/math.py")
    assert found(tmp_path) == ["tests/brax/math.py"]


def test_a_path_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"nowhere: no such file or folder"):
        python_files([tmp_path / "nowhere"])


def test_what_is_excluded_is_seen_from_the_configuration_wherever_a_run_begins(tmp_path: Path) -> None:
    tree(tmp_path, "src/a.py", "src/gen.py", "src/vendor/z.py", "third_party/z.py")
    exclude = ["src/vendor/", "/src/gen.py", "third_party/"]
    for named in (tmp_path, tmp_path / "src"):
        assert python_files([named], exclude, top=tmp_path) == [tmp_path / "src" / "a.py"]
    assert python_files([tmp_path / "third_party"], exclude, top=tmp_path) == []
    assert python_files([tmp_path / "src"], exclude, top=tmp_path / "elsewhere") == [
        tmp_path / "src" / name for name in ("a.py", "gen.py", "vendor/z.py")
    ]


def test_a_file_that_is_named_is_excluded_only_by_force(tmp_path: Path) -> None:
    tree(tmp_path, "a.py", "third_party/z.py")
    named, exclude = [tmp_path / "a.py", tmp_path / "third_party" / "z.py"], ["third_party/"]
    assert python_files(named, exclude, top=tmp_path) == named
    assert python_files(named, exclude, top=tmp_path, force=True) == named[:1]


def test_a_file_under_two_names_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree(tmp_path, "a.py")
    monkeypatch.chdir(tmp_path)
    assert python_files([Path("a.py"), tmp_path / "a.py", Path()]) == [Path("a.py")]


def test_a_line_of_gitignore_that_is_no_pattern_and_a_link_in_a_ring_are_passed_over(tmp_path: Path) -> None:
    tree(tmp_path, "a.py", "b.py")
    (tmp_path / ".gitignore").write_text("[z-a]\nb.py\n")
    (tmp_path / "ring.py").symlink_to(tmp_path / "ring.py")
    assert found(tmp_path) == ["a.py"]


def test_a_folder_that_nobody_may_look_into_is_given_back_to_be_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree(tmp_path, "a.py", "locked/b.py")
    scandir = os.scandir

    def refused(folder: Path) -> object:
        if Path(folder).name == "locked":
            raise PermissionError(13, "Permission denied", str(folder))
        return scandir(folder)

    monkeypatch.setattr(os, "scandir", refused)
    assert found(tmp_path) == ["a.py", "locked"]
