"""What is compiled anew in every call of a function and captures nothing of it, made once: on the file's own level, or
as a static method of the class.

In: a jit of a lambda that is called where it is made, or a function that is decorated with one. Out: the edits; none
where something of the function around is captured, or a name would mean something else there.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import libcst as cst

from fusionlint.finding import Edit
from fusionlint.patterns.code.at import inside, names_read
from fusionlint.patterns.code.before import with_comments
from fusionlint.patterns.code.helpers import helper
from fusionlint.patterns.code.layout import end_of
from fusionlint.source.texts import is_notebook
from fusionlint.source.tree import Source
from fusionlint.source.walk import dotted

_LONGEST = 100


def made_for_the_file(jit: cst.Call, source: Source) -> tuple[Edit, ...]:
    """A line of the file, `_all_gather = jax.pmap(lambda x: lax.all_gather(x, "i"), "i")`, for what is called where it
    is made; it has the name of what the lambda calls."""
    function, text = jit.args[0].value, source.code(jit)
    if not isinstance(function, cst.Lambda) or not isinstance(function.body, cst.Call):
        return ()
    name = f"_{dotted(function.body.func).rpartition('.')[2]}"
    line = f"{name} = {text}"
    if name == "_" or "\n" in text or len(line) > _LONGEST or _captures(jit, function, source):
        return ()
    within = {*inside(function)}
    if not all(part in within or _is_imported(part, source) for part in names_read(jit)):
        return ()  # what the line itself needs has to be there before it
    made = helper(name, [line], jit, source)
    return (*made.edits, source.replace(jit, name)) if made is not None else ()


def moved_out(function: cst.FunctionDef, calls: Sequence[cst.Call], source: Source) -> tuple[Edit, ...]:
    """The function in front of the one around it; of a method as a static method of its class."""
    around = source.function(function)
    if not isinstance(around, cst.FunctionDef) or is_notebook(source.path) or _captures(function, function, source):
        return ()
    owner, name = source.function(around) or source.nearest(around, cst.ClassDef), function.name.value
    if owner is None:
        is_free = sum(name in bound for bound in source.facts.bindings.values()) == 1
        return _moved(function, around, "", source) if is_free else ()
    first = next((parameter.name.value for parameter in around.params.params), "")
    if not isinstance(owner, cst.ClassDef) or first != "self" or _is_a_field(name, source):
        return ()
    called = (source.replace(call.func, f"self.{name}") for call in calls)
    moved = _moved(function, around, "@staticmethod", source)
    return (*moved, *called) if moved else ()


def _is_a_field(name: str, source: Source) -> bool:
    """Whether anything in the file has a field or method of that name."""
    return re.search(rf"\.{re.escape(name)}\b", source.pieces.text) is not None


def _moved(function: cst.FunctionDef, around: cst.FunctionDef, static: str, source: Source) -> tuple[Edit, ...]:
    """The lines of a function taken away, with an empty one behind, and put in front of another."""
    where, there = source.location(function), source.location(around)
    first, last = _begins(function, source), where.end_line
    blanks, fewer = source.line(first)[: where.column - 1], source.line(there.line)[: there.column - 1]
    if blanks.strip() or fewer.strip() or not source.line(last).endswith("\n"):
        return ()
    lines = [source.line(number) for number in range(first, last + 1)]
    if any(line.strip() and not line.startswith(blanks) for line in lines):
        return ()  # of a text
    end = end_of(lines[0])
    head = [f"{fewer}{static}{end}"] if static else []
    empty = [end] if static else [end, end]
    text = "".join([*head, *(fewer + line[len(blanks) :] if line.strip() else line for line in lines), *empty])
    above = with_comments(_begins(around, source), source)
    here = there._replace(line=above, column=1, end_line=above, end_column=1)
    is_apart = not source.line(last + 1).strip()
    return Edit(here, text), Edit(where._replace(line=first, column=1, end_line=last + 1 + is_apart, end_column=1), "")


def _begins(function: cst.FunctionDef, source: Source) -> int:
    """The line of its first decorator."""
    lines = [source.location(decorator).line for decorator in function.decorators]
    return min([*lines, source.location(function).line])


def _captures(node: cst.CSTNode, function: cst.FunctionDef | cst.Lambda, source: Source) -> bool:
    """Whether something in `node` is a variable of a function around it."""
    own, around = source.body_scope(function), source.scope(function)
    said = {part for each in inside(node, cst.Annotation) for part in inside(each)}
    read = [name for name in names_read(node) if source.parent(name) is not function]  # which has a name itself
    scopes = ((around if name in said else source.scope(name), name.value) for name in read)
    found = (source.facts.lookup(scope, name) for scope, name in scopes)
    return any(bound[0] and not f"{bound[0]}.".startswith(f"{own}.") for bound in found if bound is not None)


def _is_imported(name: cst.Name, source: Source) -> bool:
    found = source.facts.lookup(source.scope(name), name.value)
    return found is None or (not found[0] and found[1].kind == "import")
