"""Jobs on executors: every target for real, order, failures of each kind, and a dask cluster of other processes."""

from __future__ import annotations

import json
import os
import pickle
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest

from fusionlint.compiling.artifacts import Artifacts, CompileError, Job, write_job
from fusionlint.compiling.entry import parse_spec
from fusionlint.compiling.executing import ExecutorError, compile_all, do_job, executor_at
from fusionlint.compiling.targets import TARGETS, Target, get, missing

pytest.importorskip("jax")

pytestmark = pytest.mark.compilers

CPU = get("cpu")
CODE = """\
import os, signal, sys, time
import jax.numpy as jnp

def good(x): return jnp.sin(x) * 2
def other(x): return -x
def aborts(x): os.abort()
def killed(x): os.kill(os.getpid(), signal.SIGKILL)
def sleeps(x): time.sleep(600)
def wrong(x): return x + jnp.ones(3)
def talks(x):
    print("the user's own words", file=sys.stderr)
    return x + jnp.ones(3)
def who(x):
    time.sleep(1.5)
    return x + float(os.getppid())
"""


@pytest.fixture(autouse=True)
def code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "some.py").write_text(CODE)
    return tmp_path


def job(name: str) -> Job:
    return Job(parse_spec(f"some:{name}(f32[4])"))


@pytest.mark.parametrize(
    "wanted",
    [[target for target in TARGETS if target.platform == platform] for platform in ("cpu", "cuda", "tpu")],
    ids=lambda wanted: "-".join(target.name for target in wanted),
)
def test_every_target_is_compiled_for(wanted: list[Target]) -> None:
    if absent := missing(wanted[0]):
        pytest.skip(absent)
    for target, result in zip(wanted, compile_all([(job("good"), target) for target in wanted]), strict=True):
        assert isinstance(result, Artifacts), (target.name, result)
        assert result.target == target.name
        assert "is_scheduled=true" in result.after


def test_several_at_once_come_in_the_order_they_were_asked_for_and_are_counted(code: Path) -> None:
    ended: list[int] = []
    jobs = [(job(name), CPU) for name in ("good", "nothing", "other")]
    first, second, third = compile_all(jobs, outdir=code / "out", on_done=lambda: ended.append(1))
    assert isinstance(first, Artifacts)
    assert isinstance(second, CompileError)
    assert isinstance(third, Artifacts)
    assert (first.function, third.function) == ("good", "other")
    assert len(ended) == 3
    assert first.after  # the texts are there as long as the folder


def test_each_kind_of_failure_costs_itself_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def version(name: str) -> str | None:
        return None if name == "libtpu" else "0.10.2"

    monkeypatch.setattr("fusionlint.compiling.targets._version", version)
    says = {
        "aborts": ("crash", "some:aborts for cpu died of SIGABRT"),
        "killed": ("crash", "some:killed for cpu was killed, as the system does when memory runs out"),
        "sleeps": ("timeout", "some:sleeps took more than 15 s for cpu: raise the time limit"),
        "wrong": ("trace", "some:wrong could not be traced: TypeError"),
    }
    jobs = [*((job(name), CPU) for name in says), (job("good"), get("v5e")), (job("good"), CPU)]
    *failed, absent, good = compile_all(jobs, timeout=15)
    for (kind, words), result in zip(says.values(), failed, strict=True):
        assert isinstance(result, CompileError)
        assert result.kind == kind
        assert words in str(result)
        assert "\n" not in str(result)
    assert str(absent) == "the compiler for v5e is not installed: pip install 'fusionlint[tpu]'"
    assert isinstance(good, Artifacts)


def test_what_a_worker_wrote_to_stderr_is_kept_where_it_fails() -> None:
    (result,) = compile_all([(job("talks"), CPU)])
    assert isinstance(result, CompileError)
    assert "the user's own words" in result.stderr
    assert "Traceback" in result.stderr


def test_what_an_executor_is_given_can_be_pickled_and_so_can_what_it_gives() -> None:
    given = (do_job, json.dumps(write_job(job("good"))), json.dumps(CPU._asdict()), os.getcwd(), 60.0)  # noqa: PTH109
    function, *arguments = pickle.loads(pickle.dumps(given))
    texts = pickle.loads(pickle.dumps(function(*arguments)))
    assert {"artifacts.json", "after.hlo.txt", "jaxpr.txt"} <= set(texts)
    assert all(type(content) is bytes for content in texts.values())


def test_any_executor_will_do() -> None:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as executor:
        (result,) = compile_all([(job("good"), CPU)], executor)
    assert isinstance(result, Artifacts)


class Broken(Executor):
    """Loses whatever it is given."""

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_exception(RuntimeError("the worker left\nand more"))
        return future


def test_a_job_that_the_executor_lost_is_one_line() -> None:
    (result,) = compile_all([(job("good"), CPU)], Broken())
    assert str(result) == "the executor lost some:good for cpu: RuntimeError: the worker left"


@pytest.mark.parametrize(
    ("address", "says"),
    [
        ("slurm://here", "write dask://host:port"),
        ("dask://", "write dask://host:port"),
        ("127.0.0.1:8786", "write dask://host:port"),
    ],
)
def test_an_address_that_is_none_is_one_line(address: str, says: str) -> None:
    with pytest.raises(ExecutorError, match=re.escape(says)), executor_at(address):
        pass


def test_without_dask_the_command_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ExecutorError, match=re.escape("pip install 'fusionlint[dask]'")), executor_at("dask://a:1"):
        pass


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[tuple[str, set[int]]]:
    """A scheduler and two workers, each a process with its own working directory: address, and the workers' pids."""
    pytest.importorskip("distributed", reason="dask is not installed: pip install 'fusionlint[dask]'")
    found = tmp_path / "scheduler.json"
    module, place = [sys.executable, "-m"], ["--host", "127.0.0.1", "--no-dashboard"]
    start = [*module, "distributed.cli.dask_scheduler", *place, "--port", "0", "--scheduler-file", str(found)]
    work = [*module, "distributed.cli.dask_worker", *place, "--no-nanny", "--nthreads", "1"]
    work += ["--scheduler-file", str(found)]
    processes: list[subprocess.Popen[bytes]] = []
    try:
        for number, command in enumerate((start, work, work)):
            home = tmp_path / f"machine-{number}"
            home.mkdir()
            with (home / "stderr").open("wb") as words:
                processes.append(subprocess.Popen(command, cwd=home, stdout=words, stderr=words))
        deadline = time.monotonic() + 60
        while not (found.exists() and found.read_text().strip()):
            assert time.monotonic() < deadline, (tmp_path / "machine-0" / "stderr").read_text()
            time.sleep(0.1)
        yield json.loads(found.read_text())["address"].replace("tcp", "dask"), {p.pid for p in processes[1:]}
    finally:
        for process in processes:  # a worker that is asked to end waits for a scheduler that has ended
            process.kill()
            process.wait()


def test_a_dask_cluster_compiles_on_all_its_workers_and_sends_the_texts_back(cluster: tuple[str, set[int]]) -> None:
    address, workers = cluster
    with executor_at(address) as executor:
        wait_for_two(executor)
        jobs = [(job("who"), CPU), (job("who"), CPU), (job("wrong"), CPU), (job("good"), wanted())]
        first, second, wrong, good = compile_all(jobs, executor)
        assert isinstance(first, Artifacts)
        assert isinstance(second, Artifacts)
        parents = {int(number) for one in (first, second) for number in re.findall(r"(\d+)\.0\b", one.jaxpr)}
        assert "could not be traced" in str(wrong)
        assert isinstance(good, Artifacts)
        assert good.after
        if good.target == "h100":
            assert good.dumped("*thunk_sequence.txt")
    assert parents == workers


def wait_for_two(executor: Any) -> None:
    executor._client.wait_for_workers(2, timeout=60)


def wanted() -> Target:
    return CPU if missing(get("h100")) else get("h100")
