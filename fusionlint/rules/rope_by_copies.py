"""A rotary embedding by copies of x: `x * cos + concat(-x2, x1) * sin`, or pairs of neighbours, `x[..., ::2]`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from fusionlint.finding import Finding
from fusionlint.patterns.code.at import constant, elements, holds, inside
from fusionlint.patterns.code.calls import argument, is_handed_to
from fusionlint.patterns.code.elementwise import operands
from fusionlint.patterns.code.lands import lands
from fusionlint.patterns.code.unpacked import unpacked_at
from fusionlint.patterns.compiled.readers import value_of
from fusionlint.patterns.compiled.rotated_halves import joins_rotated_halves
from fusionlint.patterns.operations.join import axis, lists_parts, parts
from fusionlint.rule import Rule
from fusionlint.source.facts import last_name
from fusionlint.source.for_nobody import named_as_parts
from fusionlint.source.tree import Source

if TYPE_CHECKING:
    from fusionlint.hlo import parse as hlo
    from fusionlint.hlo.barriers import Barrier

rule = Rule(__name__, harm="fusion")

# Bytes of so few rows, as of one step of a decoder, that a copy is nothing.
_LARGE = 65536
_CONCATENATES = ("jax.numpy.concatenate", "jax.numpy.concat", "jax.lax.concatenate")
_STACK = "jax.numpy.stack"
_RESHAPE = "jax.numpy.reshape"
_COLLAPSE = "jax.lax.collapse"
_MOVEAXIS = "jax.numpy.moveaxis"
_PARTS = {"jax.numpy.real": "real", "jax.numpy.imag": "imag", "jax.lax.real": "real", "jax.lax.imag": "imag"}
_COMPLEX = "jax.lax.complex"
_DEPTH = 12


@rule.source("Call", calls=_CONCATENATES, like=lists_parts)
def half_rotated(node: cst.Call, source: Source) -> Iterator[Finding]:
    """`concat([-x2, x1], axis=-1)` of the halves of one array."""
    if axis(node, source) != -1:
        return
    match parts(node, source):
        case [cst.UnaryOperation(operator=cst.Minus(), expression=cst.Name() as second), cst.Name() as first]:
            halved = [_halved(first, source), _halved(second, source)]
            if None not in halved and not _is_weight(halved[0], source):
                x1, x2 = first.value, second.value
                turned = f"[{x1} * cos - {x2} * sin, {x2} * cos + {x1} * sin]"
                write = (
                    f"rotate the halves and join once: {turned}, cos and sin of half the width, before they are doubled"
                )
                yield source.finding(node, "a rotated copy of the whole array is built to be multiplied", write=write)


@rule.source("Call", calls=_CONCATENATES, like=lists_parts)
def tables_of_two_copies(node: cst.Call, source: Source) -> Iterator[Finding]:
    """`concat([cos, cos], axis=-1)`, or `concat([angles, angles], axis=-1)` to take the cosine and the sine of.

    A table of all positions there may be, up to some maximum, is made once.
    """
    if axis(node, source) != -1:
        return
    function = source.function(node)
    if function is None or any(p.name.value.startswith("max_") for p in function.params.params):
        return
    if _is_beside_what_is_called(node, source):
        return
    match parts(node, source):
        case [cst.Name(value=one) as half, cst.Name(value=other)] if one == other:
            if _is_cosine(half, source) or _turns_into_tables(node, source):
                yield source.finding(
                    node,
                    f"a table of two copies of `{one}`, to be read beside a rotated copy of the whole array",
                    write=f"cos and sin of one `{one}`, and the halves [x1 * cos - x2 * sin, x2 * cos + x1 * sin]",
                )


def _is_beside_what_is_called(node: cst.CSTNode, source: Source) -> bool:
    """Whether a module has a method beside its `__call__` that nothing calls: whatever tables that returns, nothing is
    turned by them."""
    place = source.place(node)
    owner = source.facts.class_around(place.scope)
    if not owner or place.scope.rpartition(".")[0] != owner or f"{owner}.__call__" not in source.facts.functions:
        return False
    name = last_name(place.scope)
    return not name.startswith("__") and name not in named_as_parts(source.project)


def _is_cosine(half: cst.Name, source: Source) -> bool:
    """Whether a name stands for a cosine, in whatever dtype; the sine beside it is told of with it."""
    value: cst.BaseExpression | None = source.value(half)
    match value:
        case cst.Call(func=cst.Attribute(value=made, attr=cst.Name("astype"))):
            value = made
    return source.calls(value, "jax.numpy.cos")


def _turns_into_tables(node: cst.Call, source: Source) -> bool:
    """Whether all that is read of it is its cosine and its sine."""
    name = source.assigned_name(node)
    above = [source.parent(source.parent(read) or read) for read in source.reads(name)] if name is not None else []
    taken = {source.qualified_name(call.func) for call in above if isinstance(call, cst.Call) and len(call.args) == 1}
    return len(above) == 2 and taken == {"jax.numpy.cos", "jax.numpy.sin"}


@rule.source("Call", calls=(_STACK,), like=lists_parts)
def neighbours_rotated(node: cst.Call, source: Source) -> Iterator[Finding]:
    """`stack([a, b], axis=-1).reshape(...)` of what comes from the even and the odd places of one array."""
    if axis(node, source) != -1:
        return
    if not any(_is_reshaped(place, source) for place in lands(node, source)):
        return
    match parts(node, source):
        case [one, other] if _rotates(one, other, source) or _is_complex_product(one, other, source):
            message = "pairs of neighbours are taken apart, rotated and interleaved again"
            write = "take the two halves for pairs, with the columns of the weights reordered once when they are loaded"
            yield source.finding(node, message, write=write, pair=1)


@rule.barrier
def rotated_copy(barrier: Barrier, module: hlo.Module) -> str | None:
    """The copy of an array with its halves the other way round, and what it is joined from."""
    if value_of(barrier, module).shape.nbytes < _LARGE or not joins_rotated_halves(barrier, module):
        return None
    return "rotate the two halves, and join once: concatenate([x1 * cos - x2 * sin, x2 * cos + x1 * sin])"


def _halved(name: cst.Name, source: Source) -> cst.BaseExpression | None:
    """x, where `name` is one of `x1, x2 = jnp.split(x, 2, axis=-1)`, or `x[..., : n // 2]`."""
    written = source.written(name)
    match source.parent(written) if written else None:
        case cst.Element() as element:
            assign = source.nearest(element, cst.Assign)
            match assign.value if isinstance(assign, cst.Assign) else None:
                case cst.Call() as call if source.calls(call, "jax.numpy.split", "jax.numpy.array_split"):
                    count, cut = argument(call, 1, "indices_or_sections"), argument(call, 0, "ary")
                    in_pairs = cut is not None and _is_in_pairs(cut, source)
                    return cut if count is not None and constant(count) == 2 and not in_pairs else None
                case cst.Tuple(elements=[cst.Element(value=first), *_] as values):
                    return _cut(first) if all(_cut(value.value) for value in values) else None
        case cst.AssignTarget() as target:
            stored = source.parent(target)
            return _cut(stored.value) if isinstance(stored, cst.Assign) else None
    return None


def _cut(node: cst.BaseExpression) -> cst.BaseExpression | None:
    """x of `x[..., :half]` or `x[..., half:]`."""
    match node:
        case cst.Subscript(value=array, slice=slices):
            match elements(slices):
                case [cst.Ellipsis(), cst.Slice(lower=lower, upper=upper, step=None)]:
                    return array if (lower is None) != (upper is None) else None
    return None


def _is_weight(array: cst.BaseExpression | None, source: Source, depth: int = _DEPTH) -> bool:
    """Whether this is a parameter of a module, in whatever dtype: that of a rotation is small beside what it turns."""
    match array:
        case cst.Name() if depth:
            return _is_weight(source.value(array), source, depth - 1)
        case cst.Call(func=cst.Attribute(value=cst.Name("self"), attr=cst.Name("param"))):
            return True
        case cst.Call(func=cst.Attribute(value=of, attr=cst.Name("astype"))):
            return _is_weight(of, source, depth)
        case cst.Call(args=[cst.Arg(value=of), *_]) if source.calls(array, "jax.numpy.asarray", "jax.numpy.array"):
            return _is_weight(of, source, depth)
    return False


def _is_reshaped(place: cst.CSTNode, source: Source) -> bool:
    match source.parent(place):
        case cst.Attribute(attr=cst.Name("reshape")):
            return True
    return is_handed_to(place, source, _RESHAPE, _COLLAPSE)


def _rotates(one: cst.BaseExpression, other: cst.BaseExpression, source: Source) -> bool:
    """Whether both places of a pair together are made of even and odd places of one array, and do not stay apart."""
    first, second = _picked(one, source), _picked(other, source)
    both = {parity for _, parity in first | second} == {0, 1} and len({array for array, _ in first | second}) == 1
    stays = {parity for _, parity in first} == {0} and {parity for _, parity in second} == {1}
    return both and not stays


def _picked(node: cst.BaseExpression, source: Source, depth: int = _DEPTH) -> frozenset[tuple[str, int]]:
    """The even and odd places that elementwise work on the way to `node` reads: which array, and 0 or 1."""
    if depth == 0:
        return frozenset()
    match node:
        case cst.Name():
            if (of_pairs := _of_pairs(node, source)) is not None:
                return frozenset([of_pairs])
            value = source.value(node)
            return _picked(value, source, depth - 1) if value is not None else frozenset()
        case cst.Subscript(value=array):
            parity = _parity(node, source)
            return frozenset() if parity is None else frozenset([(source.code(array), parity)])
    found = operands(node, source)
    return frozenset().union(*(_picked(each, source, depth - 1) for each in found)) if found else frozenset()


def _of_pairs(name: cst.Name, source: Source) -> tuple[str, int] | None:
    """The array and the place of `a` or `b` of `a, b = jnp.moveaxis(x.reshape(..., 2), -1, 0)`."""
    found = unpacked_at(source.written(name), source)
    if found is None or not isinstance(made := found[0], cst.Call) or not source.calls(made, _MOVEAXIS):
        return None
    pairs, *axes = (argument(made, i, name) for i, name in enumerate(("a", "source", "destination")))
    moved = [constant(axis) if axis is not None else None for axis in axes]
    if pairs is None or moved != [-1, 0] or not _is_in_pairs(pairs, source):
        return None
    return source.code(pairs), found[1]


def _parity(node: cst.Subscript, source: Source) -> int | None:
    """0 for `x[..., ::2]`, 1 for `x[..., 1::2]`; or of `[..., 0]` and `[..., 1]` of what was cut into pairs."""
    match elements(node.slice):
        case [cst.Ellipsis(), cst.Slice(lower=lower, upper=None, step=cst.Integer("2"))]:
            return 0 if lower is None else constant(lower)
        case [cst.Ellipsis(), place] if constant(place) in (0, 1) and _is_in_pairs(node.value, source):
            return constant(place)
    return None


def _is_in_pairs(node: cst.BaseExpression, source: Source) -> bool:
    """`x.reshape(..., 2)`, of a shape that is a tuple or a sum of such too, `x.shape[:-1] + (-1, 2)`."""
    value = source.meant(node)
    match value:
        case cst.Call(func=cst.Attribute(value=inner, attr=cst.Name("astype"))):
            return _is_in_pairs(inner, source)
        case cst.Call(func=cst.Attribute(attr=cst.Name("reshape")), args=[*_, cst.Arg(value=last)]):
            match last.right if isinstance(last, cst.BinaryOperation) else last:
                case cst.Tuple(elements=[*_, cst.Element(value=end)]):
                    return constant(end) == 2
            return constant(last) == 2
    return False


def _is_complex_product(one: cst.BaseExpression, other: cst.BaseExpression, source: Source) -> bool:
    """`real(z)` and `imag(z)` of `z = (a + 1j * b) * freqs`."""
    first, second = _part(one, source), _part(other, source)
    if first is None or second is None or (first[0], second[0]) != ("real", "imag"):
        return False
    z = source.meant(first[1])
    if source.code(first[1]) != source.code(second[1]) or not isinstance(z, cst.BinaryOperation):
        return False
    return isinstance(z.operator, cst.Multiply) and any(_is_complex(side, source) for side in (z.left, z.right))


def _part(node: cst.BaseExpression, source: Source) -> tuple[str, cst.BaseExpression] | None:
    match node:
        case cst.Attribute(value=z, attr=cst.Name("real" | "imag" as name)):
            return name, z
        case cst.Call(args=[cst.Arg(value=z)]) if found := _PARTS.get(source.qualified_name(node.func) or ""):
            return found, z
    return None


def _is_complex(node: cst.BaseExpression, source: Source) -> bool:
    """`a + 1j * b` or `lax.complex(a, b)` of the places of pairs."""
    value = source.meant(node)
    if not (source.calls(value, _COMPLEX) or holds(value, cst.Imaginary)):
        return False
    return any(isinstance(part, cst.Subscript) and _parity(part, source) is not None for part in inside(value))
