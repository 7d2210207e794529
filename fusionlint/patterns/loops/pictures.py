"""Whether somebody looks at what a Python loop makes: a rollout whose states are drawn, frame by frame.

In: a loop of a Source. Such a loop runs once, for a film of some seconds; nobody minds what it dispatches.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

from fusionlint.lazily import regex
from fusionlint.patterns.code.at import inside
from fusionlint.patterns.loops.carry import Carry, Loop, calls, read
from fusionlint.patterns.loops.loop_gates import is_gated
from fusionlint.source.tree import Source
from fusionlint.source.walk import dotted

_DRAWS = regex(r"render|(^|_)(svg|gif)|animat|visuali[sz]|viz|video|imshow", re.I)
_FILMS = regex(r"animat|video|movie|(^|_)(gif|film)(_|$)", re.I)
# A picture of every step takes longer than the step.
_PLOTS = regex(r"(^|_)plot|^(scatter|semilog[xy]|loglog|hist(2d)?|contourf?|quiver|fill_between)$")
# Libraries that show in a window what they are handed, and copy it to the host for that.
_VIEWERS = ("rerun.", "viser.", "meshcat.", "napari.", "pyvista.", "vedo.", "open3d.visualization.")
_OF_FILMS = ("imageio.", "mediapy.", "skvideo.")
_KEEPS = frozenset(("append", "extend"))


def is_drawn(loop: Loop, source: Source) -> bool:
    """Whether a call that draws stands in the loop, or is handed what the loop makes."""
    draws = [call for call in _around(loop, source) if _is_called(call, _DRAWS)]
    if not draws:
        return False
    made = _made_of({*Carry(loop).varying, *_collected(loop)}, loop, source)
    return any(loop in source.ancestors(call) or not made.isdisjoint(read(call)) for call in draws)


def is_filmed(loop: Loop, source: Source) -> bool:
    """Whether every iteration draws, or collects what is drawn when the loop is over; a picture every so many
    iterations is none of that."""
    if is_plotted(loop, source) or _is_written_to_a_film(loop, source):
        return True
    draws = [call for call in _around(loop, source) if _is_called(call, _DRAWS)]
    made = _made_of(set(_collected(loop)), loop, source)
    return any(
        not is_gated(call, loop, source) if loop in source.ancestors(call) else not made.isdisjoint(read(call))
        for call in draws
    )


def _is_written_to_a_film(loop: Loop, source: Source) -> bool:
    """Whether every iteration adds to a film that is open, `with VideoWriter(path) as film:`."""
    return any(
        _opens_a_film(_made_by(call.func.value, source), source) and not is_gated(call, loop, source)
        for call in calls(loop.body)
        if isinstance(call.func, cst.Attribute) and isinstance(call.func.value, cst.Name)
    )


def _made_by(name: cst.Name, source: Source) -> cst.CSTNode | None:
    above = source.parent(written) if (written := source.written(name)) is not None else None
    item = source.parent(above) if above is not None else None
    return item.item if isinstance(item, cst.WithItem) else source.value(name)


def _opens_a_film(made: cst.CSTNode | None, source: Source) -> bool:
    match made:
        case cst.Call(func=opened) if dotted(opened).lower().endswith("writer"):
            return _is_called(made, _FILMS) or (source.qualified_name(opened) or "").startswith(_OF_FILMS)
    return False


def is_shown_each_time(loop: Loop, source: Source) -> bool:
    """Whether every iteration draws or renders: what is shown is read from the device anyway."""
    drawn = (call for call in calls(loop.body) if _is_called(call, _DRAWS))
    return is_plotted(loop, source) or any(not is_gated(call, loop, source) for call in drawn)


def is_viewed_each_time(loop: Loop, source: Source) -> bool:
    """Whether every iteration hands what it makes to a viewer, `rr.log("points", rr.Points3D(points))`."""
    varying = Carry(loop).varying
    shown = (call for call in calls(loop.body) if (source.qualified_name(call.func) or "").startswith(_VIEWERS))
    return any(not varying.isdisjoint(read(call)) and not is_gated(call, loop, source) for call in shown)


def is_animated(loop: Loop, source: Source) -> bool:
    """Whether what the loop keeps of every iteration is made a film of when it is over: `frames[i] = state`, then
    `animate(frames)`."""
    films = [call for call in _around(loop, source) if _is_called(call, _FILMS)]
    made = _made_of({*_collected(loop), *_stored(loop)}, loop, source) if films else set()
    return any(loop not in source.ancestors(film) and not made.isdisjoint(read(film)) for film in films)


def _is_called(call: cst.Call, as_these: re.Pattern[str]) -> bool:
    return as_these.search(dotted(call.func).rpartition(".")[2]) is not None


def is_plot(call: cst.Call) -> bool:
    """Whether `call` draws into a picture: `axes.plot(...)`."""
    return _is_called(call, _PLOTS)


def is_plotted(loop: Loop, source: Source) -> bool:
    """Whether every iteration draws into a picture: `axes.plot(...)`."""
    plots = filter(is_plot, calls(loop.body))
    return any(not is_gated(plot, loop, source) for plot in plots)


def _around(loop: Loop, source: Source) -> Iterator[cst.Call]:
    """The calls of the function around `loop`, or of the module's own level."""
    function, scope = source.function(loop), source.scope(loop)
    nodes = source.nodes(cst.Call) if function is None else inside(function.body)
    return (node for node in nodes if isinstance(node, cst.Call) and source.scope(node) == scope)


def _collected(loop: Loop) -> Iterator[str]:
    """The lists that the loop adds to: `states.append(state)`, `films[i].append(state)`."""
    for node in inside(loop.body):
        match node:
            case cst.Call(func=cst.Attribute(value=kept, attr=cst.Name(method))) if method in _KEEPS:
                yield dotted(kept.value if isinstance(kept, cst.Subscript) else kept)


def _stored(loop: Loop) -> Iterator[str]:
    """The arrays that the loop writes parts of: `frames[i] = state`."""
    for node in inside(loop.body):
        match node:
            case cst.Assign(targets=[cst.AssignTarget(target=cst.Subscript(value=kept))]):
                yield dotted(kept)


def _made_of(names: set[str], loop: Loop, source: Source) -> set[str]:
    """`names`, and what is computed of them in the same scope."""
    scope, found = source.scope(loop), set(names)
    function = source.function(loop)
    nodes = source.nodes(cst.Assign, cst.For, cst.CompFor) if function is None else inside(function.body)
    for node in nodes:
        if isinstance(node, cst.Assign | cst.For | cst.CompFor) and source.scope(node) == scope:
            value = node.value if isinstance(node, cst.Assign) else node.iter
            targets = [t.target for t in node.targets] if isinstance(node, cst.Assign) else [node.target]
            if not found.isdisjoint(read(value)):
                found.update(name for target in targets for name in read(target))
    return found
