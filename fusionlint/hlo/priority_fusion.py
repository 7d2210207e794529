"""XLA:GPU's log of its priority fusion, and the module as that pass left it -> {instruction: Verdict}.

The log is a `*.priority_fusion_dump.txt`, a FusionProcessDumpProto in text form. Its names are those of the snapshot
`*.after_priority-fusion*.txt` and of no other text: later passes rename about half of what they keep. So a verdict is
joined to its instruction inside that snapshot, and goes on to the final program by what the instruction makes: opcode,
shape, op_name and source lines of its last step, then all the work behind it, then what it reads.

Multi-output fusion, which runs next, gives no reasons: its VLOG lists the pairs that it looks at (as many as there are
siblings times siblings) and, of a refusal, at most that it is "not profitable". Its explanations stand in
`xla_dump_fusion_visualization` alone, which draws the whole graph anew at every step, so its size is quadratic.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import replace

from fusionlint.hlo import parse as hlo
from fusionlint.hlo.flow import SAME_VALUE, Node, Path, leaves
from fusionlint.hlo.frames import unescape
from fusionlint.hlo.kernels import kernels
from fusionlint.hlo.verdicts import Verdict
from fusionlint.hlo.work import made, value_shape

_STEP = re.compile(r"^fusion_steps \{\n  (\w+) \{\n(.*?)\n  \}\n\}", re.MULTILINE | re.DOTALL)
_FIELD = re.compile(r'^    (\w+): (?:"((?:[^"\\]|\\.)*)"|(\S+))$', re.MULTILINE)
_DEFINED = re.compile(r"^ +(?:ROOT )?%?([\w.\-]+) = ", re.MULTILINE)
_ONLY_BITCASTS = "only bitcast users"
_BARRIERS = frozenset({"opt-barrier", "optimization-barrier"})
# They name memory: what they hand on is somebody else's value.
_NAMES = SAME_VALUE | {"get-tuple-element"}


def last_verdicts(dump: str) -> dict[str, Verdict]:
    """What the log `dump` says last about each producer that XLA left alone.

    A refusal by the cost model has no reason, only times: of all consumers with the producer fused into each, and of
    all as they are, in microseconds. Where fusing is the faster, and nothing was fused, nothing is said.
    """
    last: dict[str, Verdict | None] = {}
    for step in _STEP.finditer(dump):
        fields = {name: unescape(text) if text else plain for name, text, plain in _FIELD.findall(step[2])}
        producer = fields.get("producer_name", "")
        match step[1]:
            case "producer_ineligible":
                last[producer] = Verdict(producer, None, fields.get("reason", ""))
            case "update_priority":
                last[producer] = _weighed(producer, fields)
            case "fusion":  # the producer lives on where others read it; what it became part of is not judged yet
                last.pop(producer, None)
    return {producer: verdict for producer, verdict in last.items() if verdict is not None}


def _weighed(producer: str, fields: Mapping[str, str]) -> Verdict | None:
    fused, apart = (float(fields.get(name, 0)) for name in ("us_fused", "us_unfused"))
    return Verdict(producer, None, "", fused, apart) if fused >= apart else None


def gpu_verdicts(dump: str, before: hlo.Module, after: hlo.Module, final: hlo.Module) -> dict[str, Verdict]:
    """The verdicts of the log `dump` under the names of the module `final`: a kernel's, or, where a kernel makes
    several values, those of the steps in its body that make them. `before` and `after` are the snapshots around the
    pass.

    A value whose counterparts got different verdicts, and cannot be told apart, gets none.
    """
    values = list(_values(after))
    said = _joined(last_verdicts(dump), before, after, values)
    counterparts = _by_signature((_signatures(after, *value), value[0]) for value in values)
    wanted = [(_signatures(final, *value), value) for value in _values(final)]
    rivals = Counter(signature for signatures, _ in wanted for signature in signatures)
    found = {}
    turn: Counter[Hashable] = Counter()
    for signatures, value in wanted:
        verdict = None
        for signature in signatures:
            candidates = [said.get(node) for node in counterparts.get(signature, ())]
            verdict = verdict or _agreed(candidates, rivals[signature], turn[signature])
            turn[signature] += 1
        if verdict:
            found[_key(final, *value)] = verdict
    return found


def _joined(
    judged: Mapping[str, Verdict], before: hlo.Module, after: hlo.Module, values: Sequence[tuple[Node, Path]]
) -> dict[Node, Verdict]:
    """The verdicts of the kernels of the snapshot `after`. At its end the pass wraps single instructions into fusions
    and logs nothing: those are found among the instructions of `before` that are no longer there by name."""
    names = {node[1] for node, _ in values}
    gone: defaultdict[Hashable, set[Verdict]] = defaultdict(set)
    for computation in before.computations.values():
        for item in computation.instructions.values():
            if item.name in judged and item.name not in names:
                gone[_last_step(item, item.shape)].add(judged[item.name])
    found = {}
    for node, path in values:
        alike = gone.get(_last_step(made(after, node, path)[0], value_shape(after, node, path)), set())
        verdict = judged.get(node[1]) or (next(iter(alike)) if len(alike) == 1 else None)
        if verdict:
            found[node] = _with_readers(verdict, judged, after, node)
    return found


def _agreed(candidates: Sequence[Verdict | None], rivals: int, turn: int) -> Verdict | None:
    """The verdict that all candidates got; where they differ, and are as many as their rivals, by their order."""
    if len({verdict and (verdict.reason, verdict.us_fused, verdict.us_unfused) for verdict in candidates}) == 1:
        return candidates[0]
    return candidates[turn] if len(candidates) == rivals else None


def _by_signature(
    signed: Iterator[tuple[Sequence[Hashable], Node]],
) -> Mapping[Hashable, Sequence[Node]]:
    found: defaultdict[Hashable, list[Node]] = defaultdict(list)
    for signatures, node in signed:
        for signature in signatures:
            found[signature].append(node)
    return found


def _values(module: hlo.Module) -> Iterator[tuple[Node, Path]]:
    """Every array that a kernel of `module` writes."""
    for kernel in kernels(module):
        node = kernel.computation, kernel.name
        for path, _ in leaves(module.computations[node[0]].instructions[node[1]].shape):
            yield node, path


def _signatures(module: hlo.Module, node: Node, path: Path) -> tuple[Hashable, ...]:
    """What the value is known by in another text of the same program: the strictest first."""
    steps = made(module, node, path)
    last = _last_step(steps[0], value_shape(module, node, path))
    work = tuple(sorted(Counter(step.opcode for step in steps).items()))
    return (last, work, _sources(module, node)), (last, work), last


def _last_step(step: hlo.Instruction, shape: hlo.Shape) -> Hashable:
    return step.opcode, shape.dtype, shape.dims, step.op_name, step.stack


def _sources(module: hlo.Module, node: Node) -> Hashable:
    """Where the operands were made, in no order: fusions sort theirs anew."""
    items = module.computations[node[0]].instructions
    found = []
    for name in items[node[1]].operands:
        item = items[name]
        while item.opcode in _NAMES:
            item = items[item.operands[0]]
        found.append((item.op_name, tuple((frame.path, frame.line) for frame in item.stack)))
    return tuple(sorted(found))


def _key(module: hlo.Module, node: Node, path: Path) -> str:
    return made(module, node, path)[0].name if path else node[1]


def _with_readers(verdict: Verdict, judged: Mapping[str, Verdict], module: hlo.Module, node: Node) -> Verdict:
    """The verdict with the opcodes of the consumers: "the consumer is not fusible" says nothing without them. Where a
    bitcast was in the way, the verdict about the bitcast."""
    items = module.computations[node[0]].instructions
    if verdict.reason.endswith(_ONLY_BITCASTS):
        verdict = next((judged[name] for name in items[node[1]].users if name in judged), verdict)
    users = [items[name] for name in dict.fromkeys(_users(items, node[1]))]
    blocking = [user for user in users if user.opcode != "fusion"] or users
    consumer = blocking[0].name if blocking else None
    opcodes = tuple(dict.fromkeys(_reads_as(items, user) for user in blocking))
    return replace(verdict, producer=node[1], consumer=consumer, consumers=opcodes)


def _reads_as(items: Mapping[str, hlo.Instruction], user: hlo.Instruction) -> str:
    """Its opcode; of a tuple that an optimization barrier holds that of the barrier."""
    held = (items[name].opcode for name in user.users if user.opcode == "tuple")
    return next((opcode for opcode in held if opcode in _BARRIERS), user.opcode)


def _users(items: Mapping[str, hlo.Instruction], name: str) -> Iterator[str]:
    for user in items[name].users:
        if items[user].opcode in _NAMES - _BARRIERS and items[user].users:
            yield from _users(items, user)
        else:
            yield user


def right_snapshot(dump: str, texts: Sequence[str]) -> int | None:
    """The number of that text, of those after each run of the pass, whose names the log `dump` uses; of two that are
    as good the later one, and None if there are none: the log is of one run."""
    named = set(last_verdicts(dump)) if len(texts) > 1 else set()
    shared = [len(named.intersection(_DEFINED.findall(text))) for text in texts]
    return max(range(len(texts)), key=lambda number: (shared[number], number), default=None)
