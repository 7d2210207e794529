"""What is made when something of it is asked for, and not before: modules, and regular expressions.

A single file is checked in a fifth of a second, most of it imports.
"""

from __future__ import annotations

import importlib.util
import re
import sys
from types import ModuleType
from typing import Any, cast


class _Postponed(ModuleType):
    """A module that has its name and its place, and nothing of its own yet. importlib.util.LazyLoader makes another
    kind, which a second `import` of the same name loads."""

    def __getattr__(self, name: str) -> Any:
        load(self.__name__)
        return getattr(self, name)


def postpone(name: str) -> None:
    """From now on `import NAME`, wherever it stands, costs nothing until an attribute of the module is asked for."""
    spec = importlib.util.find_spec(name) if name not in sys.modules else None
    if spec is None:
        return
    module = importlib.util.module_from_spec(spec)
    module.__class__ = _Postponed
    sys.modules[name] = module


def load(name: str) -> None:
    """Loads a module, if it is only postponed."""
    module = importlib.import_module(name)
    if isinstance(module, _Postponed) and module.__spec__ and module.__spec__.loader:
        object.__setattr__(module, "__class__", ModuleType)
        module.__spec__.loader.exec_module(module)


class _Regex:
    """A regular expression that is compiled when it is first asked for something."""

    def __init__(self, pattern: str, flags: int) -> None:
        self._given = pattern, flags

    def __getattr__(self, name: str) -> Any:
        found = getattr(re.compile(*self._given), name)
        setattr(self, name, found)  # asked for again it is found at once
        return found


def regex(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """What `re.compile` gives, compiled when it is used: of the many that rules know, one file needs a few."""
    return cast("re.Pattern[str]", _Regex(pattern, flags))
