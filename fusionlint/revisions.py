"""A git revision and SPECs -> what `explain` says of them there, as JSON: in a worktree of its own in a temporary
folder, which goes away again. The user's checkout and index are left as they are."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fusionlint.compiling import alone
from fusionlint.compiling.owners import installed

# What git sets for its hooks: with these, a command about the worktree would be one about the user's checkout.
_HOOKS = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX")


class RevisionError(ValueError):
    """A revision that cannot be explained; the message is one line."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What to explain: SPECs as from the folder `cwd`, on the targets of these names, each given `timeout` seconds;
    `dims` are the sizes of annotations, and `mesh` the devices, as the command line has them."""

    specs: tuple[str, ...]
    targets: tuple[str, ...]
    timeout: float
    cwd: Path
    dims: tuple[str, ...] = ()
    mesh: str = ""


def commit_of(revision: str, cwd: Path) -> str:
    """The commit that `revision` names in the repository around `cwd`. Raises RevisionError."""
    top = top_of(cwd)
    if top is None:
        raise RevisionError(f"{revision} is no file, and no git revision either: {cwd} is in no repository")
    wanted = f"{revision}^{{commit}}"
    done = _git("rev-parse", "--verify", "--quiet", "--end-of-options", wanted, cwd=cwd)
    if done.returncode or revision.startswith("-"):
        raise RevisionError(f"{revision} is neither a file nor a revision of the git repository {top}")
    return done.stdout.strip()


def top_of(cwd: Path) -> Path | None:
    """The top folder of the repository around `cwd`; None without one."""
    done = _git("rev-parse", "--show-toplevel", cwd=cwd)
    return Path(done.stdout.strip()).resolve() if done.returncode == 0 else None


def explained_at(revision: str, asked: Asked) -> dict[str, Any]:
    """The JSON of `explain` for the code as it was at `revision`. Raises RevisionError."""
    commit = commit_of(revision, asked.cwd)
    top = top_of(asked.cwd)
    assert top is not None
    with _worktree(commit, top) as worktree:
        below = asked.cwd.resolve().relative_to(top)
        if not (worktree / below).is_dir():
            raise RevisionError(f"{revision} has no folder {below}")
        environment = {**_environment(), "PYTHONPATH": os.pathsep.join(_import_paths(top, worktree))}
        document = _explain(
            asked, worktree / below, environment, tuple(_below(spec, top, asked.cwd) for spec in asked.specs)
        )
    _check_what_was_compiled(document, revision, top, worktree)
    # Messages are those of both sides where they are the same: the temporary folder's name must not stand in them.
    return {**document, "errors": [error.replace(f"{worktree}{os.sep}", "") for error in document["errors"]]}


def explained_here(asked: Asked) -> dict[str, Any]:
    """The JSON of `explain` for the code as it is in the working folder, committed or not."""
    return _explain(asked, asked.cwd, {**os.environ, "PYTHONPATH": os.pathsep.join(_own_paths())}, asked.specs)


def _explain(asked: Asked, cwd: Path, environment: Mapping[str, str], specs: Sequence[str]) -> dict[str, Any]:
    specs = [_where_it_is(spec, cwd) for spec in specs]
    command = [*alone.command("fusionlint", "explain", "--output-format", "json", f"--timeout={asked.timeout}")]
    command += [*(f"--target={name}" for name in asked.targets), *(f"--dim={dim}" for dim in asked.dims)]
    command += [f"--mesh={asked.mesh}"] if asked.mesh else []
    command += ["--", *specs]
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False)  # noqa: S603
    try:
        document: dict[str, Any] = json.loads(done.stdout)
    except ValueError:
        words = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
        raise RevisionError(words[-1].removeprefix("fusionlint: ")) from None
    return {**document, "failures": [_not_sure(failure, cwd) for failure in document["failures"]]}


@contextmanager
def _worktree(commit: str, top: Path) -> Iterator[Path]:
    """A checkout of the commit, for as long as the block runs. Hooks of the repository do not run."""
    with tempfile.TemporaryDirectory(prefix="fusionlint-") as home:
        folder = Path(home).resolve() / top.name
        quiet = ("-c", f"core.hooksPath={os.devnull}")
        made = _git(*quiet, "worktree", "add", "--quiet", "--detach", str(folder), commit, cwd=top)
        try:
            if made.returncode:
                words = made.stderr.strip().splitlines() or ["no reason given"]
                raise RevisionError(f"git made no worktree of {commit[:12]}: {words[-1]}")
            yield folder
        finally:
            _git("worktree", "remove", "--force", str(folder), cwd=top)


def _git(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(  # noqa: S603
            ["git", *arguments],  # noqa: S607  the user's own git
            cwd=cwd,
            env=_environment(),
            capture_output=True,
            text=True,
            check=False,
        )
    except FileNotFoundError:
        raise RevisionError("git is not installed: give two reports or recordings") from None


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name not in _HOOKS}


def _import_paths(top: Path, worktree: Path) -> Iterator[str]:
    """Where Python is to look first: what it would take from the checkout, as after `pip install -e`, it takes from the
    worktree, and `src/` of it in any case, as some installers leave no path to be seen."""
    here = (Path(entry).resolve() for entry in sys.path if entry)
    there = [worktree / entry.relative_to(top) for entry in here if entry.is_relative_to(top)]
    yield from (str(entry) for entry in dict.fromkeys([*there, worktree / "src"]) if entry.is_dir())
    yield from _own_paths()


def _own_paths() -> Iterator[str]:
    """Those that are set already, and where this package is."""
    yield from filter(None, (os.environ.get("PYTHONPATH"), str(Path(__file__).parents[1])))


def _below(spec: str, top: Path, cwd: Path) -> str:
    """A SPEC that is a full path into the checkout, from the working folder: so it is one into the worktree too."""
    path = Path(spec.partition(".py:")[0])
    if not path.is_absolute() or not path.resolve().is_relative_to(top):
        return spec
    return os.path.relpath(path.resolve(), cwd.resolve()) + spec[len(str(path)) :]


def _where_it_is(spec: str, cwd: Path) -> str:
    """A SPEC of a file that is not there, in the one file of that name that the repository has around `cwd`: it may
    have moved between the revisions."""
    found = _elsewhere(spec, cwd)
    return f"{found[0]}:{spec.partition('.py:')[2]}" if len(found) == 1 else spec


def _elsewhere(spec: str, cwd: Path) -> list[str]:
    """The files of that name around `cwd`, where the SPEC's own is not there."""
    name, dot, _ = spec.partition(".py:")
    path = Path(f"{name}.py")
    if not dot or (cwd / path).exists():
        return []
    listed = _git("ls-files", "-z", "--", f":(top,glob)**/{path.name}", cwd=cwd).stdout.split("\0")
    return [other for other in listed if other]


def _not_sure(failure: Mapping[str, Any], cwd: Path) -> Mapping[str, Any]:
    """A function whose file may be one of several by now is not known to be absent."""
    absent = failure["kind"] == "absent"
    return {**failure, "kind": "entry"} if absent and _elsewhere(failure["entry"], cwd) else failure


def _check_what_was_compiled(document: Mapping[str, Any], revision: str, top: Path, worktree: Path) -> None:
    """Both sides would be the same code, and nothing would ever change, if imports led into the user's checkout."""
    for report in document["reports"]:
        for name in report["lines"]:
            path = Path(name)
            in_checkout = path.is_relative_to(top) and not path.is_relative_to(worktree)
            if in_checkout and not installed(name):
                raise RevisionError(
                    f"{report['entry']} took {path.relative_to(top)} from your checkout, not from {revision}: name the "
                    f"function by its path, as in `{path.relative_to(top)}:function(...)`"
                )
