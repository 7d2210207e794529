"""Places that are seen to be one number: what a fix needs that compares them with the places of an axis, or lists them.

In: a place of a write of a Source. Unknown is no number, and so is what is called as several are.
"""

from __future__ import annotations

import libcst as cst

from fusionlint.lazily import regex
from fusionlint.patterns.code.at import names_read
from fusionlint.patterns.runs.loop_bodies import is_counted_body
from fusionlint.patterns.values.kinds import kind
from fusionlint.patterns.values.one_number import is_a_number
from fusionlint.patterns.writes.into_new import is_one as is_called_one
from fusionlint.patterns.writes.stands import is_one_place
from fusionlint.source.environments import in_environment
from fusionlint.source.facts import last_name
from fusionlint.source.tree import Source
from fusionlint.source.walk import lines_of

# What is called as several are: `YAKU_INDICES`, `edges`.
_MANY = regex(r"(?<!po)(?<!s)(?<!i)s$|indices$|mask$|filter$|list$")


def is_one_for_sure(part: cst.BaseExpression, source: Source) -> bool:
    """Whether a place is seen to be one number, and not only called by a letter as numbers are."""
    letters = [name for name in names_read(part) if len(name.value) == 1 and source.value(name) is None]
    if _is_of_a_class(part, source):
        return True
    is_one = is_one_place(part, source) or (in_environment(part, source) and is_called_one(part, source))
    return is_one and not _is_called_many(part) and all(_is_counted(name, source) for name in letters)


def _is_of_a_class(part: cst.BaseExpression, source: Source) -> bool:
    """Whether a class of the file says which number this is, `Yaku.RIICHI`, with `RIICHI = 6` in `class Yaku`."""
    match part:
        case cst.Attribute(value=cst.Name(owner), attr=cst.Name(field)):
            scopes = [scope for scope in source.facts.raw.classes if last_name(scope) == owner]
            classes = (source.definition(scope) for scope in scopes)
            lines = (line for each in classes if isinstance(each, cst.ClassDef) for line in lines_of(each))
            return any(_is_number_of(field, line) for line in lines)
    return False


def _is_number_of(field: str, line: cst.CSTNode) -> bool:
    match line:
        case cst.SimpleStatementLine(
            body=[
                cst.Assign(targets=[cst.AssignTarget(target=cst.Name(name))], value=cst.Integer())
                | cst.AnnAssign(target=cst.Name(name), value=cst.Integer())
            ]
        ):
            return name == field
    return False


def _is_called_many(part: cst.BaseExpression) -> bool:
    """Whether a place, or what is computed with, is called as several are; what is picked out of several is one."""
    match part:
        case cst.Name(value=name) | cst.Attribute(attr=cst.Name(value=name)):
            return _MANY.search(name.lower()) is not None
        case cst.BinaryOperation(left=left, right=right):
            return _is_called_many(left) or _is_called_many(right)
        case cst.UnaryOperation(expression=inner):
            return _is_called_many(inner)
    return False


def _is_counted(name: cst.Name, source: Source) -> bool:
    """Whether a loop of Python or of jax.lax counts by that name, or something says that it is one number."""
    if is_a_number(name, source) or kind(name, source) == "scalar":
        return True
    match source.binder(name):
        case cst.For(iter=over):
            return source.calls(over, "range")
        case cst.Param() as parameter:
            function = source.owner(parameter)
            return function.params.params[:1] == (parameter,) and is_counted_body(function, source)
    return False
