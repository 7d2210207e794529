"""Code that is run to be looked at: a script that goes on until somebody has seen enough of its picture, and the trial
of a module that others import, where it ends in a picture.

In: a node of a Source that a rule speaks of. Out: whether nobody waits for it but to see what comes of it.
"""

from __future__ import annotations

import libcst as cst

from fusionlint.source.for_nobody import imported, top_around
from fusionlint.source.tree import Source

_PAUSES = ("matplotlib.pyplot.pause",)
_SHOWS = ("matplotlib.pyplot.show",)


def is_demonstration(node: cst.CSTNode, source: Source) -> bool:
    """Whether `node` is part of a script that shows how something moves, or of a module's trial that shows it."""
    return _ends_in_a_picture(node, source) if _is_imported(source) else _goes_on_showing(source)


def is_tried(node: cst.CSTNode, source: Source) -> bool:
    """Whether `node` stands under `if __name__ == "__main__":`, in a trial of the module."""
    for above in source.ancestors(node):
        match above:
            case cst.If(test=cst.Comparison(left=cst.Name("__name__"))):
                return True
    return False


def _is_imported(source: Source) -> bool:
    """Whether some file of the project imports this one, or something from it."""
    return any(f"{name}.".startswith(f"{source.facts.module}.") for name in imported(source.project))


def _ends_in_a_picture(node: cst.CSTNode, source: Source) -> bool:
    """Whether `node` is part of what is run where a module is run itself, there or by a function that is called there
    and nowhere else, and that shows a picture."""
    top = top_around(node, source)
    shown = [call for call in source.calls_of(_SHOWS) if top_around(call, source) is top]
    if not isinstance(top, cst.FunctionDef):
        return is_tried(node, source) and any(is_tried(call, source) for call in shown)
    name = source.project.name_of(source.body_place(top))
    calls = [*source.calls_of((name,))]
    is_for_this = bool(calls) and all(is_tried(call, source) for call in calls)
    return bool(shown) and is_for_this and len(source.project.callers(name)) == len(calls)


def _goes_on_showing(source: Source) -> bool:
    """Whether a script pauses for its picture in each turn of an endless loop of its own level."""
    for call in source.calls_of(_PAUSES):
        match source.loop(call):
            case cst.While(test=cst.Name("True"), body=body) if not source.scope(call):
                line = source.parent(source.parent(call) or call)
                if line is not None and source.parent(line) is body:
                    return True
    return False
