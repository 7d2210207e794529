"""python alone.py MODULE [ARG]...: `python -m MODULE`, which does not look for modules in the working folder first.

There a user may have a random.py or a types.py, which jax, and Python itself, would import for their own.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence


def command(module: str, *arguments: str) -> Sequence[str]:
    """What runs `module` by this Python, in a process of its own."""
    return [sys.executable, __file__, module, *arguments]


def find_from_here() -> None:
    """Have modules found in the working folder from now on, as `python -m` has."""
    if "" not in sys.path:
        sys.path.insert(0, "")


def _main() -> None:
    own = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120  pathlib is not to be found here
    sys.path[:] = [folder for folder in sys.path if folder and os.path.abspath(folder) != own]  # noqa: PTH100
    import runpy

    del sys.argv[0]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    _main()
