"""A scan that keeps a row of every step and unrolls many: a CPU computes for each row all that were before it."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from fusionlint.finding import Finding
from fusionlint.patterns.code.at import constant, is_none
from fusionlint.patterns.code.calls import argument
from fusionlint.patterns.code.functions import Function
from fusionlint.patterns.loops.step import except_on_cpu, recurrence
from fusionlint.rule import Rule
from fusionlint.source.tree import Source

rule = Rule(__name__, harm="fusion")

_SCAN = "jax.lax.scan"
# With eight steps the rows are computed about twice, with ten nine times: from there on XLA:CPU fuses every row alone.
_MANY = 9


@rule.source("Call", calls=(_SCAN,))
def many_steps_at_once(node: cst.Call, source: Source) -> Iterator[Finding]:
    """A number that is written out, whatever the backend; each step is seen to be elementwise and to keep a row."""
    given = argument(node, 5, "unroll")
    if given is None or (steps := constant(given)) is None or steps < _MANY:
        return
    body = recurrence(node, source)
    if body is None or not _keeps_rows(body):
        return
    number = except_on_cpu(steps, source)
    yield source.finding(
        given,
        f"a CPU computes for each of the {steps} rows of a turn all rows before it again",
        write=f"`unroll={number}`",
        edits=(source.replace(given, number),) if source.alias_at(node, "jax") else (),
    )


def _keeps_rows(body: Function) -> bool:
    """Whether a step returns something to stack, as its last line says."""
    match body:
        case cst.Lambda(body=result):
            pass
        case cst.FunctionDef(
            body=cst.IndentedBlock(body=[*_, cst.SimpleStatementLine(body=[cst.Return(value=result)])])
        ):
            pass
        case _:
            return False
    match result:
        case cst.Tuple(elements=[_, cst.Element(value=row)]):
            return not is_none(row)
    return False
