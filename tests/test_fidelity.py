"""benchmarks/fidelity.py, as far as no GPU is needed: how kernels are compared, and the page written."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from fusionlint.compiling.targets import get
from fusionlint.hlo.kernels import Kernel

ROOT = Path(__file__).parents[1]


@pytest.fixture
def fidelity(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    return importlib.import_module("fidelity")


def kernel(name: str, kind: str, *opcodes: str, launches: int = 1) -> Kernel:
    return Kernel(name, "main", kind, opcodes, launches, None, False, 0, 0, ())


def test_kernels_are_compared_by_what_they_do_and_how_often(fidelity: ModuleType) -> None:
    described = [kernel("a", "loop", "add", "multiply", launches=10), kernel("b", "custom", "dot")]
    device = [kernel("x", "loop", "multiply", "add", launches=12), kernel("y", "library call", "dot")]
    found = fidelity.compared(described, device)
    assert found.both == 10
    assert found.only_described == {("custom", ("dot",)): 1}
    assert found.only_device == {("loop", ("add", "multiply")): 2, ("library call", ("dot",)): 1}
    assert not found.is_same
    assert fidelity.compared(described, list(reversed(described))).is_same


@pytest.mark.compilers
def test_the_page_says_device_versions_and_counts(fidelity: ModuleType) -> None:
    same = fidelity.compared([kernel("a", "loop", "add")], [kernel("b", "loop", "add")])
    other = fidelity.compared([kernel("a", "custom", "dot")], [kernel("b", "library call", "dot")])
    text = fidelity.page(get("h200")._replace(attached=True), [(f"{ROOT}/x.py:f", same), ("g", other)])
    assert "on NVIDIA H200 141 GB with " in text
    assert "Of 2 functions, 1 have the same kernels" in text
    assert "| `x.py:f` | 1 | none | none |\n" in text
    assert "| `g` | 0 | 1 custom (dot) | 1 library call (dot) |\n" in text


def test_without_a_gpu_it_says_so_and_leaves_the_page_alone(tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "benchmarks" / "fidelity.py"), "--page", str(tmp_path / "page.md")]
    done = subprocess.run(
        command, env={"JAX_PLATFORMS": "cpu", "PATH": ""}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert done.stderr.startswith("fidelity: jax finds no GPU here")
    assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "page.md").exists()
