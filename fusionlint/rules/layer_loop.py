"""A Python loop over identical layers: each of them is in the program that XLA compiles."""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

from fusionlint.finding import Finding
from fusionlint.lazily import regex
from fusionlint.patterns.code.at import inside, names_read
from fusionlint.patterns.code.calls import brief
from fusionlint.patterns.loops.carry import Carry, read
from fusionlint.patterns.loops.layer_count import is_shallow, layer_count
from fusionlint.patterns.loops.layer_lists import Layers, built_alike, is_wider_at_first
from fusionlint.patterns.loops.layer_size import LARGE_MODULE, attends, is_large
from fusionlint.patterns.runs.concrete import is_concrete
from fusionlint.patterns.runs.options import is_instead_of_a_scan, scan_beside
from fusionlint.patterns.values.kinds import kind
from fusionlint.rule import Rule
from fusionlint.source.places import Place
from fusionlint.source.tree import Source
from fusionlint.source.walk import dotted

rule = Rule(__name__, harm="compile-time")

# Not haiku's: a stack of its modules is another model, and those that are written in it today are small.
_MODULES = frozenset(("flax.linen.Module", "flax.nnx.Module", "equinox.Module"))
_REMAT = ("flax.linen.remat", "flax.linen.checkpoint", "flax.nnx.remat", "jax.checkpoint", "equinox.filter_checkpoint")
# What is given to a module under such a name is no block of layers.
_PLAIN = regex(r"norm|act|pool|drop|conv|dense|linear", re.I)
# The weights of an equivariant layer depend on what kinds of features it is handed: the first has fewer than it makes.
_IRREPS = regex(r"(^|_)irreps?($|_)")


def _handing_on(source: Source) -> Iterator[str]:
    """The scopes of traced code where a loop goes on with what a layer returned: asked of the facts."""
    facts = source.facts
    layers = {scope for scope in facts.has("handed on in a loop") if _is_of_a_module(scope, source)}
    scopes = layers.union(facts.has("handed on with rows in a loop"))
    return (scope for scope in scopes if source.runs(scope, "traced"))


def _is_of_a_module(scope: str, source: Source) -> bool:
    around = source.facts.class_around(scope)
    return bool(around) and source.project.inherits(Place(source.path, around), _MODULES)


@rule.source("For", when=_handing_on)
def layers_in_a_loop(loop: cst.For, source: Source) -> Iterator[Finding]:
    """`for i in range(depth): x = Block(...)(x)`, `x = block(x, w[i])` of stacked parameters, or
    `for block in self.blocks: x = block(x)` of blocks that were built alike."""
    count = _count(loop, source)
    if count is not None and not _is_told_before(loop, source):
        yield _finding(loop, count, source)


def _count(loop: cst.For, source: Source) -> cst.BaseExpression | None:
    """How many layers `loop` goes over, where it is such a loop."""
    layers = _layers(loop, source)
    count = layer_count(loop.iter if layers is None else layers.over, source)
    if count is None or not source.is_traced(loop) or source.is_idle(loop):
        return None
    if _is_of_stages(loop, source) or _is_numbered(loop) or is_instead_of_a_scan(loop, source):
        return None
    if layers is not None and is_instead_of_a_scan(layers.built, source):
        return None
    if is_shallow(loop, source) or is_concrete(loop, source):
        return None
    carry = Carry(loop)
    for node in loop.body.body if isinstance(loop.body, cst.IndentedBlock) else ():
        match node:
            case cst.SimpleStatementLine(body=[cst.Assign(value=cst.Call() as call) as statement]):
                first = [name for arg in call.args[:1] for name in names_read(arg.value)]
                if not _goes_on(statement, carry) & {name.value for name in first}:
                    continue
                if any(is_wider_at_first(name, loop, source) for name in first):
                    continue
                if _is_alike(call, carry, source) if layers is None else _is_one_of(layers, call, loop, carry, source):
                    return count
    return None


def _layers(loop: cst.For, source: Source) -> Layers | None:
    """How the layers are built that the loop goes over, with or without counting them."""
    match loop.iter:
        case cst.Call(args=[cst.Arg(value=layers), *_]) if source.calls(loop.iter, "enumerate", "zip"):
            return built_alike(layers, source)
    return built_alike(loop.iter, source)


def _is_one_of(layers: Layers, call: cst.Call, loop: cst.For, carry: Carry, source: Source) -> bool:
    """Whether `call` applies the layer of this iteration, and is handed nothing, near or far, by its number."""
    layer: cst.BaseExpression = loop.target
    match loop.target:
        case cst.Name():
            pass
        case cst.Tuple(elements=[cst.Element(value=first), cst.Element(value=second)]):
            counted = source.calls(loop.iter, "enumerate")
            layer = second if counted else first
            if counted and source.code(first) in carry.behind(list(call.args), gated=True)[1]:
                return False
        case _:
            return False
    match layer, call.func:
        case cst.Name(name), cst.Name(called) if name == called:
            return _is_module(loop, source) and _is_block(layers.built.func, source)
    return False


def _is_of_stages(loop: cst.For, source: Source) -> bool:
    """Whether as many layers stand in each of several stages of the function: they are few."""
    same = (
        other
        for other in source.nodes_in({source.pieces.of_scope(source.scope(loop))}, cst.For)
        if isinstance(other, cst.For) and source.function(other) is source.function(loop)
        if source.code(other.iter) == source.code(loop.iter)
    )
    return any(source.in_loop(other) for other in same)


def _is_told_before(loop: cst.For, source: Source) -> bool:
    """Whether the first branch of an `if`, or a method further up of the same class, has such a loop over the same
    layers, handed other things: they are stacked once for all."""
    for below, above in source.outward(loop):
        match above:
            case cst.If(body=first, orelse=cst.Else() as other) if other is below and _goes_over_them(
                first, loop, source
            ):
                return True
            case cst.ClassDef(body=body) if isinstance(loop.iter, cst.Attribute):
                methods = (part for part in body.body if isinstance(part, cst.FunctionDef))
                return any(
                    source.order(one) < source.order(loop) and _goes_over_them(one.body, loop, source)
                    for one in methods
                    if one is not below
                )
    return False


def _goes_over_them(code: cst.CSTNode, loop: cst.For, source: Source) -> bool:
    loops = inside(code, cst.For)
    same = (each for each in loops if source.code(each.iter) == source.code(loop.iter))
    return any(_count(each, source) is not None for each in same)


def _is_numbered(loop: cst.For) -> bool:
    """Whether one of the layers is treated as no other, `if i == frozen: x = stop_gradient(x)`, or what each makes is
    kept under its number, `self.sow("intermediates", "layer_%d" % i, x)`."""
    counters = {name.value for name in names_read(loop.target)}
    asked: list[cst.CSTNode] = []
    for node in inside(loop.body):
        match node:
            case cst.If(test=test):
                asked.append(test)
            case cst.Call(func=cst.Attribute(attr=cst.Name("sow")), args=args):
                asked += args
    return any(name.value in counters for part in asked for name in names_read(part))


def _goes_on(statement: cst.Assign, carry: Carry) -> set[str]:
    """The names that take the first, or all, of what the layer returns: `x = block(x)`, `x, weights = block(x)`, and
    `outputs = block(x)` with `x = outputs[0]` after it."""
    match statement.targets[0].target:
        case cst.Name(name):
            onward = (write for write in carry.writes if write.always and _is_first_of(write.value, name))
            return {name}.union(*(write.names for write in onward))
        case cst.Tuple(elements=[cst.Element(value=cst.Name(name)), *_]):
            return {name}
    return set()


def _is_first_of(value: cst.BaseExpression, name: str) -> bool:
    match value:
        case cst.Subscript(value=whole, slice=[cst.SubscriptElement(slice=cst.Index(value=cst.Integer("0")))]):
            value = whole
    return isinstance(value, cst.Name) and value.value == name


def _is_alike(call: cst.Call, carry: Carry, source: Source) -> bool:
    """Whether the layer that `call` applies is built alike in every iteration, but for its name and its weights."""
    loop = carry.loop
    if not isinstance(loop, cst.For) or not isinstance(loop.target, cst.Name):
        return False
    counter = loop.target.value
    made = call.func
    if isinstance(made, cst.Name):
        value = source.value(made)
        made = value if isinstance(value, cst.Call) and source.loop(value) is loop else made
    if isinstance(made, cst.Call):
        others = [arg for arg in made.args if arg.keyword is None or arg.keyword.value != "name"]
        if any(_is_numbered_setting(arg.value, counter, source) for arg in call.args) or _calls_parts(loop, counter):
            return False
        if _uses(others, counter, loop) or any(_is_of_a_level(arg.value, source) for arg in others):
            return False
        if any(arg.keyword is not None and _IRREPS.search(arg.keyword.value) for arg in others):
            return False
        return _is_module(loop, source) and _is_block(made.func, source)
    place = source.project.find(source.qualified_name(made))
    if place is None or source.project.function_at(place) is None or not is_large(source.project, place):
        return False
    rows = [arg.value for arg in call.args[1:] if isinstance(arg.value, cst.Subscript)]
    is_all = bool(rows) and len(rows) == len(call.args) - 1 and len(_recurring(carry)) == 1
    return is_all and all(_is_layer_of(row, counter, source) for row in rows)


def _calls_parts(loop: cst.For, counter: str) -> bool:
    """Whether an iteration calls a part of its own too that is there already, `self.heads[i](x)`."""
    called = (part.func for part in inside(loop.body, cst.Call))
    parts = (func for func in called if isinstance(func, cst.Subscript) and isinstance(func.value, cst.Attribute))
    return any(name.value == counter for part in parts for index in part.slice for name in names_read(index))


def _is_numbered_setting(given: cst.BaseExpression, counter: str, source: Source) -> bool:
    """Whether a layer is handed what is computed from its number, `drop_rate(i, depth)`: no row of something."""
    made = source.meant(given)
    parts = [arg.value for arg in made.args] if isinstance(made, cst.Call) else [made]
    numbers = (part for part in parts if isinstance(part, cst.Name | cst.BinaryOperation))
    return any(name.value == counter for part in numbers for name in names_read(part))


def _recurring(carry: Carry) -> set[str]:
    """What an iteration makes of what the last one made: of layers one value, of a recurrence perhaps several. What it
    writes before it reads it, the last one did not hand on."""
    anew: set[str] = set()
    found: set[str] = set()
    for write in carry.writes:
        before = set(read(write.value))
        found.update(name for name in write.names if name in before and name not in anew)
        anew.update(name for name in write.names if write.always and name not in before)
    return found


def _uses(args: list[cst.Arg], counter: str, loop: cst.For) -> bool:
    """Whether `args` are others in another iteration."""
    varying = {counter} | {name for write in Carry(loop).writes for name in write.names}
    return any(name.value in varying for arg in args for name in names_read(arg.value))


def _is_of_a_level(setting: cst.BaseExpression, source: Source) -> bool:
    """Whether a layer is as wide as its level of several, `channels * multipliers[level]`: the first of them is handed
    what the level before made, which is of another width."""
    meant = source.meant(setting)
    looked_up = inside(meant, cst.Subscript)
    return any(not dotted(part.value).endswith("shape") for part in looked_up)


def _is_layer_of(row: cst.Subscript, counter: str, source: Source) -> bool:
    """`weights[i]`, of what may be an array."""
    match row.slice:
        case [cst.SubscriptElement(slice=cst.Index(value=cst.Name(index)))] if index == counter:
            return kind(row.value, source) in ("array", None)
    return False


def _is_module(node: cst.CSTNode, source: Source) -> bool:
    return _is_of_a_module(source.scope(node), source)


def _is_block(constructor: cst.BaseExpression, source: Source) -> bool:
    """Whether what is built is a module of the project that does much, or one that the caller chose."""
    name = source.qualified_name(constructor)
    if name is None:
        match constructor:
            case cst.Attribute(value=cst.Name("self"), attr=cst.Name(given)):
                return not _PLAIN.search(given)  # a class that the module was given: self.block_cls
            case cst.Name():
                return any(_is_block(cls, source) for cls in _stored_classes(constructor, source))
        return False
    place = source.project.find(name)
    if place is None:
        return False
    applied = Place(place.path, f"{place.scope}.__call__")
    return is_large(source.project, applied, LARGE_MODULE) or attends(source.project, applied)


def _stored_classes(constructor: cst.Name, source: Source) -> Iterator[cst.BaseExpression]:
    """The classes that a variable holds: `cls = Block`, or `cls = nn.remat(Block, ...)`."""
    for use in source.uses(constructor):
        target = source.parent(use.node) if use.is_write else None
        match source.parent(target) if isinstance(target, cst.AssignTarget) else None:
            case cst.Assign(value=cst.Call(args=[cst.Arg(value=cst.Name() as wrapped), *_]) as call) if source.calls(
                call, *_REMAT
            ):
                yield wrapped
            case cst.Assign(value=cst.Name() as value) if value.value != constructor.value:
                yield value


def _finding(loop: cst.For, number: cst.BaseExpression, source: Source) -> Finding:
    count = source.code(_counted_to(loop) if source.calls(loop.iter, "range") else number)
    shown = brief(count, 40, "all of the")
    shown = f"`{shown}`" if shown == count else shown
    layers = _layers(loop, source)
    flag = scan_beside(loop if layers is None else layers.built, source)
    by = "one layer under jax.lax.scan (nn.scan, nnx.scan) over stacked parameters"
    if isinstance(flag, cst.Name | cst.Attribute):
        by = f"the scan that stands beside it, as `{source.code(flag)}` says"
    return source.finding(
        loop,
        f"{shown} identical layers are each written into the program: it compiles longer with every one",
        write=f"where compiling takes long, {by}; the compiled program gets no faster by it",
    )


def _counted_to(loop: cst.For) -> cst.BaseExpression:
    """n of `range(n)`, as written."""
    found = next(inside(loop.iter, cst.Arg))
    return found.value
