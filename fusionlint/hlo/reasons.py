"""XLA's reasons for not fusing, in plain words. A closed catalogue: a reason that is not in it is shown as it is.

The words are those of XLA's cpu_instruction_fusion.cc, instruction_fusion.cc and, for GPUs, priority_fusion.cc and
gpu_fusible.cc; the keys are parts of them in lower case.
"""

from __future__ import annotations

PLAIN_WORDS: tuple[tuple[str, str], ...] = (
    # XLA:CPU
    ("concatenate fusion is inefficient", "on a CPU a concatenate along the last axis is a kernel of its own"),
    ("producer is not loop-fusible", "what makes the value is no simple loop over elements, so it is written out"),
    ("fusion is not profitable", "the value is expensive and is read more than once per element: it is made once"),
    ("operand can not be duplicated", "several operations read the value, and XLA does not make it twice"),
    ("code duplication too high", "fusing would repeat the same code too often"),
    ("don't fuse instructions from custom fusions", "one side went to a library (on CPU: oneDNN, XNNPACK or YNN)"),
    ("producer is itself a fusion node", "what makes the value is a finished kernel already"),
    ("not found a fusible case", "the reader takes whole arrays, not elements: a root, a loop, a library call"),
    ("insufficient non-constant nodes", "nothing but a constant would be fused"),
    ("not fusing reductions over major dimensions", "a sum over the first axes is fastest as a kernel of its own"),
    ("producer can be output-fused", "the value is kept for a fusion with what made its operand"),
    # XLA:GPU
    ("the consumer is not fusible", "the reader takes whole arrays: a result, a sort, a library or custom call"),
    ("the producer is not fusible", "what makes the value is no simple loop over elements, so it is written out"),
    ("both the producer and the consumer contain a reduce", "a sum waits for all of another sum"),
    ("would create a loop fusion", "fused behind the sum, the sum would be made anew for every element"),
    ("overly large code duplication", "fusing would repeat the same code too often"),
    ("do not fuse into the output of scatter", "a scatter is finished before anything reads it"),
    ("in-place operand of scatter", "the array that a scatter writes to has to exist before"),
    ("can't fuse multiple dus", "one kernel updates one slice in place"),
    ("may result in expensive op duplication", "an expensive operation with several readers is made once"),
    # both
    ("too many reductions inside single fusion", "a kernel holds only so many sums"),
)


def plain_words(reason: str) -> str:
    """What `reason` means; "" where the catalogue does not know it."""
    lower = reason.lower()
    return next((words for part, words in PLAIN_WORDS if part in lower), "")
