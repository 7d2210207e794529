"""Methods that no object has: a class leaves others to those that are derived from it, and each of these has its own.

In: a method of a Source. Out: whether it is one of those.
"""

from __future__ import annotations

import libcst as cst

from fusionlint.source.facts import last_name
from fusionlint.source.places import Place
from fusionlint.source.project import Project
from fusionlint.source.traced import subclasses
from fusionlint.source.tree import Source
from fusionlint.source.walk import dotted

_ABSTRACT, _ABOVE = "abstractmethod", "super"


def is_overridden(method: cst.FunctionDef, source: Source) -> bool:
    """Whether nothing runs `method`: an object of its class cannot do what that leaves to others, and all classes of
    the project that can have a method of that name, which does not call this one."""
    owner = source.nearest(method, cst.ClassDef)
    if owner is None or not any(_is_left_to_others(each) for each in owner.body.body):
        return False
    derived = subclasses(source.project, source.body_place(owner))
    return bool(derived) and all(_has_its_own(one, method.name.value, source.project) for one in derived)


def _is_left_to_others(part: cst.CSTNode) -> bool:
    """Whether a method of a class does nothing but raise, or is said to be abstract."""
    match part:
        case cst.FunctionDef(body=cst.IndentedBlock(body=[*_, cst.SimpleStatementLine(body=[cst.Raise()])]) as block):
            return len(block.body) <= 2  # a docstring before
        case cst.FunctionDef(decorators=decorators):
            return any(dotted(each.decorator).rpartition(".")[2] == _ABSTRACT for each in decorators)
    return False


def _has_its_own(owner: Place, name: str, project: Project) -> bool:
    own = owner._replace(scope=f"{owner.scope}.{name}")
    project.log.add(*own)
    if own.scope not in project.files[own.path].raw.functions:
        return False
    called = (call.value.callee for _, call in project.calls_within(own))
    return {name, _ABOVE}.isdisjoint(last_name(callee.name) for callee in called if callee is not None)
