"""The compiled side: what `.at[...]` writes, one kernel after the other.

XLA makes an update in place of such a write where it knows the size of the piece, and a `pad` of the first one into
zeros. Where the piece comes to stand is often computed by the program, even if it is written out.
"""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from fusionlint.patterns.compiled.of_jax import is_of_jax
from fusionlint.patterns.compiled.of_module import OfModule
from fusionlint.patterns.compiled.readers import bounds, kernels_around

if TYPE_CHECKING:
    from fusionlint.hlo import parse as hlo
    from fusionlint.hlo.barriers import Barrier

Dims = tuple[int, ...]

# What names a value anew, or moves it as it is.
SAME = frozenset(("bitcast", "copy", "get-tuple-element", "reshape"))
# What an array is cut by, for a write that adds, or that keeps what was there where the place is out of bounds.
CUTS = frozenset(("slice", "dynamic-slice"))
_WRITES = frozenset(("scatter", "dynamic-update-slice"))
# What a scatter is made with, "parameter" of what it writes as it is: the method of `.at[...]`.
_METHODS = {"parameter": "set", "add": "add", "multiply": "multiply", "maximum": "max", "minimum": "min"}


class Place(NamedTuple):
    """What one kernel writes: into which other kernel's result, by which method ("" where XLA made an update in place
    of it), how large that is and the piece."""

    into: str
    method: str
    whole: Dims
    piece: Dims


def is_write(step: hlo.Instruction) -> bool:
    """Whether a step is a `.at[...].set` of a piece."""
    if step.opcode not in ("dynamic-update-slice", "pad"):
        return False
    return step.op_name.rpartition("/")[2] == "scatter" and not is_of_jax(step)


def is_set(step: hlo.Instruction) -> bool:
    return step.opcode == "dynamic-update-slice" and is_write(step)


def made_by(scatter: hlo.Instruction, module: hlo.Module) -> str:
    """Of `.at[...]` the method that made a scatter."""
    from fusionlint.hlo.lost import made_with

    return _METHODS.get(made_with(module, scatter), "apply")


def written_last(item: hlo.Instruction, computation: hlo.Computation, module: hlo.Module) -> Place | None:
    """What a kernel writes last, at one place or by one scatter."""
    body = module.body(item)
    inside = (body or computation).instructions
    step = inside[body.root] if body else item
    while body and step.opcode in SAME and step.operands:
        step = inside[step.operands[0]]
    is_scatter = step.opcode == "scatter" and len(step.operands) == 3 and not is_of_jax(step)
    if not is_scatter and not is_set(step):
        return None
    into = inside[step.operands[0]]
    given = item.operands[int(into.literal)] if body and into.opcode == "parameter" else ""
    before = _named(given if body else into.name, computation)
    piece = inside[step.operands[2 if is_scatter else 1]].shape.dims
    return Place(before, made_by(step, module) if is_scatter else "", step.shape.dims, piece)


def chain_of(barrier: Barrier, module: hlo.Module) -> Place | None:
    """What those who read the value write at a place to what another kernel wrote to in the same way, none of them to
    the value itself; None where fewer than two of several readers do, or the value is at another line."""
    computation = module.computations[barrier.computation]
    found = {name: _link(name, computation, module) for name in barrier.readers}
    links = [own for own in found.values() if own is not None]
    if not links or len(links) < min(2, len(barrier.readers)) or any(own.into == barrier.writer for own in links):
        return None
    if _is_made_of_the_array(barrier.writer, links[0].whole, computation, module):
        return None
    steps = (step for name, own in found.items() if own for step in module.work_of(computation.instructions[name]))
    is_there = any(step.stack == barrier.stack for step in steps if step.opcode in _WRITES)
    return links[0] if is_there and len({own[1:] for own in links}) == 1 else None


def _is_made_of_the_array(name: str, whole: Dims, computation: hlo.Computation, module: hlo.Module) -> bool:
    """Whether a kernel writes pieces to an array of that size as well, to cut something out of it, or is given one."""
    item = computation.instructions[name]
    steps = module.work_of(item)
    if any(step.shape.dims == whole and is_write(step) for step in steps):
        return True
    given = (computation.instructions[_named(one, computation)] for one in item.operands)
    if not any(one.shape.dims == whole and written_last(one, computation, module) is not None for one in given):
        return False
    return any(step.opcode in (*CUTS, "gather") and step.op_name for step in steps)


def _link(name: str, computation: hlo.Computation, module: hlo.Module) -> Place | None:
    """What a kernel writes, where it writes to what another one wrote to in the same way, or before one that does, and
    nothing else looks at the array in between."""
    here = computation.instructions
    own = written_last(here[name], computation, module) if name in here else None
    if own is None:
        return None
    pairs = ((own.into, name), *((name, after) for after in _readers(here[name], computation)))
    return own if any(_follow(first, second, computation, module) for first, second in pairs if first) else None


def _follow(first: str, second: str, computation: hlo.Computation, module: hlo.Module) -> bool:
    """Whether two kernels write to one array, the second one right after the first."""
    here = computation.instructions
    one, two = (written_last(here[name], computation, module) for name in (first, second))
    if one is None or two is None or two.into != first or one[1:] != two[1:]:
        return False
    between = {*_readers(here[first], computation)} - {second}
    return _cuts_only_there(second, first, computation, module) and all(
        _looks_for(second, name, computation, module) for name in between
    )


def _cuts_only_there(writer: str, array: str, computation: hlo.Computation, module: hlo.Module) -> bool:
    """Whether a kernel that writes to an array reads no more of it than what stands at that place."""
    item = computation.instructions[writer]
    body = module.body(item)
    if body is None:
        return True
    given = [body.parameters[i] for i, name in enumerate(item.operands) if _named(name, computation) == array]
    for step in (body.instructions[name] for one in given for name in one.users):
        is_bound = step.opcode == "dynamic-slice" and not step.op_name
        is_write_itself = step.opcode in _WRITES and step.operands[0] in {one.name for one in given}
        if not (is_bound or is_write_itself or _is_cut_there(step, body.instructions)):
            return False
    return True


def _looks_for(writer: str, name: str, computation: hlo.Computation, module: hlo.Module) -> bool:
    """Whether a kernel only cuts out what stands at the place that `writer` writes, which stays where the place is out
    of bounds: XLA's own step, which has no name."""
    item = computation.instructions[name]
    cuts = [step for step in module.work_of(item) if step.opcode == "dynamic-slice"]
    return bool(cuts) and not any(cut.op_name for cut in cuts) and {*_readers(item, computation)} == {writer}


def is_cut_to_be_written(use: hlo.Instruction, computation: hlo.Computation, module: hlo.Module) -> bool:
    """Whether a use cuts a piece out of the array at the very place that the same kernel writes: what it writes there
    is made of what was there, and of no other piece."""
    if use.opcode != "slice":
        return False
    bodies = (module.body(item) for item in computation.instructions.values() if item.opcode == "fusion")
    inside = next((body.instructions for body in bodies if body and body.instructions.get(use.name) is use), None)
    return inside is not None and _is_cut_there(use, inside)


def _is_cut_there(use: hlo.Instruction, inside: Mapping[str, hlo.Instruction]) -> bool:
    if use.opcode != "slice":
        return False
    begins = [begin for begin, _ in bounds(use)]
    return any(_begins_at(step, begins, inside) for step in inside.values() if is_write(step))


def _begins_at(write: hlo.Instruction, begins: list[int], inside: Mapping[str, hlo.Instruction]) -> bool:
    literals = [inside[name].literal for name in write.operands[2:]]
    return write.opcode == "dynamic-update-slice" and literals == [str(begin) for begin in begins]


def _named(name: str, computation: hlo.Computation) -> str:
    while name and computation.instructions[name].opcode in SAME:
        name = computation.instructions[name].operands[0]
    return name


def _readers(item: hlo.Instruction, computation: hlo.Computation) -> Iterator[str]:
    for name in item.users:
        user = computation.instructions[name]
        yield from _readers(user, computation) if user.opcode in SAME else (name,)


def are_pieces_of_a_chain(barrier: Barrier, module: hlo.Module) -> bool:
    """Whether all that reads the value puts it, at a place that is written out, among pieces of an array that it writes
    one after the other."""
    computation = module.computations[barrier.computation]
    for name in barrier.readers:
        item = computation.instructions.get(name)
        body = module.body(item) if item is not None else None
        if item is None or body is None:
            return False
        given = [body.parameters[number] for number, one in enumerate(item.operands) if one == barrier.value]
        steps = [step for parameter in given for step in _uses(parameter, body)]
        if not steps or not all(_is_piece(before, step, body) for before, step in steps):
            return False
    return True


def _uses(step: hlo.Instruction, body: hlo.Computation) -> Iterator[tuple[str, hlo.Instruction]]:
    """What uses a value, behind the name that it has there."""
    for name in step.users:
        user = body.instructions[name]
        if user.opcode in SAME:
            yield from _uses(user, body)
        else:
            yield step.name, user


def _is_piece(value: str, write: hlo.Instruction, body: hlo.Computation) -> bool:
    """Whether `write` puts the value into an array, before or behind another such piece of it."""
    if not is_set(write) or write.operands[1] != value:
        return False
    after = (step for _, step in _uses(write, body))
    return any(map(is_set, (*_before(write, body), *after)))


def _before(write: hlo.Instruction, body: hlo.Computation) -> Iterator[hlo.Instruction]:
    """What made the array that is written to; of a choice between it and another one, either."""
    made = body.instructions[write.operands[0]]
    while made.opcode in SAME and made.operands:
        made = body.instructions[made.operands[0]]
    yield from (body.instructions[one] for one in made.operands[1:]) if made.opcode == "select" else (made,)


def line_of_pieces(barrier: Barrier, module: hlo.Module) -> tuple[hlo.Frame, int] | None:
    """The line that sets pieces of an array at most places, all written out, of those whose writes stand in the kernels
    that the value is made or read by, and at how many: a loop of Python's, or one line called by others."""
    known = _places(OfModule(module))
    steps = (step for item in kernels_around(barrier, module) for step in module.work_of(item))
    found = {step.stack for step in steps if step.stack in known and is_set(step)}
    most = max(found, key=lambda stack: (len(known[stack]), stack == barrier.stack), default=None)
    return (most[0], len(known[most])) if most else None


@functools.lru_cache(maxsize=1)
def _places(of: OfModule) -> dict[tuple[hlo.Frame, ...], set[tuple[str, ...]]]:
    found: defaultdict[tuple[hlo.Frame, ...], set[tuple[str, ...]]] = defaultdict(set)
    if "dynamic-update-slice" not in of.module.opcodes:
        return found
    for part in of.module.computations.values():
        for step in part.instructions.values():
            if step.stack and is_set(step):
                begins = [part.instructions[name] for name in step.operands[2:]]
                if all(begin.opcode == "constant" for begin in begins):
                    found[step.stack].add(tuple(begin.literal for begin in begins))
    return found
