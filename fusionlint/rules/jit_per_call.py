"""`jax.jit` of a function object that is made anew every time: every time it is traced and compiled again."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from fusionlint.finding import Finding
from fusionlint.lazily import regex
from fusionlint.patterns.callbacks.calls import RETURNS
from fusionlint.patterns.code.at import inside, names_read
from fusionlint.patterns.code.calls import call_of
from fusionlint.patterns.code.functions import Function, function_named
from fusionlint.patterns.dispatch.anew import is_of_another, made_anew, repeats
from fusionlint.patterns.dispatch.called_jitted import is_called_jitted
from fusionlint.patterns.dispatch.hoisted import made_for_the_file, moved_out
from fusionlint.patterns.loops.carry import Carry
from fusionlint.patterns.loops.carry import calls as calls_in
from fusionlint.patterns.loops.loop_gates import is_gated_among
from fusionlint.patterns.runs.concrete import CLOCKS
from fusionlint.patterns.runs.made_once import is_for_constructors
from fusionlint.rule import Rule
from fusionlint.source.names import PARTIAL
from fusionlint.source.tree import Source
from fusionlint.source.walk import dotted

rule = Rule(__name__, harm="recompile")

_PMAP = "jax.pmap"  # finds bound methods again (evidence C), and nothing else
_JIT = frozenset(("jax.jit", "jax.pjit", "jax.experimental.pjit.pjit", "equinox.filter_jit", "flax.nnx.jit", _PMAP))
_WRAPPERS = PARTIAL | _JIT | frozenset(
    ("jax.vmap", "jax.grad", "jax.value_and_grad", "jax.jacfwd", "jax.jacrev", "jax.jacobian", "jax.hessian",
     "jax.checkpoint", "jax.remat", "jax.shard_map", "jax.experimental.shard_map.shard_map",
     "jax.experimental.checkify.checkify", "equinox.filter_grad", "equinox.filter_value_and_grad",
     "equinox.filter_vmap", "flax.nnx.grad", "flax.nnx.value_and_grad", "flax.nnx.vmap")
)  # fmt: skip
# equinox compares what it wraps: it finds bound methods again, and what its own transforms make of the same function.
_BY_VALUE = "equinox.filter_jit"
_COMPARED = regex(r"equinox\.filter_\w+$|jax\.tree_util\.Partial$")
# What is called before and after what is measured, and to wait for it.
_MEASURES = (CLOCKS, ("jax.block_until_ready",))
# A step of a step is seldom further away than this.
_DEPTH = 2
_MODEL = regex(r"(^|_)(models?|modules?|net|nets|networks?|layers?|policy|actor|critic|agent)(_|$)")
_WRITE = "jit it once, outside, and hand what changes to it as arguments"


def _decorated_inside(source: Source) -> Iterator[str]:
    """The functions that are defined in a function and decorated with a jit."""
    inside = (f for f in source.facts.functions.values() if f.decorators and "." in f.scope and not f.owner)
    decorated = (f for f in inside if source.runs(f.scope.rpartition(".")[0], "host"))
    return (f.scope for f in decorated if not _JIT.isdisjoint(source.project.decorators(source.path, f)))


@rule.source("Call", calls=_JIT, where="host", like=lambda call: bool(call.scope or call.loops))
def jit_of_a_new_function(node: cst.Call, source: Source) -> Iterator[Finding]:
    """`jax.jit(lambda ...)(x)`; or `g = jax.jit(partial(...))`, then `g(x)`."""
    if not node.args or node.args[0].keyword or node.args[0].star:
        return
    calls = list(_calls_of(node, source))
    if not calls or not (where := _again_and_again(node, calls, source)) or is_called_jitted(node, source):
        return
    if isinstance(where, cst.For | cst.While):
        if any(Carry(where).varies(a.value) for a in node.args if a.keyword):
            return  # compiled for other shardings each time, whoever makes the function
        if is_gated_among(_JIT, node, where, source) or is_of_another(node.args[0].value, where, source):
            return
    elif any(_is_laid_out_by(arg.value, calls, source) for arg in node.args if arg.keyword):
        return
    if _is_of_what_is_given(node.args[0].value, where, source):
        return
    if _is_for_the_host(node.args[0].value, source) or all(_is_only_waited_for(call, source) for call in calls):
        return
    if source.calls(node, _BY_VALUE):
        what = _new_by_value(node.args[0].value, where, source)
    elif source.calls(node, _PMAP):
        function = node.args[0].value
        what = made_anew(function, where, source, _WRAPPERS) if not _is_a_barrier(function, source) else None
    else:
        what = _new(node.args[0].value, where, source)
    if what:
        message = f"{what}, made anew here every time, is compiled every time"
        edits = made_for_the_file(node, source) if call_of(node, source) is not None else ()
        yield source.finding(node, message, write=_WRITE, edits=edits)


@rule.source("FunctionDef", where="any", when=_decorated_inside)
def decorated_inside(node: cst.FunctionDef, source: Source) -> Iterator[Finding]:
    """`@jax.jit` above a function that is defined, called and dropped in a function."""
    facts = source.facts.functions.get(source.body_scope(node))
    if facts is None or facts.owner or _JIT.isdisjoint(source.project.decorators(source.path, facts)):
        return
    calls = list(_only_calls(node.name, source))
    where = _again_and_again(node, calls, source) if calls else None
    if where and not _calls_what_is_given(node, where, source) and not is_called_jitted(node, source):
        message = f"`{node.name.value}`, defined anew here every time, is compiled every time"
        yield source.finding(node.name, message, write=_WRITE, edits=moved_out(node, calls, source))


def _again_and_again(node: cst.CSTNode, calls: list[cst.Call], source: Source) -> cst.CSTNode | None:
    """The loop, or else the function, that makes the jitted function each time; None where it is made once, or
    where one that was made serves a loop of calls."""
    loop = source.loop(node)
    if any(source.loop(call) is not loop for call in calls) or _measures_itself(node, source):
        return None
    if loop is None and is_for_constructors(source.project, source.place(node), in_loops=True):
        return None
    if loop is None and _is_beside_a_pass(node, source):
        return None
    return repeats(node, source)


def _is_beside_a_pass(node: cst.CSTNode, source: Source) -> bool:
    """Whether the function around goes through data itself, `for step in range(steps): batch = next(batches)`, and
    `node` stands beside that loop: what is compiled once beside all those steps takes no time."""
    function = source.function(node)
    loops = inside(function.body, cst.For) if function is not None else ()
    return any(
        source.function(loop) is function and any(dotted(call.func) == "next" for call in calls_in(loop.body))
        for loop in loops
    )


def _measures_itself(node: cst.CSTNode, source: Source) -> bool:
    """Whether the function around is there to take the time of the first call: it waits for it by the clock; or all
    that call it take the time."""
    place = source.place(node)
    if source.loop(node) is not None:
        return False
    timed, waited = ({called.scope for name in names for called, _ in source.called(name)} for names in _MEASURES)
    if place.scope in timed and place.scope in waited:
        return True
    callers = [caller for caller, _ in source.project.calls_of(source.project.name_of(place))] if timed else []
    return bool(callers) and all(caller.path == source.path and caller.scope in timed for caller in callers)


def _is_only_waited_for(call: cst.Call, source: Source) -> bool:
    """Whether nobody reads what the call returns, `warm(ones).block_until_ready()`: it is made to have been called."""
    waited = source.parent(call)
    match source.parent(waited) if waited is not None else None:
        case cst.Call(func=cst.Attribute(attr=cst.Name("block_until_ready"))) as whole:
            return isinstance(source.parent(whole), cst.Expr)
        case cst.Call() as whole if source.calls(whole, "jax.block_until_ready"):
            return isinstance(source.parent(whole), cst.Expr)
    return False


def _is_laid_out_by(setting: cst.BaseExpression, calls: list[cst.Call], source: Source) -> bool:
    """Whether the shardings that the jit is told are made of what it is called with, `jax.tree.map(sharding_of, tree)`:
    each tree has its own, and is moved once."""
    made = source.value(setting) if isinstance(setting, cst.Name) else None
    if not isinstance(made, cst.Call):
        return False
    handed = {arg.value.value for call in calls for arg in call.args if isinstance(arg.value, cst.Name)}
    return any(isinstance(arg.value, cst.Name) and arg.value.value in handed for arg in made.args)


def _calls_of(node: cst.Call, source: Source) -> Iterator[cst.Call]:
    """The calls of what `node` gives, where nothing but calls is done with it."""
    if (call := call_of(node, source)) is not None:
        yield call
    elif (name := source.assigned_name(node)) is not None:
        yield from _only_calls(name, source)


def _only_calls(name: cst.Name, source: Source) -> Iterator[cst.Call]:
    reads = source.reads(name)
    calls = [call for read in reads if (call := call_of(read, source)) is not None]
    # What is `global` is kept.
    if len(calls) == len(reads) and all(source.scope(use.node) == source.scope(name) for use in source.uses(name)):
        yield from calls


def _is_for_the_host(function: cst.BaseExpression, source: Source) -> bool:
    """Whether a call of Python on the host is all that `function` does: what that is told besides are no arrays."""
    if not isinstance(function, cst.Lambda) or not isinstance(function.body, cst.Call):
        return False
    name = source.qualified_name(function.body.func) or ""
    return name in RETURNS or name.startswith("jax.experimental.host_callback.")


def _calls_what_is_given(body: Function | None, where: cst.CSTNode, source: Source, depth: int = _DEPTH) -> bool:
    """Whether a function that is defined in the function `where` calls another that `where` is handed, or what `vmap`
    makes of it, itself or in a step of its own, `jax.lax.scan(one_step, x, None, n)`: another one is other code, and
    who hands the same one again is not seen."""
    if body is None or not isinstance(where, cst.FunctionDef) or where not in source.ancestors(body):
        return False
    called = (part.func for part in inside(body.body, cst.Call))
    if any(_is_handed(each, where, source) for each in called if isinstance(each, cst.Name)):
        return True
    named = {id(other): other for name in names_read(body.body) if (other := function_named(name, source)) is not None}
    others = [other for other in named.values() if depth and other is not body]
    return any(_calls_what_is_given(other, where, source, depth - 1) for other in others)


def _is_of_what_is_given(function: cst.BaseExpression, where: cst.CSTNode, source: Source) -> bool:
    """Whether a function calls what the function `where` is handed, or wrappers are put around that and have a name
    here, `partial_fn = partial(fn, model=model)`, then `vmap(partial_fn)`; or is a method of what is made of that,
    `env = wrapped(env)`, then `vmap(env.reset)`."""
    while source.calls(function, *_WRAPPERS) and function.args:
        function = function.args[0].value
    if isinstance(function, cst.Attribute):
        return isinstance(where, cst.FunctionDef) and _is_made_of_what_is_handed(function.value, where, source)
    if isinstance(function, cst.Name) and isinstance(source.value(function), cst.Call):
        return isinstance(where, cst.FunctionDef) and _is_handed(function, where, source)
    return _calls_what_is_given(function_named(function, source), where, source)


def _is_made_of_what_is_handed(owner: cst.BaseExpression, where: cst.FunctionDef, source: Source) -> bool:
    """Whether the function `where` makes an object of what it is handed."""
    made = source.value(owner) if isinstance(owner, cst.Name) else None
    if not isinstance(made, cst.Call) or where not in source.ancestors(made):
        return False
    return any(isinstance(arg.value, cst.Name) and _is_handed(arg.value, where, source) for arg in made.args)


def _is_handed(name: cst.Name, where: cst.FunctionDef, source: Source) -> bool:
    """Whether `name` is a parameter of `where`, or what a wrapper makes of one; a model can be handed to a jit."""
    match source.binder(name):
        case cst.Param() as parameter if not _MODEL.search(name.value):
            return source.nearest(parameter, cst.FunctionDef) is where
    match source.value(name):
        case cst.Call(args=[cst.Arg(value=cst.Name() as wrapped), *_]) as made if source.calls(made, *_WRAPPERS):
            return _is_handed(wrapped, where, source)
        case cst.Call(args=[cst.Arg(value=cst.Lambda() as wrapped), *_]) as made if source.calls(made, *_WRAPPERS):
            return _calls_what_is_given(wrapped, where, source, 0)
    return False


def _is_a_barrier(function: cst.BaseExpression, source: Source) -> bool:
    """Whether a sum over the devices is all that `function` does: hosts wait for each other by it, now and then."""
    return isinstance(function, cst.Lambda) and source.calls(function.body, "jax.lax.psum")


def _new_by_value(function: cst.BaseExpression, where: cst.CSTNode, source: Source) -> str | None:
    """What of `function` is another object each time, where wrappers are told apart by what they wrap."""
    match function:
        case cst.Call(func=made_by, args=[cst.Arg(value=wrapped), *_]) if _COMPARED.match(
            source.qualified_name(made_by) or ""
        ):
            return _new_by_value(wrapped, where, source)
        case cst.Name() if isinstance(made := source.value(function), cst.Call | cst.Attribute):
            return _new_by_value(made, where, source) if where in source.ancestors(made) else None
        case cst.Attribute():
            return None
    return made_anew(function, where, source, _WRAPPERS)


def _new(function: cst.BaseExpression, where: cst.CSTNode, source: Source) -> str | None:
    """What the jitted function is, in words, where each time round `where` makes it another object."""
    match function:
        case cst.Attribute(value=cst.Name(value="self")):
            defined = source.project.function_at(source.project.find(source.qualified_name(function)))
            return f"the bound method `{source.code(function)}`" if defined and defined.owner else None
        case cst.Name() if isinstance(made := source.value(function), cst.Attribute):
            written = source.written(function)
            return _new(made, where, source) if written and where in source.ancestors(written) else None
    return made_anew(function, where, source, _WRAPPERS)
