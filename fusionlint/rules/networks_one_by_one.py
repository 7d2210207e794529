"""Several networks alike, applied to one input by a Python loop: `[MLP(sizes)(x) for _ in range(2)]`, joined after."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING, TypeAlias

import libcst as cst

from fusionlint.finding import Finding
from fusionlint.lazily import regex
from fusionlint.patterns.code.at import elements, inside, names_in, names_read
from fusionlint.patterns.code.calls import brief
from fusionlint.patterns.code.functions import function_named
from fusionlint.patterns.code.same import is_same_at
from fusionlint.patterns.compiled.networks import networks_beside
from fusionlint.patterns.loops.collected import collected, counting, iterated_by, target_names
from fusionlint.patterns.runs.concrete import is_concrete
from fusionlint.rule import Rule
from fusionlint.source.places import Place
from fusionlint.source.tree import Source

if TYPE_CHECKING:
    from fusionlint.hlo import parse as hlo
    from fusionlint.hlo.barriers import Barrier

rule = Rule(__name__, harm="fusion")

_Loop: TypeAlias = "cst.For | cst.ListComp | cst.GeneratorExp"
_MODULE = frozenset(("flax.linen.Module",))
_PRODUCTS = ("jax.numpy.dot", "jax.numpy.matmul", "jax.numpy.einsum", "jax.lax.dot_general")
_PRODUCT = regex(r"\S @ ")
_ONE_LAYER = regex(r"(dense|linear|conv\w*|embs?|embed\w*|norm|projection)$", re.I)
_DROPOUT, _MAKE_RNG = "flax.linen.Dropout", "make_rng"
_LAYER = regex(r"flax\.linen\.(Dense|Conv|Einsum|\w*Attention|\w*Cell$|RNN)")
_DEPTH = 3  # of modules made of modules
_LONG = 40
_MESSAGE = "each of these networks multiplies by itself: products of matrices that could be one batch"


def _applying(source: Source) -> Iterator[str]:
    """The scopes that go over a `range` and call a module of the project in a loop, or a function of the file, where
    any of those may multiply: asked of the facts and of the text."""
    counted = {*counting(source)}
    calls = source.project.named_calls(source.path) if counted else ()
    called = {
        (place.scope, name) for place, name, (_, _, loops, _) in calls if name and loops and place.scope in counted
    }
    found = [(scope, place) for scope, name in called if (place := source.project.find(name)) is not None]
    functions = {scope for scope, place in found if place.path == source.path}
    yield from (scope for scope, place in found if _is_a_module_at(place, source))
    yield from functions if functions and _has_products(source) else ()


def _has_products(source: Source) -> bool:
    return any(source.called(name) for name in _PRODUCTS) or any(map(_PRODUCT.search, source.pieces.lines))


@rule.source("For", "ListComp", "GeneratorExp", when=_applying)
def applied_by_a_loop(loop: _Loop, source: Source) -> Iterator[Finding]:
    """Each turn applies a module that it makes, or a function to what stands at its number."""
    over = iterated_by(loop)
    if not source.calls(over, "range"):
        return
    if len(over.args) != 1 or source.code(over.args[0].value) == "1":
        return
    bound = target_names(loop) | _assigned_in(loop)
    count = brief(source.code(over.args[0].value), _LONG, "n")
    values = collected(loop, source)
    if not values or is_concrete(loop, source):
        return
    for value in values:
        match value:
            case cst.Call(func=cst.Call(func=cst.Name() | cst.Attribute() as module)):
                if _is_a_module(module, source) and _is_the_same(value, bound):
                    yield source.finding(loop, _MESSAGE, write=_vmapped(module, count, source))
                    return
            case cst.Call(func=cst.Name() as function):
                if _multiplies(function, source) and _is_of_its_number(value, target_names(loop), bound):
                    jax = source.alias("jax") or "jax"
                    write = f"{jax}.vmap({function.value}) over what is indexed, with in_axes=None for the rest"
                    yield source.finding(loop, _MESSAGE, write=write)
                    return


@rule.barrier
def multiplied_one_by_one(barrier: Barrier, module: hlo.Module) -> str | None:
    """What crosses memory in one of several networks of one shape, which have one input."""
    networks = networks_beside(barrier, module)
    if not networks:
        return None
    return (
        f"jax.vmap of one network over stacked parameters, or flax.linen.vmap: {networks} of one shape have one input, "
        "and each multiplies by itself"
    )


def _made_twice(source: Source) -> Iterator[str]:
    """The methods of the file's modules that make a module of one class more than once."""
    modules = {name for name in source.facts.raw.classes if source.project.inherits(Place(source.path, name), _MODULE)}
    if not modules:
        return
    calls = source.project.named_calls(source.path)
    made = Counter((place.scope, name) for place, name, _ in calls if name and place.outer.scope in modules)
    for (scope, name), count in made.items():
        found = source.project.find(name) if count > 1 else None
        if found is not None and _is_a_module_at(found, source):
            yield scope


@rule.source("FunctionDef", where="any", when=_made_twice)
def written_twice(function: cst.FunctionDef, source: Source) -> Iterator[Finding]:
    """`q1 = MLP(sizes)(x)`, then `q2 = MLP(sizes)(x)`."""
    if not source.is_traced(function.body):
        return
    alike: dict[tuple[str, ...], list[tuple[cst.BaseExpression, cst.Call]]] = defaultdict(list)
    for part in inside(function.body):
        match part:
            case cst.Assign(
                targets=[cst.AssignTarget(target=cst.Name())],
                value=cst.Call(func=cst.Call(func=cst.Name() | cst.Attribute() as module)) as call,
            ) if not source.in_loop(call) and _is_a_module(module, source):
                alike[_but_for_its_name(source.code(module), call, source)].append((module, call))
    for (made, first), *others in alike.values():
        if others and is_same_at(first, others[-1][1], source):
            yield source.finding(first, _MESSAGE, write=_vmapped(made, str(len(others) + 1), source))


def _but_for_its_name(module: str, call: cst.Call, source: Source) -> tuple[str, ...]:
    """A module, and what it is made of and handed, without what it is called."""
    settings = (source.code(arg).rstrip(", ") for arg in _settings(call))
    return module, *settings, *(source.code(arg) for arg in call.args)


def _settings(call: cst.Call) -> list[cst.Arg]:
    """What the module that is called here is made of, without its name: `sizes` of `MLP(sizes, name="q")(x)`."""
    made = call.func.args if isinstance(call.func, cst.Call) else ()
    return [arg for arg in made if arg.keyword is None or arg.keyword.value != "name"]


def _vmapped(module: cst.BaseExpression, count: str, source: Source) -> str:
    """With the results in front, as the default is: what takes a list of them, or their names, takes that as it is.
    A module is handed the random numbers of those streams alone that are named."""
    linen = source.alias("flax.linen") or "flax.linen"
    place = source.project.find(source.qualified_name(module))
    drawing = _drawing(place, source) if place is not None else set()
    streams = ", ".join(f"'{name}': True" for name in ("params", *(["dropout"] if _DROPOUT in drawing else ())))
    asked = f", with the names that {_MAKE_RNG} is asked for in split_rngs too" if _MAKE_RNG in drawing else ""
    return (
        f"{linen}.vmap({source.code(module)}, variable_axes={{'params': 0}}, split_rngs={{{streams}}}, in_axes=None, "
        f"axis_size={count}){asked}: results and parameters get an axis in front, so that saved ones have to be stacked"
    )


def _drawing(place: Place, source: Source, depth: int = _DEPTH) -> set[str]:
    """What a module of the project, or what it is derived from or made of, draws random numbers by when it is
    called."""
    found = set[str]()
    for at, name, (called, _, _, _) in source.project.named_calls(place.path):
        if not at.scope.startswith(f"{place.scope}."):
            continue
        if name == _DROPOUT or called[0] == f"self.{_MAKE_RNG}":
            found.add(_DROPOUT if name == _DROPOUT else _MAKE_RNG)
        made = source.project.find(name) if name is not None and depth else None
        if made is not None and _is_flax(made, source):
            found |= _drawing(made, source, depth - 1)
    bases = source.project.bases(place) if depth else ()
    return found.union(*(_drawing(base, source, depth - 1) for base in bases))


def _assigned_in(loop: _Loop) -> set[str]:
    targets = (part.target for part in inside(loop, cst.AssignTarget))
    return {name.value for target in targets for name in names_in(target)}


def _is_a_module(module: cst.BaseExpression, source: Source) -> bool:
    """Whether this is a network of flax.linen that the project makes. Of single layers on one input a GPU's
    compiler makes one product by itself: `nn.Dense`."""
    place = source.project.find(source.qualified_name(module))
    return place is not None and _is_a_module_at(place, source)


def _is_a_module_at(place: Place, source: Source) -> bool:
    return not _ONE_LAYER.search(place.scope) and _is_flax(place, source) and _has_layers(place, source)


def _is_flax(place: Place, source: Source) -> bool:
    is_class = place.scope in source.project.files[place.path].classes
    return is_class and source.project.inherits(place, _MODULE)


def _has_layers(place: Place, source: Source, depth: int = _DEPTH) -> bool:
    """Whether a module of the project is made of several layers: it, or what it is derived from or made of, makes two,
    or some in a loop. One whose only product is with a parameter of its own is a layer itself."""
    layers = 0
    for at, name, (_, _, loops, _) in source.project.named_calls(place.path):
        if name is None or not at.scope.startswith(f"{place.scope}."):
            continue
        made = source.project.find(name)
        if made is not None and _is_flax(made, source):
            layers += 2 if loops or (depth and _has_layers(made, source, depth - 1)) else 1
        elif _LAYER.match(name):
            layers += 2 if loops else 1
    return layers > 1 or any(depth and _has_layers(base, source, depth - 1) for base in source.project.bases(place))


def _is_the_same(call: cst.Call, bound: set[str]) -> bool:
    """Whether each turn makes the same network, but for its name, and hands it the same."""
    return bound.isdisjoint(name.value for arg in (*_settings(call), *call.args) for name in names_read(arg.value))


def _multiplies(function: cst.Name, source: Source) -> bool:
    """Whether the function of the file that is called multiplies matrices itself."""
    found = function_named(function, source)
    for part in inside(found.body) if found is not None else ():
        if isinstance(part, cst.MatrixMultiply) or (source.calls(part, *_PRODUCTS)):
            return True
    return False


def _is_of_its_number(call: cst.Call, counters: set[str], bound: set[str]) -> bool:
    """Whether a turn's number says which of several parameters are taken, `f((w[i], b[i]), x)`, and nothing else."""
    taken = 0
    for arg in call.args:
        indexed = [
            part.value
            for part in inside(arg.value, cst.Subscript)
            if isinstance(part.value, cst.Name) and _is_by(part, counters)
        ]
        reads = [name.value for name in names_read(arg.value)]
        if sum(name in counters for name in reads) != len(indexed) or any(name in bound - counters for name in reads):
            return False
        taken += len(indexed)
    return taken > 1


def _is_by(read: cst.Subscript, counters: set[str]) -> bool:
    match elements(read.slice):
        case [cst.Name(name)]:
            return name in counters
    return False
