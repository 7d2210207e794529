"""Interpolation in a table without a loop: what a fix writes for `jnp.interp`, which searches by one, with no way out;
and without a map, for it takes as many points as there are.

In: calls of it with a point, places and values, in a Source. Out: the edits, none where the file cannot have the
function that they call; or the call of all points.
"""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from fusionlint.finding import Edit
from fusionlint.patterns.code.at import names_read
from fusionlint.patterns.code.calls import has_only
from fusionlint.patterns.code.helpers import helper
from fusionlint.patterns.code.imports import imported
from fusionlint.source.tree import Source

# How a search is told to be none.
UNROLLED = 'method="scan_unrolled"'
_INTERP = "jax.numpy.interp"
_INTERPOLATES = "_interp"
# Compiled as `jnp.interp` is, for who calls it by itself.
_INTERPOLATION = (
    "@jax.jit",
    f"def {_INTERPOLATES}(x, xp, fp):",
    '    """`jnp.interp`, with a search that is no loop on the device."""',
    "    x, xp, fp = jnp.asarray(x), jnp.asarray(xp), jnp.asarray(fp)",
    f'    i = jnp.searchsorted(xp, x, side="right", {UNROLLED})',
    "    i = jnp.clip(i, 1, xp.shape[0] - 1)",
    "    width = xp[i] - xp[i - 1]",
    "    slope = (fp[i] - fp[i - 1]) / jnp.where(width == 0, 1, width)",
    "    y = fp[i - 1] + slope * (x - xp[i - 1])",
    "    return jnp.where(x < xp[0], fp[0], jnp.where(x > xp[-1], fp[-1], y))",
)


def written_out(nodes: Sequence[cst.Call], source: Source) -> tuple[Edit, ...]:
    """Calls of a function of the file that does what `interp` does, and searches without a loop."""
    jnp, given = source.alias_at(nodes[0], "jax.numpy"), ("x", "xp", "fp")
    jax = imported("jax", nodes[0], source)
    if jnp is None or jax is None:
        return ()
    if not all(has_only(node, 3, *given) and len(node.args) == len(given) for node in nodes):
        return ()
    lines = [line.replace("jnp.", f"{jnp}.").replace("@jax.", f"@{jax.name}.") for line in _INTERPOLATION]
    made = helper(_INTERPOLATES, lines, nodes[0], source)
    if made is None:
        return ()
    return (*jax.edits, *made.edits, *(source.replace(node.func, made.name) for node in nodes))


def for_all_at_once(node: cst.Call, call: cst.Call, source: Source) -> str | None:
    """`jnp.interp(zs, xs, ys)`, of `jax.vmap(lambda z: jnp.interp(z, xs, ys))(zs)`: it takes all as they are."""
    match node.args[0].value, call.args:
        case cst.Lambda(params=cst.Parameters(params=[one]), body=cst.Call(args=[first, *others]) as body), [handed]:
            name = one.name.value
            if not source.calls(body, _INTERP) or not isinstance(first.value, cst.Name) or first.value.value != name:
                return None
            if len(node.args) > 1 or any(read.value == name for arg in others for read in names_read(arg.value)):
                return None
            rest = "".join(f", {source.code(arg).rstrip(', ')}" for arg in others)
            return f"{source.code(body.func)}({source.code(handed.value)}{rest})"
    return None
