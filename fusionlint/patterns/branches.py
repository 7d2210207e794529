"""Reading `lax.cond(pred, f, g, *operands)` and `lax.switch(index, [f, g], *operands)`, and what their branches do.

A conditional is a program of its own for each branch: nothing fuses into it or out of it, and what a branch hands on
unchanged is copied.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple, TypeAlias

import libcst as cst

from fusionlint.patterns.at import at_write, inside, is_literal, is_none, names_read
from fusionlint.patterns.calls import argument
from fusionlint.patterns.columns import parameters
from fusionlint.patterns.elementwise import is_elementwise, is_update
from fusionlint.patterns.loop_bodies import definitions
from fusionlint.source.tree import Source
from fusionlint.source.walk import dotted

_COND, _SWITCH = "jax.lax.cond", "jax.lax.switch"
# What sensors look for.
CONDITIONALS = (_COND, _SWITCH)

Function: TypeAlias = "cst.FunctionDef | cst.Lambda"

_MAPS = ("jax.tree.map", "jax.tree_map", "jax.tree_util.tree_map", "jax.tree_multimap")
# Calls that make an array of what they are given, or all of one value: one pass over memory.
_MADE_NAMES = (
    "array asarray zeros zeros_like ones ones_like full full_like float32 float64 bfloat16 float16 int32 int64 "
    "int8 int16 uint8 uint16 uint32 bool_ expand_dims stack roll concatenate concat pad"
)
_MADE = frozenset(f"jax.numpy.{name}" for name in _MADE_NAMES.split())
_OPTAX = frozenset(
    ("optax.incremental_update", "optax.periodic_update", "optax.tree.zeros_like", "optax.tree_utils.tree_zeros_like")
)
_METHODS = frozenset(("astype", "clip", "round", "conj", "replace", "_replace", "reshape"))
# What positive numbers alone have, and what numbers between -1 and 1 have or all others: elsewhere the gradient is NaN.
_OF_POSITIVE_NUMBERS = tuple(
    f"jax.{name}"
    for name in ("numpy.sqrt", "numpy.log", "numpy.log2", "numpy.log10", "lax.rsqrt", "lax.sqrt", "lax.log")
)
_OF_SOME_NUMBERS = tuple(
    f"jax.numpy.{name}" for name in ("arccos", "arcsin", "arccosh", "arctanh", "acos", "asin", "acosh", "atanh")
)
FINITENESS = frozenset(("jax.numpy.isfinite", "jax.numpy.isnan", "jax.numpy.isinf"))
# A helper of a branch is seldom further away than this.
_DEPTH = 3


class Branch(NamedTuple):
    """A function that a conditional may run, and what it returns."""

    function: Function
    result: cst.BaseExpression


class Conditional(NamedTuple):
    """A `cond` or `switch` all of whose branches are seen."""

    call: cst.Call
    test: cst.BaseExpression
    branches: tuple[Branch, ...]
    operands: tuple[cst.Arg, ...]
    is_switch: bool


def conditional(node: cst.CSTNode, source: Source) -> Conditional | None:
    """The conditional that `node` is; None for anything else, or where a branch is not seen."""
    if not isinstance(node, cst.Call) or not source.calls(node, *CONDITIONALS):
        return None
    is_switch = source.calls(node, _SWITCH)
    if is_switch:
        test, given = argument(node, 0, "index"), _listed(argument(node, 1, "branches"), source)
        operands = node.args[2:]
    else:
        test = argument(node, 0, "pred")
        given = [argument(node, 1, "true_fun"), argument(node, 2, "false_fun")]
        operands = node.args[3:]
    branches = [_branch(one, source) for one in given if one is not None]
    seen = tuple(branch for branch in branches if branch is not None)
    if test is None or len(seen) < 2 or len(seen) != len(given):
        return None
    rest = tuple(a for a in operands if a.keyword is None or a.keyword.value in ("operand", "operands"))
    return Conditional(node, test, seen, rest, is_switch)


def _listed(node: cst.BaseExpression | None, source: Source) -> list[cst.BaseExpression | None]:
    if isinstance(node, cst.Name):
        node = source.value(node)
    match node:
        case cst.List(elements=elements) | cst.Tuple(elements=elements):
            if all(isinstance(element, cst.Element) for element in elements):
                return [element.value for element in elements]
    return []


def _branch(node: cst.BaseExpression, source: Source) -> Branch | None:
    function = function_named(node, source)
    result = result_of(function, source) if function else None
    return Branch(function, result) if function and result is not None else None


def function_named(node: cst.BaseExpression, source: Source) -> Function | None:
    """The def or lambda of this file that `node` stands for."""
    if isinstance(node, cst.Name) and isinstance(value := source.value(node), cst.Lambda):
        node = value
    if isinstance(node, cst.Lambda):
        return node
    place = source.project.find(source.qualified_name(node))
    return next(iter(definitions([place], source)), None) if place else None


def result_of(function: Function, source: Source) -> cst.BaseExpression | None:
    """What a function returns, where it returns in one place only."""
    if isinstance(function, cst.Lambda):
        return function.body
    found = [n for n in inside(function.body) if isinstance(n, cst.Return) and source.function(n) is function]
    return found[0].value if len(found) == 1 else None


def is_unchanged(branch: Branch) -> bool:
    """Whether a branch hands on what it is given and does nothing: `lambda x: x`, `lambda: (state.a, b)`."""
    if isinstance(branch.function, cst.FunctionDef) and not _only_returns(branch.function):
        return False
    return is_handed_on(branch.result)


def is_nothing(branch: Branch) -> bool:
    """Whether a branch returns nothing: it was called for what it prints."""
    return is_none(branch.result)


def _only_returns(function: cst.FunctionDef) -> bool:
    statements = [
        part
        for line in function.body.body
        for part in (line.body if isinstance(line, cst.SimpleStatementLine) else (line,))
        if not (isinstance(part, cst.Expr) and isinstance(part.value, cst.SimpleString))
    ]
    return len(statements) == 1 and isinstance(statements[0], cst.Return)


def is_handed_on(node: cst.BaseExpression) -> bool:
    """Whether this is a value that is there, or several: no constant, nothing computed."""
    match node:
        case cst.Name(value=name) | cst.Attribute(attr=cst.Name(name)):
            # FALSE and True are constants, which take part in the choice like anything computed.
            return (
                name not in ("True", "False", "None") and not (name.isupper() and len(name) > 1) and bool(dotted(node))
            )
        case cst.Tuple(elements=elements) | cst.List(elements=elements):
            return bool(elements) and all(is_handed_on(element.value) for element in elements)
        case cst.Subscript(value=cst.Name(), slice=[cst.SubscriptElement(slice=cst.Index(value=cst.Integer()))]):
            return True
    return False


def is_cheap(branch: Branch, source: Source, depth: int = _DEPTH) -> bool:
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
            return _is_cheap_call(part, source, depth)
        case cst.For() | cst.While() | cst.MatrixMultiply() | cst.MatrixMultiplyAssign() | cst.Raise() | cst.With():
            return False
        case cst.BaseComp():
            return False
        case cst.Attribute(attr=cst.Name("at")):
            return False
    return True


def _is_cheap_call(call: cst.Call, source: Source, depth: int) -> bool:
    name = source.qualified_name(call.func)
    if is_elementwise(call, source) or name in _MADE or name in _OPTAX or is_update(call, source):
        return True
    if name in _MAPS:
        mapped = function_named(call.args[0].value, source) if call.args else None
        if mapped and any(isinstance(part, cst.Subscript) for part in inside(mapped.body)):
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
    """`jax.tree.map(jnp.zeros_like, tree)`."""
    mapped = call.args[0].value if call.args else None
    return mapped is not None and source.qualified_name(mapped) in _MADE


def is_one_number(node: cst.BaseExpression, source: Source) -> bool:
    """Whether an expression is seen to be a scalar: a number, or an array of no dimensions."""
    match node:
        case cst.Integer() | cst.Float() | cst.Name(value="True" | "False"):
            return True
        case cst.UnaryOperation(expression=inner):
            return is_one_number(inner, source)
        case cst.Call(args=[cst.Arg(value=inner), *_]):
            name = (source.qualified_name(node.func) or "").removeprefix("jax.numpy.")
            if name in ("zeros", "ones", "full"):
                return isinstance(inner, cst.List | cst.Tuple) and not inner.elements
            return name in ("array", "asarray", "float32", "int32", "bool_") and is_one_number(inner, source)
    return False


def writes(branch: Branch, source: Source, depth: int = _DEPTH) -> Iterator[cst.BaseExpression]:
    """The arrays that a branch writes a part of: `x.at[i].set(v)`, `dynamic_update_slice(x, ...)`."""
    yield from written_by(branch.function, source, depth)


def written_by(function: Function, source: Source, depth: int) -> Iterator[cst.BaseExpression]:
    """The same of any function, and of those that it calls, `depth` of them deep, itself the first."""
    for part in inside(function.body) if depth else ():
        if write := at_write(part):
            yield write.array
        elif isinstance(part, cst.Call):
            name = source.qualified_name(part.func) or ""
            if name.startswith("jax.lax.dynamic_update") and part.args:
                yield part.args[0].value
            elif helper := function_named(part.func, source):
                yield from written_by(helper, source, depth - 1)


def is_static_test(found: Conditional, source: Source) -> bool:
    """Whether a trace knows which branch is meant, for a text or a shape is compared: `axis == "major"`, `len(x) == 1`;
    or may know it, for identity is: `first & (masks is None)`. XLA drops the others."""
    test = source.meant(found.test)
    compared = [part for part in inside(test) if isinstance(part, cst.Comparison)]
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


def guards_against_nans(found: Conditional, source: Source) -> bool:
    """Whether a branch divides by what is asked about or, where that is compared, by what it is made of, takes a root
    or a logarithm of that, multiplies with what may be infinite, `cond(isinf(n), limit, lambda a, n: a * n)`, or takes
    an arccosine, which not all numbers have: both done, the gradient of the one not taken is NaN."""
    asked = set(_variables(found.test, source))
    compared = source.meant(found.test)
    if isinstance(compared, cst.Comparison):
        made = (source.value(name) for name in names_read(compared))
        asked.update(name for part in (compared, *made) if part is not None for name in _variables(part, source))
    is_infinite = source.calls(compared, *FINITENESS)
    depth = _DEPTH if _asks_for_zero(compared) else 0
    for branch in found.branches:
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


def _asks_for_zero(test: cst.BaseExpression) -> bool:
    """`b == 0.0`: of what is no zero the branches of a conditional inside may divide by it."""
    match test:
        case cst.Comparison(comparisons=[cst.ComparisonTarget(comparator=cst.Integer() | cst.Float() as number)]):
            return number.evaluated_value == 0
    return False


def _parts(branch: Branch, source: Source, depth: int) -> Iterator[cst.CSTNode]:
    """What a branch does, and what the branches of the conditionals in it do, `depth` of them deep."""
    for part in inside(branch.function.body):
        yield part
        inner = conditional(part, source) if depth else None
        for one in inner.branches if inner is not None else ():
            yield from _parts(one, source, depth - 1)


def _is_off_zero(inner: cst.BaseExpression) -> bool:
    """`1.0 + x`."""
    match inner:
        case cst.BinaryOperation(left=left, operator=cst.Add(), right=right):
            return is_literal(left) or is_literal(right)
    return False


def _variables(node: cst.CSTNode, source: Source) -> Iterator[str]:
    """The names in `node` of what is computed, not of modules, functions and classes."""
    return (name.value for name in names_read(node) if source.qualified_name(name) is None)


def depends_on_input(node: cst.BaseExpression, source: Source, depth: int = 6) -> bool:
    """Whether an expression is computed from what a function around it was handed, `self` aside."""
    for name in (part for part in inside(node) if isinstance(part, cst.Name)):
        above = source.parent(name)
        if isinstance(above, cst.Attribute) and above.value is not name:
            continue
        written = source.written(name)
        above = source.parent(written) if written is not None else None
        if isinstance(above, cst.Param) and name.value not in ("self", "cls"):
            return True
        if written is None and source.uses(name) and any(use.is_write for use in source.uses(name)):
            return True
        if written is not None and depth and (value := source.value(name)) is not None:
            if depends_on_input(value, source, depth - 1):
                return True
        elif written is not None and isinstance(above, cst.Element | cst.For):
            return True
    return False


@lru_cache(maxsize=4)
def branch_functions(source: Source) -> dict[Function, Conditional]:
    """The functions of a file that its conditionals run."""
    found = (conditional(call, source) for call in source.calls_of(CONDITIONALS))
    return {branch.function: one for one in found if one is not None for branch in one.branches}


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
