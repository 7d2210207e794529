"""Why a function was compiled again: what is otherwise than the last time that was most alike."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from fusionlint.compiling.entry import array_text
from fusionlint.recording import Argument, Compilation

SHOWN = 3  # arguments that changed; the others are counted


@dataclass(frozen=True, slots=True)
class Circumstances:
    """Of a compilation, beside its arguments: whether the function is the same object as at the earlier one, and which
    settings of jax differ; `others` are the static arguments that are told by the same text, and are another object,
    `anew` the functions in static arguments that were made anew; `passed` says what is otherwise in how the arguments
    were given, one line each."""

    same_function: bool = True
    settings: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    anew: tuple[str, ...] = ()
    passed: tuple[str, ...] = ()


def why(new: Compilation, earlier: Sequence[tuple[Compilation, Circumstances]], to: str = "jit") -> tuple[str, ...]:
    """What is otherwise than at the one of `earlier` that is most alike, one line each; () where there is none.
    `earlier` come with how the circumstances of `new` compare with theirs, the oldest first. `to` is what the function
    was given to: jit, or a loop outside of any jit."""
    if not earlier:
        return ()
    compared = [(differences(one, new), circumstances) for one, circumstances in reversed(earlier)]
    changed, around = min(compared, key=lambda pair: _distance(*pair))
    if changed or around.passed:
        return _first(changed or around.passed)
    if around.settings:
        return (f"the same arguments, but other settings: {', '.join(around.settings)}",)
    if not around.same_function:
        return (f"the same arguments: a new function was given to {to}, which knows functions by identity",)
    if around.anew:
        return tuple(_anew(name) for name in around.anew)
    # The last to be blamed: another object may well be equal, which cannot be told once the first one is gone.
    if around.others:
        return tuple(_others(new, around))
    return ("the same arguments, as far as fusionlint sees: jax's cache may have been cleared, or have dropped it",)


def _distance(changed: Sequence[str], around: Circumstances) -> tuple[int, int, bool, int]:
    return len(changed), len(around.passed), not around.same_function, len(around.others)


def _first(changes: tuple[str, ...]) -> tuple[str, ...]:
    rest = len(changes) - SHOWN
    return (*changes[:SHOWN], f"and {rest} more") if rest > 0 else changes


def differences(old: Compilation, new: Compilation) -> tuple[str, ...]:
    """What differs in the arguments of two compilations of a function, static ones first."""
    return (*_static(old, new), *_arrays(old.arguments, new.arguments))


def _others(new: Compilation, circumstances: Circumstances) -> Iterator[str]:
    for name in circumstances.others:
        yield f"{name} (static): another object, again {new.static.get(name, 'one')}: jax tells them apart by =="


def _anew(name: str) -> str:
    maker, _, own = name.rpartition(".<locals>.")
    maker = maker.replace("<locals>.", "")
    so = "jax knows functions by identity: define it once, outside, and hand what changes over as an array"
    return f"{own} is made anew by each call of {maker}, and {so}"


def _static(old: Compilation, new: Compilation) -> Iterator[str]:
    for name in dict.fromkeys([*old.static, *new.static]):
        before, after = old.static.get(name), new.static.get(name)
        if before != after:
            yield f"{name} (static): {before or 'not given'} -> {after or 'not given'}"


def _arrays(old: Sequence[Argument], new: Sequence[Argument]) -> Iterator[str]:
    before, after = _by_name(old), _by_name(new)
    for name, one in after.items():
        if name not in before:
            yield f"{name}: new, {text(one)}"
        elif before[name] != one:
            yield f"{name}: {_change(before[name], one)}"
    yield from (f"{name}: gone, was {text(one)}" for name, one in before.items() if name not in after)


def _by_name(arguments: Sequence[Argument]) -> dict[str, Argument]:
    """jax does not name every input: those without a name go by their place."""
    return {one.name or f"input {i}": one for i, one in enumerate(arguments)}


def _change(old: Argument, new: Argument) -> str:
    if text(old) != text(new):
        return f"{text(old)} -> {text(new)}"
    if old.weak != new.weak:
        kinds = {True: "a Python number (weakly typed)", False: "an array"}
        return f"{text(new)}, {kinds[old.weak]} -> {kinds[new.weak]}"
    if old.sharding != new.sharding:
        return f"{text(new)}, {old.sharding or 'not committed'} -> {new.sharding or 'not committed'}"
    return f"{text(new)}, {'donated' if new.donated else 'no longer donated'}"


def text(argument: Argument) -> str:
    """`f32[8,128]`."""
    return array_text(argument.dtype, argument.shape)
