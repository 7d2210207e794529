"""Records that are made where they are read: without arguments, `Config()`, of which a trace knows all that they hold,
or of what is named there, `State(grid=jnp.zeros(n))`.

In: a name of a Source, or a field. Out: whether the name stands for a record of the first kind, in the function that
makes it or in a branch that it is handed to; what a field was given.
"""

from __future__ import annotations

import libcst as cst

from fusionlint.patterns.code.calls import keyword
from fusionlint.source.facts import CONSTRUCTORS
from fusionlint.source.places import Place
from fusionlint.source.tree import Source


def given_as(field: cst.Attribute, source: Source) -> cst.BaseExpression | None:
    """`jnp.zeros(n)` of `state.grid`, where `state = State(grid=jnp.zeros(n))` is all that wrote it, and the class does
    nothing with what it is given."""
    made = source.value(field.value) if isinstance(field.value, cst.Name) else None
    if not isinstance(made, cst.Call) or (found := _class_of(made, source)) is None:
        return None
    if any(source.project.function_at(Place(found.path, f"{found.scope}.{name}")) for name in CONSTRUCTORS):
        return None
    return keyword(made, field.attr.value)


def _class_of(made: cst.Call, source: Source) -> Place | None:
    found = source.project.find(source.qualified_name(made.func))
    return found if found is not None and found.scope in source.project.files[found.path].raw.classes else None
