"""Why a value crosses memory between two kernels: one cause out of a closed set, and the instruction to blame.

`CAUSES` is the order of precedence, and each entry says whose opcode it asks. What no rewrite can fuse comes first
(a callback, a collective, a library call), then what a rewrite can (a concatenate, a value returned and consumed), then
what XLA weighed, then what is left. The first that applies is the cause.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from fusionlint.hlo import parse as hlo
from fusionlint.hlo.collectives import collective
from fusionlint.hlo.cost import result_shape
from fusionlint.hlo.kernels import FREE_TARGETS, is_library_call, target
from fusionlint.hlo.one_by_one import operation_of
from fusionlint.hlo.verdicts import Verdict

Cause = Literal[
    "callback",
    "collective",
    "custom call",
    "run as a loop",
    "copy",
    "library call",
    "dot",
    "conditional",
    "random bits",
    "scatter",
    "in-place update",
    "concatenate",
    "reduce feeding reduce",
    "returned and consumed",
    "loop carry",
    "optimization barrier",
    "cost model",
    "reduction",
    "several readers",
    "unknown",
]


@dataclass(frozen=True, slots=True)
class Crossing:
    """A value on its way from the kernel that wrote it to those that read it."""

    shape: hlo.Shape
    made: tuple[hlo.Instruction, ...]  # the writer's work on this value, the last step first
    used: tuple[hlo.Instruction, ...]  # the readers' work on it, the first step first
    readers: int
    carried: bool
    entered: bool
    starts: frozenset[str]  # the loops whose carry begins with it
    left: bool
    branched: bool
    returned: bool
    kept: bool  # an argument's copy, made because the caller keeps the argument
    handed_on: bool  # a copy that a branch makes of what it is given
    fetched: bool  # from the host's memory
    called: tuple[hlo.Instruction, ...]  # of `made` and `used` all but the DOTS in kernels of XLA's own
    verdict: Verdict | None
    exchange: str = ""  # what devices send each other here; "" where the value stays on its own
    loop_of: hlo.Instruction | None = None  # the loop around the writer, where XLA made it of one operation


@dataclass(frozen=True, slots=True)
class Blame:
    """A cause, its detail ("" where the cause says it all), and the instruction whose line is to be shown."""

    cause: Cause
    detail: str
    instruction: hlo.Instruction


Test = Callable[[Crossing], "tuple[str, hlo.Instruction] | None"]

REDUCES = frozenset({"reduce", "reduce-window"})
COPIES = frozenset({"copy", "copy-start", "copy-done", "slice-start", "slice-done"})
_LAYOUTS = frozenset({"reshape", "transpose"})
SLICES = frozenset({"slice", "dynamic-slice"})
OF_A_SLICE = "of a slice"
_TO_HOST = "into the host's memory"
TWO_STEPS = "XLA's two steps of one"
PRODUCT = "a matrix product as a sum"
_FFT = "an FFT as matrix products"
BARRIERS = frozenset({"opt-barrier", "optimization-barrier"})
# A library runs them, or XLA in a kernel of its own.
DOTS = frozenset({"dot", "ragged-dot", "scaled-dot", "convolution"})
HOST = frozenset({"send", "send-done", "recv", "recv-done", "infeed", "outfeed"})
# Primitives that move elements: no user's code, but a TPU's compiler makes some of them into custom calls.
MOVES = frozenset(
    {
        *("broadcast_in_dim", "concatenate", "dynamic_slice", "dynamic_update_slice", "gather", "pad", "reshape"),
        *("scatter", "scatter-add", "select_n", "slice", "sort", "transpose"),
    }
)
# For them places to look up, or to write to, are joined: by jnp.take_along_axis, or by a vmap.
BY_PLACES = ("gather", "scatter", "dynamic_slice", "dynamic_update_slice")
_JOINED_BY = ("pad", "dynamic-update-slice")
# Primitives that call a kernel which somebody wrote for a TPU.
_KERNELS = ("pallas_call", "tpu_custom_call")
# jax.random's own functions, as they stand in an op_name: jit(_uniform), threefry2x32, random_bits, ...
RANDOM = re.compile(
    r"threefry|random_bits|random_wrap|random_seed|random_split|random_fold_in|rng_bit_generator|philox|jit\(_?(uniform|"
    r"normal\w*|randint|gumbel|bernoulli|truncated_normal|exponential|shuffle|permutation|categorical|laplace|cauchy|"
    r"gamma\w*|beta|dirichlet|poisson\w*|choice|logistic|rademacher|multivariate_normal|t|bits|split)\)"
)
# The write by which a scan stacks its outputs. What its body writes stands in a closed_call; before jax 0.7 a
# lax.dynamic_update_slice of the user's is called no otherwise.
STACKS = re.compile(r"(^|/)while/body/(jit\(dynamic_update_index_in_dim\)/)?dynamic_update_slice$")
RANDOM_OPCODES = frozenset({"rng", "rng-bit-generator", "rng-get-and-update-state"})
# Their results are elements of their operands, in other places.
_MOVING = (
    frozenset({"concatenate", "gather", "pad", "reverse", "select", "broadcast", "dynamic-update-slice"})
    | SLICES
    | COPIES
    | _LAYOUTS
)


def blame(crossing: Crossing) -> Blame:
    """The first cause of `CAUSES` that applies to `crossing`."""
    for cause, test in CAUSES:
        answer = test(crossing)
        if answer is not None:
            return Blame(cause, *answer)
    return Blame("unknown", "", crossing.made[0])


def _callback(crossing: Crossing) -> tuple[str, hlo.Instruction] | None:
    for step in (*crossing.made, *crossing.used):
        if step.opcode in HOST or "callback" in target(step):
            return _primitive(step), step
    return None


def _collective(crossing: Crossing) -> tuple[str, hlo.Instruction] | None:
    """Shown where the collective was asked for: XLA's own of the partitioner has the line of what needs it."""
    if not crossing.exchange:
        return None
    steps = (*crossing.made, *crossing.used)
    return crossing.exchange, next((step for step in steps if collective(step)), steps[0])


def _custom_call(crossing: Crossing) -> tuple[str, hlo.Instruction] | None:
    for step in (*crossing.made, *crossing.used):
        if step.opcode == "custom-call" and not is_library_call(step) and target(step) not in FREE_TARGETS:
            return f"XLA's own for {_primitive(step)}" if _is_of_xla(step) else target(step), step
    return None


def _run_as_a_loop(crossing: Crossing) -> tuple[str, hlo.Instruction] | None:
    loop = crossing.loop_of
    return (operation_of(loop), loop) if loop else None


def _is_of_xla(step: hlo.Instruction) -> bool:
    """Whether a custom call is what XLA made of other work, and not somebody's kernel: on a TPU a softmax between two
    products becomes one of the same target as a Pallas kernel."""
    primitive = _primitive(step)
    return primitive in MOVES or (target(step) == "tpu_custom_call" and primitive not in ("", *_KERNELS))


def _host(crossing: Crossing) -> tuple[str, hlo.Instruction] | None:
    """Of what is offloaded the device writes a part, or reads one back."""
    if crossing.shape.is_on_host:
        return _TO_HOST, crossing.made[0]
    return ("out of the host's memory", crossing.made[0]) if crossing.fetched else None


def _copy(crossing: Crossing) -> tuple[str, hlo.Instruction] | None:
    """The writer alone at first: a value that is copied has the cause for which it was written."""
    if any(step.opcode not in COPIES for step in crossing.made):
        return None
    if crossing.shape.is_on_chip:
        return "into on-chip memory", crossing.made[0]
    if crossing.kept:
        return "of an argument that is not donated", crossing.made[0]
    if crossing.carried or crossing.entered:
        return "of a loop's carry", crossing.made[0]
    return "handed on by a branch" if crossing.handed_on else "", crossing.made[0]


def _library_call(crossing: Crossing) -> tuple[str, hlo.Instruction] | None:
    return _called(crossing.called)


def _dot(crossing: Crossing) -> tuple[str, hlo.Instruction] | None:
    """A dot or a convolution that XLA writes a kernel for, as a loop or by Triton."""
    found = _called((*crossing.made, *crossing.used))
    return found and ("" if found[0] == "dot" else found[0], found[1])


def _called(steps: Iterable[hlo.Instruction]) -> tuple[str, hlo.Instruction] | None:
    for step in steps:
        if is_library_call(step):
            # A TPU runs matrix products as convolutions, and a Fourier transform as matrix products.
            if "dot_general" in step.op_name:
                return "dot", step
            is_fft = step.opcode in DOTS and "fft" in _primitive(step)
            return _FFT if is_fft else target(step) or step.opcode, step
    return None


def _conditional(crossing: Crossing) -> tuple[str, hlo.Instruction] | None:
    return ("", crossing.made[0]) if crossing.branched else None


def _random_bits(crossing: Crossing) -> tuple[str, hlo.Instruction] | None:
    """The writer's last step, for bits that were fused with further work are no longer in the way; of unsigned integers
    also the step before those that only move them: keys and bits, chosen, sliced or joined."""
    dtype = crossing.shape.dtype
    alike = (step for step in crossing.made if step.shape.dtype == dtype)
    for step in alike if dtype.startswith("u") else crossing.made[:1]:
        if step.opcode in RANDOM_OPCODES or RANDOM.search(step.op_name):
            return "", step
        if step.opcode not in _MOVING:
            return None
    return None


def _scatter(crossing: Crossing) -> tuple[str, hlo.Instruction] | None:
    return _first(crossing, frozenset({"scatter", "select-and-scatter"}))


def _in_place_update(crossing: Crossing) -> tuple[str, hlo.Instruction] | None:
    """Not the outputs that a scan stacks: a loop writes them this way whatever the user does. Nor the parts of what is
    joined."""
    if crossing.left:
        return None
    steps = _steps(crossing, frozenset({"dynamic-update-slice"}))
    return next((("", step) for step in steps if not (STACKS.search(step.op_name) or _concatenates(step))), None)


def _concatenate(crossing: Crossing) -> tuple[str, hlo.Instruction] | None:
    """The writer's, where it has as many elements as the value; else the readers'."""
    for step in crossing.made:
        if _concatenates(step) and _elements(step.shape) == _elements(crossing.shape):
            return "", step
    return next((("", step) for step in crossing.used if _concatenates(step)), None)


def _reduce_feeding_reduce(crossing: Crossing) -> tuple[str, hlo.Instruction] | None:
    """XLA's own where it reduces in two steps what is one reduction, a large one on a GPU, and where a matrix product
    is a sum to it."""
    found = _reduced(crossing) if any(step.opcode in REDUCES for step in crossing.used) else None
    if found is None:
        return None
    first, then = crossing.made[0], crossing.used[0]
    is_one = {first.opcode, then.opcode} <= REDUCES and (first.stack, first.op_name) == (then.stack, then.op_name)
    if is_one and first.op_name:
        return TWO_STEPS, found[1]
    return (PRODUCT, found[1]) if _primitive(found[1]) == "dot_general" else found


def _returned_and_consumed(crossing: Crossing) -> tuple[str, hlo.Instruction] | None:
    return ("", crossing.made[0]) if crossing.returned else None


def _loop_carry(crossing: Crossing) -> tuple[str, hlo.Instruction] | None:
    if crossing.carried:
        return "", crossing.made[0]
    if crossing.left:  # a later loop may be what reads it
        return "read after the loop", crossing.made[0]
    return ("read inside the loop", crossing.made[0]) if crossing.entered else None


def _held(crossing: Crossing) -> tuple[str, hlo.Instruction] | None:
    """As XLA says: the barrier itself is gone from the optimized program."""
    consumers = crossing.verdict.consumers if crossing.verdict else ()
    return None if BARRIERS.isdisjoint(consumers) else ("", crossing.made[0])


def _cost_model(crossing: Crossing) -> tuple[str, hlo.Instruction] | None:
    verdict = crossing.verdict
    if verdict is None or verdict.us_fused is None or verdict.us_unfused is None:
        return None
    return ("", crossing.made[0]) if verdict.us_fused >= verdict.us_unfused else None


def _finished_reduction(crossing: Crossing) -> tuple[str, hlo.Instruction] | None:
    """XLA says so itself, whatever the reader does with the value."""
    said = crossing.verdict.reason.lower() if crossing.verdict else ""
    return _reduced(crossing) if "output of a reduce fusion" in said else None


def _not_profitable(crossing: Crossing) -> tuple[str, hlo.Instruction] | None:
    """XLA:CPU reckons without numbers."""
    said = crossing.verdict.reason.lower() if crossing.verdict else ""
    return ("", crossing.made[0]) if "fusion is not profitable" in said else None


def _reduction(crossing: Crossing) -> tuple[str, hlo.Instruction] | None:
    return _reduced(crossing) or _first(crossing, REDUCES)


def _reduced(crossing: Crossing) -> tuple[str, hlo.Instruction] | None:
    """The writer's reduction; its last step where what was reduced went back into a larger array, as in a softmax."""
    steps = [step for step in crossing.made if step.opcode in REDUCES]
    whole = (step for step in steps if _elements(step.shape) >= _elements(crossing.shape))
    return ("", next(whole, crossing.made[0])) if steps else None


def _several_readers(crossing: Crossing) -> tuple[str, hlo.Instruction] | None:
    return (f"{crossing.readers} kernels", crossing.made[0]) if crossing.readers > 1 else None


def _copied(crossing: Crossing) -> tuple[str, hlo.Instruction] | None:
    """What a kernel reshapes or transposes, and does nothing else, it copies into another layout."""
    if not crossing.used or any(step.opcode not in COPIES | _LAYOUTS for step in crossing.used):
        return None
    to_host = any(result_shape(step).is_on_host for step in crossing.used)
    return _TO_HOST if to_host else "made by the reader", crossing.made[0]


def _beside_scatter(crossing: Crossing) -> tuple[str, hlo.Instruction] | None:
    """As XLA says, of a writer that also makes what a scatter writes to, or of what one makes."""
    said = crossing.verdict.reason.lower() if crossing.verdict else ""
    return ("", crossing.made[0]) if "scatter" in said else None


def _cut(crossing: Crossing) -> tuple[str, hlo.Instruction] | None:
    """A slice that is copied out, as of what a scan goes over; numbers beside it say where it begins."""
    cuts = [step for step in crossing.made if step.opcode in SLICES]
    is_number = not crossing.shape.dims
    others = (step for step in crossing.made if step.opcode not in SLICES | COPIES)
    if not cuts or any(is_number or step.shape.dims for step in others):
        return None
    return OF_A_SLICE, cuts[0]


CAUSES: tuple[tuple[Cause, Test], ...] = (
    ("callback", _callback),  # writer or reader runs Python on the host
    ("collective", _collective),  # devices send the value to each other; detail: which collective, among how many
    ("custom call", _custom_call),  # writer or reader is code that XLA does not see; detail: its target
    ("run as a loop", _run_as_a_loop),  # XLA made a loop of one operation; detail: of which
    ("copy", _host),  # into or out of the host's memory
    ("copy", _copy),  # the writer only copies
    ("library call", _library_call),  # writer or reader is a dot, FFT, sort, ... that is called whole; detail: which
    ("dot", _dot),  # writer or reader holds one in a kernel of XLA's own; detail: what else it is than a dot
    ("conditional", _conditional),  # the value goes into or out of a branch
    ("random bits", _random_bits),  # the writer's last step is jax.random's
    ("reduction", _finished_reduction),  # XLA names the writer's reduction
    ("scatter", _scatter),  # writer or reader scatters
    ("in-place update", _in_place_update),  # writer or reader updates a slice in place
    ("concatenate", _concatenate),  # the writer joins the value, or a reader joins it with others
    ("reduce feeding reduce", _reduce_feeding_reduce),  # both reduce; detail: both are of one reduction
    ("returned and consumed", _returned_and_consumed),  # an output of the program that kernels read too
    ("loop carry", _loop_carry),  # into the next iteration, into a loop, or out of one
    ("optimization barrier", _held),  # jax.lax.optimization_barrier's, or jax.checkpoint's
    ("cost model", _cost_model),  # XLA reckoned that fusing is no faster
    ("reduction", _reduction),  # a reader waits for the finished reduction, or reduces the value itself
    ("copy", _copied),  # the readers only copy, as it is or into another layout
    ("several readers", _several_readers),  # XLA would have to repeat the work for each
    ("copy", _cut),  # the writer only cuts a slice out
    ("scatter", _beside_scatter),  # XLA names one, and nothing else stands in the way
    ("cost model", _not_profitable),  # XLA says so, and nothing else stands in the way
)


def _first(crossing: Crossing, opcodes: frozenset[str]) -> tuple[str, hlo.Instruction] | None:
    """The writer's step with one of `opcodes`, else the readers'."""
    return next((("", step) for step in _steps(crossing, opcodes)), None)


def _steps(crossing: Crossing, opcodes: frozenset[str]) -> Iterator[hlo.Instruction]:
    """The writer's steps with one of `opcodes`, then the readers'."""
    return (step for step in (*crossing.made, *crossing.used) if step.opcode in opcodes)


def _concatenates(step: hlo.Instruction) -> bool:
    """Whether arrays are joined, and not the places of a look-up alone. A TPU pads parts and takes their maximum, or
    writes them into a buffer: only the op_name remembers what it was."""
    if step.opcode == "concatenate":
        return not _primitive(step).startswith(BY_PLACES)
    return step.opcode in _JOINED_BY and _primitive(step) in ("concatenate", "stack")


def _primitive(step: hlo.Instruction) -> str:
    # A TPU's compiler puts names of its own, ragged-dot-none and ragged-dot-metadata, behind the primitive's.
    name = step.op_name.rpartition("/")[2]
    return "ragged_dot" if name.startswith("ragged-dot") else name


def opcode_before(step: hlo.Instruction) -> str:
    """The opcode of what XLA made a call of a kernel of its own, or of a library's; of another step its own."""
    if step.opcode != "custom-call":
        return step.opcode
    if _primitive(step) == "ragged_dot":
        return "ragged-dot"
    return "topk" if target(step).lower().endswith("topk") else step.opcode


def _elements(shape: hlo.Shape) -> int:
    """Of an array; of several that are made together those of the first."""
    count = 1
    for size in shape.parts[0].dims if shape.parts else shape.dims:
        count *= size
    return count
