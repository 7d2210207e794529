"""Calls that write what they return over what they are handed: `state = step(state, batch)`.

In: a call. Out: which of its arguments it replaces, where nothing else keeps what they were (`kept.py`).
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from fusionlint.patterns.code.at import names_read, number_in
from fusionlint.patterns.code.calls import hides_some
from fusionlint.patterns.donation.kept import is_kept
from fusionlint.source.tree import Source
from fusionlint.source.walk import dotted


def replaced(call: cst.Call, source: Source) -> dict[int | str, str]:
    """The arguments of `call`, by position or by keyword, that are written with what it returns, and that nothing else
    keeps."""
    statement = source.parent(call)
    if not isinstance(statement, cst.Assign) or hides_some(call):
        return {}
    written = {name for target in statement.targets for name in names_of(target.target)}
    written |= {name for target in statement.targets for name in _taken_out(target.target, call, source)}
    written |= {name for target in statement.targets for name in _stored(target.target, call, source)}
    given = {number if a.keyword is None else a.keyword.value: a.value for number, a in enumerate(call.args)}
    names = {key: dotted(value) for key, value in given.items()}
    return {k: name for k, name in names.items() if name in written and not is_kept(given[k], call, name, source)}


def given_at(call: cst.Call, key: int | str) -> cst.BaseExpression:
    """The argument of `call` at a place, or under a keyword, that `replaced` names."""
    return next(arg.value for i, arg in enumerate(call.args) if (arg.keyword.value if arg.keyword else i) == key)


def _taken_out(target: cst.CSTNode, call: cst.Call, source: Source) -> Iterator[str]:
    """What is taken out of a result by a later line of the same block: `state` of `out = step(state)`, `state =
    out.state`."""
    for read in source.reads(target) if isinstance(target, cst.Name) else ():
        part = source.parent(read)
        statement = source.parent(part) if isinstance(part, cst.Attribute) else None
        if isinstance(statement, cst.Assign):
            yield from _written_later(statement, call, source)


def _stored(target: cst.CSTNode, call: cst.Call, source: Source) -> Iterator[str]:
    """What a part of the result is stored as by a later line of the same block: `actor` of `new_actor, info =
    update(actor)`, `actor = new_actor`."""
    parts = [each.value for each in target.elements] if isinstance(target, cst.Tuple | cst.List) else [target]
    for part in parts:
        for read in source.reads(part) if isinstance(part, cst.Name) else ():
            store = source.parent(read)
            if isinstance(store, cst.Assign) and store.value is read:
                yield from _written_later(store, call, source)


def _written_later(store: cst.Assign, call: cst.Call, source: Source) -> Iterator[str]:
    """What `store` writes, a later line of the block around `call`, where nothing between reads what stood there."""
    line = source.nearest(call, cst.SimpleStatementLine)
    block = source.parent(line) if line is not None else None
    if not isinstance(block, cst.IndentedBlock):
        return
    first = number_in(block.body, line)
    last = next((i for i, each in enumerate(block.body) if each is source.parent(store)), 0)
    between = [read for each in block.body[first + 1 : last] for read in names_read(each)]
    stored = [name for each in store.targets for name in names_of(each.target)] if last > first else []
    yield from (name for name in stored if not any(_is_read_as(read, name, source) for read in between))


def _is_read_as(read: cst.Name, name: str, source: Source) -> bool:
    """Whether what begins with `read` is called `name`, or is all that holds it."""
    if read.value != name.partition(".")[0]:
        return False
    whole: cst.CSTNode = read
    while isinstance(above := source.parent(whole), cst.Attribute) and above.value is whole:
        whole = above
    written = dotted(whole)
    is_target = isinstance(source.parent(whole), cst.AssignTarget)
    return not is_target and (f"{written}.".startswith(f"{name}.") or f"{name}.".startswith(f"{written}."))


def names_of(target: cst.CSTNode) -> Iterator[str]:
    """`a` and `self.b`, of `a, self.b = ...`."""
    match target:
        case cst.Tuple(elements=elements) | cst.List(elements=elements):
            for element in elements:
                yield from names_of(element.value)
        case _ if name := dotted(target):
            yield name
