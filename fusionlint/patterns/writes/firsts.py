"""Arrays that are begun and not yet worked on: the first state of a simulation, the first rows of what a loop fills.

In: writes of a Source. Out: whether they are a few kernels once, beside all that comes after.
"""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from fusionlint.lazily import regex
from fusionlint.patterns.code.at import Write, is_fresh, is_static
from fusionlint.patterns.code.calls import argument
from fusionlint.patterns.runs.loop_bodies import FIRSTS
from fusionlint.patterns.writes.chain import root
from fusionlint.source.facts import last_name
from fusionlint.source.places import Place
from fusionlint.source.project import Project
from fusionlint.source.tree import Source
from fusionlint.source.walk import dotted

_RESET = regex(r"^_?(reset|init(ial)?_(state|particles|positions?)|domain_randomi[sz]e)(_|$)")
# So many writes count wherever they stand.
_MANY = 5
# A helper of a reset is seldom further away than this.
_DEPTH = 2


def are_few_firsts(writes: Sequence[Write], source: Source) -> bool:
    """Whether these are a few writes that begin something."""
    if len(writes) >= _MANY:
        return False
    return _is_of_reset(source.project, source.place(writes[0].call)) or _begin_a_loop(writes, source)


def _is_of_reset(project: Project, place: Place, depth: int = _DEPTH) -> bool:
    """Whether the function at `place` is a reset, in a function of one, or called by resets alone."""
    if any(_RESET.match(name.partition("#")[0]) for name in place.scope.split(".")):
        return True
    callers = project.callers(project.name_of(place)) if depth and place.scope else []
    return bool(callers) and all(_is_of_reset(project, caller, depth - 1) for caller in callers)


def _begin_a_loop(writes: Sequence[Write], source: Source) -> bool:
    """Whether known places of a new array are set, or one place alone, and a loop of jax.lax takes it from there."""
    known = len(writes) == 1 or all(is_static(part) for write in writes for part in write.index)
    name = source.assigned_name(writes[-1].call)
    if not known or name is None or not is_fresh(root(writes[0]), source):
        return False
    return any(begins_a_loop(read, source) for read in source.reads(name))


def begins_a_loop(read: cst.CSTNode, source: Source) -> bool:
    """Whether `read` is what a loop of jax.lax begins with, or a part of it."""
    for above in source.ancestors(read):
        match above:
            case cst.Assign(targets=[cst.AssignTarget(target=cst.Name() as name)], value=state):
                return read in _parts(state) and any(begins_a_loop(again, source) for again in source.reads(name))
            case cst.Call():
                given = FIRSTS.get(_jaxs(source.qualified_name(above.func) or ""))
                first = argument(above, *given) if given else None
                if first is None and _is_record(above.func):
                    continue
                return first is not None and (first is read or read in _parts(first))
        if isinstance(above, cst.BaseCompoundStatement):
            return False
    return False


def _jaxs(name: str) -> str:
    """What jax calls a loop that the project calls the same: wrappers of `fori_loop` take what it takes."""
    _, colon, own = name.rpartition(":")
    return f"jax.lax.{own}" if colon else name


def _parts(first: cst.BaseExpression) -> list[cst.BaseExpression]:
    """What stands in a tuple, a list or a record, in those inside it too."""
    match first:
        case cst.Tuple(elements=elements) | cst.List(elements=elements):
            inner = [element.value for element in elements]
        case cst.Call(func=record, args=args) if _is_record(record):
            inner = [arg.value for arg in args]
        case _:
            return []
    return [*inner, *(part for one in inner for part in _parts(one))]


def _is_record(called: cst.BaseExpression) -> bool:
    """Whether a call makes a record of what it is handed: it is named as classes are, `_State` of a file alone too."""
    return last_name(dotted(called)).lstrip("_")[:1].isupper()
