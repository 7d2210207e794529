"""A Python loop that calls a compiled step and carries its state: one dispatch an iteration, where a scan is one."""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

from fusionlint.finding import Finding
from fusionlint.lazily import regex
from fusionlint.patterns.code.at import inside
from fusionlint.patterns.code.calls import brief
from fusionlint.patterns.dispatch.called_jitted import is_called_jitted
from fusionlint.patterns.dispatch.fetched import fetched
from fusionlint.patterns.dispatch.host import benign, feeds_from_device, is_counted, is_short, yields
from fusionlint.patterns.dispatch.jit import dispatching_in_a_loop, is_jitted, runs_a_loop, trains
from fusionlint.patterns.dispatch.other_shapes import has_other_shapes
from fusionlint.patterns.loops.carry import Carry, Loop, calls, read
from fusionlint.patterns.loops.loop_gates import is_gated
from fusionlint.patterns.loops.own_rows import are_rows_of_its_own, writes_a_place_of_its_own
from fusionlint.patterns.loops.pictures import is_drawn
from fusionlint.patterns.loops.timed import is_measured, is_timed
from fusionlint.patterns.runs.options import is_instead_of_a_scan
from fusionlint.rule import Rule
from fusionlint.source.tree import Source
from fusionlint.source.walk import dotted

rule = Rule(__name__, harm="dispatch")

# What calls itself so does many steps, or one big one, in a dispatch; one of EM goes over all data.
_BIG = regex(
    r"epoch|train|fit(_|$)|learn|rollout|unroll|eval|episode|trajector|simulate|warm_?up|compile|(^|[._])em(_|$)"
    # Steps of a network, each as large as the network.
    r"|decod|denois|inference|transformer",
    re.I,
)
_BATCHES = regex(r"batch|loader|dataset", re.I)
# Functions around a loop of training, and what only a step of that hands on.
_TRAINS = regex(r"_?(train|learn)(_|$)")
_TRAINED = regex(r"opt(im(izer)?)?_state$")
# What only a step of a network hands on, as large as the network.
_DECODED = regex(r"(^|[._])(logits|(kv_?)?caches?)$")
# What makes a first state runs once, often under a trace after all; and what looks at a run, step by step.
_INITIALIZES = regex(r"_?(init(iali[sz]e)?|debug|diagnose|illustrate|replay)(_|$)")
_KEYS = regex(r"(^|_)(rng|key)s?\d*$")
_SAVES = regex(r"(^|_)(save|dump)", re.I)
_SHOWS = regex(r"\.set_(description|postfix)(_str)?$")
# So many a step of gym returns: what is seen, the reward, whether it is over, in one word or in two, and notes.
_OF_GYM = (4, 5)
# What is written, and the pair of the page, where each step's output is kept and nobody knows how many there will be.
_BY_PARTS = (
    "a jax.lax.scan of so many steps",
    ", called while the last of what it stacks says to go on; what lies past the end is cut off",
    1,
)
_GRADIENTS = ("jax.grad", "jax.value_and_grad", "equinox.filter_grad", "equinox.filter_value_and_grad")
_HUNDRED = 100
# What there are few of.
_FEW = regex(r"(^|[._])(players|agents|dims|axes)$")


@rule.source("For", "While", where="host", when=dispatching_in_a_loop)
def jitted_step_in_a_loop(loop: Loop, source: Source) -> Iterator[Finding]:
    """The first compiled call whose outcome the next iteration hands to it again."""
    if is_short(loop, source) or is_called_jitted(loop, source):
        return
    steps = [c for c in calls(loop.body) if _loop_of(c, source) is loop and is_jitted(c.func, source)]
    if not steps or yields(loop) or not is_counted(loop, source) or is_timed(loop, source) or _is_over_few(loop):
        return
    if any(_TRAINS.match(name) or _INITIALIZES.match(name) for name in source.scope(loop).split(".")):
        return
    if is_measured(loop, source) or _needs_the_host(loop, source) or is_instead_of_a_scan(loop, source):
        return
    if _is_soon_over(loop, steps, source):
        return
    carry = Carry(loop)
    if any(_plays_on_the_host(c, carry, source) for c in calls(loop.body)):
        return
    if not all(_is_optional(c, carry, source) or benign(c, carry, source) for c in calls(loop.body)):
        return
    found = {step: carried for step in steps if (carried := _carried(step, carry, source))}
    # A key that is split is no state that a scan could carry on with: the host, or what it calls, has that.
    if all(_KEYS.search(name) for carried in found.values() for name in carried):
        return
    if any(has_other_shapes(step, loop, source) for step in found):
        return
    if found and not is_drawn(loop, source) and not _is_watched(loop, steps, source):
        direct = (step for step, carried in found.items() if set(carried) & {n for a in step.args for n in read(a)})
        step = next(direct, next(iter(found)))
        yield _finding(step, loop, found[step], source)


def _is_soon_over(loop: Loop, steps: list[cst.Call], source: Source) -> bool:
    """Whether a script has the loop at its own level, of a hundred turns at most, none of which waits for what it
    dispatched but for a few: as many dispatches, once, are less than compiling anything."""
    if source.scope(loop) or source.loop(loop) is not None or not is_short(loop, source, _HUNDRED):
        return False
    carry = Carry(loop)
    asked = (part for part in inside(loop.body, cst.If) if carry.varies(part.test))
    waits = [*fetched(loop, steps, source), *(one for one in asked if not set(read(one.test)) <= {*carry.targets})]
    return all(is_gated(node, loop, source) for node in waits)


def _needs_the_host(loop: Loop, source: Source) -> bool:
    """Whether an error of a turn is caught in it, and the next goes on from there, or turns before the last open files,
    or a turn moves what it makes to another device: no loop of jax.lax does that."""
    if any(isinstance(part, cst.Try | cst.TryStar) and part.handlers for part in inside(loop.body)):
        return True
    made = list(calls(loop.body))
    if any(source.calls(call, "jax.device_put") and len(call.args) > 1 for call in made):
        return True
    opened = (call for call in made if source.calls(call, "open"))
    return not all(_is_of_the_last_turn(call, loop, source) for call in opened)


def _is_of_the_last_turn(call: cst.Call, loop: Loop, source: Source) -> bool:
    """`if step == n - 1:`."""
    ifs = (above for above in source.within(call, loop) if isinstance(above, cst.If))
    tests = (part for above in ifs for part in inside(above.test))
    return any(
        isinstance(part, cst.BinaryOperation)
        and isinstance(part.operator, cst.Subtract)
        and isinstance(part.right, cst.Integer)
        for part in tests
    )


def _plays_on_the_host(call: cst.Call, carry: Carry, source: Source) -> bool:
    """Whether an environment that keeps its state to itself takes an action, as gym's do, `obs, reward, done, info =
    envs.step(action)`: nothing of it can be carried."""
    match call, source.parent(call):
        case (
            cst.Call(func=cst.Attribute(value=cst.Name() as owner, attr=cst.Name("step")), args=[_]),
            cst.Assign(targets=[cst.AssignTarget(target=cst.Tuple(elements=parts))]),
        ):
            return len(parts) in _OF_GYM and not carry.varies(owner) and not is_jitted(call.func, source)
    return False


def _is_watched(loop: Loop, steps: list[cst.Call], source: Source) -> bool:
    """Whether a progress bar shows what each step returned, and files are saved in between: long steps, which somebody
    wants to follow, and to go on from where they broke off."""
    if not any(_SAVES.search(dotted(call.func).rpartition(".")[2]) for call in calls(loop.body)):
        return False
    for node in fetched(loop, steps, source):
        around = (node, *source.ancestors(node))
        shown = (above for above in around if isinstance(above, cst.Call) and _SHOWS.search(dotted(above.func)))
        if any(not is_gated(bar, loop, source) for bar in shown):
            return True
    return False


def _loop_of(call: cst.Call, source: Source) -> cst.CSTNode | None:
    """The loop that makes `call` often: not one of a few iterations, then the one around that."""
    loop = source.loop(call)
    while isinstance(loop, cst.For) and is_short(loop, source):
        loop = source.loop(loop)
    return loop


def _is_over_few(loop: Loop) -> bool:
    return isinstance(loop, cst.For) and any(_FEW.search(name) for name in read(loop.iter))


def _carried(step: cst.Call, carry: Carry, source: Source) -> tuple[str, ...]:
    """The names that take what `step` returns to its next call; none where the host feeds each call, or where the
    call is large or not made in every iteration."""
    written = carry.write_of(step, source)
    if written is None or _is_optional(step, carry, source) or _is_big(step, carry, source):
        return ()
    if writes_a_place_of_its_own(step, carry, source):
        return ()
    _, reached = carry.behind(list(step.args), gated=True)
    if not reached.intersection(written.names) or are_rows_of_its_own(written.names, step, carry):
        return ()
    if isinstance(carry.loop, cst.While):
        reached.update(read(carry.loop.test))
    carried = tuple(name for name in written.names if name in reached)
    if any(_TRAINED.search(name) or _DECODED.search(name) for name in carried):
        return ()
    feeding, names = carry.behind(list(step.args), gated=False)
    if any(_BATCHES.search(name) for name in names.difference(carried)):
        return ()
    sources = [*step.args, *(w.value for w in feeding)]
    if not all(feeds_from_device(node, carry, source) for node in sources):
        return ()
    if isinstance(carry.loop, cst.For) and names.intersection(carry.targets):
        return carried if feeds_from_device(carry.loop.iter, carry, source) else ()
    return carried


def _is_optional(call: cst.Call, carry: Carry, source: Source) -> bool:
    """Whether what the loop computes decides if `call` is made: `if step % 100 == 0`, `if done`."""
    for above in source.within(call, carry.loop):
        if isinstance(above, cst.ExceptHandler):
            return True
        if isinstance(above, cst.If) and carry.varies(above.test) and call not in calls(above.test):
            return True
    return False


def _is_big(step: cst.Call, carry: Carry, source: Source) -> bool:
    head = carry.loop.target if isinstance(carry.loop, cst.For) else carry.loop.test
    counted = [carry.loop.iter] if isinstance(carry.loop, cst.For) else []
    names = [dotted(step.func), *read(head), *(name for node in counted for name in read(node))]
    if any(_BIG.search(n) for n in names) or runs_a_loop(step.func, source) or trains(step.func, source):
        return True
    return _differentiates_any(step.func, source)


def _differentiates_any(callee: cst.BaseExpression, source: Source) -> bool:
    """Whether a step takes the gradient of a function that comes with the call, `jax.jit(jax.value_and_grad(loss))` of
    a parameter: whoever hands over a loss hands over a model, beside which a dispatch is nothing."""
    compiled = source.meant(callee)
    inner = source.meant(compiled.args[0].value) if isinstance(compiled, cst.Call) and compiled.args else None
    if not isinstance(inner, cst.Call) or not inner.args or not source.calls(inner, *_GRADIENTS):
        return False
    handed = inner.args[0].value
    return isinstance(handed, cst.Name) and isinstance(source.binder(handed), cst.Param)


def _finding(step: cst.Call, loop: Loop, carried: tuple[str, ...], source: Source) -> Finding:
    name = source.code(step.func)
    name = brief(name, 40, "the compiled function")
    is_counted_out = isinstance(loop, cst.For) and not _is_left_early(loop, Carry(loop), source)
    how = "jax.lax.scan or fori_loop" if is_counted_out else "jax.lax.while_loop"
    how, more, pair = _BY_PARTS if _keeps_outputs(step, loop, source) else (how, "", 0)
    handed = _handed_on(step, loop, carried)
    return source.finding(
        step,
        f"every iteration dispatches `{name}` from Python; XLA never sees two steps together",
        write=f"one jitted function around {how}" + (f", carrying `{', '.join(handed)}`" if handed else "") + more,
        pair=pair,
    )


def _is_left_early(loop: Loop, carry: Carry, source: Source) -> bool:
    """Whether what the loop computes may end it: `if change < tol: break`."""
    breaks = (part for part in inside(loop.body, cst.Break) if source.loop(part) is loop)
    around = (above for each in breaks for above in source.within(each, loop))
    return any(isinstance(above, cst.If) and carry.varies(above.test) for above in around)


def _keeps_outputs(step: cst.Call, loop: Loop, source: Source) -> bool:
    """Whether a loop of nobody knows how many turns keeps something of each, `infos.append(info)`: a `while_loop` has
    no place for as many."""
    written = Carry(loop).write_of(step, source)
    if written is None or not isinstance(loop, cst.While):
        return False
    kept = (c for c in calls(loop.body) if isinstance(c.func, cst.Attribute) and c.func.attr.value == "append")
    return any(name in written.names for call in kept for arg in call.args for name in read(arg.value))


def _handed_on(step: cst.Call, loop: Loop, carried: tuple[str, ...]) -> tuple[str, ...]:
    """What one iteration hands to the next: what the step returned, where it is read before it is written again; else
    what is made of it, `x` of `g = grad(x)`, `x = x - g`. None where nobody sees which that is."""
    carry = Carry(loop)
    written: set[str] = set()
    crossing: dict[str, None] = {}
    for write in carry.writes:
        crossing.update((name, None) for name in read(write.value) if name not in written)
        written.update(write.names if write.always else ())
    if any(name in crossing for name in carried):
        return carried
    _, reached = carry.behind(list(step.args), gated=True)
    names = (name for name in crossing if name in carry.varying & reached and not _KEYS.search(name))
    return tuple(name for name in names if name not in carry.targets)
