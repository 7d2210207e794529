"""An entry's text -> its function and its arguments; and which arguments are the same in other words."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cache

# What a library was given is part of the name: `train.py:scan(body)(args: f32[8])`. No text of arguments is followed
# by another.
_GIVEN = r"\((?:[^()'\",:=\[\]\s]|\([^()'\",:=\[\]\s]*\))+\)(?=\()"
_ENTRY = re.compile(rf"(?P<name>(?:.*?\.py:|[\w.]+:)?[^(:]*(?:{_GIVEN})*)(?P<arguments>\(.*\))?", re.S)

_PIECE = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|.", re.S)
_NAMED = re.compile(r"\s*[*\w]+\s*(?::\s+|=(?!=))")
_ARRAY = re.compile(r"\b[a-z]\w*\[(?:[\d,\s]|@\w+|@\([\w,\s]*\))*\]|\bkey\b(?!['\"]?\s*:)")
_HIDDEN = re.compile(r"\d+ arrays|and \d+ more")  # what a run says of a pytree, and of many arguments


@dataclass(frozen=True, slots=True)
class Arguments:
    """Those of a program: `text` as the report shows them, `spec` as a SPEC has them, "" where none is known."""

    text: str = ""
    spec: str = ""

    def same_as(self, other: Arguments) -> bool:
        """Whether they are, as far as can be told: a run tells the names of parameters, what is donated and what is
        static after the arrays, and a pytree's arrays it counts; a SPEC does not."""
        if self.text == other.text:
            return True
        whole = _whole(self), _whole(other)
        return not (whole[0].isdisjoint(whole[1]) if all(whole) else _counted(self).isdisjoint(_counted(other)))

    def likeness(self, other: Arguments) -> tuple[int, float]:
        """Greater for arguments that are more alike."""
        common = Counter(_parts(self.text)) & Counter(_parts(other.text))
        return sum(common.values()), SequenceMatcher(None, self.text, other.text, autojunk=False).ratio()


def split_entry(entry: str) -> tuple[str, str]:
    """`a/b.py:step(f32[8])` -> its name and its arguments. A module out of a dump has its name alone."""
    found = _ENTRY.fullmatch(entry)
    if found is None:
        return entry.partition(" from ")[0], ""
    name = found["name"]
    return name if name.rpartition(":")[0].endswith(".py") else name.partition(" from ")[0], found["arguments"] or ""


def _whole(arguments: Arguments) -> set[tuple[str, ...]]:
    """What is said of them that leaves no array out."""
    return {_parts(text) for text in (arguments.text, arguments.spec) if text and not _HIDDEN.search(text)}


def _counted(arguments: Arguments) -> set[tuple[str, ...]]:
    return {_parts(text, counted=True) for text in (arguments.text, arguments.spec) if text}


@cache
def _parts(text: str, *, counted: bool = False) -> tuple[str, ...]:
    """`(state: f32[8] donated, n=3)` -> what `(f32[8], 3)` gives too: each argument without its name, the arrays in
    their order before what is static. Those of a pytree may be `counted` alone."""
    parts = [_part(argument, counted) for argument in _split(text[1:-1]) if argument.strip()]
    arrays = [one for one in parts if _ARRAY.search(one) or _HIDDEN.fullmatch(one)]
    return (*arrays, *sorted(one for one in parts if one not in arrays))


def _part(argument: str, counted: bool) -> str:
    said = _NAMED.sub("", argument, count=1) if _NAMED.match(argument) else argument
    said = said.strip().removesuffix(" donated")
    arrays = _ARRAY.findall(said)
    if said[:1] not in ("(", "[", "{") or not arrays:
        return said if said[:1] in ("'", '"') or _HIDDEN.fullmatch(said) else re.sub(r"\s", "", said)
    if counted and len(arrays) > 1:
        return f"{len(arrays)} arrays"
    # A run does not tell a pytree of one array from the array.
    return re.sub(r"[\s'\"]", "", said if len(arrays) > 1 else arrays[0])


def _split(text: str) -> Iterator[str]:
    """At the commas that stand in no brackets and no quotes."""
    depth, part = 0, ""
    for one in _PIECE.findall(text):
        depth += (one in "([{") - (one in ")]}")
        if one == "," and depth == 0:
            yield part
            part = ""
        else:
            part += one
    yield part
