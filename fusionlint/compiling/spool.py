"""In the process of a script: write down each compilation as it happens, and the programs at the end.

The folder holds compiled.jsonl, a line per compilation, so that what a killed script compiled is known; programs/, the
StableHLO by number and platform; and ended.json, which is there if the script came to its end.
"""

from __future__ import annotations

import atexit
import json
import os
import signal
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from fusionlint.compiling import hooks
from fusionlint.compiling.capture import Recorder, backend, versions
from fusionlint.recording import EagerLine, RecordedFunction


def begin(folder: str, platforms: tuple[str, ...], everything: bool) -> None:
    """Capture from now on. At the end of the process lower what was kept for `platforms`."""
    home, process = Path(folder), os.getpid()
    file = os.open(home / "compiled.jsonl", os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def keep(one: RecordedFunction | EagerLine) -> None:
        if os.getpid() == process:  # a forked child has its parent's hooks
            kind = "eager" if isinstance(one, EagerLine) else "function"
            os.write(file, f"{json.dumps({kind: asdict(one)})}\n".encode())

    recorder = Recorder(everything, keep)
    (home / "began.json").write_text(json.dumps({"versions": versions()}))
    hooks.follow(recorder)

    def end() -> None:
        if os.getpid() == process:
            hooks.unfollow(recorder)
            _end(recorder, home, platforms)

    # jax has registered its own clean-up before: this comes first, while jax still works.
    atexit.register(end)


def _end(recorder: Recorder, home: Path, platforms: tuple[str, ...]) -> None:
    told: dict[str, Any] = {"backend": backend() if recorder.known or recorder.eager else ""}
    (home / "programs").mkdir()
    failures: dict[str, dict[str, str]] = {}
    try:
        for number, platform, program in recorder.lowered(platforms):
            if isinstance(program, str):
                failures.setdefault(str(number), {})[platform] = program
            else:
                (home / "programs" / f"{number}.{platform}").write_bytes(program)
    except KeyboardInterrupt:  # who has seen enough need not wait for the rest
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Python would now die of SIGINT itself, as shells expect; lowering makes it forget that.
    interrupted = getattr(sys, "last_type", None) is KeyboardInterrupt
    told |= {"failures": failures, "notes": hooks.missing(), "interrupted": interrupted}
    (home / "ended.json").write_text(json.dumps(told))
