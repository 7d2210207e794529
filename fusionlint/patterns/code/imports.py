"""What code that a fix writes may call a module, and the line that imports it where the file does not.

In: a node of a Source, and a module. Out: its name there and the edits that it takes; None where the name is taken.
"""

from __future__ import annotations

from typing import NamedTuple

import libcst as cst

from fusionlint.finding import Edit, Location
from fusionlint.lazily import regex
from fusionlint.source.texts import is_notebook
from fusionlint.source.tree import Source

# How each is imported, under the name that most files give it.
_LINES = {"jax": "import jax", "jax.numpy": "import jax.numpy as jnp", "functools": "import functools",
          "numpy": "import numpy as np"}  # fmt: skip
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
    where = _place(module, source)
    if where is None or any(name in bound for bound in source.facts.bindings.values()):
        return None
    end = "\r\n" if source.line(where.line).endswith("\r\n") else "\n"
    return Imported(name, (Edit(where, f"{line}{end}"),))


def numpy_of_jax(node: cst.CSTNode, source: Source) -> Imported | None:
    """The same of jax.numpy, which a file that imports jax has as well."""
    jax = source.alias_at(node, "jax")
    if source.alias_at(node, "jax.numpy") is None and jax is not None:
        return Imported(f"{jax}.numpy")
    return imported("jax.numpy", node, source)


def _place(module: str, source: Source) -> Location | None:
    """Where a line that imports `module` goes: above the first import of its package, of Python's own above any;
    numpy's below jax's first ones."""
    if is_notebook(source.path):
        return None  # whose cells run in any order
    package, below = module.partition(".")[0], 0
    for first, last, *_ in source.facts.raw.statements:
        found = _IMPORT.match(source.line(first))
        above = found["package"] if found else ""
        if above == package or (above and package == "functools" and above != "__future__"):
            return Location(source.path, first, 1, first, 1)
        is_of_jax = package == "numpy" and above == "jax"
        if below and not (is_of_jax and source.line(first).startswith("import")):
            break
        below = last + 1 if is_of_jax else below
    return Location(source.path, below, 1, below, 1) if below else None
