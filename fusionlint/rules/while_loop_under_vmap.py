"""A `while_loop` whose length the data decides, in vectorized code or in a training step."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import libcst as cst

from fusionlint.finding import Finding
from fusionlint.lazily import regex
from fusionlint.patterns.branches.conditional import DEPTH, written_by
from fusionlint.patterns.code.at import inside, names_in
from fusionlint.patterns.code.functions import Function, behind_a_lambda, definitions
from fusionlint.patterns.compiled.of_jax import is_loop_of_jax, is_path_of_jax
from fusionlint.patterns.compiled.readers import source_of, uses_of
from fusionlint.patterns.compiled.words import in_bytes, line_of
from fusionlint.patterns.loops.turns import WHILE, walk
from fusionlint.patterns.loops.until import converges, empties, only_counts, settles, spreads, tests_of
from fusionlint.patterns.loops.wander import descends, follows, goes_on_from, halves, searches, walks
from fusionlint.patterns.runs.loop_bodies import bodies_of, is_small
from fusionlint.patterns.runs.often import is_run_often
from fusionlint.patterns.runs.under import is_vectorized, under_map, under_vmap
from fusionlint.rule import Rule
from fusionlint.source.tree import Source
from fusionlint.source.walk import dotted

if TYPE_CHECKING:
    from fusionlint.hlo import parse as hlo
    from fusionlint.hlo.barriers import Barrier

rule = Rule(__name__, harm="fusion")

_KEY = regex(r"(^|_)(key|rng|prng)s?(_|$)")
_STEP = regex(r"(^|_)step(_env)?$")
# Whose step it is, or what it is handed, where it is an environment's.
_OF_A_GAME = regex(r"(^|[._])(env|envs|environment|game|action|actions)(_|$)")
_EPISODES = 1
# Bytes of an array that is written to: an H100 moves that much several times in the time that a launch takes.
_MUCH = 100_000
# How many times more it has than is written to it.
_WHOLE = 8


@rule.source("Call", calls=(WHILE,))
def until_the_slowest_is_done(node: cst.Call, source: Source) -> Iterator[Finding]:
    """The loop's turns are small, or each is a step of an episode, and its condition is more than a count."""
    bodies = bodies_of(node, source)
    functions = [behind_a_lambda(body, source) for body in definitions(bodies, source)]
    tests = tests_of(node, source)
    if len(tests) != 1 or any(only_counts(node, tests[0], body, source) for body in functions):
        return
    if functions and all(_plays(body) for body in functions):
        if under_vmap(node, source) and not under_map(node, source) and not settles(tests[0], source):
            yield _until_the_longest_episode(node, source)
        return
    if not bodies or not all(is_small(source.project, body) for body in bodies) or walk(node, source) is not None:
        return
    if any(follows(body, source) or descends(tests[0], body, source) or halves(body, source) for body in functions):
        return
    if any(walks(body, source) or spreads(tests[0], body, source) or goes_on_from(body, source) for body in functions):
        return
    if is_vectorized(node, source) and not under_map(node, source):
        yield from _vectorized(node, functions, tests[0], source)
    elif settles(tests[0], source) and is_run_often(node, source):
        yield source.finding(
            node,
            "this step waits for a loop whose length the data decides, and nothing fuses across it",
            write="a fixed number of turns in each step, a jax.lax.fori_loop with a mask, or all places that fail the "
            "test at once; or do it every so many steps",
        )


def _until_the_longest_episode(node: cst.Call, source: Source) -> Finding:
    return source.finding(
        node,
        "vectorized, this episode goes on until the longest is done, and each turn chooses all of the state, arrays "
        "and all, between the old and the new",
        write="one loop around a `jax.vmap` of a step, while any episode goes on; what is read at the end, the sums "
        "and `done`, alone keeps what it was where an episode is over",
        pair=_EPISODES,
    )


def _vectorized(node: cst.Call, functions: list[Function], test: Function, source: Source) -> Iterator[Finding]:
    """Of a loop that a `vmap` runs side by side: it searches, or neither it nor its test goes to a fixed point."""
    looked_at = [*functions, test]
    written = [f for f in functions if _writes(f, source)]
    is_search = any(map(searches, looked_at))
    is_emptied = any(empties(test, body, source) for body in functions)
    if (is_search and not any(map(_grows, written))) or not (
        is_emptied or any(_grows(f) or settles(f, source) or converges(f, source) for f in looked_at)
    ):
        yield source.finding(
            node,
            "vectorized, this loop runs until the slowest is done, and chooses the whole carry in each turn",
            write=_advice(is_search and not written, source),
        )


@rule.barrier(pair=_EPISODES)
def written_to_and_chosen_whole(barrier: Barrier, module: hlo.Module) -> str | None:
    """An array that a vectorized loop carries, of which each turn writes a small part."""
    found = _chosen_whole(barrier, module)
    if found is None or found.whole < max(_MUCH, _WHOLE * found.written):
        return None
    where, whole, part = line_of(found.loop), in_bytes(found.whole), in_bytes(found.written)
    return (
        f"vectorized, the loop at {where} copies {whole} in every turn and chooses all of it between old and new, "
        f"for {part} that are written: write one loop around a `jax.vmap` of a turn, while any goes on; "
        "where one is over, write what is there already"
    )


def _advice(is_search: bool, source: Source) -> str:
    if not is_search:
        return "the array form of all turns at once, or a known number of turns under a mask, which can be unrolled"
    jnp = source.jnp
    return f"a test of all places at once: {jnp}.argmax of it is the first that passes, {jnp}.any whether one does"


def _plays(body: Function) -> bool:
    """Whether a turn takes a step of an environment: `env.step(state, action)`, `step_env(key, state, action)`."""
    return any(_is_of_a_game(node) for node in inside(body.body, cst.Call))


def _is_of_a_game(call: cst.Call) -> bool:
    owner, _, name = dotted(call.func).rpartition(".")
    if not _STEP.search(name):
        return False
    handed = (dotted(read) for arg in call.args for read in inside(arg.value))
    return any(_OF_A_GAME.search(text) for text in (owner, name, *handed))


def _grows(body: Function) -> bool:
    """Whether a turn draws random numbers: a maze that grows, or a draw that may be rejected, has no array form."""
    return any(_KEY.search(node.value) for node in names_in(body))


def _writes(body: Function, source: Source) -> bool:
    """Whether a turn writes to an array that the next one goes by, or the loop is there to make, itself or by what it
    calls."""
    return any(True for _ in written_by(body, source, DEPTH))


@dataclass(frozen=True, slots=True)
class _Chosen:
    """What is written to and chosen whole: the loop, the bytes of the array, and of what a turn writes to it."""

    loop: hlo.Instruction
    whole: int
    written: int


def _chosen_whole(barrier: Barrier, module: hlo.Module) -> _Chosen | None:
    """Of the copy that is written to, of what is written, and of what is chosen: each crosses memory whole."""
    loop = next((one for _, one in module.callers(barrier.computation) if one.opcode == "while"), None)
    if loop is None or not loop.stack or is_path_of_jax(loop.op_name, loop.stack):
        return None
    here = module.computations[barrier.computation]
    writer = here.instructions[barrier.writer]
    before = [made for operand in writer.operands if (made := source_of(operand, here)).opcode != "parameter"]
    for update in (writer, *_kernels_reading(writer, here), *before):
        found = _written_and_chosen(update, here, loop, module)
        if found and not is_loop_of_jax(loop.op_name, update, module) and _takes_part(writer, update, loop, module):
            return found
    return None


def _written_and_chosen(
    update: hlo.Instruction, here: hlo.Computation, loop: hlo.Instruction, module: hlo.Module
) -> _Chosen | None:
    from fusionlint.hlo.flow import element, leaves
    from fusionlint.hlo.work import updated_in_place

    for path, _ in leaves(update.shape):
        written = updated_in_place(module, (here.name, update.name), path)
        shape = element(update.shape, path)
        if written and any(_chooses(step, loop, shape) for step in _read_by(update, here, module)):
            return _Chosen(loop, shape.nbytes, written[1])
    return None


def _takes_part(writer: hlo.Instruction, update: hlo.Instruction, loop: hlo.Instruction, module: hlo.Module) -> bool:
    """Whether a kernel is the update, the copy that it writes to, or what chooses."""
    chooses = any(step.opcode == "select" and step.op_name == loop.op_name for step in module.work_of(writer))
    return writer is update or writer.opcode == "copy" or chooses


def _chooses(step: hlo.Instruction, loop: hlo.Instruction, shape: hlo.Shape) -> bool:
    return step.opcode == "select" and step.op_name == loop.op_name and step.shape.dims == shape.dims


def _read_by(value: hlo.Instruction, here: hlo.Computation, module: hlo.Module) -> Iterator[hlo.Instruction]:
    """The work of the kernels that read a value."""
    return (step for reader in _kernels_reading(value, here) for step in module.work_of(reader))


def _kernels_reading(value: hlo.Instruction, here: hlo.Computation) -> Iterator[hlo.Instruction]:
    return (user for user, _ in uses_of(value.name, here.instructions) if user.opcode != "tuple")
