"""An array that a Python loop on the host makes longer each time: `x = jnp.append(x, value)`."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from fusionlint.finding import Finding
from fusionlint.lazily import regex
from fusionlint.patterns.at import inside
from fusionlint.patterns.carry import calls
from fusionlint.patterns.collected import is_few
from fusionlint.rule import Rule
from fusionlint.source.tree import Source
from fusionlint.source.walk import dotted

rule = Rule(__name__, harm="recompile")

_APPENDS = ("jax.numpy.append",)
# What a network does takes so long that a join is nothing beside it.
_BIG = regex(r"(^|[._])(encode|decode|denoise|generate|train|fit)(_|$)")
# An object joins what its few parts have, once.
_CONSTRUCTORS = ("__init__", "__post_init__")
_JOINS = ("jax.numpy.concatenate", "jax.numpy.vstack", "jax.numpy.hstack", "jax.numpy.column_stack")


@rule.source("For", "While", calls=(*_APPENDS, *_JOINS), where="host", in_loop=True)
def grown(node: cst.For | cst.While, source: Source) -> Iterator[Finding]:
    """The loop joins an array with more, and goes on with the longer one; the first such array of a loop."""
    if isinstance(node, cst.For) and (is_few(node.iter, source) or source.scope(node).endswith(_CONSTRUCTORS)):
        return
    if any(_BIG.search(dotted(call.func)) for call in calls(node.body)):
        return
    for call in inside(node.body):
        name = _grown(call, source) if isinstance(call, cst.Call) and source.loop(call) is node else None
        if name is not None and _only_grows(name, node, source) and _is_on_host(node, source):
            yield source.finding(
                call,
                f"`{name.value}` is longer in every iteration: each length is compiled anew, and all of it copied",
                write=f"a list, `{name.value}.append(value)` in the loop, and one jnp.concatenate after it",
            )
            return


def _grown(call: cst.Call, source: Source) -> cst.Name | None:
    """x of `x = jnp.append(x, value)` or `x = jnp.concatenate([x, new])`."""
    name = source.assigned_name(call)
    match call.args:
        case [cst.Arg(value=cst.Name(before)), cst.Arg(), *_] if source.calls(call, *_APPENDS):
            return name if name is not None and name.value == before else None
        case [cst.Arg(value=cst.List(elements=parts) | cst.Tuple(elements=parts)), *_] if source.calls(call, *_JOINS):
            names = [part.value.value for part in parts if isinstance(part.value, cst.Name)]
            return name if name is not None and len(parts) > 1 and names.count(name.value) == 1 else None
    return None


def _only_grows(name: cst.Name, loop: cst.For | cst.While, source: Source) -> bool:
    """Whether nothing in the loop makes the array short again, and the loop is not what it is made for: an array that
    each iteration computes with has to be whole."""
    here = [use for use in source.uses(name) if loop in source.ancestors(use.node)]
    for use in here:
        if not use.is_write and not _is_joined(use.node, source):
            return False
        statement = source.parent(source.parent(use.node) or loop)
        if use.is_write and (not isinstance(statement, cst.Assign) or not _is_growth(statement.value, source)):
            return False
    return True


def _is_growth(value: cst.BaseExpression, source: Source) -> bool:
    return isinstance(value, cst.Call) and _grown(value, source) is not None


def _is_joined(read: cst.Name, source: Source) -> bool:
    """Whether `read` is the array that is made longer, right in the join's arguments."""
    argument = source.parent(read)
    if isinstance(argument, cst.Element):
        argument = source.parent(source.parent(argument) or argument)
    call = source.parent(argument) if isinstance(argument, cst.Arg) else None
    return call is not None and source.calls(call, *_APPENDS, *_JOINS)


def _is_on_host(node: cst.CSTNode, source: Source) -> bool:
    """Whether the code is seen to be host code, or to select by a mask, which no trace survives."""
    if source.context(node) == "host":
        return True
    function = source.function(node)
    return function is not None and any(_selects(part, source) for part in inside(function))


def _selects(node: cst.CSTNode, source: Source) -> bool:
    """`roots[roots.imag != 0]`, stored under a name."""
    match node:
        case cst.Subscript(
            value=cst.Name(array), slice=[cst.SubscriptElement(slice=cst.Index(value=cst.Comparison(left=left)))]
        ):
            is_own = any(isinstance(part, cst.Name) and part.value == array for part in inside(left))
            return is_own and source.assigned_name(node) is not None
    return False
