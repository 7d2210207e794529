"""A loop's state that is stacked at the end of every step and taken apart at the start of the next."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import TYPE_CHECKING

import libcst as cst

from fusionlint.finding import Finding
from fusionlint.patterns.code.at import constant, inside
from fusionlint.patterns.code.calls import argument
from fusionlint.patterns.code.elementwise import worked_on
from fusionlint.patterns.code.functions import Function, definitions, function_named
from fusionlint.patterns.compiled.readers import value_of
from fusionlint.patterns.compiled.round import (
    copied,
    fills,
    goes_round,
    is_multiplied,
    is_random,
    is_taken_apart,
    joiners,
    joins,
    shifts,
)
from fusionlint.patterns.loops.laps import Input, inputs, is_next, outputs
from fusionlint.patterns.loops.turns import WHILE
from fusionlint.patterns.operations.columns import columns, fit
from fusionlint.patterns.operations.join import JOINS, axis, builds_array, lists_parts, parts
from fusionlint.patterns.runs.loop_bodies import bodies_of
from fusionlint.patterns.runs.often import runs_often
from fusionlint.patterns.runs.under import LOOPS
from fusionlint.rule import Rule
from fusionlint.source.environments import is_in_environment
from fusionlint.source.names import JIT
from fusionlint.source.places import Place
from fusionlint.source.traced import reached_from
from fusionlint.source.tree import Source

if TYPE_CHECKING:
    from fusionlint.hlo import parse as hlo
    from fusionlint.hlo.barriers import Barrier

rule = Rule(__name__, harm="fusion")

# A suggestion longer than this says less than its outline.
_LONG = 60
_NO_STEPS = JIT | {"jax.numpy.vectorize"}


def _stacking_in_steps(source: Source) -> Iterator[str]:
    """The functions of the file that list parts of an array and are run again and again, by the facts."""
    called = (each for name in JOINS for each in source.called(name))
    for place in {place for place, call in called if lists_parts(source.whole(call))}:
        if _is_run_again(place, source):
            yield place.scope


def _is_run_again(place: Place, source: Source) -> bool:
    if place in reached_from(source.project, LOOPS) or is_in_environment(source.project, place):
        return True
    return runs_often(source.project, place)


@rule.source("Call", when=_stacking_in_steps, needs=JOINS)
def stacked_for_the_next_step(node: cst.Call, source: Source) -> Iterator[Finding]:
    """A stack that a step gives back where it took an array of which it reads nothing but columns."""
    if source.qualified_name(node.func) not in JOINS:
        return
    function = source.function(node)
    if function is None or _is_no_step(function, source) or not builds_array(node, source):
        return
    if not _is_run_again(source.body_place(function), source):
        return
    state = _state(node, function, source)
    if state is None:
        return
    stacks = _stacks_of_its_value(node, source)
    if node is not stacks[0]:
        return
    handed_out = _is_handed_out(node, state, function, source)
    # Compiled, parts that are handed out one by one cost more than the stack saves.
    then = "for what each step hands out alone" if handed_out else "after the loop where the whole is needed"
    yield source.finding(
        node,
        f"`{state.name}` is stacked at the end of each step and taken apart in the next: a kernel and a copy a step",
        write=f"carry {_apart(stacks, source)}, and stack {then}",
        pair=1 if handed_out else 0,
    )


@rule.barrier
def stack_that_goes_round(barrier: Barrier, module: hlo.Module) -> str | None:
    """A concatenate that a loop's body makes for its next iteration, and the copy of it into the carry."""
    if barrier.cause == "copy" and barrier.detail == "of a loop's carry":
        maker = copied(barrier, module)
    elif barrier.cause == "concatenate" and len(joined := joiners(barrier, module)) == 1:
        maker = module.computations[barrier.computation].instructions[joined[0]]
    else:
        return None
    computation = module.computations[barrier.computation]
    if not _joins_all(maker, barrier, module) or not goes_round(maker.name, barrier, module):
        return None
    if is_random(maker, module) or shifts(maker.name, computation, module) or fills(maker.name, computation, module):
        return None
    if is_multiplied(maker.name, computation, module):
        return None  # which stacks the parts anew in each step: on an H100 two launches more than before
    if not is_taken_apart(maker.name, computation, module):
        return None  # 28 launches instead of 17 in each step of a Dopri5 of three variables
    return "keep the parts apart in the carry: a tuple costs nothing there"


def _joins_all(maker: hlo.Instruction, barrier: Barrier, module: hlo.Module) -> bool:
    """Whether a kernel joins as much as the value is, and not only the places to look something up at."""
    size = prod(value_of(barrier, module).shape.dims)
    return any(joins(step, module) and prod(step.shape.dims) >= size for step in module.work_of(maker))


def _state(node: cst.Call, function: Function, source: Source) -> Input | None:
    """What the function took that `node` is the next value of, where it reads only columns of it."""
    given = list(outputs(node, source))
    if not given:
        return None
    along = axis(node, source)
    for taken in inputs(function, source):
        if any(is_next(output, taken, function, source) for output in given):
            reads = _reads(taken, source)
            found = columns(reads, source)
            if not found or not all(fit(column.axis, along) for column in found) or _is_moved_on(node, reads, source):
                continue
            if columns((*reads, *_read_by_conditions(taken, function, source)), source):
                return taken
    return None


def _is_moved_on(node: cst.Call, reads: Sequence[cst.BaseExpression], source: Source) -> bool:
    """Whether what was taken is joined to what is new without its first or last, `concatenate([past[:, 1:], new],
    axis=1)`: a history, of which each column is another one in the next step."""
    joined = parts(node, source)
    match joined[:1]:
        case [cst.Subscript(value=value, slice=[*_, cst.SubscriptElement(slice=cst.Slice(lower=lower))])]:
            if lower is not None and constant(lower) != 0 and value in reads:
                return True
    match joined[-1:]:
        case [cst.Subscript(value=value, slice=[*_, cst.SubscriptElement(slice=cst.Slice(upper=upper))])]:
            return upper is not None and value in reads
    return False


def _is_handed_out(node: cst.Call, taken: Input, function: Function, source: Source) -> bool:
    """Whether each step gives its state out too: `return state, state`."""
    given = outputs(node, source)
    return any(len(output.path) == 1 and not is_next(output, taken, function, source) for output in given)


def _reads(taken: Input, source: Source) -> list[cst.BaseExpression]:
    """Of a field every read in the file: where one function needs the whole, the others only pass it on."""
    field = taken.path[-1]
    if not isinstance(field, str):
        return list(taken.reads)
    everywhere = (node for node in source.nodes_with(field, cst.Attribute) if isinstance(node, cst.Attribute))
    return [node for node in everywhere if node.attr.value == field and source.is_traced(node)]


def _read_by_conditions(taken: Input, function: Function, source: Source) -> Iterator[cst.BaseExpression]:
    """Where the conditions of the while_loops that `function` is the body of read what it takes as `taken`."""
    for loop in source.calls_of((WHILE,)):
        if isinstance(loop, cst.Call) and function in definitions(bodies_of(loop, source), source):
            asked = argument(loop, 0, "cond_fun")
            condition = function_named(asked, source) if asked is not None else None
            for given in inputs(condition, source) if condition is not None else ():
                if given.path == taken.path:
                    yield from given.reads


def _stacks_of_its_value(node: cst.Call, source: Source) -> list[cst.Call]:
    """The stacks that one state is made of: two in `where(p, stack([a, b]), stack([b, a]))`."""
    value = worked_on(node, source)
    calls = (call for call in inside(value, cst.Call) if source.qualified_name(call.func) in JOINS)
    return [call for call in calls if worked_on(call, source) is value]


def _is_no_step(function: Function, source: Source) -> bool:
    """Whether the host calls each step: then the state goes through memory in any case; or whether this is said to be
    a function of single vectors, `jnp.vectorize(signature="(4),(4)->(4)")`, for whoever has some."""
    facts = source.facts.functions[source.body_scope(function)]
    return not _NO_STEPS.isdisjoint(source.project.decorators(source.path, facts))


def _apart(stacks: list[cst.Call], source: Source) -> str:
    """What to carry, by the names of its parts where one stack alone says which they are."""
    names = ", ".join(source.code(part) for part in parts(stacks[0], source)) if len(stacks) == 1 else ""
    return f"the tuple ({names})" if names and len(names) <= _LONG and "\n" not in names else "a tuple of the parts"
