"""Which function of an earlier report is which of a later one, where they go by different names."""

from __future__ import annotations

import posixpath
from collections.abc import Collection, Mapping, Sequence


def earlier_names(then: Sequence[str], now: Sequence[str]) -> Mapping[str, str]:
    """The names that only the later side has -> what each was called: by its module instead of its file, else in a
    file of that name elsewhere. Only what is sure: one that could have been two was neither."""
    found: dict[str, str] = {}
    for alike in (_are_file_and_module, has_moved):
        old = [name for name in then if name not in now and name not in found.values()]
        new = [name for name in now if name not in then and name not in found]
        pairs = [(was, name) for was in old for name in new if alike(was, name)]
        known = [each for pair in pairs for each in pair]
        found |= {name: was for was, name in pairs if known.count(was) == known.count(name) == 1}
    return found


def kind_of(name: str, kinds: Mapping[str, str]) -> str | None:
    """Of the function `name`, whatever of these it goes by there."""
    alike = (kind for other, kind in kinds.items() if _are_file_and_module(other, name) or has_moved(other, name))
    return kinds[name] if name in kinds else next(alike, None)


def has_moved(was: str, name: str) -> bool:
    """`fit.py:step` and `fixed/fit.py:step` are one function, in a file that is elsewhere now."""
    then, now = was.rpartition(":"), name.rpartition(":")
    both_files = then[0].endswith(".py") and now[0].endswith(".py")
    return both_files and then[0] != now[0] and _called(then) == _called(now)


def as_moved(path: str, was: str, name: str, there: Collection[str]) -> str:
    """The file `path` of what the function `was` compiled, as it is called now that the function is `name`: as far as
    it is among those `there`. A file beside it has moved with it."""
    if not was or not path:
        return path
    then, now = (posixpath.dirname(one.rpartition(":")[0]) for one in (was, name))
    moved = posixpath.normpath(posixpath.join(now, posixpath.relpath(path, then or ".")))
    return moved if moved in there else path


def _called(name: tuple[str, str, str]) -> tuple[str, str]:
    return posixpath.basename(name[0]), name[2]


def _are_file_and_module(one: str, other: str) -> bool:
    return _is_file_of(one, other) or _is_file_of(other, one)


def _is_file_of(file: str, module: str) -> bool:
    """`src/pkg/env.py:step` is the file of `pkg.env:step`."""
    path, _, function = file.rpartition(":")
    dotted, _, called = module.rpartition(":")
    if not path.endswith(".py") or dotted.endswith(".py") or not dotted or function != called:
        return False
    return f".{path.removesuffix('.py').removesuffix('/__init__').replace('/', '.')}".endswith(f".{dotted}")
