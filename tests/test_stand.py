"""Where files stand: in which project and package, and what they import."""

from __future__ import annotations

from pathlib import Path

import pytest
from folders import tree

from fusionlint.source.listings import look_again
from fusionlint.source.stand import beside, imported_file, imports_from, path_in_project, stand


def test_modules_are_named_by_the_packages_around_them(tmp_path: Path) -> None:
    tree(tmp_path, "src/brax/__init__.py", "src/brax/envs/__init__.py", "src/brax/envs/ant.py", "script.py")
    assert stand(tmp_path / "src/brax/envs/ant.py").module == "brax.envs.ant"
    assert stand(tmp_path / "src/brax/envs/__init__.py").module == "brax.envs"
    assert stand(tmp_path / "script.py").module == "script"


def test_a_folder_without_an_init_is_a_part_of_the_package_around_it(tmp_path: Path) -> None:
    tree(
        tmp_path, "src/maze/__init__.py", "src/maze/core/grid.py", "src/maze/core/deep/a.py", "src/main.py", "run/b.py"
    )
    assert stand(tmp_path / "src/maze/core/grid.py").module == "maze.core.grid"
    assert stand(tmp_path / "src/maze/core/deep/a.py").module == "maze.core.deep.a"
    assert stand(tmp_path / "src/main.py").module == "main"
    assert stand(tmp_path / "run/b.py").module == "b"


def test_packages_in_a_folder_without_an_init_are_parts_of_the_package_around_it(tmp_path: Path) -> None:
    tree(tmp_path, "torax/__init__.py", "torax/_src/state.py", "torax/_src/fvm/__init__.py", "torax/_src/fvm/terms.py")
    tree(tmp_path, "runs/fvm/__init__.py", "runs/fvm/a.py", "work/__init__.py", "work/maze/setup.py")
    tree(tmp_path, "work/maze/core/__init__.py")
    assert stand(tmp_path / "torax/_src/fvm/terms.py").module == "torax._src.fvm.terms"
    assert stand(tmp_path / "torax/_src/fvm/__init__.py").module == "torax._src.fvm"
    assert stand(tmp_path / "runs/fvm/a.py").module == "fvm.a"
    assert stand(tmp_path / "work/maze/core/__init__.py").module == "core"


def test_a_folder_without_an_init_is_a_part_of_its_project_or_of_its_src(tmp_path: Path) -> None:
    tree(tmp_path, "work/__init__.py", "work/maze/pyproject.toml", "work/maze/core/grid.py", "work/maze/src/a/b.py")
    assert stand(tmp_path / "work/maze/core/grid.py").module == "core.grid"
    assert stand(tmp_path / "work/maze/src/a/b.py").module == "a.b"
    assert stand(tmp_path / "work/maze/my-runs/c.py").module == "c"


def test_scripts_import_what_lies_beside_them_by_its_name_alone(tmp_path: Path) -> None:
    tree(
        tmp_path, "lib/__init__.py", "lib/a.py", "lib/runs/train.py", "lib/runs/nets/mlp.py", "lib/runs/math.py", "b.py"
    )
    assert beside(f"{tmp_path}/lib/runs/train.py") == {
        "train": "lib.runs",
        "nets": "lib.runs",
    }  # `math` is Python's own
    assert beside(f"{tmp_path}/lib/runs/nets/mlp.py") == {
        "mlp": "lib.runs.nets",
        "train": "lib.runs",
        "nets": "lib.runs",
    }
    assert beside(f"{tmp_path}/lib/a.py") == {}
    assert beside(f"{tmp_path}/b.py") == {}


def test_imports_find_the_files_of_the_same_package_root(tmp_path: Path) -> None:
    tree(tmp_path, "lib/__init__.py", "lib/steps.py", "lib/steps.pyi", "lib/deep/__init__.py", "lib/c.pyi", "main.py")
    names = ["lib.steps.step", "lib.deep.thing", "lib.c.f", "jax.numpy"]
    assert [imported_file(imports_from(f"{tmp_path}/main.py"), name) for name in names] == [
        f"{tmp_path}/lib/steps.py",
        f"{tmp_path}/lib/deep/__init__.py",
        f"{tmp_path}/lib/c.pyi",
        None,
    ]


@pytest.mark.parametrize(
    ("named", "found"),
    [
        ("lib/steps.py", "lib/deep/__init__.py"),
        ("./lib/deep/__init__.py", "lib/deep/__init__.py"),
        ("linked/steps.py", "{}/lib/deep/__init__.py"),
        ("away/lib/steps.py", "away/lib/deep/__init__.py"),
        ("{}/lib/steps.py", "{}/lib/deep/__init__.py"),
    ],
)
def test_imported_files_are_called_as_the_file_that_imports_them(
    named: str, found: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree(tmp_path, "lib/__init__.py", "lib/steps.py", "lib/deep/__init__.py", "main.py")
    (tmp_path / "linked").symlink_to(tmp_path / "lib")
    (tmp_path / "away").symlink_to(tmp_path)
    monkeypatch.chdir(tmp_path)
    look_again()
    path = str(Path(named.format(tmp_path)))
    assert imported_file(imports_from(path), "lib.deep.thing") == found.format(tmp_path)


def test_folders_above_a_project_say_nothing_about_it(tmp_path: Path) -> None:
    tree(tmp_path, "tests/brax/pyproject.toml", "tests/brax/brax/math.py", "tests/brax/tests/test_math.py")
    assert path_in_project(tmp_path / "tests/brax/brax/math.py") == "brax/math.py"
    assert path_in_project(tmp_path / "tests/brax/tests/test_math.py") == "tests/test_math.py"
