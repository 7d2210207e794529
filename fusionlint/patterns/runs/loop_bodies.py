"""The functions that the loops of jax.lax run, and whether one step of them is small.

What a loop adds to each step costs a kernel or two. Next to a training step or a whole simulation that is nothing, so
rules about such costs ask first whether the body is seen to be small; where it calls what nobody can see, it is not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import libcst as cst

from fusionlint.lazily import regex
from fusionlint.patterns.code.functions import Function
from fusionlint.source.answers import of_project
from fusionlint.source.facts import Call, Value, unpacked_call
from fusionlint.source.names import PARTIAL
from fusionlint.source.places import Bound, Place
from fusionlint.source.project import Project
from fusionlint.source.tree import Source

# Which argument is the body.
BODIES = {"jax.lax.scan": (0, "f"), "jax.lax.fori_loop": (2, "body_fun")}
# Which argument is what it carries first.
FIRSTS = {"jax.lax.scan": (1, "init"), "jax.lax.fori_loop": (3, "init_val"), "jax.lax.while_loop": (2, "init_val")}
_RUN = {**BODIES, "jax.lax.map": (0, "f"), "jax.lax.while_loop": (1, "body_fun")}
# What runs a function again and again.
LOOPS = frozenset(_RUN)
_WRAPPERS = frozenset(("jax.jit", "jax.checkpoint", "jax.remat", "jax.named_call"))
# What hands its function on to something that runs it once.
_MAPS = frozenset(("jax.vmap", *_WRAPPERS))
_LARGE = regex(
    r"jax\.(lax\.(scan|while_loop|fori_loop|map|associative_scan|custom_root|custom_linear_solve)|grad|value_and_grad"
    r"|vjp|jvp|jac\w+|hessian|linearize|numpy\.linalg\.\w+|scipy\..+|lax\.linalg\.\w+|image\..+|experimental\..+"
    # Drawn by rejection, in loops of their own.
    r"|random\.(gamma|loggamma|poisson|beta|dirichlet|chisquare|t|f|binomial|generalized_normal|ball))$"
)
_SMALL = regex(
    r"(jax|numpy|math|functools|operator|dataclasses|typing|chex)\.|[a-z]+$"
    r"|haliax\.(where|minimum|maximum|arange|(zeros|ones|full)(_like)?)$"
)
_METHODS = frozenset(
    ("sum", "mean", "max", "min", "any", "all", "prod", "std", "var", "dot", "astype", "reshape", "ravel", "flatten",
     "squeeze", "transpose", "swapaxes", "argmax", "argmin", "clip", "cumsum", "take", "repeat", "round", "conj",
     "set", "add", "subtract", "multiply", "divide", "power", "get", "replace", "_replace", "append", "items", "keys",
     "values")
)  # fmt: skip
# What loops call the number of a step.
COUNTERS = frozenset(("i", "it", "iter", "iteration", "i_step", "iter_num", "k", "j"))
_TUPLES = frozenset(("typing.NamedTuple",))
_DEPTH = 6


def bodies_of(scan: cst.Call, source: Source) -> list[Place]:
    """The functions that the loop at `scan` may run; `lax.map` is one too."""
    name, place = source.qualified_name(scan.func) or "", source.place(scan)
    found = [call for here, call in source.called(name) if here == place]
    if len(found) > 1:  # which of them this is: to find out where a node stands takes longer than to parse it
        found = [call for call in found if call[3] == source.location(scan).line]
    return [body for call in found for body in _bodies(source.project, place, unpacked_call(call), name)]


@of_project
def loop_bodies(project: Project) -> dict[Place, str]:
    """Every function of the project that a `scan` or `fori_loop` runs, and which of them."""
    return _run_by(project, BODIES)


@of_project
def all_loop_bodies(project: Project) -> dict[Place, str]:
    """Those of `while_loop` and `map` too."""
    return _run_by(project, _RUN)


@of_project
def bodies_by_parts(project: Project) -> dict[Place, str]:
    """Those too that a loop runs with some of their arguments given before, `partial(step, n)`."""
    return _run_by(project, _RUN, _WRAPPERS | PARTIAL)


def is_counted_body(function: Function, source: Source) -> bool:
    """Whether a `fori_loop` runs a function, and counts by its first parameter."""
    return loop_bodies(source.project).get(source.body_place(function)) == "jax.lax.fori_loop"


def is_body_of_a_loop(node: cst.CSTNode, source: Source) -> bool:
    """Whether the code at `node` is the body of a loop, or of a function that such a body calls itself: not of what is
    far away in a large step."""
    function = source.function(node)
    if function is None:
        return False
    place, bodies = source.body_place(function), all_loop_bodies(source.project)
    return place in bodies or any(c in bodies for c in source.project.callers(source.project.name_of(place)))


def _run_by(project: Project, loops: Iterable[str], wrappers: frozenset[str] = _WRAPPERS) -> dict[Place, str]:
    return {
        body: name
        for name in loops
        for place, call in project.calls_of(name)
        for body in _bodies(project, place, call, name, wrappers)
    }


def _bodies(
    project: Project, place: Place, call: Call, name: str, wrappers: frozenset[str] = _WRAPPERS
) -> Iterator[Place]:
    yield from project.functions_behind(place, call.value.argument(*_RUN[name]), wrappers)


def is_small(project: Project, place: Place, depth: int = _DEPTH, *, is_step: bool = False) -> bool:
    """Whether the function at `place` is seen to do no more than array operations: no loops, gradients or
    factorizations, none in a library, and nothing unseen. A step of a sampler or an optimizer asks its schedule too,
    and may take a norm."""
    if depth == 0:
        return False
    return all(
        (is_step and _is_of_a_step(project, where, call.value)) or _is_small_call(project, where, call.value, depth)
        for where, call in project.calls_within(place)
    )


def _is_of_a_step(project: Project, place: Place, call: Value) -> bool:
    return _is_a_schedule(project, place, call) or project.callee(place, call) == "jax.numpy.linalg.norm"


def _is_small_call(project: Project, place: Place, call: Value, depth: int) -> bool:
    name = project.callee(place, call)
    if name is None:
        return _is_small_unnamed(project, place, call, depth)
    if found := project.find(name):
        return project.function_at(found) is None or is_small(project, found, depth - 1)
    return bool(_SMALL.match(name)) and not _LARGE.match(name)


def of_a_map(project: Project, place: Place, call: Value) -> list[Place] | None:
    """The functions behind a call of what `vmap` returned, itself or by its name, `g = jax.vmap(f)`, then `g(x)`; None
    for any other call."""
    called = call.callee
    if called is None:
        return None
    made = Bound(place, called) if called.is_call else project.value_of(place, called.name)
    if made is None or not made.value.is_call or project.callee(*made) not in _MAPS:
        return None
    return list(project.functions_behind(*made, _MAPS))


def _is_small_unnamed(project: Project, place: Place, call: Value, depth: int) -> bool:
    """A call of an array's method, or of what `vmap` returned."""
    called = call.callee
    if called is None:
        return False
    if (functions := of_a_map(project, place, call)) is not None:
        return bool(functions) and all(is_small(project, function, depth - 1) for function in functions)
    name = called.name.rpartition(".")[2]
    if name in _METHODS or (not called.name and not called.is_call):
        return True
    methods = list(_of_tuples(project, place.path, name))
    return bool(methods) and all(is_small(project, method, depth - 1) for method in methods)


def _is_a_schedule(project: Project, place: Place, call: Value) -> bool:
    """`step_size(i)`: what a function is handed, or finds around it, and asks about its first parameter alone, which
    counts steps, is a schedule; a few numbers, whatever it is."""
    function = project.function_at(place)
    asked = [argument.name for argument in call.arguments]
    if function is None or call.callee is None or call.keywords or not call.callee.name.isidentifier():
        return False
    return asked == [*function.parameters[:1]] and not COUNTERS.isdisjoint(asked)


def _of_tuples(project: Project, path: str, name: str) -> Iterator[Place]:
    """The methods of this name of the file's NamedTuples, which are what its loops carry."""
    for scope in project.files[path].classes:
        method = Place(path, f"{scope}.{name}")
        if project.function_at(method) and project.inherits(method.outer, _TUPLES):
            yield method
