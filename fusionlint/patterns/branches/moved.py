"""Buffers that a conditional moves: rolled to make room at the end, or handed back, and then written to.

In: a Conditional of a Source, or a roll without one. Out: whether it is one of a replay buffer's.
"""

from __future__ import annotations

import libcst as cst

from fusionlint.patterns.branches.conditional import Conditional, is_unchanged
from fusionlint.patterns.code.at import constant, is_literal
from fusionlint.patterns.code.calls import argument
from fusionlint.source.tree import Source

_BOUNDS = ("jax.numpy.minimum", "jax.numpy.maximum", "jax.numpy.clip")
_WINDOWS = tuple(f"jax.lax.dynamic_update_{name}" for name in ("slice", "slice_in_dim", "index_in_dim"))


def moves_a_buffer(found: Conditional, source: Source) -> bool:
    """Whether one branch rolls an array by what is no number, another hands it back, and then it is written to."""
    name = source.assigned_name(found.call)
    if name is None or not any(map(is_unchanged, found.branches)):
        return False
    rolled = any(_is_rolled(branch.result, source) for branch in found.branches)
    return rolled and any(_is_written(read, source) for read in source.reads(name))


def makes_room(roll: cst.Call, source: Source) -> bool:
    """Whether an array is rolled by a number that is 0 until the end is reached, `jnp.minimum(0, size - at - new)`, and
    then written to: each time all of it is moved, mostly to where it was."""
    name, by = source.assigned_name(roll), argument(roll, 1, "shift")
    if name is None or by is None or not _is_rolled(roll, source):
        return False
    bound = source.meant(by)
    if not source.calls(bound, *_BOUNDS):
        return False
    if not any(constant(arg.value) == 0 for arg in bound.args):
        return False
    return any(_is_written(read, source) for read in source.reads(name))


def _is_rolled(result: cst.BaseExpression, source: Source) -> bool:
    """`jnp.roll(x, by, axis=0)` of a variable."""
    if not source.calls(result, "jax.numpy.roll"):
        return False
    whole, by = argument(result, 0, "a"), argument(result, 1, "shift")
    return isinstance(whole, cst.Name | cst.Attribute) and by is not None and not is_literal(by)


def _is_written(read: cst.Name, source: Source) -> bool:
    """Whether a window or a place of what is read is written there."""
    match source.parent(read):
        case cst.Arg() as arg:
            call = source.parent(arg)
            return isinstance(call, cst.Call) and call.args[0] is arg and source.calls(call, *_WINDOWS)
        case cst.Attribute(value=value, attr=cst.Name("at")):
            return value is read
    return False
