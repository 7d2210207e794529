"""Windows along one axis by their start: `lax.dynamic_slice_in_dim(x, i, n)`, and the like that write one or one row.

In: a call of a Source, or what a `vmap` is handed. Out: whether XLA for TPU makes a loop over the batch of it, and what
is written instead.
"""

from __future__ import annotations

import libcst as cst

from fusionlint.lazily import regex
from fusionlint.patterns.code.at import constant, inside
from fusionlint.patterns.code.calls import argument, brief
from fusionlint.patterns.runs.mapped import differs, is_mapped_by, is_shared
from fusionlint.source.tree import Source
from fusionlint.source.walk import dotted

_SLICE = "jax.lax.dynamic_slice_in_dim"
_UPDATE = "jax.lax.dynamic_update_slice_in_dim"
_ROW = "jax.lax.dynamic_update_index_in_dim"
# Which argument says where.
STARTS = {_SLICE: (1, "start_index"), _UPDATE: (2, "start_index"), _ROW: (2, "index")}
ALONG_AXIS = (*STARTS,)
_LONG = 30
_SHARDS = regex(r"(^|[._])(shard|with_sharding)(_|$|ing)")
_FITS = "clipped to what fits, after the axis' length is added to one below 0"


def is_a_write(name: str) -> bool:
    return name != _SLICE


def moves_for_each(call: cst.Call, name: str, source: Source) -> bool:
    """Whether the window begins elsewhere for each element of a `vmap`, as measured: of one array that all of them
    share, or written. Out of an array of each element's own it is a gather, where that has more axes."""
    start = argument(call, *STARTS[name])
    if start is None or not differs(start, source) or _is_spread(call, source):
        return False
    array = argument(call, 0, "operand")
    is_one = name == _SLICE and constant(argument(call, 2, "slice_size") or start) == 1
    return is_a_write(name) or (array is not None and not is_one and is_shared(array, source))


def _is_spread(call: cst.Call, source: Source) -> bool:
    """Whether the outermost function around says how its arrays are spread over devices, `self.shard_by_stage(ids)`:
    each device then moves the few that it has."""
    around = [*source.ancestors(call, cst.FunctionDef)]
    parts = inside(around[-1]) if around else ()
    return any(isinstance(part, cst.Call) and _SHARDS.search(dotted(part.func)) is not None for part in parts)


def is_mapped_for_each(vmap: cst.Call, name: str, source: Source) -> bool:
    """The same of `vmap(lax.dynamic_slice_in_dim, in_axes=(None, 0, None))`."""
    moves = is_mapped_by(vmap, STARTS[name][0], source)
    return moves and (is_a_write(name) or not is_mapped_by(vmap, 0, source))


def instead(call: cst.Call, name: str, source: Source) -> str:
    """The index that cuts or writes as much, by the axis where that is written out."""
    jnp = source.jnp
    x = _shown(call, "x", (0, "operand"), source)
    start = _shown(call, "start", STARTS[name], source)
    axis = argument(call, 3, "axis")
    along = 0 if axis is None else constant(axis)
    before = ":, " * along if isinstance(along, int) and along >= 0 else "..., " if along == -1 else "(: per axis), "
    if name == _SLICE:
        n = _shown(call, "n", (2, "slice_size"), source)
        return f"{x}[{before}{start} + {jnp}.arange({n})], one gather; the start {_FITS}"
    rows = _shown(call, "rows", (1, "update"), source)
    if name == _ROW:
        return f"{x}.at[{before}{start}].set({rows}); the place {_FITS}"
    length = f"{rows}.shape[{source.code(axis) if axis is not None else 0}]"
    return f"{x}.at[{before}{start} + {jnp}.arange({length})].set({rows}); the start {_FITS}"


def _shown(call: cst.Call, name: str, where: tuple[int, str], source: Source) -> str:
    """An argument as it is written, where that is short; else a name for it."""
    value = argument(call, *where)
    return brief(source.code(value), _LONG, name) if value is not None else name
