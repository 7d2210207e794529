"""Numbers for people: bytes, microseconds, things."""

from __future__ import annotations

from collections.abc import Iterable

from fusionlint.finding import Measurement

_LEAST = 0.01  # of microseconds


def size(count: float) -> str:
    """`count` bytes, in powers of 1000: `131 MB`, `4.2 kB`, `12 B`."""
    units = ["B", "kB", "MB", "GB", "TB"]
    value, unit = _scaled(count, units)
    digits = 0 if value >= 100 or unit == "B" else 1
    return f"{value:.{digits}f} {unit}"


def duration(microseconds: float) -> str:
    """`microseconds` with two digits that count: `4.2 us`, `0.53 us`, `131 ms`, `1.3 s`; nobody counts those below
    `0.01 us`."""
    if 0 < microseconds < _LEAST:
        return f"under {_LEAST} us"
    value, unit = _scaled(microseconds, ["us", "ms", "s"])
    return f"{value:.0f} {unit}" if value >= 10 else f"{value:.2g} {unit}"


def _scaled(value: float, units: list[str]) -> tuple[float, str]:
    while value >= 999.5 and len(units) > 1:
        value, units = value / 1000, units[1:]
    return value, units[0]


def counted(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"


def listed(names: list[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


def named(cause: str) -> str:
    """A cause as people are told it; JSON has the word "unknown"."""
    return "no cause found" if cause == "unknown" else cause


def differences(measured: Iterable[Measurement]) -> str:
    """`46 -> 8 launches, 120 kB -> 35.1 kB, 48 us -> 10 us per iteration`: of launches, bytes and microseconds those
    that people can tell apart."""
    return ", ".join(filter(None, map(_difference, measured)))


def _difference(cell: Measurement) -> str:
    quantity, again, _ = cell.quantity.partition("_per_iteration")
    shown = {"launches": "{:.0f}".format, "bytes": size, "microseconds": duration}[quantity]
    then, now = shown(cell.bad), shown(cell.good)
    unit = " launches" if quantity == "launches" else ""
    return "" if then == now else f"{then} -> {now}{unit}{' per iteration' if again else ''}"
