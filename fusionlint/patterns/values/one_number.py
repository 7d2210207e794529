"""Values that are seen to be one number, and no array of them: `0.95`, `jnp.max(x)`, `t: float`, `r: Float[Array, ""]`.

In: an expression of a Source. Unknown is no number.
"""

from __future__ import annotations

import libcst as cst

from fusionlint.lazily import regex
from fusionlint.patterns.code.at import constant, inside, is_literal
from fusionlint.patterns.values.annotations import axes_said
from fusionlint.patterns.values.kinds import kind
from fusionlint.source.tree import Source
from fusionlint.source.walk import dotted

# `array_typing.FloatScalar`, `chex.Scalar`, `jaxtyping.ScalarLike`.
_SCALAR = regex(r"(^|\.)(\w*Scalar(Like)?|float|int)$")
_REDUCTIONS = ("max", "min", "sum", "mean", "median", "argmax", "argmin")
_OF_ALL = tuple(f"jax.numpy.{name}" for name in _REDUCTIONS)
_METHODS = (*_REDUCTIONS, "item")
_OF_PYTHON = ("int", "float", "len")
_TYPES = tuple(
    f"jax.numpy.{name}" for name in ("int8", "int16", "int32", "int64", "uint8", "float32", "asarray", "array")
)
_NO_NUMBER = frozenset(("List", "Tuple", "SimpleString", "Ellipsis", "Imaginary"))
# A name seldom stands for more names than this.
_DEPTH = 3


def is_zero(value: cst.BaseExpression, source: Source) -> bool:
    """`0`, a name for it, or an array of it, `jnp.int32(0)`."""
    match source.meant(value):
        case cst.Call(args=[cst.Arg(value=one), *_]) as made:
            return constant(one) == 0 and source.calls(made, *_TYPES)
        case meant:
            return constant(meant) == 0


def is_a_number(value: cst.BaseExpression | None, source: Source, depth: int = _DEPTH) -> bool:
    """Whether `value` is one number wherever the code around it runs."""
    match value:
        case None:
            return False
        case cst.Name():
            meant = source.value(value)
            return _is_said_to_be_one(value, source) or (bool(depth) and is_a_number(meant, source, depth - 1))
        case cst.BinaryOperation(left=left, right=right):
            return is_a_number(left, source, depth) and is_a_number(right, source, depth)
        case cst.UnaryOperation(expression=inner):
            return is_a_number(inner, source, depth)
        case cst.Subscript(
            value=cst.Attribute(attr=cst.Name("shape")), slice=[cst.SubscriptElement(slice=cst.Index())]
        ):
            return True
        case cst.Call(func=cst.Attribute(attr=cst.Name(method)) as function, args=[]):
            return method in _METHODS and source.qualified_name(function) is None
        case cst.Call(args=[cst.Arg(value=one)]):
            return source.calls(value, *_OF_ALL, *_OF_PYTHON) or (
                source.calls(value, *_TYPES) and is_a_number(one, source, depth)
            )
    return is_literal(value) and isinstance(value, cst.Integer | cst.Float)


def is_written_out(value: cst.BaseExpression | None) -> bool:
    """Whether this is one number, or truth value, that is written out, and no list of some."""
    return (
        value is not None and is_literal(value) and _NO_NUMBER.isdisjoint(type(part).__name__ for part in inside(value))
    )


def is_one_number(value: cst.BaseExpression, source: Source) -> bool:
    """Whether this is written out, or seen to be one number, of an array or of Python."""
    return is_written_out(value) or is_a_number(value, source) or kind(value, source) == "scalar"


def is_scalar_literal(node: cst.BaseExpression, source: Source) -> bool:
    """Whether a scalar is written out: a number, or an array of no dimensions."""
    match node:
        case cst.Integer() | cst.Float() | cst.Name(value="True" | "False"):
            return True
        case cst.UnaryOperation(expression=inner):
            return is_scalar_literal(inner, source)
        case cst.Call(args=[cst.Arg(value=inner), *_]):
            name = (source.qualified_name(node.func) or "").removeprefix("jax.numpy.")
            if name in ("zeros", "ones", "full"):
                return isinstance(inner, cst.List | cst.Tuple) and not inner.elements
            return name in ("array", "asarray", "float32", "int32", "bool_") and is_scalar_literal(inner, source)
    return False


def _is_said_to_be_one(name: cst.Name, source: Source) -> bool:
    """Whether the annotation of a parameter or of a variable says so."""
    match source.binder(name):
        case cst.Param(annotation=cst.Annotation(annotation=said)) | cst.AnnAssign(annotation=cst.Annotation(said)):
            return _SCALAR.search(dotted(said)) is not None or axes_said(name, source) == ()
    return False
