"""The compiled side: what `jnp.linalg.solve`, `inv` and `cholesky` are made of, a factorization and what goes with it.

Most are jitted by jax, so that all of it has `jit(solve)` or `jit(inv)` in its op_name, and the factorization itself,
whose first result is as large as the matrix, is called `lu` or `cholesky`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from fusionlint.lazily import regex
from fusionlint.patterns.compiled.of_jax import is_of_jax
from fusionlint.patterns.compiled.readers import (
    is_handed_out,
    made_and_taken,
    readers_of,
    steps_of,
    value_of,
    writer_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fusionlint.hlo import parse as hlo
    from fusionlint.hlo.barriers import Barrier

_OF_A_LIBRARY = {
    "lu": regex(r"\bjit\((solve|inv)\)"),
    "cholesky": regex(r"\bjit\((_?cholesky|_solve|_cho_solve|_solve_triangular)\)|/(cholesky|triangular_solve)$"),
}
# What is behind those that jax jits, in the calls of others that do not.
_ALONE = regex(r"/(cholesky|triangular_solve)$")
_INVERSE = regex(r"\bjit\(inv\)")
_LAYOUT = frozenset(("bitcast", "copy", "fusion", "get-tuple-element", "parameter", "reshape", "transpose"))


def rows_factored(barrier: Barrier, module: hlo.Module, method: Literal["lu", "cholesky"] = "lu") -> int | None:
    """How many rows a matrix has of which the value is a part of the factorization, made there or only read; None where
    it is no such part."""
    calls = [*_factorizations(module, method)]
    if not calls:
        return None
    steps = made_and_taken(barrier, module)
    named = _OF_A_LIBRARY[method]
    named_so = (step for step in steps if named.search(step.op_name))
    parts = {step.stack for step in named_so if is_of_jax(step) or _ALONE.search(step.op_name)}
    return next((_matrix(call).dims[-1] for call in calls if call.stack in parts), None)


def _factorizations(module: hlo.Module, method: str = "lu") -> Iterator[hlo.Instruction]:
    """The calls whose first result is a square matrix in its factors: a TPU has others beside them."""
    for call in module.every("custom-call"):
        if call.op_name.endswith(f"/{method}") and call.stack:
            rows = _matrix(call).dims[-2:]
            if len(rows) == 2 and rows[0] == rows[1]:
                yield call


def _matrix(call: hlo.Instruction) -> hlo.Shape:
    return call.shape.parts[0] if call.shape.parts else call.shape


def is_inverse_for_a_product(barrier: Barrier, module: hlo.Module, times: int = 1) -> bool:
    """Whether the value is an inverse of a matrix that nothing reads but one product, with no more columns than so many
    times those of that matrix."""
    if len(barrier.readers) != 1 or not any(_factorizations(module)) or is_handed_out(barrier, module):
        return False
    if not any(map(_is_of_inverse, steps_of(writer_of(barrier, module), module))):
        return False
    steps = [*steps_of(next(readers_of(barrier, module)), module)]
    if any(_is_of_inverse(step) and step.opcode not in _LAYOUT for step in steps):
        return False  # a TPU multiplies inverses of blocks, too
    products = [one.shape.nbytes for one in steps if one.op_name.endswith("dot_general") and not _is_of_inverse(one)]
    return bool(products) and max(products) <= times * value_of(barrier, module).shape.nbytes


def _is_of_inverse(step: hlo.Instruction) -> bool:
    return _INVERSE.search(step.op_name) is not None and is_of_jax(step)
