"""Values that take so long to make that a write of each is nothing: what a network, a decomposition, a kernel or a loop
of jax.lax gives.

In: a Python loop, or writes of a Source. Out: whether such work is seen to be done in every turn, or for a write.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import libcst as cst

from fusionlint.lazily import regex
from fusionlint.patterns.code.at import Write, at_write, inside, is_about, is_fresh, names_in, names_read
from fusionlint.patterns.code.unpacked import stored_in, storing
from fusionlint.patterns.loops.carry import calls
from fusionlint.patterns.runs.loop_bodies import FIRSTS, is_body_of_a_loop
from fusionlint.patterns.values.reads import attributes_of
from fusionlint.patterns.writes.chain import root
from fusionlint.patterns.writes.firsts import begins_a_loop
from fusionlint.source.tree import Source
from fusionlint.source.walk import dotted

# Library calls of many kernels each, one after the other for a batch too.
_DECOMPOSES = regex(
    r"^jax\.(numpy|scipy|lax)\.linalg\.(svd|svdvals|eig|eigh|eigvals|eigvalsh|schur|lu|lu_factor|lu_solve|cho_solve)$"
)
_NETWORK = regex(r"(^|[._])(\w*network|model|net|decoder|encoder|transformer)(_fn|_apply)?$|attention\w*$")
_PARAMETERS = regex(r"(^|[._])(params?|parameters|variables)$")
# Which step through time, a kernel or more for each stage of each step.
_SOLVES = ("diffrax.diffeqsolve", "jax.experimental.ode.odeint")
_ITERATES = tuple(f"jax.scipy.sparse.linalg.{name}" for name in ("cg", "gmres", "bicgstab"))
_SOLVED = ("jax.numpy.linalg.solve", "jax.scipy.linalg.solve")
_SCAN = "jax.lax.scan"
# A value seldom has more names on its way.
_NAMES = 4
# So many writes are one launch more than one, beside those of every step of a loop.
_FEW = 2


def is_made_by_heavy_work(loop: cst.For, source: Source) -> bool:
    """Whether each turn of `loop` itself does such work, or has a function of the project do many steps of it."""
    return any(_is_heavy(call, source) or _scans(call, source) for call in calls(loop.body))


def _scans(call: cst.Call, source: Source) -> bool:
    """Whether a call is one of a function of the project that runs a scan, `self.rollout(env, params)`."""
    called = source.project.find(source.name_called(call))
    return called is not None and called in source.project.callers(_SCAN)


def are_made_by_heavy_work(writes: Sequence[Write], source: Source) -> bool:
    """Whether what is written is made by such work, under names of its own too, or taken from a list of what is."""
    values = [write.value for write in writes if write.value is not None]
    values += [made for value in values if isinstance(value, cst.Name) for made in _collected(value, source)]
    return any(_is_heavy(call, source) for value in values for call in _calls_for(value, source, _NAMES))


def _collected(name: cst.Name, source: Source) -> Iterator[cst.BaseExpression]:
    """What stands in a list that a loop takes `name` from: `vectors.append(v)`, then `for v in vectors`."""
    bound = source.written(name)
    loop = source.nearest(bound, cst.For) if bound is not None else None
    is_taken = loop is not None and any(part is bound for part in inside(loop.target))
    for listed in names_read(loop.iter) if loop is not None and is_taken else ():
        for asked in attributes_of(listed, source):
            match source.parent(asked):
                case cst.Call(args=[cst.Arg(value=cst.Name() as one)]) if asked.attr.value == "append":
                    made = stored_in(one, source)
                    if made is not None:
                        yield made


def is_beside_a_solver(node: cst.Call, source: Source) -> bool:
    """Whether the function around has an ODE or a linear system solved step by step, by itself or by one of its file
    that it reads, `vmap(solved)(y0)`: beside all the steps what is written once before or after is nothing. What the
    solver asks in each step is another function."""
    function = source.function(node)
    if not isinstance(function, cst.FunctionDef) or source.in_loop(node):
        return False
    solving = {place for solver in (*_SOLVES, *_ITERATES) for place in source.project.callers(solver)}
    own = {place.scope for place in solving if place.path == source.path}
    if source.body_scope(function) in own:
        return True
    return bool(own) and any(name.value in own for name in names_in(function.body))


def is_made_for_a_loop(value: cst.CSTNode, source: Source) -> bool:
    """Whether all that is done with `value` is that a loop of jax.lax or an iterative solver begins with it, or a
    direct one instead of those: beside all the steps what is done once before them is nothing."""
    begins = [(begins_a_loop(r, source) or _is_iterated(r, source), r) for r in _read(value, source)]
    return any(is_first for is_first, _ in begins) and all(
        is_first or _is_handed(read, _SOLVED, source) for is_first, read in begins
    )


def is_read_by_a_loop(value: cst.CSTNode, source: Source) -> bool:
    """Whether the body of a loop of jax.lax inside the function reads `value`: it has to be in memory before the loop,
    whatever makes it."""
    reads = (read for read in _read(value, source) if source.function(read) is not source.function(value))
    return any(is_body_of_a_loop(read, source) for read in reads)


def is_handed_to_loops(value: cst.CSTNode, source: Source) -> bool:
    """The same where functions of the project run the loops: `thomas(lower, diagonal, upper, right)`."""
    reads = _read(value, source)
    return bool(reads) and all(_is_iterated(read, source) or _is_looped_over(read, source) for read in reads)


def _read(value: cst.CSTNode, source: Source) -> Sequence[cst.CSTNode]:
    name = source.assigned_name(value)
    return [value] if name is None else [read for read in source.reads(name) if not is_about(read, source)]


def _is_iterated(read: cst.CSTNode, source: Source) -> bool:
    return _is_handed(read, _ITERATES, source)


def _is_handed(read: cst.CSTNode, takers: Sequence[str], source: Source) -> bool:
    call = source.handed_to(read)
    return source.calls(call, *takers)


def _is_looped_over(read: cst.CSTNode, source: Source) -> bool:
    call = source.handed_to(read)
    called = source.project.find(source.qualified_name(call.func)) if call is not None else None
    return called is not None and any(called in source.project.callers(loop) for loop in FIRSTS)


def are_given_by_a_loop(writes: Sequence[Write], source: Source) -> bool:
    """Whether two things that a loop of jax.lax gave, in the function that runs it, are put into a new array: what each
    step left, and what was pending at the end."""
    if len(writes) > _FEW or not is_fresh(root(writes[0]), source) or source.in_loop(writes[0].call):
        return False
    return all(write.value is not None and _is_of_a_loop(write.value, write, source, _NAMES) for write in writes)


def _is_of_a_loop(value: cst.BaseExpression, write: Write, source: Source, depth: int) -> bool:
    if source.calls(value, *FIRSTS):
        return source.function(value) is source.function(write.call)
    made = (storing(name, source) for name in names_read(value)) if depth else ()
    return any(one is not None and _is_of_a_loop(one.value, write, source, depth - 1) for one in made)


def is_for_steps(value: cst.CSTNode, source: Source) -> bool:
    """Whether all that is done with `value` is that the body of a loop of jax.lax, which the same function defines,
    reads it: made once, for all the steps."""
    inner = [(read, source.function(read)) for read in _read(value, source)]
    return bool(inner) and all(
        body is not None and source.function(body) is source.function(value) and is_body_of_a_loop(read, source)
        for read, body in inner
    )


def is_beside_a_network(node: cst.CSTNode, source: Source) -> bool:
    """Whether the function around `node` calls a network, or hands one that it was handed on, `sde.denoise(model, x)`:
    beside that a kernel or two are nothing."""
    function = source.function(node)
    return function is not None and any(
        _is_heavy(call, source) or any(_is_network(arg.value, source) for arg in call.args)
        for call in calls(function.body)
    )


def _is_network(given: cst.BaseExpression, source: Source) -> bool:
    return isinstance(given, cst.Name) and bool(_NETWORK.search(given.value)) and source.parameter(given) is not None


def _calls_for(value: cst.BaseExpression, source: Source, depth: int) -> Iterator[cst.Call]:
    yield from calls(value)
    for name in inside(value) if depth else ():
        meant = source.value(name) if isinstance(name, cst.Name) else None
        if meant is not None and at_write(meant) is None:
            yield from _calls_for(meant, source, depth - 1)


def _is_heavy(call: cst.Call, source: Source) -> bool:
    """`jnp.linalg.svd(x)`, `model(x)`, `module.apply(params, x)`, `attention(q, k, v)`; not `x.at[i].apply(f)`."""
    if _DECOMPOSES.match(source.qualified_name(call.func) or ""):
        return True
    match call:
        case cst.Call(func=cst.Attribute(attr=cst.Name("apply")), args=[cst.Arg(value=first, keyword=None), _, *_]):
            return _PARAMETERS.search(dotted(first)) is not None
    return _NETWORK.search(dotted(call.func)) is not None
