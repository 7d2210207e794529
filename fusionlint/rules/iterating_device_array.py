"""A loop of host code that reads the elements of a jax array one by one: a dispatch and a wait for each."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import libcst as cst

from fusionlint.finding import Edit, Finding
from fusionlint.lazily import regex
from fusionlint.patterns.code.at import inside, names_in, names_read
from fusionlint.patterns.code.imports import imported
from fusionlint.patterns.code.unpacked import bound_by
from fusionlint.patterns.dispatch.brought import brought
from fusionlint.patterns.dispatch.few_elements import Loop, are_few_or_once, is_told
from fusionlint.patterns.dispatch.host import is_of_the_host
from fusionlint.patterns.dispatch.jit import dispatching, is_jitted
from fusionlint.patterns.loops.carry import Carry
from fusionlint.patterns.loops.carry import calls as calls_in
from fusionlint.patterns.loops.collected import is_of_a_list
from fusionlint.patterns.loops.pictures import is_viewed_each_time
from fusionlint.patterns.values.kinds import kind
from fusionlint.patterns.values.reads import METHODS
from fusionlint.rule import Rule
from fusionlint.source.facts import NOTHING, Facts
from fusionlint.source.tree import Source
from fusionlint.source.walk import dotted

rule = Rule(__name__, harm="transfer")

_NUMBERS = frozenset(("float", "int", "bool"))
_READERS = _NUMBERS | {"numpy.asarray", "numpy.array", "jax.device_get", "numpy.float32", "numpy.float64"}
_OF_NUMPY = ("numpy.asarray", "numpy.array")
_ON_DEVICE = ("jax.numpy.", "jax.random.", "jax.lax.", "jax.nn.", "jax.scipy.", "jax.vmap", "jax.grad")
# What draws places among as many as there are.
_DRAWS = ("jax.random.permutation", "jax.random.choice")
# What numpy's numbers have not.
_OF_JAX_ALONE = ("at", "addressable_data", "block_until_ready", "delete", "device", "devices", "is_deleted", "sharding")
_READ_BY = tuple(f".{method}" for method in METHODS)

# Next to a file an element is read in no time.
_READS_FILES = regex(r"(load|open|parse|read)(_|$)")
# What counts axes counts few.
_AXES = regex(r"dim|axis|axes", re.I)


def _reading_in_a_loop(source: Source) -> Iterator[str]:
    """The scopes of a file that computes by jax that read an element of anything by `float(...)`, in a loop of host
    code: asked of the facts alone."""
    scopes = (
        place.scope
        for place, name, (value, _, loops, _) in source.project.named_calls(source.path)
        if loops and _may_read_an_element(name, value, place.scope, source.facts)
    )
    found = {scope for scope in scopes if source.runs(scope, "host")}
    if found and (any(name.startswith(_ON_DEVICE) for name in source.names) or any(True for _ in dispatching(source))):
        yield from found


def _may_read_an_element(name: str | None, call: tuple[Any, ...], scope: str, facts: Facts) -> bool:
    """Whether a call may be handed `x[i]`, of which facts keep nothing, `x[i].item()`, or what a loop binds."""
    called, arguments, _ = call
    if isinstance(called, str) and called.endswith(_READ_BY):
        what = called.rpartition(".")[0]
    elif name in _READERS and arguments:
        what = arguments[0]
    else:
        return False
    if not isinstance(what, str):
        return what is None or what[0] is None
    bound = facts.bound(scope, what)
    return bound is not None and bound.kind == "value" and bound.value == NOTHING


@rule.source("For", "ListComp", "GeneratorExp", "SetComp", "DictComp", where="host", when=_reading_in_a_loop)
def read_one_by_one(loop: Loop, source: Source) -> Iterator[Finding]:
    """What the loop reads element by element of arrays of the device that it does not change: of those that are cut in
    each iteration all, else the one that it goes over."""
    target, iterated, body = _parts(loop)
    if are_few_or_once(loop, iterated, source):
        return
    if isinstance(loop, cst.For) and is_viewed_each_time(loop, source):
        return
    if isinstance(iterated, cst.Call) and any(_AXES.search(name.value) for name in names_read(iterated)):
        return
    if any(_READS_FILES.match(dotted(call.func).rpartition(".")[2]) for part in body for call in calls_in(part)):
        return
    targets = {name.value for name in names_in(target)}
    varying = Carry(loop).varying if isinstance(loop, cst.For) else frozenset(targets)
    read = [
        (call, what)
        for part in body
        for call in calls_in(part)
        if (what := _read_by(call, source)) is not None and source.loop(call) is loop and not is_told(call, source)
    ]
    cut = [(call, array) for call, what in read if (array := _array_of(what, targets, varying)) is not None]
    if any(is_of_a_list(array, source) for _, array in cut):
        return
    cut = [(call, array) for call, array in cut if kind(array, source) == "array" or _is_output(array, call, source)]
    if cut:
        yield _dispatched(cut[0][0], list({array.value: array for _, array in cut}.values()), source)
        return
    if any(_waits_itself(part, source) for part in body):
        return
    if any(_goes_to_a_library(call, source) for call, _ in read):
        return
    for call, what in read:
        whole = _iterated_for(what, target, iterated, source)
        if whole is not None and not is_of_a_list(whole, source):
            yield _waited_for(call, _rows_around(whole, loop, source), source)
            return


@rule.source("Call", calls=_DRAWS, where="host")
def list_in_an_order_drawn_by_jax(node: cst.Call, source: Source) -> Iterator[Finding]:
    """`[graphs[i] for i in jax.random.permutation(key, len(graphs))]`: a list asks each index for its number."""
    listed = {source.code(call.args[0].value) for call in _lengths(node, source) if call.args}
    for order in source.readers(node):
        above = source.parent(order)
        loop = source.parent(above) if isinstance(above, cst.CompFor) else above
        if not isinstance(loop, cst.For | cst.ListComp | cst.GeneratorExp) or not isinstance(order, cst.BaseExpression):
            continue
        target, iterated, body = _parts(loop)
        found = (part for whole in body for part in inside(whole, cst.Subscript))
        taken = next((part for part in found if _takes(part, target) and source.code(part.value) in listed), None)
        if iterated is not order or taken is None or any(_waits_itself(part, source) for part in body):
            continue
        if kind(taken.value, source) != "array":
            yield _waited_for(taken, order, source)


def _waits_itself(body: cst.CSTNode, source: Source) -> bool:
    """Whether what is done with each element waits for the device in any case: a library of the host solves something,
    a line is printed, or the truth of a comparison is asked for, `better = better or new > old`."""
    for part in (body, *inside(body)):
        match part:
            case cst.Call() if source.calls(part, "print") or is_of_the_host(part, source):
                return True
            case cst.BooleanOperation(left=left, right=right):
                if any(isinstance(side, cst.Comparison) for side in (left, right)):
                    return True
    return False


def _goes_to_a_library(call: cst.Call, source: Source) -> bool:
    """Whether an element is handed, as an array of numpy, to a library that the function itself imports for that,
    `pystoi.stoi(np.asarray(speech), ...)`: what takes an array and is not of jax works on it for long."""
    if not source.calls(call, *_OF_NUMPY):
        return False
    around = source.handed_to(call)
    name = source.qualified_name(around.func) if around is not None else None
    scope = (
        source.facts.bound(source.scope(call), dotted(around.func).partition(".")[0]) if around is not None else None
    )
    is_own = scope is not None and scope.kind == "import"
    return is_own and name is not None and ":" not in name and not name.startswith(("jax", "numpy.", "flax."))


def _lengths(draw: cst.Call, source: Source) -> Iterator[cst.Call]:
    """The calls of `len` that say how many are drawn from."""
    for arg in draw.args[1:]:
        for part in inside(source.meant(arg.value), cst.Call):
            if source.calls(part, "len"):
                yield part


def _takes(part: cst.Subscript, target: cst.BaseExpression) -> bool:
    """`x[i]`, where i is all that the loop binds."""
    match part.slice:
        case [cst.SubscriptElement(slice=cst.Index(value=cst.Name() as index))]:
            return isinstance(target, cst.Name) and target.value == index.value
    return False


def _dispatched(call: cst.Call, arrays: Sequence[cst.Name], source: Source) -> Finding:
    names, got = " and of ".join(f"`{array.value}`" for array in arrays), ", ".join(array.value for array in arrays)
    got, those = (got, "that") if len(arrays) == 1 else (f"({got})", "those")
    return source.finding(
        call,
        f"every element of {names} is cut out by a program of its own, and waited for",
        write=f"jax.device_get({got}) once, before the loop, and in it the elements of {those}",
        edits=brought(arrays, lambda element: _is_asked(element, source), source),
    )


def _is_asked(element: cst.Subscript, source: Source) -> bool:
    """Whether Python asks `x[i]` for its number."""
    if any(_is_of_many(part.slice) for part in element.slice):
        return False
    above = source.parent(element)
    call = source.parent(above) if above is not None else None
    return isinstance(call, cst.Call) and _read_by(call, source) is element


def _waited_for(call: cst.CSTNode, array: cst.BaseExpression, source: Source) -> Finding:
    text, jax = source.code(array), imported("jax", array, source)
    edits: tuple[Edit, ...] = ()
    if jax is not None and not source.has_comment(array) and not _is_written_on(array, source):
        edits = (*jax.edits, source.replace(array, f"{jax.name}.device_get({text})"))
    return source.finding(
        call,
        f"every element of `{text}` is waited for by itself",
        write=f"jax.device_get({text}) in its place",
        edits=edits,
        pair=1,
    )


def _is_written_on(array: cst.BaseExpression, source: Source) -> bool:
    """Whether the loop over `array` asks its elements for what numbers of numpy lack, `x.at[0].set(y)`, or of what type
    they are."""
    loop = source.parent(array)
    if not isinstance(loop, cst.For | cst.CompFor):
        return False
    reads = [read for name in bound_by(loop.target) for read in source.reads(name)]
    above = (source.parent(read) for read in reads)
    calls = (source.handed_to(read) for read in reads)
    return any(isinstance(each, cst.Attribute) and each.attr.value in _OF_JAX_ALONE for each in above) or any(
        call is not None and dotted(call.func) in ("isinstance", "type") for call in calls
    )


def _parts(loop: Loop) -> tuple[cst.BaseExpression, cst.BaseExpression, list[cst.CSTNode]]:
    """What the loop binds, what it goes over, and what it does every time."""
    match loop:
        case cst.For():
            return loop.target, loop.iter, [loop.body]
        case cst.DictComp():
            return loop.for_in.target, loop.for_in.iter, [loop.key, loop.value, *loop.for_in.ifs]
    return loop.for_in.target, loop.for_in.iter, [loop.elt, *loop.for_in.ifs]


def _read_by(call: cst.Call, source: Source) -> cst.BaseExpression | None:
    """x, of `float(x)` or `x.item()`."""
    match call:
        case cst.Call(func=cst.Attribute(value=owner, attr=cst.Name(method)), args=[]) if method in METHODS:
            return owner
        case cst.Call(args=[cst.Arg(value=what, keyword=None), *_]) if source.calls(call, *_READERS):
            return what
    return None


def _array_of(what: cst.BaseExpression, targets: set[str], varying: frozenset[str]) -> cst.Name | None:
    """x, of `x[i]`, where i counts and x stays what it is."""
    match what:
        case cst.Subscript(value=cst.Name() as array, slice=slices) if array.value not in varying and not any(
            _is_of_many(element.slice) for element in slices
        ):
            indices = [name.value for element in slices for name in names_read(element)]
            if not targets.isdisjoint(indices):
                return array
    return None


def _is_of_many(index: cst.BaseSlice) -> bool:
    """Whether `index` takes more than one element, as `...` and `:` do: a large part, copied once either way."""
    return isinstance(index, cst.Slice) or (isinstance(index, cst.Index) and isinstance(index.value, cst.Ellipsis))


def _iterated_for(
    what: cst.BaseExpression, target: cst.BaseExpression, iterated: cst.BaseExpression, source: Source
) -> cst.BaseExpression | None:
    """The array whose element `what` is: of `for x in xs`, `enumerate(xs)`, `zip(xs, ...)`."""
    if not isinstance(what, cst.Name):
        return None
    match target:
        case cst.Name(value=name) if name == what.value:
            return iterated if kind(iterated, source) == "array" else None
        case cst.Tuple(elements=elements) if isinstance(iterated, cst.Call):
            names = [e.value.value if isinstance(e.value, cst.Name) else "" for e in elements]
            place = names.index(what.value) if what.value in names else -1
            if source.calls(iterated, "enumerate"):
                place -= 1
            elif not source.calls(iterated, "zip"):
                return None
            if 0 <= place < len(iterated.args) and not iterated.args[place].star:
                array = iterated.args[place].value
                return array if kind(array, source) == "array" else None
    return None


def _rows_around(row: cst.BaseExpression, loop: Loop, source: Source) -> cst.BaseExpression:
    """The array that a loop around goes over, where `row` is one of its rows and for the loop in it alone: it takes as
    long to fetch as a row."""
    if not isinstance(row, cst.Name) or sorted(use.is_write for use in source.uses(row)) != [False, True]:
        return row
    for above in source.ancestors(loop):
        if isinstance(above, cst.FunctionDef | cst.Lambda):
            break
        if isinstance(above, cst.For | cst.ListComp | cst.GeneratorExp | cst.SetComp | cst.DictComp):
            target, iterated, _ = _parts(above)
            rows = _iterated_for(row, target, iterated, source)
            if rows is not None and not is_of_a_list(rows, source):
                return _rows_around(rows, above, source)
    return row


def _is_output(array: cst.Name, call: cst.Call, source: Source) -> bool:
    """Whether `array` is one of the outputs of a jitted function, of which `call` makes a number: no part of a tree."""
    if source.qualified_name(call.func) not in (*_NUMBERS, None):
        return False
    element = source.binder(array)
    above = source.parent(element) if isinstance(element, cst.Element) else None
    match source.parent(above) if above is not None else None:
        case cst.AssignTarget() as assigned:
            statement = source.parent(assigned)
            value = statement.value if isinstance(statement, cst.Assign) else None
            return isinstance(value, cst.Call) and is_jitted(value.func, source)
    return False
