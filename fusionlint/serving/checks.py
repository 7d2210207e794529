"""`fusionlint check -` of a text that an editor has, in a process of its own: none can hold up the server, or end it.

In: a file's path and its text. Out: what `check` says of it as JSON, with the project around it and its settings.
"""

from __future__ import annotations

import asyncio
import io
import json
import tokenize
from asyncio.subprocess import PIPE
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from fusionlint.compiling import alone

Told = Mapping[str, Any]


class Checked(NamedTuple):
    """The findings in a text, as in the JSON of `check`; `error` is why there was nothing to be checked, "" else."""

    findings: Sequence[Told] = ()
    error: str = ""


async def checked(path: str, text: str) -> Checked:
    """What is found in a text. One that does not parse, or that no file can hold, has no findings: editors say that
    themselves."""
    data = _as_saved(text)
    if data is None:
        return Checked()
    status, out, err = await _check(path, data, "--output-format", "json")
    return Checked(json.loads(out)["findings"]) if status in (0, 1) and out else Checked(error=_last_line(err))


async def fixed(path: str, text: str) -> str:
    """The text with all safe fixes; as it is where there are none, or it cannot be checked."""
    data = _as_saved(text)
    if data is None:
        return text
    status, out, _ = await _check(path, data, "--fix")
    return out.decode(_encoding(text)) if status in (0, 1) and out else text  # no fix leaves nothing of a file


def _as_saved(text: str) -> bytes | None:
    """The bytes of a file with that text; None for half of a surrogate pair, or what the encoding that the text names
    has no bytes for."""
    try:
        return text.encode(_encoding(text))
    except UnicodeEncodeError:
        return None


def _encoding(text: str) -> str:
    """The encoding that the first two lines of a text name; one that nobody knows does not parse."""
    lines = io.BytesIO(text.encode(errors="replace"))
    try:
        return tokenize.detect_encoding(lines.readline)[0].removesuffix("-sig")  # which would write a mark of its own
    except SyntaxError:
        return "utf-8"


async def _check(path: str, data: bytes, *options: str) -> tuple[int | None, bytes, bytes]:
    command = alone.command("fusionlint", "check", "-", "--stdin-filename", path, "--force-exclude", *options)
    process = await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE, stderr=PIPE)
    try:
        out, err = await process.communicate(data)
    except asyncio.CancelledError:
        process.kill()
        await process.wait()
        raise
    return process.returncode, out, err


def _last_line(err: bytes) -> str:
    return (err.decode(errors="replace").splitlines() or ["check ended without a word"])[-1]
