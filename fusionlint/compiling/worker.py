"""python -m fusionlint.compiling.worker JOB.json OUTDIR: do jobs, one after another, for one target.

JOB.json holds the target and the jobs; job number i leaves its folder OUTDIR/i, artifacts.json last, so that a parent
knows how far a dead worker came. Failures of the user's code are recorded there, one line each. Exit status: 0 if all
jobs did well, 3 if some failed.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from fusionlint.compiling import alone, arguments, loading, meshes, programs, running
from fusionlint.compiling.artifacts import Job, read_job
from fusionlint.compiling.blame import JobError, blaming
from fusionlint.compiling.calls import in_words
from fusionlint.compiling.devices import are_here, as_where_it_runs, device, devices, make_cpus, without_callbacks
from fusionlint.compiling.elsewhere import platforms_of
from fusionlint.compiling.entry import Entry, EntryError
from fusionlint.compiling.found import meant_as_shape
from fusionlint.compiling.rule_lines import show_rule_lines
from fusionlint.compiling.running import Tally
from fusionlint.compiling.sizes import NO_DIMS, NO_MESH, Axes, Dims
from fusionlint.compiling.targets import Target, versions
from fusionlint.compiling.texts import in_place_of_files

Result = dict[str, Any]
_SAME_PLATFORM = {"gpu": "cuda", "rocm": "cuda"}


def main(job_file: str, outdir: str) -> int:
    """Do the jobs of `job_file`, leaving a folder each in `outdir`; the exit status."""
    work = json.loads(Path(job_file).read_text(encoding="utf-8"))
    target = Target(**work["target"])
    jobs = [read_job(fields) for fields in work["jobs"]]
    folders = [Path(outdir, str(number)) for number in range(len(jobs))]
    os.dup2(2, 1)  # what the user's code prints is kept with its other words
    tally = Tally()
    try:
        with blaming("start"):
            cpus = meshes.cpus_needed(jobs, target)
            if cpus > 1:
                make_cpus(cpus)
            if any(job.mesh for job in jobs):  # whose code makes its meshes of CPUs, whatever else is here
                os.environ["JAX_PLATFORMS"] = ",".join(sorted(os.environ.get("JAX_PLATFORMS", "cpu").split(",")))
            setup()
            sharding = device(target)
        alone.find_from_here()
    except JobError as error:
        return 3 if all(_record(folder, {"error": error.record}) for folder in folders) else 0
    if any(job.kind == "count" for job in jobs):
        running.follow(tally)
    failed = False
    for job, folder in zip(jobs, folders, strict=True):
        folder.mkdir(parents=True)
        # A module that reads its arguments when it is imported finds those of a script without any.
        sys.argv = [job.entry.module]
        with isolated():
            failed |= _do(job, target, sharding, tally, folder)
    return 3 if failed else 0


def _do(job: Job, target: Target, sharding: Any, tally: Tally, folder: Path) -> bool:
    """Do one job, record it, and say whether it failed."""
    import jax

    try:
        if job.x64 is not None:  # set by a script that nobody imports here
            jax.config.update("jax_enable_x64", job.x64)
        # What is not blamed on anything else is ours: it asks jax for what it has not.
        with blaming("read", job.entry), in_place_of_files(job.texts):
            result = _result(job, target, sharding, tally, folder)
    except JobError as error:
        result = {"error": error.record}
    return _record(folder, result)


def _result(job: Job, target: Target, sharding: Any, tally: Tally, folder: Path) -> Result:
    if job.kind == "compile":
        return compile_job(job.entry, target, sharding, folder, job.dims, job.mesh)
    if job.kind == "program":
        return compile_program(job, target, folder)
    if job.kind == "count":
        return {"counts": running.count(job.entry, tally, job.warmup)}
    assert job.other is not None
    return {"difference": running.difference(job.entry, job.other, in_distribution=job.in_distribution)}


def _record(folder: Path, result: Result) -> bool:
    folder.mkdir(parents=True, exist_ok=True)
    draft = folder / "draft.json"
    draft.write_text(json.dumps(result, indent=1), encoding="utf-8")
    draft.rename(folder / "artifacts.json")  # whole, or not there
    return "error" in result


def setup() -> None:
    """Import jax and make it tell the whole truth about source lines."""
    import jax

    # A cached executable carries the source lines of its first life.
    jax.config.update("jax_enable_compilation_cache", False)
    # The call path to every line; old versions stop after ten frames.
    jax.config.update("jax_include_full_tracebacks_in_locations", True)
    jax.config.update("jax_traceback_in_locations_limit", -1)
    exclude_own_frames()
    show_rule_lines()


def exclude_own_frames() -> None:
    """Keep this package's frames, and those of Python's module runner, out of the source locations of a program."""
    import runpy

    from jax.extend import source_info_util

    source_info_util.register_exclusion(str(Path(__file__).parent))
    source_info_util.register_exclusion(str(runpy.__file__))
    source_info_util.register_exclusion("<frozen runpy>")


@contextmanager
def isolated() -> Iterator[None]:
    """What a job's code does to jax's caches and settings and to Python's modules ends with it."""
    import jax

    settings, modules, path = dict(jax.config.values), set(sys.modules), list(sys.path)
    try:
        yield
    finally:
        added = [folder for folder in sys.path if folder not in path]
        sys.path[:] = path
        for name in set(sys.modules) - modules:
            if _is_of_user(sys.modules[name], added):
                del sys.modules[name]
        for name, value in settings.items():
            if jax.config.values[name] != value:
                jax.config.update(name, value)
        jax.clear_caches()


def _is_of_user(module: Any, folders: list[str]) -> bool:
    file = getattr(module, "__file__", None) or ""
    return "site-packages" not in file and any(file.startswith(folder) for folder in [*folders, str(Path.cwd())])


def compile_job(
    entry: Entry, target: Target, sharding: Any, folder: Path, dims: Dims = NO_DIMS, axes: Axes = NO_MESH
) -> Result:
    """Lower and compile the entry for the target, on a mesh with those axes if there are any; what XLA made of it goes
    into the folder. Raises JobError."""
    with blaming("import", entry):
        function = loading.load(entry)
    with blaming("arguments", entry):
        mesh = meshes.mesh_of(axes, loading.module(entry)) if axes else None
        given = arguments.abstract(entry, function, sharding, dims, mesh)
    with blaming("trace", entry, meant_as_shape(given)), timed() as trace_seconds:
        trace = partial(meshes.traced, function, given, mesh) if axes else partial(arguments.traced, function, given)
        traced = as_where_it_runs(trace, target.platform)
    (folder / "jaxpr.txt").write_text(str(traced.jaxpr), encoding="utf-8")
    with blaming("lower", entry, target=target.name), timed() as lower_seconds:
        lowered = meshes.lowered(traced, target, entry.name) if axes else lower(traced, target, sharding)
        check_platform(lowered, target, entry)
    if target.platform == "cuda" and not target.attached:
        lowered = without_callbacks(lowered)
    compile_seconds, memory = compiled(lowered, entry, target, folder)
    return {
        "entry": entry.text if entry.args is not None else entry.text + in_words(*given),
        "target": target.name,
        "attached": _is_attached(lowered, target),
        "versions": versions(target),
        "function": arguments.name_of(function),
        "defined": arguments.definition(function),
        "parameters": parameter_names(traced),
        "outputs": [f"{aval.dtype}[{','.join(map(str, aval.shape))}]" for aval in traced.jaxpr.out_avals],
        "trace_seconds": trace_seconds[0],
        "lower_seconds": lower_seconds[0],
        "compile_seconds": compile_seconds,
        "memory": memory,
    }


def lower(traced: Any, target: Target, sharding: Any) -> Any:
    """`traced` as a jax.stages.Lowered for the target. Its arguments say where it runs; only where they do not is the
    target the default device, for there a library computes what it does while it is lowered, as lineax does."""
    if traced.jaxpr.in_avals:
        lowered = traced.lower()
        if target.platform in _named(lowered):
            return lowered
    with placed(sharding):
        return traced.lower()


def _named(lowered: Any) -> set[str]:
    """The platforms that it was lowered for, as targets name them."""
    return {_SAME_PLATFORM.get(name, name) for name in platforms_of(lowered)}


@contextmanager
def placed(sharding: Any) -> Iterator[None]:
    """Inside, a program of which nothing else says where it runs is lowered for the device of `sharding`: one that uses
    none of its arguments."""
    import jax

    (device,) = sharding.device_set
    with jax.default_device(device):
        yield


def check_platform(lowered: Any, target: Target, entry: Entry) -> None:
    """Raises EntryError if the function says itself what it is compiled for, and that is something else."""
    named = _named(lowered)
    if named and target.platform not in named:
        raise EntryError(
            f"{entry.name} is jitted for {', '.join(sorted(named))} (by backend, device or in_shardings), whatever the "
            f"target: do without to compile it for {target.name}"
        )


def compile_program(job: Job, target: Target, folder: Path) -> Result:
    """Compile a program that is lowered already; as `compile_job`. Raises JobError."""
    with blaming("lower", job.entry, target=target.name), timed() as lower_seconds:
        lowered = programs.lower(job.program, partial(devices, target), job.entry.name)
    compile_seconds, memory = compiled(lowered, job.entry, target, folder)
    return {
        "entry": job.entry.text,
        "target": target.name,
        "attached": _is_attached(lowered, target),
        "versions": versions(target),
        "function": programs.name_of(lowered),
        "parameters": [],
        "outputs": [],
        "lower_seconds": lower_seconds[0],
        "compile_seconds": compile_seconds,
        "memory": memory,
    }


def _is_attached(lowered: Any, target: Target) -> bool:
    """Whether it is compiled for devices of this machine: of those that a program needs there may be fewer here."""
    return are_here(target, programs.devices_of(lowered.compiler_ir("stablehlo")))


def compiled(lowered: Any, entry: Entry, target: Target, folder: Path) -> tuple[float, int]:
    """Compile, leave the texts before and after in the folder, and say how many seconds it took and how many bytes of
    memory the program needs. Raises JobError."""
    # Large constants are elided, as HLO's own text does.
    stablehlo = lowered.compiler_ir("stablehlo").operation.get_asm(large_elements_limit=16)
    (folder / "stablehlo.txt").write_text(stablehlo, encoding="utf-8")
    before = lowered.compiler_ir("hlo").as_hlo_module().to_string()
    (folder / "before.hlo.txt").write_text(before, encoding="utf-8")
    with blaming("compile", entry, target=target.name), logged(folder / "log.txt"), timed() as seconds:
        executable = _compile(lowered, dump_options(target, folder))
    (folder / "after.hlo.txt").write_text(executable.as_text(), encoding="utf-8")
    prune(folder / "dump")
    return seconds[0], _memory(executable)


def _memory(executable: Any) -> int:
    """Bytes of the program's arguments, results and temporaries at once, what is donated counted once; 0 where XLA
    does not say."""
    found = executable.memory_analysis()
    if found is None:
        return 0
    held = found.argument_size_in_bytes + found.output_size_in_bytes + found.temp_size_in_bytes
    return int(held - found.alias_size_in_bytes)


def _compile(lowered: Any, options: dict[str, str | bool] | None) -> Any:
    try:
        return lowered.compile(compiler_options=options)
    except RuntimeError as error:
        # XLA's performance tables have no rows for chips before Hopper; it compiles for them all the same.
        if options is None or "Cannot find key: sm_" not in str(error):
            raise
        return lowered.compile(compiler_options=options | {"xla_gpu_collect_cost_model_stats": False})


@contextmanager
def timed() -> Iterator[list[float]]:
    """A list that holds the block's seconds once it has ended."""
    seconds = [0.0]
    start = time.perf_counter()
    yield seconds
    seconds[0] = time.perf_counter() - start


@contextmanager
def logged(path: Path) -> Iterator[None]:
    """File descriptor 2 goes to `path`: XLA's log is written there by C++, past Python's sys.stderr."""
    sys.stderr.flush()
    kept = os.dup(2)
    with path.open("wb") as log:
        os.dup2(log.fileno(), 2)
        try:
            yield
        finally:
            sys.stderr.flush()
            os.dup2(kept, 2)
            os.close(kept)


def dump_options(target: Target, folder: Path) -> dict[str, str | bool] | None:
    """XLA's own dumps, of a GPU compilation: priority fusion's decisions with its snapshots, the launches, and, in the
    optimized HLO itself, what each kernel takes by XLA's own model."""
    if target.platform != "cuda":
        return None
    return {
        "xla_dump_to": str(folder / "dump"),
        "xla_dump_hlo_as_text": True,
        "xla_dump_hlo_pass_re": "priority-fusion",
        "xla_gpu_collect_cost_model_stats": True,
    }


KEPT = ("*priority-fusion*.txt", "*priority_fusion_dump.txt", "*thunk_*.txt")


def prune(dump: Path) -> None:
    """Leave what is read of a dump: assembly, buffer assignments and the like are most of its bytes."""
    if dump.is_dir():
        kept = {path for pattern in KEPT for path in dump.glob(pattern)}
        for path in set(dump.iterdir()) - kept:
            path.unlink()


def parameter_names(traced: Any) -> list[str]:
    """A name per input array, as jax's debug info has it; [] where this jax has none."""
    info = getattr(traced.jaxpr.jaxpr, "debug_info", None)
    return [str(name) for name in getattr(info, "arg_names", None) or ()]


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
