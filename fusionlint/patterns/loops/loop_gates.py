"""Which iterations of a Python loop run a node: all of them, or those that an `if`, a handler or an inner loop lets.

In: a node inside a loop. Out: what stands between the two.
"""

from __future__ import annotations

from collections.abc import Callable

import libcst as cst

from fusionlint.lazily import regex
from fusionlint.patterns.code.at import holds
from fusionlint.patterns.loops.carry import Loop, calls
from fusionlint.source.tree import Source
from fusionlint.source.walk import dotted

# Who logs, of several processes that do the same.
_PROCESS = regex(r"(^|[._])(process_(index|id)|(is_)?(main|master|lead|primary|chief)_?(process|host|rank)?|rank)$")


def is_gated(node: cst.CSTNode, loop: Loop, source: Source) -> bool:
    """Whether an `if` or a handler inside the loop decides if `node` runs, or a loop inside it how often."""
    return _is_behind(node, loop, source, _is_gate)


def is_left_out(node: cst.CSTNode, loop: Loop, source: Source) -> bool:
    """The same but for an `if` that ends the loop instead of `node`: `if isnan(loss): break`, `else: ...`."""
    around = set(source.ancestors(node))
    return _is_behind(node, loop, source, lambda gate: _is_gate(gate) and not _ends_unless(gate, around))


def _ends_unless(gate: cst.CSTNode, around: set[cst.CSTNode]) -> bool:
    """Whether this is an `if` whose own arm leaves the loop, and `around` is what stands around a node of another."""
    match gate:
        case cst.If(body=cst.IndentedBlock(body=[*_, cst.SimpleStatementLine(body=[*_, last])]) as arm):
            return arm not in around and isinstance(last, cst.Return | cst.Raise | cst.Break)
    return False


def is_gated_among(calls_of: frozenset[str], node: cst.CSTNode, loop: Loop, source: Source) -> bool:
    """Whether some iterations call none of `calls_of`, as `node` does: of an `if` with such a call in both of its arms
    one runs in each."""
    return _is_behind(node, loop, source, lambda gate: _is_gate(gate) and not _has_in_both(calls_of, gate, source))


def _has_in_both(calls_of: frozenset[str], gate: cst.CSTNode, source: Source) -> bool:
    if not isinstance(gate, cst.If) or gate.orelse is None:
        return False
    return all(any(source.calls(call, *calls_of) for call in calls(arm)) for arm in (gate.body, gate.orelse))


def is_seldom(node: cst.CSTNode, loop: Loop, source: Source) -> bool:
    """Whether only some iterations run `node`: an `if` that asks which of several processes this is lets it run in
    each one of the process that logs, and one that asks for a key, `for k, v in metrics.items(): if k in kept`, in each
    for the same keys."""
    return _is_behind(
        node,
        loop,
        source,
        lambda gate: _is_gate(gate) and not _is_for_a_process(gate) and not _is_for_a_key(gate, loop, source),
    )


def is_every_so_often(node: cst.CSTNode, loop: Loop, source: Source) -> bool:
    """Whether an `if` inside the loop lets `node` run once in so many iterations, `if step % 1000 == 0: ...`."""
    around = set(source.ancestors(node))
    return any(
        isinstance(above, cst.If) and above.body in around and holds(above.test, cst.Modulo)
        for above in source.within(node, loop)
    )


def _is_behind(node: cst.CSTNode, loop: Loop, source: Source, is_gate: Callable[[cst.CSTNode], bool]) -> bool:
    """Whether a gate stands between `node` and the loop, or the loop is none around it."""
    for above in source.ancestors(node):
        if above is loop:
            return False
        if is_gate(above):
            return True
    return True


def _is_for_a_process(gate: cst.CSTNode) -> bool:
    return isinstance(gate, cst.If) and _asks_for_a_process(gate.test)


def _is_for_a_key(gate: cst.CSTNode, loop: Loop, source: Source) -> bool:
    """Whether a gate asks for a key that a loop inside of `loop` takes from a dictionary."""
    match gate:
        case cst.If(
            test=cst.Comparison(left=cst.Name(key), comparisons=[cst.ComparisonTarget(operator=cst.In() | cst.NotIn())])
        ):
            inner = source.loop(gate)
            match inner:
                case cst.For(
                    target=cst.Tuple(elements=[cst.Element(value=cst.Name(name)), _]),
                    iter=cst.Call(func=cst.Attribute(attr=cst.Name("items"))),
                ):
                    return inner is not loop and name == key
    return False


def _is_gate(above: cst.CSTNode) -> bool:
    return isinstance(above, cst.If | cst.IfExp | cst.ExceptHandler | cst.BooleanOperation | cst.Match | cst.Lambda)


def _asks_for_a_process(test: cst.BaseExpression) -> bool:
    """Whether a test asks for the one process that logs: `master_process`, `jax.process_index() == 0`."""
    match test:
        case cst.Comparison(left=asked, comparisons=[cst.ComparisonTarget(comparator=cst.Integer())]):
            pass
        case _:
            asked = test
    asked = asked.func if isinstance(asked, cst.Call) else asked
    return bool(_PROCESS.search(dotted(asked)))
