"""The lines of rules that somebody wrote: the `bwd` of a `jax.custom_vjp`, what `mlir.lower_fun` lowers a primitive by.

jax gives all that a rule does the line of the step that it is the rule of: a hand-written gradient, or a solver that is
a primitive, is one line then. Here each of its operations has its own call path, down to the rule, and behind that
the one of the step. jax's own rules stay at the step.

Names of jax that are private, as in hooks.py; a jax without them (before 0.9) shows the line of the step, as ever.
"""

from __future__ import annotations

import _thread
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from queue import SimpleQueue
from sys import _getframe
from types import FrameType, FunctionType
from typing import Any, TypeAlias

from fusionlint.pinned import FILE, line_of

# What a Trace of a library does with any step is no rule of it: `process_primitive`, `process_custom_jvp_call`.
_ANY_STEP = "process_"
_Rule: TypeAlias = tuple[int, int]  # how far out it is, and the frame in which jax pinned its step


class _Pins(threading.local):
    """The frames in which jax said: from here on all is of that step."""

    def __init__(self) -> None:
        self.frames: list[FrameType] = []


_PINS = _Pins()


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
    enter, leave = jax_module.UserContextManager.__enter__, jax_module.UserContextManager.__exit__

    class Pinning(jax_module.UserContextManager):  # type: ignore[misc]  # of jax, which is not looked at
        __slots__ = ()

        def __enter__(self) -> None:
            _PINS.frames.append(_getframe(1))
            enter(self)

        def __exit__(self, *raised: Any) -> None:
            _PINS.frames.pop()
            leave(self, *raised)

    return Pinning


def _current_of(jax_module: Any) -> Any:
    before, is_users = jax_module.current, jax_module.is_user_filename

    def current() -> Any:
        info = before()
        pins = _PINS.frames
        if not pins or not info.traceback:
            return info
        rule = _rule(_getframe(), pins[-1], is_users)
        return info if rule is None else info.replace(traceback=_with_step(rule, info.traceback, is_users))

    return current


def _rule(frame: FrameType | None, pin: FrameType, is_users: Callable[[str], bool]) -> _Rule | None:
    """The rule that somebody wrote and jax has called since it pinned the step, on the way out from `frame`; None where
    there is none, where that code pins itself, or is asked for each step."""
    outermost, name, depth = -1, "", 0
    while frame is not None and frame is not pin:
        code = frame.f_code
        if is_users(code.co_filename):
            outermost, name = depth, code.co_name
        depth += 1
        frame = frame.f_back
    is_one = outermost >= 0 and frame is pin and not name.startswith(_ANY_STEP)
    return (outermost, depth) if is_one and not is_users(pin.f_code.co_filename) else None


def _with_step(rule: _Rule, step: Any, is_users: Callable[[str], bool]) -> Any:
    """The call path to here, and behind the rule that of the step. What is traced for itself inside of the rule has the
    path within alone: jax goes on from there."""
    here = _traceback().get_traceback()
    codes, _ = here.raw_frames()
    outermost, depth = rule
    # One more stands here than in `_rule`: this function.
    if outermost + 1 >= len(codes):
        return here
    return here + _mark(sum(is_users(code.co_filename) for code in codes[depth + 1 :])) + step


@cache
def _mark(callers: int) -> Any:
    """A call path of the one frame that says so: a thread begins with it."""
    found: SimpleQueue[Any] = SimpleQueue()
    get = _traceback().get_traceback
    tell = lambda: found.put(get())  # noqa: E731  # one line, which is then that of its code
    code = tell.__code__.replace(co_filename=FILE, co_firstlineno=line_of(callers))
    _thread.start_new_thread(FunctionType(code, {}, "rule", None, tell.__closure__), ())
    return found.get()
