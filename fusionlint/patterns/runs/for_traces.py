"""Code that is written to be traced, though nobody is seen to trace it: who uses a library does that elsewhere.

In: a node of a Source. Elsewhere a function that nobody is seen to trace often sets something up, eagerly and once.
"""

from __future__ import annotations

from itertools import chain

import libcst as cst

from fusionlint.patterns.code.at import is_about, names_read
from fusionlint.patterns.values.annotations import annotated
from fusionlint.patterns.values.kinds import kind
from fusionlint.source.environments import in_environment
from fusionlint.source.places import Place
from fusionlint.source.transforms import MODULES
from fusionlint.source.tree import Source

# What says how a function is differentiated.
_CUSTOM = frozenset(("jax.custom_jvp", "jax.custom_vjp"))
# So many names in a row an array seldom has between where it is handed in and where it is used.
_DEPTH = 4


def is_for_traces(node: cst.CSTNode, source: Source) -> bool:
    """Whether the code at `node` is seen to run under a trace, is part of an environment, stands in a file that uses
    jax.lax, says how to differentiate or defines the modules of a network, or works on a jax array that its function
    is handed, as that says."""
    if source.context(node) == "traced" or _is_such_a_file(source) or in_environment(node, source):
        return True
    return _is_of_an_array(node, source, _DEPTH)


def _is_such_a_file(source: Source) -> bool:
    if any(f"{name}.".startswith("jax.lax.") for name in chain(source.names, source.facts.imports())):
        return True
    decorators = (source.project.decorators(source.path, function) for function in source.facts.functions.values())
    if any(not _CUSTOM.isdisjoint(above) for above in decorators):
        return True
    return any(source.project.inherits(Place(source.path, scope), MODULES) for scope in source.facts.raw.classes)


def _is_of_an_array(node: cst.CSTNode, source: Source, depth: int) -> bool:
    """Whether `node` reads what is computed of a parameter that is annotated as a jax array, or of a field of one that
    is: what is set up once is made of sizes, settings and lists."""
    for name in names_read(node):
        if is_about(name, source):
            continue
        handed = [above for use in source.writes(name) if isinstance(above := source.parent(use.node), cst.Param)]
        if any(_is_an_array(one, source) for one in handed) or (handed and _is_an_array_of(name, source)):
            return True
        if depth and (value := source.value(name)) is not None and _is_of_an_array(value, source, depth - 1):
            return True
    return False


def _is_an_array(parameter: cst.Param, source: Source) -> bool:
    match parameter.annotation:
        case cst.Annotation(annotation=said):
            return annotated(said, parameter.name.value, parameter, source) == "array"
    return False


def _is_an_array_of(name: cst.Name, source: Source) -> bool:
    """Whether `name` is read for a field that holds an array: `self.diags`."""
    field = source.parent(name)
    return isinstance(field, cst.Attribute) and field.value is name and kind(field, source) == "array"
