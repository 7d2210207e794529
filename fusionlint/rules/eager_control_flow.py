"""`lax` control flow and transforms that Python calls outside of any jit, again and again."""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

from fusionlint.finding import Finding
from fusionlint.lazily import regex
from fusionlint.patterns.code.at import holds, inside
from fusionlint.patterns.code.calls import call_of
from fusionlint.patterns.code.functions import function_named
from fusionlint.patterns.dispatch.anew import is_of_another, made_anew, repeats
from fusionlint.patterns.dispatch.called_jitted import is_called_jitted
from fusionlint.patterns.dispatch.eager_functions import CONTROL_FLOW, calling_in_a_loop, stays_in_jax, traced_anew
from fusionlint.patterns.dispatch.host import is_counted, runs_once
from fusionlint.patterns.dispatch.jit import is_a_method_from_elsewhere, is_jitted, value
from fusionlint.patterns.loops.carry import Carry, Loop, Write, calls, read
from fusionlint.patterns.loops.collected import is_few
from fusionlint.patterns.loops.loop_gates import is_gated
from fusionlint.patterns.loops.pictures import is_shown_each_time
from fusionlint.patterns.operations.interpolation import for_all_at_once
from fusionlint.patterns.runs.from_callers import given_by_callers
from fusionlint.patterns.runs.switches import ifs_around, is_tried
from fusionlint.rule import Rule
from fusionlint.source.facts import last_name
from fusionlint.source.places import Place
from fusionlint.source.traced import is_idle
from fusionlint.source.tree import Source
from fusionlint.source.walk import dotted

rule = Rule(__name__, harm="recompile")

# One vmap more is nothing beside what calls itself so.
_BIG = regex(r"epoch|train|fit(_|$)|learn|rollout|unroll|episode|evaluat|simulate|compile", re.I)
# A step of it is one of many.
_STEP = regex(r"step|update|iteration|batch", re.I)
# What calls itself so is eager on purpose.
_MEANT = regex(r"(^|[/_])(no|without|non|un)_?jit(ted)?(_|[./]|$)|eager", re.I)
_JOINS = regex(r"(^|_)(append|concat(enate)?|extend|[hv]stack)(_|$)")
_SAVES = regex(r"(^|[._])(save|savez|savez_compressed|savetxt|dump)$")
_TRANSFORMS = frozenset(
    ("jax.grad", "jax.value_and_grad", "jax.vmap", "jax.jacfwd", "jax.jacrev", "jax.jacobian", "jax.hessian")
)
# What a loop goes over that is long, and what is not, for it has names.
_DATA = regex(r"batch|load|reader|stream|data|epoch|step|iter|frame|sample|range|path|file", re.I)
_OF_A_FEW = regex(r"(^|[._])((n|num|number_of)_?(layers?|blocks|heads|chains|devices)|depth)$")
_OF_A_DICT = regex(r"\.(items|keys|values)\(\)$")
# What an object does once, when it is made, and what makes the first weights of a layer.
_CONSTRUCTORS = regex(r"(^|\.)_*(init|initiali[sz]e|post_init)(_[a-z0-9_]*)?(#\d+)?$")


@rule.source("Call", calls=tuple(CONTROL_FLOW), where="host", in_loop=True)
def compiled_where_it_stands(node: cst.Call, source: Source) -> Iterator[Finding]:
    """Control flow in host code that is handed a function made anew every time."""
    name = source.qualified_name(node.func)
    if name not in CONTROL_FLOW or (where := _loop(node, source)) is None or is_called_jitted(node, source):
        return
    handed = [
        arg.value for i, arg in enumerate(node.args) if i in CONTROL_FLOW[name] and not arg.keyword and not arg.star
    ]
    what = next(filter(None, (made_anew(function, where, source) for function in handed)), None)
    if what is not None:
        yield source.finding(
            node.func,
            f"outside of a jit, and handed {what}, made anew here every time: it is compiled every time",
            write="a jitted function around it, made once, with what changes as its arguments",
        )


@rule.source("Call", calls=_TRANSFORMS, where="host")
def traced_in_every_call(node: cst.Call, source: Source) -> Iterator[Finding]:
    """`jax.grad(f)(x)` in a loop of host code; or `g = jax.grad(f)`, then `g(x)` there."""
    if source.qualified_name(node.func) not in _TRANSFORMS or not node.args:
        return
    function = node.args[0].value
    is_unseen = source.calls(node, "jax.vmap") and is_a_method_from_elsewhere(function, source)
    if is_unseen or _is_compiled(function, source) or _only_picks(function, source):
        return
    handed = [*given_by_callers(node.args[0].value, node, source)]
    if handed and all(_is_compiled(function, source) for function in handed):
        return
    if _CONSTRUCTORS.search(source.scope(node)) or is_called_jitted(node, source):
        return
    for call in _calls_of(node, source):
        if (loop := _loop(call, source)) is not None:
            if is_of_another(node.args[0].value, loop, source) or _finds_a_root(loop, source):
                continue
            if source.calls(node, "jax.vmap") and any(_BIG.search(dotted(c.func)) for c in calls(loop.body)):
                continue
            if is_tried(call, source) and any(source.calls(c, "print") for c in calls(loop.body)):
                continue  # a trial of the module, which somebody looks at step by step
            if _is_checked(call, loop, source) or _is_of_another_size(call, loop):
                continue
            name, changing = source.code(node.func), _with_arguments(node.args[0].value, source)
            if (whole := for_all_at_once(node, call, source)) is not None:
                message = f"outside of a jit: every call traces `{name}` anew, of what takes an array as it is"
                yield source.finding(call.func, message, write=f"`{whole}`", pair=1)
                continue
            yield source.finding(
                call.func,
                f"outside of a jit: every call traces `{name}` anew and dispatches each operation by itself",
                write=f"jax.jit({name}(...)) made once, before the loop{changing}, or the whole step in one jitted "
                f"function{_bound(call, source)}",
                pair=1,
            )


@rule.source("Call", where="host", when=calling_in_a_loop)
def not_compiled_at_all(node: cst.Call, source: Source) -> Iterator[Finding]:
    """`state = train_step(state, batch)` in a loop of host code, where that is a plain def that takes a gradient, or
    runs control flow with functions of its own."""
    project = source.project
    place = project.find(source.qualified_name(node.func))
    what = traced_anew(project).get(place) if place is not None else None
    function = project.function_at(place)
    if place is None or what is None or function is None or function.decorators or is_idle(project, place):
        return
    if not stays_in_jax(project, place) or _keeps_in_a_part(place, source):
        return
    if (loop := _loop(node, source)) is None or _may_be_compiled(node.func, source) or is_called_jitted(node, source):
        return
    if _is_compiled_beside(node, loop, source):
        return
    name = last_name(place.scope)
    if _MEANT.search(name) or _MEANT.search(source.facts.inside):
        return
    if (_BIG.search(name) and not _STEP.search(name)) or _is_checked(node, loop, source) or is_tried(node, source):
        return
    called, is_flow = source.code(node.func), what in CONTROL_FLOW
    yield source.finding(
        node.func,
        f"`{called}` is not compiled: every call "
        + (f"compiles its `{what}` anew" if is_flow else f"traces its `{what}` anew and dispatches each operation"),
        write=f"jax.jit({called}) made once, before the loop, with what is no array as a static argument",
        pair=0 if is_flow else 1,
    )


def _finds_a_root(loop: Loop, source: Source) -> bool:
    """Whether it is Newton's method, `x - f(x) / slope(x)`, of a function that comes with each call: it needs a few
    turns, and a jit would be made anew each time (measured on a CPU: 37 ms as it is, 62 with a jit; 14 and 57)."""
    ratios = inside(loop.body, cst.BinaryOperation)
    return any(isinstance(one.operator, cst.Divide) and _is_slope_of_any(one.right, source) for one in ratios)


def _is_slope_of_any(divisor: cst.BaseExpression, source: Source) -> bool:
    match source.meant(divisor):
        case cst.Call(func=slope):
            match source.meant(slope):
                case cst.Call(args=[cst.Arg(value=cst.Name() as given), *_]) as made if source.calls(made, "jax.grad"):
                    return isinstance(source.binder(given), cst.Param)
    return False


def _keeps_in_a_part(place: Place, source: Source) -> bool:
    """Whether a method of this file stores what it makes in a part of its object, `self.optimizer.state = state`."""
    defined = source.definition(place.scope) if place.path == source.path else None
    stored = inside(defined, cst.AssignTarget) if defined is not None else ()
    targets = (name for part in stored for name in inside(part.target, cst.Attribute))
    return any(dotted(target).startswith("self.") for target in targets)


def _is_compiled_beside(call: cst.Call, loop: Loop, source: Source) -> bool:
    """Whether an `if` chooses between `loop` and a loop of jax.lax that is handed the very function, `else: state =
    jax.lax.while_loop(goes_on, step, state)`: who wrote both has a reason for this one, as that a step moves data from
    one device to another."""
    for above, below in ifs_around(loop, source):
        other = above.orelse if below is above.body else above.body
        flows = inside(other, cst.Call) if other is not None else ()
        flows = (flow for flow in flows if source.qualified_name(flow.func) in CONTROL_FLOW)
        if any(source.code(arg.value) == source.code(call.func) for flow in flows for arg in flow.args):
            return True
    return False


def _may_be_compiled(callee: cst.BaseExpression, source: Source) -> bool:
    """Whether it is compiled, or would be, had its object not been told otherwise: `Solver(f, jit=False).update`."""
    return is_jitted(callee, source) or source.project.is_jitted(source.place(callee), value(callee))


def _with_arguments(function: cst.BaseExpression, source: Source) -> str:
    """What else is to be said of a function that is made where it is used: a jit keeps what it read there."""
    made = function_named(function, source)
    is_made_here = isinstance(made, cst.Lambda) or (made is not None and bool(source.scope(made)))
    return ", with what changes as its arguments" if is_made_here else ""


def _bound(call: cst.Call, source: Source) -> str:
    """What has to be done before with a function that `call` is handed: a jit takes arrays."""
    functions = (arg.value for arg in call.args if function_named(arg.value, source) is not None)
    function = next(functions, None)
    if function is None:
        return ""
    what = "the lambda" if isinstance(function, cst.Lambda) else f"`{source.code(function)}`"
    return f"; {what} is no array, and has to be bound in the function before"


def _is_of_another_size(call: cst.Call, loop: Loop) -> bool:
    """Whether the loop makes what is still missing, `while points.shape[0] < n`, fewer each time, or hands on as many
    as there are this time, `positions[:n]`, or what it joins to: a jit would compile every size for itself."""
    carry = Carry(loop)
    if any(_is_as_long_as_it_gets(part, carry) for arg in call.args for part in inside(arg.value)):
        return True
    if any(_grows(write) for write in carry.behind(list(call.args), gated=True)[0]):
        return True
    if not isinstance(loop, cst.While):
        return False
    missing = {
        name for name in read(loop.test) if name.endswith(".shape") and name.removesuffix(".shape") in carry.varying
    }
    _, names = carry.behind(list(call.args), gated=True)
    return not missing.isdisjoint(names)


def _grows(write: Write) -> bool:
    """Whether an iteration joins something to what it had, `history = history.joined(scores, concatenate)`; of a window
    that moves on, `jnp.append(seen[1:], new)`, there are always as many."""
    if set(write.names).isdisjoint(read(write.value)):
        return False
    parts = list(inside(write.value))
    is_joined = any(isinstance(part, cst.Name) and _JOINS.search(part.value) for part in parts)
    return is_joined and not any(isinstance(part, cst.Slice) for part in parts)


def _is_as_long_as_it_gets(part: cst.CSTNode, carry: Carry) -> bool:
    """`:n`, where each iteration has its own n."""
    match part:
        case cst.Slice(lower=None, upper=cst.BaseExpression() as end):
            return carry.varies(end)
    return False


def _is_checked(call: cst.Call, loop: Loop, source: Source) -> bool:
    """Whether all that the loop wants of a call is to know if it fails: `try: grad(f)(x)`, `except Exception as error:
    raise ValueError(...) from error`. A user's function is tried so, once, before it is used. Or whether it goes on
    with something else where anything at all fails, `except Exception: loss = inf`: under a jit all of it would."""
    for above in source.ancestors(call):
        if above is loop:
            return False
        if isinstance(above, cst.Try):
            raises = (isinstance(part, cst.Raise) for handler in above.handlers for part in inside(handler.body))
            return any(raises) or any(_catches_all(handler) for handler in above.handlers)
    return False


def _catches_all(handler: cst.ExceptHandler) -> bool:
    """`except Exception: loss = jnp.inf`; not one that leaves the iteration or the loop."""
    is_broad = isinstance(handler.type, cst.Name) and handler.type.value == "Exception"
    return is_broad and not holds(handler.body, cst.Continue, cst.Break, cst.Return)


def _is_compiled(function: cst.BaseExpression, source: Source) -> bool:
    """Whether what is transformed is one compiled program: by its name, by what it is unless somebody asks for
    something else, `jax.jit(f) if jit else f`, or by a lambda that calls it and computes nothing else."""
    made = source.meant(function)
    match made:
        case cst.IfExp(body=one, orelse=other):
            return _is_compiled(one, source) or _is_compiled(other, source)
        case cst.Lambda(body=cst.Call(func=called, args=args)):
            return not any(map(_computes, args)) and _is_compiled(called, source)
    return is_jitted(function, source)


def _only_picks(function: cst.BaseExpression, source: Source) -> bool:
    """Whether `function` computes nothing, `lambda batch: batch["image"]`: then nothing is dispatched."""
    made = source.value(function) if isinstance(function, cst.Name) else function
    if not isinstance(made, cst.Lambda):
        return False
    return not _computes(made.body)


def _computes(node: cst.CSTNode) -> bool:
    computing = (cst.Call, cst.BinaryOperation, cst.UnaryOperation, cst.Comparison)
    return any(isinstance(part, computing) for part in inside(node))


def _loop(call: cst.Call, source: Source) -> Loop | None:
    """The loop of host code that makes `call` in every iteration, unless for a picture or a file. A function that is
    called per step proves nothing: it may be jitted elsewhere."""
    loop = source.loop(call)
    if not isinstance(loop, cst.For | cst.While) or source.context(call) != "host" or is_gated(call, loop, source):
        return None
    if (
        runs_once(loop)
        or not _goes_on(loop, source)
        or any(_SAVES.search(dotted(made.func)) for made in calls(loop.body))
    ):
        return None
    return loop if repeats(call, source) is loop and not is_shown_each_time(loop, source) else None


def _goes_on(loop: Loop, source: Source) -> bool:
    """Whether a loop counts, further than to four, or goes over data: of the settings, models, layers, chains or names
    that others go over there are few, and each may have shapes of its own."""
    if isinstance(loop, cst.For) and any(_OF_A_FEW.search(name) for name in read(loop.iter)):
        return False
    if isinstance(loop, cst.For) and is_few(loop.iter, source):
        return False
    if isinstance(loop, cst.While) or is_counted(loop, source):
        return True
    return bool(_DATA.search(source.code(loop.iter)) and not _OF_A_DICT.search(source.code(loop.iter)))


def _calls_of(node: cst.Call, source: Source) -> Iterator[cst.Call]:
    if (call := call_of(node, source)) is not None:
        yield call
    elif (name := source.assigned_name(node)) is not None:
        for read in source.reads(name):
            if (call := call_of(read, source)) is not None and source.value(read) is node:
                yield call
