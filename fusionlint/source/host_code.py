"""Which functions of a file are host code: by their names, by what they call, and by what they keep in their objects.

In: a `Project` and one of its files. Out: places of the file. No trace survives what they do; a module of a network
keeps its layers as others keep their state, and is traced all the same.
"""

from __future__ import annotations

from collections.abc import Iterator

from fusionlint.lazily import regex
from fusionlint.source.facts import CONSTRUCTORS, NOTHING, Value, last_name, unpacked
from fusionlint.source.hosts import (
    is_called_as_host,
    is_first_state_name,
    is_host_call,
    is_host_file,
    is_of_any_size,
    is_set_up_name,
    is_step_name,
)
from fusionlint.source.idle_files import is_idle_file
from fusionlint.source.places import Place
from fusionlint.source.project import Project
from fusionlint.source.transforms import EQUINOX, MODULES

# The methods that make an object of a class, and those that run it as they would a function.
MAKES = tuple(f".{name}" for name in CONSTRUCTORS)
CLASS_RUNS = (*MAKES, ".__new__", ".__call__", ".setup")
# Bases that say nothing of what an object is.
_BASES_OF_PYTHON = frozenset(("object", "ABC", "Protocol", "Generic"))
_HOST_METHODS = (".item", ".block_until_ready", ".tolist")
_TRACER = "Tracer"
_TO_NUMPY = ("numpy.asarray", "numpy.array")
_COMPUTES = ("jax.numpy.", "jax.lax.", "jax.nn.", "jax.random.", "jax.scipy.")
# Of these a trace knows the result, or may: of `array` what it is handed.
_KNOWN = regex(
    r"^(shape|ndim|size|axis_size|psum|broadcast_shapes|dtype|[fi]info|is(sub)?dtype|result_type|promote_types|can_cast"
    r"|isscalar|is(complex|real)obj|(as)?array|b?float\d+|u?int\d+|complex\d+|bool_)$"
)


def runs_with_its_class(place: Place) -> bool:
    """Whether a method runs where its class is made an object of, or called as a function is."""
    return place.scope.endswith(CLASS_RUNS)


def host_code(project: Project, path: str) -> Iterator[Place]:
    """The functions of a file that are host code."""
    yield from _of_drivers(project, path)
    yield from _asking_for_values(project, path)


def only_asks(project: Project, place: Place) -> bool:
    """Whether a function is host code for nothing but what it asks for, `float(jnp.max(x))`: a library's all the same,
    as one is of which nobody sees how it runs."""
    project.log.add(*place)
    asking, driving = _asking_for_values(project, place.path), _of_drivers(project, place.path)
    return place in asking and place not in driving


def _of_drivers(project: Project, path: str) -> Iterator[Place]:
    """Those that are called as drivers are, or do what these do."""
    facts = project.files[path]
    is_all = is_idle_file(facts.inside) or is_host_file(facts)
    yield from (Place(path, scope) for scope in facts.functions if is_all or is_called_as_host(facts, scope))
    yield from _calling_the_host(project, path)
    yield from keeping(project, path)


def setting_up(project: Project, path: str) -> Iterator[Place]:
    """Methods that are called as set-up is and keep what they make: `self.state = ...` in `init_state`, which no trace
    survives; and what makes a first state. A module of a network library keeps its layers so, under every trace."""
    facts = project.files[path]
    first = (Place(path, scope) for scope in facts.raw.functions if is_first_state_name(last_name(scope)))
    yield from (place for place in first if _makes_a_first_state(project, place))
    for place in _methods_that_keep(project, path):
        if is_set_up_name(last_name(place.scope)) and not _is_built_anew(project, place):
            yield place


def _calling_the_host(project: Project, path: str) -> Iterator[Place]:
    """The functions of a file that call what no trace survives, or drive something compiled."""
    for place, name, (value, _, loops, _) in project.named_calls(path):
        if place.scope and (
            (name is not None and (is_host_call(name) or is_of_any_size(name, value)))
            or (isinstance(value[0], str) and value[0].endswith(_HOST_METHODS))
            # A Python loop over a jitted call is how a driver looks.
            or (loops and project.dispatches(place, name, value[0]))
        ):
            yield place


def _asking_for_values(project: Project, path: str) -> Iterator[Place]:
    """The functions of a file in which Python asks what jax has computed there, `float(jnp.mean(losses))`, by a name or
    not, or numpy does: in a trace it has no value."""
    facts = project.files[path]
    if _TRACER in facts.attributes or any(name.endswith(f".{_TRACER}") for name in facts.raw.imports()):
        return  # which may ask before whether there is a trace
    for scope, asked in facts.raw.asked:
        place, value = Place(path, scope), unpacked(asked)
        if _called(value, place, project) in _TO_NUMPY:
            value = value.arguments[0]
        if scope and _is_computed(value, place, project):
            yield place


def _called(value: Value, place: Place, project: Project) -> str | None:
    return project.qualified_name(place, value.callee.name) if value.callee is not None else None


def _is_computed(value: Value, place: Place, project: Project) -> bool:
    if value.callee is None and value.name:
        found = project.files[place.path].bound(place.scope, value.name)
        value = found.value if found is not None and found.kind == "value" else NOTHING
    name = _called(value, place, project)
    return name is not None and name.startswith(_COMPUTES) and not _KNOWN.match(name.rpartition(".")[2])


def keeping(project: Project, path: str) -> Iterator[Place]:
    """Methods of plain classes that keep what they make, `self.params = params - rate * grads`: a trace that they were
    part of would leave its tracers there."""
    for place in _methods_that_keep(project, path):
        if not runs_with_its_class(place) and _is_plain(project, place.outer):
            yield place


def _methods_that_keep(project: Project, path: str) -> Iterator[Place]:
    facts = project.files[path]
    for scope in facts.has("kept in self"):
        place = Place(path, scope)
        if scope in facts.raw.functions and place.outer.scope in facts.raw.classes:
            yield place


def _is_plain(project: Project, one: Place) -> bool:
    """Whether a class and those that it is derived from are known, and no trace is handed its objects: no modules of a
    network, no pytrees. What nobody knows may be one."""
    return all(_is_of_python(project, place) for place in project.lineage(one))


def _is_of_python(project: Project, one: Place) -> bool:
    facts = project.files[one.path]
    made = facts.classes[one.scope]
    unknown = [base.name for base in made.bases if last_name(base.name) not in _BASES_OF_PYTHON]
    above = [last_name((each.callee or each).name) for each in made.decorators]
    return (
        len(unknown) == len(project.bases(one))
        and all(name == "dataclass" for name in above)
        and f"{one.scope}.tree_flatten" not in facts.raw.functions
        and not any(name.endswith("Module") for name in (one.scope, *unknown))
    )


def _makes_a_first_state(project: Project, place: Place) -> bool:
    """Whether a function that is called so, `init_electrons`, makes a first state: no `step` stands beside it, for an
    environment that is over begins again within a step. Every trace makes a network's modules anew, but equinox's."""
    facts, around = project.files[place.path], place.outer.scope
    if around in facts.raw.classes and _is_built_anew(project, place) and not project.inherits(place.outer, EQUINOX):
        return False
    return not any(one.rpartition(".")[0] == around and is_step_name(last_name(one)) for one in facts.raw.functions)


def _is_built_anew(project: Project, method: Place) -> bool:
    """Whether a method may be of a network's module, of whatever library: every trace runs it again. What is called
    `setup` of a class with a base that nobody knows is flax's."""
    classes = project.lineage(method.outer)
    bases = [base.name for one in classes for base in project.files[one.path].classes[one.scope].bases]
    is_called_so = any(name.endswith("Module") for name in (*bases, *(one.scope for one in classes)))
    is_setup = bool(bases) and method.scope.endswith(".setup")
    return is_called_so or is_setup or project.inherits(method.outer, MODULES)
