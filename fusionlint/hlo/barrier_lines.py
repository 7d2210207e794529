"""The line at which a barrier is shown: where the work that is blamed for it was written, or what is nearest to that.

In: a value that crosses memory, and what is known of the crossing. Out: a stack, innermost first. XLA gives some of
what it makes no line, or that of a loop: then what it was made from, and for, is asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, takewhile

from fusionlint.hlo import parse as hlo
from fusionlint.hlo.causes import COPIES, OF_A_SLICE, REDUCES, Blame, Crossing, opcode_before
from fusionlint.hlo.cost import IN_PLACE
from fusionlint.hlo.flow import Flow, Node, Path
from fusionlint.hlo.frames import Stack
from fusionlint.hlo.in_place import conditional_of_copy
from fusionlint.hlo.kernels import Kernel
from fusionlint.hlo.lost import PRODUCTS, Lost, Taken, made_with
from fusionlint.hlo.work import made, value_shape


@dataclass(frozen=True, slots=True)
class Value:
    """What crosses memory: an element of a kernel's result; `returned` by the program, or `kept`, a copy that is made
    because the caller keeps the argument."""

    names: Flow
    node: Node
    path: Path
    returned: bool
    kept: bool


def stack_of(value: Value, why: Blame, crossing: Crossing, kernels: Iterable[Kernel], before: Lost) -> Stack:
    """The call path to the line of a barrier between `kernels`, whose cause is known; `before` knows the lines of work
    that lost its own."""
    return _own_stack(value, why, crossing, before) or _stack_nearby(value, crossing, kernels, before)


def is_of_gradient(value: Value, why: Blame, crossing: Crossing, stack: Stack) -> bool:
    """What jax.grad makes of a step has the step's line, and another name. A gradient that somebody wrote has lines of
    its own, and the name for once; what jax makes of a step in it has it twice."""
    copied = _copied(value) if _copies_whole(why) else ()
    steps = (*copied, why.instruction, *crossing.made, *crossing.used)
    otherwise = why.instruction.op_name if _is_turned(why.instruction) else ""
    name = next((step.op_name for step in steps if step.stack == stack), otherwise)
    return name.count("transpose(jvp(") > sum(frame.is_rule for frame in stack)


def _is_turned(step: hlo.Instruction) -> bool:
    """Whether it is a product that has the line at which its axes were ordered anew."""
    return step.opcode in PRODUCTS and step.op_name.rpartition("/")[2] == "transpose"


def _own_stack(value: Value, why: Blame, crossing: Crossing, before: Lost) -> Stack:
    """The blamed instruction's stack, that of the work that it was before, or that of the work around. A copy is shown
    where the copied value was made, not at its loop; for a conditional, there."""
    module, blamed = value.names.module, why.instruction
    if _is_turned(blamed) and (written := before.product(blamed.stack)):
        return written
    copied = _copied(value) or _copied_for(value, crossing) if _copies_whole(why) else ()
    if own := _first_stack((*copied, blamed, *_reducers(module, (blamed,)))):
        return own
    if called := before.called(module, blamed):
        return called
    around = _first_stack((*crossing.made, value.names.instruction(value.node)))
    lost = before.stack((opcode_before(blamed),), made_with(module, blamed), {around}) if around else ()
    return lost or around or _first_stack(_reducers(module, crossing.made))


def _stack_nearby(value: Value, crossing: Crossing, kernels: Iterable[Kernel], before: Lost) -> Stack:
    """Where XLA made the value and gave it no stack, that of the work that it was before; else that of the values it
    was made of, then that of those who use it."""
    module = value.names.module
    nodes = [*_upstream(value)]
    upstream = [value.names.instruction(node) for node in nodes]
    fed = _first_stack(upstream)
    without = [*takewhile(lambda step: not step.stack, upstream)]
    own = [opcode_before(step) for step in crossing.made]
    opcodes = chain(
        own,
        (code for kernel in kernels for code in kernel.opcodes),
        (item.opcode for step in without for item in module.work_of(step)),
    )
    steps = chain(crossing.made, crossing.used, (inner for step in without for inner in module.work_of(step)))
    by = next(filter(None, (made_with(module, step) for step in steps)), "")
    taken: set[Taken] = {fed} if fed else {*_inputs(value.names, nodes)}
    turned = before.turned(_inputs(value.names, (value.node,))) if _turns(crossing.made) else ()
    written = turned or before.stack(own, by, taken)
    known = written or _first_stack(_reducers(module, crossing.used)) or before.stack(opcodes, by, taken)
    found = known or fed or _first_stack(chain(crossing.used, _downstream(value)))
    return found or next((step.stack for step in upstream if step.stack), ())


def _is_of_the_call(step: hlo.Instruction) -> bool:
    """Whether it is an array that the function holds: it has the line where that is called, and the name of no step."""
    return step.op_name.endswith(")")


def _turns(steps: Iterable[hlo.Instruction]) -> bool:
    """Whether the steps only order the axes anew: what begins with that is not the work of those who read it."""
    return all(step.opcode == "transpose" for step in steps)


def _reducers(module: hlo.Module, steps: Iterable[hlo.Instruction]) -> Iterator[hlo.Instruction]:
    """What sums and the like are made with: it keeps the line where XLA makes two sums of one, and gives one of them
    none."""
    for step in steps:
        for name in step.called if step.opcode in REDUCES else ():
            yield module.computations[name].instructions[module.computations[name].root]


def _first_stack(steps: Iterable[hlo.Instruction]) -> Stack:
    return next((step.stack for step in steps if step.stack and not _is_of_the_call(step)), ())


def _copies_whole(why: Blame) -> bool:
    """Whether the writer is what copies; where a reader is, the value was made at the writer's own line."""
    return why.cause == "copy" and why.detail != OF_A_SLICE and why.instruction.opcode in COPIES


def _copied(value: Value, depth: int = 8) -> tuple[hlo.Instruction, ...]:
    """The conditional that the copy kernel copies for, or the work that made what it copies, the concatenate first: it
    is why the whole is copied."""
    node = value.node
    module = value.names.module
    if conditional := conditional_of_copy(module, node):
        return conditional
    for _ in range(depth):
        operands = value.names.instruction(node).operands  # none of a copy of a constant
        source = next(iter(value.names.origins((node[0], operands[0]))), None) if operands else None
        if source is None:
            return ()
        steps = made(module, source.node, source.path)
        if any(step.opcode != "copy" for step in steps):
            size = value_shape(module, source.node, source.path).nbytes
            joins = [step for step in steps if step.opcode == "concatenate" and step.shape.nbytes == size]
            return (*joins, *steps)
        node = source.node
    return ()


def _copied_for(value: Value, crossing: Crossing) -> Iterator[hlo.Instruction]:
    """Why the copy kernel copies an argument or a constant: for what writes to it in place, or for the loop whose carry
    begins with it."""
    yield from (step for step in crossing.used if step.opcode in IN_PLACE and step.shape.dims == crossing.shape.dims)
    inner_first = value.names.module.every("while")  # as HLO is printed
    yield from (step for step in inner_first[::-1] if step.name in crossing.starts)


def _upstream(value: Value, most: int = 32) -> Iterator[Node]:
    """The writer and the kernels that made what it read, breadth first."""
    seen = [value.node]
    for node in seen:
        yield node
        for operand in value.names.instruction(node).operands:
            sources = (origin.node for origin in value.names.origins((node[0], operand)))
            seen.extend(source for source in sources if source not in seen and len(seen) < most)


def _inputs(names: Flow, nodes: Sequence[Node]) -> Iterator[int]:
    """The numbers of the program's arguments that the kernels read."""
    for node in nodes:
        for operand in names.instruction(node).operands:
            yield from names.inputs((node[0], operand))


def _downstream(value: Value, most: int = 32) -> Iterator[hlo.Instruction]:
    """The users of the writer, breadth first, then the loop or branch that it stands in."""
    instructions = value.names.module.computations[value.node[0]].instructions
    seen = [value.node[1]]
    for name in seen:
        yield instructions[name]
        seen.extend(user for user in instructions[name].users if user not in seen and len(seen) < most)
    for caller in value.names.callers[value.node[0]]:
        yield value.names.instruction(caller)
