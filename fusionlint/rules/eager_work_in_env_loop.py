"""jax on the host between the steps of an environment that numpy runs: `jnp.logical_or(ended, cut)`, a split key; and
beside the compiled step of one that runs on the device.

Environments on the host take their steps one by one whatever is compiled, and often in less time than a few dispatches.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from fusionlint.finding import Finding
from fusionlint.lazily import regex
from fusionlint.patterns.code.at import inside
from fusionlint.patterns.code.calls import argument
from fusionlint.patterns.code.functions import definitions, parameters, returns_of
from fusionlint.patterns.code.unpacked import unpacked_at
from fusionlint.patterns.dispatch.after_compiled import operations_after
from fusionlint.patterns.dispatch.host import is_short
from fusionlint.patterns.dispatch.jit import is_jitted, value
from fusionlint.patterns.loops.carry import Carry, Loop, calls
from fusionlint.patterns.loops.loop_gates import is_gated
from fusionlint.patterns.loops.pictures import is_filmed, is_shown_each_time
from fusionlint.patterns.loops.timed import is_timed
from fusionlint.patterns.runs.all_calls import calls_of_function
from fusionlint.rule import Rule
from fusionlint.source.facts import NOTHING, last_name
from fusionlint.source.names import JIT
from fusionlint.source.places import Place
from fusionlint.source.project import Project
from fusionlint.source.transforms import TRANSFORMS
from fusionlint.source.tree import Source
from fusionlint.source.walk import dotted

rule = Rule(__name__, harm="dispatch")

_ENVIRONMENT = regex(r"(^|[._])(vec_?|gym_?|eval_?|train_?|test_?)?env(ironment)?s?$")
# What is handed over and comes back: an environment of jax takes its state and a key as well.
_ONE = 1
# So many operations beside a compiled step take as long as that is dispatched, or longer.
_MANY = 4
_RENDERS = regex(r"render|imshow")
# A function that is called so takes pictures of every step, by a wrapper of the environment perhaps.
_FILMS = regex(r"record|video|demo(_|$)")
_NAMES = (
    "abs add all any argmax argmin clip concatenate cumsum divide dot einsum exp expand_dims hstack isfinite isnan log "
    "logical_and logical_not logical_or matmul max maximum mean min minimum multiply reshape sign sqrt squeeze stack "
    "subtract sum swapaxes tanh transpose vstack where"
)
_KEYS = ("jax.random.split", "jax.random.fold_in")
_DRAWS = ("bernoulli", "categorical", "choice", "normal", "randint", "uniform")
_WORK = (
    *_KEYS,
    *(f"jax.random.{name}" for name in _DRAWS),
    *(f"jax.numpy.{name}" for name in _NAMES.split()),
)


# What to write instead, of arrays and of keys.
_ARRAYS = "what the environment returned in numpy, and what comes of the device in the compiled function that acts"
_OF_KEYS = "let the compiled function that acts split its key itself, and return the one that is left"
_OPERATIONS = regex(r"^jax\.(numpy|nn|random|lax|scipy)\.")
# A network, outside of a compiled function: dozens of operations.
_NETWORK = regex(r"\.apply(_fn)?$")


@rule.source("Call", calls=_WORK, where="host", in_loop=True)
def between_two_steps(node: cst.Call, source: Source) -> Iterator[Finding]:
    """The first operation of jax that a loop around `env.step(action)` dispatches in every iteration; told once."""
    loop = source.loop(node)
    if not isinstance(loop, cst.For | cst.While) or not (steps := _steps(loop, source)) or is_short(loop, source):
        return
    if _FILMS.search(last_name(source.place(node).scope)):
        return
    if is_shown_each_time(loop, source) or is_filmed(loop, source) or any(map(_is_drawn, calls(loop.body))):
        return
    if is_timed(loop, source):  # it runs a machine: each step is meant to be seen by itself
        return
    work = [call for call in calls(loop.body) if _is_dispatched(call, loop, source)]
    if not work or work[0] is not node:
        return
    if any(_is_chosen_by_operations(step.args[0].value, loop, source) for step in steps):
        return
    keys = [call for call in work if source.calls(call, *_KEYS)]
    parts = [_ARRAYS] * (len(keys) < len(work)) + [_OF_KEYS] * bool(keys)
    many = f"{len(work)} operations of jax are" if len(work) > 1 else f"`{source.code(node.func)}` is"
    yield source.finding(
        node,
        f"{many} dispatched by {'themselves' if len(work) > 1 else 'itself'} in every step of the environment",
        write="; ".join(parts),
    )


def _wrapping(source: Source) -> Iterator[str]:
    """The steps of classes that have a reset too, in a file that compiles something: what, libcst has to see."""
    if not any(source.called(name) for name in JIT):
        return
    functions = source.facts.raw.functions
    for scope in functions:
        owner, _, name = scope.rpartition(".")
        if name == "step" and owner in source.facts.raw.classes and f"{owner}.reset" in functions:
            yield scope


@rule.source("FunctionDef", where="host", when=_wrapping)
def beside_a_compiled_step(node: cst.FunctionDef, source: Source) -> Iterator[Finding]:
    """The step of an environment on the host that calls a compiled one, and computes on with what that returned."""
    work = operations_after(node, source) if node.name.value == "step" else []
    if len(work) < _MANY:
        return
    yield source.finding(
        work[0],
        f"{len(work)} operations are dispatched by themselves in every step, beside the compiled one",
        write="all of it in the compiled function, which returns what is computed here as well; or in numpy, of what "
        "is brought to the host once",
        pair=1,
    )


def _steps(loop: Loop, source: Source) -> list[cst.Call]:
    """The calls that take a step, in each iteration, of an environment that keeps its own state."""
    return [call for call in calls(loop.body) if _is_step(call, source) and source.loop(call) is loop]


def _is_step(call: cst.Call, source: Source) -> bool:
    match call.func:
        case cst.Attribute(value=owner, attr=cst.Name("step")):
            is_of_numpy = len(call.args) == _ONE and not is_jitted(call.func, source)
            return is_of_numpy and _ENVIRONMENT.search(dotted(owner)) is not None
    return False


def _is_drawn(call: cst.Call) -> bool:
    """`env.render()`, by whichever branch: `env.call("render")`."""
    asked = [arg.value.value for arg in call.args if isinstance(arg.value, cst.SimpleString)]
    return any(_RENDERS.search(text) for text in (dotted(call.func), *asked))


def _is_dispatched(call: cst.Call, loop: Loop, source: Source) -> bool:
    """Whether every iteration dispatches `call` by itself, on what is new each time."""
    if not source.calls(call, *_WORK) or source.loop(call) is not loop or is_gated(call, loop, source):
        return False
    carry = Carry(loop)
    return any(carry.varies(arg.value) for arg in call.args)


def _is_chosen_by_operations(action: cst.BaseExpression, loop: Loop, source: Source) -> bool:
    """Whether a function that makes `action` in the loop is not compiled, and dispatches many operations itself."""
    return any(
        _dispatches(place, source.project)
        for call in _behind(action, loop)
        for each in (call.func, *_handed(call.func, source))
        if not is_jitted(each, source)
        for place in _functions(each, source)
    )


def _functions(named: cst.BaseExpression, source: Source) -> Iterator[Place]:
    return source.project.functions_behind(source.place(named), value(named), TRANSFORMS)


def _handed(callee: cst.BaseExpression, source: Source) -> Iterator[cst.BaseExpression]:
    """What those in this file who call the function around `callee` hand it for that, `rollout(policy=policy)`."""
    parameter = source.parameter(callee) if isinstance(callee, cst.Name) else None
    function = source.function(callee)
    if parameter is None or not isinstance(function, cst.FunctionDef) or parameter not in parameters(function):
        return
    is_method = bool(source.facts.class_around(source.body_scope(function)))
    places = {id(each): number - is_method for number, each in enumerate(function.params.params)}
    for call in calls_of_function(function, source) or ():
        given = argument(call, places.get(id(parameter), -1), parameter.name.value)
        if given is not None:
            yield given
            yield from _returned(given, source)


def _returned(given: cst.BaseExpression, source: Source) -> Iterator[cst.BaseExpression]:
    """What stands at the place of `policy`, of `policy, params = train()`, in what a function of the file returns."""
    match unpacked_at(source.written(given), source) if isinstance(given, cst.Name) else None:
        case cst.Call(func=maker), number, count:
            for function in definitions([*_functions(maker, source)], source):
                for each in returns_of(function, source) if isinstance(function, cst.FunctionDef) else ():
                    if isinstance(each.value, cst.Tuple) and len(each.value.elements) == count:
                        yield each.value.elements[number].value


def _behind(action: cst.BaseExpression, loop: Loop) -> Iterator[cst.Call]:
    """The calls that stand in `action`, and in what the loop assigns to its name."""
    found = [action]
    if isinstance(action, cst.Name):
        found += [
            node.value
            for node in inside(loop.body, cst.Assign)
            if any(_holds(target.target, action.value) for target in node.targets)
        ]
    return (part for each in found for part in inside(each, cst.Call))


def _holds(target: cst.BaseExpression, name: str) -> bool:
    parts = [part.value for part in target.elements] if isinstance(target, cst.Tuple) else [target]
    return any(dotted(part) == name for part in parts)


def _dispatches(place: Place, project: Project) -> bool:
    """Whether the function at `place` works with jax itself, or runs a function that it makes anew each time."""
    many = 0
    for where, call in project.calls_within(place):
        written = call.value.callee or NOTHING
        if (written.is_call or _NETWORK.search(written.name)) and not project.is_jitted(where, written):
            return True
        many += bool(_OPERATIONS.match(project.callee(where, call.value) or ""))
    return many >= _MANY
