"""What several processes of one run compiled -> one Recording, as if it had been one process."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import count

from fusionlint.compiling.why import Circumstances, differences, why
from fusionlint.recording import Compilation, EagerLine, Place, RecordedFunction, Recording

ANEW = "in another process, which has a cache of its own"


def merged(recordings: Sequence[Recording]) -> Recording:
    """Functions are known by their name and place. Of the programs of each, the largest one is kept. In each process
    but the first its first compilation is one more: for the reason ANEW where an earlier process compiled the same,
    else for what is otherwise than there."""
    functions: dict[tuple[str, Place | None], RecordedFunction] = {}
    numbers = count()
    for one in (function for recording in recordings for function in recording.functions):
        known = functions.setdefault((one.name, one.defined), replace(one, compilations=()))
        its = (
            replace(each, number=next(numbers), why=each.why or _why(each, known.compilations))
            for each in one.compilations
        )
        functions[one.name, one.defined] = replace(known, compilations=(*known.compilations, *its))
    return Recording(
        command=next((one.command for one in recordings), ()),
        versions=next((one.versions for one in recordings if one.versions), {}),
        backend=next((one.backend for one in recordings if one.backend), ""),
        functions=tuple(map(_one_program, functions.values())),
        eager=_eager(recordings),
        notes=tuple(dict.fromkeys(note for one in recordings for note in one.notes)),
    )


def _why(one: Compilation, before: Sequence[Compilation]) -> tuple[str, ...]:
    """Why it came, which is the first of its process, after those of other processes."""
    if any(not differences(each, one) for each in before):
        return (ANEW,)
    return why(one, [(each, Circumstances()) for each in before])


def _one_program(function: RecordedFunction) -> RecordedFunction:
    lowered = [one for one in function.compilations if one.programs or one.failures]
    kept = max(lowered, key=lambda one: one.rank, default=None)

    def only(one: Compilation) -> Compilation:
        return one if one is kept else replace(one, programs={}, failures={})

    return replace(function, compilations=tuple(map(only, function.compilations)))


def _eager(recordings: Sequence[Recording]) -> tuple[EagerLine, ...]:
    found: dict[tuple[Place | None, Place | None], EagerLine] = {}
    for one in (line for recording in recordings for line in recording.eager):
        known = found.get((one.called, one.outer), replace(one, operations={}, seconds=0.0))
        operations = dict(Counter(known.operations) + Counter(one.operations))
        found[one.called, one.outer] = replace(known, operations=operations, seconds=known.seconds + one.seconds)
    return tuple(found.values())
