"""Words of advice that hold for any writes: masks compared with the places, and where to write them.

In: what jax.numpy is called, and whether a value is more than one number. Out: a clause.
"""

from __future__ import annotations

# Where one path through `if`s writes again and again.
BEHIND_IFS = "behind the `if`s, which choose the places and the values: "


def masked(jnp: str, *, is_padded: bool) -> str:
    """What writes anything anywhere, at places that Python knows or not: but for arrays of places."""
    pad = f"; a block is brought to its place by {jnp}.pad" if is_padded else ""
    return f"one {jnp}.where with a mask: compare {jnp}.arange along each axis with the places{pad}"
