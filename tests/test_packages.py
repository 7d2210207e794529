"""What a package says of its hardware decides which targets it is told of."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import Result
from commands import run

# Of one hazard on a TPU alone, and one everywhere.
CODE = """\
import jax
import jax.numpy as jnp

@jax.jit
def rotated(x):
    even, odd = x[..., ::2], x[..., 1::2]
    return jnp.stack([-odd, even], axis=-1).reshape(x.shape) + x

@jax.jit
def written(x):
    y = jnp.zeros((8, 4))
    y = y.at[0].set(x)
    y = y.at[1].set(x + 1)
    return y * 2
"""
CPU = 'import os\nos.environ.setdefault("JAX_PLATFORMS", "cpu")\n'
WIDE = 'from jax import config\nconfig.update("jax_enable_x64", True)\n'


def checked(folder: Path, init: str, *options: str) -> Result:
    package = folder / "package" / "inner"
    package.mkdir(parents=True, exist_ok=True)
    (package.parent / "__init__.py").write_text(init)
    (package / "__init__.py").write_text("")
    (package / "work.py").write_text(CODE)
    return run("check", str(package / "work.py"), "--no-cache", *options)


def targets(folder: Path, init: str, *options: str) -> dict[str, list[str]]:
    done = checked(folder, init, "--output-format", "json", *options)
    return {one["rule"]: one["targets"] for one in json.loads(done.stdout)["findings"]}


@pytest.mark.parametrize(
    "init",
    [
        CPU,
        'import os\nos.environ["JAX_PLATFORM_NAME"] = "cpu"\n',
        'import jax\njax.config.update("jax_platforms", "cpu")\n',
    ],
)
def test_a_package_for_cpus_is_told_of_cpus_alone(tmp_path: Path, init: str) -> None:
    everywhere = targets(tmp_path, "")
    assert everywhere["rope-by-copies"] == ["v5e"]
    assert everywhere["chained-at-set"] == ["cpu", "v5e"]
    assert targets(tmp_path, init) == {"chained-at-set": ["cpu"]}


@pytest.mark.parametrize("init", [WIDE, 'import os\nos.environ["JAX_ENABLE_X64"] = "1"\n'])
def test_a_package_of_64_bits_is_told_nothing_of_tpus(tmp_path: Path, init: str) -> None:
    assert targets(tmp_path, init) == {"chained-at-set": ["cpu"]}


@pytest.mark.parametrize(
    "init",
    [
        'import os\nif os.name == "nt":\n    os.environ["JAX_PLATFORMS"] = "cpu"\n',
        '# os.environ["JAX_PLATFORMS"] = "cpu"\n',
        'import os\nos.environ["JAX_PLATFORMS"] = "cuda,cpu"\n',
        'from jax import config\nconfig.update("jax_enable_x64", False)\n',
        'config.update("jax_enable_x64", wide)\n',
    ],
)
def test_what_is_said_now_and_then_or_otherwise_says_nothing(tmp_path: Path, init: str) -> None:
    assert targets(tmp_path, init) == targets(tmp_path, "")


def test_who_names_a_target_is_told_of_it(tmp_path: Path) -> None:
    assert targets(tmp_path, CPU, "--target", "v5e") == targets(tmp_path, "", "--target", "v5e")


def test_what_is_left_out_is_counted(tmp_path: Path) -> None:
    assert "1 finding left out" in checked(tmp_path, CPU).stderr
    assert "left out" not in checked(tmp_path, "").stderr


def test_what_is_left_out_is_not_fixed(tmp_path: Path) -> None:
    done = checked(tmp_path, CPU, "--diff", "--unsafe-fixes", "--select", "rope-by-copies")
    assert done.stdout == ""


def test_a_folder_without_an_init_is_of_the_package_around_it(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").touch()
    checked(tmp_path, CPU)
    (tmp_path / "package" / "inner" / "__init__.py").unlink()
    done = run("check", str(tmp_path), "--no-cache", "--output-format", "json")
    assert {one["rule"]: one["targets"] for one in json.loads(done.stdout)["findings"]} == {"chained-at-set": ["cpu"]}


def test_what_lies_above_the_project_says_nothing(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "pyproject.toml").touch()
    everywhere = targets(project, "")
    (tmp_path / "__init__.py").write_text(CPU)
    assert targets(project, "") == everywhere
