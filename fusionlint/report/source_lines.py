"""The user's lines in a report: where a frame stands, who called it, and what is written there.

In: stacks of frames, the innermost first. Out: text; what a library does in between is nobody's line to look at.
"""

from __future__ import annotations

import linecache
import os
import re
from collections.abc import Collection, Iterator, Sequence

from fusionlint.hlo import parse as hlo
from fusionlint.hlo.barriers import Barrier

_INSTALLED = re.compile(r"(?:site|dist)-packages[/\\]")


def where(barriers: Sequence[Barrier]) -> str:
    """`env.py:4:11 in step`, of barriers at one line."""
    first = barriers[0]
    if not first.stack:
        return f"no source line known (%{first.value})"
    frame = first.stack[0]
    column = f":{frame.column}" if frame.column else ""
    return f"{short_path(frame.path)}:{frame.line}{column}{in_function(frame, {one.of_gradient for one in barriers})}"


def where_from(stack: tuple[hlo.Frame, ...]) -> str:
    """`flax/linen/normalization.py:223 in _normalize, called at train.py:31`; "" where no line is known."""
    if not stack:
        return ""
    own = own_call(stack)
    place = f"{short_path(stack[0].path)}:{stack[0].line}{in_function(stack[0], ())}"
    return f"{place}, called at {own}" if own else place


def in_function(frame: hlo.Frame, of_gradient: Collection[bool]) -> str:
    """` in step`, ` in the gradient of step`, ` in step and its gradient`."""
    function = _function(frame) if frame.function else ""
    if not any(of_gradient):
        return f" in {function}" if function else ""
    if all(of_gradient):
        return " in the gradient" + (f" of {function}" if function else "")
    return f" in {function} and its gradient" if function else " and in the gradient"


def caller(stack: tuple[hlo.Frame, ...]) -> str:
    """`rollout:120`: who called the function of the innermost frame, and where, `rollout at train.py:120` where that is
    another file of the user's; "" where nobody is known, or `own_call` says it."""
    frame = next(iter(_callers(stack)), None)
    if frame is None or (_is_installed(stack[0]) and not _is_installed(frame)):
        return ""
    if _is_installed(frame) or short_path(frame.path) == short_path(stack[0].path):
        return f"{_function(frame)}:{frame.line}"
    return f"{_function(frame)} at {short_path(frame.path)}:{frame.line}"


def _callers(stack: tuple[hlo.Frame, ...]) -> Sequence[hlo.Frame]:
    """The innermost first; of the user's own line the user's own, if there are any: what a library does in between is
    nobody's line to look at."""
    every = [frame for frame in stack if (frame.path, frame.line) != (stack[0].path, stack[0].line)]
    own = [frame for frame in every if not _is_installed(frame)]
    return own if own and not _is_installed(stack[0]) else every


def _is_installed(frame: hlo.Frame) -> bool:
    return is_installed(frame.path)


def own_call(stack: tuple[hlo.Frame, ...]) -> str:
    """`train.py:31`: where the user's code calls the library that the line belongs to; "" if it is the user's own."""
    if not stack or not _is_installed(stack[0]):
        return ""
    own = next((frame for frame in stack if not _is_installed(frame)), None)
    return f"{short_path(own.path)}:{own.line}" if own else ""


def _function(frame: hlo.Frame) -> str:
    return frame.function.replace("<locals>.", "") or short_path(frame.path)


def short_path(path: str) -> str:
    """From the working directory, or from where packages are installed: the folders above that say nothing."""
    relative = os.path.relpath(path)
    if relative.startswith("..") or is_installed(relative):
        return _INSTALLED.split(path)[-1]
    return relative


def is_installed(path: str) -> bool:
    """Whether the file is a library's, by where it lies."""
    return bool(_INSTALLED.search(path))


def excerpt(frames: Sequence[hlo.Frame]) -> Iterator[str]:
    """The line that the frames are on, and carets under the span of each; nothing where the file is not there."""
    number = frames[0].line
    text = linecache.getline(frames[0].path, number).rstrip()
    if not text.strip():
        return
    known = [span for frame in frames if (span := characters(frame, text))]
    spans = known or [(len(text) - len(text.lstrip()), len(text))]
    under = {place for start, end in spans for place in range(start, max(start + 1, end))}
    # Tabs stay tabs, so that the carets stand where the text stands.
    beside = ("\t" if text[place : place + 1] == "\t" else " " for place in range(max(under) + 1))
    yield f"{number:>4} | {text}"
    yield f"     | {''.join('^' if place in under else char for place, char in enumerate(beside))}"


def characters(frame: hlo.Frame, text: str) -> tuple[int, int] | None:
    """Where in the text of its line a frame begins and ends, None where that is not known. HLO has the columns of
    Python, which counts the bytes of UTF-8."""
    line = text.encode()
    if not frame.column or frame.column > len(line):
        return None
    last = frame.end_column - 1 if frame.end_column and frame.end_line in (None, frame.line) else len(line)
    start, end = (len(line[:byte].decode(errors="ignore")) for byte in (frame.column - 1, last))
    return start, end
