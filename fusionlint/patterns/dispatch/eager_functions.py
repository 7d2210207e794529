"""Functions that trace or compile something anew in every call, unless they are compiled themselves.

In: the facts of a project. `jax.grad(loss)(params)` traces the loss in each call; `jax.lax.scan` compiles its body
again where that is a function of its own, made anew in each call.
"""

from __future__ import annotations

from collections.abc import Iterator

from fusionlint.source.answers import of_project
from fusionlint.source.asked import CALLS, EVERYWHERE
from fusionlint.source.facts import RawValue, unpacked
from fusionlint.source.hosts import is_host_call
from fusionlint.source.names import PARTIAL
from fusionlint.source.places import Place
from fusionlint.source.project import Project
from fusionlint.source.tree import Source

# Where the functions stand among the arguments.
CONTROL_FLOW = {
    "jax.lax.scan": (0,),
    "jax.lax.map": (0,),
    "jax.lax.associative_scan": (0,),
    "jax.lax.while_loop": (0, 1),
    "jax.lax.cond": (1, 2),
    "jax.lax.fori_loop": (2,),
}
_ON_THE_HOST = frozenset(("print", "float", "int", "bool"))
GRADIENTS = frozenset(f"jax.{name}" for name in ("grad", "value_and_grad", "jacfwd", "jacrev", "jacobian", "hessian"))


@of_project
def traced_anew(project: Project) -> dict[Place, str]:
    """The functions of the project that do so, each with what it calls."""
    project.log.asked.add((EVERYWHERE, CALLS))
    found: dict[Place, str] = {}
    for path in project.files:
        for place, name, ((called, arguments, _), *_) in project.named_calls(path):
            if not place.scope:
                continue
            if name in CONTROL_FLOW:
                handed = (arguments[i] for i in CONTROL_FLOW[name] if i < len(arguments))
                if any(_is_its_own(each, place, project) for each in handed):
                    found[place] = name
            elif (gradient := _gradient(called, place, project)) is not None:
                found.setdefault(place, gradient)
    return found


def calling_in_a_loop(source: Source) -> Iterator[str]:
    """The scopes of the file whose Python loops call one of them."""
    called = [
        (name, scope)
        for place, name, (_, scope, loops, _) in source.project.named_calls(source.path)
        if loops and name is not None and ":" in name and source.contexts.get(place, "host") == "host"
    ]
    such = traced_anew(source.project) if called else {}
    yield from (scope for name, scope in called if such and source.project.find(name) in such)


def stays_in_jax(project: Project, place: Place) -> bool:
    """Whether a function could be compiled as it is: it reports nothing, hands nothing to numpy or the host, and keeps
    nothing in its object, where a trace would leave its tracers."""
    if place.scope in project.files[place.path].has("kept in self"):
        return False
    own = (project.callee(where, call.value) or "" for where, call in project.calls_within(place) if where == place)
    return not any(name.startswith("numpy.") or name in _ON_THE_HOST or is_host_call(name) for name in own)


def _is_its_own(handed: RawValue, place: Place, project: Project) -> bool:
    """Whether a function is made anew by each call of the one at `place`: a lambda, a def, a partial."""
    value = unpacked(handed)
    if value.is_call:
        return project.callee(place, value) in PARTIAL
    bound = project.files[place.path].bound(place.scope, value.name)
    return "<lambda>" in value.name or (bound is not None and bound.kind == "function")


def _gradient(called: RawValue, place: Place, project: Project) -> str | None:
    """jax.grad, where what is called is `jax.grad(f)`, or a name of the function's own for that."""
    if isinstance(called, str):
        bound = project.files[place.path].bound(place.scope, called)
        value = bound.value if bound is not None and bound.kind == "value" else None
    else:
        value = unpacked(called)
    name = project.callee(place, value) if value is not None and value.is_call else None
    return name if name in GRADIENTS else None
