"""Elementwise work: which calls do it, and where a value goes through it. XLA fuses a chain of it into one kernel."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from fusionlint.patterns.code.calls import REPLACES, call_of
from fusionlint.source.tree import Source

_NAMES = (
    "abs absolute acos acosh add angle arccos arccosh arcsin arcsinh arctan arctan2 arctanh asin asinh astype "
    "atan atan2 atanh bitwise_and bitwise_invert bitwise_not bitwise_or bitwise_xor cbrt ceil clip conj cos cosh "
    "deg2rad degrees divide equal exp exp2 expm1 fabs float_power floor floor_divide fmax fmin fmod greater "
    "greater_equal heaviside hypot isclose isfinite isinf isnan less less_equal log log10 log1p log2 logaddexp "
    "logaddexp2 logical_and logical_not logical_or logical_xor maximum minimum mod multiply nan_to_num negative "
    "not_equal pow power rad2deg radians reciprocal remainder rint round sign sin sinc sinh sqrt square subtract "
    "tan tanh true_divide trunc where"
)
_LAX = (
    "abs add clamp convert_element_type cos div erf exp expm1 integer_pow log log1p logistic max min mul neg pow rsqrt"
)
_LAX += " select sign sin sqrt square stop_gradient sub tan tanh"
_NN = "celu elu gelu hard_sigmoid hard_swish hard_tanh leaky_relu log_sigmoid mish relu relu6 sigmoid silu soft_sign"
_NN += " softplus swish tanh"
ELEMENTWISE = frozenset(
    [f"jax.numpy.{name}" for name in _NAMES.split()]
    + [f"jax.lax.{name}" for name in _LAX.split()]
    + [f"jax.nn.{name}" for name in _NN.split()]
)
# What takes each element from one of two arrays.
CHOICES = ("jax.numpy.where", "jax.lax.select")
_METHODS = frozenset(("astype", "clip", "round", "conj"))


def worked_on(node: cst.CSTNode, source: Source) -> cst.CSTNode:
    """The largest elementwise expression that the value of `node` goes into; `node` itself where none does."""
    while (above := _around(node, source)) is not None:
        node = above
    return node


def is_worked_on(node: cst.CSTNode, source: Source) -> bool:
    """Whether elementwise work reads `node`: `y += x` too."""
    parent = source.parent(node)
    return worked_on(node, source) is not node or (isinstance(parent, cst.AugAssign) and parent.value is node)


def _around(node: cst.CSTNode, source: Source) -> cst.BaseExpression | None:
    match parent := source.parent(node):
        case cst.BinaryOperation(operator=operator):
            return None if isinstance(operator, cst.MatrixMultiply) else parent
        case cst.UnaryOperation(operator=operator):
            return None if isinstance(operator, cst.Not) else parent
        case cst.Comparison():
            return parent
        case cst.ComparisonTarget():
            above = source.parent(parent)
            return above if isinstance(above, cst.Comparison) else None
        case cst.Arg(star=""):
            call = source.parent(parent)
            return call if isinstance(call, cst.Call) and is_elementwise(call, source) else None
        case cst.Attribute(value=value, attr=cst.Name(method)) if value is node and method in _METHODS:
            return call_of(parent, source)
    return None


def is_elementwise(call: cst.Call, source: Source) -> bool:
    """Whether a call computes every element of its result from one place of its arguments."""
    return source.qualified_name(call.func) in ELEMENTWISE


def operands(node: cst.BaseExpression, source: Source) -> Iterator[cst.BaseExpression] | None:
    """What an elementwise expression is computed from; None for an expression that is none."""
    match node:
        case cst.BinaryOperation(left=left, operator=operator, right=right):
            return None if isinstance(operator, cst.MatrixMultiply) else iter((left, right))
        case cst.UnaryOperation(expression=expression):
            return iter((expression,))
        case cst.Comparison(left=left, comparisons=comparisons):
            return iter((left, *(target.comparator for target in comparisons)))
        case cst.Call(args=args) if is_elementwise(node, source):
            return (arg.value for arg in args if arg.keyword is None)
        case cst.Call(func=cst.Attribute(value=value, attr=cst.Name("clip")), args=args):
            return iter((value, *(arg.value for arg in args)))
        case cst.Call(func=cst.Attribute(value=value, attr=cst.Name(method))) if method in _METHODS:
            return iter((value,))
    return None


def atoms(node: cst.BaseExpression, source: Source) -> Iterator[cst.BaseExpression]:
    """What elementwise work is computed from in the end; `node` itself, where it is none."""
    several = operands(node, source)
    if several is None:
        yield node
    for one in several or ():
        yield from atoms(one, source)


def ends(node: cst.CSTNode, source: Source, depth: int = 8) -> Iterator[cst.CSTNode]:
    """The expressions whose values elementwise work on `node` leaves in memory: what is returned or stored.

    What goes on into a reduction, a dot or a call that nobody knows is not among them.
    """
    if depth == 0:
        return
    top = worked_on(node, source)
    for name in _names(top, source):
        for read in source.reads(name):
            yield from ends(read, source, depth - 1)
    if _is_stored(top, source):
        yield top


def _names(value: cst.CSTNode, source: Source) -> Iterator[cst.Name]:
    """The variables that an assignment stores `value` in, in `a, b = value, other` too."""
    match parent := source.parent(value):
        case cst.Assign(targets=targets):
            yield from (t.target for t in targets if isinstance(t.target, cst.Name))
        case (
            cst.AnnAssign(target=cst.Name() as name)
            | cst.AugAssign(target=cst.Name() as name)
            | cst.NamedExpr(target=cst.Name() as name)
        ):
            yield name
        case cst.Element():
            yield from _unpacked(parent, source)


def _unpacked(element: cst.Element, source: Source) -> Iterator[cst.Name]:
    """The variable that one element of a tuple is unpacked into right away."""
    values = source.parent(element)
    match source.parent(values) if values else None:
        case cst.Assign(
            targets=[cst.AssignTarget(target=cst.Tuple(elements=targets))], value=cst.Tuple(elements=parts)
        ):
            for part, target in zip(parts, targets, strict=False):
                if part is element and len(parts) == len(targets) and isinstance(target.value, cst.Name):
                    yield target.value


def _is_stored(value: cst.CSTNode, source: Source) -> bool:
    match parent := source.parent(value):
        case cst.Return() | cst.Lambda() | cst.DictElement():
            return True
        case cst.Assign(targets=targets):
            return any(not isinstance(t.target, cst.Name) for t in targets)
        case cst.Element():
            values = source.parent(parent)
            if not isinstance(values, cst.Tuple) or any(True for _ in _unpacked(parent, source)):
                return False
            return isinstance(source.parent(values), cst.Assign) or _is_stored(values, source)
        case cst.Arg(keyword=cst.Name()):
            call = source.parent(parent)
            return isinstance(call, cst.Call) and is_update(call, source)
    return False


def is_update(call: cst.Call, source: Source) -> bool:
    """`state.replace(x=...)`, `dataclasses.replace(state, x=...)`, or a class of the project called with fields."""
    if isinstance(call.func, cst.Attribute) and call.func.attr.value in REPLACES:
        return True
    place = source.project.find(source.qualified_name(call.func))
    return place is not None and place.scope in source.project.files[place.path].classes
