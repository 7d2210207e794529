"""What a cache keeps, as values: what is known of texts, what came of files and of whole runs, what a run has asked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, TypeAlias

from fusionlint.source.asked import ByPath

# Where bytes stand in the file of the cache that holds all facts: their start, how many, and their checksum.
Part: TypeAlias = tuple[int, int, int]
# What one file of a component said: the name of its module, and a digest of all that it says to others.
Heard: TypeAlias = "tuple[str, bytes]"


class Text(NamedTuple):
    """A digest of a file's content, the facts that were read from it, packed, or where the cache has them, a digest of
    their outline, and what the file imports, as it writes it."""

    digest: bytes
    facts: bytes | Part
    outline: bytes
    imports: tuple[str, ...]


class Texts(NamedTuple):
    """The texts that are known, by path, and the digest of each."""

    digests: Mapping[str, bytes]
    of: Mapping[str, Text]


class Kept(NamedTuple):
    """What came of one file: its findings, problems and warnings as plain values, and the `key` that they hold for."""

    key: bytes
    found: tuple[Any, ...]


class Run(NamedTuple):
    """The results of a run. `seen` is a digest of each file that it checked, `around` of those that it read besides, or
    could not read, `listed` the folders that decided what there is to read."""

    seen: dict[str, bytes]
    around: dict[str, bytes]
    listed: dict[str, str]
    kept: dict[str, Kept]


class Notes(NamedTuple):
    """What a run has asked. For a file of a large component, what of the others; by component, its first path, a digest
    of what it said and those of what its files held, and for questions about the whole of it what their answers rest
    on. And how its files were connected: the leaf of each, as plain values, and each component with its digest."""

    contents: dict[str, tuple[bytes, dict[str, bytes]]]
    asked: dict[str, ByPath]
    rests: dict[str, dict[str, ByPath]]
    leaves: dict[str, tuple[Any, ...]]
    groups: list[tuple[tuple[str, ...], bytes]]


class Joined(NamedTuple):
    """What the files of a component said, by path: each by itself, and for `Parts` to read what it took long to find
    out about each, and what of the others that was asked for; and what they say together, as plain values."""

    heard: dict[str, Heard]
    files: dict[str, bytes]
    asked: dict[str, bytes]
    together: tuple[Any, ...]
