"""Files -> [Finding]: reads what changed, joins what is known, asks the rules where they could find something.

A file that cannot be read or parsed becomes a Problem; the others are checked all the same. What a run finds does not
depend on the number of its processes, on the order of files, or on what is remembered of earlier runs.
"""

from __future__ import annotations

import gc
import importlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import active_children, get_context, parent_process
from multiprocessing.connection import wait
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from fusionlint.finding import Finding, Problem
from fusionlint.rule import broken, definition
from fusionlint.source.cache import Cache, Kept, Run, Text, digest, packed, packed_problem, unpacked
from fusionlint.source.components import components
from fusionlint.source.facts import Facts, Raw
from fusionlint.source.files import listed, listing, look_again, module_name, path_in_project
from fusionlint.source.read import facts_of, read_text
from fusionlint.source.scope import Scope
from fusionlint.source.texts import text_of
from fusionlint.source.world import World, join

if TYPE_CHECKING:
    from fusionlint.source.judging import Checked

# Below this many files a pool costs more than it saves.
_WORTH_A_POOL = 24

# Told again and again how many files of how many have been looked into.
Progress = Callable[[int, int], None]
R = TypeVar("R")


def _silent(_done: int, _of: int) -> None:
    """Nobody wants to know."""


@dataclass(frozen=True, slots=True)
class Result:
    """What one run found; `files` counts those it was asked to check. What `problems` name was not checked, what
    `warnings` name was."""

    findings: tuple[Finding, ...]
    problems: tuple[Problem, ...]
    warnings: tuple[Problem, ...]
    files: int


def check_files(
    paths: Sequence[Path],
    scope: Scope,
    jobs: int = 1,
    cache: Cache | None = None,
    progress: Progress = _silent,
) -> Result:
    """The findings of all rules of `scope` in the files `paths`, sorted by place."""
    with _without_collection():
        look_again()
        contents = {str(path): _content(path) for path in sorted(paths)}
        seen = {path: _seen(path, content) for path, content in contents.items() if isinstance(content, bytes)}
        key = (b"", b"") if cache is None else (_settings(scope), digest(*(path.encode() for path in contents)))
        run = None if cache is None else cache.run(*key)
        if run is None or not _still_holds(run, contents, seen):
            run = _run(contents, seen, scope, jobs, cache, run, progress)
            if cache is not None:
                cache.keep_run(*key, run)
        return _result(run, contents, cache)


def world_of(paths: Iterable[Path]) -> World:
    """What the files say together, by their facts alone."""
    found = {str(path): _read(str(path))[1] for path in paths}
    return join({path: facts_of(Raw.unpacked(one.facts), path) for path, one in found.items() if isinstance(one, Text)})


def _result(run: Run, contents: dict[str, bytes | Problem], cache: Cache | None) -> Result:
    """The results of all files of a run, and what is wrong with the rules and the cache themselves."""
    findings, problems, warnings = ([value for kept in run.kept.values() for value in kept.found[i]] for i in range(3))
    unread = [content for content in contents.values() if isinstance(content, Problem)]
    unread += [Problem(package, 0, f"its rules cannot be used: {why}") for package, why in broken()]
    damaged = [Problem(str(path), 0, "was damaged; it is made anew") for path in (cache.damaged if cache else ())]
    return Result(
        tuple(sorted(map(unpacked, findings), key=lambda f: (f.location, f.rule, f.message))),
        tuple(sorted([*unread, *(Problem(*values) for values in problems)])),
        tuple(sorted([*damaged, *(Problem(*values) for values in warnings)])),
        len(contents),
    )


def _settings(scope: Scope) -> bytes:
    """What the results of a run depend on, besides its files."""
    return digest(definition(), repr(scope).encode(), str(Path.cwd()).encode())


def _content(path: Path) -> bytes | Problem:
    """A digest of a file's content."""
    try:
        return digest(text_of(path))
    except OSError as error:
        return Problem(str(path), 0, f"cannot be read: {error.strerror}")


def _seen(path: str, content: bytes) -> bytes:
    """A digest of a file: its content, and what it is called."""
    return digest(content, path_in_project(Path(path)).encode(), module_name(Path(path)).encode())


def _still_holds(run: Run, contents: dict[str, bytes | Problem], seen: dict[str, bytes]) -> bool:
    """Whether nothing has changed since: no file, none of those around, and no folder that says where those are."""
    if any(isinstance(content, Problem) for content in contents.values()):
        return False
    around = {path: _content(Path(path)) for path in run.around}
    return seen == run.seen and around == run.around and all(listing(Path(f)) == n for f, n in run.listed.items())


def _run(
    contents: dict[str, bytes | Problem],
    seen: dict[str, bytes],
    scope: Scope,
    jobs: int,
    cache: Cache | None,
    last: Run | None,
    progress: Progress,
) -> Run:
    """The results of all files: those of the last run where they still hold, else new ones."""
    readable = {path: content for path, content in contents.items() if isinstance(content, bytes)}
    known = _Known(cache)
    failed = known.read(readable, jobs)
    facts = {path: known.facts(path) for path in readable if path not in failed}
    world = join(facts, known.facts_around)
    around = {path: known.texts[path].digest for path in world.project.files.keys() - facts.keys()}
    known.keep({**readable, **around})
    outlines = components(world.project, {path: known.texts[path].outline for path in world.project.files})
    keys = {path: digest(seen[path], outlines[path]) for path in facts}
    kept = {path: Kept(seen[path], ((), (packed_problem(problem),), ())) for path, problem in failed.items()}
    kept |= {path: one for path in facts if last and (one := last.kept.get(path)) and one.key == keys[path]}
    todo = sorted(facts.keys() - kept.keys(), key=_size, reverse=True)
    for path, found in _judge(todo, _Shared(world, scope), jobs, progress):
        kept[path] = Kept(keys[path], found)
    return Run(seen, around, listed(), {path: kept[path] for path in readable})


def _size(path: str) -> tuple[int, str]:
    try:
        return Path(path).stat().st_size, path
    except OSError:
        return 0, path


class _Known:
    """The texts that have been read: in this run, or by earlier ones."""

    def __init__(self, cache: Cache | None) -> None:
        self.cache = cache
        self.texts: dict[str, Text] = {}
        self._key = definition() if cache else b""
        self._stored = cache.facts(self._key) if cache else {}
        self._is_new = False

    def read(self, contents: dict[str, bytes], jobs: int) -> dict[str, Problem]:
        """Reads the facts of files that are not known by their content. What is wrong with some of them."""
        for path, content in contents.items():
            self._take(path, content)
        todo = sorted(contents.keys() - self.texts.keys(), key=_size, reverse=True)
        found = _map(_read, todo, jobs)
        self.texts |= {path: one for path, one in found if isinstance(one, Text)}
        self._is_new |= bool(todo)
        return {path: one for path, one in found if isinstance(one, Problem)}

    def facts(self, path: str) -> Facts:
        return facts_of(Raw.unpacked(self.texts[path].facts), path)

    def facts_around(self, path: Path) -> Facts | None:
        """The facts of a file that is not checked, None where there are none."""
        name, content = str(path), _content(path)
        if isinstance(content, Problem):
            return None
        self._take(name, content)
        if name not in self.texts:
            self._is_new = True
            _, read = _read(name)
            if isinstance(read, Problem):
                return None
            self.texts[name] = read
        return self.facts(name)

    def keep(self, contents: Iterable[str]) -> None:
        """Leaves in the cache what this run read, and what others did of files that are still there."""
        if self.cache is None or not self._is_new:
            return
        now = {path: self.texts[path] for path in contents if path in self.texts}
        others = {path: one for path, one in self._stored.items() if path not in now and Path(path).exists()}
        self.cache.keep_facts(self._key, {**others, **now})

    def _take(self, path: str, content: bytes) -> None:
        stored = self._stored.get(path)
        if stored is not None and stored.digest == content:
            self.texts[path] = stored


def _read(path: str) -> tuple[str, Text | Problem]:
    """The facts of a file, as they travel between processes."""
    try:
        data = text_of(path)
    except OSError as error:
        return path, Problem(path, 0, f"cannot be read: {error.strerror}")
    raw = read_text(data, path)
    return path, raw if isinstance(raw, Problem) else Text(digest(data), raw.packed(), digest(raw.outline()))


class _Shared(NamedTuple):
    """What all processes that ask the rules know."""

    world: World
    scope: Scope


def _judge(
    paths: Sequence[str], shared: _Shared, jobs: int, progress: Progress
) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """What the rules say of each file, as plain values."""
    global _shared
    if not paths:
        return
    importlib.import_module("fusionlint.source.judging")  # once, before there are several processes
    _shared = shared
    gc.freeze()
    yield from _map(_judge_one, paths, jobs, progress)
    _shared = None


# What this process checks with: set once a run, and inherited by each process of a pool.
_shared: _Shared | None = None


def _judge_one(path: str) -> tuple[str, tuple[Any, ...]]:
    from fusionlint.source.judging import check_file

    assert _shared is not None
    found = _plain(check_file(path, _shared.scope, _shared.world))
    gc.collect(0)  # a tree and its positions refer to each other; only what this file made is looked through
    return path, found


def _plain(checked: Checked) -> tuple[Any, ...]:
    problems, warnings = checked.problems, checked.warnings
    return (
        tuple(map(packed, checked.findings)),
        tuple(map(packed_problem, problems)),
        tuple(map(packed_problem, warnings)),
    )


def _map(
    function: Callable[[str], tuple[str, R]],
    paths: Sequence[str],
    jobs: int,
    progress: Progress = _silent,
) -> list[tuple[str, R]]:
    """`map`, in `jobs` processes where there is more than one. A file on which a process dies has a Problem instead."""
    found: list[tuple[str, R]] = []
    if jobs == 1 or len(paths) < _WORTH_A_POOL:
        for path in paths:
            found.append(function(path))
            progress(len(found), len(paths))
        return found
    chunk = max(1, len(paths) // (jobs * 64))
    with _pool(jobs) as pool:
        # Not `pool.map`: what it cancels when the user interrupts, the pool's own thread then stumbles over.
        parts = [pool.submit(_several, function, paths[i : i + chunk]) for i in range(0, len(paths), chunk)]
        try:
            for part in parts:
                found += part.result()
                progress(len(found), len(paths))
        except BrokenProcessPool:
            pass
    done = {path for path, _ in found}
    return found + [_alone(function, path) for path in paths if path not in done]


def _several(function: Callable[[str], tuple[str, R]], paths: Sequence[str]) -> list[tuple[str, R]]:
    return [function(path) for path in paths]


def _alone(function: Callable[[str], tuple[str, R]], path: str) -> tuple[str, R]:
    """`function` in a process of its own, which may die."""
    with _pool(1) as pool:
        try:
            return pool.submit(function, path).result()
        except BrokenProcessPool:
            return path, _died(function, path)


def _died(function: Callable[..., Any], path: str) -> Any:
    problem = Problem(path, 0, "ends the process that parses it: it is nested too deeply")
    return problem if function is _read else ((), (packed_problem(problem),), ())


@contextmanager
def _pool(jobs: int) -> Iterator[ProcessPoolExecutor]:
    """Processes that know `_shared`, and leave at once when the user interrupts."""
    context = get_context("fork" if _can_copy() else "spawn")
    pool = ProcessPoolExecutor(jobs, context, initializer=_begin, initargs=(_handed_over(),))
    try:
        yield pool
    except BaseException:
        for process in active_children():
            process.terminate()
        pool.shutdown(wait=False)
        raise
    pool.shutdown()


def _handed_over() -> _Shared | None:
    """What a new process has to be sent: nothing, where it begins as a copy of this one."""
    return None if _can_copy() else _shared


def _can_copy() -> bool:
    """Whether a process can begin as a copy of this one: not where jax has threads of its own."""
    return sys.platform == "linux" and "jax" not in sys.modules


def _begin(shared: _Shared | None) -> None:
    global _shared
    if shared is not None:
        _shared = shared
    gc.disable()
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    threading.Thread(target=_end_with_the_run, daemon=True).start()


def _end_with_the_run() -> None:
    """Ends this process when the one that started it is gone, however that came: nobody would stop it."""
    if run := parent_process():
        wait([run.sentinel])
        os._exit(1)


@contextmanager
def _without_collection() -> Iterator[None]:
    """Little that a run makes is garbage before it ends: to look for some again and again takes a fifth of its time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.unfreeze()
        if was_on:
            gc.enable()
