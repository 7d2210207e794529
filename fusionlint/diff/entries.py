"""An entry's text -> its function and its arguments."""

from __future__ import annotations

import re

# What a library was given is part of the name: `train.py:scan(body)(args: f32[8])`. No text of arguments is followed
# by another.
_GIVEN = r"\((?:[^()'\",:=\[\]\s]|\([^()'\",:=\[\]\s]*\))+\)(?=\()"
_ENTRY = re.compile(rf"(?P<name>(?:.*?\.py:|[\w.]+:)?[^(:]*(?:{_GIVEN})*)(?P<arguments>\(.*\))?", re.S)


def split_entry(entry: str) -> tuple[str, str]:
    """`a/b.py:step(f32[8])` -> its name and its arguments. A module out of a dump has its name alone."""
    found = _ENTRY.fullmatch(entry)
    if found is None:
        return entry.partition(" from ")[0], ""
    name = found["name"]
    return name if name.rpartition(":")[0].endswith(".py") else name.partition(" from ")[0], found["arguments"] or ""
