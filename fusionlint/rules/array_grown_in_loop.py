"""An array that a Python loop on the host makes longer each time: `x = jnp.append(x, value)`; or a cache that every
call of a layer hands back longer, `k = jnp.concatenate([cache[0], k])`."""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

from fusionlint.finding import Finding
from fusionlint.lazily import regex
from fusionlint.patterns.code.at import constant, inside, names_in
from fusionlint.patterns.code.calls import argument
from fusionlint.patterns.dispatch.jit import is_jitted
from fusionlint.patterns.loops.carry import calls
from fusionlint.patterns.loops.collected import is_few
from fusionlint.patterns.loops.grown_cache import goes_back, hands_a_cache_round, is_held_before
from fusionlint.patterns.loops.loop_gates import is_gated
from fusionlint.patterns.runs.concrete import is_concrete
from fusionlint.patterns.runs.made_once import is_method_for_constructors
from fusionlint.rule import Rule
from fusionlint.source.facts import CONSTRUCTORS
from fusionlint.source.tree import Source
from fusionlint.source.walk import dotted

rule = Rule(__name__, harm="recompile")

_APPENDS = ("jax.numpy.append",)
# What a network does takes so long that a join is nothing beside it.
_BIG = regex(r"(^|[._])(encode|decode|denoise|generate|train|fit)(_|$)")
_COMPUTES = ("jax.numpy.", "jax.nn.", "jax.scipy.", "jax.lax.")
# What a method does with an array that it only takes.
_KEEPS = regex(r"log|save|write|print|store|add|append|put|record|plot|render|check|set_", re.I)
# So many names of parameters that a function can be handed are written out in one dict.
_NAMES = 8
_CONCATENATE = "jax.numpy.concatenate"
_JOINS = (_CONCATENATE, "jax.numpy.vstack", "jax.numpy.hstack", "jax.numpy.column_stack")


@rule.source("For", "While", calls=(*_APPENDS, *_JOINS), where="host", in_loop=True)
def grown(node: cst.For | cst.While, source: Source) -> Iterator[Finding]:
    """The loop joins an array with more, and goes on with the longer one; the first such array of a loop."""
    # An object joins what its few parts have, once.
    if isinstance(node, cst.For) and (
        is_few(node.iter, source) or _is_by_few_names(node.iter, source) or _is_of_a_constructor(node, source)
    ):
        return
    for call in inside(node.body, cst.Call):
        if source.loop(call) is node:
            found = _field_grown(call, node, source) or _name_grown(call, node, source)
            if found is not None:
                yield found
                return


def _is_of_a_constructor(node: cst.For, source: Source) -> bool:
    place = source.place(node)
    return place.scope.endswith(CONSTRUCTORS) or is_method_for_constructors(source.project, place)


def _name_grown(call: cst.Call, loop: cst.For | cst.While, source: Source) -> Finding | None:
    name = _grown(call, source)
    if name is None or not _is_on_host(loop, source):
        return None
    reads = _reads_between(name, loop, source)
    if reads == [] and not any(_BIG.search(dotted(beside.func)) for beside in calls(loop.body)):
        return source.finding(
            call,
            f"`{name.value}` is longer in every iteration: each length is compiled anew, and all of it copied",
            write=f"a list, `{name.value}.append(value)` in the loop, and one jnp.concatenate {_of(call, name)}"
            "after it",
        )
    if any(_is_computed_with(read, loop, source) for read in reads or ()):
        return source.finding(
            call,
            f"`{name.value}` is longer in every iteration: what computes with it is compiled anew for each length",
            write=_as_long_as(name.value, call, source),
            pair=1,
        )
    return None


def _field_grown(call: cst.Call, loop: cst.For | cst.While, source: Source) -> Finding | None:
    """What an object keeps no trace does, or it would be gone after it. What another object keeps, `self.model.seen`,
    its own methods take as long as it is."""
    field = _grown_field(call, loop, source)
    if field is None or field.count(".") > 1:
        return None
    return source.finding(
        call,
        f"`{field}` is longer in every iteration: it, and what computes with it, is compiled anew for each length",
        write=_as_long_as(field, call, source),
        pair=1,
    )


def _as_long_as(name: str, join: cst.CSTNode, source: Source) -> str:
    return (
        f"an array as long as `{name}` will get, `{_written(join, source)}` in the loop, and a mask or the length so "
        "far: one shape, which is compiled once"
    )


@rule.source("Call", calls=(_CONCATENATE,), where="used")
def cache_grown(node: cst.Call, source: Source) -> Iterator[Finding]:
    """A layer joins what a cache holds with what it computes, and hands the longer one back, for a loop of the host
    that hands it round: the first such array of a function."""
    name = _joined_to_a_cache(node, source)
    if name is None or not goes_back(name, source) or not hands_a_cache_round(source):
        return
    function = source.function(node)
    before = (call for call in calls(function.body) if source.order(call) < source.order(node)) if function else ()
    if any(_joined_to_a_cache(call, source) is not None for call in before):
        return
    yield source.finding(
        node,
        f"the cache `{name.value}` is longer after every call: in a loop that hands it round all that computes with it "
        "is compiled anew for each length",
        write="a cache as long as it will get, what is new written at its place, `jax.lax.dynamic_update_slice`, and a "
        "mask for the rest: one shape, which is compiled once",
        pair=1,
    )


def _joined_to_a_cache(call: cst.Call, source: Source) -> cst.Name | None:
    """k of `k = jnp.concatenate([cache[0], k], axis=2)`."""
    match call.args:
        case [cst.Arg(value=cst.List(elements=[old, _]) | cst.Tuple(elements=[old, _])), *_]:
            is_join = source.calls(call, _CONCATENATE)
            return source.assigned_name(call) if is_join and is_held_before(old.value, source) else None
    return None


def _is_by_few_names(iterated: cst.BaseExpression, source: Source) -> bool:
    """Whether a loop goes over a dict of a few names that are written out, or one that starts empty and is filled in
    loops over such a dict alone."""
    match iterated:
        case cst.Call(func=cst.Attribute(value=cst.Name() as table, attr=cst.Name("items" | "keys" | "values"))):
            made = source.value(table)
        case _:
            return False
    if not isinstance(made, cst.Dict) or made.elements:
        return isinstance(made, cst.Dict) and len(made.elements) <= _NAMES
    above = [source.parent(use.node) for use in source.uses(table)]
    stores = [each for each in above if isinstance(source.parent(each or table), cst.AssignTarget)]
    loops = [source.loop(each) for each in stores if isinstance(each, cst.Subscript)]
    return bool(loops) and all(isinstance(one, cst.For) and _is_by_few_names(one.iter, source) for one in loops)


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


def _grown_field(call: cst.Call, loop: cst.For | cst.While, source: Source) -> str | None:
    """self.x of `self.x = jnp.concatenate([self.x, new])`, where nothing in the loop makes it short again."""
    match source.parent(call), call.args:
        case (
            cst.Assign(targets=[cst.AssignTarget(target=cst.Attribute() as field)]),
            [cst.Arg(value=cst.List(elements=[first, _]) | cst.Tuple(elements=[first, _])), *_],
        ) if source.calls(call, *_JOINS):
            before: cst.BaseExpression = first.value
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Attribute() as field)]), [cst.Arg(value=before), _] if (
            source.calls(call, *_APPENDS)
        ):
            pass
        case _:
            return None
    name = dotted(field)
    targets = (target for part in inside(loop.body, cst.Assign) for target in part.targets)
    stored = [target for target in targets if dotted(target.target) == name]
    is_gate = is_gated(call, loop, source)
    return name if name and dotted(before) == name and len(stored) == 1 and not is_gate else None


def _of(join: cst.CSTNode, name: cst.Name) -> str:
    """What is joined after the loop, where new parts go in front."""
    match join:
        case cst.Call(args=[cst.Arg(value=cst.List(elements=parts) | cst.Tuple(elements=parts)), *_]):
            is_last = isinstance(parts[-1].value, cst.Name) and parts[-1].value.value == name.value
            return f"of `{name.value}[::-1]`, the newest first, " if is_last else ""
    return ""


def _written(join: cst.CSTNode, source: Source) -> str:
    """What writes a part in place: what is concatenated has as many axes as the array, and lies along one of them."""
    given = argument(join, 1, "axis") if isinstance(join, cst.Call) else None
    axis = constant(given) if given is not None else 0
    if not source.calls(join, _CONCATENATE) or not isinstance(axis, int):
        return ".at[i].set(value)"
    places = f"i + {source.jnp}.arange(n)"
    indices = f"{':, ' * axis}{places}" if axis >= 0 else f"..., {places}{', :' * (-axis - 1)}"
    return f".at[{indices}].set(values)"


def _reads_between(name: cst.Name, loop: cst.For | cst.While, source: Source) -> list[cst.Name] | None:
    """Where the loop reads the array but to make it longer; None where anything in it makes the array short again."""
    found = []
    for use in (use for use in source.uses(name) if loop in source.ancestors(use.node)):
        statement = source.parent(source.parent(use.node) or loop)
        if use.is_write and (not isinstance(statement, cst.Assign) or not _is_growth(statement.value, source)):
            return None
        if not use.is_write and not _is_joined(use.node, source):
            found.append(use.node)
    return found


def _is_computed_with(read: cst.Name, loop: cst.For | cst.While, source: Source) -> bool:
    """Whether `read` is what jax, a compiled function or a network of `self` computes with, in every iteration."""
    call = source.handed_to(read)
    if call is None or is_gated(call, loop, source):
        return False
    match call.func:
        case cst.Attribute(value=cst.Name("self"), attr=cst.Name(network)):
            return not _KEEPS.search(network)
    is_of_jax = (source.qualified_name(call.func) or "").startswith(_COMPUTES)
    return is_of_jax or is_jitted(call.func, source)


def _is_growth(value: cst.BaseExpression, source: Source) -> bool:
    return isinstance(value, cst.Call) and _grown(value, source) is not None


def _is_joined(read: cst.Name, source: Source) -> bool:
    """Whether `read` is the array that is made longer, right in the join's arguments."""
    argument = source.parent(read)
    if isinstance(argument, cst.Element):
        argument = source.parent(source.parent(argument) or argument)
    call = source.parent(argument) if isinstance(argument, cst.Arg) else None
    return source.calls(call, *_APPENDS, *_JOINS)


def _is_on_host(node: cst.CSTNode, source: Source) -> bool:
    """Whether the code is seen to be host code, or to select by a mask, which no trace survives."""
    if source.context(node) == "host" or is_concrete(node, source):
        return True
    function = source.function(node)
    return function is not None and any(_selects(part, source) for part in inside(function))


def _selects(node: cst.CSTNode, source: Source) -> bool:
    """`roots[roots.imag != 0]`, stored under a name."""
    match node:
        case cst.Subscript(
            value=cst.Name(array), slice=[cst.SubscriptElement(slice=cst.Index(value=cst.Comparison(left=left)))]
        ):
            is_own = any(part.value == array for part in names_in(left))
            return is_own and source.assigned_name(node) is not None
    return False
