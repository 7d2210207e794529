"""Writes that are nothing beside what is around them, or that somebody chose: a turn of a loop says how it went, takes
the time, or has the host work on it; the array is numpy's, goes to numpy at once, to a network or into a picture; its
parts are worked out one by one in a list; a comment says why.

In: a Python loop or a write of a Source. Out: whether it is seen to be a driver's, a study that prints an error for
each size, or meant as it stands.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import libcst as cst

from fusionlint.lazily import regex
from fusionlint.patterns.code.at import Write, at_write, inside, is_literal
from fusionlint.patterns.code.unpacked import assigned
from fusionlint.patterns.loops.carry import calls
from fusionlint.patterns.loops.timed import is_timed
from fusionlint.patterns.runs.alternatives import said_above
from fusionlint.patterns.values.reads import FETCHES
from fusionlint.patterns.writes.chain import root
from fusionlint.source.tree import Source
from fusionlint.source.walk import dotted

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
# Who is handed what is written, and makes kernel after kernel of it.
_NETWORKS = regex(r"(^|[._])(\w*network|model|net)(_fn|_apply)?$")
_PICTURES = regex(r"(^|_)plot(_|$)")
# So few writes are nothing beside a network.
_FEW = 2
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
    return bool(made) and all(source.calls(value, *_OF_NUMPY) for value in made)


def is_taken_to_the_host(value: cst.CSTNode, source: Source) -> bool:
    """Whether what is written goes into an array of numpy in the same function, `out["D"] = np.asarray(D)`: no trace
    gets there, and it is done once a call of the host."""
    name = source.assigned_name(value)
    if name is None or source.context(value) == "traced":
        return False
    for read in source.reads(name):
        call = source.handed_to(read)
        if source.calls(call, *FETCHES):
            return source.function(call) is source.function(value)
    return False


def is_beside_more(writes: Sequence[Write], source: Source) -> bool:
    """Whether what is written, or written into, is worked out one by one in a list as long as the run has it, each by
    functions of somebody, `jnp.array([solve(R(t)) for t in range(T)])`; or whether a network alone is handed the array,
    or a picture is made of it."""
    made = [root(writes[0]), *(write.value for write in writes if write.value is not None)]
    if any(_is_worked_out_one_by_one(each, source) for one in made for each in inside(source.meant(one))):
        return True
    name = source.assigned_name(writes[-1].call)
    if name is None:
        return False
    reads = source.reads(name)
    handed = [source.parent(above) for read in reads if isinstance(above := source.parent(read), cst.Arg)]
    is_handed = bool(reads) and len(handed) == len(reads) and len(writes) <= _FEW
    called = [dotted(call.func) for call in handed if isinstance(call, cst.Call)]
    return bool(_PICTURES.search(name.value)) or (is_handed and all(map(_NETWORKS.search, called)))


def are_picked_by_python(writes: Sequence[Write], source: Source) -> bool:
    """Whether Python goes over something to pick the places, `[i for i, bond in enumerate(bonds) if bond in ring]`, in
    a function that nobody is seen to trace: that takes longer, and is done where something is set up."""
    if source.context(writes[0].call) == "traced":
        return False
    parts = [source.meant(part) for write in writes for part in write.index if isinstance(part, cst.BaseExpression)]
    return any(isinstance(part, cst.ListComp) and part.for_in.ifs for part in parts)


def _is_worked_out_one_by_one(node: cst.CSTNode, source: Source) -> bool:
    match node:
        case cst.ListComp(elt=each, for_in=cst.CompFor(iter=cst.Call(args=args) as over)):
            is_open = source.calls(over, "range") and not all(is_literal(arg.value) for arg in args)
            names = (source.qualified_name(call.func) or "" for call in calls(each))
            return is_open and any(not name.startswith("jax.") or ".linalg." in name for name in names)
    return False
