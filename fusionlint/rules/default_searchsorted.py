"""A binary search in a loop on the device: `jnp.searchsorted(a, v)` without a `method`, and `jnp.interp`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import libcst as cst

from fusionlint.finding import Edit, Finding
from fusionlint.lazily import regex
from fusionlint.patterns.code.calls import argument, beside, call_of, has_only, hides_some, is_handed_to
from fusionlint.patterns.code.layout import quoted, with_one_more
from fusionlint.patterns.code.same import is_unchanged_between
from fusionlint.patterns.compiled.searches import searched_for
from fusionlint.patterns.loops.carry import calls
from fusionlint.patterns.operations.choice import FACTORIZATIONS, is_beside_a_call
from fusionlint.patterns.operations.interpolation import UNROLLED, written_out
from fusionlint.patterns.operations.short_tables import is_a_list, is_of_a_schedule, is_of_settings
from fusionlint.patterns.runs.before_loops import starts_a_loop
from fusionlint.patterns.runs.beside_scans import is_beside_whole_loops
from fusionlint.patterns.runs.concrete import is_concrete
from fusionlint.patterns.runs.loop_bodies import is_body_of_a_loop, is_small
from fusionlint.patterns.runs.often import runs_often
from fusionlint.patterns.runs.under import VMAPS, is_for_the_host, is_mapped_by_the_host, under_loop, under_vmap
from fusionlint.patterns.values.one_number import is_a_number
from fusionlint.rule import Rule
from fusionlint.source.facts import Call
from fusionlint.source.for_nobody import is_never_read
from fusionlint.source.names import JIT
from fusionlint.source.places import Place
from fusionlint.source.tree import Source
from fusionlint.source.walk import dotted, holds_comment

if TYPE_CHECKING:
    from fusionlint.hlo import parse as hlo
    from fusionlint.hlo.barriers import Barrier

rule = Rule(__name__, harm="fusion")

# Nobody minds how long a curve takes; what renders may well make what an agent sees.
_PLOTS = regex(r"(^|_)plots?(_|$)")
# What looks something up, and the argument that is looked through.
_TABLES = {"jax.numpy.searchsorted": (0, "a"), "jax.numpy.digitize": (1, "bins")}
_SEARCHES = tuple(_TABLES)
_INTERP = "jax.numpy.interp"
# What makes a table of many points, where a module has one.
_TABLES_OF_MANY = regex(r"^(jax\.)?numpy\.(linspace|arange|geomspace|logspace|load|loadtxt|genfromtxt)$")
# What is made by such, too.
_FITS = ("jax.numpy.polyfit", "jax.numpy.linalg.lstsq", "jax.scipy.linalg.lstsq")
_IN_A_LOOP = "searches in a loop on the device, a kernel or more for each step"
_PARTIAL = "functools.partial"
_HANDS = (*VMAPS, *JIT, _PARTIAL)
_NAMES = tuple(name.rpartition(".")[2] for name in (*_SEARCHES, _INTERP))


def _hands_a_search(call: Call) -> bool:
    """Whether, by its facts, a call may be handed a search as a function: `jax.vmap(jnp.interp)`."""
    first = call.value.arguments[:1]
    return bool(first) and first[0].name.rpartition(".")[2] in _NAMES


@rule.source("Call", calls=_SEARCHES)
def search_by_default(node: cst.Call, source: Source) -> Iterator[Finding]:
    """A search whose method is seen not to be given, in code that runs under a trace."""
    if hides_some(node) or len(node.args) < 2:
        return
    if argument(node, 99, "method") is not None or is_concrete(node, source):
        return
    table = argument(node, *_TABLES[source.qualified_name(node.func) or ""])
    if _is_of_a_plot(node, source) or is_of_settings(table, source) or is_a_list(table, source):
        return
    if is_of_a_schedule(node, table, source):
        return
    if starts_a_loop(node, source) or is_beside_a_call(node, (*_FITS, *FACTORIZATIONS), source):
        return  # one search beside all of its steps
    if is_never_read(node, source):
        return
    yield source.finding(
        node,
        f"the default method {_IN_A_LOOP}",
        write=f"{source.code(node.func)}(..., {UNROLLED}){_since(node.func, source)}",
        edits=_edits(node, source),
        safe=not _since(node.func, source),
    )


@rule.source("Call", calls=(_INTERP,))
def search_of_interp(node: cst.Call, source: Source) -> Iterator[Finding]:
    """`interp` takes no method: it is worth writing out where it is seen to run often."""
    if not has_only(node, 5, "x", "xp", "fp", "left", "right"):
        return
    if source.function(node) is None or _is_for_numpy(node, source):
        return
    if _is_of_a_plot(node, source) or is_concrete(node, source) or is_of_settings(argument(node, 1, "xp"), source):
        return
    if starts_a_loop(node, source) or is_beside_whole_loops(node, source):
        return
    # There it is one compiled program, and written out it is many.
    if is_mapped_by_the_host(node, source) or (source.context(node) != "traced" and is_for_the_host(node, source)):
        return
    is_hot = under_vmap(node, source) or _runs_again(node, source)
    if is_hot or _is_most_of_it(node, source):
        before, behind = _same_searches(node, source)
        if before:
            return  # XLA makes one loop of all, which is told there
        search = f"{beside(node.func, 'searchsorted', source) or 'jnp.searchsorted'}(..., {UNROLLED})"
        once = f", once for the {len(behind) + 1} that look up the same" if behind else ""
        yield source.finding(
            node,
            f"`interp` {_IN_A_LOOP}",
            write=f"under a jit {search}{once}, and the line between the two neighbours, as on the page",
            edits=written_out([node, *behind], source),
            pair=1 if is_hot else 3,
        )


@rule.source("Call", calls=_HANDS, where="any", like=_hands_a_search)
def search_handed_on(node: cst.Call, source: Source) -> Iterator[Finding]:
    """A search that is mapped, compiled or given some of its arguments, `jax.vmap(jnp.interp)`, for traced code."""
    if not source.calls(node, *_HANDS) or hides_some(node):
        return
    search = node.args[0].value
    name = source.qualified_name(search)
    if name not in (*_SEARCHES, _INTERP) or any(argument(node, 99, given) for given in ("method", "period")):
        return
    made = list(_wrapped(node, source))
    used = [use for use in _uses(made[-1], source) if _is_for_a_trace(use, source)]
    if name == _INTERP:
        used = [use for use in used if source.context(use) == "traced" or not is_for_the_host(use, source)]
    if not used or _is_of_a_plot(node, source):
        return
    if name in _SEARCHES:
        yield source.finding(
            node,
            f"the default method {_IN_A_LOOP}",
            write=_with_method(node, search, source) + _since(search, source),
            edits=_edits_of(node, made, used, source),
            safe=not _since(search, source),
        )
    elif any(_is_asked_often(use, made[-1], source) for use in used):
        yield source.finding(
            node,
            f"`interp` {_IN_A_LOOP}",
            write=f"a function of {beside(search, 'searchsorted', source) or 'jnp.searchsorted'}(..., "
            'method="compare_all"), and the line between the two neighbours, as on the page',
            pair=2,
        )


@rule.barrier
def searched_in_a_loop(barrier: Barrier, module: hlo.Module) -> str | None:
    """What crosses memory in the loop of a search."""
    if searched_for(barrier, module) != "search":
        return None
    return f"jnp.searchsorted(..., {UNROLLED}): the same search without a loop"


@rule.barrier(pair=1)
def interpolated_by_a_loop(barrier: Barrier, module: hlo.Module) -> str | None:
    """What crosses memory in the loop by which jnp.interp searches."""
    if searched_for(barrier, module) != "interp":
        return None
    return f"write jnp.interp out around jnp.searchsorted(..., {UNROLLED}): by itself it searches in a loop"


def _since(search: cst.BaseExpression, source: Source) -> str:
    """From which jax on the function takes a method, where an old one does not: there the call would raise."""
    is_new = (source.qualified_name(search) or "").endswith("digitize")
    return " (jnp.digitize takes a method from jax 0.4.34 on)" if is_new else ""


def _with_method(node: cst.Call, search: cst.BaseExpression, source: Source) -> str:
    if source.calls(node, _PARTIAL):
        return f"{source.code(node.func)}({source.code(search)}, ..., {UNROLLED})"
    return f"{_given_two(search, source)} in its place"


def _given_two(search: cst.BaseExpression, source: Source) -> str:
    """A function of what is looked through and looked up."""
    first, second = ("x", "bins") if (source.qualified_name(search) or "").endswith("digitize") else ("a", "v")
    return f"lambda {first}, {second}: {source.code(search)}({first}, {second}, {UNROLLED})"


def _edits_of(
    node: cst.Call, made: Sequence[cst.Call], used: Sequence[cst.CSTNode], source: Source
) -> tuple[Edit, ...]:
    """The method among what is given already; or a lambda, where whoever calls it is seen to give two arguments."""
    if source.calls(node, _PARTIAL):
        return _edits(node, source)
    calls_of_it = [call_of(use, source) for use in used]
    if len(made) > 1 or holds_comment(node) or not source.calls(node, *VMAPS):
        return ()
    if any(call is None or not has_only(call, 2) or len(call.args) != 2 for call in calls_of_it):
        return ()
    return (source.replace(node.args[0].value, quoted(_given_two(node.args[0].value, source), source)),)


def _wrapped(node: cst.Call, source: Source) -> Iterator[cst.Call]:
    """`node` and what it is wrapped in: `jax.jit(jax.vmap(jnp.interp))`."""
    yield node
    around = source.handed_to(node)
    if source.calls(around, *_HANDS):
        yield from _wrapped(around, source)


def _uses(made: cst.Call, source: Source) -> Sequence[cst.CSTNode]:
    """Where a function is called, or handed on, that has a name here or none."""
    name = source.assigned_name(made)
    return [made] if name is None else [*source.reads_at_all(name)]


def _is_for_a_trace(use: cst.CSTNode, source: Source) -> bool:
    if source.function(use) is None or not source.is_traced(use) or source.is_idle(use):
        return False
    return not _is_of_a_plot(use, source) and not is_concrete(use, source)


def _is_asked_often(use: cst.CSTNode, made: cst.Call, source: Source) -> bool:
    """Whether a loop or what runs often asks; what is mapped or compiled, anything that is seen to be traced. Of what a
    file has for its methods that is seldom seen."""
    if not source.calls(made, _PARTIAL):
        is_for_methods = source.function(made) is None and bool(source.facts.class_around(source.scope(use)))
        if source.context(use) == "traced" or is_for_methods:
            return True
    return under_vmap(use, source) or under_loop(use, source) or runs_often(source.project, source.place(use))


def _runs_again(node: cst.Call, source: Source) -> bool:
    """Whether a loop, or what is seen to run often, asks for the values of many points; of one number, which is next to
    nothing in a large step, whether it is a loop's own body that asks."""
    if is_a_number(argument(node, 0, "x"), source):
        return is_body_of_a_loop(node, source)
    return under_loop(node, source) or runs_often(source.project, source.place(node))


def _is_most_of_it(node: cst.Call, source: Source) -> bool:
    """Whether a point is looked up in a table that a module has, `np.linspace(-1, 1, 500_000)`, by a function that is
    arithmetic else: all of that is a kernel or two, and the search as many steps as the table can be halved."""
    xp, function = argument(node, 1, "xp"), source.function(node)
    if not isinstance(xp, cst.Name | cst.Attribute) or function is None or is_a_number(argument(node, 0, "x"), source):
        return False
    made = source.project.value_of(source.place(node), dotted(xp))
    if made is None or made.place.scope or not made.value.is_call:
        return False
    maker = source.project.callee(made.place, made.value) or ""
    return bool(_TABLES_OF_MANY.match(maker)) and is_small(
        source.project, Place(source.path, source.body_scope(function))
    )


def _same_searches(node: cst.Call, source: Source) -> tuple[bool, list[cst.Call]]:
    """Whether a call before `node` looks up the same points in the same table, and those behind it that do."""
    function = source.function(node)
    others = [one for one in calls(function.body) if one is not node] if function is not None else []
    others = [one for one in others if source.calls(one, _INTERP) and not hides_some(one)]
    before = [one for one in others if source.order(one) < source.order(node)]
    behind = [one for one in others if one not in before]
    return any(_is_same(one, node, source) for one in before), [one for one in behind if _is_same(node, one, source)]


def _is_same(first: cst.Call, then: cst.Call, source: Source) -> bool:
    """Whether both look up the same, and the first has wherever the other one does."""
    given = [(argument(first, place, name), argument(then, place, name)) for place, name in ((0, "x"), (1, "xp"))]
    are_same = all(a is not None and b is not None and is_unchanged_between(a, b, source) for a, b in given)
    return are_same and source.always_precedes(first, then)


def _is_of_a_plot(node: cst.CSTNode, source: Source) -> bool:
    return any(map(_PLOTS.search, source.scope(node).split(".")))


def _is_for_numpy(node: cst.Call, source: Source) -> bool:
    """`np.asarray(jnp.interp(...))`: no trace gets there, and numpy has an interp of its own."""
    return is_handed_to(node, source, "numpy.asarray", "numpy.array")


def _edits(node: cst.Call, source: Source) -> tuple[Edit, ...]:
    return () if holds_comment(node) else (with_one_more(node, quoted(UNROLLED, source), source),)
