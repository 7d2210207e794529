"""Whether a layer is a block, worth a scan of its own, or a plain one: by what it calls.

In: places of a Project. A convolution with its norm and an activation is plain; what attends is none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

from fusionlint.lazily import regex
from fusionlint.source.places import Place
from fusionlint.source.project import Project

# A block that calls fewer things than this, itself or in what it calls, is a plain layer. A module makes its parts and
# calls them: a convolution, its norm and an activation are 6 to 8.
_LARGE = 4
LARGE_MODULE = 9
_DEPTH = 3
_ATTENTION = regex(r"attention|attn", re.I)


def is_large(project: Project, place: Place, least: int = _LARGE) -> bool:
    """Whether the function at `place` makes several calls: more than a product and an activation."""
    return sum(1 for _ in islice(_calls_within(project, place), least)) >= least


def _calls_within(project: Project, place: Place, depth: int = _DEPTH) -> Iterator[Place]:
    """A place for each call of the function at `place`, and of the project's functions and modules that it calls; two
    for one of a part that was made elsewhere, `self.attention(x)`."""
    for here, name, ((called_as, _, _), *_) in project.named_calls(place.path):
        if here != place:
            continue
        yield here
        if isinstance(called_as, str) and called_as.startswith("self."):
            yield here
        called = project.find(name) if depth else None
        if called is not None:
            is_class = called.scope in project.files[called.path].raw.classes
            inner = Place(called.path, f"{called.scope}.__call__") if is_class else called
            yield from _calls_within(project, inner, depth - 1)


def attends(project: Project, place: Place) -> bool:
    """Whether the module whose `__call__` this is has a part that is called as attention is: a block of a transformer,
    however little it says of what its parts do."""
    called = (called for here, _, ((called, _, _), *_) in project.named_calls(place.path) if here == place)
    names = (each[0] if isinstance(each, tuple) and each else each for each in called)
    return any(isinstance(name, str) and _ATTENTION.search(name) for name in names)
