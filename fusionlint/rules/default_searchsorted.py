"""A binary search in a loop on the device: `jnp.searchsorted(a, v)` without a `method`, and `jnp.interp`."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from fusionlint.finding import Edit, Finding
from fusionlint.lazily import regex
from fusionlint.patterns.at import TO_ARRAY
from fusionlint.patterns.calls import argument, beside, has_only
from fusionlint.patterns.concrete import is_concrete
from fusionlint.patterns.handed_settings import SETTING
from fusionlint.patterns.often import runs_often
from fusionlint.patterns.under import under_loop, under_vmap
from fusionlint.rule import Rule
from fusionlint.source.tree import Source
from fusionlint.source.walk import dotted, holds_comment

rule = Rule(__name__, harm="fusion")

# Nobody minds how long a curve takes; what renders may well make what an agent sees.
_PLOTS = regex(r"(^|_)plots?(_|$)")
# What looks something up, and the argument that is looked through.
_TABLES = {"jax.numpy.searchsorted": (0, "a"), "jax.numpy.digitize": (1, "bins")}
_SEARCHES = tuple(_TABLES)
_INTERP = "jax.numpy.interp"
_METHOD = 'method="scan_unrolled"'


@rule.source("Call", calls=_SEARCHES)
def search_by_default(node: cst.Call, source: Source) -> Iterator[Finding]:
    """A search whose method is seen not to be given, in code that runs under a trace."""
    if not source.calls(node, *_SEARCHES) or any(arg.star for arg in node.args) or len(node.args) < 2:
        return
    if argument(node, 99, "method") is not None or not source.is_traced(node) or is_concrete(node, source):
        return
    table = argument(node, *_TABLES[source.qualified_name(node.func) or ""])
    if _is_of_a_plot(node, source) or _is_of_settings(table, source):
        return
    yield source.finding(
        node,
        "the default method searches in a loop on the device, a kernel or more for each step",
        write=f"{source.code(node.func)}(..., {_METHOD})",
        edits=_edits(node, source),
        safe=True,
    )


@rule.source("Call", calls=(_INTERP,))
def search_of_interp(node: cst.Call, source: Source) -> Iterator[Finding]:
    """`interp` takes no method: it is worth writing out where it is seen to run often."""
    if not source.calls(node, _INTERP) or not has_only(node, 5, "x", "xp", "fp", "left", "right"):
        return
    if not source.is_traced(node) or source.function(node) is None or _is_for_numpy(node, source):
        return
    if _is_of_a_plot(node, source) or is_concrete(node, source) or _is_of_settings(argument(node, 1, "xp"), source):
        return
    often = not _is_of_a_number(node, source) and runs_often(source.project, source.place(node))
    if under_loop(node, source) or under_vmap(node, source) or often:
        search = f"{beside(node.func, 'searchsorted', source) or 'jnp.searchsorted'}(..., {_METHOD})"
        yield source.finding(
            node,
            "`interp` searches in a loop on the device, a kernel or more for each step",
            write=f"{search}, and the line between the two neighbours, as on the page",
            pair=1,
        )


def _is_of_a_plot(node: cst.Call, source: Source) -> bool:
    return any(map(_PLOTS.search, source.scope(node).split(".")))


def _is_of_settings(table: cst.BaseExpression | None, source: Source) -> bool:
    """Whether a list of settings is looked through, `jnp.array(config.milestones)`, `jnp.array(kw.get("steps"))`: what
    somebody wrote down is a few numbers, and a search among them a step or two, which XLA unrolls."""
    match source.meant(table):
        case (
            cst.Call(
                args=[cst.Arg(value=cst.Call(func=cst.Attribute(attr=cst.Name("get")), args=[asked, *_])), *_]
            ) as made
        ):
            return source.calls(made, *TO_ARRAY) and isinstance(asked.value, cst.SimpleString)
        case cst.Call(args=[cst.Arg(value=cst.Attribute() as field), *_]) as made if source.calls(made, *TO_ARRAY):
            return any(map(SETTING.match, dotted(field).split(".")[:-1]))
    return False


def _is_for_numpy(node: cst.Call, source: Source) -> bool:
    """`np.asarray(jnp.interp(...))`: no trace gets there, and numpy has an interp of its own."""
    above = source.parent(node)
    match source.parent(above) if isinstance(above, cst.Arg) else None:
        case cst.Call() as around:
            return source.calls(around, "numpy.asarray", "numpy.array")
    return False


def _is_of_a_number(node: cst.Call, source: Source) -> bool:
    """Whether one number is looked for, `interp(t, times, ...)` of `t: float`: in a step it is next to nothing."""
    point = argument(node, 0, "x")
    given = source.written(point) if isinstance(point, cst.Name) else None
    match source.parent(given) if given is not None else None:
        case cst.Param(annotation=cst.Annotation(annotation=cst.Name("float"))):
            return True
    return False


def _edits(node: cst.Call, source: Source) -> tuple[Edit, ...]:
    last = node.args[-1].value
    if getattr(last, "lpar", ()) or holds_comment(node):
        return ()
    return (source.replace(last, f"{source.code(last)}, {_METHOD}"),)
