"""Of a conditional's branches one alone runs: what may run is counted as the dearest of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeVar

# The conditionals around something, outermost first, and which branch of each it is in.
Branches = tuple[tuple[str, int], ...]
Number = TypeVar("Number", int, float)


def branches_of(barrier: Mapping[str, Any]) -> Branches:
    """Those that the JSON of a report tells; reports did not always."""
    return tuple((str(name), int(number)) for name, number in barrier.get("branches", ()))


def dearest(counted: Iterable[tuple[Branches, Number]]) -> Iterator[Number]:
    """The numbers that stand in no branch, and of each conditional the sum of its dearest branch."""
    inside: dict[str, dict[int, list[tuple[Branches, Number]]]] = {}
    for branches, number in counted:
        if branches:
            name, branch = branches[0]
            inside.setdefault(name, {}).setdefault(branch, []).append((branches[1:], number))
        else:
            yield number
    for parts in inside.values():
        yield max(sum(dearest(part)) for part in parts.values())
