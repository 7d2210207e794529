"""What a command line says of sizes: those of dims in annotations, and of a mesh of devices. Texts in, values out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from math import prod
from types import MappingProxyType
from typing import TypeAlias

from fusionlint.compiling.entry import Entry, EntryError

Dims: TypeAlias = Mapping[str, "tuple[int, ...]"]  # sizes for the dims of annotations: one, but for `*rest` and `...`
NO_DIMS: Dims = MappingProxyType({})
Axes: TypeAlias = Mapping[str, int]  # of a mesh of devices, in their order
NO_MESH: Axes = MappingProxyType({})

_MOST_DEVICES = 4096  # a CPU for each takes a minute to make
_DIM = re.compile(r"(?P<name>\.\.\.|[^\W\d]\w*)=(?P<sizes>(?:\d+(?:,\d+)*)?)")


def parse_dims(texts: Iterable[str]) -> Dims:
    """Read `batch=32`, and `rest=8,4` for several axes, `rest=` for none. Raises EntryError."""
    dims: dict[str, tuple[int, ...]] = {}
    for text in texts:
        found = _DIM.fullmatch(text)
        if found is None:
            raise EntryError(f"cannot read the dim `{text}`: write batch=32, or rest=8,4 for several axes")
        name, numbers = found["name"], tuple(map(int, filter(None, found["sizes"].split(","))))
        if dims.get(name, numbers) != numbers:
            raise EntryError(f"the dim {name} has two sizes, {_listed(dims[name])} and {_listed(numbers)}")
        dims[name] = numbers
    return dims


def parse_mesh(text: str) -> Axes:
    """Read `data=4,model=2`; "" is no mesh. Raises EntryError."""
    axes: dict[str, int] = {}
    for part in filter(None, text.split(",")):
        name, _, size = (piece.strip() for piece in part.partition("="))
        if name in axes:
            raise EntryError(f"the mesh has the axis {name} twice")
        if not (name.isidentifier() and size.isdecimal() and int(size)):
            raise EntryError(
                f"cannot read the mesh `{text}`: write data=4,model=2, each axis with its number of devices"
            )
        axes[name] = int(size)
    if prod(axes.values()) > _MOST_DEVICES:
        raise EntryError(f"the mesh `{text}` has more than {_MOST_DEVICES} devices: take a smaller one")
    return axes


def check_axes(entry: Entry, mesh: Axes) -> None:
    """Raises EntryError where an array is spread over an axis that the mesh does not have."""
    for axis in sorted(entry.axes - set(mesh)):
        has = f"the mesh has {', '.join(mesh)}" if mesh else f"say how many devices it has: --mesh {axis}=4"
        raise EntryError(f"{entry.name} has an array spread over `{axis}`: {has}")


def _listed(sizes: Iterable[int]) -> str:
    return ",".join(map(str, sizes))
