"""The lines of rules that somebody wrote: the `bwd` of a `jax.custom_vjp`, what `mlir.lower_fun` lowers a primitive by.

jax gives all that a rule does the line of the step that it is the rule of: a hand-written gradient, or a solver that is
a primitive, is one line then. Here each of its operations has its own call path, down to the rule, and behind that
the one of the step. jax's own rules stay at the step.

Names of jax that are private, as in hooks.py; a jax without them (before 0.9) shows the line of the step, as ever.
"""

from __future__ import annotations

import _thread
import inspect
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from queue import SimpleQueue
from types import FrameType, FunctionType
from typing import Any

from fusionlint.pinned import FILE, line_of

# What a Trace of a library does with any step is no rule of it: `process_primitive`, `process_custom_jvp_call`.
_ANY_STEP = "process_"
_PINS = threading.local()  # the frames in which jax said: from here on all is of that step


def show_rule_lines() -> None:
    """From here on, to the end of the process."""
    from jax._src import source_info_util

    if source_info_util.current.__module__ != __name__ and _is_known(source_info_util):
        source_info_util.user_context = _pinning(source_info_util)
        source_info_util.current = _current_of(source_info_util)


@contextmanager
def rule_lines_shown() -> Iterator[None]:
    """Inside alone."""
    from jax._src import source_info_util

    before = source_info_util.user_context, source_info_util.current
    show_rule_lines()
    try:
        yield
    finally:
        source_info_util.user_context, source_info_util.current = before


def _is_known(jax_module: Any) -> bool:
    try:
        return hasattr(_traceback(), "__add__") and isinstance(jax_module.UserContextManager, type)
    except (ImportError, AttributeError):
        return False


def _traceback() -> Any:
    from jax._src.lib import xla_client

    return xla_client.Traceback


def _pinning(jax_module: Any) -> type:
    """The context manager by which jax pins what it does to one step, which remembers where it was entered."""

    class Pinning(jax_module.UserContextManager):  # type: ignore[misc]  # of jax, which is not looked at
        __slots__ = ()

        def __enter__(self) -> None:
            vars(_PINS).setdefault("frames", []).append(_asker(inspect.currentframe()))
            super().__enter__()

        def __exit__(self, *raised: Any) -> None:
            _PINS.frames.pop()
            super().__exit__(*raised)

    return Pinning


def _current_of(jax_module: Any) -> Any:
    before = jax_module.current

    def current() -> Any:
        info = before()
        pins = getattr(_PINS, "frames", None)
        if not pins or not info.traceback:
            return info
        inner = [*_between(inspect.currentframe(), pins[-1])]
        rule = _rule(inner, pins[-1], jax_module.is_user_filename)
        return info if rule is None else info.replace(traceback=_with_step(inner, rule, info.traceback, jax_module))

    return current


def _rule(inner: Sequence[FrameType], pin: FrameType, is_users: Callable[[str], bool]) -> int | None:
    """Which of the frames `inner` is the rule, that somebody wrote and jax has called since it pinned the step; None
    where there is none, where that code pins itself, or is asked for each step."""
    theirs = [number for number, frame in enumerate(inner) if is_users(frame.f_code.co_filename)]
    if not theirs or inner[-1].f_back is not pin or is_users(pin.f_code.co_filename):
        return None
    return None if inner[theirs[-1]].f_code.co_name.startswith(_ANY_STEP) else theirs[-1]


def _with_step(inner: Sequence[FrameType], rule: int, step: Any, jax_module: Any) -> Any:
    """The call path to here, and behind the rule that of the step. What is traced for itself inside of the rule has the
    path within alone: jax goes on from there."""
    here = _traceback().get_traceback()
    files = [code.co_filename for code in here.raw_frames()[0]]
    if rule >= len(files):
        return here
    return here + _mark(sum(map(jax_module.is_user_filename, files[len(inner) :]))) + step


def _asker(frame: FrameType | None) -> FrameType | None:
    return frame and frame.f_back


def _between(frame: FrameType | None, pin: FrameType) -> Iterator[FrameType]:
    """From `frame` out to what `pin` called."""
    while frame is not None and frame is not pin:
        yield frame
        frame = frame.f_back


@cache
def _mark(callers: int) -> Any:
    """A call path of the one frame that says so: a thread begins with it."""
    found: SimpleQueue[Any] = SimpleQueue()
    get = _traceback().get_traceback
    tell = lambda: found.put(get())  # noqa: E731  # one line, which is then that of its code
    code = tell.__code__.replace(co_filename=FILE, co_firstlineno=line_of(callers))
    _thread.start_new_thread(FunctionType(code, {}, "rule", None, tell.__closure__), ())
    return found.get()
