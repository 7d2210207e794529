"""Words of advice that hold for any writes: masks compared with the places, and where to write them.

In: what jax.numpy is called, and whether a value is more than one number. Out: a clause.
"""

from __future__ import annotations

from collections.abc import Sequence

# Where a value is not what its name says at the last write.
FIRST = "compute the values first, each into a name of its own; then "
# A mask is compared with nothing, and what is written by one is as long as there is of it.
FOR_MASKS = (
    "make the values for all places, not for those of a mask alone; then {jnp}.where(last mask, ..., "
    "{jnp}.where(first mask, ..., {array}))"
)
# Where one path through `if`s writes again and again.
BEHIND_IFS = "behind the `if`s, which choose the places and the values: "
# What a method does, and what changes nothing by it.
SIGNS = {"add": ("+", "0"), "subtract": ("-", "0"), "multiply": ("*", "1"), "mul": ("*", "1"), "divide": ("/", "1")}


def all_of(asked: Sequence[str]) -> str:
    """Comparisons, all of which hold where something is written."""
    return asked[0] if len(asked) == 1 else " & ".join(f"({one})" for one in asked)


def masked(jnp: str, *, is_padded: bool, is_strided: bool = False) -> str:
    """What writes anything anywhere, at places that Python knows or not: but for arrays of places. What goes to every
    second row, `x.at[1::2]`, has rows between its own: measured, 4 launches on h100, 1 with such a pad."""
    by = "jax.lax.pad, with as many rows between its own as the step leaves out" if is_strided else f"{jnp}.pad"
    pad = f"; a block is brought to its place by {by}" if is_padded else ""
    return f"one {jnp}.where with a mask: compare {jnp}.arange along each axis with the places{pad}"
