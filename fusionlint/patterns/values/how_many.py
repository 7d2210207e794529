"""How many numbers an array or a state of arrays holds, where the file says so: `normal(key, (layers, 2 * n))`, with
`layers = 3` and `n = 10` above.

In: expressions of a Source. Out: a count; None wherever a part of it is not seen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import pairwise
from math import prod

import libcst as cst

from fusionlint.lazily import regex
from fusionlint.patterns.code.at import FRESH_BY_SHAPE, TO_ARRAY
from fusionlint.patterns.code.calls import argument, hides_some
from fusionlint.patterns.code.unpacked import assigned, unpacked_at
from fusionlint.patterns.values.one_number import is_scalar_literal
from fusionlint.source.tree import Source

# Names seldom stand for more names than these.
_DEPTH = 9
# Each of several writes of one name is followed less far, for every one of them may name it again.
_BRANCHES = 3
# What hands on an array as long as the one that it is handed.
_HANDS_ON = (
    "jax.device_put",
    "numpy.float32",
    "jax.numpy.float32",
    "jax.numpy.zeros_like",
    "jax.numpy.ones_like",
    *TO_ARRAY,
)
# A vector whose length is computed of what is not seen, `jnp.zeros(game.num_players - 1)`, is no network's weights.
_VECTOR = 2**10
_BY_SHAPE = (*FRESH_BY_SHAPE, *(name.removeprefix("jax.") for name in FRESH_BY_SHAPE))
# Of a draw, which argument says how many: of jax's after the key.
_DRAWS = {"normal": 1, "uniform": 1, "truncated_normal": 3, "bernoulli": 2, "gumbel": 1, "randint": 1}
# What makes the two or three functions of an optimizer, the first of which makes its state.
_OPTIMIZERS = regex(r"^(optax|jax\.(example_libraries|experimental)\.optimizers)\.\w+$")
# What the widths of a network's layers are called, which somebody makes its weights by.
_WIDTHS = regex(r"(^|_)(layer_(sizes|widths|dims)|layers|widths|hidden_sizes)$")
_SIZED = ("normal", "uniform", "randn", "rand", "random", "standard_normal", "randint")


def how_many(value: cst.BaseExpression | None, source: Source, depth: int = _DEPTH) -> int | None:
    """How many numbers are in `value`, an array, a dict or a tuple of arrays, or what an optimizer makes of such."""
    if depth <= 0 or value is None:
        return None
    if is_scalar_literal(value, source):
        return 1
    match value:
        case cst.Name():
            return _held_by(value, source, depth)
        case cst.Dict(elements=parts) if all(isinstance(part, cst.DictElement) for part in parts):
            return _of_all((how_many(part.value, source, depth - 1) for part in parts), sum)
        case cst.List(elements=parts) | cst.Tuple(elements=parts):
            return _of_all((how_many(part.value, source, depth - 1) for part in parts), sum)
        case cst.BinaryOperation(left=left, operator=operator, right=right):
            if isinstance(operator, cst.MatrixMultiply):
                return None
            return _of_all((how_many(side, source, depth - 1) for side in (left, right)), max)
        case cst.UnaryOperation(expression=inner):
            return how_many(inner, source, depth - 1)
        case cst.IfExp(body=one, orelse=other):
            return _of_all((how_many(side, source, depth - 1) for side in (one, other)), max)
        case cst.Call() if not hides_some(value):
            return _made_by(value, source, depth)
    return None


def _held_by(name: cst.Name, source: Source, depth: int) -> int | None:
    """Of a variable that is written several times the most that is known: what a step makes anew is as long. One of
    what Python takes for a number, `float(x)`."""
    reads = source.reads_at_all(name)
    if any(source.calls(source.handed_to(read) or read, "float") for read in reads):
        return 1
    found = how_many(source.value(name), source, depth - 1)
    if found is not None:
        return found
    written = (assigned(use.node, source) for use in source.writes(name))
    counts = (how_many(value, source, depth - _BRANCHES) for value in written)
    return max((count for count in counts if count is not None), default=None)


def _made_by(call: cst.Call, source: Source, depth: int) -> int | None:
    name = source.qualified_name(call.func) or ""
    module, _, last = name.rpartition(".")
    if source.calls(call, *_BY_SHAPE):
        return _product(argument(call, 0, "shape"), source, depth)
    if source.calls(call, *_HANDS_ON):
        return how_many(call.args[0].value if call.args else None, source, depth - 1)
    if module == "jax.random" and last in _DRAWS:
        return _product(argument(call, _DRAWS[last], "shape"), source, depth)
    if module == "numpy.random" and last in _SIZED:
        if last in ("rand", "randn"):
            return _counts((arg.value for arg in call.args), source, depth)
        return _product(argument(call, 2, "size"), source, depth)
    if (shape := argument(call, len(call.args), "shape")) is not None:  # whatever makes an array of that shape
        return _product(shape, source, depth)
    match call:
        # An optimizer keeps two numbers of each at most, and a count.
        case cst.Call(func=cst.Attribute(attr=cst.Name("init")), args=[cst.Arg(value=state, keyword=None)]):
            found = how_many(state, source, depth - 1)
            return None if found is None else 2 * found + 1
        case cst.Call(func=cst.Name() as init, args=[cst.Arg(value=state, keyword=None)]) if _is_of_an_optimizer(
            init, source
        ):
            found = how_many(state, source, depth - 1)
            return None if found is None else 2 * found + 1
        case cst.Call(func=cst.Attribute(value=array, attr=cst.Name("astype" | "reshape" | "ravel" | "copy"))):
            return how_many(array, source, depth - 1)
    return next((found for arg in call.args if (found := _by_widths(arg, source, depth)) is not None), None)


def _is_of_an_optimizer(init: cst.Name, source: Source) -> bool:
    """`opt_init, opt_update, get_params = optimizers.momentum(0.1)`."""
    found = unpacked_at(source.written(init), source)
    return (
        found is not None
        and found[1] == 0
        and isinstance(found[0], cst.Call)
        and _OPTIMIZERS.match(source.qualified_name(found[0].func) or "") is not None
    )


def _by_widths(arg: cst.Arg, source: Source, depth: int) -> int | None:
    """The weights and biases of a network whose layers are as wide as a list says that some function is handed,
    `init_params(key, layer_sizes)` of `layer_sizes = [36, 10]`."""
    called = (
        arg.keyword.value if arg.keyword is not None else arg.value.value if isinstance(arg.value, cst.Name) else ""
    )
    widths = source.meant(arg.value)
    if not isinstance(widths, cst.List | cst.Tuple) or len(widths.elements) < 2 or not _WIDTHS.search(called):
        return None
    sizes = [whole_number(one.value, source, depth - 1) for one in widths.elements]
    known = [size for size in sizes if size is not None]
    if len(known) < len(sizes):
        return None
    return sum((wide + 1) * narrow for wide, narrow in pairwise(known))


def _product(shape: cst.BaseExpression | None, source: Source, depth: int) -> int | None:
    """How many places there are in `shape`: a tuple or list of whole numbers, or one."""
    if shape is None or depth <= 0:
        return None
    meant = source.meant(shape)
    sizes = [part.value for part in meant.elements] if isinstance(meant, cst.Tuple | cst.List) else [meant]
    found = _counts(sizes, source, depth - 1)
    return _VECTOR if found is None and len(sizes) == 1 and isinstance(sizes[0], cst.BinaryOperation) else found


def _counts(sizes: Iterable[cst.BaseExpression], source: Source, depth: int) -> int | None:
    return _of_all((whole_number(size, source, depth) for size in sizes), prod)


def whole_number(value: cst.BaseExpression | None, source: Source, depth: int = _DEPTH) -> int | None:
    """What Python computes: `2 * n + 1` of an `n = 10`."""
    match value:
        case cst.Integer():
            return value.evaluated_value
        case cst.Name() if depth > 0:
            return whole_number(source.value(value), source, depth - 1)
        case cst.BinaryOperation(left=left, operator=operator, right=right) if depth > 0:
            one, other = (whole_number(side, source, depth - 1) for side in (left, right))
            return None if one is None or other is None else _computed(one, operator, other)
    return None


def _computed(one: int, operator: cst.BaseBinaryOp, other: int) -> int | None:
    match operator:
        case cst.Add():
            return one + other
        case cst.Subtract():
            return one - other
        case cst.Multiply():
            return one * other
        case cst.Power() if 0 <= other < 64:
            return int(one**other)
        case cst.FloorDivide() if other:
            return one // other
    return None


def _of_all(counts: Iterable[int | None], combined: Callable[[list[int]], int]) -> int | None:
    """What comes of several counts; None where one of them is not known."""
    found = list(counts)
    known = [count for count in found if count is not None]
    return combined(known) if len(known) == len(found) else None
