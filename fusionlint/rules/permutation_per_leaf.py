"""The same permutation drawn again for every leaf: `tree.map(lambda x: jax.random.permutation(key, x), data)`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import libcst as cst

from fusionlint.finding import Edit, Finding
from fusionlint.lazily import regex
from fusionlint.patterns.code.before import free_name, line_before
from fusionlint.patterns.code.calls import argument, beside, has_only, keyword
from fusionlint.patterns.code.functions import parameters
from fusionlint.patterns.code.same import is_same_at
from fusionlint.patterns.code.unpacked import assigned
from fusionlint.rule import Rule
from fusionlint.source.names import PARTIAL
from fusionlint.source.traced import reached_from
from fusionlint.source.tree import Source

rule = Rule(__name__, harm="fusion")

_PERMUTATION = "jax.random.permutation"
_MAPS = frozenset(
    ("jax.tree.map", "jax.tree_map", "jax.tree_util.tree_map", "optax.tree.map", "equinox.tree_map",
     "tree.map_structure")
)  # fmt: skip
# What lists the leaves beside a map that is not called `map`.
_LEAVES = {"map_structure": "flatten"}
_SWAPS = ("jax.numpy.swapaxes", "jax.numpy.moveaxis")
_REST = regex(r"\.shape\[(\d+):\]$")
_DEPTH = 4


@rule.source("Call", calls=(_PERMUTATION,))
def same_for_every_leaf(node: cst.Call, source: Source) -> Iterator[Finding]:
    """A function mapped over a tree permutes its leaf by a key that comes from outside of the map."""
    if not has_only(node, 3, "key", "x", "axis", "independent") or not _is_of_rows(argument(node, 3, "independent")):
        return
    function, key, leaf = source.function(node), argument(node, 0, "key"), argument(node, 1, "x")
    if function is None or not isinstance(key, cst.Name) or not isinstance(leaf, cst.Name):
        return
    if not _is_first(argument(node, 2, "axis")) or not _is_mapped(function, source):
        return
    if leaf.value not in {parameter.name.value for parameter in parameters(function)}:
        return
    key_of_all = _from_outside(key, leaf, function, source)
    if key_of_all is None or _axes(leaf, _of_leaves(function, source), source, _DEPTH) > 1:
        return
    random, numpy = source.alias("jax.random") or "jax.random", source.alias("jax.numpy") or "jax.numpy"
    yield source.finding(
        node,
        "every leaf of a tree is permuted on its own, each by a sort",
        write=f"order = {random}.permutation({key_of_all}, n) once, and {numpy}.take({leaf.value}, order, axis=0)",
        edits=_drawn_once(node, key, leaf, function, source),
    )


def _drawn_once(
    node: cst.Call, key: cst.Name, leaf: cst.Name, function: cst.FunctionDef | cst.Lambda, source: Source
) -> tuple[Edit, ...]:
    """One order of as many rows as the first leaf has, in a line before the map: of the leaves as they are handed over,
    by a key of the function that maps them."""
    mapped = _map_of(function, source)
    match mapped:
        case cst.Call(
            func=cst.Attribute(attr=cst.Name(called)), args=[_, cst.Arg(value=cst.Name() | cst.Attribute() as tree)]
        ):
            listed = "tree_leaves" if called.startswith("tree_") else _LEAVES.get(called, "leaves")
            leaves = beside(mapped.func, listed, source)
            drawn = f"{source.code(node.func)}({key.value}, {leaves}({source.code(tree)})[0].shape[0])"
        case _:
            return ()
    written = source.written(leaf)
    is_whole = written is not None and isinstance(source.parent(written), cst.Param)
    is_always = not any(isinstance(above, cst.If | cst.IfExp) for above in source.within(node, function))
    if not (is_whole and is_always and is_same_at(key, mapped, source)) or source.has_comment(node):
        return ()
    order = free_name("order", node, source)
    before = line_before(mapped, f"{order} = {drawn}", source)
    return (before, source.replace(node, f"{leaf.value}[{order}]")) if before is not None else ()


def _map_of(function: cst.FunctionDef | cst.Lambda, source: Source) -> cst.Call | None:
    """The one map that the function is handed to, in the function that it is defined in."""
    reads = source.reads(function.name) if isinstance(function, cst.FunctionDef) else [function]
    mapped = source.handed_to(reads[0]) if len(reads) == 1 else None
    is_there = mapped is not None and source.function(mapped) is source.function(function) is not None
    return mapped if mapped is not None and is_there and source.calls(mapped, *_MAPS) else None


def _is_of_rows(independent: cst.BaseExpression | None) -> bool:
    """Whether one order serves all that a row holds: `independent=True` draws one for each column."""
    return independent is None or (isinstance(independent, cst.Name) and independent.value == "False")


def _is_first(axis: cst.BaseExpression | None) -> bool:
    """Leaves that have a further axis have several, and XLA merges the sorts of those."""
    return axis is None or (isinstance(axis, cst.Integer) and axis.value == "0")


def _of_leaves(function: cst.FunctionDef | cst.Lambda, source: Source) -> int:
    """How many axes the leaves have at least that a function is mapped over, by what was mapped over them before."""
    mapped = _map_of(function, source)
    return _axes_of_leaves(mapped.args[1].value, source, _DEPTH) if mapped is not None and len(mapped.args) > 1 else 1


def _axes_of_leaves(tree: cst.BaseExpression, source: Source, depth: int) -> int:
    """The same of the leaves of `tree`, by the last map over it: what a later line replaces is like them."""
    match tree:
        case cst.Name() if depth:
            made = [one for one in _made(tree, source) if _is_map(one, source)]
            return _axes_of_leaves(made[-1], source, depth - 1) if made else _axes_handed(tree, source, depth)
        case cst.Call(args=[cst.Arg(value=cst.Lambda(body=left)), cst.Arg(value=before)]) if _is_map(tree, source):
            return _axes(left, _axes_of_leaves(before, source, depth), source, _DEPTH)
    return 1


def _made(tree: cst.Name, source: Source) -> Iterator[cst.BaseExpression]:
    """What the lines before `tree` give that name, in order."""
    before = (use.node for use in source.writes(tree) if use.order < source.order(tree))
    return (one for write in before if (one := assigned(write, source)) is not None)


def _is_map(node: cst.BaseExpression, source: Source) -> bool:
    return isinstance(node, cst.Call) and source.calls(node, *_MAPS)


def _axes_handed(tree: cst.Name, source: Source, depth: int) -> int:
    """Of a parameter, by what it is handed where its function is made another: `partial(step, data=data)`."""
    handed = [above for use in source.writes(tree) if isinstance(above := source.parent(use.node), cst.Param)]
    owners = {source.project.name_of(source.body_place(source.owner(parameter))) for parameter in handed}
    calls = (call for call in source.calls_of(PARTIAL) if isinstance(call, cst.Call) and call.args)
    of_these = [call for call in calls if source.qualified_name(call.args[0].value) in owners]
    given = [value for call in of_these if (value := keyword(call, tree.value)) is not None]
    return min((_axes_of_leaves(value, source, depth - 1) for value in given), default=1)


def _axes(node: cst.BaseExpression, least: int, source: Source, depth: int) -> int:
    """How many axes a leaf has at least, by those of it that were swapped before it was made flat; it began with
    `least` of them."""
    if depth == 0:
        return 1
    match node:
        case cst.Name() if source.parameter(node) is not None:
            return least
        case cst.Name() if (value := source.value(node)) is not None:
            return _axes(value, least, source, depth - 1)
        case cst.Call(args=[cst.Arg(value=array), *given]) if source.calls(node, *_SWAPS):
            return _swapped(array, given, least, source, depth)
        case cst.Call(func=cst.Attribute(value=array, attr=cst.Name("swapaxes")), args=given):
            return _swapped(array, given, least, source, depth)
        case (
            cst.Call(func=cst.Attribute(value=array, attr=cst.Name("reshape")), args=[_, cst.Arg(star="*", value=rest)])
            | cst.Call(
                args=[
                    cst.Arg(value=array),
                    cst.Arg(value=cst.BinaryOperation(left=cst.Tuple([_]), operator=cst.Add(), right=rest)),
                ]
            )
        ):
            kept = _REST.search(source.code(rest))
            return _axes(array, least, source, depth - 1) - int(kept[1]) + 1 if kept else 1
    return 1


def _swapped(array: cst.BaseExpression, given: Sequence[cst.Arg], least: int, source: Source, depth: int) -> int:
    places = (arg.value.evaluated_value for arg in given if isinstance(arg.value, cst.Integer))
    return max(_axes(array, least, source, depth - 1), *(place + 1 for place in places), 1)


def _is_mapped(function: cst.CSTNode, source: Source) -> bool:
    return source.body_place(function) in reached_from(source.project, _MAPS)


def _from_outside(key: cst.Name, leaf: cst.Name, function: cst.FunctionDef | cst.Lambda, source: Source) -> str | None:
    """The name of a key that all leaves share: written outside of the function, or handed to it from outside of what
    is mapped: `map(lambda x: shuffled(x, key), tree)`, `map(partial(shuffled, key), tree)`."""
    written = source.written(key)
    if written is None:
        return None
    if source.scope(written) != source.scope(key):
        return key.value
    names = [parameter.name.value for parameter in parameters(function) if parameter.name.value not in ("self", "cls")]
    if not isinstance(source.parent(written), cst.Param) or not {key.value, leaf.value} <= {*names}:
        return None
    called = source.project.name_of(source.body_place(function))
    for call, before in (*_calls_while_mapped(called, source), *_mapped_partials(called, source)):
        given, of = (argument(call, names.index(name) + before, name) for name in (key.value, leaf.value))
        if isinstance(given, cst.Name) and _is_of_its_own(of, source) and (before or not _is_of_its_own(given, source)):
            return given.value
    return None


def _calls_while_mapped(called: str, source: Source) -> Iterator[tuple[cst.Call, int]]:
    for call in source.calls_of((called,)):
        around = source.function(call)
        if isinstance(call, cst.Call) and around is not None and _is_mapped(around, source):
            yield call, 0


def _mapped_partials(called: str, source: Source) -> Iterator[tuple[cst.Call, int]]:
    """Each with the number of arguments that stand before those of the function."""
    for call in source.calls_of(PARTIAL):
        if not isinstance(call, cst.Call) or not call.args or source.qualified_name(call.args[0].value) != called:
            continue
        handed = map(source.parent, source.readers(call))
        if any(isinstance(arg, cst.Arg) and source.calls(source.parent(arg) or arg, *_MAPS) for arg in handed):
            yield call, 1


def _is_of_its_own(node: cst.BaseExpression | None, source: Source) -> bool:
    """Whether what a leaf's own call hands on is written in that call; a map hands over what is not seen here."""
    if not isinstance(node, cst.Name):
        return node is None
    written = source.written(node)
    return written is not None and source.scope(written) == source.scope(node)
