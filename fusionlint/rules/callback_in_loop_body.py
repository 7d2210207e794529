"""A call from the device to Python, or a print, in the body of a `lax` loop: every step of it goes to the host."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from fusionlint.finding import Finding
from fusionlint.lazily import regex
from fusionlint.patterns.callbacks.calls import (
    CALLBACKS,
    DEPTH,
    PRINT,
    RETURNS,
    SETTINGS,
    gives_back,
    loop_around,
    takes_many_steps,
)
from fusionlint.patterns.callbacks.on_the_host import is_arithmetic, is_logged, is_printed, is_progress, is_rendered
from fusionlint.patterns.code.at import is_literal, is_none
from fusionlint.patterns.code.functions import Function, result_of
from fusionlint.patterns.loops.carry import read
from fusionlint.patterns.runs.loop_bodies import all_loop_bodies, is_small
from fusionlint.patterns.runs.switches import is_asked_for, is_switched, is_tried
from fusionlint.rule import Rule
from fusionlint.source.names import TREE_MAPS
from fusionlint.source.tree import Source
from fusionlint.source.walk import dotted

rule = Rule(__name__, harm="transfer")

_REDUCES = frozenset(("mean", "sum", "max", "min", "std", "var", "nanmean", "nanmax", "nanmin", "any", "all"))
_OF_TWO = ("jax.numpy.maximum", "jax.numpy.minimum")
# dm-tree's, for what jax.tree.map does.
_TREE_MAPS = (*TREE_MAPS, "tree.map_structure")
_RARE = regex(r"(^|_)(eval\w*|checkpoint\w*|ckpt\w*)(_|$)")


@rule.source("Call", calls=CALLBACKS, where="used")
def called_in_every_step(node: cst.Call, source: Source) -> Iterator[Finding]:
    """Callbacks in loop bodies and in what those call every time; prints that no flag switches on."""
    name = source.qualified_name(node.func)
    body = loop_around(node, source) if name in CALLBACKS else None
    if body is None:
        return
    if gives_back(node, source):
        if not is_arithmetic(node, source):
            return
        message = "each step of the loop waits for Python on the host"
        write = "write it with jax.numpy; or call once, before or after the loop, with all steps' values"
    else:
        if _is_meant(node, body, source):
            return
        message = "each step of the loop hands its values to Python on the host"
        write = (
            "return the values as outputs of the scan, reduced, and report them once after it; what has to be seen "
            "while it runs, in every so many steps, under a jax.lax.cond"
        )
    yield source.finding(node, message, write=write)


def _is_meant(node: cst.Call, body: Function, source: Source) -> bool:
    """Whether somebody asked for what `node` hands out, or it costs little beside the step: a print or a report behind
    a setting, a few numbers of many small steps, what a training step has to say. Where the loop returns the values as
    well, all of it can be said after the loop."""
    is_large = not is_small(source.project, source.body_place(body))
    if source.calls(node, PRINT):
        return is_large or is_switched(node, source) or is_tried(node, source)
    if is_asked_for(node, source) or is_printed(node, source) or is_progress(node, source):
        return True
    if is_rendered(node, source):
        return True
    if _is_summary(node, body, source) or _is_rare(node, body, source) or is_logged(node, body, source):
        return True
    if _is_returned(node, body, source):
        return False
    return is_large or is_switched(node, source)


def _is_returned(node: cst.Call, body: Function, source: Source) -> bool:
    """Whether a scan gives out in each step what its body hands to the host: `return state, metrics`."""
    if all_loop_bodies(source.project).get(source.body_place(body)) != "jax.lax.scan":
        return False
    match result_of(body, source):
        case cst.Tuple(elements=[_, cst.Element(value=out)]) if not is_none(out):
            given = {name for arg in node.args[1:] for name in read(arg)}
            return not given.difference(source.facts.bindings.get("", ())).isdisjoint(read(out))
    return False


def _is_summary(node: cst.Call, body: Function, source: Source) -> bool:
    """Whether each call of `body` goes through many small steps, and hands out a few numbers of them all:
    `{"loss": losses.mean(), "step": step}`."""
    values = [arg.value for arg in node.args[1:] if arg.keyword is None or arg.keyword.value not in SETTINGS]
    if source.qualified_name(node.func) in RETURNS:  # what the callback returns comes second
        if not values or not isinstance(values[0], cst.Name) or values[0].value != "None":
            return False
        values = values[1:]
    match values:
        case [cst.Tuple(elements=parts)]:
            values = [part.value for part in parts]
    if not values or not takes_many_steps(body, source):
        return False
    return _is_reduced(values[0], source) and all(_is_count(v) or _is_reduced(v, source) for v in values[1:])


def _is_rare(node: cst.Call, body: Function, source: Source) -> bool:
    """Whether each call of `body` goes through many small steps, and says that it evaluates what came of them, or saves
    it: that is told at once, or lost with the program."""
    names = {body.name.value} if isinstance(body, cst.FunctionDef) else set()
    if node.args and isinstance(called := node.args[0].value, cst.Name | cst.Attribute):
        names.add(dotted(called).rpartition(".")[2])
    return any(map(_RARE.search, names)) and takes_many_steps(body, source)


def _is_count(value: cst.BaseExpression) -> bool:
    """Whether `value` may be the number of a step, or of a seed, or one of some metrics: it has a name, `step + 1`,
    `metric["loss"]`."""
    match value:
        case cst.BinaryOperation(left=left, right=right):
            return all(_is_count(side) or is_literal(side) for side in (left, right))
        case cst.Subscript(value=cst.Name(), slice=[cst.SubscriptElement(slice=cst.Index(value=cst.SimpleString()))]):
            return True
    return isinstance(value, cst.Name | cst.Attribute)


def _is_reduced(value: cst.BaseExpression, source: Source, depth: int = DEPTH) -> bool:
    """Whether `value` is seen to be one number of however many, or some under names: means, sums, the largest."""
    if depth == 0:
        return False
    match value:
        case cst.Name():
            meant = _last_value(value, source)
            return meant is not None and _is_reduced(meant, source, depth - 1)
        case cst.BinaryOperation(left=left, right=right):
            return all(_is_reduced(side, source, depth) or is_literal(side) for side in (left, right))
        case cst.Dict(elements=elements):
            reduced = [_is_reduced(part.value, source, depth) for part in elements]
            rest = (part.value for part, known in zip(elements, reduced, strict=True) if not known)
            return any(reduced) and not any(isinstance(one, cst.Name) and source.value(one) is not None for one in rest)
        case cst.Call(args=[cst.Arg(value=cst.Lambda(body=inner)), *_]) if source.calls(value, *_TREE_MAPS):
            return _is_reduced(inner, source, depth)
        case cst.Call(func=cst.Attribute(attr=cst.Name(method)), args=[]) if method in _REDUCES:
            return True
        case cst.Call(args=[cst.Arg(value=one), cst.Arg(value=other)]) if source.calls(value, *_OF_TWO):
            return all(_is_reduced(side, source, depth) or is_literal(side) for side in (one, other))
        case cst.Call(args=[_]):
            module, _, name = (source.qualified_name(value.func) or "").rpartition(".")
            return module == "jax.numpy" and name in _REDUCES
    return False


def _last_value(name: cst.Name, source: Source) -> cst.BaseExpression | None:
    """What `name` was last given in its function, however it was cut since: `metrics = metrics[0]`, or `metrics =
    {k: v for k, v in metrics.items() if ...}`."""
    scope = source.scope(name)
    uses = source.uses(name)
    before = uses[: next(i for i, use in enumerate(uses) if use.node is name)]
    for use in reversed([use for use in before if use.is_write and source.scope(use.node) == scope]):
        statement = source.parent(source.parent(use.node) or use.node)
        given = statement.value if isinstance(statement, cst.Assign) else None
        match given:
            case cst.Subscript(value=cst.Name(whole)) if whole == name.value:
                continue
            case cst.DictComp(
                value=cst.Name(), for_in=cst.CompFor(iter=cst.Call(func=cst.Attribute(value=cst.Name(whole))))
            ) if whole == name.value:
                continue
        return given
    return None
