"""Targets -> an aligned table, and its notes: what `fusionlint targets` prints."""

from __future__ import annotations

from collections.abc import Sequence

from fusionlint.compiling.targets import Target, missing, versions

HEAD = ("target", "hardware", "compiler", "memory", "unlike the device")
_HERE = "it is here, and compiles itself"


def targets_text(targets: Sequence[Target], attached: Sequence[Target] = ()) -> str:
    """The table and the notes that it counts, ending in a newline; targets in `attached` are compiled on the device
    that is here."""
    here = {target.name for target in attached}
    differs = [_HERE if target.name in here else target.differs for target in targets]
    notes = list(dict.fromkeys(differs))
    marks = [f"({notes.index(said) + 1})" for said in differs]
    rows = [HEAD, *(_row(target, mark) for target, mark in zip(targets, marks, strict=True))]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    table = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
    return "\n".join([*table, "", *(f"({number}) {note}" for number, note in enumerate(notes, 1)), ""])


def _row(target: Target, mark: str) -> tuple[str, ...]:
    return target.name, target.what, _compiler(target), _bandwidth(target), mark


def _compiler(target: Target) -> str:
    """The version of what compiles for it, or the one command that installs it."""
    absent = missing(target)
    if absent is not None:
        return absent.rpartition(": ")[2]
    name, version = list(versions(target).items())[-1]
    return f"{name} {version}"


def _bandwidth(target: Target) -> str:
    return f"{target.memory_bandwidth / 1e9:.0f} GB/s" if target.memory_bandwidth else "unknown"
