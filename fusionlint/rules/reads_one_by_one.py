"""Several results of one compiled call that the host reads one after the other, and waits for each."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from fusionlint.finding import Finding
from fusionlint.lazily import regex
from fusionlint.patterns.code.at import inside
from fusionlint.patterns.dispatch.anew import repeats
from fusionlint.patterns.dispatch.fetched import is_needed
from fusionlint.patterns.dispatch.jit import asks, dispatching, is_jitted, runs_a_loop, takes_gradients, trains
from fusionlint.patterns.dispatch.read_at_once import asked_at_once, read_at_once
from fusionlint.patterns.loops.carry import calls
from fusionlint.patterns.loops.pictures import is_shown_each_time
from fusionlint.patterns.runs.often import is_method_of_a_loop, is_run_often, runs_often
from fusionlint.patterns.values.reads import Read, is_always_read, needs_another, reads_of
from fusionlint.rule import Rule
from fusionlint.source.facts import last_name
from fusionlint.source.tree import Source
from fusionlint.source.walk import dotted

rule = Rule(__name__, harm="transfer")

# So many waits count beside anything but gradients and an optimizer.
_MANY = 4
_TRAINS = regex(r"(^|[._])(train|update)(_|$)")
_CALCULATES = regex(r"(^|\.)(calculate|solve|minimize)$")
# What takes the time of n^3 steps.
_FACTORS = regex(
    r"^jax\.(numpy|scipy|lax)\.linalg\.(cholesky|cho_factor|lu|lu_factor|qr|svd|eig|eigh|eigvalsh|inv|pinv|solve)$"
)
# As many arrays as a model has parameters.
_OF_A_TREE = regex(r"(^|[._])(leaves|values|items|flatten)(_with_path)?$")
_CHECKS = regex(r"_?(check|validate|assert)_")
# What computes an array of which `all` and `any` ask the truth.
_TRUTHS = frozenset(
    f"jax.numpy.{name}"
    for name in ("all", "any", "allclose", "array_equal", "isclose", "isfinite", "isnan", "isinf", "logical_and",
                 "logical_or", "logical_not", "less", "less_equal", "greater", "greater_equal")
)  # fmt: skip


@rule.source("Assign", where="host", when=dispatching)
def results_read_apart(node: cst.Assign, source: Source) -> Iterator[Finding]:
    """`state, reward, done = step(state)`, then `float(reward)` and `bool(done)`, in host code that runs often."""
    if not isinstance(node.value, cst.Call) or not is_jitted(node.value.func, source):
        return
    where = repeats(node, source)
    if where is None or not is_always_read(node, where, source):
        return
    names = [target for target in _targets(node) if isinstance(target, cst.Name)]
    found = [read for name in names for read in reads_of(name, source) if is_always_read(read.node, where, source)]
    found = [read for read in found if source.loop(read.node) is source.loop(node)]
    # What is read above is what the last iteration made: the others are not there yet.
    found = [r for r in found if source.loop(node) is None or source.order(r.node) > source.order(node.value)]
    found = [read for read in found if not needs_another(read, found, source)]
    if len({read.what for read in found}) < 2 and not any(read.is_of_each for read in found):
        return
    if _is_nothing_beside(node, found, where, source) or _is_shown(where, source):
        return
    if _is_behind_a_loop_of_steps(node, where, source) or _is_waited_for(node, found, source):
        return
    if isinstance(where, cst.For | cst.While) and not any(is_needed(r.node, where, source) for r in found):
        return  # what nobody needs in the loop is best not read there at all: host-sync-in-step-loop
    yield _finding(found, source)


def _is_nothing_beside(step: cst.Assign, found: list[Read], where: cst.CSTNode, source: Source) -> bool:
    """Whether the reads are numbers of a step that trains, which takes a thousand times as long, a few where that is
    not seen in full; or a few of a program that holds a loop, or factors a matrix; or whether each time a solver of the
    host runs, `calculator.calculate(atoms)`."""
    if all(_is_number(read.node, source) for read in found) and isinstance(step.value, cst.Call):
        compiled = step.value.func
        signs = [trains(compiled, source), takes_gradients(compiled, source)]
        if all(signs) or (len(found) < _MANY and (any(signs) or _TRAINS.search(dotted(compiled)))):
            return True
    is_long = isinstance(step.value, cst.Call) and _takes_long(step.value.func, source)
    if is_long and len(found) < _MANY and not any(read.is_of_each for read in found):
        return True
    body = where.body if isinstance(where, cst.For | cst.While | cst.FunctionDef) else where
    solvers = (call for call in calls(body) if _CALCULATES.search(dotted(call.func)))
    return any(not is_jitted(call.func, source) for call in solvers)


def _takes_long(compiled: cst.BaseExpression, source: Source) -> bool:
    """Whether a compiled program is seen to hold a loop of many steps, or to factor a matrix."""
    return runs_a_loop(compiled, source) or asks(compiled, _FACTORS, source)


def _is_waited_for(step: cst.Assign, found: list[Read], source: Source) -> bool:
    """Whether the program has been waited for before anything is read, `state.T.block_until_ready()`: what is left are
    a few copies."""
    if len(found) >= _MANY:
        return False
    first = min(source.order(read.node) for read in found)
    function = source.function(step)
    waits = (
        (call for call in calls(function.body) if dotted(call.func).endswith("block_until_ready")) if function else ()
    )
    return any(source.order(step.value) < source.order(call) < first for call in waits)


def _is_behind_a_loop_of_steps(step: cst.Assign, where: cst.CSTNode, source: Source) -> bool:
    """Whether the function that is called again and again drives steps itself, each a compiled program, and reads what
    is left once when they are done."""
    if isinstance(where, cst.For | cst.While) or source.loop(step) is not None:
        return False
    function = source.function(step)
    loops = (part for part in inside(function.body) if isinstance(part, cst.For | cst.While)) if function else ()
    before = (loop for loop in loops if source.function(loop) is function and source.order(loop) < source.order(step))
    return any(is_jitted(call.func, source) for loop in before for call in calls(loop.body))


def _is_shown(where: cst.CSTNode, source: Source) -> bool:
    return isinstance(where, cst.For | cst.While) and is_shown_each_time(where, source)


def _is_number(read: cst.Call, source: Source) -> bool:
    match read:
        case cst.Call(func=cst.Attribute(attr=cst.Name("item")), args=[]):
            return True
    return source.calls(read, "float", "int", "bool")


def _targets(node: cst.Assign) -> Iterator[cst.BaseExpression]:
    """`a` and `self.b`, of `a, self.b = ...`."""
    for target in node.targets:
        match target.target:
            case cst.Tuple(elements=elements) | cst.List(elements=elements):
                yield from (element.value for element in elements)
            case _:
                yield target.target


def _asking_for_truths(source: Source) -> Iterator[str]:
    """The scopes where a loop or a generator of host code computes what is true or not: asked of the facts."""
    for place, call in (found for name in _TRUTHS for found in source.called(name)):
        around, _, last = place.scope.rpartition(".")
        scope = around if last.startswith("<lambda>") else place.scope  # `any(map(lambda x: ..., leaves))`
        if (call[2] or scope == around) and source.runs(scope, "host"):
            yield scope


@rule.source("Call", where="host", when=_asking_for_truths)
def truths_read_apart(node: cst.Call, source: Source) -> Iterator[Finding]:
    """`all(jnp.isfinite(x).all() for x in leaves)`: no trace survives it, so it is host code."""
    asked = _asked(node, source)
    if asked is None or not _runs_often(node, source) or _is_for_an_error(node, source):
        return
    # Several in one condition are one finding.
    if next(call for call in calls(_condition(node, source)) if _asked(call, source)) is node:
        edits = asked_at_once(node, source)
        yield source.finding(
            node,
            "the host waits for one truth after the other",
            write=f"`{asked}(jax.device_get([... for ...]))`, which starts all copies before it waits",
            edits=edits,
            safe=bool(edits),
        )


def _is_for_an_error(node: cst.CSTNode, source: Source) -> bool:
    """Whether what is asked is for an error that is raised in any case."""
    for above in source.ancestors(node):
        match above:
            case cst.IndentedBlock(body=[*_, cst.SimpleStatementLine(body=[cst.Raise()])]):
                return True
            case cst.FunctionDef() | cst.Lambda():
                return False
    return False


@rule.source("For", where="host", when=_asking_for_truths)
def leaves_asked_apart(node: cst.For, source: Source) -> Iterator[Finding]:
    """`for leaf in leaves: if jnp.any(jnp.isnan(leaf)): return True`: the same, written out."""
    test = _left_by(node)
    if test is None or not _is_truth(test, source) or not _goes_over_a_tree(node.iter, source):
        return
    if _is_called_often(node, source):
        yield source.finding(
            test,
            "the host waits for one truth after the other",
            write="`any(jax.device_get([... for ...]))`, which starts all copies before it waits, or one jitted "
            "function of the whole tree",
        )


def _left_by(loop: cst.For) -> cst.BaseExpression | None:
    """What a loop asks, `if ...: return True`, where it does nothing else."""
    match loop.body:
        case cst.IndentedBlock(body=[cst.If(test=test, body=cst.IndentedBlock(body=[*_, line]), orelse=None)]):
            last = line.body[-1] if isinstance(line, cst.SimpleStatementLine) else None
            return test if isinstance(last, cst.Return | cst.Break) else None
    return None


def _is_called_often(node: cst.For, source: Source) -> bool:
    """Whether a loop is around, or loops call the function: a method also where nobody sees whose it is, and no other
    class has one of that name."""
    function = source.function(node)
    if isinstance(source.loop(node), cst.For | cst.While):
        return True
    if function is None or _CHECKS.match(last_name(source.scope(node))):
        return False
    place = source.body_place(function)
    return runs_often(source.project, place) or is_method_of_a_loop(source.project, place)


def _asked(node: cst.Call, source: Source) -> str | None:
    """`all` or `any`, where that is asked of truths that are computed one after the other."""
    match node:
        case cst.Call(func=cst.Name("all" | "any" as asked)) if (truth := _each_asked(node, source)) is not None:
            return asked if _is_truth(truth[0], source) else None
    return None


def _each_asked(node: cst.Call, source: Source) -> tuple[cst.BaseExpression, cst.BaseExpression] | None:
    """What is asked of each, and of what: of `any(f(x) for x in xs)`, `any([f(x) for x in xs])` or `any(map(lambda x:
    f(x), xs))`."""
    match node.args:
        case [cst.Arg(value=cst.Call(func=cst.Name("list" | "tuple")) as inner)]:
            return _each_asked(inner, source)
        case [cst.Arg(value=cst.GeneratorExp(elt=truth, for_in=over) | cst.ListComp(elt=truth, for_in=over))]:
            return truth, over.iter
        case [
            cst.Arg(
                value=cst.Call(
                    func=cst.Name("map"), args=[cst.Arg(value=cst.Lambda(body=truth)), cst.Arg(value=over_all)]
                )
            )
        ]:
            return truth, over_all
    return None


def _condition(node: cst.CSTNode, source: Source) -> cst.CSTNode:
    """All of the condition that `node` is part of: `all(...) and not any(...)`."""
    while isinstance(above := source.parent(node), cst.BooleanOperation | cst.UnaryOperation):
        node = above
    return node


def _is_truth(node: cst.BaseExpression, source: Source) -> bool:
    match node:
        case cst.Call(func=cst.Attribute(value=cst.Call() as owner, attr=cst.Name("all" | "any"))):
            return _is_truth(owner, source)
        case cst.Call(func=cst.Name("bool"), args=[cst.Arg(value=asked)]):
            return _is_truth(asked, source)
        case cst.UnaryOperation(operator=cst.Not() | cst.BitInvert(), expression=asked):
            return _is_truth(asked, source)
        case cst.BooleanOperation(left=left, right=right):
            return _is_truth(left, source) and _is_truth(right, source)
        case cst.Call(func=function):
            return source.qualified_name(function) in _TRUTHS
    return False


def _runs_often(node: cst.Call, source: Source) -> bool:
    loop = source.loop(node)
    if _CHECKS.match(last_name(source.scope(node))):
        return False  # settings, once, or what is computed, beside what it took to compute it
    if isinstance(loop, cst.For | cst.While) and _trains_in(loop, source):
        return False  # a few waits beside a step that trains, which takes a thousand times as long
    if loop is not None:
        return isinstance(loop, cst.For | cst.While)
    return _are_many(node, source) and is_run_often(node, source)


def _trains_in(loop: cst.For | cst.While, source: Source) -> bool:
    """Whether a loop calls what is seen to take gradients and to be a step of an optimizer."""
    return any(trains(call.func, source) and takes_gradients(call.func, source) for call in calls(loop.body))


def _are_many(node: cst.Call, source: Source) -> bool:
    """Whether what is asked goes over the leaves or the values of a tree. Of what a function is handed, or an object
    keeps, there may be one or two, which a wait more or less for each is nothing beside what the function does."""
    asked = _each_asked(node, source)
    return asked is not None and _goes_over_a_tree(asked[1], source)


def _goes_over_a_tree(over: cst.BaseExpression, source: Source) -> bool:
    return any(_OF_A_TREE.search(dotted(call.func)) for call in calls(source.meant(over)))


def _finding(found: list[Read], source: Source) -> Finding:
    where = {read.node: source.location(read.node) for read in found}
    found = sorted(found, key=lambda read: (where[read.node].line, where[read.node].column))
    names = list(dict.fromkeys(read.what for read in found))
    if len(names) == 1:
        message, at_once = (
            f"the host waits for each part of `{names[0]}` by itself",
            "one `jax.device_get` of the whole",
        )
    else:
        message = "the host waits for " + ", then for ".join(f"`{name}`" for name in names)
        at_once = f"`jax.device_get(({', '.join(names)}))`"
    write = f"{at_once}, which starts all copies before it waits for the first"
    edits = read_at_once(found, source)
    return source.finding(found[0].node, message, write=write, edits=edits, safe=bool(edits))
