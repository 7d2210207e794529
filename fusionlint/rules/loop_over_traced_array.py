"""Python loops over an array in traced code: of indices, `for i in jnp.arange(n)`, or of rows, `for row in x`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import libcst as cst

from fusionlint.finding import Edit, Finding
from fusionlint.lazily import regex
from fusionlint.patterns.code.at import TO_ARRAY, holds, names_read
from fusionlint.patterns.code.calls import as_argument, keyword
from fusionlint.patterns.code.imports import imported
from fusionlint.patterns.loops.carry import calls
from fusionlint.patterns.loops.collected import is_few, statements_of
from fusionlint.patterns.values.kinds import kind
from fusionlint.rule import Rule
from fusionlint.source.facts import NOTHING
from fusionlint.source.tree import Source

rule = Rule(__name__, harm="fusion")

_ARANGE = "jax.numpy.arange"
# The head of a loop over one variable, or several side by side.
_OVER_NAMES = regex(r"\s*for\b.*\bin\s+(zip\(\s*\w+(\s*,\s*\w+)*\s*\)|[^\W\d]\w*)\s*:")
_OF_ARRAYS = ("jax.numpy.", "jax.nn.", "jax.lax.", "jax.scipy.", "jax.random.", "jax.image.", "jax.vmap")
_MADE_OF_LISTS = (*TO_ARRAY, "jax.numpy.stack")
_JOINS = tuple(f"jax.numpy.{name}" for name in ("array", "asarray", "stack", "vstack", "concatenate"))
_STACKS = _JOINS[:3]  # of rows along a new axis, the first
_FOR = regex(r"\bfor\b.*\bin\b")
# In so many more lines the head of a comprehension stands.
_LINES = 9
_CUT = "each row of {} is cut out by itself, and worked on by operations of its own"
# The page's pair about rows.
_ROWS = 1


class _Step(NamedTuple):
    """What a statement does with a value: it goes `into` a "sum" or a "list" of this name, or gets the name itself."""

    into: str
    name: str
    value: cst.BaseExpression


@rule.source("For", "CompFor", calls=(_ARANGE,))
def indices_from_an_array(loop: cst.For | cst.CompFor, source: Source) -> Iterator[Finding]:
    """The array is `jnp.arange(n)`, and the loop reads the index that it gets from it."""
    arange = source.value(loop.iter) if isinstance(loop.iter, cst.Name) else loop.iter
    if not source.calls(arange, _ARANGE) or not isinstance(loop.target, cst.Name):
        return
    if is_few(arange, source):
        return
    reads = source.reads(loop.target)
    is_said = any(source.nearest(read, cst.FormattedStringExpression) for read in reads)  # as no traced value can be
    if not reads or is_said or any(arg.keyword is not None or _is_fraction(arg.value, source) for arg in arange.args):
        return
    counted = ", ".join(source.code(arg.value) for arg in arange.args)
    shown = f"range({counted})" if len(counted) <= 40 and "\n" not in counted else "range(...)"
    yield source.finding(
        loop if isinstance(loop, cst.For) else loop.iter,
        f"each `{loop.target.value}` is a traced value: {_what_comes_of_it(reads, source)}",
        write=shown,
        edits=_edits(loop, arange, source),
        safe=all(_is_index(read, source) for read in reads),
    )


def _what_comes_of_it(reads: Sequence[cst.Name], source: Source) -> str:
    """What XLA is given: slices where something is indexed, numbers that it computes one by one elsewhere."""
    if any(_is_in_an_index(read, source) for read in reads):
        return "what it indexes is sliced at a place that XLA does not know"
    return "what Python could compute from a number is computed in the program, each time anew"


def _is_in_an_index(read: cst.Name, source: Source) -> bool:
    return any(isinstance(above, cst.Index | cst.Slice) for above in source.ancestors(read))


def _edits(loop: cst.For | cst.CompFor, arange: cst.Call, source: Source) -> tuple[Edit, ...]:
    """`range` in place of `jnp.arange`, where all that it takes is seen to be whole numbers."""
    if loop.iter is not arange or source.facts.lookup(source.scope(loop), "range") is not None:
        return ()
    if not all(_is_whole(arg.value, source) for arg in arange.args):
        return ()
    return (source.replace(arange.func, "range"),)


def _is_fraction(node: cst.BaseExpression, source: Source) -> bool:
    """Whether steps of a fraction are taken: `range` does not go by those."""
    node = source.meant(node)
    return holds(node, cst.Float, cst.Divide)


def _is_whole(node: cst.BaseExpression, source: Source) -> bool:
    """Whether `node` is a whole Python number: written out, a length, or computed from such."""
    match node:
        case cst.Integer() | cst.Subscript(value=cst.Attribute(attr=cst.Name("shape"))):
            return not isinstance(node, cst.Subscript) or isinstance(node.slice[0].slice, cst.Index)
        case cst.Attribute(attr=cst.Name("size" | "ndim")):
            return True
        case cst.Call():
            return source.calls(node, "len")
        case cst.BinaryOperation(
            left=left, operator=cst.Add() | cst.Subtract() | cst.Multiply() | cst.FloorDivide(), right=right
        ):
            return _is_whole(left, source) and _is_whole(right, source)
        case cst.Name():
            value = source.value(node)
            return value is not None and _is_whole(value, source)
    return False


def _is_index(read: cst.Name, source: Source) -> bool:
    """Whether `read` is all of an index, or an index but for whole numbers: `x[i]`, `x[2 * i + 1]`."""
    node: cst.CSTNode = read
    for above in source.ancestors(read):
        match above:
            case cst.Index():
                return True
            case cst.BinaryOperation(left=left, operator=cst.Add() | cst.Subtract() | cst.Multiply(), right=right) if (
                isinstance(right if node is left else left, cst.Integer)
            ):
                node = above
            case _:
                return False
    return False


def _working_in_loops(source: Source) -> Iterator[str]:
    """The scopes that compute by jax in loops over variables: asked of the facts, and of the line of the loop."""
    for place, name, (_, _, loops, _) in source.project.named_calls(source.path):
        is_of_jax = bool(loops) and name is not None and name.startswith(_OF_ARRAYS)
        if is_of_jax and source.runs(place.scope, "traced") and _OVER_NAMES.match(source.pieces.lines[loops[-1] - 1]):
            yield place.scope


@rule.source("For", when=_working_in_loops)
def rows_gone_through(loop: cst.For, source: Source) -> Iterator[Finding]:
    """The same work on every row of an array, or of several, put in a list or added up: no turn needs another."""
    arrays = _gone_through(loop.iter, source)
    if not _are_long(arrays, source):
        return
    is_sum = _is_of_turns_apart(loop, source)
    if is_sum is None:
        return
    shown = ", ".join(array.value for array in arrays)
    turns = f"{source.alias('jax') or 'jax'}.vmap of what a turn makes, over {shown}"
    yield source.finding(
        loop,
        _CUT.format(shown),
        write=f"a product of matrices, or the sum along the first axis of {turns}" if is_sum else turns,
        pair=_ROWS,
    )


def _listing(source: Source) -> Iterator[str]:
    """The scopes that hand a join what is no name and no list, with a `for` in the lines that it begins with."""
    for name in _JOINS:
        for place, call in source.called(name):
            lines = source.pieces.lines[call[3] - 1 : call[3] + _LINES]
            if source.whole(call).value.arguments[:1] == (NOTHING,) and any(map(_FOR.search, lines)):
                yield place.scope


@rule.source("Call", when=_listing, needs=_JOINS)
def rows_in_a_comprehension(node: cst.Call, source: Source) -> Iterator[Finding]:
    """The same in a comprehension: `jnp.stack([jnp.dot(w, row) for row in x])`."""
    match node:
        case cst.Call(args=[cst.Arg(value=cst.ListComp(elt=made, for_in=loop)), *_]) if source.calls(node, *_JOINS):
            arrays = _gone_through(loop.iter, source) if not loop.ifs and loop.inner_for_in is None else ()
        case _:
            return
    if not _are_long(arrays, source):
        return
    if any(source.calls(source.meant(array), _ARANGE) for array in arrays) or _is_taken_apart(node, source):
        return  # told of as indices; or no stack is left once XLA has simplified it
    own = {name.value for name in names_read(loop.target)}
    is_work = not isinstance(made, cst.Name) and any(name.value in own for name in names_read(made))
    if not is_work or not all((source.name_called(call) or "").startswith(_OF_ARRAYS) for call in calls(made)):
        return
    shown, at_once = ", ".join(array.value for array in arrays), _at_all(made, own, arrays, source)
    yield source.finding(
        node,
        _CUT.format(shown),
        write=at_once or f"{source.alias('jax') or 'jax'}.vmap of what is made, over {shown}",
        edits=_all_at_once(node, loop, made, at_once, source),
        pair=_ROWS,
    )


def _is_taken_apart(join: cst.Call, source: Source) -> bool:
    """`a, b, c = jnp.stack([...])`: each row is what was made for it, measured no less by a vmap."""
    match source.parent(join):
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Tuple())]):
            return True
    return False


def _all_at_once(
    node: cst.Call, loop: cst.CompFor, made: cst.BaseExpression, at_once: str | None, source: Source
) -> tuple[Edit, ...]:
    """What is made of all rows, in place of their stack: of one array, whose rows are named by one name."""
    if not source.calls(node, *_STACKS) or source.has_comment(node) or len(node.args) > 2:
        return ()
    own = {name.value for name in names_read(loop.target)}
    if any(name.value in own and source.nearest(name, cst.Slice) is not None for name in names_read(made)):
        return ()  # what an array bounds no slice can be
    dtype = keyword(node, "dtype")
    if len(node.args) == 2 and dtype is None:
        return ()  # an axis
    as_type = f".astype({source.code(dtype)})" if dtype is not None else ""
    if at_once is not None:
        return (source.replace(node, f"{at_once}{as_type}"),)
    jax = imported("jax", node, source)
    if jax is None or not isinstance(loop.target, cst.Name) or not isinstance(loop.iter, cst.Name):
        return ()
    if holds(made, cst.NamedExpr) or "\n" in source.code(made):
        return ()
    text = f"{jax.name}.vmap(lambda {loop.target.value}: {as_argument(made, source)})({loop.iter.value}){as_type}"
    return (*jax.edits, source.replace(node, text))


def _are_long(arrays: Sequence[cst.Name], source: Source) -> bool:
    """Whether what is gone through are arrays of more than a few rows."""
    return bool(arrays) and all(kind(array, source) == "array" and not _is_short(array, source) for array in arrays)


def _at_all(made: cst.BaseExpression, own: set[str], arrays: Sequence[cst.Name], source: Source) -> str | None:
    """`cov[places]` of `cov[place] for place in places`, `bounds[:, 0]` of `row[0] for row in bounds`."""
    match made:
        case cst.Subscript(
            value=cst.Name(), slice=[cst.SubscriptElement(slice=cst.Index(value=cst.Integer(place)))]
        ) if len(arrays) == 1:
            return f"{arrays[0].value}[:, {place}]"
        case cst.Subscript(value=of, slice=[cst.SubscriptElement(slice=cst.Index(value=cst.Name(place)))]) if (
            len(arrays) == 1 and place in own and own.isdisjoint(name.value for name in names_read(of))
        ):
            return f"{source.code(of)}[{arrays[0].value}]"
    return None


def _is_short(array: cst.Name, source: Source) -> bool:
    """Whether an array is made of a short list, `jnp.array([a, b])`, or counts few."""
    made = source.meant(array)
    listed = (
        made.args[0].value
        if isinstance(made, cst.Call) and made.args and source.calls(made, *_MADE_OF_LISTS)
        else array
    )
    return is_few(listed, source)


def _gone_through(iterated: cst.BaseExpression, source: Source) -> Sequence[cst.Name]:
    """`x` of `for row in x`, `x` and `y` of `for a, b in zip(x, y)`."""
    names = [arg.value for arg in iterated.args if arg.keyword is None] if source.calls(iterated, "zip") else [iterated]
    found = [name for name in names if isinstance(name, cst.Name)]
    return found if len(found) == len(names) else ()


def _is_of_turns_apart(loop: cst.For, source: Source) -> bool | None:
    """Whether what the turns make is added up, False where it goes into lists; None where a turn may need another, or
    does what no trace of all at once would."""
    steps = [_step(statement) for statement in statements_of(loop)]
    known = [step for step in steps if step is not None]
    if len(known) < len(steps) or not all(_is_of_arrays(call, source) for call in calls(loop.body)):
        return None
    if not any(step.into for step in known) or not all(_is_of_this_turn(i, known) for i in range(len(known))):
        return None
    return any(step.into == "sum" for step in known)


def _is_of_this_turn(number: int, steps: Sequence[_Step]) -> bool:
    """Whether one of the steps of a turn reads of what the loop makes only what has got its name before, in this turn,
    and for good."""
    made = [step.name for step in steps]
    named = {step.name for step in steps[:number] if not step.into and made.count(step.name) == 1}
    return all(read.value not in made or read.value in named for read in names_read(steps[number].value))


def _step(statement: cst.BaseSmallStatement | None) -> _Step | None:
    """What a statement does with a value, None for any that does something else."""
    match statement:
        case cst.Expr(value=cst.Call(func=cst.Attribute(value=cst.Name(name), attr=cst.Name("append")), args=[arg])):
            return _Step("list", name, arg.value)
        case cst.AugAssign(target=cst.Name(name), operator=cst.AddAssign(), value=value):
            return _Step("sum", name, value)
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Name(name))], value=value):
            match value:
                case cst.BinaryOperation(left=cst.Name(left), operator=cst.Add(), right=right) if left == name:
                    return _Step("sum", name, right)
            return _Step("", name, value)
    return None


def _is_of_arrays(call: cst.Call, source: Source) -> bool:
    """Whether a call is one of jax, or of a list to take something in."""
    name = source.name_called(call)
    if name is not None:
        return name.startswith(_OF_ARRAYS)
    return isinstance(call.func, cst.Attribute) and call.func.attr.value == "append"
