"""What a collective does, in plain words, and what to write instead. A closed catalogue, as `reasons` is."""

from __future__ import annotations

from collections.abc import Iterator

_DOES = {
    "all-reduce": "each device has a part of a sum or a maximum, and gets the whole",
    "all-gather": "each device gets what the others have of the array",
    "reduce-scatter": "each device has a part of a sum, and gets its piece of the whole",
    "all-to-all": "each device hands pieces of its part to the others, for another axis to be spread",
    "ragged-all-to-all": "each device hands pieces of unlike sizes to the others",
    "collective-permute": "each device sends its part, or a piece of it, to another",
}
# Measured by tests/test_meshes.py: examples/meshes/attention.py, 14 -> 2 launches on h100, 27 -> 3 on v5e.
_INSTEAD = {
    "split": "give parts of one size an axis of their own, [..., k, n] for [..., k * n], and spread n: what a split "
    "cuts out of a spread axis is not what one device has",
}


def told(detail: str) -> Iterator[str]:
    """Lines about a barrier's `detail`: what is sent, and what to write instead where that is known."""
    name, _, rest = detail.partition(" ")
    if name not in _DOES:
        return
    yield f"{name}: {_DOES[name]}"
    if instead := _INSTEAD.get(rest.rpartition("for ")[2]):
        yield f"     instead: {instead}"
