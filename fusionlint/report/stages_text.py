"""Stages -> the table of what each stage of compilation has made of the operations, and what became of those gone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import zip_longest

from fusionlint.report.units import counted
from fusionlint.stages import Removed, Stages


def stages_table(stages: Stages) -> Iterator[str]:
    columns = {
        "jaxpr": stages.jaxpr,
        "StableHLO": stages.stablehlo,
        "HLO before": stages.before,
        "HLO after": stages.after,
        "kernels": stages.kernels,
    }
    cells = [_column(name, counts) for name, counts in columns.items()]
    widths = [max(map(len, column)) for column in cells]
    for row in zip_longest(*cells, fillvalue=""):
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
    if stages.removed:
        yield ""
        yield from _removed(stages.removed)


def _column(name: str, counts: Mapping[str, int]) -> list[str]:
    digits = len(str(sum(counts.values())))
    rows = [f"{count:>{digits}} {operation}" for operation, count in counts.items()]
    return [name, f"{sum(counts.values()):>{digits}} in all", *rows]


def _removed(removed: Removed) -> Iterator[str]:
    yield "From HLO before to HLO after, counted by fusionlint from the two texts (calls as if inlined):"
    yield f"  {removed.duplicates} repeat another operation (common subexpressions)"
    yield f"  {removed.on_constants} work on constants alone (folded)"
    yield f"  {removed.unused} are used by nothing"
    yield f"  {removed.rewritten} more are gone: simplified, or rewritten into others"
    yield f"  {removed.added} are new: from rewrites, or work repeated in several fusions"
    yield f"  fusion saved {counted(removed.fused, 'launch', 'launches')} a pass through the program's text"
