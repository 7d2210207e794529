"""Code that is written to be traced, though nobody is seen to trace it: who uses a library does that elsewhere.

In: a node of a Source. Elsewhere a function that nobody is seen to trace often sets something up, eagerly and once.
"""

from __future__ import annotations

from itertools import chain

import libcst as cst

from fusionlint.source.environments import in_environment
from fusionlint.source.places import Place
from fusionlint.source.transforms import MODULES
from fusionlint.source.tree import Source


def is_for_traces(node: cst.CSTNode, source: Source) -> bool:
    """Whether the code at `node` is seen to run under a trace, is part of an environment, or stands in a file that uses
    jax.lax or defines the modules of a network."""
    return source.context(node) == "traced" or _is_such_a_file(source) or in_environment(node, source)


def _is_such_a_file(source: Source) -> bool:
    if any(f"{name}.".startswith("jax.lax.") for name in chain(source.names, source.facts.imports())):
        return True
    return any(source.project.inherits(Place(source.path, scope), MODULES) for scope in source.facts.raw.classes)
