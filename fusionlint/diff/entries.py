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
_ARRAY = re.compile(r"\b[a-z]\w*\[[\d,\s]*\]|\bkey\b")
_ARRAYS = re.compile(r"\d+ arrays")


@dataclass(frozen=True, slots=True)
class Arguments:
    """Those of a program: `text` as the report shows them, `spec` as a SPEC has them, "" where none is known."""

    text: str = ""
    spec: str = ""

    def same_as(self, other: Arguments) -> bool:
        """Whether they are, as far as can be told: a run tells the names of parameters, what is donated and what is
        static after the arrays, and a pytree's arrays it counts; a SPEC does not."""
        return self.text == other.text or not _forms(self).isdisjoint(_forms(other))

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


def _forms(arguments: Arguments) -> set[tuple[str, ...]]:
    return {_parts(text) for text in (arguments.text, arguments.spec) if text}


@cache
def _parts(text: str) -> tuple[str, ...]:
    """`(state: f32[8] donated, n=3)` -> what `(f32[8], 3)` gives too: each argument without its name, the arrays in
    their order before what is static."""
    parts = [_part(argument) for argument in _split(text[1:-1]) if argument.strip()]
    arrays = [one for one in parts if _ARRAY.fullmatch(one) or _ARRAYS.fullmatch(one)]
    return (*arrays, *sorted(one for one in parts if one not in arrays))


def _part(argument: str) -> str:
    said = _NAMED.sub("", argument, count=1).strip() if _NAMED.match(argument) else argument.strip()
    said = said.removesuffix(" donated")
    arrays = _ARRAY.findall(said) if said[:1] in ("(", "[", "{") else []
    if arrays:
        said = f"{len(arrays)} arrays" if len(arrays) > 1 else arrays[0]
    return said if said[:1] in ("'", '"') or _ARRAYS.fullmatch(said) else re.sub(r"\s", "", said)


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
