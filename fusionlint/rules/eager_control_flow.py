"""`lax` control flow and transforms that Python calls outside of any jit, again and again."""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

from fusionlint.finding import Finding
from fusionlint.lazily import regex
from fusionlint.patterns.anew import is_of_another, made_anew, repeats
from fusionlint.patterns.at import inside
from fusionlint.patterns.branches import function_named
from fusionlint.patterns.callbacks import is_tried
from fusionlint.patterns.called_jitted import is_called_jitted
from fusionlint.patterns.calls import call_of
from fusionlint.patterns.carry import Carry, Loop, calls, read
from fusionlint.patterns.host import is_counted, is_gated, runs_once
from fusionlint.patterns.jit import is_jitted
from fusionlint.patterns.pictures import is_plotted
from fusionlint.rule import Rule
from fusionlint.source.tree import Source
from fusionlint.source.walk import dotted

rule = Rule(__name__, harm="recompile")

# Where the functions stand among the arguments.
_FUNCTIONS = {
    "jax.lax.scan": (0,),
    "jax.lax.map": (0,),
    "jax.lax.associative_scan": (0,),
    "jax.lax.while_loop": (0, 1),
    "jax.lax.cond": (1, 2),
    "jax.lax.fori_loop": (2,),
}
# One vmap more is nothing beside what calls itself so.
_BIG = regex(r"epoch|train|fit(_|$)|learn|rollout|unroll|episode|evaluat|simulate|compile", re.I)
_SAVES = regex(r"(^|[._])(save|savez|savez_compressed|savetxt|dump)$")
_TRANSFORMS = frozenset(
    ("jax.grad", "jax.value_and_grad", "jax.vmap", "jax.jacfwd", "jax.jacrev", "jax.jacobian", "jax.hessian")
)
# What a loop goes over that is long, and what is not, for it has names.
_DATA = regex(r"batch|load|reader|stream|data|epoch|step|iter|frame|sample|range|path|file", re.I)
_OF_A_DICT = regex(r"\.(items|keys|values)\(\)$")
# What an object does once, when it is made, and what makes the first weights of a layer.
_CONSTRUCTORS = regex(r"(^|\.)_*(init|initiali[sz]e|post_init)(_[a-z0-9_]*)?(#\d+)?$")


@rule.source("Call", calls=tuple(_FUNCTIONS), where="host", in_loop=True)
def compiled_where_it_stands(node: cst.Call, source: Source) -> Iterator[Finding]:
    """Control flow in host code that is handed a function made anew every time."""
    name = source.qualified_name(node.func)
    if name not in _FUNCTIONS or (where := _loop(node, source)) is None or is_called_jitted(node, source):
        return
    handed = [
        arg.value for i, arg in enumerate(node.args) if i in _FUNCTIONS[name] and not arg.keyword and not arg.star
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
    if _is_compiled(node.args[0].value, source) or _only_picks(node.args[0].value, source):
        return
    if _CONSTRUCTORS.search(source.scope(node)) or is_called_jitted(node, source):
        return
    for call in _calls_of(node, source):
        if (loop := _loop(call, source)) is not None:
            if is_of_another(node.args[0].value, loop, source):
                continue
            if source.calls(node, "jax.vmap") and any(_BIG.search(dotted(c.func)) for c in calls(loop.body)):
                continue
            if is_tried(call, source) and any(source.calls(c, "print") for c in calls(loop.body)):
                continue  # a trial of the module, which somebody looks at step by step
            if _is_checked(call, loop, source) or _is_of_another_size(call, loop):
                continue
            name, changing = source.code(node.func), _with_arguments(node.args[0].value, source)
            yield source.finding(
                call.func,
                f"outside of a jit: every call traces `{name}` anew and dispatches each operation by itself",
                write=f"jax.jit({name}(...)) made once, before the loop{changing}, or the whole step in one jitted "
                f"function{_bound(call, source)}",
                pair=1,
            )


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
    as there are this time, `positions[:n]`: a jit would compile every size for itself."""
    carry = Carry(loop)
    if any(_is_as_long_as_it_gets(part, carry) for arg in call.args for part in inside(arg.value)):
        return True
    if not isinstance(loop, cst.While):
        return False
    missing = {
        name for name in read(loop.test) if name.endswith(".shape") and name.removesuffix(".shape") in carry.varying
    }
    _, names = carry.behind(list(call.args), gated=True)
    return not missing.isdisjoint(names)


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
    return is_broad and not any(
        isinstance(part, cst.Continue | cst.Break | cst.Return) for part in inside(handler.body)
    )


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
    return loop if repeats(call, source) is loop and not is_plotted(loop, source) else None


def _goes_on(loop: Loop, source: Source) -> bool:
    """Whether a loop counts, or goes over data: of the settings, models or names that others go over there are few, and
    each may have shapes of its own."""
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
