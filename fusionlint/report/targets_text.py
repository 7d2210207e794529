"""Targets -> an aligned table, and the one line about the figures: what `fusionlint targets` prints."""

from __future__ import annotations

from collections.abc import Sequence

from fusionlint.compiling.targets import Target, missing, versions

HEAD = ("target", "hardware", "compiler", "memory", "unlike the device")


def targets_text(targets: Sequence[Target], attached: Sequence[Target] = ()) -> str:
    """The table, ending in a newline; targets in `attached` are compiled on the device that is here."""
    here = {target.name for target in attached}
    rows = [HEAD, *(_row(target, target.name in here) for target in targets)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "".join("  ".join(map(str.ljust, row, widths)).rstrip() + "\n" for row in rows)


def _row(target: Target, is_here: bool) -> tuple[str, ...]:
    differs = "it is here, and compiles itself" if is_here else target.differs
    return target.name, target.what, _compiler(target), _bandwidth(target), differs


def _compiler(target: Target) -> str:
    """The version of what compiles for it, or the one command that installs it."""
    absent = missing(target)
    if absent is not None:
        return absent.rpartition(": ")[2]
    name, version = list(versions(target).items())[-1]
    return f"{name} {version}"


def _bandwidth(target: Target) -> str:
    return f"{target.memory_bandwidth / 1e9:.0f} GB/s" if target.memory_bandwidth else "unknown"
