"""Whether a value is seen to hold floats, of the one width that a file has: what it is set in then holds such too.

In: an expression of a Source. Unknown is no float.
"""

from __future__ import annotations

from functools import lru_cache

import libcst as cst

from fusionlint.lazily import regex
from fusionlint.patterns.code.at import is_fresh
from fusionlint.patterns.code.calls import said_dtype
from fusionlint.patterns.code.elementwise import is_elementwise
from fusionlint.patterns.values.masks import is_mask
from fusionlint.source.pieces import Pieces
from fusionlint.source.tree import Source
from fusionlint.source.walk import dotted

# A name seldom stands for more names than this.
_DEPTH = 5
_FLOAT = regex(r"(^|\.)float(32|_)?$")
# Floats of another width, and numbers of two: a file that has such may mix them.
_OTHERS = regex(r"float(16|64)|x64|complex|\bhalf\b|[^\w.][\d.]+j\b")
_MADE = tuple(
    f"jax.numpy.{name}"
    for name in ("sqrt", "exp", "log", "sin", "cos", "tan", "tanh", "arctan2", "arccos", "arcsin", "arctan", "mean",
                 "std", "var", "linspace", "linalg.norm", "float32", "deg2rad", "hypot", "divide", "true_divide")
)  # fmt: skip
_DRAWN = tuple(
    f"jax.random.{name}" for name in ("normal", "uniform", "truncated_normal", "exponential", "beta", "gamma")
)
_NUMBERS = tuple(f"{module}.{name}" for module in ("jax.numpy", "numpy", "math") for name in ("pi", "inf", "nan", "e"))
_NEW = ("jax.numpy.zeros", "jax.numpy.ones", "jax.numpy.empty")


def are_all_alike(source: Source) -> bool:
    """Whether the file speaks of no floats but those of jax's own width: arithmetic leaves them as wide as they are."""
    return _are_all_alike(source.pieces)


@lru_cache(maxsize=1)  # of a file with a fix in every function it is asked as often
def _are_all_alike(pieces: Pieces) -> bool:
    return not any(_OTHERS.search(line) for line in pieces.lines)


def is_known_number(node: cst.CSTNode | None, source: Source) -> bool:
    """`jnp.pi`, `np.nan`."""
    return isinstance(node, cst.Attribute) and source.qualified_name(node) in _NUMBERS


def is_float(value: cst.CSTNode | None, source: Source, depth: int = _DEPTH) -> bool:
    """Whether `value` is seen to hold floats: what is divided, a root, a draw, a decimal number, what such is in."""
    match value if depth else None:
        case cst.Float():
            return True
        case cst.Name() as name:
            return is_float(source.value(name), source, depth - 1)
        case cst.Attribute() as constant:
            return is_known_number(constant, source)
        case cst.UnaryOperation(operator=cst.Minus() | cst.Plus(), expression=inner):
            return is_float(inner, source, depth)
        case cst.BinaryOperation(operator=cst.Divide()):
            return True
        case cst.BinaryOperation(left=left, operator=operator, right=right):
            is_sum = not isinstance(operator, cst.BitAnd | cst.BitOr | cst.BitXor | cst.LeftShift | cst.RightShift)
            return is_sum and (is_float(left, source, depth) or is_float(right, source, depth))
        case cst.Subscript(value=whole):
            return isinstance(whole, cst.Name) and is_float(whole, source, depth)
        case cst.Call() as call:
            return _is_made(call, source, depth)
    return False


def _is_made(call: cst.Call, source: Source, depth: int) -> bool:
    if is_mask(call, source):
        return False
    if source.calls(call, *_MADE, *_DRAWN):
        return True
    if is_fresh(call, source):
        said = said_dtype(call, source)
        return _FLOAT.search(dotted(said)) is not None if said is not None else source.calls(call, *_NEW)
    match call:
        case cst.Call(func=cst.Attribute(attr=cst.Name("astype")), args=[cst.Arg(value=said), *_]):
            return _FLOAT.search(dotted(said)) is not None
        case cst.Call(func=cst.Attribute(value=whole, attr=cst.Name("sum" | "max" | "min" | "reshape" | "dot"))):
            return is_float(whole, source, depth - 1)
        case cst.Call(args=[_, *chosen]) if source.calls(call, "jax.numpy.where"):
            return any(is_float(arg.value, source, depth - 1) for arg in chosen)
        case cst.Call(args=[*given]) if is_elementwise(call, source) or source.calls(call, "jax.numpy.sum"):
            return any(is_float(arg.value, source, depth - 1) for arg in given)
    return False
