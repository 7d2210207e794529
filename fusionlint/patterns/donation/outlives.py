"""Names of a part of what a call could take for its results, that are read when the call has deleted that.

In: a call and an argument, a variable or a field of `self`, that its results replace. Out: whether `best =
state.params`, `params = get_params(opt_state)` is read later. A read counts where some way leads to it, by the text,
from where the name was written and through the call, and nothing writes the name anew in between.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import takewhile
from typing import TypeAlias

import libcst as cst

from fusionlint.lazily import regex
from fusionlint.patterns.code.at import inside
from fusionlint.patterns.code.calls import REPLACES
from fusionlint.patterns.donation.first_values import first_parts, first_values, whole_of
from fusionlint.patterns.donation.parts import names_of_parts
from fusionlint.patterns.values.kinds import kind
from fusionlint.source.tree import Source
from fusionlint.source.walk import dotted

_Loop: TypeAlias = "cst.For | cst.While"
# Of a state that holds the parameters these are asked for.
_PARAMETERS = regex(r"(^|\.)get_params$")
# A name seldom stands for more names than this.
_DEPTH = 4


def is_read_later(argument: cst.BaseExpression, call: cst.Call, source: Source) -> bool:
    """Whether a part of `argument` gets a name, in each turn of the loop or now and then, `if i % 100 == 0: best =
    state.params`, that is read when the next step has taken its memory; or is put into what comes of it."""
    if isinstance(argument, cst.Name) and _is_put_back(argument, call, source):
        return True
    if _is_a_field_behind(argument, call, source):
        return True
    loops = _loops(call, source)
    return any(_is_read_behind(name, call, loops, source) for name in _parts(argument, call, source))


def first_part_read(argument: cst.BaseExpression, call: cst.Call, source: Source) -> cst.Name | None:
    """The name of a part of what `argument` is before the loops, where that is read once a call has run."""
    loops = _loops(call, source)
    if not loops:
        return None
    names = (name for name in _parts(argument, call, source) if loops[-1] not in source.ancestors(name))
    before = (name for name in names if source.order(name) < source.order(call))
    return next((name for name in before if _gets_by(name, call, loops[-1], source)), None)


def first_read_again(argument: cst.BaseExpression, call: cst.Call, source: Source) -> str | None:
    """The variable or field, as it is written, whose arrays the first value of `argument` holds, `create(params=
    self.params)`, and that is read once a call has run."""
    for part in first_parts(argument, call, source):
        whole = whole_of(part, source)
        if dotted(whole).startswith("self."):
            is_again = _is_field_read_again(whole, call, source)
        else:
            is_again = whole is part and isinstance(part, cst.Name) and _is_name_read_again(part, call, source)
        if is_again:
            return source.code(whole)
    return None


def _is_name_read_again(part: cst.Name, call: cst.Call, source: Source) -> bool:
    written, loops = source.written(part), _loops(call, source)
    if written is None or not loops or source.function(part) is not source.function(call):
        return False
    if kind(part, source) == "key":  # of which what holds something else is made, mostly
        return False
    return loops[-1] not in source.ancestors(part) and _gets_by(written, call, loops[-1], source)


def _is_field_read_again(field: cst.BaseExpression, call: cst.Call, source: Source) -> bool:
    """The same of a field that the function around `call` does not write behind that: it holds the first arrays."""
    loops, function, made = _loops(call, source), source.function(call), source.order(field)
    fields = source.fields_called(dotted(field), source.facts.class_around(source.scope(call)))
    here = [one for one in fields if source.function(one) is function]
    here = [one for one in here if source.function(field) is not function or source.order(one) > made]
    if any(source.nearest(one, cst.AssignTarget) is not None for one in here):
        return False
    return any(
        source.order(one) > source.order(call) or any(loop in source.ancestors(one) for loop in loops) for one in here
    )


def holds_parameters(argument: cst.BaseExpression, call: cst.Call, source: Source) -> bool:
    """Whether the function asks this for the parameters, `get_params(opt_state)`, so that its first value,
    `init(params)`, may hold those that it was made of; and somebody may read these once a call has run."""
    handed = (source.handed_to(read) for read in _reads_of(argument, call, source))
    if not any(each is not None and _PARAMETERS.search(dotted(each.func)) for each in handed):
        return False
    made = (value for value in first_values(argument, call, source) if isinstance(value, cst.Call))
    return any(_is_read_again(arg.value, call, source) for first in made for arg in first.args)


def _is_read_again(value: cst.BaseExpression, call: cst.Call, source: Source) -> bool:
    """Whether a variable is read in a loop around `call` or behind it, or is what a caller has handed over."""
    written = source.written(value) if isinstance(value, cst.Name) else None
    if written is None or isinstance(source.parent(written), cst.Param):
        return not isinstance(value, cst.Call)
    loops = _loops(call, source)
    reads = [read for read in source.reads(written) if read is not value]
    return any(
        source.order(read) > source.order(call) or any(loop in source.ancestors(read) for loop in loops)
        for read in reads
    )


def _loops(call: cst.Call, source: Source) -> list[_Loop]:
    """The loops that run `call` again and again, innermost first: those of its function."""
    around = takewhile(lambda above: not isinstance(above, cst.FunctionDef), source.ancestors(call))
    return [above for above in around if isinstance(above, cst.For | cst.While)]


def _parts(argument: cst.BaseExpression, call: cst.Call, source: Source) -> Iterator[cst.Name]:
    """The names that parts of `argument` get in the function around `call`, but for its own."""
    for read in _reads_of(argument, call, source):
        for part in names_of_parts(read, source):
            yield from (name for name in _names_for(part, source, _DEPTH) if name.value != dotted(argument))


def _names_for(part: cst.Name, source: Source, depth: int) -> Iterator[cst.Name]:
    """The name of a part, and those that it gets from there: `params = state.params`, then `best = params`."""
    yield part
    for read in source.reads(part) if depth else ():
        name = source.assigned_name(read)
        if name is not None and source.function(name) is source.function(part):
            yield from _names_for(name, source, depth - 1)


def _reads_of(argument: cst.BaseExpression, call: cst.Call, source: Source) -> Iterator[cst.BaseExpression]:
    """Where the function around `call` reads the variable or field `argument`."""
    reads: Iterator[cst.BaseExpression]
    if isinstance(argument, cst.Name):
        reads = source.reads_at_all(argument)
    else:
        reads = source.fields_called(dotted(argument), source.facts.class_around(source.scope(call)))
    function = source.function(call)
    return (read for read in reads if source.function(read) is function)


def _reads(name: cst.Name, call: cst.Call, source: Source) -> list[cst.Name]:
    """Where this is read that was written to `name`, but to hand it to `call`."""
    return [read for read in source.reads(name) if call not in source.ancestors(read)]


def _is_read_behind(name: cst.Name, call: cst.Call, loops: list[_Loop], source: Source) -> bool:
    """Whether what is written to `name` in a turn of a loop around `call`, or before and behind one call, is read when
    the call has run. `loops` are all around the call."""
    around = [loop for loop in loops if loop in source.ancestors(name)]
    if loops and not around:
        return False
    reads, gate = _reads(name, call, source), _gate(name, around, source)
    if gate is not None and (_is_global(name, source) or any(gate not in source.ancestors(read) for read in reads)):
        return True
    # The call comes round in a loop that `name` is not written in.
    if len(around) < len(loops) and _gets_by(name, call, loops[-len(around) - 1], source):
        return True
    reads = [read for read in reads if source.function(read) is source.function(call)]
    taken, called = source.order(name), source.order(call)
    orders = [source.order(read) for read in reads]
    if taken < called:
        return any(order > called or order < taken for order in orders)
    return any(called < order < taken for order in orders)


def _is_global(name: cst.Name, source: Source) -> bool:
    """Whether the function says `global best`: who reads that later, nobody sees here."""
    function = source.function(name)
    declared = inside(function.body, cst.Global) if isinstance(function, cst.FunctionDef) else ()
    return any(name.value == each.name.value for statement in declared for each in statement.names)


def _gate(name: cst.Name, around: list[_Loop], source: Source) -> cst.If | None:
    """The `if` around, in the innermost loop that both are in."""
    inside = source.within(name, around[0]) if around else ()
    return next((above for above in inside if isinstance(above, cst.If)), None)


def _gets_by(name: cst.Name, call: cst.Call, loop: _Loop, source: Source) -> bool:
    """Whether what was written to `name` outside of a loop around `call` is read in it, or behind it where it was
    written before, once the call has run."""
    called, is_before = source.order(call), source.order(name) < source.order(call)
    anew = [use.node for use in source.writes(name) if source.always_follows(call, use.node) and use.order > called]
    in_each_turn = any(loop in source.ancestors(each) for each in anew)
    for read in _reads(name, call, source):
        order = source.order(read)
        if source.function(read) is not source.function(call) or source.written(read) not in (None, name):
            continue
        is_reached = loop in source.ancestors(read) or (is_before and order > called)
        if is_reached and not (in_each_turn if order < called else any(source.order(each) < order for each in anew)):
            return True
    return False


def _is_a_field_behind(argument: cst.BaseExpression, call: cst.Call, source: Source) -> bool:
    """Whether a part of `argument` goes into a field that the same turn reads before, when the call has run: `score =
    evaluate(self.params)`, then `self.params = state.params`."""
    loops, owner = _loops(call, source), source.facts.class_around(source.scope(call))
    for read in _reads_of(argument, call, source):
        part = whole_of(read, source)
        match source.parent(part):
            case cst.Assign(targets=[cst.AssignTarget(target=cst.Attribute() as field)], value=value) if (
                value is part is not read and dotted(field).startswith("self.")
            ):
                stored = source.order(field)
                again = source.fields_called(dotted(field), owner)
                here = (one for one in again if source.function(one) is source.function(call))
                is_between = any(source.order(call) < source.order(one) < stored for one in here)
                if is_between and any(loop in source.ancestors(field) for loop in loops):
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
