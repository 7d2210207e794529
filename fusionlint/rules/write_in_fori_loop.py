"""A loop that writes one place of an array in each step: `fori_loop(0, n, lambda i, x: x.at[i].set(f(i)), x)`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from fusionlint.finding import Finding
from fusionlint.patterns.code.at import inside, is_literal
from fusionlint.patterns.code.calls import brief
from fusionlint.patterns.code.functions import definitions
from fusionlint.patterns.compiled.apart import turns_apart
from fusionlint.patterns.loops.step_writes import LoneWrite, lone_writes
from fusionlint.patterns.loops.steps_at_once import steps_at_once
from fusionlint.patterns.runs.loop_bodies import bodies_of, is_small
from fusionlint.rule import Rule
from fusionlint.source.tree import Source

if TYPE_CHECKING:
    from fusionlint.hlo import parse as hlo
    from fusionlint.hlo.barriers import Barrier

rule = Rule(__name__, harm="fusion")

_COLLECTIVES = tuple(
    f"jax.lax.{name}"
    for name in (
        "all_gather",
        "all_to_all",
        "ragged_all_to_all",
        "ppermute",
        "pshuffle",
        "psum",
        "psum_scatter",
        "pmean",
    )
)
_FORI, _SCAN = "jax.lax.fori_loop", "jax.lax.scan"


@rule.source("Call", calls=(_FORI, _SCAN))
def written_step_by_step(node: cst.Call, source: Source) -> Iterator[Finding]:
    """The body returns its carry with one place written, or added to, which depends on the step alone."""
    bodies = bodies_of(node, source)
    functions = definitions(bodies, source)
    if len(functions) != 1 or len(bodies) != 1 or not is_small(source.project, bodies[0]):
        return
    writes = lone_writes(functions[0], node, source)
    if not writes or any(one.write.value is None for one in writes) or _talks_to_others(functions[0], source):
        return
    found, is_apart = writes[0], all(one.is_apart for one in writes)
    where = "" if not isinstance(functions[0], cst.FunctionDef) else f" in `{functions[0].name.value}`"
    alone = "no step needs another" if is_apart else "no step reads what another wrote"
    more = f" and of {len(writes) - 1} more" if len(writes) > 1 else ""
    is_fixed = not more and source.calls(node, _FORI)
    yield source.finding(
        node,
        f"one place of `{source.code(found.write.array)}`{more} is written in each step{where}, and {alone}",
        write=_advice(found, source) + (", and so of the others" if more else ""),
        edits=steps_at_once(node, found.write, source, is_apart=found.is_apart) if is_fixed else (),
        pair=int(not is_apart),
    )


@rule.barrier
def crosses_between_writes(barrier: Barrier, module: hlo.Module) -> str | None:
    """Whatever crosses memory inside of a loop whose turns each write a part of an array, and read none of it."""
    apart = turns_apart(barrier.computation, module)
    if apart is None or "array" not in apart.writes:
        return None
    return (
        "the values of all turns by jax.vmap, and one write of them; where the loop's end is computed, "
        "jnp.where(jnp.arange(n) < end, ...): no turn needs what another wrote (of two for one place, say which stays)"
    )


def _advice(found: LoneWrite, source: Source) -> str:
    write = found.write
    value = source.code(write.value) if write.value is not None else ""
    shown, name = brief(value, 40, "value"), source.code(write.array)
    is_scalar_literal = is_literal(write.value) or shown.isupper()
    jnp = source.jnp
    if not found.is_apart and is_scalar_literal:
        # One number everywhere: it does not matter which of two steps has a place.
        return f"one `{name}.at[places].set({shown})`, the places of all the steps by jax.vmap"
    if not found.is_apart:
        return (
            f"jax.vmap for all the places and all the values of `{shown}`, and one `{name}.at[places].set(values)`; "
            "where two steps may have the same place, a mask that leaves one of them, or `.max(values)`"
        )
    at_once = f"jax.vmap for all the values of `{shown}` and one `{name}.at[indices].{write.method}(values)`"
    if write.method != "set":  # at places that the data say, several times perhaps
        return at_once
    if is_scalar_literal:
        mask = f"comparisons of {jnp}.arange along each axis with the first and the last place"
        return f"`{jnp}.where(mask, {shown}, {name})`, the mask of {mask}, or one `{name}.at[indices].set({shown})`"
    return f"`{jnp}.where` of a comparison with {jnp}.arange, or {at_once}"


def _talks_to_others(body: cst.FunctionDef | cst.Lambda, source: Source) -> bool:
    """Whether a step sends something to other devices: that takes its turn."""
    return any(source.calls(part, *_COLLECTIVES) for part in inside(body.body))
