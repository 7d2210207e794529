"""A Python loop on the host that writes a jax array place by place, each time a dispatch and a copy of it all."""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

from fusionlint.finding import Finding
from fusionlint.lazily import regex
from fusionlint.patterns.code.at import WRITES, Write, inside
from fusionlint.patterns.loops.carry import calls
from fusionlint.patterns.loops.collected import is_few, target_names
from fusionlint.patterns.loops.timed import is_timed
from fusionlint.patterns.runs.made_once import is_for_constructors
from fusionlint.patterns.writes.heavy import is_made_by_heavy_work
from fusionlint.patterns.writes.loop import piecewise
from fusionlint.patterns.writes.loop_fix import of_loop
from fusionlint.patterns.writes.on_the_host import on_the_host
from fusionlint.patterns.writes.places import is_fresh_before
from fusionlint.rule import Rule
from fusionlint.source.tree import Source
from fusionlint.source.walk import dotted

rule = Rule(__name__, harm="dispatch")

# What makes first values, or a part of something, runs once, often under a trace after all.
_INITIALIZES = regex(r"(^|_)init(_|$)|initiali[sz]er?(_|$)|^_?(make|build|set_?up)_")
_EPOCH = regex(r"epoch", re.I)
_EVENT = regex(r"(^|[._])events?([._]|$)")


def _calls_what_it_goes_over(loop: cst.For) -> bool:
    """Whether the loop is over functions: they are few, and do more than a dispatch."""
    names = target_names(loop)
    calls = (node.func for node in inside(loop.body, cst.Call))
    return any(isinstance(called, cst.Name) and called.value in names for called in calls)


def _is_of_epochs(loop: cst.For) -> bool:
    """Whether an iteration takes so long that a write is nothing beside it: an epoch."""
    done = (dotted(node.func) for node in inside(loop.body, cst.Call))
    return any(_EPOCH.search(name) for name in (*target_names(loop), *done))


def _is_of_events(loop: cst.For) -> bool:
    """Whether the loop goes over what somebody did meanwhile, `pygame.event.get()`: a key now and then."""
    return isinstance(loop.iter, cst.Call) and _EVENT.search(dotted(loop.iter.func)) is not None


def _is_drawn(loop: cst.For, source: Source) -> bool:
    """Whether the function draws, `plt.imshow(image)`: that takes longer."""
    function = source.function(loop)
    body = function.body if isinstance(function, cst.FunctionDef) else loop
    return any((source.qualified_name(call.func) or "").startswith("matplotlib.") for call in calls(body))


def _is_a_check(loop: cst.For, source: Source) -> bool:
    """Whether the function only looks whether all is well: it raises or says nothing, and changes nothing."""
    function = source.function(loop)
    if not isinstance(function, cst.FunctionDef):
        return False
    own = [node for node in inside(function.body) if source.function(node) is function]
    is_told = any(isinstance(node, cst.Return) and node.value is not None for node in own)
    targets = [node.target for node in own if isinstance(node, cst.AssignTarget | cst.AugAssign)]
    is_changed = any(isinstance(target, cst.Attribute | cst.Subscript) for target in targets)
    return any(isinstance(node, cst.Raise) for node in own) and not is_told and not is_changed


def _kept(write: Write, loop: cst.For, jnp: str) -> str:
    """A stack of one value for each turn; of values for other places, `x.at[i, j]`, it would have another shape."""
    match write.index:
        case [cst.Name(value=name)] if name in target_names(loop) and write.method == "set":
            return f"a list, and one {jnp}.stack"
    twice = ", if no place comes twice" if write.method == "set" else ""  # nobody says which of two stays
    return f"a list and one of their places, and one `.{write.method}` of all after the loop{twice}"


@rule.source("For", calls=WRITES, where="host", in_loop=True)
def written_eagerly(node: cst.For, source: Source) -> Iterator[Finding]:
    """The loop of a host function fills a new array of jax place by place."""
    if source.context(node) != "host" or is_few(node.iter, source) or _calls_what_it_goes_over(node):
        return
    if _is_of_epochs(node) or _is_of_events(node) or is_timed(node, source):
        return
    if any(_INITIALIZES.search(name) for name in source.scope(node).split(".")):
        return
    if is_for_constructors(source.project, source.place(node)) or is_made_by_heavy_work(node, source):
        return
    if _is_drawn(node, source) or _is_a_check(node, source):
        return
    found = piecewise(node, source)
    if found is None or not all(is_fresh_before(write, node, source) for write in found.writes):
        return
    array = found.arrays[0]
    more = f" and {len(found.arrays) - 1} more are" if len(found.arrays) > 1 else " is"
    jnp = source.jnp
    yield source.finding(
        found.writes[0].call,
        f"`{array}`{more} copied whole to write one place, in a dispatch of its own, in every iteration",
        write=f"a numpy array, `{array}[i] = value` in the loop, and {jnp}.asarray({array}) after it; of values that "
        f"jax computes {_kept(found.writes[0], node, jnp)}",
        edits=on_the_host(found.writes, node, source) or of_loop(found, node, source),
    )
