"""Functions that are called as tests and pictures are, and nothing else is seen to call: under a trace too.

In: the place of a function in a Project. An environment may well look at what it renders.
"""

from __future__ import annotations

from fusionlint.lazily import regex
from fusionlint.source.environments import is_observed
from fusionlint.source.facts import last_name
from fusionlint.source.places import Place
from fusionlint.source.project import Project
from fusionlint.source.traced import is_idle

# A helper of a helper is seldom further away than this.
_CALLERS = 3
_MAIN = regex(r"_?main(_\w+)?$")


def is_for_a_picture(project: Project, place: Place, depth: int = _CALLERS) -> bool:
    """Whether the function at `place` is called as what tests and pictures are, and nothing else is seen to call it but
    scripts, at their own level or in their `main`: an environment may well look at what it renders."""
    if not is_idle(project, place) or is_observed(project, place) or _draws_numbers(project, place):
        return False
    callers = project.callers(project.name_of(place)) if depth and not _only_shows(project, place) else ()
    others = (caller for caller in callers if caller.scope and not _MAIN.match(caller.scope.partition(".")[0]))
    return all(is_for_a_picture(project, caller, depth - 1) for caller in others)


def _draws_numbers(project: Project, place: Place) -> bool:
    """Whether what is called `draw` draws numbers, `def draw(carry, _)`, and no picture."""
    if "draw" not in last_name(place.scope):
        return False
    names = (project.callee(where, call.value) for where, call in project.calls_within(place))
    return any(name is not None and name.startswith("jax.random.") for name in names)


def _only_shows(project: Project, place: Place) -> bool:
    """Whether a function hands out nothing and keeps nothing, `window.show_img(img)`: whoever calls it gets no picture
    to go on with, as a step does that trains on what it renders."""
    function, facts = project.function_at(place), project.files[place.path]
    return function is not None and not function.returns and place.scope not in facts.has("kept in self")
