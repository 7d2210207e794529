"""Python loops that write an array piece by piece: `for i in range(n): x = x.at[i].set(f(i))`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import libcst as cst

from fusionlint.patterns.code.at import Part, Write, at_write, elements, inside, names_read
from fusionlint.patterns.code.elementwise import is_update
from fusionlint.patterns.writes.chain import is_element, root, write_on
from fusionlint.source.tree import Source
from fusionlint.source.walk import dotted


class Piecewise(NamedTuple):
    """The writes of one loop, the arrays that they go on with, and what the loop counts by."""

    writes: tuple[Write, ...]
    arrays: tuple[str, ...]
    counter: str


def counted_by(loop: cst.For) -> set[str]:
    """The names that each iteration gets anew by the head of the loop."""
    return {name.value for name in names_read(loop.target)}


def piecewise(loop: cst.For, source: Source) -> Piecewise | None:
    """The writes of `loop` whose place depends on what it counts by; None where there are none."""
    depends = _dependencies(loop)
    counted = counted_by(loop)
    found = [
        (write, array)
        for call in _own_calls(loop, source)
        if (write := at_write(call)) is not None and (array := _carried(write, loop, source)) is not None
        if _is_counted(write, array, counted, depends) and _only_pieces(write, array, loop, source)
        if not _is_made_anew(array, loop, source)
        if not any(_is_open(part, counted) for part in write.index)
    ]
    if not found:
        return None
    arrays = dict.fromkeys(dotted(array) for _, array in found)
    return Piecewise(tuple(w for w, _ in found), tuple(arrays), source.code(loop.target))


def recurrent(loop: cst.For, source: Source) -> Piecewise | None:
    """The writes of `loop` that make a piece of the one that the turn before wrote, `x = x.at[i].set(f(x[i - 1]))`,
    where nothing else of the array is read; None where there are none."""
    direction = _direction(loop, source)
    if not isinstance(loop.target, cst.Name) or direction is None:
        return None
    depends, counter = _dependencies(loop), loop.target.value
    found = []
    for call in _own_calls(loop, source):
        write = at_write(call)
        array = _carried(write, loop, source) if write is not None else None
        if write is None or not isinstance(array, cst.Name) or not _is_counted(write, array, {counter}, depends):
            continue
        reads = [read for read in source.reads_at_all(array) if loop in source.ancestors(read)]
        beside = [read for read in reads if _beside(read, write, counter, source) == -direction]
        others = (read for read in reads if read not in beside)
        if beside and all(_is_piece(r, write, source) or write_on(r, source) is not None for r in others):
            found.append((write, array.value))
    if not found:
        return None
    return Piecewise(tuple(write for write, _ in found), tuple(dict.fromkeys(name for _, name in found)), counter)


def _direction(loop: cst.For, source: Source) -> int | None:
    """1 where the counter of a loop goes up by one, -1 where it goes down."""
    match loop.iter:
        case cst.Call(args=[cst.Arg(value=counted)]) if source.calls(loop.iter, "reversed"):
            return -1 if source.calls(counted, "range") else None
        case cst.Call(args=[_, _, cst.Arg(value=step)]) if source.calls(loop.iter, "range"):
            return {"1": 1, "-1": -1}.get(source.code(step))
    return 1 if source.calls(loop.iter, "range") else None


def _beside(read: cst.Name, write: Write, counter: str, source: Source) -> int | None:
    """How far `read` is from the piece of `write` along one axis: -1 of `x[:, i - 1]`, of `.at[:, i]`."""
    match source.parent(read):
        case cst.Subscript(value=value, slice=slices) if value is read:
            parts = elements(slices)
        case _:
            return None
    if len(parts) != len(write.index):
        return None
    apart = [(a, b) for a, b in zip(parts, write.index, strict=True) if source.code(a) != source.code(b)]
    steps = [(_steps(a, counter), _steps(b, counter)) for a, b in apart]
    match steps:
        case [(int() as one, int() as other)]:
            return one - other
    return None


def _steps(part: Part, counter: str) -> int | None:
    """How far from the counter a place is: 0 of `i`, -1 of `i - 1`."""
    match part:
        case cst.Name(value=name) if name == counter:
            return 0
        case cst.BinaryOperation(left=cst.Name(value=name), operator=operator, right=cst.Integer() as number) if (
            name == counter
        ):
            steps = number.evaluated_value
            return steps if isinstance(operator, cst.Add) else -steps if isinstance(operator, cst.Subtract) else None
    return None


def are_windows_apart(write: Write, loop: cst.For, source: Source) -> bool:
    """Whether the windows that a loop writes are seen not to overlap: `i * w : (i + 1) * w` and `i * w : i * w + w` of
    what is counted in ones, `i : i + w` of what is counted in steps of w."""
    step = _step(loop, source)
    return step is not None and any(_is_window(part, loop, step, source) for part in write.index)


def are_windows_over(write: Write, loop: cst.For, source: Source) -> bool:
    """Whether each window is seen to lie on the next: `i : i + 24` of what is counted in steps of 16."""
    step = _step(loop, source)
    counter = source.code(loop.target)
    for part in write.index:
        match part:
            case cst.Slice(
                lower=cst.BaseExpression() as lower,
                upper=cst.BinaryOperation(left=left, operator=cst.Add(), right=cst.Integer() as width),
                step=None,
            ) if source.code(lower) == source.code(left) == counter:
                return step is not None and step.isdecimal() and width.evaluated_value > int(step)
    return False


def _step(loop: cst.For, source: Source) -> str | None:
    """What the counter of a loop goes on by."""
    if not isinstance(loop.target, cst.Name) or not source.calls(loop.iter, "range"):
        return None
    assert isinstance(loop.iter, cst.Call)
    return source.code(loop.iter.args[2].value) if len(loop.iter.args) == 3 else "1"


def _is_window(part: Part, loop: cst.For, step: str, source: Source) -> bool:
    if not isinstance(part, cst.Slice) or part.lower is None or part.upper is None or part.step is not None:
        return False
    lower, upper = (source.meant(bound) for bound in (part.lower, part.upper))
    counter, begins, ends = source.code(loop.target), source.code(lower), source.code(upper)
    if begins == counter:
        return ends in (f"{counter} + {step}", f"{step} + {counter}")
    width = _width(lower, counter, source) if step == "1" else None
    if width is None:
        return False
    times = [f"{width} * ({counter} + 1)", f"({counter} + 1) * {width}", f"{width} * (1 + {counter})"]
    start = source.code(part.lower)
    return ends in (*times, f"{begins} + {width}", f"{start} + {width}")


def _width(begin: cst.BaseExpression, counter: str, source: Source) -> str | None:
    """w of `i * w` and `w * i`."""
    match begin:
        case cst.BinaryOperation(left=left, operator=cst.Multiply(), right=right):
            sides = source.code(left), source.code(right)
            return sides[1 - sides.index(counter)] if counter in sides else None
    return None


def _own_calls(loop: cst.For, source: Source) -> Iterator[cst.Call]:
    """The calls in the body of `loop` in order, without those of loops and functions inside it."""
    for node in inside(loop.body, cst.Call):
        if source.loop(node) is loop:
            yield node


def _carried(write: Write, loop: cst.For, source: Source) -> cst.Name | cst.Attribute | None:
    """x, where the statement `x = ... x.at[i].set(...) ...` carries x from one iteration to the next; or `s.x` of
    `s = s.replace(x=s.x.at[i].set(...))`."""
    array = root(write)
    if not isinstance(array, cst.Name | cst.Attribute):
        return None
    statement = next((a for a in source.ancestors(write.call) if isinstance(a, cst.Assign | cst.AnnAssign)), None)
    match statement:
        case (
            cst.Assign(targets=[cst.AssignTarget(target=cst.Name(name))], value=value)
            | cst.AnnAssign(target=cst.Name(name), value=cst.BaseExpression() as value)
        ) if loop.body in source.ancestors(statement):
            kept = array.value == name if isinstance(array, cst.Name) else _is_replaced(name, array, value, source)
            return array if kept else None
    return None


def _is_made_anew(array: cst.Name | cst.Attribute, loop: cst.For, source: Source) -> bool:
    """Whether each turn begins with a new array before `array` is read, `x = kept.at[i].set(1); x = x.at[j].set(2)`:
    what becomes of the one of the last turn is said elsewhere, as by a choice."""
    read = source.order(array)
    lines = (part for line in loop.body.body if isinstance(line, cst.SimpleStatementLine) for part in line.body)
    for line in lines:
        match line:
            case cst.Assign(targets=[cst.AssignTarget(target=cst.Name(name))], value=value) if (
                source.order(line) < read
            ):
                if isinstance(array, cst.Name) and name == array.value:
                    return array not in inside(value) and not any(each.value == name for each in names_read(value))
    return False


def _is_replaced(name: str, field: cst.Attribute, value: cst.BaseExpression, source: Source) -> bool:
    """Whether `value` is the record called `name` with another `field`: `name.replace(field=...)`."""
    if dotted(field) != f"{name}.{field.attr.value}" or not isinstance(value, cst.Call) or not is_update(value, source):
        return False
    owner = value.func.value if isinstance(value.func, cst.Attribute) else None
    is_own = isinstance(owner, cst.Name) and owner.value == name
    given = next((arg.value for arg in value.args if arg.keyword and arg.keyword.value == field.attr.value), None)
    return is_own and given is not None and any(part is field for part in inside(given))


def _is_counted(write: Write, array: cst.Name | cst.Attribute, counted: set[str], depends: dict[str, set[str]]) -> bool:
    """Whether the place is another in each iteration, and does not hang on what was written before."""
    reached: set[str] = set()
    todo = [name.value for part in write.index for name in names_read(part)]
    while todo:
        name = todo.pop()
        if name not in reached:
            reached.add(name)
            todo += depends.get(name, ())
    return not counted.isdisjoint(reached) and dotted(array).partition(".")[0] not in reached


def _is_open(part: Part, counted: set[str]) -> bool:
    """`i:`, which the next iteration writes too: a piece of one is not left as it is."""
    match part:
        case (
            cst.Slice(lower=cst.BaseExpression() as bound, upper=None)
            | cst.Slice(lower=None, upper=cst.BaseExpression() as bound)
        ):
            return any(name.value in counted for name in names_read(bound))
    return False


def _only_pieces(write: Write, array: cst.Name | cst.Attribute, loop: cst.For, source: Source) -> bool:
    """Whether the loop reads no more of the array than the piece it writes: what needs another, `x[i - 1]` or all of
    it, needs the writes before."""
    name = array
    while isinstance(name, cst.Attribute):
        assert isinstance(name.value, cst.Name | cst.Attribute)
        name = name.value
    reads = source.reads_at_all(name)
    here = (read for read in reads if any(above is loop for above in source.ancestors(read)))
    if isinstance(array, cst.Attribute):
        return all(_is_other_or_piece(read, array, write, source) for read in here)
    return all(_is_piece(r, write, source) or write_on(r, source) is not None or _is_kept(r, source) for r in here)


def _is_other_or_piece(record: cst.Name, field: cst.Attribute, write: Write, source: Source) -> bool:
    """Whether a read of a record is of another field, is where it is made anew, or is the piece that is written."""
    match source.parent(record):
        case cst.Attribute(value=value, attr=attr) as read if value is record:
            if attr.value != field.attr.value:
                return True
            if isinstance(above := source.parent(read), cst.Attribute) and above.attr.value == "at":
                return True
            return _is_piece(read, write, source)
    return False


def _is_piece(read: cst.Name | cst.Attribute, write: Write, source: Source) -> bool:
    """Whether `read` is the place of `write`, a part of it or around it, or says something about the array."""
    match source.parent(read):
        case cst.Subscript(value=value, slice=slices) if value is read:
            pairs = zip(elements(slices), write.index, strict=False)
            return all(source.code(one) == source.code(other) for one, other in pairs)
    return isinstance(read, cst.Name) and is_element(read, source)


def _is_kept(read: cst.Name, source: Source) -> bool:
    """Whether `read` is what stays where a `where` or `select` does not take the new value."""
    match source.parent(read):
        case cst.Arg() as argument:
            call = source.parent(argument)
            return source.calls(call, "jax.numpy.where", "jax.lax.select")
    return False


def _dependencies(loop: cst.For) -> dict[str, set[str]]:
    """Of each name that the loop assigns: the names it is made of."""
    made: dict[str, set[str]] = {}
    for node in inside(loop.body):
        match node:
            case cst.Assign(targets=targets, value=value):
                of = {name.value for name in names_read(value)}
                for target in (name for t in targets for name in names_read(t.target)):
                    made.setdefault(target.value, set()).update(of)
            case (
                cst.AugAssign(target=cst.Name(name), value=value)
                | cst.AnnAssign(target=cst.Name(name), value=cst.BaseExpression() as value)
            ):
                made.setdefault(name, set()).update(n.value for n in names_read(value))
    return made
