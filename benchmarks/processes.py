"""Whole processes, timed: a command -> wall and CPU seconds, and the peak memory of it and of what it started.

Memory is VmHWM of /proc, asked every few milliseconds: pages that a worker shares with its parent count for both. Where
there is no /proc the system's own figure stands in, that of the largest process of all.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc")
_EARLY, _LATER = 0.01, 0.05  # seconds between two looks, in the first second and after


@dataclass(frozen=True)
class Run:
    """One process from start to end. `cpu` counts it and all that it waited for, `parent` is its peak memory, `child`
    that of the largest process below it, in MB; 0 where there was none."""

    seconds: float
    cpu: float
    parent: float
    child: float
    code: int
    output: bytes = b""
    errors: str = ""

    @property
    def crashed(self) -> bool:
        return self.code not in (0, 1) or "Traceback (most recent call last)" in self.errors


def timed(command: Sequence[str], folder: Path, stdin: bytes = b"", extra: Mapping[str, str] | None = None) -> Run:
    """Run the command in `folder`, with the variables `extra`; what it prints goes to files, so that no reader slows
    it."""
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        given.write(stdin)
        given.seek(0)
        environment = {**os.environ, **(extra or {})}
        # What pip installs is compiled. A variable of the machine that forbids it must not be timed with every import.
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        begin = time.perf_counter()
        process = subprocess.Popen(command, cwd=folder, stdin=given, stdout=out, stderr=err, env=environment)
        peaks: dict[int, float] = {}
        ended = threading.Event()
        watcher = threading.Thread(target=_watch, args=(process.pid, peaks, ended))
        watcher.start()
        try:
            _, status, usage = os.wait4(process.pid, 0)
            seconds = time.perf_counter() - begin
            process.returncode = os.waitstatus_to_exitcode(status)
        finally:
            ended.set()
            watcher.join()
        out.seek(0)
        err.seek(0)
        parent = peaks.pop(process.pid, 0.0) or _megabytes(usage)
        errors = err.read().decode(errors="replace")
        cpu = usage.ru_utime + usage.ru_stime
        return Run(seconds, cpu, parent, max(peaks.values(), default=0.0), process.returncode, out.read(), errors)


def _megabytes(usage: resource.struct_rusage) -> float:
    return usage.ru_maxrss / (1e6 if sys.platform == "darwin" else 1e3)


def _watch(root: int, peaks: dict[int, float], ended: threading.Event) -> None:
    """Keep the last peak of each process: the peak of a forked one falls when it starts another program."""
    begin = time.perf_counter()
    while _PROC.is_dir() and not ended.is_set():
        for pid in (root, *_below(root)):
            if peak := _peak(pid):
                peaks[pid] = peak
        ended.wait(_EARLY if time.perf_counter() - begin < 1 else _LATER)


def _below(root: int) -> Iterator[int]:
    """The processes below `root`; they are younger, so their numbers are higher."""
    family = {root}
    for pid in sorted(int(entry.name) for entry in os.scandir(_PROC) if entry.name.isdigit()):
        if pid > root and _parent(pid) in family:
            family.add(pid)
            yield pid


def _parent(pid: int) -> int:
    try:
        return parent_in((_PROC / str(pid) / "stat").read_text())
    except (OSError, ValueError):  # it has just ended
        return 0


def _peak(pid: int) -> float:
    try:
        return peak_in((_PROC / str(pid) / "status").read_text())
    except (OSError, ValueError):
        return 0.0


def parent_in(stat: str) -> int:
    """The parent's number in a text of /proc/PID/stat; the program's name before it may hold spaces and brackets."""
    return int(stat.rpartition(")")[2].split()[1])


def peak_in(status: str) -> float:
    """Peak memory in MB in a text of /proc/PID/status: 0 of a process that has ended and is not waited for yet."""
    line = next((line for line in status.splitlines() if line.startswith("VmHWM:")), "VmHWM: 0 kB")
    return int(line.split()[1]) * 1024 / 1e6
