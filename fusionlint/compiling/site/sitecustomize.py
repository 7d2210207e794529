"""Python runs this before a script that `fusionlint run` starts: capture begins once the script has imported jax.

Python looks for a module of this name on its path at every start, and `fusionlint run` puts this folder there: so the
script runs as it would without, under its own name, with its own arguments, tracebacks and exit status. What is changed
for that is put back before the script begins. Little is imported: the script has its own order of imports.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # what typing would say; to import it takes time
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_VARIABLE = "FUSIONLINT_CAPTURE"  # folder, the folder that holds fusionlint, platforms, "all" or "", PYTHONPATH before


class AfterJax:
    """A finder of jax alone: finds it as it would be found, and begins to capture once it is imported."""

    def __init__(self, begin: Callable[[], None]) -> None:
        self.begin = begin

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:  # noqa: ARG002  the import system's own signature
        if name != "jax":
            return None
        sys.meta_path.remove(self)
        from importlib.util import find_spec

        spec: Any = find_spec("jax")
        if spec is not None and hasattr(spec.loader, "exec_module"):
            spec.loader = _Loader(spec.loader, self.begin)
        return spec


class _Loader:
    def __init__(self, loader: Any, begin: Callable[[], None]) -> None:
        self.loader, self.begin = loader, begin

    def create_module(self, spec: Any) -> Any:
        return self.loader.create_module(spec)

    def exec_module(self, module: Any) -> None:
        module.__spec__.loader = module.__loader__ = self.loader
        self.loader.exec_module(module)
        self.begin()


def _begin(folder: str, home: str, platforms: str, everything: str) -> None:
    """Begin to capture; that it cannot must not keep the script from running, and is said in the report."""
    path = list(sys.path)
    sys.path.append(home)  # it may have been found from the working directory
    try:
        from fusionlint.compiling.spool import begin

        begin(folder, tuple(platforms.split(",")), everything == "all")
    except Exception as error:  # noqa: BLE001  whatever a jax that is not known lacks
        with open(os.path.join(folder, "failed.txt"), "w") as file:  # noqa: PTH118, PTH123  pathlib takes time
            file.write(f"{type(error).__name__}: {error}")
    finally:
        sys.path[:] = path


def _start() -> None:
    folder, home, platforms, everything, pythonpath = os.environ.pop(_VARIABLE).split("\n")
    here = __file__.rpartition(os.sep)[0]
    if pythonpath:
        os.environ["PYTHONPATH"] = pythonpath
    else:
        os.environ.pop("PYTHONPATH", None)
    sys.path[:] = [entry for entry in sys.path if entry != here]
    sys.meta_path.insert(0, AfterJax(lambda: _begin(folder, home, platforms, everything)))
    from importlib import import_module

    hidden = sys.modules.pop(__name__)
    try:
        import_module(__name__)  # the one that this one hides
    except ImportError:
        sys.modules[__name__] = hidden


if _VARIABLE in os.environ:
    _start()
