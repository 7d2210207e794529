"""Classes that are masked and reduced one by one: `for k in range(n): out.append(jnp.sum(x * (labels == k)))`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, TypeAlias

import libcst as cst

from fusionlint.finding import Finding
from fusionlint.patterns.code.at import inside, names_in, names_read
from fusionlint.patterns.code.calls import argument, brief
from fusionlint.patterns.compiled.one_by_one import labels_apart
from fusionlint.patterns.loops.carry import calls
from fusionlint.patterns.loops.collected import Comprehension, collected, is_few, iterated_by, statements_of
from fusionlint.patterns.loops.turns import writes_kernels
from fusionlint.patterns.runs.concrete import is_concrete
from fusionlint.patterns.runs.often import is_called_as_once
from fusionlint.patterns.values.kinds import kind
from fusionlint.rule import Rule
from fusionlint.source.facts import last_name
from fusionlint.source.tree import Source

if TYPE_CHECKING:
    from fusionlint.hlo import parse as hlo
    from fusionlint.hlo.barriers import Barrier

rule = Rule(__name__, harm="fusion")

# Of fewer labels a line may be two calls.
_LABELS = 4

_REDUCTIONS = tuple(
    f"jax.numpy.{name}" for name in ("sum", "mean", "any", "all", "max", "min", "prod", "average", "count_nonzero")
)
_METHODS = frozenset(("append", "astype", "reshape", "ravel", "squeeze", "sum", "mean", "any", "all", "max", "min"))
_LONG = 40
# The page's pairs: values of each class, and how many it has.
_REDUCED, _COUNTS = range(2)

_Loop: TypeAlias = "cst.For | Comprehension"


@rule.source("Call", calls=_REDUCTIONS, in_loop=True)
def reduced_class_by_class(node: cst.Call, source: Source) -> Iterator[Finding]:
    """The first reduction in a loop over classes whose results are put together, of what one class lets through."""
    loop = source.loop(node)
    if not source.calls(node, *_REDUCTIONS) or not isinstance(loop, cst.For | cst.ListComp | cst.GeneratorExp):
        return
    counted = _counted(loop, source)
    if counted is None or writes_kernels(source):
        return
    counter, classes = counted
    picked = _picked(node, counter, loop, source)
    if picked is None or is_concrete(node, source) or not collected(loop, source):
        return
    if is_called_as_once(last_name(source.scope(node))):
        return
    reductions = list(_reductions(loop, counter, source))
    if reductions[0] is not node or not _are_apart(loop) or not _is_of_jax(loop, source):
        return
    pair = _pair(reductions, source)
    if pair is None:
        return
    count = ", ".join(source.code(arg) for arg in classes.args)
    shown = brief(source.code(picked), _LONG, "labels")
    jax, jnp = source.alias("jax") or "jax", source.jnp
    yield source.finding(
        loop if isinstance(loop, cst.For) else node,
        f"each class of `{shown}` is picked out and reduced by itself, one {counter} after the other",
        write=f"{jax}.vmap of what is done for one {counter}, over {jnp}.arange({count}): or the classes along an axis "
        f"of their own, `{shown}[..., None] == {jnp}.arange({count})`",
        pair=pair,
    )


@rule.barrier
def summed_label_by_label(barrier: Barrier, module: hlo.Module) -> str | None:
    """What is summed of one label after the other, or is made for that."""
    labels = labels_apart(barrier, module)
    if labels < _LABELS:
        return None
    return f"all {labels} labels at once: compare with jnp.arange, and sum or multiply once, or jax.ops.segment_sum"


def _counted(loop: _Loop, source: Source) -> tuple[str, cst.Call] | None:
    """k and the range, of a loop `for k in range(n)` that is not seen to go over a few."""
    over = iterated_by(loop)
    match loop.target if isinstance(loop, cst.For) else loop.for_in.target:
        case cst.Name(counter) if source.calls(over, "range"):
            return None if is_few(over, source) else (counter, over)
    return None


def _picked(node: cst.Call, counter: str, loop: _Loop, source: Source) -> cst.BaseExpression | None:
    """The labels of which a reduction takes those that are equal to the counter: by a mask in its arguments, or by a
    name that this turn of the loop gave to one."""
    parts = (part for arg in node.args for part in inside(arg.value))
    found = (_compared(each, counter, source) for part in parts for each in (part, *_made(part, loop, source)))
    return next((labels for labels in found if labels is not None), None)


def _made(part: cst.CSTNode, loop: _Loop, source: Source) -> Iterator[cst.CSTNode]:
    """What a name stands for that this turn of the loop gave."""
    value = source.value(part) if isinstance(part, cst.Name) else None
    if value is not None and source.loop(value) is loop:
        yield from inside(value)


def _compared(part: cst.CSTNode, counter: str, source: Source) -> cst.BaseExpression | None:
    """What may be an array and is compared with the counter."""
    match part:
        case cst.Comparison(left=left, comparisons=[cst.ComparisonTarget(operator=cst.Equal(), comparator=right)]):
            for one, other in ((left, right), (right, left)):
                if isinstance(one, cst.Name) and one.value == counter and kind(other, source) in ("array", None):
                    return None if isinstance(other, cst.Integer) else other
    return None


def _reductions(loop: _Loop, counter: str, source: Source) -> Iterator[cst.Call]:
    """The reductions in the loop of what one class lets through."""
    for node in inside(loop.body if isinstance(loop, cst.For) else loop.elt, cst.Call):
        if source.calls(node, *_REDUCTIONS) and _picked(node, counter, loop, source):
            yield node


def _pair(reductions: Sequence[cst.Call], source: Source) -> int | None:
    """Which pair of the page it is: rows of values, reduced along the first axis, or masks alone. Values that are one
    number each XLA reduces class by class in one kernel of a GPU, and a CPU is no slower for it, as measured."""
    if all(_is_mask(call.args[0].value, source) for call in reductions):
        return _COUNTS
    axes = (argument(call, 1, "axis") for call in reductions)
    return _REDUCED if any(isinstance(axis, cst.Integer) and axis.value == "0" for axis in axes) else None


def _is_mask(value: cst.BaseExpression, source: Source) -> bool:
    """Whether a value is truth alone: a comparison, several conditions, either as numbers."""
    match source.meant(value):
        case cst.Comparison():
            return True
        case cst.BinaryOperation(operator=cst.BitAnd() | cst.BitOr()):
            return True
        case cst.Call(func=cst.Attribute(value=inner, attr=cst.Name("astype"))):
            return _is_mask(inner, source)
    return False


def _is_of_jax(loop: _Loop, source: Source) -> bool:
    """Whether a turn calls nothing but jax and methods of arrays and lists: what else it may do is more work."""
    body = loop.body if isinstance(loop, cst.For) else loop.elt
    for call in calls(body):
        name = source.name_called(call)
        if name is None and isinstance(call.func, cst.Attribute) and call.func.attr.value in _METHODS:
            continue
        if name is None or not name.startswith("jax."):
            return False
    return True


def _are_apart(loop: _Loop) -> bool:
    """Whether a turn needs no other: it gives names to values and appends some, and reads no name before it has it."""
    if not isinstance(loop, cst.For):
        return True
    statements = statements_of(loop)
    missing = {name for statement in statements for name in _names(statement)}
    for statement in statements:
        match statement:
            case (
                cst.Assign(value=value) | cst.Expr(value=cst.Call(func=cst.Attribute(attr=cst.Name("append"))) as value)
            ):
                if any(name.value in missing for name in names_read(value)):
                    return False
                missing.difference_update(_names(statement))
            case _:
                return False
    return True


def _names(statement: cst.CSTNode | None) -> Sequence[str]:
    """The names that a statement gives to something."""
    match statement:
        case cst.Assign(targets=[cst.AssignTarget(target=target)]):
            return [name.value for name in names_in(target)]
    return ()
