"""What earlier runs found out, kept in a folder: the facts of files by their content, and the results of whole runs.

A file of the cache is written beside its place and then moved there, so a reader sees all of it or none, whoever else
writes and whenever it is killed. It begins with a checksum: one that was damaged counts as missing. Its content is
plain values in marshal's format, which can hold no object and run no code.
"""

from __future__ import annotations

import contextlib
import itertools
import marshal
import mmap
import os
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from hashlib import sha1
from pathlib import Path
from typing import Any, TypeVar, cast
from zlib import crc32

from fusionlint.source.kept import Joined, Kept, Notes, Run, Text, Texts
from fusionlint.source.parts import Parts, packed_parts

FOLDER = ".fusionlint_cache"
# Of so many runs (other files, other rules) the results are kept.
_RUNS = 16
# Of so many large components it is kept how they hang together.
_WORLDS = 32
# How their files begin, and those of the paths of the files that each is of.
_WORLD, _HOLDS = "world-", "paths-"
# How the file with the facts of all texts begins.
_PACKS = "packs-"
# So many of them, those with most of its files, are looked into for what is known of the files of another component.
_NEAR = 2
# What is new in less than one file of so many is kept beside what is known of all: to write that takes a while.
_FEW = 8
# So many bytes in front of a file of the cache are its checksum.
_CHECKED = 4

T = TypeVar("T")


def digest(*parts: bytes) -> bytes:
    """A short name for what the parts hold together. Nobody is to be kept from forging it, and every run makes one of
    each file: SHA-1 takes half the time of others, for most processors have instructions for it."""
    found = sha1(b"".join([len(part).to_bytes(8, "little") for part in parts]), usedforsecurity=False)
    for part in parts:
        found.update(part)
    return found.digest()


class _Noted:
    """Looks like `Notes`, each of which is read when it is asked for: most runs want few."""

    def __init__(self, packed: Mapping[str, bytes]) -> None:
        self._parts = Parts[Any](packed)

    def __getattr__(self, name: str) -> Any:
        return self._parts[name]


class DamagedError(Exception):
    """A part of a file of the cache is not what was written."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.path = path


class Cache:
    """A cache in `folder`. `damaged` are the files of it that could not be read and will be written anew."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.damaged: list[Path] = []
        self._together: dict[str, bytes] = {}  # the texts in the file of all, by path the digest of each
        self._packs: tuple[Path, mmap.mmap | bytes] = folder, b""
        self._last_run: Path | None = None

    def facts(self, key: bytes) -> Texts:
        """What is known of the texts of files; `key` is what that depends on besides. The facts themselves, many
        megabytes of which a run wants few, stay where they are."""
        name, self._together, packed = self._read(self._facts_file(key)) or ("", {}, {})
        try:
            self._packs = self.folder / name, _mapped(self.folder / name)
        except OSError:
            self._together, packed = {}, {}
        later = {path: Text._make(values) for path, values in (self._read(self._later_file(key)) or {}).items()}
        known = {**self._together, **{path: text.digest for path, text in later.items()}}
        return Texts(known, Parts(packed, Text._make).beside(later))

    def packed(self, text: Text) -> bytes:
        """The facts of a text. DamagedError where they are not what was kept."""
        if isinstance(text.facts, bytes):
            return text.facts
        file, packs = self._packs
        start, size, checksum = text.facts
        found = packs[start : start + size]
        if crc32(found) != checksum:
            raise DamagedError(file)
        return found

    def keep_facts(self, key: bytes, new: Mapping[str, Text], known: Texts, is_there: Callable[[str], bool]) -> None:
        """Keeps what is new, and what is known of other files; that beside the file of all texts, where only a few are
        not in it. That file is rid of what is no longer there: to ask for each takes longer than to keep it."""
        old = {path: content for path, content in known.digests.items() if path not in new}
        later = {path: text for path, text in new.items() if self._together.get(path) != text.digest}
        later.update({path: known.of[path] for path, content in old.items() if self._together.get(path) != content})
        if len(later) * _FEW < len(old) + len(new):
            found = {path: tuple(text._replace(facts=self.packed(text))) for path, text in later.items()}
            self._write(self._later_file(key), found)
            return
        paths = [path for path in (*old, *new) if path in later or is_there(path)]
        there = {path: new[path] if path in new else known.of[path] for path in paths}
        parts = [self.packed(text) for text in there.values()]
        starts = itertools.accumulate(map(len, parts), initial=0)
        name = f"{_PACKS}{key.hex()}.{digest(*parts).hex()}"
        self._replace(self.folder / name, parts)
        placed = {
            path: (text.digest, (start, len(part), crc32(part)), text.outline, text.imports)
            for (path, text), start, part in zip(there.items(), starts, parts, strict=False)
        }
        self._write(
            self._facts_file(key), (name, {path: text.digest for path, text in there.items()}, packed_parts(placed))
        )
        self._write(self._later_file(key), {})  # what was kept there is older now
        for kind, count in (("facts-", 1), ("later-", 1), (_PACKS, 2)):  # another run may be about to read the last
            self._leave(self.folder.glob(f"{kind}*"), count)

    def definition(self, outside: bytes) -> bytes | None:
        """What the rules and all their code are that look so from outside."""
        found: bytes | None = self._read(self._definition_file(outside))
        return found

    def keep_definition(self, outside: bytes, definition: bytes) -> None:
        """Keeps that."""
        self._write(self._definition_file(outside), definition)
        self._leave(self.folder.glob("code-*"), 1)

    def briefs(self, key: bytes) -> dict[str, tuple[Any, ...]] | None:
        """What is known of the rules, as plain values; `key` is what that depends on."""
        found: dict[str, tuple[Any, ...]] | None = self._read(self._briefs_file(key))
        return found

    def keep_briefs(self, key: bytes, found: dict[str, tuple[Any, ...]]) -> None:
        """Keeps that."""
        self._write(self._briefs_file(key), found)
        self._leave(self.folder.glob("rules-*"), 1)

    def run(self, settings: bytes, paths: bytes, *, or_another: bool) -> Run | None:
        """What the last run with these `settings` over these `paths` found, or else the last one over others."""
        file = self._run_file(settings, paths)
        self._last_run = self._newest(file.name.partition(".")[0]) if or_another and not file.exists() else file
        found = self._read(self._last_run)
        if found is None:
            return None
        seen, around, listed, kept = found
        return Run(seen, around, listed, {path: Kept(*one) for path, one in kept.items()})

    def notes(self, run: Run) -> Notes:
        """What was asked in the last run; nothing where that is of another one: two at once may have left one each."""
        found = self._read(self._notes_file(self._last_run)) if self._last_run else None
        if found is None or found[0] != _keys(run):
            return Notes({}, {}, {}, {}, [])
        return cast("Notes", _Noted(found[1]))

    def keep_run(self, settings: bytes, paths: bytes, run: Run, notes: Notes) -> None:
        """Keeps what a run found, and what was asked for that."""
        file = self._run_file(settings, paths)
        kept = {path: (one.key, one.found) for path, one in run.kept.items()}
        self._write(self._notes_file(file), (_keys(run), packed_parts(notes._asdict())))
        self._write(file, (run.seen, run.around, run.listed, kept))
        self._leave(self.folder.glob("run-*"), _RUNS)
        self._leave(self.folder.glob("notes-*"), _RUNS)

    def world(self, key: tuple[bytes, bytes], said: bytes) -> Joined | None:
        """What the files of a component say; None where that is not known. `said` is a digest of it all."""
        then, *found = self._read(self._world_file(key)) or (b"",)
        return Joined(*found) if then == said else None

    def other_worlds(self, key: tuple[bytes, bytes], paths: Collection[str]) -> Iterator[Joined]:
        """What the files of other components said that have some of `paths`, those with most of them first."""
        own, wanted, shared = self._holds_file(key), {*paths}, dict[Path, int]()
        for holds in _by_age(self.folder.glob(f"{own.name.partition('.')[0]}.*")):
            if holds != own and (count := len(wanted.intersection(self._read(holds) or ()))):
                shared[holds] = count
        for holds in sorted(shared, key=lambda holds: -shared[holds])[:_NEAR]:
            world = holds.with_name(holds.name.replace(_HOLDS, _WORLD, 1))
            if (found := self._read(world)) is not None:
                with contextlib.suppress(OSError):
                    for file in (world, holds):
                        file.touch()  # to be left: what others are made of is worth more than what was made last
                _, *values = found
                yield Joined(*values)

    def keep_world(self, key: tuple[bytes, bytes], said: bytes, joined: Joined) -> None:
        """Keeps that in place of what the component said before."""
        self._write(self._world_file(key), (said, *joined))
        self._write(self._holds_file(key), (*joined.heard,))
        for kind in (_WORLD, _HOLDS):
            self._leave(self.folder.glob(f"{kind}*"), _WORLDS)

    def _world_file(self, key: tuple[bytes, bytes]) -> Path:
        return self.folder / f"{_WORLD}{key[0].hex()}.{key[1].hex()}"

    def _holds_file(self, key: tuple[bytes, bytes]) -> Path:
        return self.folder / f"{_HOLDS}{key[0].hex()}.{key[1].hex()}"

    def _briefs_file(self, key: bytes) -> Path:
        return self.folder / f"rules-{key.hex()}"

    def _definition_file(self, outside: bytes) -> Path:
        return self.folder / f"code-{outside.hex()}"

    def _facts_file(self, key: bytes) -> Path:
        return self.folder / f"facts-{key.hex()}"

    def _later_file(self, key: bytes) -> Path:
        return self.folder / f"later-{key.hex()}"

    def _run_file(self, settings: bytes, paths: bytes) -> Path:
        return self.folder / f"run-{settings.hex()}.{paths.hex()}"

    def _notes_file(self, run: Path) -> Path:
        return run.with_name(run.name.replace("run-", "notes-", 1))

    def _newest(self, name: str) -> Path:
        """The newest run with these settings; a file that is not there, where there is none."""
        return next(iter(_by_age(self.folder.glob(f"{name}.*"))), self.folder / name)

    def _read(self, path: Path) -> Any:
        try:
            data = path.read_bytes()
        except OSError:
            return None
        content = memoryview(data)[_CHECKED:]
        if _checksum(content) != data[:_CHECKED]:
            self.drop(path)
            return None
        return marshal.loads(content)  # noqa: S302 - the checksum holds, and plain values run no code

    def _write(self, path: Path, content: Any) -> None:
        """Write a file of the cache; where that cannot be done there is none, and the next run finds out again."""
        data = marshal.dumps(content)
        self._replace(path, (_checksum(data), data))

    def _replace(self, path: Path, parts: Iterable[bytes]) -> None:
        with contextlib.suppress(OSError):
            self.folder.mkdir(parents=True, exist_ok=True)
            ignore = self.folder / ".gitignore"
            if not ignore.exists():
                ignore.write_text("# Made by fusionlint; can be deleted at any time.\n*\n")
            beside = self.folder / f".new-{os.getpid()}-{time.monotonic_ns()}"  # tempfile takes longer to import
            try:
                with beside.open("xb") as file:
                    file.writelines(parts)
                beside.replace(path)
            except BaseException:
                beside.unlink()
                raise

    def drop(self, path: Path) -> None:
        """A file of the cache is damaged: it is deleted, and will be made anew."""
        self.damaged.append(path)
        with contextlib.suppress(OSError):
            path.unlink()  # not every run would write it anew, and each would say so

    def _leave(self, paths: Any, count: int) -> None:
        """Delete all but the newest of `paths`; another run may be doing the same."""
        found = [*paths]
        with contextlib.suppress(OSError):
            for path in _by_age(found)[count:] if len(found) > count else ():
                path.unlink()


def undamaged(cache: Cache | None, find: Callable[[], T]) -> T:
    """What is found with the help of a cache; once more, without a file of it that turns out to be damaged."""
    try:
        return find()
    except DamagedError as found:
        assert cache is not None  # a file of it is damaged
        cache.drop(found.path)
        return find()


def _checksum(content: bytes | memoryview) -> bytes:
    """What shows that a file was damaged; of the many megabytes of facts a digest takes longer than to read them."""
    return crc32(content).to_bytes(_CHECKED, "little")


def _mapped(path: Path) -> mmap.mmap | bytes:
    """What a file holds, of which only what is asked for is read; it stays so when the file is replaced. OSError where
    there is none."""
    with path.open("rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if path.stat().st_size else b""


def _by_age(paths: Iterable[Path]) -> list[Path]:
    """The newest first; none where one went meanwhile."""
    with contextlib.suppress(OSError):
        return sorted(paths, key=lambda path: path.stat().st_mtime, reverse=True)
    return []


def _keys(run: Run) -> bytes:
    """A digest of what the results of a run hold for."""
    return digest(*(key for path, one in sorted(run.kept.items()) for key in (path.encode(), one.key)))
