"""benchmarks/fidelity.py, as far as no GPU is needed: how kernels are compared, times read, and the page written."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from fusionlint.compiling.targets import get
from fusionlint.hlo.kernels import Kernel

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "tests" / "data" / "explained.py"


@pytest.fixture
def fidelity(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    return importlib.import_module("fidelity")


def kernel(name: str, kind: str, *opcodes: str, launches: int = 1, microseconds: float | None = None) -> Kernel:
    return Kernel(name, "main", kind, opcodes, launches, None, False, 0, 0, (), microseconds=microseconds)


def test_kernels_are_compared_by_what_they_do_and_how_often(fidelity: ModuleType) -> None:
    described = [kernel("a", "loop", "add", "multiply", launches=10), kernel("b", "custom", "dot")]
    device = [kernel("x", "loop", "multiply", "add", launches=12), kernel("y", "library call", "dot")]
    found = fidelity.compared(described, device)
    assert found.both == 10
    assert found.only_described == {("custom", ("dot",)): 1}
    assert found.only_device == {("loop", ("add", "multiply")): 2, ("library call", ("dot",)): 1}
    assert not found.is_same
    assert fidelity.compared(described, list(reversed(described))).is_same


def test_times_are_those_of_kernels_that_both_know_without_the_launch(fidelity: ModuleType) -> None:
    every = [kernel("a", "loop", microseconds=3.0), kernel("b", "loop", microseconds=9.0), kernel("c", "loop")]
    assert fidelity.timings(every, {"a": 4.0, "c": 5.0, "d": 6.0}, 1.0) == [fidelity.Timing("a", 2.0, 4.0)]


def plane(name: str, *lines: tuple[str, list[tuple[str, float]]]) -> Any:
    made = [
        SimpleNamespace(
            name=line, events=[SimpleNamespace(stats=[("hlo_op", op)] if op else [], duration_ns=ns) for op, ns in some]
        )
        for line, some in lines
    ]
    return SimpleNamespace(name=name, lines=made)


def test_of_a_gpu_only_the_streams_are_read(fidelity: ModuleType) -> None:
    gpu = plane("/device:GPU:0", ("Stream #7", [("fusion.1", 2000), ("", 9000)]), ("XLA Ops", [("fusion.1", 2000)]))
    host = plane("/host:CPU", ("python", [("fusion.1", 5000)]))
    assert list(fidelity.events([host, gpu])) == [("fusion.1", 2.0)]
    assert list(fidelity.events([host])) == [("fusion.1", 5.0)]


@pytest.mark.skipif(find_spec("jax") is None, reason="jax is not installed")  # imported, it looks for compilers
def test_the_kernels_of_a_running_function_are_timed_by_their_names(fidelity: ModuleType) -> None:
    command = [sys.executable, fidelity.__file__, "--measure", f"{SOURCE}:softmax(f32[64,512])"]
    done = subprocess.run(command, env={"JAX_PLATFORMS": "cpu", "PATH": ""}, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    assert any("fusion" in name for name in found)
    assert all(0 < time < 1e6 for time in found.values())


@pytest.mark.compilers
def test_the_page_says_device_versions_counts_and_ratios(fidelity: ModuleType) -> None:
    same = fidelity.compared([kernel("a", "loop", "add")], [kernel("b", "loop", "add")])
    other = fidelity.compared([kernel("a", "custom", "dot")], [kernel("b", "library call", "dot")])
    times = [fidelity.Timing("a", 2.0, 4.0), fidelity.Timing("b", 3.0, 4.0), fidelity.Timing("c", 4.0, 4.0)]
    text = fidelity.page(get("h200")._replace(attached=True), [(f"{ROOT}/x.py:f", same, times), ("g", other, [])])
    assert "on NVIDIA H200 141 GB with " in text
    assert "Of 2 functions, 1 have the same kernels" in text
    assert "| `x.py:f` | 1 | none | none | 0.75 of 3 kernels |\n" in text
    assert "| `g` | 0 | 1 custom (dot) | 1 library call (dot) | not measured |\n" in text


def test_without_a_gpu_it_says_so_and_leaves_the_page_alone(tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "benchmarks" / "fidelity.py"), "--page", str(tmp_path / "page.md")]
    done = subprocess.run(
        command, env={"JAX_PLATFORMS": "cpu", "PATH": ""}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert done.stderr.startswith("fidelity: jax finds no GPU here")
    assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "page.md").exists()
