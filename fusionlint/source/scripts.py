"""Functions that a script has left over: it runs as it is read, nobody imports it, and nothing in it names them; and a
script that is left over itself, for no import can name it, and it does nothing when it is read.

In: a node of a Source that a rule speaks of. Of a module that others import, or that only defines, nothing is said:
whoever installs it may call what it holds.
"""

from __future__ import annotations

from pathlib import PurePosixPath

import libcst as cst

from fusionlint.lazily import regex
from fusionlint.source.facts import last_name
from fusionlint.source.for_nobody import imported, is_in_quotes, is_only_compiled, top_around
from fusionlint.source.tree import Source

# What a file's own level may hold and do nothing: an import, a text, a name for something.
_ONLY_NAMES = regex(r"(import|from)\b|[rbuRBU]?[\"']|[A-Za-z_][\w.,\s\[\]]*(:[^=]+)?=(?!=)")


def is_left_over(node: cst.CSTNode, source: Source) -> bool:
    """Whether `node` is part of a function of a script's own level that nothing but itself names, or of a file that
    nobody can use."""
    if _does_nothing(source):
        return True
    function = top_around(node, source)
    if not isinstance(function, cst.FunctionDef) or function.decorators or not _is_a_script(source):
        return False
    name = function.name.value
    if source.data.count(name.encode()) == 1:
        return True
    if is_in_quotes(name, source):
        return False
    reads = [*source.reads_at_all(function.name)]
    return all(function in source.ancestors(read) for read in reads)


def _is_a_script(source: Source) -> bool:
    """Whether a loop at the file's own level calls something, and no other file imports it."""
    if not any(call.loops and not call.scope for call in source.facts.calls):
        return False
    name = last_name(source.facts.module)
    return not any(name in target.split(".") for target in imported(source.project))


def _does_nothing(source: Source) -> bool:
    """Whether no import can name a file, `recipe_save-last.py`, and to run it only defines what is in it: a copy that
    somebody keeps."""
    path = PurePosixPath(source.facts.inside)
    if path.suffix != ".py" or path.stem.isidentifier():
        return False
    lines = source.pieces.lines
    if not all(is_def or _ONLY_NAMES.match(lines[first - 1]) for first, _, is_def, *_ in source.facts.raw.statements):
        return False
    called = (source.project.find(name) for place, name in source.project.calls_in(source.path) if not place.scope)
    if any(one is not None and one.path == source.path for one in called):
        return False
    top = (function for scope, function in source.facts.functions.items() if scope.isidentifier())
    return all(is_only_compiled(source.project, source.path, function) for function in top)
