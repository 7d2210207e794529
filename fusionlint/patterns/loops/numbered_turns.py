"""Python loops over `range(n)` whose turns need nothing of one another: each works on its own rows of some arrays, or
on what has its number, and what comes of it is joined.

In: a `for` or comprehension of a Source. Out: whether one `jax.vmap` over the numbers would do the same, and whether a
turn does what is a kernel of its own on every target.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from fusionlint.lazily import regex
from fusionlint.patterns.code.at import elements, indexed_by, inside, is_whole, names_in, names_read
from fusionlint.patterns.code.functions import function_named
from fusionlint.patterns.loops.collected import (
    Comprehension,
    collected,
    done_each_turn,
    is_few,
    iterated_by,
    statements_of,
)
from fusionlint.patterns.loops.counted_rows import is_listed, is_of_arrays, is_said
from fusionlint.patterns.values.kinds import kind
from fusionlint.source.tree import Source

# Each a kernel, a library call or a loop, whatever is around it. Elementwise work, sums and products XLA puts together.
_HEAVY = regex(
    r"^jax\.(numpy\.(linalg|fft)\.(?!norm$)\w+|scipy\.(linalg|interpolate|ndimage|signal|fft)\.\w+"
    r"|numpy\.(sort|argsort|lexsort|nonzero|flatnonzero|argwhere|unique|interp|searchsorted|digitize|histogram|bincount"
    r"|cumsum|cumprod|convolve|median|percentile|quantile)"
    r"|lax\.(scan|while_loop|fori_loop|map|associative_scan|top_k|sort|cumsum|cumprod|conv\w*|reduce_window|linalg\.\w+)"
    r"|ops\.segment_\w+|(value_and_)?grad|jac(fwd|rev|obian)|hessian|jvp|vjp)$"
)
_FOLDS = ("jax.random.fold_in",)
_MAPPED = ("jax.vmap", "jax.jit")
_OF_ARRAYS = frozenset(
    ("T", "argmax", "astype", "at", "dtype", "max", "mean", "min", "ndim", "reshape", "shape", "sum")
)
# `range(n)`, `range(1, n)`; by steps other than one a loop cuts something into pieces.
_BOUNDS = 2
# A helper of a helper is seldom further away than this.
_DEPTH = 3


def has_turns_apart(loop: cst.For | Comprehension, source: Source) -> bool:
    """Whether a loop over more than a few numbers lists what each makes of arrays, and the number itself says no more
    than which part of them."""
    counter, over = loop.target if isinstance(loop, cst.For) else loop.for_in.target, iterated_by(loop)
    if not isinstance(counter, cst.Name) or not source.calls(over, "range"):
        return False
    if len(over.args) > _BOUNDS or is_few(over, source) or is_said(loop, source) or not _lists(loop, source):
        return False
    turn = done_each_turn(loop)
    mentions = [name for name in names_in(turn) if name.value == counter.value]
    calls = [*inside(turn, cst.Call)]
    return bool(mentions) and all(_picks(n, source) for n in mentions) and all(_is_of_arrays(c, source) for c in calls)


def is_heavy(loop: cst.For | Comprehension, source: Source) -> bool:
    """Whether a turn does what is a kernel of its own on every target, itself or by a function that it calls."""
    return any(_is_heavy(part.func, source) for part in inside(done_each_turn(loop), cst.Call))


def _is_heavy(function: cst.BaseExpression, source: Source, depth: int = _DEPTH) -> bool:
    if isinstance(function, cst.Call):  # jax.vmap(f)(x)
        handed = function.args[0].value if function.args and source.calls(function, *_MAPPED) else None
        return handed is not None and _is_heavy(handed, source, depth)
    name = source.qualified_name(function)
    if name is not None and _HEAVY.match(name):
        return True
    made = function_named(function, source) if depth else None
    if made is not None:
        calls = inside(made.body, cst.Call)
        return any(_is_heavy(call.func, source, depth - 1) for call in calls)
    place = source.project.find(name) if depth else None
    within = source.project.calls_within(place) if place is not None else iter(())
    return any(_HEAVY.match(source.project.callee(where, call.value) or "") for where, call in within)


def _lists(loop: cst.For | Comprehension, source: Source) -> bool:
    """Whether all that turns leave goes into lists that are joined, and none reads what another has left."""
    if not isinstance(loop, cst.For):
        return not loop.for_in.ifs and not isinstance(loop.elt, cst.Subscript) and bool(collected(loop, source))
    statements = statements_of(loop)
    missing = {name for statement in statements for name in _named(statement)}
    is_left = False
    for statement in statements:
        match statement:
            case cst.Expr(
                value=cst.Call(func=cst.Attribute(value=cst.Name() as name, attr=cst.Name("append"))) as value
            ):
                if not is_listed(name, source):
                    return False
                is_left = True
            case cst.Assign(targets=[cst.AssignTarget(target=cst.Name() | cst.Tuple())], value=value):
                pass
            case _:
                return False
        if any(name.value in missing for name in names_read(value)):
            return False
        missing.difference_update(_named(statement))
    return is_left


def _named(statement: cst.CSTNode | None) -> Iterator[str]:
    if isinstance(statement, cst.Assign):
        yield from (name.value for target in statement.targets for name in names_in(target.target))


def _picks(number: cst.Name, source: Source) -> bool:
    """Whether a number says which row is read, `x[i]`, or written, `x.at[i]`, what else has it, `labels == i`, or which
    key is the turn's."""
    index = source.parent(number)
    match index:
        case cst.Index():
            row = indexed_by(number, source)
            return row is not None and _is_of_an_array(row, source)
        case cst.ComparisonTarget(operator=cst.Equal()) | cst.Comparison():
            return _is_a_mask(number, source)
        case cst.Arg():
            call = source.parent(index)
            return source.calls(call, *_FOLDS)
    return False


def _is_a_mask(number: cst.Name, source: Source) -> bool:
    """`labels == i`, of what is no number of Python's, and not asked whether to do something."""
    around = source.parent(number)
    whole = around if isinstance(around, cst.Comparison) else source.parent(around) if around is not None else None
    match whole:
        case cst.Comparison(left=left, comparisons=[cst.ComparisonTarget(operator=cst.Equal(), comparator=right)]):
            labels = right if left is number else left
            is_asked = isinstance(source.parent(whole), cst.IfExp | cst.BooleanOperation | cst.UnaryOperation)
            return not is_asked and kind(labels, source) in ("array", None)
    return False


def _is_of_an_array(row: cst.Subscript, source: Source) -> bool:
    """Whether what is indexed is seen to be an array: what has parts along several axes is."""
    parts = elements(row.slice)
    match row.value:
        case cst.Attribute(attr=cst.Name("at")):
            return True
    found = kind(row.value, source)
    has_axes = (len(parts) > 1 and any(map(is_whole, parts))) or _is_asked_as_an_array(row.value, source)
    return found == "array" or (found is None and has_axes)


def _is_asked_as_an_array(whole: cst.BaseExpression, source: Source) -> bool:
    """Whether something else reads of a variable what a list has not: `x.shape`, `x.sum()`."""
    written = source.written(whole) if isinstance(whole, cst.Name) else None
    reads = source.reads(written) if written is not None else ()
    around = (source.parent(read) for read in reads)
    return any(isinstance(a, cst.Attribute) and a.attr.value in _OF_ARRAYS and a.value in reads for a in around)


def _is_of_arrays(call: cst.Call, source: Source) -> bool:
    """Whether a trace can do a call for all numbers at once: `x.at[i].get()` too."""
    match call.func:
        case cst.Attribute(value=cst.Subscript(value=cst.Attribute(attr=cst.Name("at")))):
            return True
        case cst.Call():
            return source.calls(call.func, *_MAPPED)
    return source.calls(call, "len") or is_of_arrays(call, source)
