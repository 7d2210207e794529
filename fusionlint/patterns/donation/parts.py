"""Names that a part of a value gets as it is, and no copy of it: `params = get_params(opt_state)`, `p = state.params`.

In: reads of the value, or calls that are handed it. Out: the names, or whether what the call returns is that memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import libcst as cst

from fusionlint.lazily import regex
from fusionlint.patterns.code.at import elements
from fusionlint.patterns.code.functions import function_named, parameters, returns_of
from fusionlint.patterns.code.unpacked import bound_by, stored_in
from fusionlint.patterns.dispatch.jit import is_jitted
from fusionlint.patterns.values.kinds import kind
from fusionlint.source.names import TREE_MAPS
from fusionlint.source.tree import Source
from fusionlint.source.walk import dotted

# A name seldom stands for more names than this.
_DEPTH = 4
# What takes a part out of a state that it is handed, wherever it is from.
_GETS = regex(r"^get_(params?|parameters|weights|variables|model|(\w+_)?states?)(_and_\w+)?$")
# What a value is asked for that is no memory of a device, or lives on.
_NO_ARRAYS = frozenset(("shape", "dtype", "ndim", "size", "sharding", "apply_fn", "tx", "config"))
# What hands out the arrays that it is handed, or may: also `device_put`, where they are on that device already.
_HANDS_ON = frozenset(
    ("jax.device_put", "jax.lax.stop_gradient", "jax.numpy.asarray", "jax.tree.leaves", "jax.tree_util.tree_leaves",
     "jax.tree.flatten", "jax.tree_util.tree_flatten", "jax.tree_flatten", "jax.tree_leaves", "flax.core.freeze",
     "flax.core.unfreeze", "flax.core.frozen_dict.freeze", "flax.core.frozen_dict.unfreeze",
     "flax.traverse_util.flatten_dict", "flax.nnx.state", "flax.nnx.split", "equinox.filter", "equinox.partition",
     "equinox.combine", "equinox.nn.inference_mode", "copy.copy", "dict", "list", "tuple")
)  # fmt: skip
# Of what pmap returned: in an older jax the first is the memory of one device.
_FIRST_SHARD = "unreplicate"


def names_of_parts(read: cst.CSTNode, source: Source) -> list[cst.Name]:
    """The names that get a part of what is read here, or what a call hands back of it: none for all of it."""
    part, places = read, None
    while True:
        match above := source.parent(part):
            case cst.Attribute(value=whole, attr=cst.Name(name)) if whole is part and name not in _NO_ARRAYS:
                part = above
            case cst.Subscript(value=whole) if whole is part and _is_item(above, source):
                part = above
            case cst.Call(func=cst.Attribute(attr=cst.Name("get"))) if above.func is part:  # of a dict
                part = above
            case cst.Arg():
                call = source.parent(above)
                if not isinstance(call, cst.Call) or not gives_back(call, above, source):
                    return []
                part, places = call, _places(call, above, source)
            case cst.Assign(value=value) if value is part and part is not read:
                return [name for target in above.targets for name in _at(places, target.target)]
            case _:
                target = source.assigned_name(part) if part is not read else None
                return [] if target is None else [target]


def _at(places: frozenset[int] | None, target: cst.BaseExpression) -> Iterator[cst.Name]:
    """The names that a target binds, of a tuple those at `places`, where these are known."""
    if places is None or not isinstance(target, cst.Tuple):
        yield from bound_by(target)
        return
    for place, element in enumerate(target.elements):
        if place in places:
            yield from bound_by(element.value)


def _is_item(taken: cst.Subscript, source: Source) -> bool:
    """Whether one entry of a list or a dict is taken: an index of an array makes another one."""
    is_one = len(taken.slice) == 1 and isinstance(taken.slice[0].slice, cst.Index)
    return is_one and kind(taken.value, source) != "array"


def gives_back(call: cst.Call, given: cst.Arg, source: Source) -> bool:
    """Whether `call` returns the arrays that it is handed as `given`, or some of them, as they are."""
    name = source.qualified_name(call.func) or dotted(call.func)
    if name in _HANDS_ON or dotted(call.func).rpartition(".")[2] == _FIRST_SHARD:
        return True
    if name in TREE_MAPS:
        return len(call.args) > 1 and call.args[0] is not given and _keeps_leaves(call.args[0].value, source)
    function = function_named(call.func, source)
    if is_jitted(call.func, source):
        return False
    if isinstance(function, cst.FunctionDef):
        return bool(_returned_parts(function, call.args.index(given), source))
    return bool(_GETS.match(dotted(call.func).rpartition(".")[2]))


def _places(call: cst.Call, given: cst.Arg, source: Source) -> frozenset[int] | None:
    """Which of what a def of the file returns, where it returns several, are parts of what it is handed."""
    function = function_named(call.func, source)
    if not isinstance(function, cst.FunctionDef):
        return None
    return _returned_parts(function, call.args.index(given), source)


def _keeps_leaves(one: cst.BaseExpression, source: Source) -> bool:
    """Whether what is mapped over a tree leaves its arrays as they are, or takes of each the shard of one device."""
    if source.qualified_name(one) in _HANDS_ON:
        return True
    match one:
        case cst.Lambda(params=cst.Parameters(params=[cst.Param(name=cst.Name(leaf))]), body=body):
            match body:
                case cst.Name(same):
                    return same == leaf
                case cst.Subscript(value=cst.Name(same), slice=slices):
                    is_shard = isinstance(elements(slices)[0], cst.Integer) and "pmap" in source.facts.raw.attributes
                    return same == leaf and is_shard
    return False


def _returned_parts(function: cst.FunctionDef, place: int, source: Source) -> frozenset[int]:
    """The places at which a def returns, of what it is handed at `place`, all or a part: `return state[0]`, `x, _ =
    state`."""
    handed = [*parameters(function)][place : place + 1]
    returned = [part.value for part in returns_of(function, source) if part.value is not None]
    parts = [(i, each.value) for value in returned for i, each in enumerate(_listed(value))]
    return frozenset(i for i, part in parts if any(_is_of(part, one.name, source) for one in handed))


def _listed(value: cst.BaseExpression) -> Sequence[cst.BaseElement]:
    return value.elements if isinstance(value, cst.Tuple) else [cst.Element(value)]


def _is_of(value: cst.BaseExpression, handed: cst.Name, source: Source, depth: int = _DEPTH) -> bool:
    """Whether this is `handed`, a part of it, or a name for one."""
    while isinstance(value, cst.Attribute | cst.Subscript):
        value = value.value
    if not isinstance(value, cst.Name) or depth == 0:
        return False
    if source.written(value) is handed:
        return True
    whole = stored_in(value, source)
    return whole is not None and _is_of(whole, handed, source, depth - 1)
