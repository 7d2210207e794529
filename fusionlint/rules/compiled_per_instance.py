"""An instance made anew, of a class that compiles its methods for each instance."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from fusionlint.finding import Finding
from fusionlint.patterns.code.at import inside
from fusionlint.patterns.code.calls import call_of
from fusionlint.patterns.dispatch.anew import repeats
from fusionlint.patterns.dispatch.jit import value
from fusionlint.patterns.loops.carry import Carry, read
from fusionlint.rule import Rule
from fusionlint.source.answers import of_project, remembered
from fusionlint.source.asked import CALLS, EVERYWHERE
from fusionlint.source.facts import RawValue, Value, last_name
from fusionlint.source.names import JIT, PARTIAL
from fusionlint.source.places import Place
from fusionlint.source.project import Project
from fusionlint.source.tree import Source
from fusionlint.source.walk import dotted

rule = Rule(__name__, harm="recompile")

_PLAIN_BASES = frozenset(("object", "abc.ABC", "typing.Generic", "typing.Protocol"))
_STATIC = "static_arg"
# What a class defines whose instances are not compared by identity, or are looked into.
_COMPARED = frozenset(("__eq__", "__hash__", "tree_flatten"))
# What says of a class that jax may look into its instances.
_PYTREES = tuple(
    f"jax.{module}.register_{what}"
    for module in ("tree_util", "tree")
    for what in (
        "pytree_node",
        "pytree_node_class",
        "pytree_with_keys",
        "pytree_with_keys_class",
        "dataclass",
        "static",
    )
)


def _making_one(source: Source) -> Iterator[str]:
    """The scopes that make an instance of such a class: asked of the facts."""
    for name in source.names:
        owner = source.project.find(name)
        if owner is not None and _compiles(source.project, owner):
            yield from (place.scope for place, _ in source.called(name) if source.runs(place.scope, "host"))


@rule.source("Call", where="host", when=_making_one)
def instance_made_anew(node: cst.Call, source: Source) -> Iterator[Finding]:
    """`Solver(0.1).step(x)`, or `solver = Solver(0.1)`, then `solver.step(x)`, in host code that runs often."""
    where = repeats(node, source)
    if where is None or not _could_be_made_before(node, where) or _may_be_traced(where, source):
        return
    for method, call in _compiled_methods(node, source):
        if where in source.ancestors(call):
            yield source.finding(
                node,
                f"`{method}` is compiled for each instance, and this makes another one every time",
                write="make the instance once, or tell jax which are equal: `__eq__` and `__hash__`, as a frozen "
                "dataclass has them",
            )
            return


def _may_be_traced(where: cst.CSTNode, source: Source) -> bool:
    """Whether code under a trace calls a method of some object by the name of the one around `where`, `env.step` in the
    body of a scan: what that makes, it makes once for each trace."""
    function = where if isinstance(where, cst.FunctionDef) else source.function(where)
    if function is None:
        return False
    place = source.body_place(function)
    facts = source.project.function_at(place)
    if facts is None or not facts.owner:
        return False
    called = f".{last_name(place.scope)}"
    source.project.log.asked.add((EVERYWHERE, CALLS))
    for path, of_file in source.project.files.items():
        for (callee, *_), scope, *_ in of_file.raw.calls:
            if isinstance(callee, str) and callee.endswith(called) and not callee.startswith("self."):
                source.project.log.add(path, scope)
                if source.contexts.get((path, scope)) == "traced":
                    return True
    return False


def _could_be_made_before(made: cst.Call, where: cst.CSTNode) -> bool:
    """Whether what a loop makes is the same each time: other settings may well need programs of their own."""
    if not isinstance(where, cst.For | cst.While):
        return True
    changed = {dotted(target.value) for target in _fields_written(where)}
    return not any(Carry(where).varies(arg) or not changed.isdisjoint(read(arg)) for arg in made.args)


def _fields_written(loop: cst.For | cst.While) -> Iterator[cst.Attribute]:
    """The fields that the loop sets: `grid.points = n`."""
    for node in inside(loop.body, cst.Assign):
        yield from (t.target for t in node.targets if isinstance(t.target, cst.Attribute))


def _compiled_methods(made: cst.Call, source: Source) -> Iterator[tuple[str, cst.Call]]:
    """The methods that jax compiles for the instance `made`, each by its name and a call: `Solver().run(x)`, or
    `solver = Solver()`, then `solver.run(x)`."""
    project = source.project
    owner = project.find(project.callee(source.place(made), value(made)))
    if owner is None or not _compiles(project, owner):
        return
    for used in source.readers(made):
        match attribute := source.parent(used):
            case cst.Attribute(attr=cst.Name(value=method)) if attribute.value is used:
                call = call_of(attribute, source)
                if call is not None and _is_compiled(project, owner, method):
                    yield method, call


@remembered
def _compiles(project: Project, owner: Place) -> bool:
    """Whether this is a class that has such a method."""
    return owner.scope in project.files[owner.path].raw.classes and any(
        _is_compiled(project, owner, name) for each in project.lineage(owner) for name in _jitted(project, each)
    )


def _jitted(project: Project, owner: Place) -> list[str]:
    """The members of a class that could be compiled for each instance, as they are written."""
    raw = project.files[owner.path].raw
    return [
        name
        for name, (_, target, made) in raw.bindings.get(owner.scope, {}).items()
        if isinstance(made, tuple) or (target in raw.functions and any(map(_says_static, raw.functions[target][1])))
    ]


def _says_static(decorator: RawValue) -> bool:
    match decorator:
        case (_, _, keywords):
            return any(keyword.startswith(_STATIC) for keyword, _ in keywords)
    return False


def _is_compiled(project: Project, owner: Place, method: str) -> bool:
    """Whether each instance of the class `owner` has `method` compiled for itself alone."""
    return _is_bound_anew(project, owner, method) or (
        _is_static(project, owner, method) and _is_by_identity(project, owner)
    )


def _is_bound_anew(project: Project, owner: Place, method: str) -> bool:
    """Whether the constructor jits a function that only this instance has: a bound method, a lambda, a partial."""
    found = project.attribute(owner, method)
    if found is None or not found[1].value.is_call or project.callee(found[0], found[1].value) not in JIT:
        return False
    jitted = found[1].value.arguments[:1]
    return any(a.name.startswith("self.") or "<lambda>" in a.name or a.is_call for a in jitted)


def _is_static(project: Project, owner: Place, method: str) -> bool:
    """Whether a method is jitted with static arguments. What is no pytree has to be one of them."""
    found = project.attribute(owner, method)
    if found is None or found[1].kind != "function":
        return False
    place = Place(found[0].path, found[1].target)
    function = project.function_at(place)
    return function is not None and any(_has_static_arguments(project, place, d) for d in function.decorators)


def _has_static_arguments(project: Project, place: Place, decorator: Value) -> bool:
    if not any(keyword.startswith(_STATIC) for keyword, _ in decorator.keywords):
        return False
    name = project.callee(place.outer, decorator)
    if name in PARTIAL and decorator.arguments:
        name = project.qualified_name(place.outer, decorator.arguments[0].name)
    return name in JIT


def _is_by_identity(project: Project, owner: Place) -> bool:
    """Whether nothing is seen that makes two instances equal, or a pytree: no `__eq__` or `__hash__`, no fields as a
    dataclass has them, no base class that nobody can see into, no registration."""
    facts = project.files[owner.path]
    members = facts.bindings.get(owner.scope, {})
    has_fields = "__init__" not in members and any(member.kind != "function" for member in members.values())
    if has_fields or not _COMPARED.isdisjoint(members) or project.name_of(owner) in _registered(project):
        return False
    for base in facts.classes[owner.scope].bases:
        name = project.callee(owner.outer, base) if base.is_call else project.qualified_name(owner.outer, base.name)
        found = project.find(name)
        if found is not None and found.scope in project.files[found.path].classes:
            if not _is_by_identity(project, found):
                return False
        elif name not in _PLAIN_BASES and base.name not in _PLAIN_BASES:
            return False
    return True


@of_project
def _registered(project: Project) -> frozenset[str | None]:
    """The classes that are handed to jax as pytrees."""
    calls = [c for name in _PYTREES for c in project.calls_of(name)]
    handed = [(place, a) for place, call in calls for a in call.value.arguments[:1] if a.name]
    return frozenset(project.qualified_name(place, argument.name) for place, argument in handed)
