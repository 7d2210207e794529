"""Entry -> the callable it names, found in the user's code. Runs in a worker: an import may do anything.

Errors of the SPEC (no such module, no such function) are EntryErrors; errors of the user's own code pass through.
"""

from __future__ import annotations

import difflib
import importlib
import importlib.machinery
import importlib.util
import inspect
import os
import pkgutil
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from types import ModuleType
from typing import Any

from fusionlint.compiling.entry import AbsentError, Entry, EntryError
from fusionlint.compiling.values import a

Function = Callable[..., Any]


def load(entry: Entry) -> Function:
    """Import the entry's module and find its function; a method comes bound to an instance. Raises EntryError, and
    whatever the module raises."""
    value: Any = module(entry)
    names = entry.function.split(".")
    for depth, name in enumerate(names):
        value = _member(value, name, f"{entry.module}{':' if depth else ''}{'.'.join(names[:depth])}")
    if inspect.isclass(value) or not callable(value):
        raise EntryError(f"{entry.module}:{entry.function} is {_a(value)}, not a function{_methods(value)}")
    return value  # type: ignore[no-any-return]


def module(entry: Entry) -> ModuleType:
    """The entry's module, imported at the first call: a dotted name with the working directory on sys.path, or its
    `src` if that has it, a file with its own. Raises EntryError, and whatever the module raises."""
    if entry.is_file:
        return _module_of_file(Path(os.path.normpath(Path(entry.module).absolute())))
    _on_path(Path.cwd())
    package = entry.module.partition(".")[0]
    if importlib.util.find_spec(package) is None and importlib.machinery.PathFinder.find_spec(package, ["src"]):
        _on_path(Path.cwd() / "src")
    try:
        return importlib.import_module(entry.module)
    except ModuleNotFoundError as error:
        # The module that the SPEC names, or a package above it; a missing import inside it is the user's own error, and
        # so is the metadata of a package that is not installed, which errors of a subclass miss.
        if (
            type(error) is not ModuleNotFoundError
            or error.name is None
            or not f"{entry.module}.".startswith(f"{error.name}.")
        ):
            raise
        raise AbsentError(_no_module(entry.module, error.name)) from None


def _module_of_file(path: Path) -> ModuleType:
    if not path.is_file():
        near = _near(path.name, (other.name for other in path.parent.glob("*.py")))
        raise AbsentError(f"there is no file {path}{near}")
    root, name = _place(path)
    _on_path(root)
    # A file may be called like a module of Python's own (random.py): that one must stay what it is.
    aside = f"{name}_of_the_user"
    for known in (name, aside):
        if _same(sys.modules.get(known), path):
            return sys.modules[known]
    if "." in name:
        return importlib.import_module(name)
    return _execute(path, aside if name in sys.modules or name in sys.stdlib_module_names else name)


def _execute(path: Path, name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    loaded = sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(loaded)
    except BaseException:
        del sys.modules[name]
        raise
    return loaded


def _place(path: Path) -> tuple[Path, str]:
    """Where imports of this file start, and its dotted name there: a file of a package belongs to its package."""
    root, parts = path.parent, [path.stem]
    while (root / "__init__.py").is_file() and root.name.isidentifier():
        parts.append(root.name)
        root = root.parent
    if parts[0] == "__init__" and len(parts) > 1:
        del parts[0]
    return root, ".".join(reversed(parts))


def _same(loaded: ModuleType | None, path: Path) -> bool:
    file = getattr(loaded, "__file__", None)
    return file is not None and Path(file).absolute() == path


def _on_path(folder: Path) -> None:
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))


def _no_module(wanted: str, missed: str) -> str:
    parent, _, leaf = missed.rpartition(".")
    where = getattr(sys.modules.get(parent), "__path__", None) if parent else [str(Path.cwd())]
    if where is None:
        return f"no module {missed}: {parent} is a module, not a package; a function is named {parent}:{leaf}"
    siblings = {info.name for info in pkgutil.iter_modules(where)}
    near = _near(leaf, siblings if parent else siblings | sys.stdlib_module_names, f"{parent}." if parent else "")
    hint = near or "; it is looked for from the working directory and in this Python's packages"
    return f"no module {missed}{'' if missed == wanted else f' (for {wanted})'}{hint}"


def _member(owner: Any, name: str, seen: str) -> Any:
    if inspect.isclass(owner):
        return _method(owner, name, seen)
    try:
        return getattr(owner, name)
    except AttributeError:
        raise AbsentError(_no_member(owner, name, seen)) from None


def _method(owner: type, name: str, seen: str) -> Any:
    """`name` of a class: as it stands if it needs no instance, else of an instance made without arguments."""
    try:
        found = inspect.getattr_static(owner, name)
    except AttributeError:
        raise AbsentError(_no_member(owner, name, seen)) from None
    if isinstance(found, (staticmethod, classmethod, type)):
        return getattr(owner, name)
    try:
        inspect.signature(owner).bind()
    except TypeError as error:
        raise _not_made(owner, name, str(error)) from None
    except ValueError:
        pass  # a class without a readable signature: try
    try:
        made = owner()
    except Exception as error:  # noqa: BLE001 - it is the user's code, and a metaclass may hide its parameters
        raise _not_made(owner, name, f"{type(error).__name__}: {error}") from None
    return getattr(made, name)


def _not_made(owner: type, name: str, why: str) -> EntryError:
    return EntryError(
        f"{owner.__name__} cannot be made without arguments ({why}): make one in the module, "
        f"`{owner.__name__.lower()} = {owner.__name__}(...)`, and name {owner.__name__.lower()}.{name}"
    )


def _no_member(owner: Any, name: str, seen: str) -> str:
    names = [other for other in dir(owner) if not other.startswith("__") and callable(getattr(owner, other, None))]
    return f"{seen} has no {name}{_near(name, names) or _some(names, owner)}"


def _near(name: str, names: Iterable[str], prefix: str = "") -> str:
    close = difflib.get_close_matches(name, sorted(names), n=3, cutoff=0.6)
    return f"; did you mean {' or '.join(prefix + other for other in close)}?" if close else ""


def _some(names: list[str], owner: Any) -> str:
    home = getattr(owner, "__name__", None)
    own = [name for name in names if getattr(getattr(owner, name), "__module__", None) == home]
    return f"; it has {', '.join(own[:6])}" if own else ""


def _methods(value: Any) -> str:
    if not inspect.isclass(value):
        return ""
    names = [name for name, member in vars(value).items() if callable(member) and not name.startswith("_")]
    return f"; name a method of it: {value.__name__}.{names[0]}" if names else ""


def _a(value: Any) -> str:
    return a("class" if inspect.isclass(value) else type(value).__name__)
