"""Whose code a file holds: the user's, a library's, or jax's own."""

from __future__ import annotations

import re
import sys
import sysconfig
from functools import cache
from pathlib import Path
from types import ModuleType

from fusionlint.recording import Owner

_INSTALLED = re.compile(r"[/\\](?:site|dist)-packages[/\\]")
_JAX = re.compile(r"[/\\](?:site|dist)-packages[/\\]jax(?:lib)?[/\\]")
_PACKAGE = f"{Path(__file__).parents[1]}/"


@cache
def owner(path: str) -> Owner:
    """Of a file, by where it lies. What has no file is a library's, but for the cells of a notebook."""
    if path.startswith("<"):
        return "user" if path.startswith("<ipython") else "library"
    if _JAX.search(path) or path.startswith((*_homes(), _PACKAGE)):  # this package's frames are jax's machinery too
        return "jax"
    return "library" if path.startswith(_stdlib()) or _INSTALLED.search(path) else "user"


def installed(path: str) -> bool:
    """Whether the file is Python's, a package's or ours, as far as can be told without importing jax."""
    return bool(_INSTALLED.search(path)) or path.startswith((*_stdlib(), _PACKAGE))


def works_with_jax(path: str) -> bool:
    """Whether a library's file is of a package whose modules have imported jax: absl, click and hydra have not."""
    inside = _INSTALLED.split(path)[-1]
    return inside != path and _imports_jax(re.split(r"[/\\.]", inside)[0])


@cache
def _imports_jax(package: str) -> bool:
    modules = [module for name, module in [*sys.modules.items()] if name.partition(".")[0] == package]
    values = (value for module in modules if isinstance(module, ModuleType) for value in [*vars(module).values()])
    return any(isinstance(value, ModuleType) and value.__name__.partition(".")[0] == "jax" for value in values)


@cache
def _stdlib() -> tuple[str, ...]:
    paths = sysconfig.get_paths()
    return tuple(f"{Path(paths[name])}/" for name in ("stdlib", "platstdlib"))


@cache
def _homes() -> tuple[str, ...]:
    """Where jax is, if it is not installed the usual way. Asked once jax runs."""
    import jax
    import jaxlib

    return tuple(f"{Path(str(one.__file__)).parent}/" for one in (jax, jaxlib))
