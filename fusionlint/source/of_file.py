"""What is known of the files of a project before it is asked: found out in an earlier run, or in another process."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from fusionlint.source.asked import ByPath
from fusionlint.source.parts import Parts
from fusionlint.source.places import Place


class OfFile(NamedTuple):
    """What takes long to find out about one file of a project: the names of what its calls call, those that something
    compiled may be called by, and of a def that is, and what the file shows (`seen.py`), packed, for few runs ask for
    it."""

    names: Sequence[str | None]
    perhaps_compiled: Sequence[str]
    perhaps_wrapped: Sequence[str]
    seen: bytes


class Known(NamedTuple):
    """What is known of a project before it is asked: of some of its files or of all, what of other files that rests on,
    and of all together which functions are Pallas kernels."""

    files: Parts[OfFile]
    asked: Parts[ByPath]
    kernels: frozenset[Place] | None = None

    def only(self, paths: Iterable[str]) -> Known:
        """What is known of these files."""
        files = self.files.only(paths)
        return Known(files, self.asked.only(files))


NONE_KNOWN = Known(Parts({}, OfFile._make), Parts({}))
