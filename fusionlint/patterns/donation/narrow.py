"""Networks whose layers are all narrow, by the widths that a file writes out, of layers or of its own networks: a few
thousand weights. So have circuits of qubits: their gates take an angle or fifteen.

In: a Source. Out: whether it makes layers, all of which are seen to be narrow, or circuits and no layers.
"""

from __future__ import annotations

import libcst as cst

from fusionlint.lazily import regex
from fusionlint.patterns.values.how_many import whole_number
from fusionlint.source.places import Place
from fusionlint.source.transforms import MODULES
from fusionlint.source.tree import Source

# A layer from 64 to 64 has 16 kB of weights.
_NARROW = 64
_LAYER = regex(r"^(haiku|flax\.linen|flax\.nnx|equinox\.nn|jax\.example_libraries\.stax)\.(\w+\.)*(?P<name>[A-Z]\w*)$")
# What has no weights of its own, or as many as its input is wide.
_WITHOUT = regex(r"^(Module|Sequential|Lambda|Flatten|Dropout|RNN|Rngs|\w*(Norm|Pool|State|Variable|Param))$")
# What simulates qubits, whose states take as much memory as there is: of a project's own files too.
_CIRCUIT = regex(r"^(tensorcircuit|pennylane)\.([\w.]+[.:])*(\w*Circuit|\w*2tc|qnode|QNode)$")


def are_all_narrow(source: Source) -> bool:
    """Whether the file makes layers by known libraries, `hk.Linear(10)`, `nn.Dense(features=2)`, none of which is wider
    than 64 or as wide as nobody sees."""
    layers = _layers(source)
    if layers and all(_is_narrow(call, source) for call in layers):
        return True
    if any(_is_wide(call, source) for call in layers):
        return False
    return _are_told_to_be(source) or (not layers and _makes_circuits(source))


def _makes_circuits(source: Source) -> bool:
    """Whether the file makes circuits of qubits, `tc.Circuit(10)`."""
    return any(name and _CIRCUIT.match(name) for _, name, _ in source.project.named_calls(source.path))


def _layers(source: Source) -> list[cst.Call]:
    named = {name for _, name, _ in source.project.named_calls(source.path) if name is not None}
    names = {name for name in named if (found := _LAYER.match(name)) and not _WITHOUT.match(found["name"])}
    return [*source.calls_of(names)]


def _is_wide(layer: cst.Call, source: Source) -> bool:
    return any((whole_number(arg.value, source) or 0) > _NARROW for arg in layer.args)


def _are_told_to_be(source: Source) -> bool:
    """Whether the file makes objects of its own modules, whose constructors have no sizes by default, and tells each
    all of its sizes, `MLP(din=1, dhidden=32, dout=1, rngs=rngs)`: of its layers none is wider than those."""
    classes = (
        place
        for scope in source.facts.raw.classes
        if source.project.inherits(place := Place(source.path, scope), MODULES)
    )
    names = {source.project.name_of(place) for place in classes if _is_told_all(place, source)}
    made = [*source.calls_of(names)]
    made = [call for call in made if not source.facts.class_around(source.scope(call))]
    return bool(made) and all(_has_narrow_sizes(call, source) for call in made)


def _is_told_all(place: Place, source: Source) -> bool:
    init = source.definition(f"{place.scope}.__init__")
    if not isinstance(init, cst.FunctionDef) or init.params.star_kwarg is not None:
        return False
    return all(each.default is None for each in (*init.params.params, *init.params.kwonly_params))


def _has_narrow_sizes(made: cst.Call, source: Source) -> bool:
    sizes = [whole_number(arg.value, source) for arg in made.args]
    others = [arg.value for arg, size in zip(made.args, sizes, strict=True) if size is None]
    known = [size for size in sizes if size is not None]
    return len(known) > 1 and max(known) <= _NARROW and len(others) <= 1


def _is_narrow(layer: cst.Call, source: Source) -> bool:
    """Whether the sizes of a layer are seen, and small: `MLP([30, 30, 2])`."""
    values = [arg.value for arg in layer.args]
    listed = [value.elements for value in values if isinstance(value, cst.List | cst.Tuple)]
    sizes = [whole_number(value, source) for value in (*values, *(e.value for each in listed for e in each))]
    known = [size for size in sizes if size is not None]
    first = values[0] if values else None
    is_first_seen = isinstance(first, cst.List | cst.Tuple) or (first is not None and sizes[0] is not None)
    return is_first_seen and all(size <= _NARROW for size in known)
