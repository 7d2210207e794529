"""A random key that each step of a `lax` loop makes for itself: split from the carry, or folded from the counter."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from fusionlint.finding import Finding
from fusionlint.patterns.code.at import inside, names_read
from fusionlint.patterns.code.calls import REPLACES, argument
from fusionlint.patterns.code.functions import Function, definitions
from fusionlint.patterns.compiled.of_jax import is_loop_of_jax, is_path_of_jax
from fusionlint.patterns.compiled.readers import writer_of
from fusionlint.patterns.runs.loop_bodies import bodies_of, is_small, loop_bodies
from fusionlint.patterns.values.kinds import kind
from fusionlint.rule import Rule
from fusionlint.source.answers import of_project
from fusionlint.source.facts import NOTHING
from fusionlint.source.places import Place
from fusionlint.source.project import Project
from fusionlint.source.tree import Source
from fusionlint.source.walk import dotted

if TYPE_CHECKING:
    from fusionlint.hlo import parse as hlo
    from fusionlint.hlo.barriers import Barrier

rule = Rule(__name__, harm="fusion")

_FORI = "jax.lax.fori_loop"
_SPLIT, _FOLD = "jax.random.split", "jax.random.fold_in"
_MAKES_KEYS = ("_threefry_split", "_threefry_fold_in", "random_split", "random_fold_in")
_BRANCHES = ("jax.lax.cond", "jax.lax.switch", "jax.lax.select")
_DEPTH = 4


def _making_keys(source: Source) -> Iterator[str]:
    """The loop bodies of the file that are small and make keys: asked of the facts."""
    places = {place for name in (_SPLIT, _FOLD) for place, _ in source.called(name)}
    return (place.scope for place in places if _is_small_step(place, source))


@rule.source("Call", when=_making_keys, needs=(_SPLIT, _FOLD))
def key_made_in_every_step(node: cst.Call, source: Source) -> Iterator[Finding]:
    """The first such call of each loop body that is small."""
    body = source.function(node)
    if body is None or not _makes_a_key(node, body, source):
        return
    step = source.body_place(body)
    if not _is_small_step(step, source) or _moves_a_generator(step, source):
        return
    calls = [n for n in inside(body.body, cst.Call) if source.function(n) is body]
    if next(call for call in calls if _makes_a_key(call, body, source)) is not node:
        return
    if _is_of_unknown_length(body, source):
        return
    if calls == [node] and _returns_a_name(body):
        return  # the loop is there to move the key on: nothing in a step uses what a split before it would give
    key = source.code(node.args[0].value)
    if source.calls(node, _SPLIT):
        message = "each step splits the carried key, in kernels of its own that the next step waits for"
        write = f"split once before the loop, `keys = {source.code(node.func)}({key}, n)`, and scan over the keys"
    else:
        message = "each step folds its number into the key, in kernels of its own"
        write = (
            f"before the loop, `keys = jax.vmap({source.code(node.func)}, (None, 0))({key}, steps)`; scan over the keys"
        )
    yield source.finding(node, message, write=write, pair=0 if source.calls(node, _SPLIT) else 1)


def _is_of_unknown_length(body: Function, source: Source) -> bool:
    """Whether an array says how many steps the loop takes, `fori_loop(0, count, ...)` of a count that was drawn or that
    a cond chose: how many keys are to be split, nobody can say."""
    loops = source.calls_of((_FORI,))
    own = (loop for loop in loops if body in definitions(bodies_of(loop, source), source))
    ends = [argument(loop, place, name) for loop in own for place, name in enumerate(("lower", "upper"))]
    return any(end is not None and (kind(end, source) == "array" or _is_chosen(end, source)) for end in ends)


def _is_chosen(end: cst.BaseExpression, source: Source) -> bool:
    """Whether this counts with what a branch of jax.lax gave, `n + 1` of `n = jax.lax.cond(...)`."""
    return any(source.calls(source.meant(name), *_BRANCHES) for name in names_read(end))


@rule.barrier
def keys_of_every_step(barrier: Barrier, module: hlo.Module) -> str | None:
    """Bits that a split or a fold-in made in a loop's body, at its line: a draw may be of one kernel with it."""
    if barrier.cause != "random bits":
        return None
    writer = writer_of(barrier, module)
    inside = module.body(writer)
    every = (writer, *(inside.instructions.values() if inside else ()))
    steps = [step for step in every if step.stack == barrier.stack]
    loops = {loop for step in steps if (loop := _loop_around_the_split(step, module))}
    is_counted = any(_is_of_known_length(loop, barrier.computation, module) for loop in loops)
    return "split the key once before the loop and scan over the keys" if is_counted else None


def _loop_around_the_split(step: hlo.Instruction, module: hlo.Module) -> str | None:
    """The op_name of the user's loop in whose body a split stands, None without one: jax.random.gamma has one of its
    own, whose keys are nobody's."""
    name = next((name for name in _MAKES_KEYS if name in step.op_name), None)
    before = step.op_name.partition(name)[0] if name else ""
    loop, inside, _ = before.rpartition("/body")
    is_theirs = inside and not is_path_of_jax(before, step.stack) and not is_loop_of_jax(loop, step, module)
    return loop if is_theirs else None


def _is_of_known_length(op_name: str, computation: str, module: hlo.Module) -> bool:
    """Whether the loop of that op_name around a computation has a length: of one that ends when it ends nobody knows
    how many keys to split before."""
    from fusionlint.hlo.trips import trip_count

    for name, caller in module.callers(computation):
        if caller.opcode == "while" and caller.op_name == op_name:
            return trip_count(module, module.computations[name], caller) is not None
        if _is_of_known_length(op_name, name, module):
            return True
    return False


def _is_small_step(place: Place, source: Source) -> bool:
    return place in _steps(source.project) and is_small(source.project, place, is_step=True)


def _moves_a_generator(step: Place, source: Source) -> bool:
    """Whether an object that keeps the key runs the step alone too, `self.key, x = self.draw(self.key, None)`: numbers
    drawn together are to be those drawn one by one, so the splits are what they are."""
    name = f".{step.scope.rpartition('.')[2]}"
    alone = (c.value for c in source.facts.calls if c.value.callee and c.value.callee.name.endswith(name))
    handed = (next(iter(call.arguments), NOTHING) for call in alone)
    return any(part.name.startswith("self.") for carry in handed for part in (carry, *carry.arguments))


@of_project
def _steps(project: Project) -> frozenset[Place]:
    """The bodies of loops, and what a body hands its carry on to: `def body(carry, _): return step(*carry), None`."""
    bodies = loop_bodies(project)
    return frozenset((*bodies, *(step for body in bodies for step in _handed_on(project, body))))


def _handed_on(project: Project, body: Place) -> Iterator[Place]:
    function = project.function_at(body)
    for returned in function.returns if function else ():
        carry = next(iter(returned.arguments), NOTHING) if not returned.is_call else returned
        if carry.is_call and (found := project.find(project.callee(body, carry))):
            yield found


def _makes_a_key(call: cst.Call, body: Function, source: Source) -> bool:
    if source.calls(call, _SPLIT):
        return _is_of(body, argument(call, 0, "key"), source) and _goes_round(call, source)
    if source.calls(call, _FOLD):
        key, number = argument(call, 0, "key"), argument(call, 1, "data")
        # A key of the carry or of the step itself would be another one in each step.
        return key is not None and bool(dotted(key)) and not _is_of(body, key, source) and _is_of(body, number, source)
    return False


def _is_of(body: Function, node: cst.BaseExpression | None, source: Source) -> bool:
    """Whether `node` is a variable of `body` or a field of one, and not what it sees from outside."""
    while isinstance(node, cst.Attribute | cst.Subscript):
        node = node.value
    if not isinstance(node, cst.Name):
        return False
    bound = source.facts.lookup(source.scope(node), node.value)
    return bound is not None and bound[0] == source.body_scope(body)


def _goes_round(split: cst.Call, source: Source) -> bool:
    """Whether a key that `split` makes is returned in the carry: `key, sub = split(key)`, or `keys = ...; keys[0]`."""
    match source.parent(split):
        case cst.Assign(targets=[cst.AssignTarget(target=target)]):
            names = [target] if isinstance(target, cst.Name) else []
            if isinstance(target, cst.Tuple | cst.List):
                names = [e.value for e in target.elements if isinstance(e.value, cst.Name)]
            return any(_is_returned(read, source, _DEPTH) for name in names for read in source.reads(name))
    return False


def _is_returned(read: cst.CSTNode, source: Source, depth: int) -> bool:
    """Whether `read` is part of what the body returns for the next step, directly or in a tuple, a state, a name."""
    if depth == 0:
        return False
    below, above = read, source.parent(read)
    while above is not None and _holds(above, below, source):
        if isinstance(above, cst.Tuple) and isinstance(source.parent(above), cst.Return) and len(above.elements) == 2:
            return above.elements[0] is below
        below, above = above, source.parent(above)
    match above:
        case cst.Return():
            return True
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Name() as name)]):
            return any(_is_returned(again, source, depth - 1) for again in source.reads(name))
    return False


def _returns_a_name(body: Function) -> bool:
    """Whether the body is one that carries a single value and nothing else."""
    statements = body.body.body if isinstance(body, cst.FunctionDef) else ()
    match statements[-1] if statements else None:
        case cst.SimpleStatementLine(body=[cst.Return(value=cst.Name())]):
            return True
    return False


def _holds(above: cst.CSTNode, below: cst.CSTNode, source: Source) -> bool:
    """Whether `above` keeps `below` as it is: a tuple, `keys[0]`, `state.replace(key=key)`, `State(key=key)`."""
    match above:
        case cst.Tuple() | cst.Element() | cst.List() | cst.Dict() | cst.DictElement() | cst.Arg():
            return True
        case cst.Subscript(value=value):
            return value is below
        case cst.Call(func=cst.Attribute(attr=cst.Name(name))) if name in REPLACES:
            return True
        case cst.Call(func=function):
            name = source.qualified_name(function) or dotted(function)
            return name == "dataclasses.replace" or name.rpartition(".")[2].rpartition(":")[2][:1].isupper()
    return False
