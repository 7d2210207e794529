"""Arrays that a scan has stacked, a row in each of its steps: `_, xs = jax.lax.scan(step, x0, keys)`.

In: an array of a Source. Beside so many steps, one after the other, a kernel or two over what they left take no time.
"""

from __future__ import annotations

import libcst as cst

from fusionlint.patterns.code.at import number_in
from fusionlint.patterns.code.unpacked import assigned
from fusionlint.source.names import TREE_MAPS
from fusionlint.source.tree import Source

_SCANS = ("jax.lax.scan", "flax.linen.scan", "flax.nnx.scan", "haiku.scan")


def is_stacked_by_a_scan(array: cst.BaseExpression, source: Source) -> bool:
    """Whether `array` is what a scan of the same function stacked, or one of several of those; for what a tree map
    hands its lambda, whether that is."""
    match array:
        case cst.Name():
            binder = source.binder(array)
            if isinstance(binder, cst.Param):
                mapped = _handed_by_a_tree_map(binder, source)
                return mapped is not None and is_stacked_by_a_scan(mapped, source)
            return _is_second_of_a_scan(source.written(array), source)
        case cst.Tuple(elements=[*several]):
            return all(is_stacked_by_a_scan(each.value, source) for each in several)
        case cst.Subscript(value=cst.Name() as whole) | cst.Attribute(value=cst.Name() as whole):
            return is_stacked_by_a_scan(whole, source)
    return False


def _handed_by_a_tree_map(parameter: cst.Param, source: Source) -> cst.BaseExpression | None:
    """x of `jax.tree.map(lambda row: ..., x)`, for `row`."""
    function = source.nearest(parameter, cst.Lambda)
    call = source.handed_to(function) if function is not None else None
    if call is None or function is None or source.qualified_name(call.func) not in TREE_MAPS:
        return None
    place = next((i for i, each in enumerate(function.params.params, start=1) if each is parameter), len(call.args))
    return call.args[place].value if call.args[0].value is function and place < len(call.args) else None


def _is_second_of_a_scan(written: cst.CSTNode | None, source: Source) -> bool:
    """`_, xs = scan(...)`, `_, (xs, ys) = scan(...)`."""
    place, made = None, assigned(written, source)
    while written is not None and isinstance(element := source.parent(written), cst.Element):
        several = source.parent(element)
        if not isinstance(several, cst.Tuple):
            return False
        place = number_in(several.elements, element)
        written, made = several, assigned(several, source)
    return place == 1 and source.calls(made, *_SCANS)
