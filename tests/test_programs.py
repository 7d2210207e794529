"""StableHLO and exported functions, compiled in a worker: the same kernels as the function they came from."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from fusionlint.compiling.artifacts import Artifacts, CompileError, Job, program_entry, read_job, write_job
from fusionlint.compiling.entry import parse_spec
from fusionlint.compiling.executing import compile_all
from fusionlint.compiling.targets import get, missing
from fusionlint.hlo import parse as hlo
from fusionlint.hlo.kernels import kernels

pytest.importorskip("jax")

pytestmark = pytest.mark.compilers

MODEL = """\
import jax
import jax.numpy as jnp


def step(x, n, flag):
    return jnp.where(flag, jax.nn.softmax(x @ x), 0), n + jnp.arange(3), x.astype(jnp.bfloat16)


if __name__ == "__main__":
    from jax import export

    given = [jax.ShapeDtypeStruct(*one) for one in (((64, 64), "float32"), ((), "int32"), ((64, 64), "bool"))]
    open("step.mlir", "w").write(jax.jit(step).lower(*given).as_text(debug_info=True))
    made = export.export(jax.jit(step))(*given)
    open("step.mlirbc", "wb").write(made.mlir_module_serialized)
    try:
        open("step.jaxexport", "wb").write(made.serialize())
    except ImportError:
        pass
    (n,) = export.symbolic_shape("n")
    open("any.mlirbc", "wb").write(
        export.export(jax.jit(jnp.sin))(jax.ShapeDtypeStruct((n,), "float32")).mlir_module_serialized
    )
"""
SPEC = "model.py:step(f32[64,64], s32[], pred[64,64])"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("programs")
    (folder / "model.py").write_text(MODEL)
    subprocess.run([sys.executable, "model.py"], cwd=folder, check=True, capture_output=True)
    return folder


def job(path: Path) -> Job:
    return Job(program_entry(str(path)), "program", program=path.read_bytes())


def made_of(result: Artifacts | CompileError) -> list[tuple[str, tuple[str, ...], int]]:
    assert isinstance(result, Artifacts), result
    return sorted((kernel.kind, kernel.opcodes, kernel.launches) for kernel in kernels(hlo.parse(result.after)))


@pytest.mark.parametrize("target", ["cpu", "h100", "v5e"])
def test_a_program_becomes_the_kernels_of_its_function_at_the_functions_lines(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: str
) -> None:
    if absent := missing(get(target)):
        pytest.skip(absent)
    monkeypatch.chdir(folder)
    names = [name for name in ("step.mlir", "step.mlirbc", "step.jaxexport") if (folder / name).exists()]
    jobs = [Job(parse_spec(SPEC)), *(job(folder / name) for name in names)]
    whole, *found = compile_all([(one, get(target)) for one in jobs], outdir=tmp_path)
    for name, result in zip(names, found, strict=True):
        assert made_of(result) == made_of(whole), name
        assert isinstance(result, Artifacts)
        assert result.function == "step"
        assert str(folder / "model.py") in result.after
        assert result.entry == str(folder / name)
        assert result.before
        assert result.compile_seconds > 0


def test_what_is_no_program_is_one_line_that_names_the_file(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "bad.mlir").write_text("func.func public @main(%x: tensor<2xf32>) { oops }")
    (tmp_path / "other.mlir").write_text(
        "module { func.func @f(%x: tensor<2xf32>) -> tensor<2xf32> { return %x : tensor<2xf32> } }"
    )
    (tmp_path / "noise.bin").write_bytes(bytes(range(256)) * 9)
    (tmp_path / "empty.bin").write_bytes(b"")
    says = {
        "bad.mlir": "is no StableHLO that jaxlib can read: error: ",
        "other.mlir": "has no function @main",
        "noise.bin": "is neither HLO, nor StableHLO, nor what jax.export serialized",
        "empty.bin": "is neither HLO, nor StableHLO, nor what jax.export serialized",
        "any.mlirbc": "of no fixed shape",
    }
    (tmp_path / "any.mlirbc").write_bytes((folder / "any.mlirbc").read_bytes())
    results = compile_all([(job(tmp_path / name), get("cpu")) for name in says])
    for (name, words), result in zip(says.items(), results, strict=True):
        assert isinstance(result, CompileError), name
        assert result.kind == "entry"
        assert str(result).startswith(str(tmp_path / name) + " ")
        assert words in str(result)
        assert "\n" not in str(result)
        assert "(error)" not in str(result)  # the name of what a reader raised is nobody's help


def test_a_job_with_a_program_is_the_same_after_its_journey_as_text(tmp_path: Path) -> None:
    (tmp_path / "p.bin").write_bytes(bytes(range(256)))
    one = job(tmp_path / "p.bin")
    assert read_job(write_job(one)) == one
