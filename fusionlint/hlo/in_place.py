"""What is written to in place: how much of it is new, and whose copy it is.

In: a Flow and values by writer and place in its result. A kernel that overwrites a part of an array leaves the rest as
it was, which an argument of the program, its copy, a kernel before, or an earlier iteration has put there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from fusionlint.hlo import parse as hlo
from fusionlint.hlo.causes import COPIES
from fusionlint.hlo.flow import SAME_VALUE, Flow, Node, Origin, Path
from fusionlint.hlo.kernels import Kernel
from fusionlint.hlo.work import updated_in_place, value_shape

_RENAMES = SAME_VALUE | {"get-tuple-element"}


def made_anew(names: Flow, value: Origin, writers: Mapping[Node, Kernel]) -> int:
    """Bytes of the value that its writer makes, each time. What it updates in place was there: an argument of the
    program or its copy, or what the last iteration left. What other kernels made just before counts as made anew."""
    size, todo, seen = 0, [(value.node, value.path)], {(value.node, value.path)}
    for node, path in todo:
        update = updated_in_place(names.module, node, path)
        if update is None:
            return value_shape(names.module, value.node, value.path).nbytes
        size += update[1]
        for origin in names.origins((node[0], names.instruction(node).operands[update[0]])):
            if origin.left:  # slice by slice, it may be all of it
                return value_shape(names.module, value.node, value.path).nbytes
            was_there = origin.carried or origin.entered or writers[origin.node].kind == "copy"
            if not was_there and (origin.node, origin.path) not in seen:
                seen.add((origin.node, origin.path))
                todo.append((origin.node, origin.path))
    return size


def copied_for_the_caller(names: Flow, returned: Iterable[tuple[Node, Path]]) -> Iterator[tuple[Node, Path]]:
    """The copies of whole arguments that are written to in place and returned so: donated, the argument itself would
    be written to. Of an argument that anything else reads, or returns, XLA may need the copy in any case: donated, a
    cache of which the old and the new were multiplied in one kernel was copied twice."""
    entry = names.module.computations[names.module.entry]
    todo = [*returned]
    seen = {*todo}
    for node, path in todo:
        update = updated_in_place(names.module, node, path)
        copies = names.instruction(node).opcode in COPIES
        if update is None and not copies:
            continue
        source = node[0], names.instruction(node).operands[update[0] if update else 0]
        new = {(origin.node, origin.path) for origin in names.origins(source)} - seen
        seen |= new
        todo.extend(new)  # a TPU copies by way of its own memory
        if copies and value_shape(names.module, node, path).dims and node[0] == entry.name:
            given = _inputs_copied(names, source) - names.module.donated
            if [len(entry.parameters[number].users) for number in given] == [1]:
                yield node, path


def conditional_of_copy(module: hlo.Module, node: Node) -> tuple[hlo.Instruction, ...]:
    """The conditional whose result the copy `node` copies, or which hands it what it copies, if any: its branches write
    into memory of their own, so that one copies what it changes nothing of, and a loop around what it goes on with."""
    steps = module.computations[node[0]].instructions
    source = steps[node[1]]
    while source.operands and (source.name == node[1] or source.opcode in _RENAMES):
        source = steps[source.operands[0]]
    if source.opcode == "parameter":
        return tuple(caller for _, caller in module.callers(node[0]) if caller.opcode == "conditional")
    return (source,) if source.opcode == "conditional" else ()


def _inputs_copied(names: Flow, source: Node) -> frozenset[int]:
    """The arguments that a value of the program's ENTRY is, or is a copy of."""
    inputs = names.inputs(source)
    for origin in names.origins(source):
        # A loop may hand its own copy round.
        if origin.node[0] == source[0] and names.instruction(origin.node).opcode in COPIES:
            inputs |= _inputs_copied(names, (origin.node[0], names.instruction(origin.node).operands[0]))
    return inputs
