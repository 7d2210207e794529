"""A `lax.cond` in a loop that writes a place of a buffer, or hands the whole buffer back as it is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from fusionlint.finding import Finding
from fusionlint.lazily import regex
from fusionlint.patterns.branches.by_methods import has_a_method_write
from fusionlint.patterns.branches.choices import as_masked_write
from fusionlint.patterns.branches.conditional import (
    CONDITIONALS,
    Branch,
    Conditional,
    conditional,
    is_handed_on,
    is_unchanged,
    only_returns,
    writes,
)
from fusionlint.patterns.branches.moved import moves_a_buffer
from fusionlint.patterns.branches.tests import is_static_test
from fusionlint.patterns.code.at import inside, is_about
from fusionlint.patterns.code.calls import argument, keyword
from fusionlint.patterns.code.functions import Function, function_named
from fusionlint.patterns.code.layout import in_place_of
from fusionlint.patterns.compiled.conditionals import buffers_around, conditionals_at, is_in_a_loop
from fusionlint.patterns.compiled.copied_by_branch import copied_by_a_branch
from fusionlint.patterns.compiled.readers import value_of
from fusionlint.patterns.compiled.words import in_bytes, line_of
from fusionlint.patterns.runs.concrete import is_concrete
from fusionlint.patterns.runs.loop_bodies import all_loop_bodies, is_small, loop_bodies
from fusionlint.patterns.runs.under import is_vectorized, under_loop
from fusionlint.patterns.values.predicates import is_of_python
from fusionlint.rule import Rule
from fusionlint.source.environments import in_environment
from fusionlint.source.tree import Source

if TYPE_CHECKING:
    from fusionlint.hlo import parse as hlo
    from fusionlint.hlo.barriers import Barrier

rule = Rule(__name__, harm="fusion")

_DEPTH = 4
# Bytes of an array that a branch copies: an H100 moves that much in a twentieth of the time that a launch takes.
_MUCH = 100_000
_LONG = regex(r"^jax\..*\.(matmul|dot|einsum|tensordot|dot_general|conv\w*|sort|argsort|lexsort|unique|top_k)$")
_LOOPS = ("jax.lax.while_loop", "jax.lax.fori_loop", "jax.lax.scan")
_DONATES = ("donate_argnums", "donate_argnames")
_REDUCTIONS = tuple(f"jax.numpy.{name}" for name in ("min", "max", "sum", "argmin", "argmax"))


@rule.source("Call", calls=CONDITIONALS)
def buffer_through_a_conditional(node: cst.Call, source: Source) -> Iterator[Finding]:
    """One branch writes, the other does nothing, and a loop runs this step by step."""
    found = conditional(node, source)
    if found is None:
        return
    if is_static_test(found, source) or is_of_python(found.test, source):
        return
    if not any(_writes_little(one, source) and _is_kept(found, one) for one in found.branches):
        return
    if len(found.branches) > 2 and any(_loops(one.function, source) for one in found.branches):
        return  # for that branch the conditional stays
    vmapped = is_vectorized(node, source)
    loops = under_loop(node, source)
    is_step = _is_step(node, source) if vmapped else loops or _is_given_the_buffer(node, source)
    if not is_step or is_concrete(node, source):
        return
    if vmapped and _is_read_on(found, source):
        return  # both are needed, and a choice makes the new one as it copies
    masked = as_masked_write(found, source)
    each = "step" if vmapped or loops else "call"
    yield source.finding(
        node,
        f"every {each} copies the whole buffer through the conditional, where a row of it may change",
        pair=1 if vmapped else 0 if loops else 3,
        write="without the cond: x.at[i].set(jnp.where(p, row, x[i])); of a row that takes long a cond around it",
        edits=(*masked.edits, in_place_of(node, masked.text, source)) if masked is not None else (),
    )


@rule.barrier
def copied_where_nothing_changes(barrier: Barrier, module: hlo.Module) -> str | None:
    """A branch in a loop that copies an array to hand it back, where the other goes over it or writes to it."""
    found = copied_by_a_branch(barrier, module)
    if found is None or found[1] < _MUCH:
        return None
    conditional, size = found
    return (
        f"the branch of the cond at {line_of(conditional)} that changes nothing copies all {in_bytes(size)}: "
        "without the cond, jnp.where(p, new, x); of a write x.at[i].set(jnp.where(p, row, x[i]))"
    )


@rule.source("Call", calls=CONDITIONALS)
def buffer_moved_by_a_conditional(node: cst.Call, source: Source) -> Iterator[Finding]:
    """One branch rolls a buffer by a number that the run knows, the other hands it back, and then it is written to: a
    replay buffer that makes room at its end. It is filled again and again, whoever calls this."""
    found = conditional(node, source)
    if found is None or not moves_a_buffer(found, source):
        return
    yield source.finding(
        node,
        "the whole buffer goes through the conditional, and is moved, to make room at its end",
        pair=2,
        write="a ring: places = (start + jnp.arange(len(new))) % len(buffer), and buffer.at[places].set(new); "
        "what is read counts its places like that too",
    )


@rule.barrier
def buffer_in_and_out(barrier: Barrier, module: hlo.Module) -> str | None:
    """A buffer that a conditional in a loop takes, to write a piece of it or to hand it back."""
    shape = value_of(barrier, module).shape
    if barrier.cause not in ("conditional", "copy") or shape.nbytes < _MUCH:
        return None
    if barrier.detail == "of an argument that is not donated":
        return None  # which a loop copies before it writes to it, whatever the conditional does
    for one in conditionals_at(barrier, module):
        if any(buffer.dims == shape.dims for buffer in buffers_around(one, module)) and is_in_a_loop(one, module):
            return "let the buffer out of the cond: x.at[i].set(jnp.where(p, row, x[i])), which is written in place"
    return None


def _is_given_the_buffer(node: cst.Call, source: Source) -> bool:
    """Whether the function around is compiled, and whoever calls it gives up what it writes to, `donate_argnums=0`:
    in each call the buffer stands where it is, but for the conditional."""
    around = source.ancestors(node, cst.FunctionDef)
    decorators = (each.decorator for function in around for each in function.decorators)
    keywords = (arg.keyword for made in decorators if isinstance(made, cst.Call) for arg in made.args)
    return any(each is not None and each.value in _DONATES for each in keywords)


def _is_read_on(found: Conditional, source: Source) -> bool:
    """Whether the buffer is read behind the conditional too, as it was: a proposal, which may be rejected."""
    written = (array for branch in found.branches for array in writes(branch, source, depth=1))
    buffers = (_handed_in(array, found, source) for array in written if isinstance(array, cst.Name))
    return any(_reads_on(one, found.call, source) for one in buffers if one is not None)


def _handed_in(array: cst.Name, found: Conditional, source: Source) -> cst.Name | None:
    """The name that an array of a branch has outside of it, where it is handed in; else its own."""
    parameter = source.parameter(array)
    owner = source.owner(parameter) if parameter is not None else None
    branch = next((branch for branch in found.branches if branch.function is owner), None)
    if parameter is None or branch is None:
        return array
    own, operands = branch.function.params.params, branch.operands
    place = own.index(parameter) if parameter in own else len(operands)
    operand = operands[place].value if place < len(operands) else None
    return operand if isinstance(operand, cst.Name) else None


def _reads_on(buffer: cst.Name, call: cst.Call, source: Source) -> bool:
    """Whether the value that `buffer` has at `call` is read when that is over."""
    inside_of = set(inside(call))
    later = [use for use in source.uses(buffer) if use.node not in inside_of and use.order > source.order(call)]
    return bool(later) and not later[0].is_write and not is_about(later[0].node, source)


def _is_step(node: cst.Call, source: Source) -> bool:
    """Whether the function around is itself what a loop runs: what it calls is seldom about the carry. What a game
    counts by `fori_loop`, or a scan over numbers, is a board or its pieces, as small as what is written."""
    function = source.function(node)
    if function is None:
        return False
    body = source.body_place(function)
    if in_environment(node, source) and _is_counted(function, source):
        return False
    return body in all_loop_bodies(source.project)


def _is_counted(function: Function, source: Source) -> bool:
    """Whether a loop does nothing but count the turns of `function`: `fori_loop`, a scan over `jnp.arange(n)`."""
    if loop_bodies(source.project).get(source.body_place(function)) == "jax.lax.fori_loop":
        return True
    uses = source.uses(function.name) if isinstance(function, cst.FunctionDef) else ()
    scans = (call for use in uses if (call := source.handed_to(use.node)) and source.calls(call, "jax.lax.scan"))
    counted = (argument(scan, 2, "xs") for scan in scans)
    return any(xs is not None and source.calls(source.meant(xs), "jax.numpy.arange") for xs in counted)


def _is_kept(found: Conditional, written: Branch) -> bool:
    """Whether another branch hands the buffer on as it is, alone or beside what tells that it did,
    `lambda: (archive, jnp.nan)`."""
    return any(is_unchanged(one) or _hands_on_a_part(one, written) for one in found.branches if one is not written)


def _hands_on_a_part(branch: Branch, written: Branch) -> bool:
    if isinstance(branch.function, cst.FunctionDef) and not only_returns(branch.function):
        return False
    match branch.result, written.result:
        case cst.Tuple(elements=kept), cst.Tuple(elements=new) if len(kept) == len(new):
            pairs = zip(kept, new, strict=True)
            return any(is_handed_on(one.value) and isinstance(other.value, cst.Call) for one, other in pairs)
    return False


def _writes_little(branch: Branch, source: Source) -> bool:
    """Whether a branch is small and writes a part of what the conditional is given."""
    if has_a_method_write(branch, source):
        return True
    if is_unchanged(branch) or not is_small(source.project, source.body_place(branch.function)):
        return False
    if any(source.calls(part, *CONDITIONALS) for part in inside(branch.function.body)):
        return False  # what is written where is another choice: no masked write says it
    if _goes_through_all(branch.function, source):
        return False
    return not _works_long(branch.function, source) and any(True for _ in writes(branch, source))


def _goes_through_all(function: Function, source: Source) -> bool:
    """Whether a branch hands back what a map over all elements makes of what it wrote: no write of one place does."""
    if isinstance(function, cst.Lambda):
        return False
    returned = (part.value for part in inside(function.body, cst.Return))
    values = (source.meant(value) for value in returned if value is not None)
    return any(isinstance(value, cst.Call) and source.calls(value.func, "jax.vmap") for value in values)


def _reduces_an_axis(call: cst.Call, source: Source) -> bool:
    """`jnp.min(costs, axis=0)`: of a matrix, a row is what is left."""
    by_axis = keyword(call, "axis") is not None
    return by_axis and source.calls(call, *_REDUCTIONS)


def _loops(function: Function, source: Source, depth: int = _DEPTH) -> bool:
    """Whether a branch runs a loop, itself or by a helper."""
    calls = [*inside(function.body, cst.Call)] if depth else []
    helpers = (function_named(call.func, source) for call in calls)
    return any(source.calls(call, *_LOOPS) for call in calls) or any(
        helper is not None and helper is not function and _loops(helper, source, depth - 1) for helper in helpers
    )


def _works_long(function: Function, source: Source, depth: int = _DEPTH) -> bool:
    """Whether a branch sorts, or calls a function for products, itself or by a helper: a whole step, which is best left
    out where it is not wanted, and beside which the buffer is no cost. The `@` of a few joints is none."""
    for part in inside(function.body) if depth else ():
        if isinstance(part, cst.Call):
            if _LONG.search(source.qualified_name(part.func) or "") or _reduces_an_axis(part, source):
                return True
            helper = function_named(part.func, source)
            if helper is not None and helper is not function and _works_long(helper, source, depth - 1):
                return True
    return False
