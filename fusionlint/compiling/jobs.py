"""The parent's side: starts worker processes, waits, and turns what becomes of them into values. Never imports jax."""

from __future__ import annotations

import atexit
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from types import FrameType
from typing import NoReturn, TypeVar

from fusionlint.compiling import alone
from fusionlint.compiling.artifacts import Artifacts, CompileError, Job, read_artifacts, write_job
from fusionlint.compiling.entry import Entry
from fusionlint.compiling.targets import Target, environment, missing

Result = TypeVar("Result")

TIMEOUT = 600.0  # seconds for one job
# The workers that there are.
_running: set[subprocess.Popen[bytes]] = set()


def compile_entry(entry: Entry, target: Target, timeout: float = TIMEOUT, outdir: Path | None = None) -> Artifacts:
    """Compile `entry` for `target` in a process of its own, given `timeout` seconds, leaving its texts below `outdir`
    (a new temporary folder if None). Raises CompileError."""
    (result,) = compile_many([entry], target, timeout, outdir)
    if isinstance(result, CompileError):
        raise result
    return result


def compile_many(
    entries: Sequence[Entry], target: Target, timeout: float = TIMEOUT, outdir: Path | None = None
) -> list[Artifacts | CompileError]:
    """Compile every entry for `target` in one process, jax imported once; `timeout` is for each. A job that kills the
    process costs that job alone: the others go on in a new one."""
    return run_jobs([Job(entry) for entry in entries], target, read_artifacts, timeout, outdir)


def run_jobs(
    jobs: Sequence[Job],
    target: Target,
    read: Callable[[Path], Result],
    timeout: float = TIMEOUT,
    outdir: Path | None = None,
    cwd: Path | None = None,
) -> list[Result | CompileError]:
    """Do the jobs in worker processes for `target`, one process as long as none dies; `read` makes a job's result of
    its folder. `cwd` is their working directory, by default this process's."""
    absent = missing(target)
    if absent is not None:
        return [CompileError("missing", absent) for _ in jobs]
    home = new_folder() if outdir is None else outdir
    results: list[Result | CompileError] = []
    while len(results) < len(jobs):
        results += _one_worker(jobs[len(results) :], target, read, timeout, home / str(len(results)), cwd)
    return results


def end_workers_with_us() -> None:
    """Has SIGTERM and SIGHUP, which Python otherwise dies of as it stands, end the workers too: a compiler that
    nobody waits for would go on for as long as it likes. Does nothing in a thread, which signals do not reach."""
    if threading.current_thread() is not threading.main_thread():
        return
    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is signal.SIG_DFL:  # nohup has SIGHUP ignored
            signal.signal(number, _end_at_once)


def _end_at_once(number: int, _: FrameType | None) -> NoReturn:
    for process in [*_running]:
        process.kill()
    os._exit(128 + number)  # threads wait for the workers, and would start the next


def new_folder() -> Path:
    """An empty folder that lives as long as this process."""
    return Path(tempfile.mkdtemp(dir=_scratch()))


@cache
def _scratch() -> Path:
    """A folder that lives as long as this process."""
    folder = Path(tempfile.mkdtemp(prefix="fusionlint-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _one_worker(
    jobs: Sequence[Job],
    target: Target,
    read: Callable[[Path], Result],
    timeout: float,
    home: Path,
    cwd: Path | None,
) -> list[Result | CompileError]:
    """The results of the jobs that one process came to; the last one's is its death, if it died."""
    home.mkdir(parents=True)
    job_file, stderr = home / "job.json", home / "stderr.txt"
    job_file.write_text(json.dumps({"target": target._asdict(), "jobs": [write_job(job) for job in jobs]}))
    command = alone.command("fusionlint.compiling.worker", str(job_file), str(home))
    with stderr.open("wb") as stream:
        process = subprocess.Popen(  # noqa: S603  our own module, our own interpreter
            command, env=worker_environment(target), cwd=cwd, stdin=subprocess.DEVNULL, stdout=stream, stderr=stream
        )
        _running.add(process)
        try:
            status = _wait(process, home, len(jobs), timeout)
        finally:
            process.kill()
            process.wait()
            _running.discard(process)
    done = _done(home, len(jobs))
    results = [_read(home / str(number), read) for number in range(done)]
    if done < len(jobs):
        results.append(_death(jobs[done], target, status, timeout, home / str(done), stderr))
    return results


def worker_environment(target: Target) -> dict[str, str]:
    """The parent's environment, with what the target needs, and with this package importable."""
    package_root = str(Path(__file__).parents[2])
    paths = [path for path in (os.environ.get("PYTHONPATH"), package_root) if path]
    return {**os.environ, **environment(target), "PYTHONPATH": os.pathsep.join(paths)}


def _wait(process: subprocess.Popen[bytes], home: Path, count: int, timeout: float) -> int | None:
    """The exit status, or 0 once all jobs are done: jax takes a third of a second to be taken down. None if a job took
    more than `timeout` seconds (the first one's include the start)."""
    done, deadline = 0, time.monotonic() + timeout
    while time.monotonic() < deadline:
        try:
            return process.wait(timeout=0.05)
        except subprocess.TimeoutExpired:
            now = _done(home, count)
            if now == count:
                return 0
            if now > done:
                done, deadline = now, time.monotonic() + timeout
    return None


def _done(home: Path, count: int) -> int:
    return next((i for i in range(count) if not (home / str(i) / "artifacts.json").exists()), count)


def _read(folder: Path, read: Callable[[Path], Result]) -> Result | CompileError:
    try:
        return read(folder)
    except CompileError as error:
        return error


_NOT_COMPILED = "make its loops lax.scan and its shapes smaller"


def _not_lowered(job: Job) -> str:
    return (
        f"see what {job.entry.module} does when it is imported, and make Python loops lax.scan: it was not lowered yet"
    )


def _death(job: Job, target: Target, status: int | None, timeout: float, folder: Path, stderr: Path) -> CompileError:
    name = job.entry.name
    said = "\n".join(tail(path) for path in (stderr, folder / "log.txt"))
    if status is None:
        hint = _not_lowered(job) if job.kind == "compile" and not (folder / "stablehlo.txt").exists() else _NOT_COMPILED
        message = f"{name} took more than {timeout:g} s for {target.name}: raise the time limit, or {hint}"
        return CompileError("timeout", message, "", said)
    # XLA's information and warnings (I1121 06:56:18 ...) are no last words. What it dies of it says first, then how.
    words = [line.strip() for line in said.splitlines() if line.strip() and not re.match(r"[IW]\d{4} ", line)]
    fatal = [line for line in words if re.match(r"F\d{4} ", line)]
    last = (*words, *fatal)[-1] if words else "none"
    message = f"the worker that had {name} for {target.name} {_end(status)}; its last words: {last[:300]}"
    return CompileError("crash", message, "", said)


def _end(status: int) -> str:
    if status == -9:
        return "was killed, as the system does when memory runs out"
    return f"died of {signal.Signals(-status).name}" if status < 0 else f"ended with exit status {status}"


def tail(path: Path) -> str:
    """The end of a text, "" if there is none."""
    return path.read_text(encoding="utf-8", errors="replace")[-20_000:] if path.exists() else ""
