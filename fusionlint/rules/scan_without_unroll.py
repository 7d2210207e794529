"""A scan over rows in tiny elementwise steps that nothing unrolls: a generalised advantage, a chain of thermostats."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from fusionlint.finding import Edit, Finding
from fusionlint.patterns.at import constant
from fusionlint.patterns.calls import argument
from fusionlint.patterns.loop_bodies import bodies_of, definitions
from fusionlint.patterns.step import Body, is_elementwise_step
from fusionlint.rule import Rule
from fusionlint.source.tree import Source

rule = Rule(__name__, harm="fusion")

_SCAN = "jax.lax.scan"
# Whoever writes four has thought of it.
_FEW = 4
_STEPS = 16


@rule.source(cst.Call, calls=(_SCAN,))
def tiny_steps(node: cst.Call, source: Source) -> Iterator[Finding]:
    """Every step is seen to be elementwise, takes a row, and uses what the one before it left."""
    if not source.calls(node, _SCAN) or not source.is_traced(node) or not _has_rows(node):
        return
    given = argument(node, 5, "unroll")
    if given is not None and ((number := constant(given)) is None or number >= _FEW):
        return
    body = _body(node, source)
    # Steps that read nothing of what was carried are one `vmap`.
    if body is None or not is_elementwise_step(body, source) or not source.reads(body.params.params[0].name):
        return
    steps = "each step is" if given is None else f"each {source.code(given)} steps are"
    yield source.finding(
        node,
        f"{steps} a few elementwise operations, in kernels of their own",
        write=f"`unroll={_STEPS}`, except on a CPU: that many steps fuse into one kernel",
        edits=(_edit(node, given, source),),
    )


def _has_rows(scan: cst.Call) -> bool:
    """Whether it goes over arrays: steps that only repeat are a simulation, which seldom stays so small."""
    rows = argument(scan, 2, "xs")
    return rows is not None and not (isinstance(rows, cst.Name) and rows.value == "None")


def _body(scan: cst.Call, source: Source) -> Body | None:
    """The one function of this file that the scan runs, as it is."""
    bodies = bodies_of(scan, source)
    functions = definitions(bodies, source)
    if len(bodies) != 1 or len(functions) != 1 or len(functions[0].params.params) != 2:
        return None
    return functions[0]


def _edit(scan: cst.Call, given: cst.BaseExpression | None, source: Source) -> Edit:
    if given is not None:
        return source.replace(given, str(_STEPS))
    last = scan.args[-1]
    return source.replace(last, f"{source.code(last)}, unroll={_STEPS}")
