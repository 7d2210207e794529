"""Functions that a script has left over: it runs as it is read, nobody imports it, and nothing in it names them.

In: a node of a Source that a rule speaks of. Of a module that others import, or that only defines, nothing is said:
whoever installs it may call what it holds.
"""

from __future__ import annotations

import libcst as cst

from fusionlint.source.facts import last_name
from fusionlint.source.for_nobody import imported
from fusionlint.source.tree import Source


def is_left_over(node: cst.CSTNode, source: Source) -> bool:
    """Whether `node` is part of a function of a script's own level that nothing but itself names."""
    around = [above for above in source.ancestors(node) if isinstance(above, cst.FunctionDef | cst.ClassDef)]
    function = around[-1] if around else None
    if not isinstance(function, cst.FunctionDef) or function.decorators or not _is_a_script(source):
        return False
    name = function.name.value
    if source.data.count(name.encode()) == 1:
        return True
    if any(f"{quote}{name}{quote}".encode() in source.data for quote in ('"', "'")):
        return False
    reads = [use.node for use in source.uses(function.name) if not use.is_write]
    return all(function in source.ancestors(read) for read in reads)


def _is_a_script(source: Source) -> bool:
    """Whether a loop at the file's own level calls something, and no other file imports it."""
    if not any(call.loops and not call.scope for call in source.facts.calls):
        return False
    name = last_name(source.facts.module)
    return not any(name in target.split(".") for target in imported(source.project))
