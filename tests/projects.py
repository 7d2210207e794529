"""Real projects to try fusionlint on: their source distributions, unpacked, fetched once.

`python tests/projects.py` fetches all of them and prints their folders. They lie in $FUSIONLINT_PROJECTS, by default
~/.cache/fusionlint-projects. `pip download` would run a project's own set-up code to learn its metadata, so pip is
asked for the file alone; versions and hashes are pinned, so that a finding can be looked up.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import subprocess
import sys
import tarfile
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Project:
    name: str
    version: str
    sha256: str


PROJECTS = {
    project.name: project
    for project in (
        Project("gymnax", "1.0.1", "f56d50e4be2f8827db6e548387bc8806d69785b637ca005c19ea95685eaacdbb"),
        Project("brax", "0.14.2", "fd5240fb30ea0d7b0a9da162eb4a460c3ad415c049453936118e2e05089222c2"),
        Project("optax", "0.2.8", "5b225b35066fc3eebaa4d798f1b4173b4d57d1a480610908981f8343b50af0b0"),
        Project("flax", "0.12.8", "1bb438775b967a3f1f42b9c3d4ddf1d2883cd6406589f9cecdc244634036bdc4"),
    )
}


@dataclass(frozen=True)
class Checked:
    """What `fusionlint check` said of a project's folder, in one run, and how long it took."""

    folder: Path
    done: subprocess.CompletedProcess[str]
    seconds: float


def cached(project: Project) -> Path:
    """Where the project's folder is, or will be."""
    default = Path.home() / ".cache" / "fusionlint-projects"
    return Path(os.environ.get("FUSIONLINT_PROJECTS", default)) / f"{project.name}-{project.version}"


def folders() -> list[Path]:
    """The projects above, whether fetched yet or not, and those of the folders $FUSIONLINT_CORPUS."""
    corpus = [Path(folder) for folder in os.environ.get("FUSIONLINT_CORPUS", "").split(":") if folder]
    more = [path for folder in corpus for path in sorted(folder.iterdir()) if path.is_dir()]
    return [*(cached(project) for project in PROJECTS.values()), *more]


def fetch(project: Project) -> Path:
    """The project's folder, fetched if it is not there yet. pip works in a process of its own: it is no library."""
    folder = cached(project)
    if not folder.exists():
        subprocess.run([sys.executable, __file__, project.name], check=True, stdout=subprocess.DEVNULL)
    return folder


def check(folder: Path) -> Checked:
    """`fusionlint check`, as a user runs it."""
    command = [sys.executable, "-m", "fusionlint", "check", "--output-format", "json", folder]
    began = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return Checked(folder, done, time.monotonic() - began)


def _fetch_by_pip(project: Project) -> None:
    from pip._internal.commands import create_command
    from pip._vendor.packaging.specifiers import SpecifierSet

    command = create_command("download")
    options, _ = command.parse_args(["--quiet", "--no-deps", "--no-binary", ":all:"])
    with command.main_context():
        session = command.get_default_session(options)
        finder = command._build_package_finder(options, session)
        found = finder.find_best_candidate(project.name, SpecifierSet(f"=={project.version}")).best_candidate
        if found is None:
            sys.exit(f"pip finds no source distribution of {project.name} {project.version}")
        answer = session.get(found.link.url_without_fragment)
        answer.raise_for_status()
    if hashlib.sha256(answer.content).hexdigest() != project.sha256:
        sys.exit(f"{found.link.filename} is not the file that was pinned")
    _unpack(answer.content, cached(project))


def _unpack(archive: bytes, folder: Path) -> None:
    """Appears whole or not at all: two test runs may fetch the same project."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as beside, tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        tar.extractall(beside, filter="data")
        with contextlib.suppress(OSError):  # the other run was faster
            (Path(beside) / folder.name).rename(folder)


if __name__ == "__main__":
    for name in sys.argv[1:] or PROJECTS:
        if not cached(PROJECTS[name]).exists():
            _fetch_by_pip(PROJECTS[name])
        print(cached(PROJECTS[name]))
