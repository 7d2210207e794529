"""Fields that a class says are no arrays: `width: int = struct.field(pytree_node=False)`, `eqx.field(static=True)`.

In: `params.width` of a Source. Out: whether its parameter is said to be of such a class, so that a trace knows it.
"""

from __future__ import annotations

import libcst as cst

from fusionlint.patterns.values.annotations import meaning_of
from fusionlint.source.facts import Value, last_name
from fusionlint.source.places import Place
from fusionlint.source.tree import Source

# What a field is made by, and what says of it that no trace goes through it: who says anything there says that.
_FIELDS = frozenset(("field", "static_field"))
_STATIC = frozenset(("pytree_node", "static"))
# Classes are seldom derived from more, one from the other.
_DEPTH = 4


def is_static_field(part: cst.BaseExpression, source: Source) -> bool:
    """`params.width` of `params: EnvParams`."""
    match part:
        case cst.Attribute(value=cst.Name() as owner, attr=cst.Name(field)):
            parameter = source.parameter(owner)
            said = parameter.annotation.annotation if parameter is not None and parameter.annotation else None
            if not isinstance(said, cst.Name | cst.Attribute):
                return False
            found = source.project.find(meaning_of(said, owner, source))
            return found is not None and _is_said_so(field, found, source, _DEPTH)
    return False


def _is_said_so(field: str, owner: Place, source: Source, depth: int) -> bool:
    """Whether the class, or else one that it is derived from, makes the field so."""
    facts = source.project.files[owner.path]
    bound = facts.bindings.get(owner.scope, {}).get(field)
    if bound is not None:
        return _is_static(bound.value)
    return depth > 0 and any(_is_said_so(field, base, source, depth - 1) for base in source.project.bases(owner))


def _is_static(made: Value) -> bool:
    called = last_name(made.callee.name) if made.callee is not None else ""
    return called in _FIELDS and (called == "static_field" or not _STATIC.isdisjoint(dict(made.keywords)))
