"""Programs lowered for another device, in a folder: to be compiled and timed where nothing but jax is installed.

A folder has an index, a line of JSON for each program; the programs as jax.export serializes them; and the arguments,
which all that have one name share."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np
import timing

from fusionlint.compiling.devices import as_where_it_runs

INDEX = "index.jsonl"


@dataclass(frozen=True)
class Exported:
    """A program in a folder: its name there, whose it is, and the fixes in it."""

    file: str
    of: str
    fixes: tuple[str, ...] = ()
    form: str = ""  # of a page: bad, fixed, good


def load(folder: Path, one: Exported) -> timing.Program:
    """A program as it was lowered, with the arguments that all of its name have."""
    exported = jax.export.deserialize(bytearray((folder / one.file).read_bytes()))
    with np.load(folder / f"{one.of}.npz") as stored:
        arrays = [jax.numpy.asarray(stored[f"arr_{i}"]) for i in range(len(stored.files))]
    return timing.Program(jax.jit(exported.call), arrays)


def index(folder: Path) -> dict[str, list[Exported]]:
    """The programs of a folder, by whose they are."""
    found: dict[str, list[Exported]] = {}
    for line in (folder / INDEX).read_text(encoding="utf-8").splitlines():
        one = Exported(**json.loads(line))
        found.setdefault(one.of, []).append(one)
    return found


def save(folder: Path, one: Exported, program: timing.Program, platform: str, *, with_arrays: bool) -> None:
    """A program, and its arrays, if they are no mere shapes. Keys are numbers there, going in and coming out, and what
    is returned is a list: what holds it need not be known where it is timed."""
    kinds = [jax.random.key_impl(array) if _is_key(array) else None for array in program.arrays]

    def called(arrays: list[jax.Array]) -> list[Any]:
        given = [jax.random.wrap_key_data(a, impl=kind) if kind else a for a, kind in zip(arrays, kinds, strict=True)]
        return _plain(jax.tree.leaves(program.jitted(given)))

    arrays = _plain(program.arrays) if with_arrays else jax.eval_shape(_plain, program.arrays)
    export = jax.export.export(jax.jit(called), platforms=(platform,))
    exported = as_where_it_runs(lambda: export(arrays), platform)
    if with_arrays:
        np.savez_compressed(folder / f"{one.of}.npz", *map(np.asarray, arrays))
    (folder / one.file).write_bytes(exported.serialize())


def _is_key(array: Any) -> bool:
    return bool(jax.dtypes.issubdtype(array.dtype, jax.dtypes.prng_key))


def _plain(arrays: Sequence[Any]) -> list[Any]:
    return [jax.random.key_data(array) if _is_key(array) else array for array in arrays]


def add(folder: Path, programs: Sequence[Exported]) -> None:
    """To the index."""
    with (folder / INDEX).open("a", encoding="utf-8") as file:
        file.writelines(json.dumps(asdict(one)) + "\n" for one in programs)
