"""Lists of layers that are built alike: `self.blocks = [Block(width) for _ in range(depth)]`.

In: what a loop of a Source goes over. Out: how one of the layers is built, and by what the list goes.
"""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from itertools import islice
from typing import NamedTuple

import libcst as cst

from fusionlint.lazily import regex
from fusionlint.patterns.code.at import constant, inside, names_in, names_read
from fusionlint.patterns.code.calls import argument
from fusionlint.patterns.code.unpacked import assigned
from fusionlint.patterns.loops.carry import Carry, written_before
from fusionlint.patterns.values.kinds import element_kind
from fusionlint.source.tree import Source
from fusionlint.source.walk import dotted

# What a layer is called, and what it draws its weights from: other in every layer that is built alike.
_OWN = frozenset(("name", "parent", "rngs", "rng", "key"))
# By position it is known by what it is called.
_KEY = regex(r"^(sub_?)?(key|rng)s?$|_(key|rng)$")
_JOIN = "jax.numpy.concatenate"
_WRAPPERS = ("list", "tuple", "flax.nnx.List")
# A call is so far below the loop whose body is its statement: the expression, its line, the block.
_STATEMENT = 4


class Layers(NamedTuple):
    """One layer's constructor with its arguments, and the range or the keys that the list is built over."""

    built: cst.Call
    over: cst.BaseExpression


def built_alike(layers: cst.BaseExpression, source: Source) -> Layers | None:
    """How the layers of a list are built, where they differ by their names and their weights alone."""
    for value in _stored(layers, source):
        found = _of_value(value, source) or _appended(value, source)
        if found is not None:
            return found
    return None


def is_wider_at_first(handed: cst.Name, loop: cst.For, source: Source) -> bool:
    """Whether what the first layer is handed is joined out of several along its last axis, `jnp.concatenate([x, skip],
    axis=-1)`: it is wider than what a layer hands on, and the first layer's weights are of another shape."""
    last = written_before(handed, loop, source)
    match source.parent(source.parent(last) or last) if last is not None else None:
        case cst.Assign(value=cst.Call() as made) if source.calls(made, _JOIN):
            axis = argument(made, 1, "axis")
            return axis is not None and constant(axis) == -1
    return False


def _of_value(value: cst.BaseExpression, source: Source) -> Layers | None:
    value = source.meant(value)
    match value:
        case cst.Call(args=[cst.Arg(value=inner)]) if source.calls(value, *_WRAPPERS):
            return _of_value(inner, source)
        case (
            cst.ListComp(elt=cst.Call() as built, for_in=head) | cst.GeneratorExp(elt=cst.Call() as built, for_in=head)
        ):
            names = {node.value for node in names_in(head.target)}
            if isinstance(head.target, cst.Name) and element_kind(head.iter, source) == "key":
                names = set()  # whatever a key is called, a layer draws its weights from it
            alike = not any(_differs(arg, names) for arg in (*built.args, cst.Arg(built.func)))
            if alike and head.inner_for_in is None and not head.ifs:
                return Layers(built, head.iter)
    return None


def _appended(value: cst.BaseExpression, source: Source) -> Layers | None:
    """`self.blocks = []`, then `for key in keys: self.blocks.append(Block(width, key=key))`, and nothing else; of a
    list that is stored under another name after that, the same."""
    if source.calls(value, *_WRAPPERS) and len(value.args) == 1:
        value = value.args[0].value
    value = source.meant(value)
    statement, function = source.parent(value), source.function(value)
    match value, statement:
        case cst.List(elements=[]), cst.Assign(targets=[cst.AssignTarget(target=target)]) if function is not None:
            append = f"{source.code(target)}.append"
        case _:
            return None
    added = [part for part in inside(function.body, cst.Call) if dotted(part.func) == append]
    match added:
        case [cst.Call(args=[cst.Arg(value=cst.Call() as built, keyword=None)]) as call]:
            around = islice(source.ancestors(call), _STATEMENT)
        case _:
            return None
    loop = next((above for above in around if isinstance(above, cst.For)), None)
    if loop is None or not isinstance(loop.target, cst.Name):
        return None
    changing = Carry(loop).varying
    alike = not any(_differs(arg, changing) for arg in (*built.args, cst.Arg(built.func)))
    return Layers(built, loop.iter) if alike else None


def _differs(arg: cst.Arg, names: AbstractSet[str]) -> bool:
    """Whether an argument is another one for every layer, and more than its name or its key."""
    if arg.keyword is not None:
        is_own = arg.keyword.value in _OWN
    else:
        is_own = isinstance(arg.value, cst.Name) and _KEY.search(arg.value.value) is not None
    return not is_own and any(name.value in names for name in names_read(arg.value))


def _stored(layers: cst.BaseExpression, source: Source) -> Iterator[cst.BaseExpression]:
    """What is stored in a variable, or by its class in a field of `self`."""
    match layers:
        case cst.Name():
            values = (assigned(use.node, source) for use in source.writes(layers))
            yield from (value for value in values if value is not None)
        case cst.Attribute(value=cst.Name("self"), attr=cst.Name(field)):
            owner = source.nearest(layers, cst.ClassDef)
            for node in inside(owner) if owner is not None else ():
                match node:
                    case cst.Assign(
                        targets=[cst.AssignTarget(cst.Attribute(value=cst.Name("self"), attr=cst.Name(name)))]
                    ) if name == field:
                        yield node.value
