"""What calls cost from Python, and whether two functions agree: runs on the CPU, in a worker process per batch.

A dispatch is one execution of one compiled program: on an accelerator a launch at least, with all the host's work.
A transfer is one time that Python asks for the value of an array, and waits for it: `float(x)`, `print(x)`. What one
`jax.device_get` asks for comes side by side, and is one; what numpy reads in place on a CPU (`np.asarray(x)`,
`x.item()`) is none here.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fusionlint.compiling.artifacts import CompileError, Job, read_result
from fusionlint.compiling.entry import parse_spec
from fusionlint.compiling.jobs import TIMEOUT, run_jobs
from fusionlint.compiling.targets import get

_OPERATION = re.compile(r"^\s*(?:%\S+ = )?\"?(?:stablehlo|chlo)\.(?!return\b)\w+|^\s*(?:%\S+ = )?call @", re.M)


@dataclass(frozen=True, slots=True)
class Counts:
    """What one call made jax do: programs compiled, programs executed, waits of Python for arrays."""

    compilations: int
    dispatches: int
    transfers: int = 0


def operations(stablehlo: str) -> int:
    """The operations in a program's text before XLA has seen it: a function that is called often counts once."""
    return len(_OPERATION.findall(stablehlo))


def count_calls(
    path: str | Path, function: str, spec: str = "()", *, warmup: bool = False, timeout: float = TIMEOUT
) -> Counts:
    """Count the compilations and dispatches of one call of `function` of the file `path` with the arguments `spec`,
    such as "(f32[8], n=20)"; "" where they stand beside the function. With `warmup`, of a second call, which finds
    compiled what the first one compiled. Importing the file does not count. Raises EntryError and CompileError."""
    (counts,) = count_many([counting_job(path, function, spec, warmup=warmup)], timeout)
    if isinstance(counts, CompileError):
        raise counts
    return counts


def counting_job(path: str | Path, function: str, spec: str = "()", *, warmup: bool = False) -> Job:
    """The job that `count_calls` does, for `count_many`. Raises EntryError."""
    return Job(parse_spec(f"{path}:{function}{spec}"), "count", warmup=warmup)


def count_many(jobs: Sequence[Job], timeout: float = TIMEOUT) -> list[Counts | CompileError]:
    """Do counting jobs in one process."""
    return run_jobs(jobs, get("cpu"), _read_counts, timeout)


def agree(bad: str | Path, good: str | Path, spec: str, timeout: float = TIMEOUT) -> str | None:
    """Run the function that `spec` names, such as "step(f32[8], key)", of the files `bad` and `good` on the same
    concrete arguments: None if their outputs are equal (floats within rounding), else one line that says where they
    are not. Raises EntryError and CompileError."""
    (found,) = agree_many([agreeing_job(bad, good, spec)], timeout)
    if isinstance(found, CompileError):
        raise found
    return found


def agreeing_job(bad: str | Path, good: str | Path, spec: str, *, in_distribution: bool = False) -> Job:
    """The job that `agree` does, for `agree_many`; `in_distribution` for forms whose random streams differ, which are
    held against each other by mean and spread. Raises EntryError."""
    one, other = parse_spec(f"{bad}:{spec}"), parse_spec(f"{good}:{spec}")
    return Job(one, "agree", other=other, in_distribution=in_distribution)


def agree_many(jobs: Sequence[Job], timeout: float = TIMEOUT) -> list[str | CompileError | None]:
    """Do agreeing jobs in one process."""
    return run_jobs(jobs, get("cpu"), _read_difference, timeout)


def _read_counts(folder: Path) -> Counts:
    return Counts(**read_result(folder)["counts"])


def _read_difference(folder: Path) -> str | None:
    difference: str | None = read_result(folder)["difference"]
    return difference
