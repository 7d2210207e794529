"""How a loop that reads the elements of arrays of the device gets them all at once: what a fix writes.

In: the names of arrays, read in a loop of host code. Out: the edits, none where they are not seen to be all it takes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

import libcst as cst

from fusionlint.finding import Edit
from fusionlint.patterns.code.at import inside, is_about
from fusionlint.patterns.code.before import lines_beside
from fusionlint.patterns.code.imports import imported
from fusionlint.patterns.code.same import is_same_at
from fusionlint.patterns.code.unpacked import assignment
from fusionlint.source.tree import Source

# Whether an expression is an element of an array that Python asks for its number.
IsRead: TypeAlias = "Callable[[cst.Subscript], bool]"


def brought(arrays: Sequence[cst.Name], is_read: IsRead, source: Source) -> tuple[Edit, ...]:
    """The edits that fetch `arrays` once: where one is made, if nothing but such reads needs it, else by a line before
    the loops that read it."""
    jax = imported("jax", arrays[0], source)
    if jax is None:
        return ()
    get = f"{jax.name}.device_get"
    made = {array: _where_it_is_made(array, is_read, get, source) for array in arrays}
    others = [array for array, edit in made.items() if edit is None]
    before = _before(others, is_read, get, source) if others else ()
    if before is None:
        return ()
    return (*jax.edits, *(edit for edit in made.values() if edit is not None), *before)


def _where_it_is_made(array: cst.Name, is_read: IsRead, get: str, source: Source) -> Edit | None:
    """The edit at the one assignment of an array of which the function asks nothing but numbers."""
    written = source.written(array)
    statement = assignment(written, source)
    uses = source.uses(array)
    if written is None or statement is None or len(statement.targets) != 1 or source.has_comment(statement.value):
        return None
    if source.function(written) is None or source.function(written) is not source.function(array):
        return None
    if sum(use.is_write for use in uses) != 1 or isinstance(statement.value, cst.Tuple):
        return None
    if not all(use.is_write or _asks_a_number(use.node, array, is_read, source) for use in uses):
        return None
    return source.replace(statement.value, f"{get}({source.code(statement.value)})")


def _asks_a_number(read: cst.Name, array: cst.Name, is_read: IsRead, source: Source) -> bool:
    if source.function(read) is not source.function(array):
        return False
    above = source.parent(read)
    is_element = isinstance(above, cst.Subscript) and above.value is read and is_read(above)
    call = source.handed_to(read)
    return is_element or is_about(read, source) or (source.calls(call, "len"))


def _before(arrays: Sequence[cst.Name], is_read: IsRead, get: str, source: Source) -> tuple[Edit, ...] | None:
    """The edits that fetch arrays in a line before the outermost loop around that leaves them as they are."""
    statement = _outermost(arrays, source)
    if statement is None:
        return None
    names = [_name_for(array, source) for array in arrays]
    if not all(names) or not all(_is_there(array, statement, source) for array in arrays):
        return None
    renamed = {array.value: str(name) for array, name in zip(arrays, names, strict=True)}
    found = (part for part in inside(statement, cst.Subscript) if is_read(part))
    read = [
        source.replace(part.value, renamed[array.value])
        for part in found
        for array in arrays
        if _is_element_of(part, array, source)
    ]
    new = [(array, name) for array, name in zip(arrays, names, strict=True) if not _has(name, array, statement, source)]
    if not new:
        return (*read,)
    values = ", ".join(array.value for array, _ in new)
    value = values if len(new) == 1 else f"({values})"
    line = f"{', '.join(str(name) for _, name in new)} = {get}({value})"
    before = lines_beside(statement, source, before=[line])
    return (*before, *read) if before is not None else None


def _has(name: str | None, array: cst.Name, statement: cst.CSTNode, source: Source) -> bool:
    """Whether `name` is a copy of the array already, as it is at a statement."""
    copies = _writing(name, source, source.scope(array)) if name is not None else ()
    return any(
        source.always_precedes(copy, statement) and is_same_at(copy.value, array, source)
        for copy in copies
        if isinstance(copy, cst.Assign) and source.order(copy) < source.order(statement)
    )


def _is_element_of(part: cst.CSTNode, array: cst.Name, source: Source) -> bool:
    match part:
        case cst.Subscript(value=cst.Name(name) as read):
            return name == array.value and source.scope(read) == source.scope(array)
    return False


def _outermost(arrays: Sequence[cst.Name], source: Source) -> cst.CSTNode | None:
    """The statement around the reads of arrays, or the outermost of the loops around that, that writes none."""
    found: cst.CSTNode | None = None
    for below, above in source.outward(arrays[0]):
        if isinstance(above, cst.FunctionDef | cst.Lambda | cst.ClassDef) and below is not getattr(above, "body", None):
            return None
        if isinstance(above, cst.IndentedBlock | cst.Module):
            if any(_is_written_in(array, below, source) for array in arrays):
                return found
            if found is None or isinstance(below, cst.For | cst.While):
                found = below
        if isinstance(above, cst.FunctionDef | cst.Lambda):
            return found if isinstance(above, cst.FunctionDef) else None
    return None  # the module's own level: others may read its names


def _is_written_in(array: cst.Name, statement: cst.CSTNode, source: Source) -> bool:
    return any(statement in source.ancestors(use.node) for use in source.writes(array))


def _is_there(array: cst.Name, statement: cst.CSTNode, source: Source) -> bool:
    """Whether an array is sure to have been written before a statement."""
    writes = [use.node for use in source.writes(array) if use.order < source.order(statement)]
    return any(
        isinstance(source.parent(write), cst.Param) or source.always_precedes(write, statement) for write in writes
    )


def _name_for(array: cst.Name, source: Source) -> str | None:
    """A name for the copy of an array: one that is free, or that another line has given to the same."""
    scope = source.scope(array)
    for name in (f"host_{array.value}", f"{array.value}_on_host"):
        if source.facts.lookup(scope, name) is None:
            return name
        if all(_is_a_copy(assign, array.value) for assign in _writing(name, source, scope)):
            return name
    return None


def _writing(name: str, source: Source, scope: str) -> Iterator[cst.Assign | None]:
    """The assignments to a name of that scope; None for what writes it otherwise."""
    for node in source.nodes_with(name, cst.Name):
        is_it = isinstance(node, cst.Name) and node.value == name and source.scope(node) == scope
        if isinstance(node, cst.Name) and is_it and any(use.node is node for use in source.writes(node)):
            yield assignment(node, source)


def _is_a_copy(assign: cst.CSTNode | None, array: str) -> bool:
    match assign:
        case cst.Assign(value=cst.Call(func=cst.Attribute(attr=cst.Name("device_get")), args=[arg])):
            return isinstance(arg.value, cst.Name) and arg.value.value == array
    return False
