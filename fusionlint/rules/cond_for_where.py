"""A `lax.cond` or `lax.switch` of cheap branches, which `jnp.where` does without leaving the kernel around it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from fusionlint.finding import Finding
from fusionlint.lazily import regex
from fusionlint.patterns.branches.cheap import is_cheap
from fusionlint.patterns.branches.choices import as_choice, of_fields
from fusionlint.patterns.branches.conditional import (
    CONDITIONALS,
    Branch,
    Conditional,
    branch_functions,
    conditional,
    is_nothing,
    is_unchanged,
)
from fusionlint.patterns.branches.finished import chooses_what_is_there, computed_for
from fusionlint.patterns.branches.first_step import asks_a_counter, asks_for_first_step
from fusionlint.patterns.branches.moved import moves_a_buffer
from fusionlint.patterns.branches.numbers import chooses_numbers
from fusionlint.patterns.branches.tests import (
    counts_steps,
    guards_against_nans,
    holds_a_guard,
    is_static_test,
    may_be_no_number,
)
from fusionlint.patterns.code.at import inside, names_read
from fusionlint.patterns.code.calls import argument
from fusionlint.patterns.code.layout import in_place_of
from fusionlint.patterns.compiled.conditionals import conditionals_at, hands_on, is_choice_of_arrays
from fusionlint.patterns.compiled.words import line_of
from fusionlint.patterns.runs.alternatives import said_above
from fusionlint.patterns.runs.mapped_methods import in_a_mapped_method
from fusionlint.patterns.runs.transformations import in_an_update
from fusionlint.patterns.runs.under import VMAPS, under_loop, under_map, under_vmap
from fusionlint.patterns.values.predicates import depends_on_input, is_of_a_static_self, is_of_python
from fusionlint.patterns.writes.heavy import is_beside_a_network
from fusionlint.rule import Rule
from fusionlint.source.environments import in_environment
from fusionlint.source.names import JIT
from fusionlint.source.tree import Source

if TYPE_CHECKING:
    from fusionlint.hlo import parse as hlo
    from fusionlint.hlo.barriers import Barrier

rule = Rule(__name__, harm="fusion")

_WHERE = "jnp.where computes both, and fuses with all around it: of a tree jax.tree.map of it, in place of the cond"
_GUARDED = (
    "jnp.where(p, a, b), in which each branch is handed only what it can work on, a(jnp.where(p, x, 1.0)): else the "
    "gradient of the one not taken is NaN, and of all that is chosen"
)
# What is longer is told in other words.
_LONG = 100
# So far above a conditional is said what it costs, and how that is said.
_ABOVE = 6
_ORDER = regex(r"\bO\([^)]+\)")
_NANS = regex(r"\b(avoid\w*|prevent\w*|spar\w+|without|no)\W(\w+\W+){0,3}nans?\b", re.I)
# That a choice is the wrong thing here: "don't use jax.lax.select as it doesn't handle NaNs in the gradients".
_NO_CHOICE = regex(
    r"\b((don'?t|not|never|cannot|can't) us(e|ing)|(instead|in place) of|rather than|avoid\w*)"
    r"( using| a| an| the)*\W+([\w.]+\.)?(select|where)\b",
    re.I,
)
_CONDITION = regex(r"\bcond(ition)?(al)?s?\b", re.I)
# Of more branches, computing all may cost more than choosing.
_MOST = 4
# What leaves something that only a run knows.
_REDUCTIONS = "sum mean max min prod any all vdot linalg.norm argmax argmin count_nonzero"
_LEAVES_A_RESULT = (
    *("jax.lax.while_loop", "jax.lax.fori_loop", "jax.lax.scan"),
    *(f"jax.numpy.{name}" for name in _REDUCTIONS.split()),
)
_FACTORS = tuple(
    f"jax.{module}.linalg.{name}"
    for module in ("numpy", "scipy", "lax")
    for name in ("cholesky", "cho_factor", "lu", "lu_factor", "qr", "svd", "eig", "eigh", "pinv", "inv")
)
# What makes a number of another kind of one.
_TYPES = tuple(f"jax.numpy.{name}" for name in ("int32", "int64", "float32", "float64"))
# The pair of the page about a few numbers: a little time, which counts where it is taken again and again.
_NUMBERS = 2
# And that about an optimizer's update, of which nothing is claimed of a CPU: its clock sees no gain.
_UPDATE = 3
# That about what is there already, where no trace is seen.
_THERE = 4


@rule.source("Call", calls=CONDITIONALS)
def cheap_branches(node: cst.Call, source: Source) -> Iterator[Finding]:
    """Conditionals whose branches do elementwise work or none, the outermost of several."""
    found = conditional(node, source)
    if found is None or not _is_choice(found, source) or asks_for_first_step(found, source):
        return
    if _is_inside_another(node, source) or is_static_test(found, source) or is_of_python(found.test, source):
        return
    if is_of_a_static_self(found.test, source):
        return
    if moves_a_buffer(found, source):
        return  # a choice would move all of it every time: cond-around-a-write says what to do
    # An optimizer's update is compiled, and nobody differentiates it.
    is_update = in_an_update(node, source)
    if guards_against_nans(found, source) and not is_update:
        return
    # Whoever calls a library's function may map it, and under a `vmap` it is a choice: the trace has to be seen, but
    # for a number that is chosen by another one, both of which the function has computed: seldom a map is meant there.
    # What is there already costs nothing to choose from, mapped or not.
    is_number = chooses_numbers(found, source) and _asks_a_result(found, source)
    is_seen = source.context(node) == "traced"
    is_there = not (is_seen or is_update or is_number) and chooses_what_is_there(found, source)
    if not is_seen and not (is_update or is_number or is_there):
        return
    if _is_mapped(found, source) or _is_weighed(node, source):
        return
    if _is_for_nobody(found, source) or _is_of_factors(found, source):
        return
    message, pair = _case(found, source)
    if pair == 0:
        pair = _UPDATE if is_update else _THERE if is_there else pair
    if pair == _NUMBERS and (is_beside_a_network(node, source) or not _costs_again(found, is_number, source)):
        return
    choice, is_guard = as_choice(found, source), not is_update and holds_a_guard(found, source)
    is_sure = not (is_guard or may_be_no_number(found, source))
    text = str(choice) if choice is not None else ""
    plain = "jnp.where(p, a, b); for a tree: jax.tree.map(lambda a, b: jnp.where(p, a, b), new, old)"
    yield source.finding(
        node,
        message,
        pair=pair,
        write=_GUARDED
        if is_guard
        else (text if len(text) <= _LONG and "\n" not in text else "") or of_fields(found, source.jnp) or plain,
        edits=(*choice.edits, in_place_of(node, choice.text, source)) if choice is not None and is_sure else (),
    )


@rule.barrier
def handed_on_or_cheap(barrier: Barrier, module: hlo.Module) -> str | None:
    """What goes in and out of a conditional of which one branch hands on what it is given."""
    conditionals = _conditionals(barrier, module)
    return _advice(
        barrier,
        (each for each in conditionals if is_choice_of_arrays(each, module, dear=False) and hands_on(each, module)),
    )


@rule.barrier(pair=1)
def computed_either_way(barrier: Barrier, module: hlo.Module) -> str | None:
    """The same where both branches compute: a GPU makes a choice of it by itself."""
    conditionals = _conditionals(barrier, module)
    return _advice(
        barrier, (each for each in conditionals if is_choice_of_arrays(each, module) and not hands_on(each, module))
    )


@rule.barrier(pair=3)
def chosen_on_an_accelerator(barrier: Barrier, module: hlo.Module) -> str | None:
    """The same of what takes a CPU longer to compute than to skip."""
    return _advice(barrier, (each for each in _conditionals(barrier, module) if is_choice_of_arrays(each, module)))


def _conditionals(barrier: Barrier, module: hlo.Module) -> Iterator[hlo.Instruction]:
    return conditionals_at(barrier, module) if barrier.cause in ("conditional", "copy") else iter(())


def _advice(barrier: Barrier, conditionals: Iterator[hlo.Instruction]) -> str | None:
    """Of the first of `conditionals`, and where it is: the line shown is often that of what goes into it."""
    found = next(conditionals, None)
    if found is None:
        return None
    lines = [(one.path, one.line) for stack in (found.stack, barrier.stack) for one in stack[:1]]
    return f"{_WHERE} of {line_of(found)}" if len({*lines}) == 2 else _WHERE


def _is_weighed(node: cst.CSTNode, source: Source) -> bool:
    """Whether the comment above says what the conditional costs, "O(length) in each step, but the checks are cheap", or
    what it spares, "avoid making NaNs, by using a cond", or that no choice is to stand there."""
    said = said_above(node, _ABOVE, source)
    is_weighed = (_ORDER.search(said) or _NANS.search(said)) and _CONDITION.search(said)
    return bool(is_weighed or _NO_CHOICE.search(said))


def _asks_a_result(found: Conditional, source: Source) -> bool:
    """Whether the test asks for what the function has computed by jax itself, a sum or what a loop left, not for a
    setting or what it was handed: `cond(jnp.sum(w) < 0, lambda: -1.0, lambda: 1.0)`."""
    return any(source.calls(value, *_LEAVES_A_RESULT) for value in computed_for(found, source))


def _is_for_nobody(found: Conditional, source: Source) -> bool:
    """Whether nothing is done where no element asks for it, `cond(jnp.any(scale != 1.0), rescale, lambda x: x, x)`: the
    conditional is there to spare all of them the work. Or the same is done in any case: XLA drops the
    conditional."""
    done = {(source.code(b.function), *(source.code(each) for each in b.operands)) for b in found.branches}
    if len(done) == 1:
        return True
    match source.meant(found.test):
        case cst.Call(func=cst.Attribute(attr=cst.Name("any"))):
            return any(map(is_unchanged, found.branches)) and not all(map(is_unchanged, found.branches))
    return False


def _is_of_factors(found: Conditional, source: Source) -> bool:
    """Whether a branch hands on what a matrix is decomposed into: the copy of n x n numbers is nothing beside the n^3
    steps of that."""
    made = (source.meant(branch.result) for branch in found.branches)
    return any(source.calls(each, *_FACTORS) for each in made)


def _is_inside_another(node: cst.Call, source: Source) -> bool:
    """Whether this is part of a branch of a conditional that is a choice itself: that one is told."""
    around = (above for above in source.ancestors(node) if isinstance(above, cst.FunctionDef | cst.Lambda))
    outer = (branch_functions(source).get(above) for above in around)
    return any(one is not None and _is_choice(one, source) for one in outer)


def _is_choice(found: Conditional, source: Source) -> bool:
    branches = found.branches
    return (
        len(branches) <= _MOST
        and not any(map(is_nothing, branches))
        and all(is_unchanged(branch) or is_cheap(branch, source) for branch in branches)
    )


def _case(found: Conditional, source: Source) -> tuple[str, int]:
    """The message, and which pair of the page it is."""
    if chooses_numbers(found, source):
        message = "a conditional chooses between a few numbers: a kernel for each part, where one choice would do"
        return message, _NUMBERS
    if any(map(is_unchanged, found.branches)):
        return "a branch that does nothing still copies what it hands on, and nothing fuses with the conditional", 0
    return "cheap branches are programs of their own: what they read and return goes through memory", 1


def _costs_again(found: Conditional, is_number: bool, source: Source) -> bool:
    """Whether a choice between numbers is seen to cost something more than once. Where each branch is arithmetic, that
    is in a loop alone: of such a conditional XLA makes selects for a GPU, and what is left is a few kernels of a CPU.
    One that hands on its input copies it, each time that what is compiled, mapped or `is_number` runs."""
    if under_loop(found.call, source):
        return True
    if all(_is_arithmetic(branch, source) for branch in found.branches):
        return False
    if is_number or under_vmap(found.call, source):
        return True
    function = source.function(found.call)
    facts = source.facts.functions.get(source.body_scope(function)) if function is not None else None
    return facts is not None and not JIT.isdisjoint(source.project.decorators(source.path, facts))


def _is_arithmetic(branch: Branch, source: Source) -> bool:
    """Whether a branch of a choice between numbers computes one, neither handing on what it is given, as `jnp.int32(n)`
    does, nor reading it from an array, nor making one, `jnp.array([[a, b], [c, d]])`: `totals["power"]` is a field."""
    parts = list(inside(branch.function.body))
    match branch.result:
        case cst.Call(args=[cst.Arg(value=cst.Name())]) if source.calls(branch.result, *_TYPES):
            return False
    if any(isinstance(part, cst.List) for part in parts):
        return False
    reads = (element.slice for part in parts if isinstance(part, cst.Subscript) for element in part.slice)
    fields = (isinstance(read, cst.Index) and isinstance(read.value, cst.SimpleString) for read in reads)
    return not is_unchanged(branch) and all(fields)


def _is_mapped(found: Conditional, source: Source) -> bool:
    """Whether this runs under a `vmap`, which makes a choice of it, or under a map that had better be one; unless what
    it asks for is the same for all."""
    if in_environment(found.call, source):
        return depends_on_input(found.test, source)
    is_seen = under_vmap(found.call, source) or under_map(found.call, source)
    if not is_seen and not in_a_mapped_method(found.call, source):
        return False
    counts = counts_steps(found.test, source) and not _is_vectorized_itself(found.call, found.test, source)
    return depends_on_input(found.test, source) and not (counts or asks_a_counter(found.test, source))


def _is_vectorized_itself(node: cst.Call, test: cst.BaseExpression, source: Source) -> bool:
    """Whether the function around `node` is handed to a `vmap` that maps all its arguments, `vmap(f)(arange(n))`, or
    those that are asked about."""
    function = source.function(node)
    place = source.body_place(function) if function is not None else None
    if place is None:
        return False
    for call in source.calls_of(VMAPS):
        match call:
            case cst.Call(args=[cst.Arg(value=cst.Name() as mapped)]):
                if source.project.find(source.qualified_name(mapped)) == place:
                    return True
            case cst.Call(args=[cst.Arg(value=cst.Name() as mapped), *_]):
                if source.project.find(source.qualified_name(mapped)) == place and _maps(call, test, function):
                    return True
    return False


def _maps(vmap: cst.Call, test: cst.BaseExpression, function: cst.CSTNode | None) -> bool:
    """Whether an argument that `test` asks about is one that `in_axes` maps."""
    axes = argument(vmap, 1, "in_axes")
    if not isinstance(axes, cst.Tuple | cst.List) or not isinstance(function, cst.FunctionDef):
        return False
    asked = {name.value for name in names_read(test)}
    mapped = zip(function.params.params, axes.elements, strict=False)
    return any(isinstance(axis.value, cst.Integer) and parameter.name.value in asked for parameter, axis in mapped)
