"""Loops in which a write is nothing beside what a turn does: each turn says how it went, takes the time, or has the
host work on it.

In: a Python loop of a Source. Out: whether it is seen to be a driver's: a study that prints an error for each size.
"""

from __future__ import annotations

import libcst as cst

from fusionlint.lazily import regex
from fusionlint.patterns.carry import calls
from fusionlint.patterns.host import is_timed
from fusionlint.source.tree import Source

_REPORTS = regex(r"^print$|(^|[._])(log|logger|logging)\.\w+$|(^|\.)tqdm\.write$")
# What no trace gets through: it works on arrays of numpy, or draws them.
_ON_THE_HOST = regex(r"^(scipy\.(integrate|interpolate|io|linalg|optimize|sparse|spatial)|matplotlib|pandas|sklearn)\.")


def is_of_the_host(loop: cst.For, source: Source) -> bool:
    """Whether every turn of `loop`, or of a loop around it, reports, takes the time, or calls what works on arrays of
    numpy alone: in a trace that would be done once, when it is compiled. Of what is seen to be traced nothing is said.
    """
    if source.context(loop) == "traced":
        return False
    if is_timed(loop, source) or any(_is_of_the_host(call, source) for call in calls(loop.body)):
        return True
    around = source.loop(loop)
    return isinstance(around, cst.For) and is_of_the_host(around, source)


def _is_of_the_host(call: cst.Call, source: Source) -> bool:
    name = source.qualified_name(call.func) or source.code(call.func)
    return bool(_REPORTS.search(name) or _ON_THE_HOST.match(name))
