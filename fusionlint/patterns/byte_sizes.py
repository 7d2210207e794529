"""Bytes in the words of a finding."""

from __future__ import annotations


def in_bytes(count: int) -> str:
    """`84.2 MB`, `1.5 kB`, `12 bytes`."""
    if count < 1000:
        return f"{count} bytes"
    return f"{count / 1e6:.1f} MB" if count >= 1e6 else f"{count / 1e3:.1f} kB"
