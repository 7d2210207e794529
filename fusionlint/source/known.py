"""What the texts of files say, as far as a run has read them: in this run, or by what an earlier one kept."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path

from fusionlint.finding import Problem
from fusionlint.rule import definition
from fusionlint.source.cache import Cache, digest
from fusionlint.source.components import Leaf
from fusionlint.source.facts import Facts, absolute
from fusionlint.source.kept import Text, Texts
from fusionlint.source.processes import map_files
from fusionlint.source.read import facts_of, read_text
from fusionlint.source.stand import stand
from fusionlint.source.texts import text_of

# So many texts are kept that files no longer have: another run of this cache saw them last, and compares with them.
_REPLACED = 64
# What they are called there, in place of a path.
_WAS = "replaced "


class Known:
    """The texts that are known, by path, beside those that earlier runs left in the cache."""

    def __init__(self, cache: Cache | None) -> None:
        self.texts: dict[str, Text] = {}
        self.leaves: dict[str, Leaf] = {}
        self.unread: dict[str, bytes] = {}  # what files that are not checked hold, where they could not be read
        self._kept = cache.facts(definition()) if cache else Texts({}, {})
        # Facts are of a text, wherever it stands: below another folder, or called otherwise, it says the same.
        self._by_content = {content: path for path, content in self._kept.digests.items()}
        self._cache = cache
        self._is_new = False

    def read(self, contents: Mapping[str, bytes], jobs: int) -> dict[str, Problem]:
        """Reads the files whose digests are not known, `contents` being those of now. What is wrong with some."""
        for path, content in contents.items():
            self._take(path, content)
        todo = sorted(contents.keys() - self.texts.keys(), key=size, reverse=True)
        found = map_files(_read, todo, jobs, died)
        self.texts |= {path: one for path, one in found if isinstance(one, Text)}
        self._is_new |= bool(todo)
        return {path: one for path, one in found if isinstance(one, Problem)}

    def read_beside(self, paths: Iterable[str], jobs: int) -> list[str]:
        """Reads files that are not checked. Those that could be read."""
        contents = {path: content for path in paths if isinstance(content := content_of(path), bytes)}
        failed = self.read(contents, jobs)
        self.unread.update((path, contents[path]) for path in failed)
        return [path for path in contents if path not in failed]

    def facts(self, path: str) -> Facts:
        return facts_of(partial(self.packed, path), path)

    def packed(self, path: str) -> bytes:
        """The facts of a file's text, as they are kept."""
        return self.packed_of(self.texts[path])

    def packed_of(self, text: Text) -> bytes:
        """Those of any text. DamagedError where the cache no longer has them."""
        if isinstance(text.facts, bytes):
            return text.facts
        assert self._cache is not None  # it said where they are
        return self._cache.packed(text)

    def leaf(self, path: str) -> Leaf:
        """What of a file says which others it is connected with."""
        if path not in self.leaves:
            self.leaves[path] = self._leaf(path)
        return self.leaves[path]

    def _leaf(self, path: str) -> Leaf:
        text = self.texts[path]
        inside, module, of_package, near, _ = stand(path)
        imports = tuple(
            # The most are absolute, which takes no looking at.
            absolute(target, module, near, is_package=of_package) if near or target.startswith(".") else target
            for target in text.imports
        )
        return Leaf(module, inside, imports, text.outline)

    def leaf_around(self, name: str) -> Leaf | None:
        """That of a file that is not checked; None for one that cannot be read."""
        content = content_of(name)
        if isinstance(content, Problem):
            return None
        self._take(name, content)
        if name not in self.texts:
            self._is_new = True
            _, read = _read(name)
            if isinstance(read, Problem):
                self.unread[name] = content
                return None
            self.texts[name] = read
        return self.leaf(name)

    def is_still(self, name: str, content: bytes) -> bool:
        """Whether a file that is not checked holds what it held, and that is known."""
        if content_of(name) == content:
            self._take(name, content)
        return name in self.texts

    def keep(self, contents: Iterable[str]) -> None:
        """Leaves in the cache what this run read, and what others did."""
        if self._cache is None or not self._is_new:
            return
        now = {path: self.texts[path] for path in contents if path in self.texts}
        kept = self._kept.digests
        others = {path: content for path, content in kept.items() if path not in now and not path.startswith(_WAS)}
        have = {*others.values(), *(text.digest for text in now.values())}
        replaced = [path for path, content in kept.items() if content not in have][-_REPLACED:]
        named = {f"{_WAS}{kept[path].hex()}": self._kept.of[path] for path in replaced}
        self._cache.keep_facts(definition(), {**named, **now}, Texts(others, self._kept.of), _is_there)

    def of_content(self, content: bytes) -> Text | None:
        """The text of a file by the digest of what it holds, or held."""
        path = self._by_content.get(content)
        return None if path is None else self._kept.of[path]

    def _take(self, path: str, content: bytes) -> None:
        stored = self.of_content(content)
        if stored is not None:
            self.texts[path] = stored


def content_of(path: str) -> bytes | Problem:
    """A digest of a file's content."""
    if (shown := path.encode(errors="backslashreplace").decode()) != path:
        return Problem(shown, 0, "is not checked: its name is not UTF-8")  # what a cache, or JSON, could not hold
    try:
        return digest(text_of(path))
    except OSError as error:
        return Problem(path, 0, f"cannot be read: {error.strerror}")


def _is_there(path: str) -> bool:
    return path.startswith(_WAS) or Path(path).exists()


def size(path: str) -> tuple[int, str]:
    """How large a file is, in bytes, and its path: something to sort by."""
    try:
        return Path(path).stat().st_size, path
    except OSError:
        return 0, path


def died(path: str) -> Problem:
    """That a process died of a file."""
    return Problem(path, 0, "ends the process that parses it: it is nested too deeply")


def _read(path: str) -> tuple[str, Text | Problem]:
    """The facts of a file, as they travel between processes."""
    try:
        data = text_of(path)
    except OSError as error:
        return path, Problem(path, 0, f"cannot be read: {error.strerror}")
    raw = read_text(data, path)
    if isinstance(raw, Problem):
        return path, raw
    return path, Text(digest(data), raw.packed(), digest(raw.outline()), tuple(dict.fromkeys(raw.imports())))
