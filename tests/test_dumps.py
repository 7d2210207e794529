"""Paths to what is compiled already: HLO texts and folders of --xla_dump_to, told apart and read without a compiler."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from fusionlint.compiling.dumps import Dump, artifacts, dumps, is_path, is_program, platform_of
from fusionlint.compiling.targets import get
from fusionlint.explained import Report, explain
from fusionlint.report.explain_text import report_text
from fusionlint.tasks import Failure, explain_all, targets_of, tasks

SAVED = Path(__file__).parent / "hlo"
PLATFORMS = {"cpu": "cpu", "h100": "cuda", "v5e": "tpu"}


def saved(name: str) -> str:
    return (SAVED / name).read_text()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two modules as XLA dumps them, one for a GPU with all there is beside it, one for a CPU alone."""
    stem = "module_0003.jit_softmax"
    gpu = saved("softmax_h100_jax0.10.2.txt")
    for name, text in {
        f"{stem}.sm_9.0a_gpu_after_optimizations.txt": gpu,
        f"{stem}.sm_9.0a_gpu_after_optimizations-buffer-assignment.txt": "BufferAssignment:",
        f"{stem}.before_optimizations.txt": gpu.replace("is_scheduled=true, ", ""),
        f"{stem}.0010.priority-fusion.after_priority-fusion.before_x.txt": "HloModule snapshot",
        f"{stem}.priority_fusion_dump.txt": "fusion_steps {}",
        f"{stem}.thunk_sequence.txt": "000: kKernel",
        f"{stem}.gpu_target_config.pbtxt": 'device_description_str: "NVIDIA A100-SXM4-80GB"\n',
        f"{stem}.2.ptx": ".version 8.0",
        f"{stem}_2.priority_fusion_dump.txt": "of another module",
        "module_0004.jit_scan.cpu_after_optimizations.txt": saved("scan_cpu_jax0.10.2.txt"),
    }.items():
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.mark.parametrize("path", sorted(SAVED.glob("*_jax*.txt")), ids=lambda path: path.stem)
def test_the_platform_of_every_saved_text_is_recognised_by_the_text_alone(path: Path) -> None:
    target = path.name.split("_jax")[0].rpartition("_")[2]
    assert platform_of(path.read_text()) == PLATFORMS[target]


def test_a_path_is_told_from_a_spec(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    Path("model.py").write_text("def f(x): return x\n")
    Path("a.mlir").write_text("module {}")
    assert is_path(".")
    assert is_path("module_0004.jit_scan.cpu_after_optimizations.txt")
    assert not is_path("model.py")
    assert not is_path("model.py:f(f32[8])")
    assert not is_path("nowhere.txt")
    assert not is_path("")  # which is no name for the working folder
    assert is_program(Path("a.mlir"))
    assert not is_program(Path())
    assert not is_program(Path("module_0004.jit_scan.cpu_after_optimizations.txt"))


def test_a_folder_gives_a_dump_for_each_module_and_its_platform(folder: Path) -> None:
    found = dumps(folder)
    assert [(one.module, one.platform) for one in found] == [
        ("module_0003.jit_softmax", "cuda"),
        ("module_0004.jit_scan", "cpu"),
    ]


@pytest.mark.parametrize(
    ("name", "module", "platform"),
    [
        ("module_0000.jit_f.cl_933746096.after_optimizations.txt", "module_0000.jit_f", "tpu"),
        ("module_0000.jit_f.sm_8.0_gpu_after_optimizations.txt", "module_0000.jit_f", "cuda"),
        ("module_0000.jit_f.cpu_after_optimizations.txt", "module_0000.jit_f", "cpu"),
        ("mine.txt", "", None),
    ],
)
def test_the_name_of_a_file_tells_module_and_platform(
    tmp_path: Path, name: str, module: str, platform: str | None
) -> None:
    path = tmp_path / name
    path.write_text(saved("scan_cpu_jax0.10.2.txt"))
    assert dumps(path) == [Dump(path, module, platform)]  # type: ignore[arg-type]


def test_what_xla_left_beside_a_module_comes_with_it_and_nothing_of_another(folder: Path, tmp_path: Path) -> None:
    found = artifacts(dumps(folder)[0], tmp_path / "out")
    assert found.dumped("*priority_fusion_dump.txt") == "fusion_steps {}"
    assert found.dumped("*after_priority-fusion*.txt") == "HloModule snapshot"
    assert found.dumped("*thunk_sequence.txt") == "000: kKernel"
    assert found.dumped("*.ptx") == ""
    assert len(list((tmp_path / "out" / "dump").iterdir())) == 4
    assert "HloModule" in found.before
    assert found.function == "softmax"


def test_a_single_file_of_a_folder_has_the_same_beside_it(folder: Path, tmp_path: Path) -> None:
    (dump,) = dumps(folder / "module_0003.jit_softmax.sm_9.0a_gpu_after_optimizations.txt")
    assert artifacts(dump, tmp_path / "out").dumped("*thunk_sequence.txt")


def test_the_target_is_the_users_own_that_fits_else_the_device_xla_wrote_down_else_the_platform(
    folder: Path, tmp_path: Path
) -> None:
    gpu, cpu = dumps(folder)
    assert artifacts(gpu, tmp_path / "1", [get("v5e"), get("h200")]).target == "h200"
    assert artifacts(gpu, tmp_path / "2", [get("v5e")]).target == "a100"
    assert artifacts(cpu, tmp_path / "3", [get("h100")]).target == "cpu"
    (folder / "module_0003.jit_softmax.gpu_target_config.pbtxt").unlink()
    assert artifacts(gpu, tmp_path / "4").target == "gpu"


def test_the_report_is_the_same_as_that_of_the_compilation_without_the_function(tmp_path: Path) -> None:
    path = tmp_path / "hlo.txt"
    path.write_text(saved("nested_scan_h100_jax0.10.2.txt"))
    report = explain(artifacts(dumps(path)[0], tmp_path / "out"))
    text = report_text(report, with_stages=True)
    assert text.startswith(f"nested_scan from {path} on gpu\n")
    assert "compiled in" not in text.partition("\n\n")[0]
    assert "From HLO before to HLO after" not in text  # there is no HLO before
    assert report.totals.launches > 0
    assert report.barriers


def test_what_is_no_dump_is_one_line_that_says_what_to_give(tmp_path: Path) -> None:
    before = tmp_path / "before.txt"
    before.write_text(saved("scan_cpu_jax0.10.2.txt").replace("is_scheduled=true, ", ""))
    short = tmp_path / "short.txt"
    short.write_text(saved("scan_cpu_jax0.10.2.txt")[:3000])
    (tmp_path / "empty").mkdir()
    specs = [str(before), str(short), str(tmp_path / "empty")]
    said = [result.message for result in explain_all(tasks(specs, [])) if isinstance(result, Failure)]
    assert len(said) == 3
    assert all("\n" not in message for message in said)
    assert "is not optimized HLO" in said[0]
    assert f"{short} cannot be read as HLO: line " in said[1]
    assert "XLA_FLAGS='--xla_dump_to=FOLDER" in said[2]


def test_tasks_come_in_the_order_they_were_asked_for(folder: Path) -> None:
    results = list(explain_all(tasks([str(folder), "no colon", str(folder)], [])))
    assert [type(result) for result in results] == [Report, Report, Failure, Report, Report]


def test_what_is_attached_does_not_matter_where_nothing_is_compiled(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fusionlint.compiling.attached.attached", None)
    assert targets_of([str(folder)], ["h200", "gpu"]) == [get("h200")]
    with pytest.raises(TypeError):  # it would have been asked
        targets_of([str(folder), "m:f"], ["h200"])


def test_a_dump_is_explained_without_jax(folder: Path) -> None:
    program = "import sys\nfrom fusionlint.cli import main\ntry: main(['explain', '.'])\nexcept SystemExit as e: pass\n"
    program += "assert not {'jax', 'jaxlib', 'numpy'} & set(sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "softmax from module_0003" in done.stdout


@pytest.mark.compilers
def test_a_dump_of_the_cpu_compiler_itself_is_read(tmp_path: Path) -> None:
    pytest.importorskip("jax")
    program = "import jax\njax.jit(lambda x: jax.numpy.sin(x) @ x)(jax.numpy.ones((8, 8)))\n"
    flags = f"--xla_dump_to={tmp_path / 'dump'} --xla_dump_hlo_as_text"
    environment = {"XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu", "PATH": ""}
    subprocess.run([sys.executable, "-c", program], env=environment, check=True, capture_output=True)
    reports = list(explain_all(tasks([str(tmp_path / "dump")], [])))
    by_name = {report.entry.partition(" ")[0]: report for report in reports if isinstance(report, Report)}
    assert len(by_name) == len(reports)
    (lambda_name,) = (name for name in by_name if "lambda" in name)
    assert by_name[lambda_name].target == "cpu"
    assert by_name[lambda_name].stages.before["sine"] == 1
