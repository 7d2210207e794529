"""A value that a compiled step of a Python loop returns, read on the host in every iteration, only to be kept."""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

from fusionlint.finding import Finding
from fusionlint.lazily import regex
from fusionlint.patterns.code.at import holds, inside, names_in
from fusionlint.patterns.code.functions import function_named
from fusionlint.patterns.dispatch.fetched import fetched, is_asked_for, is_needed, is_whole
from fusionlint.patterns.dispatch.host import is_of_the_host, is_part_of_data, is_repeated, yields
from fusionlint.patterns.dispatch.jit import dispatching_in_a_loop, is_jitted, runs_a_loop, runs_on_the_cpu
from fusionlint.patterns.dispatch.read_later import read_later
from fusionlint.patterns.loops.carry import Carry, Loop, calls, read
from fusionlint.patterns.loops.loop_gates import is_gated, is_seldom
from fusionlint.patterns.loops.pictures import is_animated, is_shown_each_time, is_viewed_each_time
from fusionlint.patterns.loops.timed import is_timed
from fusionlint.patterns.runs.gated import held_open
from fusionlint.patterns.runs.under import VMAPS
from fusionlint.rule import Rule
from fusionlint.source.tree import Source
from fusionlint.source.walk import dotted

rule = Rule(__name__, harm="transfer")

# What calls itself so does many steps in a dispatch, or is looked at because it is slow.
_BIG = regex(
    r"epoch|fit(_|$)|learn|rollout|unroll|episode|trajector|simulate|warm_?up|compile|bench|round"
    # A whole network for each of many steps.
    r"|sampling|denois|generate|(^|_)samples?(_and_\w+|_batch)?$",
    re.I,
)
_LOGS = regex(r"^(print|(absl\.)?logging\.\w+)$")
_STEPS = regex(r"step|update|train|loss|grad|eval", re.I)
_OF_STEPS = (
    "every iteration waits for the device before it dispatches the next step",
    "keep it on the device (sum it up in the step, or append it as it is); read it after the loop, or every so many "
    "steps",
)
_OF_TURNS = (
    "every turn waits for the device before it dispatches the next call",
    "append it as it is, and read all of them after the loop; or, where turns differ by numbers alone, one call for "
    "all of them (jax.vmap)",
)
# A part of what an episode left, one of many: `for rollout_data in buffer.get(batch_size)`.
_PART = regex(r"(data|batch|minibatch)(es)?$", re.I)
_KEYS = regex(r"rng|key", re.I)
_FILES = regex(r"(^|\.)(open|File|ZipFile)$")


@rule.source("For", "While", where="host", when=dispatching_in_a_loop)
def step_waited_for(loop: Loop, source: Source) -> Iterator[Finding]:
    """The first read of what the loop's compiled calls return that nothing in the loop needs."""
    if not is_repeated(loop.body, source) or _is_now_and_then(loop, source):
        return
    # What is written out, a setting, or what a dict holds, is short.
    if isinstance(loop, cst.For) and (
        isinstance(loop.iter, cst.List | cst.Tuple | cst.Attribute) or _is_dict(loop.iter, source)
    ):
        return
    head = [loop.target] if isinstance(loop, cst.For) else []
    if yields(loop) or any(_is_many_steps(name) for node in head for name in read(node)):
        return
    steps = [c for c in calls(loop.body) if source.loop(c) is loop and is_jitted(c.func, source)]
    # What is compiled for the CPU is where the host reads it: no device is kept waiting.
    steps = [step for step in steps if not is_gated(step, loop, source) and not runs_on_the_cpu(step.func, source)]
    if not steps or any(_is_big(step, source) for step in steps):
        return
    if is_timed(loop, source) or _is_seen_each_time(loop, source) or _works_on_the_host(loop, source):
        return
    if any(_drives_steps(call, source) for call in calls(loop.body) if call not in steps):
        return
    apart = [step for step in steps if not is_asked_for(step, loop, source)]
    found = [node for node in fetched(loop, apart, source) if not _is_of_a_table(node, loop, source)]
    found = [node for node in _kept(found, loop, source) if not _is_a_count(node, loop, steps, source)]
    if all(is_whole(node, source) for node in found) and _goes_through_parts(loop, steps, source):
        return
    if any(is_whole(node, source) for node in found) and is_animated(loop, source):
        return
    # Where the host needs one value to go on, it waits for the step anyway.
    needed = any(is_needed(node, loop, source) or _is_acted_on(node, loop) or _is_filed(node, source) for node in found)
    needed = needed or any(_is_carried_by_the_host(node, loop, steps, source) for node in found)
    if _evaluates_by_hand(loop, steps, source):
        return  # one operation after the other, behind which the device is not waited for long
    if not found or needed or _asks(loop, steps, source) or any(_stops_by(node, loop) for node in found):
        return
    first = next((node for node in found if not is_seldom(node, loop, source)), None)
    told = _told(loop, steps, source)
    if first is not None and told is not None:
        waiting = [node for node in found if not is_seldom(node, loop, source)]
        yield source.finding(first, told[0], write=told[1], edits=read_later(waiting, steps, loop, source))


def _told(loop: Loop, steps: list[cst.Call], source: Source) -> tuple[str, str] | None:
    """What is said of a loop, and what to write; nothing of settings that something unknown is tried with."""
    if _goes_by_steps(loop, steps, source):
        return _OF_STEPS
    return None if all(_comes_with_the_call(step, source) for step in steps) else _OF_TURNS


def _goes_by_steps(loop: Loop, steps: list[cst.Call], source: Source) -> bool:
    """Whether a compiled call is named as a step of something is, or handed what the last one returned."""
    carry = Carry(loop)
    for step in steps:
        own = carry.write_of(step, source)
        names = carry.behind(list(step.args), gated=True)[1]
        if _STEPS.search(dotted(step.func)) or (own is not None and not names.isdisjoint(own.names)):
            return True
    return False


def _comes_with_the_call(step: cst.Call, source: Source) -> bool:
    """Whether what is compiled is a parameter of the function around, `f = jax.jit(loss)`, for each of some settings:
    whoever hands over a loss to be scanned hands over a model, beside which a wait is nothing."""
    compiled = source.meant(step.func)
    inner = compiled.args[0].value if isinstance(compiled, cst.Call) and compiled.args else None
    return isinstance(inner, cst.Name) and isinstance(source.binder(inner), cst.Param)


def _is_many_steps(name: str) -> bool:
    return bool(_BIG.search(name)) and not _PART.search(name)


def _is_now_and_then(loop: Loop, source: Source) -> bool:
    """Whether an `if` of the loop around decides whether this one runs: an evaluation every so many steps."""
    around = source.loop(loop)
    return isinstance(around, cst.For | cst.While) and is_gated(loop, around, source)


def _works_on_the_host(loop: Loop, source: Source) -> bool:
    """Whether every iteration has a library for the host solve something, `scipy.optimize.minimize`."""
    solved = (call for call in calls(loop.body) if is_of_the_host(call, source))
    return any(not is_gated(call, loop, source) for call in solved)


def _drives_steps(call: cst.Call, source: Source) -> bool:
    """Whether `call` is of a function of the project with a Python loop of compiled steps of its own: one wait more is
    nothing beside a whole training, `model = fit(model, batches)` for each of some clients."""
    project = source.project
    place = project.find(source.qualified_name(call.func))
    if place is None or project.function_at(place) is None:
        return False
    made = ((name, raw) for where, name, raw in project.named_calls(place.path) if where == place)
    return any(loops and project.dispatches(place, name, value[0]) for name, (value, _, loops, _) in made)


def _is_acted_on(node: cst.BaseExpression, loop: Loop) -> bool:
    """Whether a simulator on the host, which keeps its state to itself, takes what is read: `env.step(action)`."""
    names = set(read(node))
    for call in calls(loop.body):
        match call:
            case cst.Call(func=cst.Attribute(attr=cst.Name("step")), args=[cst.Arg(value=taken)]):
                if not names.isdisjoint(read(taken)):
                    return True
    return False


def _is_carried_by_the_host(node: cst.BaseExpression, loop: Loop, steps: list[cst.Call], source: Source) -> bool:
    """Whether what is read is written into an array of numpy, where it stands, from which the next step starts,
    `angles[:] = rebuilt - momentum * last`: an array of jax takes no such write."""
    match source.statement(node):
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Subscript(value=cst.Name(table)))]):
            carry = Carry(loop)
            return any(table in carry.behind(list(step.args), gated=True)[1] for step in steps)
    return False


def _evaluates_by_hand(loop: Loop, steps: list[cst.Call], source: Source) -> bool:
    """Whether every iteration calls as it is, uncompiled, what a step compiles: `loss(params, held_out)`, beside a step
    that differentiates `loss`."""
    compiled = [function for step in steps if (function := function_named(step.func, source)) is not None]
    inner = {name.value for function in compiled for name in names_in(function.body)}
    for call in calls(loop.body):
        if call in steps or not isinstance(call.func, cst.Name) or call.func.value not in inner:
            continue
        own = function_named(call.func, source)
        if isinstance(own, cst.FunctionDef) and not own.decorators and not is_gated(call, loop, source):
            return not is_jitted(call.func, source) and not _is_light(own, source)
    return False


def _is_light(function: cst.FunctionDef, source: Source) -> bool:
    """Whether a function calls nothing of the project and maps nothing: a line of arithmetic."""
    made = inside(function.body, cst.Call)
    return not any(function_named(call.func, source) is not None or source.calls(call, *VMAPS) for call in made)


def _stops_by(node: cst.BaseExpression, loop: Loop) -> bool:
    """Whether the loop ends early by a table of the host that keeps what is read, `losses[step] = loss`, then `if
    step - np.argmin(losses[:step]) > patience: break`."""
    names = set(read(node))
    tables = set()
    for part in inside(loop.body):
        match part:
            case cst.Assign(targets=[cst.AssignTarget(target=cst.Subscript(value=cst.Name(table)))], value=kept):
                if not names.isdisjoint(read(kept)):
                    tables.add(table)
    ends = inside(loop.body, cst.If)
    return any(not tables.isdisjoint(read(end.test)) and holds(end.body, cst.Break) for end in ends)


def _is_filed(node: cst.CSTNode, source: Source) -> bool:
    """Whether `node` is written into a file that is open there, `with h5py.File(path, "a") as f`."""
    calls_of = (opened for opened in held_open(node, source) if isinstance(opened, cst.Call))
    return any(_FILES.search(source.qualified_name(call.func) or dotted(call.func)) for call in calls_of)


def _is_seen_each_time(loop: Loop, source: Source) -> bool:
    """Whether every iteration draws, or hands a viewer what it makes."""
    return is_shown_each_time(loop, source) or is_viewed_each_time(loop, source)


def _kept(found: list[cst.BaseExpression], loop: Loop, source: Source) -> list[cst.BaseExpression]:
    """Those of what is read that no line of a log shows; none where every iteration writes such a line, which waits for
    the step whatever else is kept of it."""
    logged = [node for node in found if _is_logged(node, source)]
    if any(not is_gated(node, loop, source) for node in logged):
        return []
    return [node for node in found if node not in logged]


def _is_logged(node: cst.BaseExpression, source: Source) -> bool:
    """Whether `node` stands in a line of a log: somebody wants to see every step."""
    for above in source.ancestors(node):
        if isinstance(above, cst.Call) and _LOGS.match(source.qualified_name(above.func) or ""):
            return True
        if isinstance(above, cst.BaseSmallStatement):
            return False
    return False


def _is_a_count(node: cst.BaseExpression, loop: Loop, steps: list[cst.Call], source: Source) -> bool:
    """Whether `node` is a whole number of the batch alone, `int(count(batch))`: one pass over the data, which takes as
    long as it takes to load them."""
    is_whole_number = any(source.calls(call, "int") for call in (node, source.handed_to(node)))
    if not isinstance(loop, cst.For) or not is_whole_number or source.calls(loop.iter, "range"):
        return False
    brought = set(read(loop.target))
    return all(brought.issuperset(n for arg in step.args for n in read(arg)) for step in steps)


def _is_of_a_table(node: cst.BaseExpression, loop: Loop, source: Source) -> bool:
    """Whether the value of `node` is stored by what this loop and the one around it go over,
    `table[shots, rate] = ...`: a result for each pair of some settings."""
    match source.statement(node):
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Subscript(slice=slices))]):
            names = {name for part in slices for name in read(part)}
            return all(_goes_over(one, names, source) for one in (loop, source.loop(loop)))
    return False


def _goes_over(loop: cst.CSTNode | None, names: set[str], source: Source) -> bool:
    """Whether the loop takes one of `names` from a collection, instead of counting."""
    is_counting = not isinstance(loop, cst.For) or source.calls(loop.iter, "range")
    return not is_counting and isinstance(loop, cst.For) and not names.isdisjoint(read(loop.target))


def _goes_through_parts(loop: Loop, steps: list[cst.Call], source: Source) -> bool:
    """Whether the loop hands a step one part of an array after the other, `xs[i : i + n]`, and nothing of what the last
    one returned: in parts, for the memory of the device does not hold all that comes of it."""
    carry = Carry(loop)
    is_cut = False
    for step in steps:
        writes, names = carry.behind(list(step.args), gated=True)
        own = carry.write_of(step, source)
        if own is not None and any(name in names and not _KEYS.search(name) for name in own.names):
            return False
        given = [*step.args, *(write.value for write in writes)]
        subscripts = (part for node in given for part in inside(node, cst.Subscript))
        is_cut = is_cut or any(is_part_of_data(part, carry) for part in subscripts)
        is_cut = is_cut or any(_takes_a_part(part, loop, source) for node in given for part in inside(node))
    return is_cut


def _takes_a_part(call: cst.CSTNode, loop: Loop, source: Source) -> bool:
    """`cut(states, i, n)` in a loop that counts by as many, `for i in range(0, len(states), n)`."""
    match loop:
        case cst.For(target=cst.Name(counter), iter=cst.Call(args=[_, _, cst.Arg(value=by)]) as counted):
            if not isinstance(call, cst.Call) or not source.calls(counted, "range"):
                return False
            given = [source.code(arg.value) for arg in call.args]
            return counter in given and source.code(by) in given
    return False


def _asks(loop: Loop, steps: list[cst.Call], source: Source) -> bool:
    """Whether a `while` goes on by what its steps return: `while residual > tol`."""
    if not isinstance(loop, cst.While):
        return False
    asked = set(read(loop.test))
    for step in steps:
        match source.parent(step):
            case cst.Assign(targets=targets):
                if any(n.value in asked for t in targets for n in names_in(t.target)):
                    return True
    return False


def _is_dict(iterated: cst.BaseExpression, source: Source) -> bool:
    match iterated:
        case cst.Call(func=cst.Attribute(attr=cst.Name("items" | "values" | "keys")), args=[]):
            return True
        case cst.Name():
            value = source.value(iterated)
            value = value.body if isinstance(value, cst.IfExp) else value
            return isinstance(value, cst.Dict | cst.DictComp)
    return False


def _is_big(step: cst.Call, source: Source) -> bool:
    # Nobody sees into a lambda that is compiled where it is called.
    is_inline = isinstance(step.func, cst.Call) and any(isinstance(a.value, cst.Lambda) for a in step.func.args)
    return is_inline or bool(_BIG.search(dotted(step.func))) or runs_a_loop(step.func, source)
