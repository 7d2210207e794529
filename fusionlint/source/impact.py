"""Which files another text of some files can matter to, judged by the names that both write.

Whatever one file learns of another it learns along names: it calls, imports, wraps or inherits what is called so
there, or is called so itself. What changed is followed along equal names, both to what mentions it and to what it
mentions, whatever they stand for: that finds too many files at times, and never too few.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from fusionlint.source.facts import Raw, RawValue

# What marshal writes before a string: its kind and, in one byte or in four, its length.
_SHORT, _LONG = frozenset(b"zZ\xfa\xda"), frozenset(b"aAtu\xe1\xc1\xf4\xf5")
# What a module's name begins with, dots included, where it is ASCII.
_FIRST = frozenset(b"._abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
# Where so many names may have changed their meaning, any file may.
_TOO_MANY = 400


class Unit(NamedTuple):
    """A function, or a name that a module or class binds: what it is called, with what it stands in, the names that
    it mentions, and what it says, for comparison. An import only hands names on."""

    names: frozenset[str]
    mentions: frozenset[str]
    said: Any
    is_import: bool = False


def affected(
    before: Mapping[str, Raw], after: Mapping[str, Raw], others: Mapping[str, bytes], text: Callable[[str], bytes]
) -> set[str] | None:
    """The files among `others` to which it may matter that those of `before` are as in `after` now; None for any of
    them. `others` has their packed facts, `text` says what a file holds."""
    changed = [unit for path in before for unit in _changed(list(units(before[path])), list(units(after[path])))]
    if any(name.startswith("*") for unit in changed for name in unit.names):
        return None  # what comes by a star is called as anything is there
    called = {name for unit in changed for name in unit.names}
    texts = _Texts(others, text)
    up = _spread((n for unit in changed for n in unit.mentions), texts, lambda u: (u.names, u.mentions))
    down = _spread(called, texts, lambda u: (u.mentions, u.names))
    if up is None or down is None:
        return None
    # What reads a name otherwise than facts keep: `if settings.DEBUG`, or `if DEBUG` of what came by an import or star.
    found, reached = down
    return up[0] | found | {path for path in others if reached and texts.may_read(path, reached)}


def _changed(before: list[Unit], after: list[Unit]) -> Iterator[Unit]:
    old, new = Counter(before), Counter(after)
    yield from (old - new) + (new - old)


class _Texts:
    """The facts of files, unpacked when they are asked for."""

    def __init__(self, packed: Mapping[str, bytes], text: Callable[[str], bytes]) -> None:
        self.packed = packed
        self._text = text
        self._raw: dict[str, Raw] = {}
        self._units: dict[str, list[Unit]] = {}

    def units(self, path: str) -> list[Unit]:
        if path not in self._units:
            self._units[path] = list(units(self._of(path)))
        return self._units[path]

    def may_read(self, path: str, names: set[str]) -> bool:
        """Whether a file imports one of `names`, has it by a star, or reads it as an attribute of anything."""
        packed, sought = self.packed[path], [name.encode() for name in names]
        if _has_star(packed) and any(name in self._text(path) for name in sought):
            return True  # facts keep no plain reads of what nobody in the file binds
        if not any(name in packed for name in sought):
            return False
        raw = self._of(path)
        imports = (name for bound in raw.bindings.values() for name, (kind, *_) in bound.items() if kind == "import")
        return not raw.attributes.isdisjoint(names) or any(name in names for name in imports)

    def _of(self, path: str) -> Raw:
        if path not in self._raw:
            self._raw[path] = Raw.unpacked(self.packed[path])
        return self._raw[path]


def _has_star(packed: bytes) -> bool:
    """Whether packed facts have an import by a star, which they keep under the name `*module`."""
    at = packed.find(b"*")
    while at >= 0:
        follows = packed[at + 1] if at + 1 < len(packed) else 0
        if (follows in _FIRST or follows > 127) and (packed[at - 2] in _SHORT or packed[at - 5] in _LONG):
            return True
        at = packed.find(b"*", at + 1)
    return False


def _spread(
    names: Iterable[str], texts: _Texts, ends: Callable[[Unit], tuple[frozenset[str], frozenset[str]]]
) -> tuple[set[str], set[str]] | None:
    """The files with units that are reached from `names`, and the names that are: a unit that has one of them at its
    first end has what is at its second reached as well."""
    reached, found = set[str](), set[str]()
    new = set(names)
    while new:
        reached |= new
        if len(reached) > _TOO_MANY:
            return None
        sought, new = [name.encode() for name in new], set()
        for path, packed in texts.packed.items():
            if not any(name in packed for name in sought):
                continue
            for unit in texts.units(path):
                first, second = ends(unit)
                if not first.isdisjoint(reached):
                    new |= second - reached
                    if not unit.is_import:
                        found.add(path)
    return found, reached


def units(raw: Raw) -> Iterator[Unit]:
    """What a file is made of, as far as its facts say."""
    calls: dict[str, list[tuple[Any, int]]] = {scope: [] for scope in raw.functions}
    loose: list[tuple[Any, int]] = []  # those of code that stands in no function
    for called, in_scope, loops, _ in raw.calls:
        calls.get(in_scope, loose).append((called, len(loops)))
    for scope, (_, decorators, parameters, returns, owner) in raw.functions.items():
        names = raw.bindings.get(scope, {})
        is_kept = ("kept in self", scope) in raw.shapes
        bindings = tuple(sorted(names.items()))
        said = (scope, decorators, parameters, returns, owner, bindings, tuple(calls[scope]), is_kept)
        bound = (one for _, target, value in names.values() for one in (target, value))
        values = (*decorators, *returns, *(value for value, _ in calls[scope]), *bound)
        yield Unit(frozenset(_parts(scope)), frozenset(_mentioned(values, names)), said)
    for scope, (bases, wrappers) in raw.classes.items():
        yield Unit(frozenset(_parts(scope)), frozenset(_mentioned([*bases, *wrappers])), (scope, bases, wrappers))
    for scope in raw.bindings.keys() - raw.functions.keys():
        for name, (kind, target, value) in raw.bindings[scope].items():
            says = scope, name, kind, target, value
            mentions = frozenset(_mentioned([target, value]))
            yield Unit(frozenset((*_parts(scope), name)), mentions, says, kind == "import" and value is None)
    for one in loose:
        yield Unit(frozenset(), frozenset(_mentioned([one[0]])), one)


def _parts(name: str) -> list[str]:
    """`Env`, `step` of `Env.step#2.<lambda>`."""
    return [part.partition("#")[0] for part in name.split(".") if part and not part.startswith("<")]


def _mentioned(values: Iterable[RawValue], local: Collection[str] = ()) -> Iterator[str]:
    """The names in values as facts keep them, the parts of dotted ones each by itself, without `local` variables."""
    todo = [*values]
    while todo:
        match todo.pop():
            case str(name):
                first, *others = _parts(name) or ("",)
                yield from others
                if first and first not in local:
                    yield first
            case (elements,):
                todo += elements
            case (callee, arguments, keywords):
                todo += (callee, *arguments, *(value for _, value in keywords))
