"""Functions that make what the first step begins with, once: `setup` of an algorithm, beside its steps.

In: a node of a Source. They are told by their name, and by no loop that is seen to run them.
"""

from __future__ import annotations

import libcst as cst

from fusionlint.patterns.runs.under import under_loop
from fusionlint.source.facts import last_name
from fusionlint.source.hosts import is_first_state_name
from fusionlint.source.places import Place
from fusionlint.source.transforms import MODULES
from fusionlint.source.tree import Source


def makes_the_first_state(node: cst.CSTNode, source: Source) -> bool:
    """Whether the function around is called as what runs before the first step, `setup`, and no loop is seen to call
    it: what a module's `setup` does is done in every trace of it, and stays there."""
    place = source.place(node)
    if not is_first_state_name(last_name(place.scope)) or under_loop(node, source):
        return False
    owner = source.facts.class_around(place.scope)
    return not (owner and source.project.inherits(Place(source.path, owner), MODULES))
