"""Whether pip reaches its package index: tests that install or fetch something ask first."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
import tempfile

import pytest


def require() -> None:
    """Skip the test, saying why, where the index is out of reach; in CI that is a failure."""
    said = _complaint()
    if said and os.environ.get("CI"):
        pytest.fail(said)
    if said:
        pytest.skip(said)


@functools.cache
def _complaint() -> str:
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", folder, "pathspec"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else f"pip does not reach its package index: {done.stderr.strip()[-300:]}"
