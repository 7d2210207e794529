"""Writes that are nothing beside what is around them, or that somebody chose: a turn of a loop says how it went, takes
the time, or has the host work on it; the array is numpy's, or goes to numpy at once; a comment says why.

In: a Python loop or a write of a Source. Out: whether it is seen to be a driver's, a study that prints an error for
each size, or meant as it stands.
"""

from __future__ import annotations

import re

import libcst as cst

from fusionlint.lazily import regex
from fusionlint.patterns.alternatives import said_above
from fusionlint.patterns.at import at_write
from fusionlint.patterns.carry import calls
from fusionlint.patterns.host import is_timed
from fusionlint.patterns.unpacked import assigned
from fusionlint.source.tree import Source

_REPORTS = regex(r"^print$|(^|[._])(log|logger|logging)\.\w+$|(^|\.)tqdm\.write$")
# What no trace gets through: it works on arrays of numpy, draws them, or reads files.
_ON_THE_HOST = regex(
    r"^(scipy\.(integrate|interpolate|io|linalg|optimize|sparse|spatial)|h5py|libsbml|matplotlib|netCDF4|pandas|sklearn)\."
)
# What is written otherwise, and that there is a reason.
_OTHERWISE = regex(r"concat|\bstack|scatter|vmap|vectori[sz]|materiali[sz]|at once", re.I)
_CHOSEN = regex(r"instead of|rather than|avoid|on purpose|deliberate|slower|faster|HBM|out of memory|\bOOM\b")
# So far above a write is said why.
_ABOVE = 6
_TO_THE_HOST = ("numpy.asarray", "numpy.array", "jax.device_get")
_OF_NUMPY = frozenset(
    f"numpy.{name}{like}" for name in ("zeros", "ones", "empty", "full") for like in ("", "_like")
) | {"numpy.array", "numpy.asarray", "numpy.eye"}


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


def is_chosen(node: cst.CSTNode, source: Source) -> bool:
    """Whether the comments above say why it is not written otherwise: "preassign instead of using concatenate"."""
    said = said_above(node, _ABOVE, source)
    return bool(_OTHERWISE.search(said) and _CHOSEN.search(said))


def is_of_numpy(array: cst.BaseExpression, source: Source) -> bool:
    """Whether a variable is of what numpy makes and of what is written in it: that has no `.at`, and the code has not
    been run."""
    writes = [use.node for use in source.writes(array)] if isinstance(array, cst.Name) else []
    made = [value for name in writes if at_write(value := assigned(name, source)) is None]
    return bool(made) and all(value is not None and source.calls(value, *_OF_NUMPY) for value in made)


def is_taken_to_the_host(value: cst.CSTNode, source: Source) -> bool:
    """Whether what is written goes into an array of numpy in the same function, `out["D"] = np.asarray(D)`: no trace
    gets there, and it is done once a call of the host."""
    name = source.assigned_name(value)
    if name is None or source.context(value) == "traced":
        return False
    for read in source.reads(name):
        above = source.parent(read)
        call = source.parent(above) if isinstance(above, cst.Arg) else None
        if isinstance(call, cst.Call) and source.calls(call, *_TO_THE_HOST):
            return source.function(call) is source.function(value)
    return False
