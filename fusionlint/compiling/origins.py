"""Whose function a compiled program is, and whose line called it.

In: what `hooks` has seen of a compilation. Out: places in the user's code, where that has any part in it: a library may
stand around the user's function, or between it and jax.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import chain, islice, pairwise, takewhile
from types import CodeType

from fusionlint.compiling import hooks
from fusionlint.compiling.calls import column_of
from fusionlint.compiling.hooks import Compiled, Frames, Lowering
from fusionlint.compiling.owners import owner, works_with_jax
from fusionlint.recording import Owner, Place

_FIRST, _WITHIN = 16, 5000  # operations of a program that are looked at for the user's code: 12 ms at most


def definition(seen: Compiled) -> tuple[Place | None, Owner]:
    """Where the function is defined, and whose it is. A library may have wrapped the user's function before it jitted
    it, or calls it somewhere in its own, and an eager scan is jax's own function around the user's: what they call of
    the user's is then the one."""
    place = _given(seen)
    if place is None:
        return None, _owner_of_unknown(seen.frames)
    whose = owner(place.path)
    if whose == "user" or seen.lowering is None:
        return place, whose
    inner = _inside(seen, seen.lowering, place, whose)
    return (inner, "user") if inner else (place, whose)


def _inside(seen: Compiled, lowering: Lowering, place: Place, whose: Owner) -> Place | None:
    """The user's function that the one at `place` works for. Where that has operations of its own, both are named."""
    if whose == "jax":
        given = (Place(*found) for found in hooks.inner_functions(lowering.jaxpr))
        code = (_place(code) for codes in hooks.frames_inside(lowering.jaxpr) for code in codes)
        first = next((one for one in chain(given, code) if owner(one.path) == "user"), None)
        inner = first or _traced(lowering, place, _FIRST)
        return _named_with(inner, control_flow(seen) or lowering.name) if inner else None
    if wrapped := _traced(lowering, place, _FIRST):
        return wrapped
    inner = _traced(lowering, place, _WITHIN, frozenset(code for code, _ in seen.frames))
    return _named_with(inner, place.function or lowering.name) if inner else None


def control_flow(seen: Compiled) -> str:
    """The function of control flow that was called outside of any jit, a fori_loop for its scan; "" if none was."""
    of_jax = takewhile(lambda code: owner(code.co_filename) == "jax", (code for code, _ in seen.frames))
    return next(iter([code.co_name for code in of_jax if hooks.CONTROL_FLOW in code.co_filename][::-1]), "")


def _named_with(inner: Place, outer: str) -> Place:
    return replace(inner, function=f"{outer}({inner.function})")


def _owner_of_unknown(frames: Frames) -> Owner:
    """Nothing is known but the name, as of an old pmap: it is the user's, if the user's line asked for it."""
    called = called_at(frames)
    return owner(called.path) if called else "library"


def _given(seen: Compiled) -> Place | None:
    """The function that was given to jit."""
    if seen.call and seen.call.defined:
        path, _, line = seen.call.defined.rpartition(":")
        return Place(path, int(line), seen.call.name, seen.call.column)
    found = hooks.defined(seen.lowering.jaxpr) if seen.lowering else None
    return Place(*found) if found else None


def _traced(lowering: Lowering, place: Place, end: int, around: frozenset[CodeType] | None = None) -> Place | None:
    """The user's outermost function that the one at `place` called while jax traced the operations before `end`.

    Of an operation that was traced apart (equinox does so with what a solver steps) the stack does not reach that far
    out: where `around` is given, the code that was running as the program was compiled, what is not in there counts.
    """
    for codes in islice(hooks.traced_frames(lowering.jaxpr), end):
        is_given = [(code.co_filename, code.co_firstlineno) == (place.path, place.line) for code in codes]
        begin = is_given.index(True) if any(is_given) else len(codes) if around is None else 0
        for code in codes[begin:]:
            if (around is None or code not in around) and owner(code.co_filename) == "user":
                return _place(code)
    return None


def _place(code: CodeType) -> Place:
    return Place(code.co_filename, code.co_firstlineno, _qualified(code), column_of(code))


def called_at(frames: Frames) -> Place | None:
    """The user's innermost line on the stack; a library's where the user has none."""
    theirs: Place | None = None
    for code, line in frames:
        whose = owner(code.co_filename)
        if whose == "user":
            return Place(code.co_filename, line, _qualified(code))
        if whose == "library" and theirs is None and not code.co_filename.startswith("<"):
            theirs = Place(code.co_filename, line, _qualified(code))
    return theirs


def module_line(frames: Frames, path: str) -> int:
    """The line that runs outside of all functions in the file at `path`; 0 where none does."""
    return next((line for code, line in frames if code.co_name == "<module>" and code.co_filename == path), 0)


def called_from(frames: Frames) -> Place | None:
    """The user's line that called the library which then called the user's innermost line, if one did. What a whole
    program runs under (absl, click, hydra) is called by a module's own line, and has nothing to do with jax."""
    whose = [owner(code.co_filename) for code, _ in frames]
    own = [number for number, one in enumerate(whose) if one == "user"]
    before, after = next((pair for pair in pairwise(own) if "library" in whose[slice(*pair)]), (0, 0))
    code, line = frames[after] if after else (None, 0)
    between = (code.co_filename for code, _ in frames[before:after])
    if code is None or (code.co_name == "<module>" and not any(map(works_with_jax, between))):
        return None
    return Place(code.co_filename, line, _qualified(code))


def _qualified(code: CodeType) -> str:
    return str(getattr(code, "co_qualname", code.co_name))  # Python 3.10 knows the bare name alone
