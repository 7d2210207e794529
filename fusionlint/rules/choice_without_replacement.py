"""A permutation of everything to draw a few: `jax.random.choice(key, x, (k,), replace=False)` in a step."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from fusionlint.finding import Edit, Finding
from fusionlint.lazily import regex
from fusionlint.patterns.code.at import inside, is_none
from fusionlint.patterns.code.calls import argument, has_only
from fusionlint.patterns.code.layout import Called, Part, in_place_of
from fusionlint.patterns.code.left_unused import left_unused
from fusionlint.patterns.code.modules import named
from fusionlint.patterns.code.same import is_same_at
from fusionlint.patterns.compiled.of_jax import is_of_call
from fusionlint.patterns.compiled.readers import sliced_to, sorts_of, value_of
from fusionlint.patterns.operations.choice import CHOICE, is_drawn_once, is_one, written_shape
from fusionlint.patterns.operations.drawn import count_of, drawn_from, draws_again
from fusionlint.patterns.operations.orders import (
    goes_through,
    is_cut_in_batches,
    is_of_all,
    parts_read,
    prefix,
    sizes_of,
)
from fusionlint.patterns.runs.concrete import is_concrete
from fusionlint.patterns.runs.often import runs_often
from fusionlint.patterns.runs.under import under_loop, under_vmap
from fusionlint.patterns.values.kinds import kind
from fusionlint.patterns.values.lengths import are_equal
from fusionlint.rule import Rule
from fusionlint.source.environments import in_environment
from fusionlint.source.names import TREE_MAPS
from fusionlint.source.tree import Source
from fusionlint.source.walk import dotted

if TYPE_CHECKING:
    from fusionlint.hlo import parse as hlo
    from fusionlint.hlo.barriers import Barrier

rule = Rule(__name__, harm="fusion")

# Of more than a fourth of all a `top_k` is a sort, too.
_PART = 4
_PERMUTATION = "jax.random.permutation"
_POPULATION = regex(r"^_?(pop|population|ensemble)_?size$")
_PARAMETERS = regex(r"(^|[._])(params?|weights|variables)$")
# What stands for a length that is not seen.
_UNSEEN = "size"


@rule.source("Call", calls=(CHOICE,))
def few_of_many(node: cst.Call, source: Source) -> Iterator[Finding]:
    """One draw that nothing could replace; the same draw of several arrays; a few of many in code that runs often.

    With `p` it is a `top_k` of noise already.
    """
    if not _is_distinct(node, source) or is_concrete(node, source):
        return
    key, among, shape = (argument(node, i, name) for i, name in enumerate(("key", "a", "shape")))
    if key is None or among is None or is_drawn_once(node, source):
        return
    random = named("jax.random", node, source)
    k, n = source.code(key), _length(among, source)
    if is_one(shape):
        yield source.finding(
            node,
            "everything is permuted to draw one, with nothing to replace",
            write=f"{random}.choice({k}, {source.code(among)}), without `replace=False`",
            edits=_edits(node, _replacing(node, source), source),
        )
    elif shape is not None and _is_drawn_twice(node, key, shape, source):
        yield source.finding(
            node,
            "every array is permuted on its own, for the same few draws",
            write=f"i = {random}.randint({k}, {written_shape(shape, source)}, 0, {n}) once, and x[i] of every array",
        )
    elif _is_of_a_population(among, source) or _is_of_networks(node, source):
        return
    elif shape is not None and _is_drawn_often(node, source) and _is_few(among, shape, source):
        yield source.finding(
            node,
            "everything is permuted to draw a part of it",
            write=_few(k, n, written_shape(shape, source), among, node, source),
            edits=_edits(node, _top(k, among, _count(shape, source), node, source), source),
            pair=1,
        )


@rule.source("Call", calls=(_PERMUTATION,))
def start_of_a_permutation(node: cst.Call, source: Source) -> Iterator[Finding]:
    """A permutation of which the first, or the first few, are read; or one that is gone through to pick one."""
    if not has_only(node, 2, "key", "x"):
        return
    key, among = argument(node, 0, "key"), argument(node, 1, "x")
    parts = parts_read(node, source)
    if key is None or among is None or not parts:
        return
    random, k, n = named("jax.random", node, source), source.code(key), _length(among, source)
    if all(isinstance(part, cst.Integer) and part.evaluated_value == 0 for part in parts):
        is_number = _counted(among, source) is not among or kind(among, source) == "scalar"
        one = f"{random}.randint({k}, (), 0, {n})" if is_number else f"{random}.choice({k}, {source.code(among)})"
        write = f"{one}, or {random}.categorical({k}, logits) for one of a mask's hits"
        edits = _edits(source.parent(node), one if n != _UNSEEN else None, source)
        yield source.finding(node, "everything is permuted to pick one", write=write, edits=edits)
    elif goes_through(node, source):
        numpy = source.alias("jax.numpy") or "jax.numpy"
        yield source.finding(
            node,
            "everything is permuted to pick one that will do",
            write=f"{random}.categorical({k}, {numpy}.where(mask, 0.0, -{numpy}.inf)), one of a mask's hits",
        )
    elif (
        _is_hot(node, source)
        and (count := prefix(parts)) is not None
        and not is_of_all(count, source)
        and not is_cut_in_batches(node, source)
    ):
        shape = f"({source.code(count)},)"
        write = _few(k, n, shape, among, node, source)
        edits = _edits(source.parent(node), _top(k, among, count, node, source), source)
        yield source.finding(node, "everything is permuted to draw a part of it", write=write, edits=edits, pair=1)


@rule.barrier
def permuted_for_a_few(barrier: Barrier, module: hlo.Module) -> str | None:
    """A whole permutation of which a few are kept."""
    if not any(is_of_call(sort, ("_shuffle",)) for sort in sorts_of(barrier, module)):
        return None
    kept = sliced_to(barrier, module)
    if kept is None or _PART * kept > value_of(barrier, module).shape.dims[-1]:
        return None
    if kept == 1:
        return "jax.random.randint for one of them, or jax.random.choice of one: nothing is permuted"
    return (
        f"lax.top_k(jax.random.uniform(key, (n,)), {kept})[1] in place of a whole permutation, or jax.random.randint "
        "where two may be alike"
    )


def _is_distinct(node: cst.Call, source: Source) -> bool:
    if not source.calls(node, CHOICE) or not has_only(node, 4, "key", "a", "shape", "replace", "p"):
        return False
    p, replace = argument(node, 4, "p"), argument(node, 3, "replace")
    without_p = p is None or is_none(p)
    return without_p and isinstance(replace, cst.Name) and replace.value == "False"


def _is_drawn_twice(node: cst.Call, key: cst.BaseExpression, shape: cst.BaseExpression, source: Source) -> bool:
    """Whether the same function draws as many with the same key from something else."""
    function = source.function(node)
    for other in inside(function) if function is not None else ():
        if other is node or not isinstance(other, cst.Call) or not _is_distinct(other, source):
            continue
        again, size = argument(other, 0, "key"), argument(other, 2, "shape")
        if again is None or size is None or source.function(other) is not function:
            continue
        if _same(again, key, source) and source.code(size) == source.code(shape):
            return True
    return False


def _same(one: cst.BaseExpression, other: cst.BaseExpression, source: Source) -> bool:
    """Whether two names hold the same key: written once, and not made anew in between."""
    if not isinstance(one, cst.Name) or not isinstance(other, cst.Name):
        return False
    written = source.written(one)
    return one.value == other.value and written is not None and written is source.written(other)


def _is_hot(node: cst.CSTNode, source: Source) -> bool:
    if under_vmap(node, source) or under_loop(node, source):
        return True
    function = source.function(node)
    return function is not None and runs_often(source.project, source.place(node))


def _is_drawn_often(node: cst.CSTNode, source: Source) -> bool:
    """Whether the code is hot, or an environment's: one that resets by itself draws in every step under a `vmap`."""
    return _is_hot(node, source) or in_environment(node, source)


def _is_few(among: cst.BaseExpression, shape: cst.BaseExpression, source: Source) -> bool:
    """Whether one row is drawn, and not as many as there are: then a permutation is what is wanted."""
    counted, sizes = _counted(among, source), sizes_of(shape)
    code = source.code(counted)
    if len(sizes) != 1 or source.code(sizes[0]) in (code, f"{code}.shape[0]", f"len({code})"):
        return False
    return not are_equal(sizes[0], counted, source)


def _is_of_a_population(among: cst.BaseExpression, source: Source) -> bool:
    """Whether members of a population or an ensemble are drawn, by what counts them, `config.pop_size`, outside of a
    map: each stands for a network or a run, beside which a sort of their numbers is nothing."""
    counted = dotted(_counted(among, source)).rpartition(".")[2]
    return _POPULATION.match(counted) is not None and not under_vmap(among, source)


def _is_of_networks(node: cst.Call, source: Source) -> bool:
    """Whether networks are drawn of several: what is drawn picks a part of every parameter, `jax.tree.map(lambda param:
    param[drawn], critics.params)`."""
    for read in source.readers(node):
        function = source.function(read)
        mapped = source.handed_to(function) if isinstance(function, cst.Lambda) else None
        if mapped is None or not isinstance(source.parent(read), cst.Index) or not source.calls(mapped, *TREE_MAPS):
            continue
        if any(_PARAMETERS.search(dotted(arg.value)) for arg in mapped.args[1:]):
            return True
    return False


def _counted(among: cst.BaseExpression, source: Source) -> cst.BaseExpression:
    """The n of `jnp.arange(n)` or `jnp.arange(0, n, 1)`, or of a name for it; else what is drawn from, as written."""
    value = source.meant(among)
    if not source.calls(value, "jax.numpy.arange"):
        return among
    match [arg.value for arg in value.args]:
        case [end] | [cst.Integer("0"), end] | [cst.Integer("0"), end, cst.Integer("1")]:
            return end
    return among


def _length(among: cst.BaseExpression, source: Source) -> str:
    """How many there are to draw from; "size" where that is unseen."""
    counted = _counted(among, source)
    if counted is not among or kind(among, source) == "scalar":
        return source.code(counted)
    return f"{among.value}.shape[0]" if isinstance(among, cst.Name) and kind(among, source) == "array" else _UNSEEN


def _edits(node: cst.CSTNode | None, instead: Part | None, source: Source) -> tuple[Edit, ...]:
    """What is drawn, in place of an expression that draws it and does nothing else."""
    if instead is None or not isinstance(node, cst.Call | cst.Subscript) or source.has_comment(node):
        return ()
    if draws_again(node, source):
        return ()
    return (in_place_of(node, instead, source), *left_unused(node, str(instead), source))


def _replacing(node: cst.Call, source: Source) -> Part:
    """The same call, without `replace=False`."""
    without = argument(node, 3, "replace")
    return Called(source.code(node.func), [source.code(arg) for arg in node.args if arg.value is not without])


def _count(shape: cst.BaseExpression, source: Source) -> cst.BaseExpression | None:
    """How many are drawn, by a shape of one axis that is written out."""
    meant = source.meant(shape)
    sizes = sizes_of(meant) if isinstance(meant, cst.Tuple | cst.List) else []
    is_here = meant is shape or all(is_same_at(size, shape, source) for size in sizes)
    return sizes[0] if len(sizes) == 1 and is_here else None


def _top(
    key: str, among: cst.BaseExpression, count: cst.BaseExpression | None, node: cst.Call, source: Source
) -> Part | None:
    """`lax.top_k(jax.random.uniform(key, (n,)), k)[1]`, and of an array what stands there: of numbers that are drawn
    alike the largest few stand at places that are, each once and in any order."""
    counted = count_of(among, source)
    if counted is not None and counted is not among and not is_same_at(counted, among, source):
        return None
    length = source.code(counted) if counted is not None else _length(among, source)
    if count is None or length == _UNSEEN:
        return None
    random, lax = named("jax.random", node, source), named("jax.lax", node, source)
    noise = Called(f"{random}.uniform", (key, f"({length},)"))
    return drawn_from(among, Called(f"{lax}.top_k", (noise, source.code(count)), behind="[1]"), node, source)


def _few(key: str, length: str, shape: str, among: cst.BaseExpression, node: cst.Call, source: Source) -> str:
    """A `top_k` of noise, which gives places: of an array the elements that stand there are wanted."""
    random, lax = named("jax.random", node, source), named("jax.lax", node, source)
    noise = f"{random}.uniform({key}, ({length},))"
    again = f"{random}.randint({key}, {shape}, 0, {length})"
    count = shape[1:-1].rstrip(", ") if shape[:1] in ("(", "[") else shape
    places = f"{lax}.top_k({noise}, {count})[1]"
    if _counted(among, source) is not among or kind(among, source) == "scalar":
        return f"{places}, or {again} where two may be the same"
    if kind(among, source) == "array" or isinstance(among, cst.Call):
        x = source.code(among)
        return f"{x}[{places}], or {x}[{again}] where two may be the same"
    return f"{places}, or {again} where two may be the same; of an array what stands at those places"
