"""What devices exchange: the instructions that send values between those that run one program, and the kernels that XLA
puts beside them.

A collective takes whole arrays from memory, and gives them back there: nothing is fused across it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import combinations, product
from math import prod
from operator import attrgetter

from fusionlint.hlo import parse as hlo

_COLLECTIVE = re.compile(r"(all-reduce|all-gather|(?:ragged-)?all-to-all|reduce-scatter|collective-\w+)(-start)?$")
# Another name of the same memory, or its end.
_SAME = re.compile(r"bitcast|get-tuple-element|[\w-]+-done")
# Primitives of jax.lax that are collectives.
_ASKED = re.compile(r"(xla_pmap|psum|pmax|pmin|all_gather|all_to_all|ragged_all_to_all|reduce_scatter|ppermute)\w*")
# Who exchanges with whom: [2,4]<=[4,2]T(1,0), {{0,1},{2,3}}, or by the axes of a mesh, whose devices may be in another
# order: mesh['axis_0'=2,'axis_1'=2], device_ids=([2,2]T(1,0)) {'axis_1'}.
_IOTA = re.compile(r"\[(\d+),(\d+)\]<=\[([\d,]+)\](?:T\(([\d,]+)\))?")
_LISTED = re.compile(r"\{([\d,]+)\}")
_OF_MESH = re.compile(r"mesh\[(.*?)\][^{]*\{(.*)\}")
_USERS, _OPERANDS = attrgetter("users"), attrgetter("operands")
_ORDERED = re.compile(r"\(\[([\d,]+)\](?:T\(([\d,]+)\))?\)")


def collective(item: hlo.Instruction) -> str:
    """The name of the collective that an instruction is, or starts: all-reduce; "" of any other."""
    found = _COLLECTIVE.match(item.opcode)
    return found[1] if found else ""


def exchange(
    module: hlo.Module, computation: hlo.Computation, writer: hlo.Instruction, readers: Iterable[hlo.Instruction]
) -> str:
    """What a value crosses memory for, where it is sent or received: `all-reduce over data for dot_general`; "" where
    it is not. `writer` stands in `computation`, and so do those of `readers` that count.

    XLA sends several values as one: it joins them before, and takes them apart again afterwards, in kernels of its own.
    """
    if module.devices == 1:
        return ""
    here = [item for item in readers if computation.instructions.get(item.name) is item]
    if sent := next((item for item in (writer, *here) if collective(item)), None):
        return f"{collective(sent)}{_among(module, sent)}{_needed_for(sent)}"
    taking = (one for item in here if _is_of_xla(module, item) for one in _reached(computation, item, _USERS))
    joined = next(taking, None)
    if joined:
        return f"joined with others for one {collective(joined)}"
    cut = next(_reached(computation, writer, _OPERANDS), None) if _is_of_xla(module, writer) else None
    return f"cut out of one {collective(cut)}" if cut else ""


def _needed_for(item: hlo.Instruction) -> str:
    """The primitive that XLA sends something for, where the program did not ask for it itself."""
    primitive = item.op_name.rpartition("/")[2]
    return f" for {primitive}" if primitive and not _ASKED.fullmatch(primitive) else ""


def _among(module: hlo.Module, item: hlo.Instruction) -> str:
    """Over which axes of the mesh, if they are known; else among how many devices, if those are not all."""
    pairs = [_numbers(pair) for pair in _LISTED.findall(item.attributes.get("source_target_pairs", ""))]
    group = frozenset() if pairs else partners(item, module.devices)
    if axes := _axes_moved(pairs, module.mesh) if pairs else _axes_of(group, module.mesh):
        return f" over {', '.join(axes)}"
    return f" among {len(group)} of {module.devices}" if 1 < len(group) < module.devices else ""


def partners(item: hlo.Instruction, devices: int) -> frozenset[int]:
    """The devices, by number, with which device 0 exchanges values in a collective that groups them, itself included;
    `devices` run the program."""
    said = f"{item.attributes.get('replica_groups', '')} {item.attributes.get('device_ids', '')}"
    if found := _IOTA.search(said):
        order = _transposed(_numbers(found[3]), _numbers(found[4] or ""))
        size = int(found[2])
        groups = [order[start : start + size] for start in range(0, len(order), size)]
    elif found := _OF_MESH.search(said):
        sizes = {name: int(size) for name, size in re.findall(r"'(\w+)'=(\d+)", found[1])}
        ordered = _ORDERED.search(said)
        order = _transposed(_numbers(ordered[1]), _numbers(ordered[2] or "")) if ordered else [*range(devices)]
        groups = [[order[place] for place in _along(re.findall(r"'(\w+)'", found[2]), sizes)]]
    else:
        groups = [_numbers(group) for group in _LISTED.findall(said)] or [[*range(devices)]]
    return next((frozenset(group) for group in groups if 0 in group), frozenset())


def _axes_moved(pairs: Iterable[Sequence[int]], mesh: Mapping[str, int]) -> tuple[str, ...]:
    """The axes of a mesh in which who sends and who receives differ."""
    strides = _strides([*mesh.values()]) if mesh else []
    places = [(axis, size, stride) for (axis, size), stride in zip(mesh.items(), strides, strict=True)]
    return tuple(
        axis for axis, size, stride in places if any(a // stride % size != b // stride % size for a, b in pairs)
    )


def _numbers(text: str) -> list[int]:
    return [int(number) for number in text.split(",") if number]


def _transposed(sizes: Sequence[int], order: Sequence[int]) -> list[int]:
    """The numbers from 0 on as an array of these sizes, its axes put in that order, flat again."""
    strides = _strides(sizes)
    axes = order or range(len(sizes))
    places = product(*(range(sizes[axis]) for axis in axes))
    return [sum(index * strides[axis] for index, axis in zip(place, axes, strict=True)) for place in places]


def _strides(sizes: Sequence[int]) -> list[int]:
    strides = [1]
    for size in reversed(sizes[1:]):
        strides.insert(0, strides[0] * size)
    return strides


def _along(axes: Sequence[str], mesh: Mapping[str, int]) -> Iterator[int]:
    """The devices of a mesh that differ from device 0 in these axes alone, itself included."""
    strides = dict(zip(mesh, _strides([*mesh.values()]), strict=True))
    for place in product(*(range(mesh[axis]) for axis in axes)):
        yield sum(index * strides[axis] for index, axis in zip(place, axes, strict=True))


def _axes_of(group: frozenset[int], mesh: Mapping[str, int]) -> tuple[str, ...]:
    """The axes of a mesh along which a group of devices lies; () where it lies along none, or there is no mesh."""
    real = [axis for axis, size in mesh.items() if size > 1]
    every = (axes for many in range(1, len(real) + 1) for axes in combinations(real, many))
    return next((axes for axes in every if frozenset(_along(axes, mesh)) == group), ())


def _is_of_xla(module: hlo.Module, item: hlo.Instruction) -> bool:
    """Whether it only joins or cuts, for no work of the program's."""
    steps = [step for step in module.work_of(item) if step.opcode not in ("parameter", "bitcast", "tuple")]
    return bool(steps) and all(step.opcode in ("concatenate", "slice", "copy") and not step.op_name for step in steps)


def _reached(
    computation: hlo.Computation, item: hlo.Instruction, next_to: Callable[[hlo.Instruction], Iterable[str]]
) -> Iterator[hlo.Instruction]:
    """The collectives that an instruction comes to by its users, or by its operands, past other names of one value."""
    for one in (computation.instructions[name] for name in next_to(item)):
        if collective(one):
            yield one
        elif _SAME.fullmatch(one.opcode):
            yield from _reached(computation, one, next_to)


_MESH = re.compile(r"sdy\.mesh @[\w.]+ = <\[([^\]]*)\]>")


def mesh_of(stablehlo: str, devices: int) -> Mapping[str, int]:
    """The axes of the mesh of that many devices that a StableHLO text is written for; {} where it names none, or
    several."""
    texts = dict.fromkeys(_MESH.findall(stablehlo)) if devices > 1 else {}
    found = [{name: int(size) for name, size in re.findall(r'"([^"]+)"=(\d+)', text)} for text in texts]
    whole = [axes for axes in found if axes and prod(axes.values()) == devices]
    return whole[0] if len(whole) == 1 else {}
