"""Networks whose layers are all narrow, by the widths that a file writes out: a few thousand weights.

In: a Source. Out: whether it makes layers, all of which are seen to be narrow.
"""

from __future__ import annotations

import libcst as cst

from fusionlint.lazily import regex
from fusionlint.patterns.values.how_many import whole_number
from fusionlint.source.tree import Source

# A layer from 64 to 64 has 16 kB of weights.
_NARROW = 64
_LAYER = regex(r"^(haiku|flax\.linen|flax\.nnx|equinox\.nn|jax\.example_libraries\.stax)\.(\w+\.)*(?P<name>[A-Z]\w*)$")
# What has no weights of its own, or as many as its input is wide.
_WITHOUT = regex(r"^(Module|Sequential|Lambda|Flatten|Dropout|RNN|Rngs|\w*(Norm|Pool|State|Variable|Param))$")


def are_all_narrow(source: Source) -> bool:
    """Whether the file makes layers by known libraries, `hk.Linear(10)`, `nn.Dense(features=2)`, none of which is wider
    than 64 or as wide as nobody sees."""
    named = {name for _, name, _ in source.project.named_calls(source.path) if name is not None}
    names = {name for name in named if (found := _LAYER.match(name)) and not _WITHOUT.match(found["name"])}
    layers = [call for call in source.calls_of(names) if isinstance(call, cst.Call)] if names else []
    return bool(layers) and all(_is_narrow(call, source) for call in layers)


def _is_narrow(layer: cst.Call, source: Source) -> bool:
    """Whether the sizes of a layer are seen, and small: `MLP([30, 30, 2])`."""
    values = [arg.value for arg in layer.args]
    listed = [value.elements for value in values if isinstance(value, cst.List | cst.Tuple)]
    sizes = [whole_number(value, source) for value in (*values, *(e.value for each in listed for e in each))]
    known = [size for size in sizes if size is not None]
    first = values[0] if values else None
    is_first_seen = isinstance(first, cst.List | cst.Tuple) or (first is not None and sizes[0] is not None)
    return is_first_seen and all(size <= _NARROW for size in known)
