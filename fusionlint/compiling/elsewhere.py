"""In the process of a program: what jax traced there, lowered for hardware that is not there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

from fusionlint.compiling.devices import allow_callbacks
from fusionlint.compiling.rule_lines import rule_lines_shown

_NUMBERS = count()


@cache
def exclude_own_frames() -> None:
    """The user's lines are shown, and who called them, not this package in between."""
    from jax._src import source_info_util  # jax.extend has it too, and imports Pallas first

    source_info_util.register_exclusion(f"{Path(__file__).parents[1]}/")


@contextmanager
def lowering_elsewhere() -> Iterator[None]:
    """Inside, programs can be lowered for hardware that is not there, with the whole call path to every line."""
    import jax
    from jax._src.interpreters import mlir

    wanted = {"jax_include_full_tracebacks_in_locations": True, "jax_traceback_in_locations_limit": -1}
    before = {name: jax.config.values[name] for name in wanted}
    get_backend = getattr(mlir.ModuleContext, "get_backend", None)
    allow_callbacks()
    exclude_own_frames()
    try:
        for name, value in wanted.items():
            jax.config.update(name, value)
        with rule_lines_shown():
            yield
    finally:
        if get_backend is not None:
            mlir.ModuleContext.get_backend = get_backend
        for name, value in before.items():
            jax.config.update(name, value)


@contextmanager
def tracing_anew() -> Iterator[None]:
    """Inside, jax traces what it has traced before: what it has kept has the call path of then, another caller's."""
    import jax

    # It says what to leave out of the names of files. What matches nothing changes only by what jax finds its own.
    name = "jax_hlo_source_file_canonicalization_regex"
    before = jax.config.values.get(name)
    nothing = f"(?!){next(_NUMBERS)}"
    try:
        if name in jax.config.values:
            jax.config.update(name, f"{before}|{nothing}" if before else nothing)
        yield
    finally:
        if name in jax.config.values:
            jax.config.update(name, before)


def bytecode(module: Any) -> bytes:
    """A StableHLO module with its source lines."""
    from jax._src.interpreters import mlir

    return bytes(mlir.module_to_bytecode(module))


def platforms_of(lowered: Any) -> tuple[str, ...]:
    """Those that a jax.stages.Lowered was lowered for; () where this jax does not say."""
    lowering = getattr(lowered, "_lowering", None)
    found = getattr(lowering, "_platforms", None) or getattr(lowering, "compile_args", {}).get("platforms")
    return tuple(found or ())
