"""The compiled side: the loop that jax makes of a search in sorted values, and for what it searches.

jax searches by halving, in a `while` of its own within `jit(searchsorted)`, also for `jnp.interp` and for random
choices by probabilities. Written out (`method="scan_unrolled"`) there is no loop.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from fusionlint.lazily import regex
from fusionlint.patterns.compiled.of_jax import is_of_jax
from fusionlint.patterns.compiled.readers import steps_of, writer_of

if TYPE_CHECKING:
    from fusionlint.hlo import parse as hlo
    from fusionlint.hlo.barriers import Barrier

_SEARCH = regex(r"\bjit\(searchsorted\).*/while\b")
_INTERP = regex(r"\bjit\(_?interp\).*\bjit\(searchsorted\)")
# What numbers between 0 and 1 are made of random bits by, on one hardware or the other.
_DRAWN = regex(r"\bjit\(_uniform\)")
_OF_BITS = ("shift-right-logical", "bitcast-convert")

What = Literal["search", "interp", "choice"]


def searched_for(barrier: Barrier, module: hlo.Module) -> What | None:
    """What the search is for in whose loop the value is made; None where it is made elsewhere."""
    step = _search(barrier, module)
    if step is None:
        return None
    if _INTERP.search(step.op_name):
        return "interp"
    return "choice" if _is_of_drawn_numbers(step, module) else "search"


def _search(barrier: Barrier, module: hlo.Module) -> hlo.Instruction | None:
    """A step of the search: the kernel that made the value, work in it, or the loop around it: copies have no name."""
    around = (caller for _, caller in module.callers(barrier.computation) if caller.opcode == "while")
    steps = (*steps_of(writer_of(barrier, module), module), *around)
    return next((one for one in steps if _SEARCH.search(one.op_name) and is_of_jax(one)), None)


def _is_of_drawn_numbers(search: hlo.Instruction, module: hlo.Module) -> bool:
    """Whether the very call that searches draws, too: `jax.random.choice` with probabilities, whose own frames jax
    leaves out. Who called that does not matter: the loop may be lowered once for all of them."""
    made = (one for opcode in _OF_BITS for one in module.every(opcode))
    return any(one.stack[:1] == search.stack[:1] and _DRAWN.search(one.op_name) for one in made)
