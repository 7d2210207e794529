"""Other linters, to be timed on the same files: what they are called with, where they are, and how to get them.

Each lives in a virtual environment of its own, FOLDER/NAME: their dependencies do not agree, and flake8 would load
TorchFix. Configuration files are left out of it as far as a linter can.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import venv
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from corpora import holds_no_gap

RULES = """\
rules:
  - {id: chained-at-set, languages: [python], severity: WARNING, message: chained,
     pattern: "$X.at[...].set(...).at[...].set(...)"}
  - {id: jit-per-call, languages: [python], severity: WARNING, message: jit of a lambda,
     pattern: "jax.jit(lambda $A: $B)(...)"}
  - id: sync-in-loop
    languages: [python]
    severity: WARNING
    message: a value is fetched in a loop
    patterns: [{pattern: float($X)}, {pattern-inside: "for $I in $Y:\\n    ...\\n"}]
"""


@dataclass(frozen=True)
class Peer:
    """A linter: `arguments` check the folder `.`, where {cache} is a folder for its cache, {jobs} a number of processes
    and {rules} a file of RULES. It is given every `every`th file, and of them those that `can_read` takes."""

    name: str
    package: str
    program: str
    arguments: tuple[str, ...]
    every: int = 1
    can_read: Callable[[Path], bool] | None = None
    version: tuple[str, ...] = ("--version",)
    remark: str = ""

    @property
    def home(self) -> str:
        """The name of its virtual environment."""
        return self.package.partition("==")[0]

    @property
    def has_cache(self) -> bool:
        return "{cache}" in self.arguments

    def command(self, program: Path, cache: Path, rules: Path, jobs: int) -> list[str]:
        places = {"{cache}": str(cache), "{rules}": str(rules), "{jobs}": str(jobs)}
        return [str(program), *(places.get(argument, argument) for argument in self.arguments)]


_RUFF = (
    *("check", "--isolated", "--no-respect-gitignore", "--exit-zero"),
    *("--output-format", "concise", "--cache-dir", "{cache}"),
)
_FLAKE8 = ("--isolated", "--exit-zero", "--jobs", "{jobs}")
_SEMGREP = ("scan", "--metrics", "off", "--disable-version-check", "--no-git-ignore", "--max-target-bytes", "0")
PEERS = (
    Peer("ruff", "ruff==0.17.6", "ruff", (*_RUFF, "."), remark="default rules; remembers files without findings"),
    Peer("ruff, E9 alone", "ruff==0.17.6", "ruff", (*_RUFF, "--select", "E9", "."), remark="finds next to nothing"),
    Peer("flake8", "flake8==7.5.0", "flake8", (*_FLAKE8, ".")),
    Peer("Fixit", "fixit==2.2.1", "fixit", ("lint", "."), every=8, remark="default rules"),
    Peer("TorchFix", "torchfix==0.7.0", "torchfix", (".", "--jobs", "{jobs}"), remark="reads what names torch alone"),
    Peer(
        "TorchFix in flake8",
        "torchfix==0.7.0",
        "flake8",
        (*_FLAKE8, "--select", "TOR", "."),
        every=8,
        remark="reads all",
    ),
    Peer(
        "jaxlint",
        "jaxlint==0.1.0a1",
        "jaxlint",
        ("check", "--jobs", "{jobs}", "--cache-dir", "{cache}", "."),
        can_read=holds_no_gap,
        version=("version",),
        remark="without the files that crash it",
    ),
    Peer(
        "semgrep",
        "semgrep==1.182.0",
        "semgrep",
        (*_SEMGREP, "--config", "{rules}", "--jobs", "{jobs}", "."),
        version=("--version", "--disable-version-check"),
        remark="3 rules of ours",
    ),
)


def install(peer: Peer, folder: Path) -> str:
    """Put the peer into FOLDER/NAME, unless it is there; what went wrong, or ""."""
    home = folder / peer.home
    if _in(home / "bin", peer):
        return ""
    venv.create(home, with_pip=True)
    command = [str(home / "bin" / "pip"), "install", "--quiet", "--disable-pip-version-check", peer.package]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else (done.stderr.strip().splitlines() or ["pip failed"])[-1]


def program(peer: Peer, folder: Path | None) -> Path | None:
    """Where the peer is: in `folder`, beside this Python, or on the path."""
    here = (_in(folder / peer.home / "bin", peer) if folder else None) or _in(Path(sys.executable).parent, peer)
    on_path = shutil.which(peer.program)
    return here or (_in(Path(on_path).parent, peer) if on_path else None)


def _in(scripts: Path, peer: Peer) -> Path | None:
    """The program, where its package is beside it: a flake8 alone has no TorchFix."""
    there = all((scripts / name).exists() for name in (peer.home, peer.program))
    return scripts / peer.program if there else None


def version_of(peer: Peer, program: Path) -> str:
    """What the peer says of itself; "" if it says no number."""
    done = subprocess.run([str(program), *peer.version], capture_output=True, text=True, check=False)
    return version_in(done.stdout + done.stderr)


def version_in(said: str) -> str:
    """The first number with a dot in it."""
    found = re.search(r"\d+(?:\.\d+)+\w*", said)
    return found[0] if found else ""
