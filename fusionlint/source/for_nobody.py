"""Code that nobody runs in earnest: a case of a table of cases, and a private function that nothing names.

In: a node of a Source that a rule speaks of. Out: whether its own speed is nobody's concern.
"""

from __future__ import annotations

import libcst as cst

from fusionlint.source.tree import Source

# What calls a private function of a file is seldom further away than this.
_DEPTH = 3
_MAKES_A_DICT = "dict"


def is_for_nobody(node: cst.CSTNode, source: Source) -> bool:
    """Whether `node` is part of a case of a table of cases, or of a private function that nothing calls."""
    around = [above for above in source.ancestors(node) if isinstance(above, cst.Lambda | cst.FunctionDef)]
    outer = around[-1] if around else None
    if isinstance(outer, cst.Lambda):
        return _is_a_case(outer, source)
    return isinstance(outer, cst.FunctionDef) and _is_never_named(outer, source, _DEPTH)


def _is_a_case(function: cst.Lambda, source: Source) -> bool:
    """Whether a lambda is a value of one of several dicts in a list, at the file's own level: `[{"callable": lambda x:
    ..., "shapes": [(3,)]}, ...]`. Each is run once, to see what comes of it. In a dict by itself it may be a choice of
    a user, `ACTIVATIONS = {"gelu": lambda x: ...}`."""
    case = source.parent(source.parent(function) or function)
    match source.parent(function), case:
        case cst.DictElement(), cst.Dict():
            pass
        case cst.Arg(keyword=cst.Name()), cst.Call(func=cst.Name(name)) if name == _MAKES_A_DICT:
            pass
        case _:
            return False
    listed = source.parent(case) if case is not None else None
    return isinstance(listed, cst.Element) and isinstance(source.parent(listed), cst.List | cst.Tuple)


def _is_never_named(function: cst.FunctionDef, source: Source, depth: int) -> bool:
    """Whether a function of the file's own level says by its name that it is for this file alone, no trace is seen to
    get there, no other file calls it, and nothing here names it but itself and others of that kind."""
    name = function.name.value
    place = source.body_place(function)
    if not name.startswith("_") or function.decorators or place.outer.scope:
        return False
    is_quoted = any(f"{quote}{name}{quote}".encode() in source.data for quote in ('"', "'"))
    if source.contexts.get(place) == "traced" or is_quoted:
        return False
    if any(caller.path != source.path for caller in source.project.callers(source.project.name_of(place))):
        return False
    reads = [use.node for use in source.uses(function.name) if not use.is_write]
    others = (above for above in (_outermost(read, source) for read in reads) if above is not function)
    return all(
        depth > 0 and isinstance(above, cst.FunctionDef) and _is_never_named(above, source, depth - 1)
        for above in others
    )


def _outermost(node: cst.CSTNode, source: Source) -> cst.FunctionDef | None:
    """The def of the file's own level that `node` is inside of."""
    around = [above for above in source.ancestors(node) if isinstance(above, cst.FunctionDef | cst.ClassDef)]
    top = around[-1] if around else None
    return top if isinstance(top, cst.FunctionDef) else None
