"""Branches of a conditional that are cheap: elementwise work alone, so that to do it always costs next to nothing.

In: a branch, as `branches.py` reads it. What is not seen to be cheap is not.
"""

from __future__ import annotations

import libcst as cst

from fusionlint.patterns.branches.conditional import DEPTH, Branch, conditional
from fusionlint.patterns.code.at import holds, inside
from fusionlint.patterns.code.elementwise import ELEMENTWISE, is_elementwise, is_update
from fusionlint.patterns.code.functions import Function, function_named
from fusionlint.source.tree import Source

# What does something to each of a tree's leaves.
MAPS = ("jax.tree.map", "jax.tree_map", "jax.tree_util.tree_map", "jax.tree_multimap")
# Calls that make an array of what they are given, or all of one value: one pass over memory.
_MADE_NAMES = (
    "array asarray zeros zeros_like ones ones_like full full_like float32 float64 bfloat16 float16 int32 int64 "
    "int8 int16 uint8 uint16 uint32 bool_ expand_dims stack roll concatenate concat pad copy"
)
_MADE = frozenset(f"jax.numpy.{name}" for name in _MADE_NAMES.split())
_OPTAX = frozenset(
    ("optax.incremental_update", "optax.periodic_update", "optax.tree.zeros_like", "optax.tree_utils.tree_zeros_like")
)
_METHODS = frozenset(("astype", "clip", "round", "conj", "replace", "_replace", "reshape"))


def is_cheap(branch: Branch, source: Source, depth: int = DEPTH) -> bool:
    """Whether a branch is seen to do elementwise work alone, so that doing it always costs next to nothing."""
    return _is_cheap_function(branch.function, source, depth)


def _is_cheap_function(function: Function, source: Source, depth: int) -> bool:
    parts = list(inside(function.body))
    if isinstance(function, cst.FunctionDef) and not any(isinstance(part, cst.Return) for part in parts):
        return False  # what a subclass puts in its place is not seen
    return depth > 0 and all(_is_cheap_part(part, source, depth) for part in parts)


def _is_cheap_part(part: cst.CSTNode, source: Source, depth: int) -> bool:
    match part:
        case cst.Call():
            return is_cheap_call(part, source, depth)
        case cst.For() | cst.While() | cst.MatrixMultiply() | cst.MatrixMultiplyAssign() | cst.Raise() | cst.With():
            return False
        case cst.BaseComp():
            return False
        case cst.Attribute(attr=cst.Name("at")):
            return False
    return True


def is_cheap_call(call: cst.Call, source: Source, depth: int = DEPTH) -> bool:
    """Whether a call does elementwise work alone, on a tree of arrays perhaps."""
    name = source.qualified_name(call.func)
    if is_elementwise(call, source) or name in _MADE or name in _OPTAX or is_update(call, source):
        return True
    if name in MAPS:
        mapped = function_named(call.args[0].value, source) if call.args else None
        if mapped and holds(mapped.body, cst.Subscript):
            return False  # rows of every leaf are gathered
        return bool(mapped and _is_cheap_function(mapped, source, depth - 1)) or _names_cheap(call, source)
    if found := conditional(call, source):
        return all(is_cheap(branch, source, depth - 1) for branch in found.branches)
    if name in ("len", "float", "int", "range", "max", "min"):
        return True
    helper = function_named(call.func, source)
    if helper is not None:
        return _is_cheap_function(helper, source, depth - 1)
    if name is not None or not isinstance(call.func, cst.Attribute):
        return False
    is_update_of_fields = call.func.attr.value == "update" and all(arg.keyword is not None for arg in call.args)
    return call.func.attr.value in _METHODS or (is_update_of_fields and bool(call.args))


def _names_cheap(call: cst.Call, source: Source) -> bool:
    """`jax.tree.map(jnp.zeros_like, tree)`, `jax.tree.map(jnp.add, one, other)`."""
    mapped = call.args[0].value if call.args else None
    return mapped is not None and source.qualified_name(mapped) in _MADE | ELEMENTWISE
