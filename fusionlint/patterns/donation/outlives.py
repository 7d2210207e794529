"""Names of a part of what a call could take for its results, that are read when the call has deleted that.

In: a call and an argument, a variable or a field of `self`, that its results replace. Out: whether `best =
state.params`, `params = get_params(opt_state)` is read later. A read counts where some way leads to it, by the text,
from where the name was written and through the call, and nothing writes the name anew in between.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from fusionlint.lazily import regex
from fusionlint.patterns.code.calls import REPLACES
from fusionlint.patterns.donation.parts import names_of_parts
from fusionlint.source.tree import Source
from fusionlint.source.walk import dotted

# Of a state that holds the parameters these are asked for.
_PARAMETERS = regex(r"(^|\.)get_params$")


def is_read_later(argument: cst.BaseExpression, call: cst.Call, source: Source) -> bool:
    """Whether a part of `argument` gets a name, in each turn of the loop or now and then, `if i % 100 == 0: best =
    state.params`, that is read when the next step has taken its memory; or is put into what comes of it."""
    if isinstance(argument, cst.Name) and _is_put_back(argument, call, source):
        return True
    loop = _loop(call, source)
    names = _parts(argument, call, source)
    return any(_is_read_behind(name, call, loop, source) for name in names if _is_in(name, loop, source))


def first_part_read(argument: cst.BaseExpression, call: cst.Call, source: Source) -> cst.Name | None:
    """The name of a part of what `argument` is before the loop, where that is read once a call has run."""
    loop = _loop(call, source)
    if loop is None:
        return None
    names = _parts(argument, call, source)
    before = (name for name in names if source.order(name) < source.order(call) and not _is_in(name, loop, source))
    return next((name for name in before if _gets_by(name, call, loop, source)), None)


def holds_parameters(argument: cst.BaseExpression, call: cst.Call, source: Source) -> bool:
    """Whether the function asks this for the parameters, `get_params(opt_state)`: its first value, `init(params)`, may
    hold those that it was made of."""
    handed = (source.handed_to(read) for read in _reads_of(argument, call, source))
    return any(each is not None and _PARAMETERS.search(dotted(each.func)) for each in handed)


def _loop(call: cst.Call, source: Source) -> cst.For | cst.While | None:
    loop = source.loop(call)
    return loop if isinstance(loop, cst.For | cst.While) else None


def _is_in(node: cst.CSTNode, loop: cst.For | cst.While | None, source: Source) -> bool:
    """Whether a loop runs `node` again; without one, all is one turn."""
    return loop is None or loop in source.ancestors(node)


def _parts(argument: cst.BaseExpression, call: cst.Call, source: Source) -> Iterator[cst.Name]:
    """The names that parts of `argument` get in the function around `call`, but for its own."""
    for read in _reads_of(argument, call, source):
        yield from (name for name in names_of_parts(read, source) if name.value != dotted(argument))


def _reads_of(argument: cst.BaseExpression, call: cst.Call, source: Source) -> Iterator[cst.CSTNode]:
    """Where the function around `call` reads the variable or field `argument`."""
    reads: Iterator[cst.CSTNode]
    if isinstance(argument, cst.Name):
        reads = (use.node for use in source.uses(argument) if not use.is_write)
    else:
        reads = source.fields_called(dotted(argument), source.facts.class_around(source.scope(call)))
    function = source.function(call)
    return (read for read in reads if source.function(read) is function)


def _reads(name: cst.Name, call: cst.Call, source: Source) -> list[cst.Name]:
    """Where this is read that was written to `name`, but to hand it to `call`."""
    return [read for read in source.reads(name) if call not in source.ancestors(read)]


def _is_read_behind(name: cst.Name, call: cst.Call, loop: cst.For | cst.While | None, source: Source) -> bool:
    reads, gate = _reads(name, call, source), _gate(name, loop, source)
    if gate is not None and any(gate not in source.ancestors(read) for read in reads):
        return True
    reads = [read for read in reads if source.function(read) is source.function(call)]
    taken, called = source.order(name), source.order(call)
    orders = [source.order(read) for read in reads]
    if taken < called:
        return any(order > called or order < taken for order in orders)
    return any(called < order < taken for order in orders)


def _gate(name: cst.Name, loop: cst.For | cst.While | None, source: Source) -> cst.If | None:
    """The `if` around, in the same loop."""
    for above in source.ancestors(name) if loop is not None else ():
        if above is loop:
            break
        if isinstance(above, cst.If):
            return above
    return None


def _gets_by(name: cst.Name, call: cst.Call, loop: cst.For | cst.While, source: Source) -> bool:
    """Whether what was written to `name` before the loop is read after `call` has run."""
    called = source.order(call)
    anew = (use.node for use in source.writes(name) if source.always_follows(call, use.node))
    behind = [source.order(each) for each in anew if source.order(each) > called]
    for read in _reads(name, call, source):
        order = source.order(read)
        if source.function(read) is not source.function(call) or source.written(read) not in (None, name):
            continue
        if (order > called or _is_in(read, loop, source)) and not any(w < order or order < called for w in behind):
            return True
    return False


def _is_put_back(argument: cst.Name, call: cst.Call, source: Source) -> bool:
    """`stats = state.model.get("stats")`, `state = step(state)`, then `state.replace(stats=stats)`."""
    for use in source.uses(argument):
        if use.node is argument:
            return False
        is_here = not use.is_write and source.function(use.node) is source.function(call)
        for name in names_of_parts(use.node, source) if is_here else ():
            if any(_goes_into(each, argument.value, source) for each in source.reads(name)):
                return True
    return False


def _goes_into(read: cst.Name, whole: str, source: Source) -> bool:
    for above in source.ancestors(read):
        match above:
            case cst.Call(func=cst.Attribute(value=cst.Name(owner), attr=cst.Name(method))) if owner == whole:
                return method in REPLACES
    return False
