"""Python loops that compute something for each pair of rows, or for each species or pair of species."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import libcst as cst

from fusionlint.finding import Finding
from fusionlint.patterns.code.at import holds, inside, names_read
from fusionlint.patterns.compiled.rows import row_after_row
from fusionlint.patterns.loops.carry import Carry
from fusionlint.patterns.loops.collected import is_few
from fusionlint.patterns.runs.concrete import asks_for_values
from fusionlint.patterns.values.kinds import kind
from fusionlint.rule import Rule
from fusionlint.source.host_code import only_asks
from fusionlint.source.tree import Source

if TYPE_CHECKING:
    from fusionlint.hlo import parse as hlo
    from fusionlint.hlo.barriers import Barrier

rule = Rule(__name__, harm="fusion")

_ARRAYS = ("jax.numpy.", "jax.lax.", "jax.nn.")
_OR = "jax.numpy.logical_or"
# What an array has, and few objects beside it.
_OF_ARRAYS = frozenset(("T", "astype", "conj", "dot", "max", "mean", "min", "ravel", "real", "reshape", "shape", "sum"))


def _nested(source: Source) -> Iterator[str]:
    """The scopes of traced code, or of what asks for values, with a `range` in a loop, where two loops hold a call of
    jax or one masks: asked of the facts."""
    calls = (one for name in source.names if name.startswith(_ARRAYS) for one in source.called(name))
    computed = {place.scope for place, call in calls if len(call[2]) > 1}.union(source.facts.has("masked in a loop"))
    ranges = {place.scope for place, call in source.called("range") if call[2]} if computed else set()
    asking = {scope for scope, _ in source.facts.raw.asked}
    return (scope for scope in computed & ranges if scope in asking or source.runs(scope, "traced"))


@rule.source("For", where="used", when=_nested)
def computed_pair_by_pair(inner: cst.For, source: Source) -> Iterator[Finding]:
    """The loop around `inner`, where both together go over pairs and add up or collect what they find."""
    outer = source.loop(inner)
    if not isinstance(outer, cst.For) or not _is_of_a_program(outer, source):
        return
    match outer.target, inner.target:
        case cst.Name(one), cst.Name(other) if one != other:
            pass
        case _:
            return
    if not _is_counted(outer, source) or not _is_counted(inner, source) or _writes_places(inner):
        return
    if _calls_another(inner, one, other):
        return
    masks = [_is_mask_of(inner, name, source) for name in (one, other)]
    if all(masks) and not _is_either(inner, one, other, source):
        yield source.finding(
            outer,
            "every pair of species computes all pairs of particles again, and masks most of them away",
            write="gather what depends on the species, `table[species[:, None], species[None, :]]`; compute once",
            pair=1,
        )
    elif _is_pairwise(inner, one, other, source) and not (is_few(outer.iter, source) and is_few(inner.iter, source)):
        if any(_goes_on_in_pairs(third, inner, source) for third in inside(inner.body)):
            return  # told of those two, once
        function = source.function(outer)
        is_eager = isinstance(function, cst.FunctionDef) and asks_for_values(function, source)
        yield source.finding(
            outer,
            "nested Python loops compute each pair by dispatches of its own"
            if is_eager
            else "nested Python loops write the computation for one pair into the program once per pair",
            write="all pairs at once: `x[:, None]` against `y[None, :]`, or jax.vmap of jax.vmap",
        )


def _goes_on_in_pairs(third: cst.CSTNode, inner: cst.For, source: Source) -> bool:
    """Whether a loop in `inner` computes pairs of its own with it, which may be many where `inner` is few."""
    match third:
        case cst.For(target=cst.Name(last)) if source.loop(third) is inner and _is_counted(third, source):
            name = inner.target.value if isinstance(inner.target, cst.Name) else ""
            return _is_pairwise(third, name, last, source) and not is_few(third.iter, source)
    return False


@rule.barrier
def made_pair_after_pair(barrier: Barrier, module: hlo.Module) -> str | None:
    """What crosses memory in work that is in the program once for each pair of rows."""
    rows = row_after_row(barrier, module)
    if rows is None or not rows.are_pairs:
        return None
    return f"all pairs by broadcasting, x[:, None] and y[None, :]: the work is in the program {rows.times} times"


def _masking(source: Source) -> Iterator[str]:
    """The scopes of traced code where a loop indexes by a comparison: asked of the facts."""
    return (scope for scope in source.facts.has("masked in a loop") if source.runs(scope, "traced"))


@rule.source("For", when=_masking)
def computed_for_each_species(loop: cst.For, source: Source) -> Iterator[Finding]:
    """`r[species == s]` in a loop over the species."""
    if not isinstance(loop.target, cst.Name) or source.loop(loop) is not None or not _is_of_a_program(loop, source):
        return
    if is_few(loop.iter, source) or holds(loop.body, cst.For):
        return
    calls = [*inside(loop.body, cst.Call)]
    if not any((source.qualified_name(call.func) or "").startswith(_ARRAYS) for call in calls):
        return
    masks = sum(_is_equal(node, loop.target.value) for node in inside(loop.body))
    if masks < sum(name.value == loop.target.value for name in names_read(loop.body)):
        return  # what else is of this species may have a shape of its own
    carry = Carry(loop)
    for node in inside(loop.body, cst.Subscript):
        if _is_subset(node, loop.target.value, source):
            carried = {name for write in carry.writes for name in write.names} & {n.value for n in names_read(node)}
            if not carried:
                yield source.finding(
                    node,
                    "a Python loop picks each species out by a boolean index and computes it by kernels of its own",
                    write="all at once, then a product with jax.nn.one_hot(species, count) for the sums of each",
                    pair=2,
                )
                return


def _is_of_a_program(loop: cst.For, source: Source) -> bool:
    """Whether the loop is of a trace, or of a library's function that asks for values, and of no picture."""
    place = source.place(loop)
    function = source.function(loop)
    is_eager = isinstance(function, cst.FunctionDef) and asks_for_values(function, source)
    return source.is_traced(loop) or (is_eager and only_asks(source.project, place))


def _is_counted(loop: cst.For, source: Source) -> bool:
    """Whether the loop goes over numbers: `range(n)`, not in strides, as loops over tiles do."""
    return source.calls(loop.iter, "range") and len(loop.iter.args) < 3


def _writes_places(loop: cst.For) -> bool:
    """Whether the loop writes places of an array, of which other rules speak, or goes on with a branch of its own."""
    return any(isinstance(node, cst.Attribute) and node.attr.value == "at" for node in inside(loop.body))


def _calls_another(inner: cst.For, one: str, other: str) -> bool:
    """Whether each pair calls a function of its own, `law = laws[i][j]` and then `law.force(x, y)`: no rows. What an
    array's own method is given is one thing at most."""
    own = {
        write.targets[0].target.value
        for write in inside(inner.body, cst.Assign)
        if isinstance(write.targets[0].target, cst.Name) and _is_entry(write.value, one, other)
    }
    for call in inside(inner.body, cst.Call):
        method = isinstance(call.func, cst.Attribute)
        called = call.func.value if isinstance(call.func, cst.Attribute) else call.func
        is_own = isinstance(called, cst.Name) and called.value in own
        if (is_own or _is_entry(called, one, other)) and (len(call.args) > 1 or not method):
            return True
    return False


def _is_entry(node: cst.CSTNode, one: str, other: str) -> bool:
    """`table[i][j]` or `table[i, j]`: what a table holds for a pair."""
    if not isinstance(node, cst.Subscript):
        return False
    inner = node.value.slice if isinstance(node.value, cst.Subscript) else ()
    return {name.value for part in (*inner, *node.slice) for name in names_read(part)} == {one, other}


def _is_pairwise(inner: cst.For, one: str, other: str, source: Source) -> bool:
    """Whether a call of jax in `inner` reads a row by `one` and a row by `other`, and nothing that is carried."""
    carry = Carry(inner)
    for call in inside(inner.body):
        if not isinstance(call, cst.Call) or not (source.qualified_name(call.func) or "").startswith(_ARRAYS):
            continue
        feeding, names = carry.behind(list(call.args), gated=False)
        written = {name for write in carry.writes for name in write.names}
        if any(written & set(_own_reads(write.value)) & set(write.names) for write in feeding) or not names:
            continue
        parts = [call, *(write.value for write in feeding)]
        rows = [node for part in parts for node in inside(part, cst.Subscript)]
        by_one, by_other = (
            [row for row in rows if _is_row(row, name, source) and _is_computed_by(row, source)]
            for name in (one, other)
        )
        if (
            by_one
            and by_other
            and not any(row in by_other for row in by_one)
            and not _feeds_itself(call, carry, source)
        ):
            return True
    return False


def _own_reads(node: cst.CSTNode) -> Iterator[str]:
    return (name.value for name in names_read(node))


def _feeds_itself(call: cst.Call, carry: Carry, source: Source) -> bool:
    """Whether `call` computes with what an earlier iteration stored."""
    written = carry.write_of(call, source)
    _, names = carry.behind(list(call.args), gated=True)
    return written is not None and not names.isdisjoint(written.names)


def _is_row(node: cst.Subscript, name: str, source: Source) -> bool:
    """`x[i]`, of what may be a jax array."""
    match node.slice:
        case [cst.SubscriptElement(slice=cst.Index(value=cst.Name(index)))] if index == name:
            listed = source.value(node.value) if isinstance(node.value, cst.Name) else None
            if isinstance(listed, cst.List | cst.ListComp | cst.Tuple):
                return False  # its elements may be of different shapes
            return kind(node.value, source) not in ("numpy", "list", "scalar", "key")
    return False


def _is_computed_by(row: cst.Subscript, source: Source) -> bool:
    """Whether a row goes into a computation as it stands, by its name too: an object of which something is asked,
    `sheets[i].mask`, or a name of something, `heads[names[i]]`, is no row of a table."""
    name = source.assigned_name(row) or _unpacked(row, source)
    reads: list[cst.CSTNode] = list(source.reads(name)) if name is not None else [row]
    return any(_is_number_of(read, source) for read in reads)


def _unpacked(row: cst.Subscript, source: Source) -> cst.Name | None:
    """`a`, of `a, b = x[i], x[j]`."""
    element = source.parent(row)
    values = source.parent(element) if isinstance(element, cst.Element) else None
    match source.parent(values) if values is not None else None:
        case cst.Assign(
            targets=[cst.AssignTarget(target=cst.Tuple(elements=names))], value=cst.Tuple(elements=parts)
        ) if len(names) == len(parts):
            found = next(name.value for name, part in zip(names, parts, strict=True) if part is element)
            return found if isinstance(found, cst.Name) else None
    return None


def _is_number_of(read: cst.CSTNode, source: Source) -> bool:
    """Whether what is read is computed with: an operand, an argument of jax, one of its own elements or axes."""
    match source.parent(read):
        case cst.BinaryOperation() | cst.UnaryOperation() | cst.Comparison() | cst.ComparisonTarget():
            return True
        case cst.Arg() as argument:
            call = source.parent(argument)
            return isinstance(call, cst.Call) and (source.qualified_name(call.func) or "").startswith(_ARRAYS)
        case cst.Attribute(attr=cst.Name(asked)):
            return asked in _OF_ARRAYS
        case cst.Subscript(value=value, slice=slices) as part if value is read:
            return _is_of_an_array(slices) or _is_number_of(part, source)
    return False


def _is_of_an_array(slices: Sequence[cst.SubscriptElement]) -> bool:
    """Whether brackets are such as an array alone has: `x[None]`, `x[..., 0]`, `x[:, 1]`."""
    if len(slices) > 1:
        return True
    match slices[0].slice:
        case cst.Index(value=cst.Name("None") | cst.Ellipsis()):
            return True
    return False


def _is_mask_of(loop: cst.For, name: str, source: Source) -> bool:
    """Whether `loop` makes a mask of `species == name` that is computed with."""
    return any(_is_equal(node, name) and _is_computed_with(node, source) for node in inside(loop.body))


def _is_either(inner: cst.For, one: str, other: str, source: Source) -> bool:
    """Whether what is of one species or of the other is taken together, `(kind == a) | (kind == b)`: no pairs."""
    for node in inside(inner.body):
        match node:
            case cst.BinaryOperation(left=left, operator=cst.BitOr(), right=right):
                pass
            case cst.Call(args=[cst.Arg(value=left), cst.Arg(value=right)]) if source.calls(node, _OR):
                pass
            case _:
                continue
        if any(_is_equal(left, a) and _is_equal(right, b) for a, b in ((one, other), (other, one))):
            return True
    return False


def _is_equal(node: cst.CSTNode, name: str) -> bool:
    match node:
        case cst.Comparison(
            left=cst.Name() | cst.Attribute(),
            comparisons=[cst.ComparisonTarget(operator=cst.Equal(), comparator=cst.Name(value))],
        ):
            return value == name
    return False


def _is_computed_with(node: cst.CSTNode, source: Source) -> bool:
    """Whether a comparison is of arrays: what tests it, an `if` or `and`, wants a truth value."""
    match source.parent(node):
        case cst.Arg() as argument:
            call = source.parent(argument)
            return isinstance(call, cst.Call) and (source.qualified_name(call.func) or "").startswith(_ARRAYS)
        case cst.Subscript(value=value) if value is node:
            return True
        case cst.BinaryOperation():
            return True
    return False


def _is_subset(node: cst.Subscript, name: str, source: Source) -> bool:
    """`r[species == s]`, of what is not known to be on the host."""
    match node.slice:
        case [cst.SubscriptElement(slice=cst.Index(value=index))] if _is_equal(index, name):
            return kind(node.value, source) not in ("numpy", "list", "scalar")
    return False
