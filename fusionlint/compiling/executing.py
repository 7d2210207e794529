"""Jobs on an executor: the cores of this machine, or a cluster. Job in, texts out: no file has to be shared.

Only the code to compile has to be there, at the same place or importable, with fusionlint and the target's compiler.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory

from fusionlint.compiling.artifacts import Artifacts, CompileError, Job, read_artifacts, read_job, write_job
from fusionlint.compiling.jobs import TIMEOUT, new_folder, run_jobs, tail
from fusionlint.compiling.targets import Target

Texts = dict[str, bytes]  # what a job left: name in its folder -> content
_ALONE = threading.Lock()  # a TPU serves one process at a time


class ExecutorError(ValueError):
    """There is no such executor, or it does not answer; the message is one line that says what to do."""


def do_job(job: str, target: str, folder: str, timeout: float) -> Texts:
    """What an executor is given, whole and picklable: do one job (`write_job`, as JSON) for a target (its fields, as
    JSON) in a worker process of its own, given `timeout` seconds. `folder` is the working directory, if this machine
    has it. What failed is recorded in artifacts.json, as a worker does."""
    one, wanted = read_job(json.loads(job)), Target(**json.loads(target))
    alone = _ALONE if wanted.attached and wanted.platform == "tpu" else nullcontext()
    with TemporaryDirectory(prefix="fusionlint-") as home, alone:
        there = Path(folder) if Path(folder).is_dir() else None
        (result,) = run_jobs([one], wanted, _texts, timeout, Path(home, "out"), there)
    if isinstance(result, CompileError):
        fields = {name: getattr(result, name) for name in ("kind", "message", "where", "stderr")}
        return {"artifacts.json": json.dumps({"error": fields}).encode()}
    return result


def _texts(folder: Path) -> Texts:
    texts = {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    recorded = json.loads(texts["artifacts.json"])
    if "error" in recorded:
        recorded["error"]["stderr"] = tail(folder.parent / "stderr.txt")
        texts["artifacts.json"] = json.dumps(recorded).encode()
    return texts


def compile_all(
    jobs: Sequence[tuple[Job, Target]],
    executor: Executor | None = None,
    timeout: float = TIMEOUT,
    outdir: Path | None = None,
    on_done: Callable[[], None] = lambda: None,
) -> Iterator[Artifacts | CompileError]:
    """Compile every (job, target), each in a process of its own, as many at once as `executor` does (as this machine
    has cores, if None): results and errors in the order of `jobs`, as they come. Texts are left below `outdir`, a
    new folder that lives as long as this process if None. `on_done` is called as each one ends, from any thread."""
    home = new_folder() if outdir is None else outdir
    with executor_or_cores(executor, len(jobs)) as pool:
        futures = [
            pool.submit(do_job, json.dumps(write_job(job)), json.dumps(target._asdict()), str(Path.cwd()), timeout)
            for job, target in jobs
        ]
        for future in futures:
            future.add_done_callback(lambda _: on_done())
        try:
            for number, future in enumerate(futures):
                yield _result(future, jobs[number], home / f"job-{number}")
        finally:  # the caller may have seen enough
            for future in futures:
                future.cancel()


@contextmanager
def executor_or_cores(executor: Executor | None, jobs: int) -> Iterator[Executor]:
    """`executor`, or threads that wait for as many processes as there are cores."""
    if executor is not None:
        yield executor
        return
    with ThreadPoolExecutor(max(1, min(jobs, os.cpu_count() or 1))) as pool:
        yield pool


def _result(future: Future[Texts], job: tuple[Job, Target], folder: Path) -> Artifacts | CompileError:
    try:
        texts = future.result()
    # An executor has its own ways to fail (a lost worker, fusionlint not installed there): each costs its job alone.
    except Exception as error:  # noqa: BLE001
        first = next(iter(str(error).splitlines()), "")
        said = f"{type(error).__name__}{': ' if first else ''}{first}"
        return CompileError("executor", f"the executor lost {job[0].entry.name} for {job[1].name}: {said}")
    for name, content in texts.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    try:
        return read_artifacts(folder)
    except CompileError as error:
        return error


@contextmanager
def executor_at(address: str) -> Iterator[Executor]:
    """The executor of `dask://host:port`, a running dask scheduler. Raises ExecutorError."""
    scheme, _, place = address.partition("://")
    if scheme != "dask" or not place:
        raise ExecutorError(f"no executor `{address}`: write dask://host:port, the address of a dask scheduler")
    try:
        from distributed import Client
    except ImportError:
        raise ExecutorError("dask is not installed: pip install 'fusionlint[dask]'") from None
    try:
        client = Client(f"tcp://{place}", timeout=10)
    except (OSError, ValueError) as error:
        raise ExecutorError(
            f"no dask scheduler answers at {place}: {next(iter(str(error).splitlines()), '')}"
        ) from None
    with client:
        yield client.get_executor(pure=False)
