"""What people said of a file of somebody's repository, and a script of benchmarks/ that holds it against `check`."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
# Line 6 sorts for the largest alone; what line 10 reads of it is for a test to say.
_CODE = """\
import jax
import jax.numpy as jnp

@jax.jit
def largest(x):
    return jnp.sort(x)[-1]

@jax.jit
def other(x):
    return jnp.sort(x)[{other}]
"""


def told(
    script: str, folder: Path, files: Mapping[str, Sequence[Mapping[str, object]]], *options: str, other: int = 0
) -> str:
    """What `script` prints of files of labels, by their names, of whose repositories us/ours has a checkout."""
    (folder / "all" / "ours").mkdir(parents=True)
    (folder / "all" / "ours" / "m.py").write_text(_CODE.format(other=other))
    paths = [folder / f"{name}.jsonl" for name in files]
    for path, rows in zip(paths, files.values(), strict=True):
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    command = [sys.executable, str(ROOT / "benchmarks" / script), *map(str, paths), str(folder / "all"), *options]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout
