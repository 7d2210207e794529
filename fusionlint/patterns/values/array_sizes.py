"""What says how long a new array is, which a trace has to know, and whether it has one axis.

In: what an array is made of, in a Source. Out: the names, fields and elements that are sizes, as they are written.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

import libcst as cst

from fusionlint.patterns.code.at import FRESH_BY_SHAPE, RANGES, inside
from fusionlint.patterns.code.calls import argument
from fusionlint.patterns.code.unpacked import assigned
from fusionlint.source.tree import Source

FILLED = tuple(f"jax.numpy.{name}" for name in ("zeros", "ones", "empty", "eye", "identity"))
FULL = ("jax.numpy.full",)
# A name seldom stands for more names than this.
_DEPTH = 8


def sizes_of(array: cst.CSTNode, source: Source) -> Iterator[str]:
    """What says how long a new array is, and what that is made of: `n` of `jnp.zeros((n, 2 * k))`, `depth` too of an
    `n = 2**depth`, and `self.width` of `jnp.arange(self.width)`; not `x` of `jnp.zeros(x.shape)`."""
    followed, todo = {array}, deque([(array, _DEPTH)])
    while todo:
        made, depth = todo.popleft()
        for node in inside(made):
            match node:
                case cst.Call(args=[cst.Arg(value=shape), *_]) if source.calls(node, *FILLED, *FULL):
                    yield from _plain(argument(node, 0, "shape") or shape, source)
                case cst.Call(args=args) if source.calls(node, *RANGES):
                    for arg in args:
                        yield from _plain(arg.value, source)
                case cst.Name() if depth and (value := source.value(node)) is not None and value not in followed:
                    followed.add(value)
                    todo.append((value, depth - 1))


def _plain(shape: cst.BaseExpression, source: Source, depth: int = _DEPTH) -> Iterator[str]:
    match shape:
        case cst.Name(value=name):
            yield name
            made = source.value(shape) if depth else None
            if isinstance(made, cst.BinaryOperation):
                yield from _plain(made, source, depth - 1)
        case cst.Attribute() | cst.Subscript(value=cst.Attribute()):
            yield source.code(shape)
        case cst.Tuple(elements=parts) | cst.List(elements=parts):
            for part in parts:
                yield from _plain(part.value, source, depth)
        case cst.BinaryOperation(left=left, right=right):
            yield from _plain(left, source, depth)
            yield from _plain(right, source, depth)


def is_vector(array: cst.Name, source: Source) -> bool:
    """Whether the array is one that has been made with one axis."""
    before = (assigned(use.node, source) for use in source.uses(array) if use.is_write)
    return any(made is not None and is_of_one_axis(made, source) for made in before)


def is_of_one_axis(made: cst.BaseExpression, source: Source) -> bool:
    """`jnp.zeros(n)`, `jnp.zeros((n,))`."""
    if not source.calls(made, *FRESH_BY_SHAPE) or not made.args:
        return False
    match made.args[0].value:
        case cst.Tuple(elements=sizes) | cst.List(elements=sizes):
            return len(sizes) == 1 and not isinstance(sizes[0], cst.StarredElement)
    return True
