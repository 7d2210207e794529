"""What the rules about compiled calls ask: is this call one dispatch, of which functions, and what do those run.

In: nodes of a Source. Nothing here knows a rule.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from functools import lru_cache

import libcst as cst

from fusionlint.lazily import regex
from fusionlint.patterns.code.calls import keyword
from fusionlint.patterns.code.functions import function_named
from fusionlint.patterns.code.unpacked import unpacked_at
from fusionlint.source.answers import remembered
from fusionlint.source.facts import NOTHING, RawValue, Value
from fusionlint.source.modules import home_of, is_elsewhere
from fusionlint.source.places import Place
from fusionlint.source.project import Project
from fusionlint.source.transforms import TRANSFORMS
from fusionlint.source.tree import Source
from fusionlint.source.walk import dotted

_LOOPS = regex(
    r"^(jax\.lax\.(scan|fori_loop|while_loop|map|associative_scan)|flax\.(nnx|linen)\.(scan|fori_loop|while_loop)"
    r"|haiku\.(scan|fori_loop|while_loop|dynamic_unroll)|equinox\.internal\.\w*loop"
    r"|jax\.scipy\.sparse\.linalg\.(cg|gmres|bicgstab)|jax\.scipy\.optimize\.minimize|jax\.experimental\.ode\.odeint"
    # Of whatever library: `checkpointed_fori_loop`.
    r"|(.*\.)?\w+_(fori_loop|while_loop))$"
)
_TRAINS = regex(
    r"^(optax\..*|equinox\.apply_updates|flax\.training\..*|flax\.nnx\.(Optimizer|optimizer).*)$|\.apply_(gradients?|loss_fns?)$"
)

_GRADIENTS = regex(r"^(jax|flax\.nnx|equinox)\.(filter_)?(value_and_)?grad$")


def value(node: cst.CSTNode) -> Value:
    """What facts would keep of an expression."""
    match node:
        case cst.Name() | cst.Attribute():
            return Value(dotted(node))
        case cst.Call(func=func, args=args):
            arguments = tuple(value(a.value) for a in args if a.keyword is None and not a.star)
            return Value("", value(func), arguments)
    return NOTHING


def is_jitted(callee: cst.BaseExpression, source: Source) -> bool:
    """Whether calling `callee` executes one compiled program."""
    place = source.place(callee)
    if source.project.is_jitted(place, value(callee)):
        return not _is_switched_off(callee, source)
    return _is_handed_compiled(source.project, place, dotted(callee)) or _is_made_with_others(callee, source)


def is_a_method_from_elsewhere(function: cst.BaseExpression, source: Source) -> bool:
    """Whether this is a method of what another package's class, or function, made, `env.reset` of `env = Maze()`: those
    who wrote that may have compiled it, and nobody sees it. Libraries whose methods are known do not."""
    if not isinstance(function, cst.Attribute) or not isinstance(function.value, cst.Name):
        return False
    made = source.value(function.value)
    name = source.qualified_name(made.func) if isinstance(made, cst.Call) else None
    if name is None or "." not in name or is_elsewhere(name, source.facts.module):
        return False
    return home_of(name, source.project.modules)[0] is None


def _is_made_with_others(callee: cst.BaseExpression, source: Source) -> bool:
    """Whether `callee` is one of what a factory of the project returns, and that one is compiled: `init, step =
    make_functions(model)`."""
    if not isinstance(callee, cst.Name) or source.is_never_assigned(callee):
        return False
    match unpacked_at(source.written(callee), source):
        case cst.Call(func=factory), number, count:
            return number in _compiled_of(source.project, source.qualified_name(factory), count)
    return False


def _compiled_of(project: Project, factory: str | None, count: int | None = None) -> frozenset[int]:
    """Which of the results of a function of the project, `count` of them, are compiled in each of its returns."""
    place = project.find(factory)
    function = project.function_at(place)
    returns = [each.arguments for each in function.returns if not each.is_call] if function is not None else []
    if place is None or not returns or len(set(map(len, returns))) > 1 or count not in (None, len(returns[0])):
        return frozenset()
    compiled = (all(project.is_jitted(place, each[i]) for each in returns) for i in range(len(returns[0])))
    return frozenset(i for i, is_compiled in enumerate(compiled) if is_compiled)


def _is_handed_compiled(project: Project, place: Place, called: str) -> bool:
    """Whether `called` is a method of an argument, `solver.update`, and all that call the function at `place` hand it
    an object that compiles that method. They are of its own file: what others do is not asked again for each change."""
    owner, _, method = called.rpartition(".")
    function = project.function_at(place) if owner else None
    if function is None or owner not in function.parameters or function.owner:
        return False
    made = project.calls_of(project.name_of(place))
    if not made or any(caller.path != place.path for caller, _ in made):
        return False
    position = function.parameters.index(owner)
    handed = ((caller, call.value.argument(position, owner)) for caller, call in made)
    return all(
        each.name and project.is_jitted(caller, Value(f"{each.name}.{method}")) and not _is_told(project, caller, each)
        for caller, each in handed
    )


def _is_told(project: Project, place: Place, made: Value) -> bool:
    """Whether an object was told when it was made whether to compile: `Solver(f, jit=jit)`."""
    bound = project.value_of(place, made.name)
    return bound is None or any(name == "jit" for name, _ in bound.value.keywords)


def _is_switched_off(callee: cst.BaseExpression, source: Source) -> bool:
    """Whether this is a method of an object that was made to compile nothing: `Solver(fun, jit=False).update`."""
    match callee:
        case cst.Attribute(value=cst.Name() as owner):
            made = source.value(owner)
            told = keyword(made, "jit") if isinstance(made, cst.Call) else None
            return isinstance(told, cst.Name) and told.value == "False"
    return False


def runs_on_the_cpu(callee: cst.BaseExpression, source: Source) -> bool:
    """Whether the compiled program is told to run on the CPU wherever its arguments are: `jax.jit(f, backend="cpu")`,
    or a def that is decorated so."""
    wrapped = source.value(callee) if isinstance(callee, cst.Name) else callee
    function = function_named(callee, source)
    decorators = function.decorators if isinstance(function, cst.FunctionDef) else ()
    return any(_is_told_the_cpu(node) for node in (wrapped, *(each.decorator for each in decorators)))


def _is_told_the_cpu(node: cst.CSTNode | None) -> bool:
    said = keyword(node, "backend") if isinstance(node, cst.Call) else None
    return isinstance(said, cst.SimpleString) and said.evaluated_value == "cpu"


def dispatching(source: Source) -> Iterator[str]:
    """The scopes whose host code calls a compiled program: asked of the facts, before libcst parses."""
    return iter(_dispatches(source))


def dispatching_in_a_loop(source: Source) -> Iterator[str]:
    """Those that do so in a Python loop."""
    return (scope for scope, in_loop in _dispatches(source).items() if in_loop)


@lru_cache(maxsize=1)
def _dispatches(source: Source) -> dict[str, bool]:
    """The scopes of the file's host code that call a compiled program, each with whether a loop does. Several rules ask
    for every file."""
    found: dict[str, bool] = {}
    for place, name, ((called, _, _), scope, loops, _) in source.project.named_calls(source.path):
        says_more = scope not in found or (bool(loops) and not found[scope])
        if says_more and _is_dispatch(place, name, called, loops, source):
            found[scope] = bool(loops)
    return found


def _is_dispatch(place: Place, name: str | None, called: RawValue, loops: tuple[int, ...], source: Source) -> bool:
    """Whether a call of host code dispatches a compiled program; what the function around it is handed, or makes with
    other things, is asked about in its loops alone."""
    project = source.project
    unknown = called if loops and name is None and isinstance(called, str) else None
    if unknown is None and not project.may_dispatch(name, called):
        return False  # most calls, before anything is asked of the function
    if not source.runs(place.scope, "host"):
        return False
    if project.dispatches(place, name, called):
        return True
    if unknown is None:
        return False
    return _is_handed_compiled(project, place, unknown) or ("." not in unknown and _gets_compiled(project, place))


@remembered
def _gets_compiled(project: Project, place: Place) -> bool:
    """Whether the code at `place` calls a factory that returns something compiled with other things."""
    names = {name for here, name in project.calls_in(place.path) if here.scope == place.scope}
    return any(_compiled_of(project, name) for name in names)


def runs_a_loop(callee: cst.BaseExpression, source: Source) -> bool:
    """Whether the compiled program is seen to hold a loop of its own: one dispatch, many steps."""
    return any(_LOOPS.match(name) for name in _called_within(callee, source))


def trains(callee: cst.BaseExpression, source: Source) -> bool:
    """Whether the compiled program is seen to be a step of an optimizer."""
    return any(_TRAINS.search(name) for name in _called_within(callee, source))


def takes_gradients(callee: cst.BaseExpression, source: Source) -> bool:
    """Whether the compiled program is seen to differentiate something."""
    return any(_GRADIENTS.match(name) for name in _called_within(callee, source))


def asks(callee: cst.BaseExpression, pattern: re.Pattern[str], source: Source) -> bool:
    """Whether the compiled program is seen to call what `pattern` finds."""
    return any(pattern.search(name) for name in _called_within(callee, source))


def _called_within(callee: cst.BaseExpression, source: Source) -> Iterator[str]:
    """What the functions behind `callee` call, by qualified name, else as written; and what those of the project do."""
    project = source.project
    todo = deque(project.functions_behind(source.place(callee), value(callee), TRANSFORMS))
    seen = set(todo)
    while todo:
        for place, call in project.calls_within(todo.popleft()):
            name = project.callee(place, call.value)
            yield name or (call.value.callee.name if call.value.callee else "")
            reached = [project.find(name), *project.functions_behind(place, call.value, TRANSFORMS)]
            for found in reached:
                if found and found not in seen:
                    seen.add(found)
                    todo.append(found)
