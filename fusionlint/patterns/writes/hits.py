"""Places of writes that are as many as there are hits: no trace knows how many.

In: writes of a Source that follow one another. Out: whether a place of theirs is found so.
"""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from fusionlint.lazily import regex
from fusionlint.patterns.code.at import Part, Write
from fusionlint.patterns.code.calls import keyword
from fusionlint.patterns.values.kinds import kind
from fusionlint.patterns.writes.many import FINDS, chooses
from fusionlint.source.tree import Source

_MASK = regex(r"(^|_)mask$")
_ROWS = ("jax.numpy.ravel", "jax.numpy.concatenate")


def are_as_many_as_found(writes: Sequence[Write], source: Source) -> bool:
    """Whether a place is as long as there are hits in an array of jax, `jnp.nonzero(x > 0)`, `jnp.arange(n)[mask]`: no
    trace gets there, and joined places are as many dispatches as writes. So is what goes to each hit of a mask."""
    if any(_is_as_long_as_found(part, source) for write in writes for part in write.index):
        return True
    return all(_is_for_each_hit(write, source) for write in writes)


def _is_for_each_hit(write: Write, source: Source) -> bool:
    """Whether what is called a mask is all of the place, and a row of values goes there, in the order of the hits:
    `x.at[audio_mask].set(jnp.ravel(audio))`."""
    match write.index:
        case (cst.Name(name) as mask,) if _MASK.search(name) and kind(mask, source) != "numpy":
            return write.value is not None and source.calls(source.meant(write.value), *_ROWS)
    return False


def _is_as_long_as_found(part: Part, source: Source) -> bool:
    match meant := source.meant(part):
        case cst.Call() if source.calls(meant, *FINDS):
            is_of_jax = (source.qualified_name(meant.func) or "").startswith("jax.")
            return is_of_jax and keyword(meant, "size") is None and not chooses(meant, source)
        case cst.Subscript(value=counted, slice=[cst.SubscriptElement(slice=cst.Index(value=hits))]):
            is_mask = isinstance(hits, cst.Comparison) or (
                isinstance(hits, cst.UnaryOperation) and isinstance(hits.operator, cst.BitInvert)
            )
            is_mask |= isinstance(hits, cst.BinaryOperation) and isinstance(hits.operator, cst.BitAnd | cst.BitOr)
            return is_mask and source.calls(counted, "jax.numpy.arange")
    return False
