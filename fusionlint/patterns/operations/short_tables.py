"""Tables that something is looked up in, and that are seen to be short: what somebody wrote down.

In: the table of a search, an argument of a Source.
"""

from __future__ import annotations

import re

import libcst as cst

from fusionlint.lazily import regex
from fusionlint.patterns.code.at import TO_ARRAY
from fusionlint.patterns.values.handed_settings import SETTING
from fusionlint.source.tree import Source
from fusionlint.source.walk import dotted

_SCHEDULE, _MILESTONES = regex(r"schedul", re.I), regex(r"milestone|boundar", re.I)


def is_of_settings(table: cst.BaseExpression | None, source: Source) -> bool:
    """Whether a list of settings is looked through, `jnp.array(config.milestones)`, `jnp.array(kw.get("steps"))`: what
    somebody wrote down is a few numbers, and a search among them a step or two, which XLA unrolls."""
    match source.meant(table):
        case (
            cst.Call(
                args=[cst.Arg(value=cst.Call(func=cst.Attribute(attr=cst.Name("get")), args=[asked, *_])), *_]
            ) as made
        ):
            return source.calls(made, *TO_ARRAY) and isinstance(asked.value, cst.SimpleString)
        case cst.Call(args=[cst.Arg(value=cst.Attribute() as field), *_]) as made if source.calls(made, *TO_ARRAY):
            return any(map(SETTING.match, dotted(field).split(".")[:-1]))
    return False


def is_of_a_schedule(node: cst.Call, table: cst.BaseExpression | None, source: Source) -> bool:
    """Whether a schedule looks for a step among its milestones: a few numbers, once in an update."""
    is_said = table is not None and _MILESTONES.search(source.code(table)) is not None
    return is_said and _SCHEDULE.search(source.scope(node)) is not None


def is_a_list(table: cst.BaseExpression | None, source: Source) -> bool:
    """Whether a list is looked through, `list(edges)`, which jax refuses: it never ran, or is numpy's after all."""
    match source.meant(table):
        case cst.List() | cst.ListComp():
            return True
        case cst.Call(func=cst.Name("list")):
            return True
    return False
