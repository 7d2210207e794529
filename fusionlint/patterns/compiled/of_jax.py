"""The compiled side: what stands in a function of jax's own, which the user only called. No rewrite reaches it.

jax leaves its own frames out of a stack, and names a function that it jits in the op_name: `jit(step)/jit(_gamma)/...`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from typing import TYPE_CHECKING

from fusionlint.lazily import regex

if TYPE_CHECKING:
    from fusionlint.hlo import parse as hlo

_JITTED = regex(r"\bjit\(([^()]+)\)")
# What is explained is a jitted function under a transform, jax.vmap(env.step): both are called like that function.
_TRANSFORMED = regex(r"jit\(([^()]+)\)/(?:\w+\()+jit\(\1\)")


def is_of_jax(step: hlo.Instruction, called: Collection[str] = ()) -> bool:
    """Whether `step` stands in a jitted function that none of its frames is in. Those of the names `called` are what
    the user calls for just this step, and what stands in them is theirs."""
    return is_path_of_jax(step.op_name, step.stack, called)


def is_path_of_jax(path: str, stack: tuple[hlo.Frame, ...], called: Collection[str] = ()) -> bool:
    """The same of an op_name, or the beginning of one; not without a stack, which would tell."""
    entry, *inner = _JITTED.findall(path) or [""]
    asked_for = next((number for number, name in enumerate(inner) if name in called), len(inner))
    # The function that is explained has a frame too, of whatever name: one of jax's may be called the same.
    own = Counter(frame.function.rpartition(".")[2] for frame in stack)
    own -= Counter(() if _TRANSFORMED.match(path) else (entry,))
    return bool(stack) and bool(Counter(inner[:asked_for]) - own)


def is_of_call(step: hlo.Instruction, called: Collection[str]) -> bool:
    """Whether `step` stands in a function of jax's of one of the names `called`, which the user called. A jitted
    function of the user's own that is called the same is none."""
    _, *inner = _JITTED.findall(step.op_name) or [""]
    asked_for = next((name for name in inner if name in called), None)
    own = (frame.function.rpartition(".")[2] for frame in step.stack)
    is_theirs = bool(step.stack) and asked_for is not None and asked_for not in own
    return is_theirs and not is_of_jax(step, called)


def is_loop_of_jax(path: str, step: hlo.Instruction, module: hlo.Module) -> bool:
    """Whether the loop of that op_name is at the very place where `step` inside is: a user's body has a frame."""
    return any(item.op_name == path and item.stack == step.stack for item in module.every("while"))


def path_into_jax(step: hlo.Instruction, loop: str) -> str:
    """The op_name of `step` as far as into the first function of jax's own inside of the loop of that op_name; "" where
    it stands in none there."""
    own = Counter(frame.function.rpartition(".")[2] for frame in step.stack)
    for found in _JITTED.finditer(step.op_name, len(loop)):
        if not own[found[1]]:
            return step.op_name[: found.end()]
    return ""
