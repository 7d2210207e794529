"""A function that runs on several devices -> its program for as many of a target, present or not. Runs in a worker.

The code itself makes its meshes and shardings of devices that are here: CPUs, of which there are as many as are asked
for. What jax lowers of it, for whatever platform, says how arrays are spread and over how many devices, not over which.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import partial
from math import prod
from types import ModuleType
from typing import Any

from fusionlint.compiling import arguments, programs
from fusionlint.compiling.artifacts import Job
from fusionlint.compiling.blame import asks_for_mesh
from fusionlint.compiling.devices import devices
from fusionlint.compiling.elsewhere import bytecode
from fusionlint.compiling.entry import EntryError
from fusionlint.compiling.found import Arguments
from fusionlint.compiling.sizes import Axes
from fusionlint.compiling.targets import Target


def cpus_needed(jobs: Iterable[Job], target: Target) -> int:
    """How many CPU devices the jobs ask for: those of their meshes, and of programs that are compiled for CPUs."""
    return max((1, *(_cpus_of(job, target) for job in jobs)))


def _cpus_of(job: Job, target: Target) -> int:
    if job.kind == "program":
        return programs.devices_needed(job.program) if target.platform == "cpu" else 1
    return prod(job.mesh.values())


def mesh_of(axes: Axes, module: ModuleType) -> Any:
    """A jax.sharding.Mesh with those axes: the module's own where it has one, in whatever order, else one of CPUs.
    Raises EntryError."""
    import jax
    import numpy as np

    own = (one for one in vars(module).values() if isinstance(one, jax.sharding.Mesh))
    found = next((one for one in own if dict(one.shape) == dict(axes)), None)
    if found is not None:
        return found
    here, count = jax.devices("cpu"), prod(axes.values())
    if len(here) < count:
        raise EntryError(f"the mesh has {count} devices, and jax was started with {len(here)}: set no device count")
    return jax.sharding.Mesh(np.array(here[:count]).reshape([*axes.values()]), tuple(axes))


def traced(function: Any, given: Arguments, mesh: Any) -> Any:
    """The jax.stages.Traced of `function` with `mesh` set around it, as code that asks for one expects; without where
    the code has a mesh of its own, which jax does not mix with another, or where nothing comes of it."""
    import jax

    around = jax.set_mesh(mesh) if hasattr(jax, "set_mesh") else mesh
    raised: Exception | None = None
    try:
        with around:
            found = arguments.traced(function, given)
        if _is_spread(given) or _SPREADS.search(str(found.jaxpr)):
            return found
    except Exception as error:  # noqa: BLE001 - whatever the code raises is told below, unless it goes well there
        raised = error
    try:
        return arguments.traced(function, given)
    except (RuntimeError, TypeError, ValueError) as error:
        raise raised if raised and asks_for_mesh(error) else error from None


def _is_spread(given: Arguments) -> bool:
    import jax

    return any(arguments.spread_by(one) is not None for one in jax.tree.leaves(given))


# The primitives by which code spreads arrays itself.
_SPREADS = re.compile(r"\b(sharding_constraint|shard_map|reshard|mesh_cast)\b")


def lowered(traced: Any, target: Target, name: str) -> Any:
    """`traced` as a jax.stages.Lowered for so many devices of the target as it is traced for. Raises EntryError, which
    calls it `name`, where there are not so many."""
    module = traced.lower(lowering_platforms=(target.platform,)).compiler_ir("stablehlo")
    return programs.lower(bytecode(module), partial(devices, target), name)
