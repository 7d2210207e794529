"""A `while_loop` whose length the data decides, in vectorized code or in a training step."""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

from fusionlint.finding import Finding
from fusionlint.lazily import regex
from fusionlint.patterns.at import elements, inside
from fusionlint.patterns.branches import function_named, written_by
from fusionlint.patterns.calls import argument
from fusionlint.patterns.environments import in_environment
from fusionlint.patterns.loop_bodies import bodies_of, definitions, is_small
from fusionlint.patterns.often import is_for_a_picture, runs_often
from fusionlint.patterns.step import Body
from fusionlint.patterns.step_writes import carried, result
from fusionlint.patterns.turns import WHILE, turn_of, walk
from fusionlint.patterns.under import under_map, under_vmap
from fusionlint.rule import Rule
from fusionlint.source.places import Place
from fusionlint.source.tree import Source
from fusionlint.source.walk import dotted

rule = Rule(__name__, harm="fusion")

_KEY = regex(r"(^|_)(key|rng|prng)s?(_|$)")
_TESTS = ("jax.numpy.any", "jax.numpy.all")
_COUNTS = ("jax.numpy.sum", "jax.numpy.count_nonzero")
_SIZES = ("jax.numpy.abs", "jax.numpy.absolute", "jax.numpy.linalg.norm", "jax.numpy.square", "abs", "jax.lax.abs")
_TOLERANCE = regex(r"(^|_)([ar]?tol|[ar]tols|eps|epsilon|tolerance|precision|threshold)(_|$)", re.I)
_SMALL = 1e-3
_STEP = regex(r"(^|_)step(_env)?$")
# Whose step it is, or what it is handed, where it is an environment's.
_OF_A_GAME = regex(r"(^|[._])(env|envs|environment|game|action|actions)(_|$)")
_EPISODES = 1
# A helper of a turn is seldom further away than this.
_HELPERS = 2


@rule.source("Call", calls=(WHILE,))
def until_the_slowest_is_done(node: cst.Call, source: Source) -> Iterator[Finding]:
    """The loop's turns are small, or each is a step of an episode, and its condition is more than a count."""
    if not source.calls(node, WHILE) or not source.is_traced(node):
        return
    if is_for_a_picture(source.project, source.place(node)):
        return
    bodies = bodies_of(node, source)
    functions = definitions(bodies, source)
    tests = _tests(node, source)
    if len(tests) != 1 or any(_only_counts(node, tests[0], body, source) for body in functions):
        return
    if functions and all(_plays(body) for body in functions):
        if under_vmap(node, source) and not under_map(node, source) and not _settles(tests[0], source):
            yield source.finding(
                node,
                "vectorized, this episode goes on until the longest is done, and each turn chooses all of the state, "
                "arrays and all, between the old and the new",
                write="one loop around a `jax.vmap` of a step, while any episode goes on; what is read at the end, the "
                "sums and `done`, alone keeps what it was where an episode is over",
                pair=_EPISODES,
            )
        return
    if not bodies or not all(is_small(source.project, body) for body in bodies) or walk(node, source) is not None:
        return
    if any(_follows(body, source) or _descends(tests[0], body, source) or _halves(body, source) for body in functions):
        return
    if any(_walks(body, source) for body in functions):
        return
    looked_at = [*functions, *tests]
    if (under_vmap(node, source) or in_environment(node, source)) and not under_map(node, source):
        written = [f for f in functions if _writes(f, source)]
        searches = any(map(_searches, looked_at))
        empties = any(_empties(tests[0], body, source) for body in functions)
        if (searches and not any(map(_grows, written))) or not (
            empties or any(_grows(f) or _settles(f, source) or _converges(f, source) for f in looked_at)
        ):
            yield source.finding(
                node,
                "vectorized, this loop runs until the slowest is done, and chooses the whole carry in each turn",
                write=_advice(searches and not written, source),
            )
    elif _settles(tests[0], source) and _in_step(node, source):
        yield source.finding(
            node,
            "this step waits for a loop whose length the data decides, and nothing fuses across it",
            write="a fixed number of turns in each step, a jax.lax.fori_loop with a mask, or all places that fail the "
            "test at once; or do it every so many steps",
        )


def _advice(searches: bool, source: Source) -> str:
    if not searches:
        return "the array form of all turns at once, or a known number of turns under a mask, which can be unrolled"
    jnp = source.alias("jax.numpy") or "jnp"
    return f"a test of all places at once: {jnp}.argmax of it is the first that passes, {jnp}.any whether one does"


def _plays(body: Body) -> bool:
    """Whether a turn takes a step of an environment: `env.step(state, action)`, `step_env(key, state, action)`."""
    return any(_is_of_a_game(node) for node in inside(body.body) if isinstance(node, cst.Call))


def _is_of_a_game(call: cst.Call) -> bool:
    owner, _, name = dotted(call.func).rpartition(".")
    if not _STEP.search(name):
        return False
    handed = (dotted(read) for arg in call.args for read in inside(arg.value))
    return any(_OF_A_GAME.search(text) for text in (owner, name, *handed))


def _settles(function: Body, source: Source) -> bool:
    """Whether the loop asks if anything in an array still changes: a fill or an iteration to a fixed point."""
    return any(_asks_all(node, source) for node in inside(function.body))


def _empties(test: Body, body: Body, source: Source) -> bool:
    """Whether the loop goes on while anything is left of a mask of which each turn takes something away,
    `jnp.sum(left) > 0` of `left = jnp.where(found, 0, left)`: what to take, only the last turn's rest says."""
    if not test.params.params:
        return False
    match result(test):
        case cst.Comparison(
            left=cst.Call(args=[cst.Arg(value=mask)]) as counted,
            comparisons=[cst.ComparisonTarget(operator=cst.GreaterThan(), comparator=cst.Integer("0"))],
        ) if source.calls(counted, *_COUNTS):
            here = list(_handed_on(body, source))
            number = _number_in_carry(mask, test, source)
            return number is not None and number < len(here) and _takes_from(*here[number], source)
    return False


def _number_in_carry(part: cst.BaseExpression, test: Body, source: Source) -> int | None:
    """Which part of the carry is asked about: 1 of `state[1]`, or of `left` behind `rank, left = state`."""
    carry = test.params.params[-1].name
    match part:
        case cst.Subscript(value=cst.Name(value), slice=[cst.SubscriptElement(cst.Index(cst.Integer() as number))]):
            return number.evaluated_value if value == carry.value else None
    asked = [name.value for name in carried(carry, source)]
    return asked.index(part.value) if isinstance(part, cst.Name) and part.value in asked else None


def _takes_from(mask: cst.Name, value: cst.BaseExpression, source: Source) -> bool:
    """`jnp.where(found, 0, mask)`."""
    made = source.meant(value)
    match made:
        case cst.Call(args=[_, _, cst.Arg(value=cst.Name(kept))]) if source.calls(made, "jax.numpy.where"):
            return kept == mask.value
    return False


def _converges(function: Body, source: Source) -> bool:
    """Whether the loop goes on until a step is small enough, `jnp.abs(term) < tol * jnp.abs(total)`, `old - new > tol`:
    a series or an iterative solver, of which nobody knows how many turns it takes."""
    return any(isinstance(node, cst.Comparison) and _is_of_sizes(node, source) for node in inside(function.body))


def _is_of_sizes(comparison: cst.Comparison, source: Source) -> bool:
    sides = [comparison.left, *(target.comparator for target in comparison.comparisons)]
    sized = [_is_difference(side) or any(source.calls(part, *_SIZES) for part in inside(side)) for side in sides]
    tolerated = [any(map(_is_tolerance, inside(side))) for side in sides]
    return len(sides) == 2 and ((sized[0] and tolerated[1]) or (sized[1] and tolerated[0]))


def _is_difference(side: cst.BaseExpression) -> bool:
    return isinstance(side, cst.BinaryOperation) and isinstance(side.operator, cst.Subtract)


def _is_tolerance(node: cst.CSTNode) -> bool:
    match node:
        case cst.Name(value=name):
            return bool(_TOLERANCE.search(name))
        case cst.Float():
            return 0.0 < node.evaluated_value <= _SMALL
    return False


def _asks_all(node: cst.CSTNode, source: Source) -> bool:
    match node:
        case cst.Call(func=cst.Attribute(attr=cst.Name("any" | "all")), args=[]):
            return True
    return source.calls(node, *_TESTS)


def _grows(body: Body) -> bool:
    """Whether a turn draws random numbers: a maze that grows, or a draw that may be rejected, has no array form."""
    return any(isinstance(node, cst.Name) and _KEY.search(node.value) for node in inside(body))


def _writes(body: Body, source: Source) -> bool:
    """Whether a turn writes to an array that the next one goes by, or the loop is there to make."""
    return any(True for _ in written_by(body, source, depth=1))


def _tests(loop: cst.Call, source: Source) -> list[Body]:
    """The functions of this file that say whether the loop goes on."""
    given = argument(loop, 0, "cond_fun")
    if isinstance(given, cst.Lambda):
        return [given]
    if not isinstance(given, cst.Name):
        return []
    qualified = source.qualified_name(given)
    found = source.project.find(qualified)
    return definitions([found], source) if found is not None else []


def _only_counts(loop: cst.Call, test: Body, body: Body, source: Source) -> bool:
    """Whether the loop goes on while its counter has not reached something that the loop does not change."""
    match result(test):
        case cst.Comparison(left=left, comparisons=[cst.ComparisonTarget(comparator=limit)]) if test.params.params:
            carry = test.params.params[0].name.value
        case _:
            return False
    if any(isinstance(node, cst.Name) and node.value == carry for node in inside(limit)):
        return False
    match left:
        case cst.Subscript(value=cst.Name(value)) | cst.Attribute(value=cst.Name(value)) if value == carry:
            if _steps(body, source.code(left)[len(carry) :], source):
                return True
    turn = turn_of(loop, body, source)
    if turn is None:
        return False
    match left:
        case cst.Subscript(value=cst.Name(value), slice=[cst.SubscriptElement(slice=cst.Index(value=index))]):
            place = turn.carried.index(turn.counter)
            return value == carry and isinstance(index, cst.Integer) and index.evaluated_value == place
        case cst.Name(value):
            return value == (carry if len(turn.carried) == 1 else turn.counter.value)
    return False


def _descends(test: Body, body: Body, source: Source) -> bool:
    """Whether the loop goes on by a place that each turn doubles or halves, `i < size` of `i = 2 * i + right`: the
    levels of a tree, as many for all."""
    if not test.params.params or not body.params.params:
        return False
    asked, here = (carried(one.params.params[-1].name, source) for one in (test, body))
    match result(test):
        case cst.Comparison(left=cst.Name(place)) if len(asked) == len(here):
            same = {own.value for name, own in zip(asked, here, strict=True) if name.value == place}
            return any(_is_of_a_level(part, same) for part in inside(body.body))
    return False


def _halves(body: Body, source: Source) -> bool:
    """Whether a number of the carry is handed on halved or doubled, `return t // 2, place`: as many turns as that takes
    are few, and nearly as many for all."""
    return any(_is_of_a_level(source.meant(value), {place.value}) for place, value in _handed_on(body, source))


def _walks(body: Body, source: Source) -> bool:
    """Whether a turn takes the next place off a stack that it carries, `stack[top]`, and puts others there: a walk over
    a tree, of which nobody knows before where it leads."""
    if not body.params.params:
        return False
    parts = carried(body.params.params[-1].name, source)
    stacks, names = {part.value for part in parts if _is_written_by(body, part, source)}, {part.value for part in parts}
    reads = (node for node in inside(body.body) if isinstance(node, cst.Subscript))
    return any(_is_on_top(read, stacks, names) for read in reads)


def _is_written_by(function: Body, array: cst.Name, source: Source, depth: int = _HELPERS) -> bool:
    """Whether a function writes to what it calls so, itself or by a helper, `push(stack, top, child)`."""
    for node in inside(function.body):
        if _array_written(node) == array.value:
            return True
        helper = function_named(node.func, source) if isinstance(node, cst.Call) and depth else None
        if isinstance(node, cst.Call) and helper is not None:
            received = _received(node, array, helper)
            if any(_is_written_by(helper, parameter, source, depth - 1) for parameter in received):
                return True
    return False


def _array_written(node: cst.CSTNode) -> str | None:
    """stack, of `stack.at[top + 1].set(child)`."""
    match node:
        case cst.Subscript(value=cst.Attribute(value=cst.Name(array), attr=cst.Name("at"))):
            return array
    return None


def _is_on_top(read: cst.Subscript, stacks: set[str], names: set[str]) -> bool:
    match read:
        case cst.Subscript(value=cst.Name(array), slice=[cst.SubscriptElement(slice=cst.Index(value=cst.Name(top)))]):
            return array in stacks and top in names and top != array
    return False


def _handed_on(body: Body, source: Source) -> Iterator[tuple[cst.Name, cst.BaseExpression]]:
    """The parts of the carry, each with what the next turn gets of it."""
    returned = result(body)
    if not body.params.params or returned is None:
        return
    here = carried(body.params.params[-1].name, source)
    following = [e.value for e in returned.elements] if isinstance(returned, cst.Tuple) else [returned]
    if len(here) == len(following):
        yield from zip(here, following, strict=True)


def _is_of_a_level(part: cst.CSTNode, names: set[str]) -> bool:
    """`i << 1`, `2 * i`, `i // 2`, `(i + 1) // 2`."""
    match part:
        case cst.BinaryOperation(
            left=cst.BinaryOperation(left=cst.Name(place), operator=cst.Add(), right=cst.Integer()),
            operator=cst.FloorDivide() | cst.RightShift(),
            right=cst.Integer(),
        ):
            return place in names
        case (
            cst.BinaryOperation(
                left=cst.Name(place),
                operator=cst.LeftShift() | cst.RightShift() | cst.Multiply() | cst.FloorDivide(),
                right=cst.Integer(),
            )
            | cst.BinaryOperation(left=cst.Integer(), operator=cst.Multiply(), right=cst.Name(place))
        ):
            return place in names
    return False


def _steps(body: Body, part: str, source: Source) -> bool:
    """Whether the body adds one to this part of its carry, `[0]` or `.count`."""
    following = {f"{parameter.name.value}{part} + 1" for parameter in body.params.params}
    return any(isinstance(node, cst.BinaryOperation) and source.code(node) in following for node in inside(body))


def _searches(function: Body) -> bool:
    """Whether the function reads an array where its carry says."""
    if not function.params.params:
        return False
    carry = function.params.params[-1].name
    names = {carry.value}
    for node in inside(function.body):
        match node:
            case cst.Assign(targets=[cst.AssignTarget(target=cst.Tuple(elements=parts))], value=cst.Name(value)):
                if value == carry.value:
                    names.update(part.value.value for part in parts if isinstance(part.value, cst.Name))
    reads = (node for node in inside(function.body) if isinstance(node, cst.Subscript))
    return any(
        isinstance(name, cst.Name) and name.value in names
        for read in reads
        if not isinstance(read.value, cst.Attribute) or read.value.attr.value not in ("at", "shape")
        for part in elements(read.slice)
        for name in inside(part)
    )


def _follows(body: Body, source: Source) -> bool:
    """Whether the next place is what stands at this one, `i = parent[i]`: where it leads nobody knows before."""
    return any(_is_read_at(value, place, source) for place, value in _handed_on(body, source))


def _is_read_at(value: cst.BaseExpression, place: cst.Name, source: Source) -> bool:
    meant = source.meant(value)
    match meant:
        case cst.Call(args=[_, cst.Arg(value=one), cst.Arg(value=other)]) if source.calls(meant, "jax.numpy.where"):
            return any(_is_read_at(part, place, source) for part in (one, other))
        case cst.Call(func=called) if (function := function_named(called, source)) is not None:
            returned = result(function)
            return returned is not None and any(
                _is_read_at(returned, parameter, source) for parameter in _received(meant, place, function)
            )
        case cst.Subscript(value=array, slice=slices) if (
            not isinstance(array, cst.Attribute) or array.attr.value != "at"
        ):
            read = (node for part in elements(slices) for node in inside(part))
            return any(isinstance(node, cst.Name) and node.value == place.value for node in read)
    return False


def _received(call: cst.Call, place: cst.Name, function: Body) -> Iterator[cst.Name]:
    """What `function` calls what `call` hands it of `place`, in its position."""
    for parameter, arg in zip(function.params.params, call.args, strict=False):
        if isinstance(arg.value, cst.Name) and arg.value.value == place.value and arg.keyword is None and not arg.star:
            yield parameter.name


def _in_step(node: cst.CSTNode, source: Source) -> bool:
    function = source.function(node)
    return function is not None and runs_often(source.project, Place(source.path, source.body_scope(function)))
