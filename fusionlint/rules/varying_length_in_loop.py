"""An array in a loop of the host that is as long as values say, another length in each iteration: `jnp.where(mask)[0]`,
`jnp.unique(x)`, `x[x > 0]`."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from fusionlint.finding import Finding
from fusionlint.patterns.code.calls import argument, hides_some
from fusionlint.patterns.dispatch.anew import repeats
from fusionlint.patterns.dispatch.called_jitted import is_called_jitted
from fusionlint.patterns.dispatch.host import is_counted
from fusionlint.patterns.dispatch.jit import is_jitted
from fusionlint.patterns.loops.carry import Carry
from fusionlint.patterns.loops.loop_gates import is_gated
from fusionlint.patterns.loops.pictures import is_plotted
from fusionlint.patterns.values.kinds import kind
from fusionlint.rule import Rule
from fusionlint.source.hosts import AS_LONG_AS_IT_GETS, WHERE
from fusionlint.source.tree import Source

rule = Rule(__name__, harm="recompile")

_FOUND = (*AS_LONG_AS_IT_GETS, WHERE)
# What says only how many there are, which all else may go by.
_OF_ONE_LENGTH = ("len", "int", "list", "set", "print", "numpy.asarray", "numpy.array")
_OF_JAX = ("jax.numpy.", "jax.lax.", "jax.nn.", "jax.scipy.")


@rule.source("Call", calls=_FOUND, where="host", in_loop=True)
def found_in_every_iteration(node: cst.Call, source: Source) -> Iterator[Finding]:
    """What each iteration finds in something else, and computes with."""
    if not _is_of_any_length(node, source) or is_called_jitted(node, source):
        return
    loop = repeats(node, source)
    if not isinstance(loop, cst.For | cst.While) or is_gated(node, loop, source) or is_plotted(loop, source):
        return
    if not is_counted(loop, source) or not any(Carry(loop).varies(arg.value) for arg in node.args):
        return
    if any(_computes(read, source) for read in _reads(node, source)):
        yield source.finding(
            node,
            "of another length in every iteration: it, and what computes with it, is compiled anew for each",
            write=_instead(node, source),
        )


def _is_of_any_length(call: cst.Call, source: Source) -> bool:
    if not source.calls(call, *_FOUND) or hides_some(call) or argument(call, 99, "size") is not None:
        return False
    return len(call.args) == 1 or not source.calls(call, WHERE)


def _reads(node: cst.CSTNode, source: Source) -> Iterator[cst.CSTNode]:
    """Where what is found is read: by the name of `jnp.where(x)[0]`, or at once."""
    above = source.parent(node)
    if isinstance(above, cst.Subscript) and above.value is node:
        node = above
    yield from source.readers(node)


def _computes(read: cst.CSTNode, source: Source) -> bool:
    """Whether jax takes rows by it, `x[found]`, or is handed it."""
    match source.parent(read):
        case cst.Index():
            return True
        case cst.Arg() as arg:
            call = source.parent(arg)
            if not isinstance(call, cst.Call) or source.calls(call, *_OF_ONE_LENGTH):
                return False
            return (source.qualified_name(call.func) or "").startswith(_OF_JAX) or is_jitted(call.func, source)
    return False


def _is_of_numpy(read: cst.CSTNode, source: Source) -> bool:
    """Whether places are looked up, or written, in an array of numpy's: `sets[found] = ...`."""
    index = source.parent(read)
    element = source.parent(index) if isinstance(index, cst.Index) else None
    whole = source.parent(element) if element is not None else None
    return isinstance(whole, cst.Subscript) and kind(whole.value, source) == "numpy"


def _instead(node: cst.Call, source: Source) -> str:
    numpy = source.jnp
    if source.calls(node, "jax.numpy.unique"):
        return "`size=` with a `fill_value`, as many as there can be; or numpy's own unique, on the host"
    if any(_is_of_numpy(read, source) for read in _reads(node, source)):
        return (
            "numpy's own, of what is brought to the host once, before the loop (jax.device_get): there no length is "
            "compiled"
        )
    return (
        f"a mask, which has one length: sums over {numpy}.where(mask, x, 0), or of all iterations at once by "
        "jax.ops.segment_sum; or `size=`, as many as there can be"
    )
