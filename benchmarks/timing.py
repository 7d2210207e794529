"""The forms of the rules' pages as calls that can be timed: of a block what it computes, with arrays of its spec."""

from __future__ import annotations

import functools
import hashlib
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
sys.path.insert(0, str(Path(__file__).parents[1]))  # this checkout's pages, whatever is installed

import fixes as fixes  # for who imports this module: so tests/ is where Python looks
import measuring

from fusionlint.compiling import arguments
from fusionlint.compiling.entry import parse_spec
from fusionlint.compiling.running import prepared
from fusionlint.page import Block, Page, Pair


@dataclass(frozen=True)
class Program:
    """What `jax.jit` compiles of a function, its arrays in a list, and arrays to call it with."""

    jitted: Any
    arrays: list[Any]


def pairs_of(page: Page) -> Iterator[tuple[int, Pair]]:
    """The pairs of a page that have a table, by the number that a finding gives them."""
    return enumerate(pair for pair in page.pairs if page.measured(pair))


def concerns_a_gpu(pair: Pair) -> bool:
    """Not those of tracing, of a CPU's arithmetic and of memory, which donate what they are called with."""
    return not (measuring.is_lowered(pair) or measuring.is_of_flops(pair) or measuring.is_of_memory(pair))


def digest(block: Block) -> str:
    """What tells whether a block is still the one that was timed."""
    return hashlib.sha256(f"{measuring.call_of(block)}\n{block.code}".encode()).hexdigest()[:12]


def program(block: Block, folder: Path, name: str) -> Program:
    """The block's function as a program. Raises JobError and EntryError."""
    return program_of(measuring.spec_of(block, folder, name.replace("-", "_")))


def program_of(spec: str) -> Program:
    """The function that a SPEC names as a program. Raises JobError and EntryError."""
    import jax

    function, given = prepared(parse_spec(spec))
    leaves, tree = jax.tree.flatten(given)
    arrays = [leaf for leaf in leaves if isinstance(leaf, jax.Array)]

    def called(arrays: list[jax.Array]) -> Any:
        given = iter(arrays)  # in the order of the leaves; what is no array is part of the program
        args, kwargs = tree.unflatten([next(given) if isinstance(leaf, jax.Array) else leaf for leaf in leaves])
        return function(*args, **kwargs)

    return Program(jax.jit(called), arrays)


def seconds(function: Callable[..., Any], *given: Any) -> float:
    """How long a call takes until what it returns is there."""
    import jax

    begin = time.perf_counter()
    jax.block_until_ready(function(*given))
    return time.perf_counter() - begin


def seconds_from_python(block: Block, folder: Path, name: str) -> Callable[[], float]:
    """A function that calls one that is run, and not compiled, and says how long that took: with arguments of its own
    for each call, made before, which it may donate."""
    import jax

    entry = parse_spec(measuring.spec_of(block, folder, name.replace("-", "_")))
    function, _ = prepared(entry)

    def called() -> float:
        args, kwargs = jax.block_until_ready(arguments.concrete(entry, function))
        return seconds(functools.partial(function, **kwargs), *args)

    return called
