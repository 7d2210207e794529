"""What a conditional asks before it takes a branch: something that a trace knows, a step's number, whether a number is
one that a branch can work on.

In: a conditional, as `branches.py` reads it, or its test alone.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from fusionlint.patterns.branches.conditional import DEPTH, Branch, Conditional, conditional
from fusionlint.patterns.code.at import inside, is_literal, names_read
from fusionlint.patterns.code.functions import Function, parameters
from fusionlint.patterns.values.predicates import depends_on_input
from fusionlint.source.tree import Source

# What positive numbers alone have, and what numbers between -1 and 1 have or all others: elsewhere the gradient is NaN.
_OF_POSITIVE_NUMBERS = tuple(
    f"jax.{name}"
    for name in ("numpy.sqrt", "numpy.log", "numpy.log2", "numpy.log10", "lax.rsqrt", "lax.sqrt", "lax.log")
)
_OF_SOME_NUMBERS = tuple(
    f"jax.numpy.{name}" for name in ("arccos", "arcsin", "arccosh", "arctanh", "acos", "asin", "acosh", "atanh")
)
FINITENESS = frozenset(("jax.numpy.isfinite", "jax.numpy.isnan", "jax.numpy.isinf"))


def is_static_test(found: Conditional, source: Source) -> bool:
    """Whether a trace knows which branch is meant, for a text or a shape is compared: `axis == "major"`, `len(x) == 1`;
    or may know it, for identity is: `first & (masks is None)`. XLA drops the others."""
    test = source.meant(found.test)
    compared = [*inside(test, cst.Comparison)]
    operators = (target.operator for one in compared for target in one.comparisons)
    if any(isinstance(operator, cst.Is) for operator in operators):
        return True
    sides = [side for one in compared for side in (one.left, *(target.comparator for target in one.comparisons))]
    if any(isinstance(side, cst.SimpleString) for side in sides):
        return True
    of_shapes = [_is_of_a_shape(side, source) for side in sides]
    rest = (side for side, known in zip(sides, of_shapes, strict=True) if not known)
    return isinstance(test, cst.Comparison) and any(of_shapes) and all(map(is_literal, rest))


def _is_of_a_shape(side: cst.BaseExpression, source: Source) -> bool:
    """`x.shape[0]`, `x.ndim`, `len(x)`, and a name for it."""
    match source.meant(side):
        case cst.Subscript(value=cst.Attribute(attr=cst.Name("shape"))) | cst.Attribute(attr=cst.Name("ndim")):
            return True
        case cst.Call(func=cst.Name("len")):
            return True
    return False


def guards_against_nans(found: Conditional, source: Source, nested: int = 0) -> bool:
    """Whether a branch divides by what is asked about or, where that is compared, by what it is made of, takes a root
    or a logarithm of that, multiplies with what may be infinite, `cond(isinf(n), limit, lambda a, n: a * n)`, or takes
    an arccosine, which not all numbers have: both done, the gradient of the one not taken is NaN. Or a conditional in
    a branch, `nested` of them deep, is such a guard."""
    asked = set(_variables(found.test, source))
    compared = source.meant(found.test)
    if isinstance(compared, cst.Comparison):
        made = (source.value(name) for name in names_read(compared))
        asked.update(name for part in (compared, *made) if part is not None for name in _variables(part, source))
    is_infinite = source.calls(compared, *FINITENESS)
    depth = DEPTH if _asks_for_zero(compared) else 0
    for branch in found.branches:
        if nested and any(guards_against_nans(inner, source, nested - 1) for inner in _inner(branch, source)):
            return True
        for part in _parts(branch, source, depth):
            match part:
                case cst.BinaryOperation(operator=cst.Divide(), right=divisor):
                    if not asked.isdisjoint(_variables(divisor, source)):
                        return True
                case cst.Call() if source.calls(part, *_OF_SOME_NUMBERS):
                    return True
                case cst.Call(args=[cst.Arg(value=inner)]) if source.calls(part, *_OF_POSITIVE_NUMBERS):
                    if not (_is_off_zero(inner) or asked.isdisjoint(_variables(inner, source))):
                        return True
                case cst.BinaryOperation(operator=cst.Multiply() | cst.Power()) if is_infinite:
                    sides = [set(_variables(side, source)) for side in (part.left, part.right)]
                    if all(sides) and any(not asked.isdisjoint(side) for side in sides):
                        return True
    return False


def holds_a_guard(found: Conditional, source: Source) -> bool:
    """Whether a conditional in a branch guards against NaN: of a choice around it that is to be one as well."""
    return guards_against_nans(found, source, DEPTH)


def may_be_no_number(found: Conditional, source: Source) -> bool:
    """Whether a branch divides by what is not written out, or takes a root or the like: where both are done, one that
    is not taken may hand NaN to a gradient."""
    for part in (part for branch in found.branches for part in inside(branch.function.body)):
        match part:
            case cst.BinaryOperation(operator=cst.Divide(), right=divisor) if not is_literal(divisor):
                return True
            case cst.Call() if source.calls(part, *_OF_SOME_NUMBERS, *_OF_POSITIVE_NUMBERS):
                return True
    return False


def _asks_for_zero(test: cst.BaseExpression) -> bool:
    """`b == 0.0`: of what is no zero the branches of a conditional inside may divide by it."""
    match test:
        case cst.Comparison(comparisons=[cst.ComparisonTarget(comparator=cst.Integer() | cst.Float() as number)]):
            return number.evaluated_value == 0
    return False


def _parts(branch: Branch, source: Source, depth: int) -> Iterator[cst.CSTNode]:
    """What a branch does, and what the branches of the conditionals in it do, `depth` of them deep."""
    yield from inside(branch.function.body)
    for inner in _inner(branch, source) if depth else ():
        for one in inner.branches:
            yield from _parts(one, source, depth - 1)


def _inner(branch: Branch, source: Source) -> Iterator[Conditional]:
    """The conditionals in a branch."""
    found = (conditional(part, source) for part in inside(branch.function.body))
    return (inner for inner in found if inner is not None)


def _is_off_zero(inner: cst.BaseExpression) -> bool:
    """`1.0 + x`."""
    match inner:
        case cst.BinaryOperation(left=left, operator=cst.Add(), right=right):
            return is_literal(left) or is_literal(right)
    return False


def _variables(node: cst.CSTNode, source: Source) -> Iterator[str]:
    """The names in `node` of what is computed, not of modules, functions and classes."""
    return (name.value for name in names_read(node) if source.qualified_name(name) is None)


def counts_steps(node: cst.BaseExpression, source: Source) -> bool:
    """Whether an expression asks how often something ran: `step % 100 == 0`, which is the same for all that a `vmap`
    runs side by side; of what is joined by `&`, all that is computed from arguments."""
    match node:
        case (
            cst.BinaryOperation(left=left, operator=cst.BitAnd() | cst.BitOr(), right=right)
            | cst.BooleanOperation(left=left, right=right)
        ):
            asked = [part for part in (left, right) if depends_on_input(part, source)]
            return bool(asked) and all(counts_steps(part, source) for part in asked)
    return any(isinstance(p, cst.Modulo) or source.calls(p, "jax.numpy.mod") for p in inside(node))


def counter_name(function: Function) -> str | None:
    """The first parameter of a function, which in the body of a `fori_loop` counts the steps."""
    first = next(parameters(function), None)
    return first.name.value if first else None
