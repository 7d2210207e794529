"""A step that a scan hands nothing on to, as the plain function that a vmap wants: `def f(x): return g(x)`.

In: `_, made = lax.scan(f, None, xs)` of a Source, and the def of `f`. Out: the edits; none where anybody else calls the
step, or reads what it was handed, or where an annotation says that it returns two things.
"""

from __future__ import annotations

import libcst as cst

from fusionlint.finding import Edit
from fusionlint.patterns.code.at import inside, is_none
from fusionlint.patterns.code.calls import as_argument
from fusionlint.patterns.code.functions import Function
from fusionlint.source.tree import Source


def undressed(scan: cst.Call, step: cst.BaseExpression, body: Function, source: Source) -> tuple[Edit, ...]:
    """`f` without the parameter that is None, its result without the None, and no name for that."""
    if not isinstance(step, cst.Name) or not isinstance(body, cst.FunctionDef) or body.returns is not None:
        return ()
    if source.function(body) is None or source.reads(body.name) != [step] or body.decorators:
        return ()
    target, returned = taken(scan, source), _returned(body)
    match body.params:
        case cst.Parameters(params=[first, second], kwonly_params=[], posonly_params=[], star_kwarg=None) if (
            target is not None and returned is not None and first.default is None and second.default is None
        ):
            if source.reads(first.name) or any(map(source.has_comment, (body.params, returned, target))):
                return ()
            whole, made = source.location(first), source.location(second)
            gone = whole._replace(end_line=made.line, end_column=made.column)
            *_, value = returned.elements
            *_, name = target.elements
            return (
                Edit(gone, ""),
                source.replace(returned, as_argument(value.value, source)),
                source.replace(target, source.code(name.value)),
            )
    return ()


def taken(scan: cst.Call, source: Source) -> cst.Tuple | None:
    """`_, made`, of which nothing reads the first."""
    match source.parent(scan):
        case cst.Assign(
            targets=[cst.AssignTarget(target=cst.Tuple(elements=[cst.Element(value=cst.Name() as last), made]) as both)]
        ) if isinstance(made, cst.Element) and not source.reads(last):
            return both
    return None


def _returned(body: cst.FunctionDef) -> cst.Tuple | None:
    """The `None, made` of the one return."""
    found = [*inside(body.body, cst.Return)]
    match found:
        case [cst.Return(value=cst.Tuple(elements=[first, cst.Element()]) as both)] if is_none(first.value):
            return both
    return None
