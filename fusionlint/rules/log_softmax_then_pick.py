"""A log-softmax of everything of which a loss reads one entry a row: `take_along_axis(log_softmax(x), labels, -1)`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import libcst as cst

from fusionlint.finding import Edit, Finding
from fusionlint.lazily import regex
from fusionlint.patterns.code.at import constant, elements, inside, names_in
from fusionlint.patterns.code.calls import argument, as_operand, brief, has_only, is_handed_to, keyword
from fusionlint.patterns.code.layout import in_place_of
from fusionlint.patterns.code.modules import named
from fusionlint.patterns.code.moved import lines_between
from fusionlint.patterns.code.same import is_same_at
from fusionlint.patterns.compiled.behind import is_number, steps_in
from fusionlint.patterns.compiled.of_jax import is_of_call
from fusionlint.patterns.compiled.readers import first_uses, value_of, writer_of
from fusionlint.patterns.operations.picked import is_same_axis
from fusionlint.patterns.operations.softmax import LOG_SOFTMAX
from fusionlint.patterns.runs.under import under_gradient
from fusionlint.rule import Rule
from fusionlint.source.tree import Source

if TYPE_CHECKING:
    from fusionlint.hlo import parse as hlo
    from fusionlint.hlo.barriers import Barrier

rule = Rule(__name__, harm="fusion")

_OF_GRADIENT = "transpose(jvp("
_TAKE = "jax.numpy.take_along_axis"
_DIAGONALS = ("jax.numpy.diag", "jax.numpy.diagonal", "jax.numpy.trace")
# What is differentiated by somebody else, by the names of functions, classes and modules.
_LOSS = regex(r"(^|[/._])(loss(es)?|nll|xent|cross_entropy|objectives?)([/._]|$)")
# What a policy picks: one of a few, where nothing around speaks of words.
_ACTIONS = regex(r"(^|_)actions?(_|$)")
_WORDS = regex(r"(^|_)(vocab\w*|tokens?|labels?|prompts?|completions?)(_|$)")
_SUMS = ("jax.nn.logsumexp", "jax.scipy.special.logsumexp", "jax.nn.softmax")


@rule.source("Call", calls=LOG_SOFTMAX)
def picked_from_all(node: cst.Call, source: Source) -> Iterator[Finding]:
    """All that is read of it is one entry of each row, or the diagonal, on the way to a gradient."""
    logits = argument(node, 0, "x")
    if logits is None:
        return
    axis = argument(node, 1, "axis")
    along = -1 if axis is None else constant(axis)
    reads = source.readers(node)
    if along is None or not reads or not all(_is_pick(read, along, source) for read in reads):
        return
    if not under_gradient(node, source) and not _LOSS.search(f"{source.path}.{source.scope(node)}"):
        return  # forward alone it is no more work for a GPU
    if all(_is_an_action(read, logits, source) for read in reads):
        return
    x, nn = brief(source.code(logits), 40, "x"), named("jax.nn", node, source)
    picked = _picked(node, reads[0], logits, along, source) if len(reads) == 1 else None
    how = ", keepdims=True" if any(_is_taken_along(read, source) for read in reads) else ""
    if (where := keyword(node, "where")) is not None:
        how += f", where={brief(source.code(where), 40)}"  # summed up over those alone
    yield source.finding(
        node,
        "all logits are normalised, and kept for the gradient, for the few that are picked",
        write=picked.text if picked else f"pick from {x} itself, and subtract {nn}.logsumexp({x}, axis={along}{how})",
        edits=picked.edits if picked else (),
    )


@rule.barrier
def gradient_of_a_pick(barrier: Barrier, module: hlo.Module) -> str | None:
    """The gradient of a few numbers, scattered into zeros for the gradient of the log-softmax that they were of."""
    here = module.computations[barrier.computation]
    made = (
        one
        for one in steps_in(writer_of(barrier, module), here, module, "scatter")
        if one.step.shape.dims == value_of(barrier, module).shape.dims and _OF_GRADIENT in one.step.op_name
    )
    uses = [*first_uses(barrier, module)]
    if not uses or not any(is_number(one.operand(0, module), module) for one in made):
        return None  # scattered into the gradient of what else reads the log-softmax
    if not all(_OF_GRADIENT in use.op_name and is_of_call(use, ("log_softmax",)) for use in uses):
        return None
    return "jax.nn.logsumexp(logits, axis=-1) less the logits that are picked: the gradient is no whole array of zeros"


class _Picked(NamedTuple):
    """What is written for a pick, and the edits that do it."""

    text: str
    edits: tuple[Edit, ...]


def _picked(
    node: cst.Call, read: cst.CSTNode, logits: cst.BaseExpression, along: int, source: Source
) -> _Picked | None:
    """The pick of the logits less the logarithm of the sum, without the line that normalises them all."""
    above = source.parent(read)
    pick = source.parent(above) if isinstance(above, cst.Arg) else above
    if not isinstance(pick, cst.Call | cst.Subscript) or not _is_brief(logits) or not has_only(node, 2, "x", "axis"):
        return None
    name = source.assigned_name(node)
    is_same = is_same_at(logits, pick, source, dropped=name)
    lines = [*lines_between(node, pick, source)]
    if source.calls(pick, "jax.numpy.trace") or not is_same or None in lines or source.has_comment(pick):
        return None
    x, whole = source.code(logits), source.code(pick)
    kept = ", keepdims=True" if _is_taken_along(read, source) else ""
    taken = _with(pick, read, as_operand(logits, x) if isinstance(pick, cst.Subscript) else x, source)
    text = f"{taken} - {named('jax.nn', node, source)}.logsumexp({x}, axis={along}{kept})"
    stands_alone = isinstance(source.parent(pick), cst.Assign | cst.Return | cst.Arg)
    if "\n" in whole:
        edit = source.replace(pick, f"({text})")
    else:
        edit = in_place_of(pick, text if stands_alone else f"({text})", source)
    return _Picked(text, (edit, *(line for line in lines if line is not None)))


def _with(pick: cst.CSTNode, read: cst.CSTNode, text: str, source: Source) -> str:
    """The code of a pick, from `text` in place of `read`."""
    where, inner = source.location(pick), source.location(read)
    lines = [source.line(number) for number in range(where.line, where.end_line + 1)]
    lines[-1] = lines[-1][: where.end_column - 1]
    first, last = inner.line - where.line, inner.end_line - where.line
    before = "".join([*lines[:first], lines[first][: inner.column - 1]])[where.column - 1 :]
    return before + text + "".join([lines[last][inner.end_column - 1 :], *lines[last + 1 :]])


def _is_brief(logits: cst.BaseExpression) -> bool:
    """Whether it is no work to write logits twice: a name, a field, a part, or another dtype of it."""
    match logits:
        case cst.Name():
            return True
        case cst.Attribute(value=inner) | cst.Subscript(value=inner):
            return _is_brief(inner)
        case cst.Call(func=cst.Attribute(value=inner, attr=cst.Name("astype"))):
            return _is_brief(inner)
    return False


def _is_an_action(read: cst.CSTNode, logits: cst.BaseExpression, source: Source) -> bool:
    """Whether what is picked is called an action, in a function that neither speaks of words nor needs the sum of the
    same logits anyway, for an entropy: the array of a policy's few actions is small, and a GPU gains nothing."""
    pick, function = source.parent(read), source.function(read)
    pick = source.parent(pick) if isinstance(pick, cst.Arg) else pick
    if pick is None or function is None or not any(_ACTIONS.search(name.value) for name in names_in(pick)):
        return False
    x = source.code(logits)
    for part in inside(function):
        if isinstance(part, cst.Name) and _WORDS.search(part.value):
            return False
        if source.calls(part, *_SUMS) and any(source.code(a.value) == x for a in part.args):
            return False
    return True


def _is_taken_along(read: cst.CSTNode, source: Source) -> bool:
    """Whether what is picked keeps the axis, as an axis of one or more."""
    return is_handed_to(read, source, _TAKE)


def _is_pick(read: cst.CSTNode, along: int, source: Source) -> bool:
    """Whether `read` is only read at one place of each row along the axis."""
    match above := source.parent(read):
        case cst.Arg():
            call = source.parent(above)
            if not isinstance(call, cst.Call) or call.args[0] is not above:
                return False
            if source.calls(call, *_DIAGONALS):
                return len(call.args) == 1
            if not source.calls(call, _TAKE):
                return False
            taken = argument(call, 2, "axis")
            axis = -1 if taken is None else constant(taken)
            return is_same_axis(axis, along)
        case cst.Subscript(value=value, slice=slices) if value is read and along in (-1, 1):
            match elements(slices):
                case [cst.Call() as rows, cst.Name() | cst.Attribute()]:
                    return source.calls(rows, "jax.numpy.arange")
    return False
