"""XLA's reasons for not fusing, in plain words. A closed catalogue: a reason that is not in it is shown as it is.

The reasons are those of XLA's cpu_instruction_fusion.cc, instruction_fusion.cc and, for GPUs, priority_fusion.cc and
gpu_fusible.cc; they are known by a part of their words, in lower case.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Reason:
    """`part` of XLA's words, what they mean, and what the user can write instead; "" where nothing would help."""

    part: str
    words: str
    rewrite: str = ""


_REDUCED_TWICE = "make both reductions from the same input, or accept one kernel for each"
_IN_PLACE = "the reader writes into that memory in place: fused, it could overwrite what is still to be read"
_NOT_IN_TRITON = "one side is a kernel that Triton compiles, a product or a softmax, and Triton has no such operation"
# Of four caches that a scan carries and attends to, a stack in each step moves 705 MB instead of 437, a tuple 103.
_AT_ONCE = (
    "write all places at once: of known places jnp.stack of the parts, or one jnp.where with a mask of the places, of "
    "places that are arrays one .at[indices].set(values); of what a loop carries, a tuple of the parts"
)
_ONE_READER = "read the value in one place, or let every reader make it anew from what it is made of"

REASONS: tuple[Reason, ...] = (
    # XLA:CPU
    Reason(
        "concatenate fusion is inefficient",
        "on a CPU a concatenate along the last axis is a kernel of its own",
        "keep the parts apart until all of them are needed at once",
    ),
    Reason(
        "producer is not loop-fusible", "what makes the value is no simple loop over elements, so it is written out"
    ),
    Reason(
        "fusion is not profitable",
        "the value is expensive and is read more than once per element: it is made once",
    ),
    Reason("operand can not be duplicated", "several operations read the value, and XLA does not make it twice"),
    Reason("code duplication too high", "fusing would repeat the same code too often", _ONE_READER),
    Reason(
        "don't fuse instructions from custom fusions", "one side went to a library (on CPU: oneDNN, XNNPACK or YNN)"
    ),
    Reason("producer is itself a fusion node", "what makes the value is a finished kernel already"),
    Reason(
        "not found a fusible case",
        "the reader takes whole arrays, not elements: a root, a loop, a library call",
    ),
    Reason("insufficient non-constant nodes", "nothing but a constant would be fused"),
    Reason(
        "not fusing reductions over major dimensions",
        "a reduction over the first axes is fastest as a kernel of its own",
        "put the axis that is reduced last",
    ),
    Reason("producer can be output-fused", "the value is kept for a fusion with what made its operand"),
    # XLA:GPU
    Reason("the consumer is not fusible", "the reader takes whole arrays"),
    Reason(
        "the producer is not fusible",
        "what makes the value is no loop over elements: a library or custom call, a sort, a dot",
    ),
    Reason("only bitcast users", "what reads the value only renames it, for a reader that takes whole arrays"),
    Reason("no users to fuse", "nothing in this computation reads the value: it is its result"),
    Reason(
        "both the producer and the consumer contain a reduce",
        "a reduction (a sum, a maximum) waits for all of another one",
        _REDUCED_TWICE,
    ),
    Reason(
        "would create a loop fusion", "fused, the reduction (a sum, a maximum) would be made anew for every element"
    ),
    Reason("overly large code duplication", "fusing would repeat the same code too often", _ONE_READER),
    Reason(
        "do not fuse into the output of scatter",
        "a scatter is finished before anything reads it",
        "where every element is written, compute the result by jnp.where or a gather; else do what follows before, to "
        "the array and to the values: after .set any elementwise work, after .add a factor",
    ),
    # Scattered into zeros and combined afterwards there are as many kernels, and as many bytes.
    Reason("in-place operand of scatter", "the array that a scatter writes to has to exist before"),
    Reason("in-place operand of a scatter", _IN_PLACE),
    Reason("unsupported opcode scatter", "a scatter is finished before anything reads it"),
    Reason("unsupported opcode", _NOT_IN_TRITON),
    Reason("unsupported instruction opcode", _NOT_IN_TRITON),
    Reason(
        "put data type",
        "one side is a kernel that Triton compiles, and it takes no unsigned integers, as random bits are",
    ),
    Reason("only high padding", "the array is padded in front, which a kernel that Triton compiles cannot do"),
    Reason("can not be tiled", "fused, the kernel could not be cut into the tiles that Triton needs"),
    Reason(
        "can't fuse multiple dus",
        "one kernel updates one slice in place",
        "write all slices at once: jnp.stack or jnp.concatenate of the parts",
    ),
    Reason(
        "dus and ds index mismatch",
        "what is read and what is written are different slices of one array: it is read before",
        "read from another array than the one that is updated, or update where you read",
    ),
    Reason("multiple dus ops", "one kernel updates one slice in place", _AT_ONCE),
    Reason("multiple non-elementwise ops", _IN_PLACE, _AT_ONCE),
    Reason("another non-elementwise op with shared operand", _IN_PLACE, _AT_ONCE),
    Reason("unrecognized inplace update", _IN_PLACE, _AT_ONCE),
    Reason("inplace conflict after fusion", _IN_PLACE),
    Reason("same value as the in-place buffer", _IN_PLACE),
    Reason("shape than the update shape", "a part of the array is read and a part of another size is written in place"),
    Reason("dus and slice index mismatch", "what is read and what is written are different slices of one array"),
    Reason(
        "may result in expensive op duplication",
        "an expensive operation with several readers is made once",
    ),
    Reason("expensive producer would be duplicated", "an expensive operation with several readers is made once"),
    Reason("is too expensive to duplicate", "an expensive operation with several readers is made once"),
    Reason("larger than allowed budget", "the kernel would read and write more arrays than one can"),
    # both
    Reason("too many reductions inside single fusion", "a kernel holds only so many reductions"),
)
# Why a consumer takes whole arrays: by its opcode.
CONSUMERS = {
    "tuple": "the value goes out whole: carried by a loop, into or out of a branch, or returned",
    "while": "it goes into a loop",
    "conditional": "it goes into a branch",
    "sort": "a sort reads it",
    "custom-call": "code that XLA does not see reads it",
    "dot": "a dot reads it",
    "convolution": "a convolution reads it",
    "fft": "an FFT reads it",
    "copy": "it is copied",
    "opt-barrier": "an optimization barrier holds it",
    "optimization-barrier": "an optimization barrier holds it",
    "triangular-solve": "a triangular solve reads it",
    "cholesky": "a Cholesky decomposition reads it",
    "fusion": "what reads it is no loop over elements: a sort, a dot, Triton, or one of the two results of an argmax",
}
_ASK_THE_CONSUMERS = ("the consumer is not fusible", "only bitcast users")


def known(reason: str) -> Reason | None:
    """The entry of the catalogue for XLA's words `reason`."""
    lower = reason.lower()
    return next((entry for entry in REASONS if entry.part in lower), None)


def rewrite(reason: str) -> str:
    """What can be written instead; "" where nothing would help."""
    entry = known(reason)
    return entry.rewrite if entry else ""


def plain_words(reason: str, consumers: Sequence[str] = ()) -> str:
    """What `reason` means; "" where the catalogue does not know it. `consumers` are the opcodes of those that read the
    value: "the consumer is not fusible" says nothing without them."""
    entry = known(reason)
    if entry is None:
        return ""
    if entry.part not in _ASK_THE_CONSUMERS:
        return entry.words
    read = dict.fromkeys(CONSUMERS[opcode] for opcode in consumers if opcode in CONSUMERS)
    return "; ".join(read) or entry.words


_HEAD = (
    "Why XLA did not fuse, by a part of its words. `fusionlint explain` shows what it said of your own lines, for CPUs "
    "and NVIDIA GPUs; of a TPU's compiler no reasons are to be had."
)


def catalogue() -> str:
    """Every reason that is known, with its meaning and the rewrite; one paragraph each."""
    return "\n\n".join([_HEAD, *("\n".join(_entry(entry)) for entry in REASONS)]) + "\n"


def _entry(entry: Reason) -> list[str]:
    lines = [f'"{entry.part}"', f"    {entry.words}"]
    if entry.part in _ASK_THE_CONSUMERS:
        lines += [f"    {opcode}: {words}" for opcode, words in CONSUMERS.items()]
    return [*lines, f"    instead: {entry.rewrite}"] if entry.rewrite else lines
