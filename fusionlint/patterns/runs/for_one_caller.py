"""Functions that are there for one caller: numpy, which makes an array of its own of what they return, or a
decomposition, beside which they take no time.

In: nodes of a Source. Out: whether all that call the function around stand in the same file and do so at once, `return
np.asarray(difference(jnp.asarray(x)))`, `return eigh(from_diagonals(d, e))`, or the function hands on to the latter
itself. No trace of the first gets there, which is no proof of host code, for somebody else may call it.
"""

from __future__ import annotations

import libcst as cst

from fusionlint.lazily import regex
from fusionlint.patterns.code.elementwise import worked_on
from fusionlint.source.tree import Source
from fusionlint.source.walk import dotted

# Of 512 matrices of 60 rows on a CPU the eigenvalues take 343 ms, what puts the matrices together 1.
_DECOMPOSES = tuple(
    f"jax.{where}.linalg.{name}"
    for where in ("numpy", "scipy")
    for name in ("eig", "eigh", "eigvals", "eigvalsh", "schur", "svd", "svdvals")
)
# Of whatever library: a sparse matrix, whose factors take far longer.
_FACTORIZES = regex(r"(^|[._])(factori[sz]e|splu|spsolve)(_|$)")
# A matrix is seldom worked on in more statements before that.
_STEPS = 4


def is_decomposed(value: cst.CSTNode, source: Source, depth: int = _STEPS) -> bool:
    """Whether `value`, or what elementwise work of the same function makes of it, is handed to a decomposition there:
    the same matrix as a whole takes far longer than what is written in it."""
    made = worked_on(value, source)
    name = source.assigned_name(made)
    for read in source.reads(name) if name is not None else (made,):
        taken = source.handed_to(read)
        if taken is not None and (source.calls(taken, *_DECOMPOSES) or _FACTORIZES.search(dotted(taken.func))):
            return True
        is_worked_on = worked_on(read, source) is not read and source.function(read) is source.function(value)
        if name is not None and depth and is_worked_on and is_decomposed(read, source, depth - 1):
            return True
    return False
