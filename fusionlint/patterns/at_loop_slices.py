"""What to write instead of slices that a Python loop writes, one in each turn.

In: the writes of a loop of a Source. Out: what joins the pieces: along one axis a concatenate does, along several masks
say where each is.
"""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from fusionlint.patterns.at import Part, Write, is_static, is_whole, names_read
from fusionlint.patterns.at_loop import counted_by
from fusionlint.patterns.at_stands import Stands, stands
from fusionlint.source.tree import Source


def of_slices(write: Write, pieces: Sequence[Write], array: str, loop: cst.For, source: Source) -> str | None:
    """Of pieces that are slices, whichever joins them: along one axis a concatenate, along several nothing."""
    jnp = source.alias("jax.numpy") or "jnp"
    if any(_is_window_of_a_row(piece, loop) for piece in pieces):
        along = "with arrays of indices along each axis that broadcast"
        return f"all the values first, then one `{array}.at[rows, columns].{write.method}(values)`, {along}"
    if any(_is_a_rectangle(piece, source) for piece in pieces):
        if all(_is_on_a_diagonal(piece, source) for piece in pieces):
            whole = f"one jax.scipy.linalg.block_diag of a list of the pieces, behind {jnp}.pad where all is larger"
            return whole if write.method == "set" else f"{array}, and to it the pieces at once: {whole}"
        masks = f"one {jnp}.where of a mask for each piece, {jnp}.arange along each axis compared with its bounds"
        return f"{masks}; a block is brought to its place by {jnp}.pad"
    if any(_is_a_slice_by_name(part, source) for piece in pieces for part in piece.index):
        along = f"one {jnp}.concatenate where they lie along one axis"
        return f"a list of the pieces, and {along}, else {jnp}.where of masks, each brought to its place by {jnp}.pad"
    if any(_is_cut_to_size(_sliced(part, source)) for piece in pieces for part in piece.index):
        return f"a list of the pieces and of what stands between them, and one {jnp}.concatenate of it"
    return None


def _is_a_rectangle(write: Write, source: Source) -> bool:
    """Whether slices are written along two axes or more, which nothing joins."""
    return len(_cut(write, source)) > 1


def _is_on_a_diagonal(write: Write, source: Source) -> bool:
    """`[i:j, i:j]`."""
    return len({source.code(part) for part in _cut(write, source)}) == 1


def _cut(write: Write, source: Source) -> list[Part]:
    return [part for part in write.index if stands(part, source) is Stands.SLICE and not is_static(part)]


def _is_window_of_a_row(write: Write, loop: cst.For) -> bool:
    """`[2 * i, 3 * i : 3 * i + 3]`: each turn writes another window of another row."""
    counted = counted_by(loop)
    moved = [part for part in write.index if any(name.value in counted for name in names_read(part))]
    return any(map(_is_cut_to_size, moved)) and any(not isinstance(part, cst.Slice) for part in moved)


def _sliced(part: Part, source: Source) -> Part:
    """`a:b` for a name of `slice(a, b)`; another part as it is."""
    match source.value(part) if isinstance(part, cst.Name) else None:
        case cst.Call(func=cst.Name("slice"), args=[cst.Arg(value=lower), cst.Arg(value=upper)]):
            return cst.Slice(lower=lower, upper=upper)
    return part


def _is_a_slice_by_name(part: Part, source: Source) -> bool:
    """Whether a part is called as slices are, and may be one or several: `block_slice`."""
    return not isinstance(_sliced(part, source), cst.Slice) and stands(part, source) is Stands.SLICE


def _is_cut_to_size(part: Part) -> bool:
    """`at : at + size`."""
    return isinstance(part, cst.Slice) and not is_whole(part) and not is_static(part)
