"""XLA's own log of fusion decisions -> {instruction: Verdict}. Each compiler that says why has its reader here."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from fusionlint.hlo import parse as hlo
from fusionlint.hlo.frames import unescape


@dataclass(frozen=True, slots=True)
class Verdict:
    """XLA's own words about why `producer` was not fused into `consumer`; microseconds where XLA gives them."""

    producer: str
    consumer: str | None
    reason: str
    us_fused: float | None = None
    us_unfused: float | None = None
    described: str = ""  # the producer but for its name: shape, opcode, op_name
    consumers: tuple[str, ...] = ()  # opcodes of those that read the producer and are no fusions


_NAME = r"%([\w.\-]+)"
_CONSIDERING = re.compile(rf"Considering for fusion: operand \d+ of {_NAME} =")
_REFUSED = re.compile(
    rf"not fusing operand {_NAME} = (?:\(.*?\)|([\w\[\],<=]+)\S*) ([a-z][\w\-]*)\((.*?)"
    r" because (?:Not fusing: )?(.*?)\.?$"
)
_FUSED = re.compile(rf"\] *Fusing {_NAME} = .*? into {_NAME} =")
_CREATED = re.compile(rf"created new fusion: {_NAME} =")
_OP_NAME = re.compile(r'op_name="((?:[^"\\]|\\.)*)"')


def cpu_log(text: str) -> dict[str, Verdict]:
    """What stderr of a process says that compiled for CPU with `TF_CPP_MIN_LOG_LEVEL=0` and
    `TF_CPP_VMODULE=instruction_fusion=3,cpu_instruction_fusion=3` in its environment before jax was imported.

    One Verdict for each producer that XLA left alone: the last refusal that no later fusion of the same pair took back.
    Words that are not known here are handed on as they are. Other lines are passed over.

    Names are those of the time of the pass; `in_final_names` goes on from there. An instruction that became the root of
    a fusion is listed under its own name and under the fusion's. Names are unique in one module only: of a process
    that compiled several, the last speaks.
    """
    refused: dict[str, dict[str, Verdict]] = {}  # producer -> consumer -> verdict, the latest last
    first_name: dict[str, str] = {}  # of a fusion: the instruction that it grew from
    fusion: dict[str, str] = {}  # the other way
    consumer = ""
    for line in text.splitlines():
        if found := _CONSIDERING.search(line):
            consumer = first_name.get(found[1], found[1])
        elif found := _REFUSED.search(line):
            producer = first_name.get(found[1], found[1])
            verdicts = refused.setdefault(producer, {})
            verdicts.pop(consumer, None)
            verdicts[consumer] = Verdict(producer, consumer or None, found[5], described=_described(found))
        elif found := _FUSED.search(line):
            producer, consumer = (first_name.get(name, name) for name in found.groups())
            refused.get(producer, {}).pop(consumer, None)
        elif found := _CREATED.search(line):
            first_name[found[1]], fusion[consumer] = consumer, found[1]
    last = {producer: list(verdicts.values())[-1] for producer, verdicts in refused.items() if verdicts}
    return last | {fusion[producer]: verdict for producer, verdict in last.items() if producer in fusion}


def is_cpu_log(text: str) -> bool:
    """Whether any line says that two instructions were considered, or that one is left alone whatever reads it, in the
    words that `cpu_log` knows."""
    return any(_CONSIDERING.search(line) or _REFUSED.search(line) for line in text.splitlines())


def in_final_names(module: hlo.Module, verdicts: Mapping[str, Verdict]) -> dict[str, Verdict]:
    """`verdicts` under the names of `module`, where the log's names did not last.

    From jaxlib 0.8 on, XLA:CPU wraps what it left alone into fusions of one instruction, and renames it. Those are
    found again by opcode, shape and op_name, if the verdicts about such instructions agree.
    """
    alike: defaultdict[str, list[Verdict]] = defaultdict(list)
    for verdict in verdicts.values():
        alike[verdict.described].append(verdict)
    found = dict(verdicts)
    for computation in module.computations.values():
        for item in computation.instructions.values():
            if item.opcode == "fusion" and item.name not in verdicts:
                body = module.computations[item.called[0]]
                candidates = alike[_describe(body.instructions[body.root])]
                if len({verdict.reason for verdict in candidates}) == 1:
                    found[item.name] = candidates[0]
    return found


def _described(found: re.Match[str]) -> str:
    op_name = _OP_NAME.search(found[4])
    return f"{found[2] or 'tuple'} {found[3]} {unescape(op_name[1]) if op_name else ''}"


def _describe(item: hlo.Instruction) -> str:
    shape = item.shape
    printed = shape.dtype if shape.parts else f"{shape.dtype}[{','.join(map(str, shape.dims))}]"
    return f"{printed} {item.opcode} {item.op_name}"
