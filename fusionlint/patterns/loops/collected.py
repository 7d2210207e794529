"""Python loops that collect one array an iteration and join them after: `rows.append(f(x))`, then `jnp.stack(rows)`.

In: a `for` or comprehension of a Source. Out: what each iteration adds, where nothing else reads the list.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

import libcst as cst

from fusionlint.patterns.code.at import inside, names_in
from fusionlint.patterns.code.unpacked import assigned, assignment
from fusionlint.source.tree import Source

JOINS = frozenset(
    f"jax.numpy.{name}" for name in ("stack", "array", "asarray", "concatenate", "hstack", "vstack", "concat")
)
# Up to so many iterations a loop is as well written out.
FEW = 3
# What goes through what it is handed, as often as that has elements.
BARS = frozenset(("tqdm.tqdm", "tqdm.auto.tqdm", "tqdm.notebook.tqdm", "enumerate", "reversed", "rich.progress.track",
                  "zip"))  # fmt: skip

# What stands between the parts of a name: "NORTH_EAST". Lines and words can be many.
_MARKS = frozenset(("_", "-", ".", "/", ":"))

# What makes an array of a list is seldom further away than this.
_NEAR = 6
# What makes an array of a list, or sums that up.
_LISTED = ("jax.numpy.cumsum", "jax.numpy.array", "jax.numpy.asarray")

Comprehension: TypeAlias = "cst.ListComp | cst.GeneratorExp"


def collected(loop: cst.For | Comprehension, source: Source) -> list[cst.BaseExpression]:
    """The values that each iteration of `loop` adds to lists that are joined into arrays; empty where it does not."""
    if not isinstance(loop, cst.For):
        return [loop.elt] if loop.for_in.inner_for_in is None and _is_joined(loop, source) else []
    found = []
    for call in inside(loop.body):
        match call:
            case cst.Call(
                func=cst.Attribute(value=cst.Name() as name, attr=cst.Name("append")), args=[cst.Arg(value=value)]
            ) if source.loop(call) is loop and _is_joined_later(name, source):
                found.append(source.meant(value))
    return found


def counting(source: Source) -> Iterator[str]:
    """The scopes that go over a `range`."""
    return (place.scope for place, _ in source.called("range"))


def is_few(iterated: cst.BaseExpression, source: Source) -> bool:
    """Whether a loop over `iterated` is seen to run few times: `range(3)`, a short list, `jax.random.split(key)`."""
    iterated = source.meant(iterated)
    match iterated:
        case cst.List(elements=elements) | cst.Tuple(elements=elements):
            return len(elements) <= FEW
        case cst.Call(args=[cst.Arg(value=count)]) if source.calls(iterated, "range", "jax.numpy.arange"):
            turns = source.meant(count)
            return isinstance(turns, cst.Integer) and turns.evaluated_value <= FEW
        case cst.Call(args=[_, cst.Arg(value=cst.Integer() as count)]) if source.calls(iterated, "jax.random.split"):
            return count.evaluated_value <= FEW
        case cst.Call(args=[_]) if source.calls(iterated, "jax.random.split"):
            return True
        case cst.Call(args=[cst.Arg(value=inner), *_]) if source.calls(iterated, *BARS):
            return is_few(inner, source)
        case cst.Call(func=cst.Attribute(attr=cst.Name("split")), args=[cst.Arg(value=cst.SimpleString() as mark)]):
            return mark.evaluated_value in _MARKS
    return False


def statements_of(loop: cst.For) -> Sequence[cst.BaseSmallStatement | None]:
    """The statements of a loop; None in place of one that holds others."""
    if loop.orelse is not None or not isinstance(loop.body, cst.IndentedBlock):
        return (None,)
    lines = (line.body if isinstance(line, cst.SimpleStatementLine) else (None,) for line in loop.body.body)
    return [statement for line in lines for statement in line]


def target_names(loop: cst.For | Comprehension) -> set[str]:
    """The names that the loop binds anew in every iteration by its own head."""
    target = loop.target if isinstance(loop, cst.For) else loop.for_in.target
    return {node.value for node in names_in(target)}


def iterated_by(loop: cst.For | Comprehension) -> cst.BaseExpression:
    """What the loop goes over."""
    return loop.iter if isinstance(loop, cst.For) else loop.for_in.iter


def done_each_turn(loop: cst.For | Comprehension) -> cst.CSTNode:
    """What the loop does in each iteration."""
    return loop.body if isinstance(loop, cst.For) else loop.elt


def _is_joined(made: cst.BaseExpression, source: Source) -> bool:
    """Whether `made` is all that a join takes, directly or by its name."""
    if (name := source.assigned_name(made)) is not None:
        reads = source.reads(name)
        return bool(reads) and all(_is_join(read, source) for read in reads)
    return _is_join(made, source)


def _is_join(node: cst.CSTNode, source: Source) -> bool:
    call = source.handed_to(node)
    return call is not None and call.args[0].value is node and source.calls(call, *JOINS)


def _is_joined_later(name: cst.Name, source: Source) -> bool:
    """Whether the list `name` starts empty, is only appended to, and is joined in the end."""
    uses = source.uses(name)
    writes = [use.node for use in uses if use.is_write]
    if not writes or not all(is_empty_list(write, source) for write in writes):
        return False
    reads = [use.node for use in uses if not use.is_write]
    joined = [read for read in reads if _is_join(read, source)]
    return bool(joined) and all(read in joined or _is_appended_to(read, source) for read in reads)


def is_empty_list(write: cst.Name, source: Source) -> bool:
    """Whether a list without elements is stored there."""
    match assignment(write, source) or source.parent(write):
        case cst.Assign(value=cst.List(elements=[])) | cst.AnnAssign(value=cst.List(elements=[])):
            return True
    return False


def _is_appended_to(read: cst.Name, source: Source) -> bool:
    match source.parent(read):
        case cst.Attribute(value=value, attr=cst.Name("append")):
            return value is read
    return False


def is_of_a_list(array: cst.BaseExpression, source: Source, depth: int = _NEAR) -> bool:
    """Whether an array holds what Python lists, or sums of that, `jnp.cumsum(jnp.array([0] + sizes))`: where the parts
    of something begin, of which there are few."""
    meant = source.meant(array)
    if depth == 0:
        return False  # a variable may be made of itself, `x = jnp.sort(x)`
    if isinstance(meant, cst.Name):
        return any(_is_listed_by(use.node, source, depth - 1) for use in source.writes(meant))
    match meant:
        case cst.Call(args=[cst.Arg(value=inner, keyword=None), *_]) if source.calls(meant, *_LISTED):
            return is_of_a_list(inner, source, depth - 1)
        case cst.Call(func=cst.Attribute(value=inner, attr=cst.Name("astype"))):
            return is_of_a_list(inner, source, depth - 1)
        case cst.Call(args=[_]):
            return source.calls(meant, "list", "tuple", "range", "sorted")
        case cst.BinaryOperation(left=left, operator=cst.Add(), right=right):
            return any(isinstance(side, cst.List | cst.ListComp) for side in (left, right))
        case cst.ListComp():
            return True
    return False


def _is_listed_by(written: cst.Name, source: Source, depth: int) -> bool:
    """Whether one of several writes of a variable stores such an array; the others put it in another order."""
    made = assigned(written, source)
    return source.calls(made, *_LISTED) and is_of_a_list(made, source, depth)
