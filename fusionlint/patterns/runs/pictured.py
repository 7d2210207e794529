"""Functions that pictures alone ask for: all that is seen to call them plots, draws or shows something.

In: the place of a function in a Project. What tests call says nothing: they call what others do, too.
"""

from __future__ import annotations

from fusionlint.lazily import regex
from fusionlint.source.environments import is_observed
from fusionlint.source.places import Place
from fusionlint.source.project import Project
from fusionlint.source.traced import is_idle

# Not what renders: an environment may look at that.
_PICTURES = regex(r"(^|\.)_?(plot|visuali[sz]e|draw|show|animate)(_|s?(\.|$))")
# A helper of a helper is seldom further away than this.
_DEPTH = 3


def is_asked_for_by_pictures(project: Project, place: Place, depth: int = _DEPTH) -> bool:
    """Whether something calls the function at `place`, and whatever does is called as pictures are, or is itself there
    for those alone."""
    if not place.scope or is_observed(project, place):
        return False
    callers = {caller for caller in project.callers(project.name_of(place)) if caller != place}
    pictures = {caller for caller in callers if _PICTURES.search(caller.scope)}
    others = {caller for caller in callers - pictures if not is_idle(project, caller)}
    if others and not depth:
        return False
    return bool(pictures | others) and all(is_asked_for_by_pictures(project, caller, depth - 1) for caller in others)
