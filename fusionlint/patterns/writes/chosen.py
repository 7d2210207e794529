"""Writes that a condition lets through: `x = jnp.where(p, x.at[i].set(v), x)`, and the same by a select or a cond; also
a choice between two writes.

In: a write of a Source. Out: the choice that it is one side of, and the choices before it on the same array.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import libcst as cst

from fusionlint.patterns.code.at import Write, at_write, inside
from fusionlint.patterns.code.elementwise import CHOICES
from fusionlint.patterns.writes.chain import first_to_last, is_element, outermost, root
from fusionlint.source.tree import Source
from fusionlint.source.variables import Use
from fusionlint.source.walk import dotted

_COND = "jax.lax.cond"


class Chosen(NamedTuple):
    """A write, the choice between its array with it and without, and that array as the choice reads it."""

    write: Write
    choice: cst.Call
    array: cst.Name | cst.Attribute
    is_cond: bool


def chosen(write: Write, source: Source) -> Chosen | None:
    """The choice that `write`, the end of a chain of them, is one side of, the array as it was being the other."""
    if outermost(write, source) is not write:
        return None
    if (side := _side(write, source)) is not None:
        choice, other = side
        return _of(write, choice, root(write), other, source, is_cond=False)
    match above := source.parent(write.call):
        case cst.Lambda():
            call = source.handed_to(above)
            return _by_cond(write, above, call, source) if call is not None else None
    return None


def _by_cond(write: Write, branch: cst.Lambda, choice: cst.Call, source: Source) -> Chosen | None:
    if not source.calls(choice, _COND) or len(choice.args) < 3:
        return None
    branches = [arg.value for arg in choice.args[1:3]]
    if branch not in branches:
        return None
    idle = branches[1] if branches[0] is branch else branches[0]
    if not isinstance(idle, cst.Lambda):
        return None
    array, other = _handed(root(write), branch, choice), _handed(idle.body, idle, choice)
    return _of(write, choice, array, other, source, is_cond=True)


def _handed(node: cst.BaseExpression, branch: cst.Lambda, choice: cst.Call) -> cst.BaseExpression:
    """What a parameter of a branch stands for: the operand of the cond at its place."""
    names = [parameter.name.value for parameter in branch.params.params]
    operands = choice.args[3:]
    if isinstance(node, cst.Name) and node.value in names and len(names) == len(operands):
        return operands[names.index(node.value)].value
    return node


def _of(
    write: Write,
    choice: cst.Call,
    array: cst.BaseExpression,
    other: cst.BaseExpression,
    source: Source,
    *,
    is_cond: bool,
) -> Chosen | None:
    if isinstance(array, cst.Attribute) and dotted(array) and dotted(array) == dotted(other) and not is_cond:
        return Chosen(write, choice, array, is_cond)  # a field, both times as the expression finds it
    if not isinstance(array, cst.Name) or not isinstance(other, cst.Name) or array.value != other.value:
        return None
    stored = _stored(array, choice, source)
    return Chosen(write, choice, array, is_cond) if stored is _stored(other, choice, source) else None


def _stored(array: cst.Name, choice: cst.Call, source: Source) -> Use | None:
    """The write whose value `array` is, in an argument of `choice` or in a branch that it runs at once."""
    uses = source.uses(array)
    here = next(use.order for use in uses if use.node is array)
    last = next((use for use in reversed(uses) if use.is_write and use.order < here), None)
    if last is None or source.scope(last.node) not in (source.scope(choice), source.scope(array)):
        return None
    return last if _block(last.node, source) in (None, *source.ancestors(choice)) else None


def _block(node: cst.CSTNode, source: Source) -> cst.CSTNode | None:
    """The block of statements that `node` stands in; None for a parameter."""
    if isinstance(source.parent(node), cst.Param):
        return None
    return next((above for above in source.ancestors(node) if isinstance(above, cst.BaseSuite | cst.Module)), None)


def chosen_chain(last: Chosen, source: Source) -> list[Chosen]:
    """The choices that `last` is the end of, first to last: each goes on with what the one before it left."""
    return first_to_last(last, lambda one: _before(one, source))


def is_last_choice(one: Chosen, source: Source) -> bool:
    """Whether no other choice goes on from this one."""
    name = source.assigned_name(one.choice)
    around = (above for read in (source.reads(name) if name is not None else ()) for above in source.ancestors(read))
    following = (found for above in around if (found := _in_choice(above, source)) is not None)
    befores = (_before(found, source) for found in following)
    return not any(before is not None and before.choice is one.choice for before in befores)


def choices_of_one_place(write: Write, source: Source) -> list[cst.Call]:
    """The choices, first to last, of which `write` stands in the last: between an array that is written at one place
    and what the choice before chose, the first of them between that and the array as it was. `new = where(p,
    x.at[i].set(v), x)`, then `new = where(q, x.at[i].set(w), new)`. Empty where there are not two."""
    array, side = write.array, _side(write, source)
    if (
        side is None
        or not isinstance(array, cst.Name)
        or write.method != "set"
        or is_chosen_again(write, side[0], source)
    ):
        return []
    choice, other = side
    found, stored = [choice], _stored(array, choice, source)
    while not (isinstance(other, cst.Name) and other.value == array.value):
        before = source.meant(other)
        # A choice that something else reads too is not just a step on the way.
        if not set(source.readers(before)) <= set(inside(found[-1])):
            return []
        again = _written_there(before, write, source)
        if again is None or again.call in found or _stored(again.array, again.call, source) is not stored:
            return []
        found.append(again.call)
        other = again.other
    return found[::-1] if len(found) > 1 and _stored(other, found[-1], source) is stored else []


class BothWritten(NamedTuple):
    """A choice between an array written in one way and the same array written in another, each a chain of writes."""

    choice: cst.Call
    array: cst.Name
    first: tuple[Write, ...]
    second: tuple[Write, ...]


def both_written(write: Write, source: Source) -> BothWritten | None:
    """The choice between two writes of one array, of which `write` is the first: `where(p, x.at[i].set(v),
    x.at[j].set(w))`."""
    side = _side(write, source)
    second = at_write(side[1]) if side is not None else None
    if side is None or second is None or side[0].args[1].value is not write.call:
        return None
    choice = side[0]
    array, again = root(write), root(second)
    if not isinstance(array, cst.Name) or not isinstance(again, cst.Name) or array.value != again.value:
        return None
    if _stored(array, choice, source) is not _stored(again, choice, source):
        return None
    return BothWritten(choice, array, tuple(_nested(write)), tuple(_nested(second)))


def _nested(write: Write | None) -> Iterator[Write]:
    """A write, and those that it is made on top of in the same expression, last to first."""
    while write is not None:
        yield write
        write = at_write(write.array)


class _Written(NamedTuple):
    """A choice between an array that is written at a place, and something else."""

    call: cst.Call
    array: cst.Name
    other: cst.BaseExpression


def _side(write: Write, source: Source) -> tuple[cst.Call, cst.BaseExpression] | None:
    """The choice that a write is one side of, and the other side."""
    choice = source.handed_to(write.call)
    if not source.calls(choice, *CHOICES) or len(choice.args) != 3:
        return None
    first, second = (arg.value for arg in choice.args[1:])
    if write.call not in (first, second):
        return None
    return choice, second if first is write.call else first


def _written_there(choice: cst.CSTNode, write: Write, source: Source) -> _Written | None:
    """What `choice` is, where one of its sides writes to the place that `write` does."""
    for arg in choice.args if isinstance(choice, cst.Call) else ():
        match at_write(arg.value):
            case Write(array=cst.Name() as array, index=index) as other if (
                source.code(array) == source.code(write.array)
                and [*map(source.code, index)] == [*map(source.code, write.index)]
                and (side := _side(other, source)) is not None
            ):
                return _Written(side[0], array, side[1])
    return None


def is_chosen_again(write: Write, choice: cst.Call, source: Source) -> bool:
    """Whether another choice of the same place goes on from this one."""
    around = (above for read in source.readers(choice) for above in source.ancestors(read))
    return any(_written_there(above, write, source) is not None for above in around)


def _before(one: Chosen, source: Source) -> Chosen | None:
    stored = _stored(one.array, one.choice, source) if isinstance(one.array, cst.Name) else None
    target = source.parent(stored.node) if stored is not None else None
    statement = source.parent(target) if isinstance(target, cst.AssignTarget) else None
    before = _in_choice(statement.value, source) if isinstance(statement, cst.Assign) else None
    if stored is None or before is None:
        return None
    # A value that something else reads as a whole is not just a step on the way.
    within = set(inside(one.choice))
    later = (use for use in source.uses(stored.node) if use.order > stored.order and not use.is_write)
    read = set(source.reads(stored.node)).intersection(use.node for use in later)
    return before if all(name in within or is_element(name, source) for name in read) else None


def _in_choice(choice: cst.CSTNode, source: Source) -> Chosen | None:
    """The choice that `choice` is, by the write on one of its sides."""
    if not source.calls(choice, *CHOICES, _COND):
        return None
    for node in inside(choice):
        write = at_write(node)
        found = chosen(write, source) if write is not None else None
        if found is not None and found.choice is choice:
            return found
    return None
