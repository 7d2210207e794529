"""What code that a fix writes may call a module, and the line that imports it where the file does not.

In: a node of a Source, and a module. Out: its name there and the edits that it takes; None where the name is taken.
"""

from __future__ import annotations

from typing import NamedTuple

import libcst as cst

from fusionlint.finding import Edit, Location
from fusionlint.lazily import regex
from fusionlint.patterns.code.layout import end_of
from fusionlint.source.texts import is_notebook
from fusionlint.source.tree import Source

# How each is imported, under the name that most files give it.
_LINES = {
    "functools": "import functools",
    "numpy": "import numpy as np",
    "jax": "import jax",
    "jax.numpy": "import jax.numpy as jnp",
}
_IMPORT = regex(r"(import|from)\s+(?P<package>\w+)")


class Imported(NamedTuple):
    """The name of a module, and the edits by which the file has it."""

    name: str
    edits: tuple[Edit, ...] = ()


def imported(module: str, node: cst.CSTNode, source: Source) -> Imported | None:
    """What code at `node` may call `module`: as the file does, or by a line of its own, beside what the file imports
    of the same package."""
    if (name := source.alias_at(node, module)) is not None:
        return Imported(name)
    line = _LINES[module]
    name = line.split()[-1]
    if _is_starred(name, module, node, source):
        return Imported(name)
    where = _place(module, source)
    if where is None or any(name in bound for bound in source.facts.bindings.values()):
        return None
    end = end_of(source.line(1))
    return Imported(name, (Edit(where, f"{line}{end}"),))


def numpy_of_jax(node: cst.CSTNode, source: Source) -> Imported | None:
    """The same of jax.numpy, which a file that imports jax has as well."""
    jax = source.alias_at(node, "jax")
    is_named = source.alias_at(node, "jax.numpy") is not None or _is_starred("jnp", "jax.numpy", node, source)
    return Imported(f"{jax}.numpy") if jax is not None and not is_named else imported("jax.numpy", node, source)


def vmap_of_jax(node: cst.CSTNode, source: Source) -> Imported | None:
    """What code at `node` may call `jax.vmap`, which a file may import by itself."""
    name = source.alias_at(node, "jax.vmap") if source.alias_at(node, "jax") is None else None
    jax = imported("jax", node, source) if name is None else None
    return Imported(name) if name is not None else Imported(f"{jax.name}.vmap", jax.edits) if jax is not None else None


def _is_starred(name: str, module: str, node: cst.CSTNode, source: Source) -> bool:
    """Whether a module of the project gives the file that name, by `from settings import *`."""
    place = source.place(node)
    return source.facts.lookup(place.scope, name) is None and source.project.qualified_name(place, name) == module


def _place(module: str, source: Source) -> Location | None:
    """Where a line that imports `module` goes: above the first import of its package, of Python's own above any, and of
    numpy behind those of jax."""
    if is_notebook(source.path):
        return None  # whose cells run in any order
    packages = [(_package(first, source), first, last) for first, last, *_ in source.facts.raw.statements]
    package = module.partition(".")[0]
    if package == "numpy":
        of_jax = [place for place, (name, *_) in enumerate(packages) if name == "jax"]
        behind = next((place for place in of_jax if place + 1 not in of_jax), None)
        line = packages[behind][2] + 1 if behind is not None else 0
        return Location(source.path, line, 1, line, 1) if line and source.line(line - 1).endswith("\n") else None
    wanted = {package} if package == "jax" else {name for name, *_ in packages} - {"", "__future__"}
    first = next((line for name, line, _ in packages if name in wanted), None)
    return Location(source.path, first, 1, first, 1) if first is not None else None


def _package(line: int, source: Source) -> str:
    """The package that a line imports from, "" of what is no import."""
    found = _IMPORT.match(source.line(line))
    return found["package"] if found else ""
