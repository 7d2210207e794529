"""A compiled step whose results replace its arguments, without donation: old and new are in memory at once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from fusionlint.finding import Finding
from fusionlint.lazily import regex
from fusionlint.patterns.code.functions import function_named
from fusionlint.patterns.compiled.round import copied
from fusionlint.patterns.dispatch.handed_on import is_in_a_method_handed_on, methods_handed_on
from fusionlint.patterns.dispatch.handed_out import (
    donates,
    goes_on,
    is_for_others,
    is_handed_over,
    is_method,
    is_replaced,
)
from fusionlint.patterns.dispatch.host import is_repeated
from fusionlint.patterns.dispatch.jit import asks, trains
from fusionlint.patterns.donation.advice import (
    TWICE,
    copy_before,
    donate,
    donated_arguments,
    in_order,
    is_free,
    keywords,
)
from fusionlint.patterns.donation.dropped import is_state_dropped
from fusionlint.patterns.donation.equinox import FILTER_JIT, is_equinox
from fusionlint.patterns.donation.first_values import is_of_numbers
from fusionlint.patterns.donation.given_up import given_up
from fusionlint.patterns.donation.large_states import (
    are_averages,
    are_caches,
    are_large,
    is_beside_its_model,
    is_beside_rollouts,
    is_large,
    is_of_a_population,
    is_of_em,
    is_state,
)
from fusionlint.patterns.donation.narrow import are_all_narrow
from fusionlint.patterns.donation.of_norms import is_of_norms
from fusionlint.patterns.donation.replaced import given_at
from fusionlint.patterns.donation.written import told
from fusionlint.patterns.runs.all_calls import calls_of_function, calls_of_method, calls_of_name
from fusionlint.patterns.runs.often import is_run_often, runs_often
from fusionlint.patterns.runs.pmapped import is_mapped_over_devices
from fusionlint.patterns.values.predicates import static_names
from fusionlint.rule import Rule
from fusionlint.source.facts import Function, last_name
from fusionlint.source.places import Place
from fusionlint.source.traced import calls_in_use, is_idle
from fusionlint.source.tree import Source
from fusionlint.source.walk import dotted

if TYPE_CHECKING:
    from fusionlint.hlo import parse as hlo
    from fusionlint.hlo.barriers import Barrier

rule = Rule(__name__, harm="memory")

_JIT = frozenset(("jax.jit", "jax.pmap", "jax.pjit", "jax.experimental.pjit.pjit"))
# What stands above a method that is handed no object.
_WITHOUT_AN_OBJECT = frozenset(("staticmethod", "classmethod"))
# Of a state that holds the parameters these are asked for.
_PARAMETERS = regex(r"(^|\.)get_params(_state)?$")


def _compiled(source: Source) -> Iterator[str]:
    """The functions of the file that are decorated with a jit alone, or of a class without an object, and called again
    and again, for all that the facts show."""
    project = source.project
    for function in source.facts.functions.values():
        above = [each for each in function.decorators if each.name not in _WITHOUT_AN_OBJECT]
        if len(above) != 1 or _compilers(function).isdisjoint(project.decorators(source.path, function)):
            continue
        place = Place(source.path, function.scope)
        if not is_idle(project, place) and _is_repeated(place, source):
            yield function.scope


def _compilers(function: Function) -> frozenset[str]:
    """What compiles a def so that it may donate: a method's object is all that equinox would not."""
    return _JIT if function.owner else _JIT | {FILTER_JIT}


def _of_others(source: Source) -> Iterator[str]:
    """The functions of the file that are decorated with a jit alone, and of which no call is seen, for all that the
    facts show: methods that nobody hands to a transform, and what the function around returns."""
    project = source.project
    for function in source.facts.functions.values():
        if len(function.decorators) != 1 or _JIT.isdisjoint(project.decorators(source.path, function)):
            continue
        place, name = Place(source.path, function.scope), last_name(function.scope)
        around = source.facts.functions.get(function.scope.rpartition(".")[0])
        returned = around.returns if around is not None else ()
        is_returned = any(name in (v.name, *(a.name for a in v.arguments)) for v in returned)
        if (is_returned or (function.owner and name not in methods_handed_on(project))) and not is_idle(project, place):
            yield function.scope


def _is_repeated(compiled: Place, source: Source) -> bool:
    """Whether a function may be called again and again, by its own file alone: what others call, they may keep."""
    project, (name, again, _) = source.project, compiled.scope.rpartition(".")[2].partition("#")
    if again:
        return True  # what is meant by a name that several defs have, facts do not say
    if any(p.path != source.path and not is_idle(project, p) for p in project.callers(project.name_of(compiled))):
        return False
    if source.facts.functions[compiled.scope].owner:
        calls = [call for call in source.facts.raw.calls if call[0][0] == f"self.{name}"]
    else:
        calls = [call for _, call in source.called(project.name_of(compiled))]
        if name in source.facts.handed_on:
            return True
    hosts = ((scope, loops) for _, scope, loops, _ in calls if source.runs(scope, "host"))
    return any(loops or runs_often(project, Place(source.path, scope)) for scope, loops in hosts)


@rule.source("Call", calls=_JIT | {FILTER_JIT}, where="host")
def compiled_update(node: cst.Call, source: Source) -> Iterator[Finding]:
    """`step = jax.jit(train_step)`, then `state = step(state, batch)`."""
    donated = _donated_by(node, node, source)
    if not node.args or node.args[0].keyword or donated is None:
        return
    match source.parent(node):
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Name() as name)]):
            calls = calls_of_name(name, source)
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Attribute() as attribute)]) if dotted(
            attribute
        ).startswith("self."):
            calls = calls_of_method(dotted(attribute), source.place(node), source)
        case _:
            return
    yield from _finding(node, calls, source, 0, donated)


@rule.source("Call", calls=_JIT, where="host")
def update_for_others(node: cst.Call, source: Source) -> Iterator[Finding]:
    """`return jax.jit(train_step)`, whose calls are made elsewhere: it returns the state that it is handed, trained."""
    if not node.args or node.args[0].keyword or not is_for_others(node, source):
        return
    step = function_named(node.args[0].value, source)
    if isinstance(step, cst.FunctionDef) and not source.is_idle(node):
        yield from _handed_back(node, step, donates(node), source)


@rule.source("FunctionDef", where="any", when=_of_others)
def decorated_for_others(node: cst.FunctionDef, source: Source) -> Iterator[Finding]:
    """`@jax.jit` above a step that a factory returns, or above a method that returns its object anew,
    `return agent.replace(params=params)`."""
    if len(node.decorators) == 1 and is_handed_over(node, source):
        if any(True for _ in decorated_update(node, source)):
            return  # said already
        decorator = node.decorators[0].decorator
        donated = donates(decorator) if isinstance(decorator, cst.Call) else frozenset[int]()
        yield from _handed_back(node.name, node, donated, source)


def _handed_back(
    node: cst.Call | cst.Name, step: cst.FunctionDef, donated: frozenset[int] | None, source: Source
) -> Iterator[Finding]:
    """`node` makes a compiled function of `step`, which donates `donated`; None where that is not seen."""
    if is_mapped_over_devices(node, step, source):
        return  # what is donated inside of another program is not: that one may donate it
    number = goes_on(step, source) if donated is not None else None
    if donated is None or number is None or number in donated:
        return
    name = step.params.params[number].name.value
    if is_method(step, source) and not _is_beside_itself(number, step, source):
        if number or not is_replaced(step, source) or not trains(node, source):
            return
    elif not is_large(name, node, source):
        return
    if is_state_dropped(step.name.value, source):
        return
    others = {goes_on(step, source, place) for place in range(1, len(step.params.params))} - {None, number, *donated}
    also = [i for i, each in enumerate(step.params.params) if i in others and is_state(each.name.value)]
    made = " and ".join(f"`{step.params.params[i].name.value}`" for i in (number, *also))
    yield source.finding(
        node,
        f"each call makes a new {made} beside the old",
        write=f"{donated_arguments((number, *also), 0)}, where callers go on with the new one alone: the old is gone "
        f"after a call; {TWICE}",
    )


def _is_beside_itself(number: int, method: cst.FunctionDef, source: Source) -> bool:
    """Whether what a method hands back is an argument, and its object a constant: `static_argnums=0`."""
    return number == 1 and method.params.params[0].name.value in static_names(method, source)


@rule.source("FunctionDef", where="any", when=_compiled)
def decorated_update(node: cst.FunctionDef, source: Source) -> Iterator[Finding]:
    """`@jax.jit` above the step."""
    facts = source.facts.functions.get(source.body_scope(node))
    if facts is None or _compilers(facts).isdisjoint(source.project.decorators(source.path, facts)):
        return
    above = {dotted(each.decorator): each.decorator for each in node.decorators}
    decorators = [decorator for name, decorator in above.items() if name not in _WITHOUT_AN_OBJECT]
    if is_mapped_over_devices(node.name, node, source):
        return
    donated = _donated_by(decorators[0], node.name, source) if len(decorators) == 1 else None
    if donated is None:
        return
    offset = 1 if facts.owner and "staticmethod" not in above else 0
    donated = frozenset(number - offset for number in donated)
    yield from _finding(node.name, calls_of_function(node, source), source, offset, donated)


def _donated_by(jit: cst.BaseExpression, compiled: cst.Call | cst.Name, source: Source) -> frozenset[int] | None:
    """Which arguments are donated, by number; None where that is not seen, as of `**options`."""
    if not isinstance(jit, cst.Call):
        return frozenset()
    is_told = any(arg.keyword is not None and arg.keyword.value.startswith("donate") for arg in jit.args)
    return None if is_told and is_equinox(compiled, source) else donates(jit)


def _finding(
    node: cst.Call | cst.Name,
    calls: list[cst.Call] | None,
    source: Source,
    offset: int,
    donated: frozenset[int],
) -> Iterator[Finding]:
    # In a trace a call is inlined, and donates nothing.
    inlined = [c for c in calls or () if source.context(c) == "traced"]
    calls = [c for c in calls or () if not source.is_idle(c) and c not in inlined]
    if inlined and not any(_is_asked_for(call, source) for call in calls):
        return
    if not calls or source.is_idle(node) or any(is_of_em(dotted(c.func)) for c in calls):
        return
    names = given_up(calls, donated, source, is_equinox=is_equinox(node, source))
    # An average alone begins as the arrays of the model, which is handed over beside it.
    if are_averages(names.values()):
        return
    # What is stored in another object, `self.state.params = ...`, that object owns, and hands to whom it likes.
    if any(name.count(".") > 1 for name in names.values()):
        return
    if not any(_is_hot(call, source) for call in calls) or not are_large(names.values(), node, source):
        return
    given = [(call, given_at(call, key)) for call in calls for key in names]
    if all(is_of_numbers(a, c, source) or is_of_norms(a, c, source) for c, a in given) or are_all_narrow(source):
        return
    handed = [dotted(arg.value) for call in calls for arg in call.args]
    if is_beside_its_model(names.values(), handed) and asks(node, _PARAMETERS, source):
        return  # the optimizer's state holds the parameters
    if is_beside_rollouts(node, handed, source) or is_of_a_population(node, source):
        return
    what = " and ".join(f"`{name}`" for name in names.values())
    is_written, order = are_caches(names.values()), in_order(calls, names, source)
    said = keywords(node, names, calls[0], offset, donated, source)
    is_all = said is not None and not order and is_free(given, source)
    yield source.finding(
        node,
        f"each call makes a new {what} beside the old, which nobody reads again",
        write=donate(node, names, calls[0], offset, donated, source)
        + ": the results take the memory of those arguments"
        + ("" if is_written else f"; {copy_before(given, source)}")
        + order,
        edits=told(node, said, source) if is_all and said is not None else (),
        pair=1 if is_written else 0,
    )


def _is_asked_for(call: cst.Call, source: Source) -> bool:
    """Whether the code at `call` is a script's own, a loop, or a function that somebody is seen to call."""
    place = source.place(call)
    return not place.scope or source.in_loop(call) or bool(calls_in_use(source.project, place))


def _is_hot(call: cst.Call, source: Source) -> bool:
    """Whether the call is made again and again from Python; in a trace it is inlined, and donates nothing."""
    if source.context(call) == "traced" or is_in_a_method_handed_on(call, source):
        return False
    if isinstance(source.loop(call), cst.For | cst.While):
        return is_repeated(call, source)
    return is_run_often(call, source)


@rule.barrier
def copied_to_be_written_to(barrier: Barrier, module: hlo.Module) -> str | None:
    """An argument that is copied whole, for its memory is still the caller's."""
    if (barrier.cause, barrier.detail) != ("copy", "of an argument that is not donated"):
        return None
    given = copied(barrier, module)
    name = f"`{given.op_name}`" if given.opcode == "parameter" and given.op_name else "it"
    return f"donate {name} (donate_argnums of jax.jit) where the result replaces it: it is written to where it stands"
