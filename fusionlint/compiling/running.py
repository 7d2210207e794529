"""Runs functions concretely, in a worker on the CPU: counts what their calls cost from Python, compares two outputs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from fusionlint.compiling import arguments, loading
from fusionlint.compiling.blame import blaming
from fusionlint.compiling.entry import Entry
from fusionlint.compiling.found import Arguments
from fusionlint.compiling.loading import Function

COMPILED = "/jax/core/compile/backend_compile_duration"


@dataclass(slots=True)
class Tally:
    """How many programs this process has compiled and executed, and how often Python has waited for arrays; `follow`
    makes it count."""

    compilations: int = 0
    dispatches: int = 0
    transfers: int = 0


def follow(tally: Tally) -> None:
    """Make `tally` count every compilation, dispatch and transfer of this process from now on.

    jax's C++ fast paths execute a cached program without any Python; they are kept from being made, so that every
    execution passes `ExecuteReplicated.__call__`. So call this before any program runs: an earlier one may have its
    fast path already. The names are private, and the same from jax 0.4.38 to 0.12, which has one more.
    """
    import jax.monitoring
    from jax._src import array, lib, pjit
    from jax._src.interpreters import pxla

    execute = pxla.ExecuteReplicated.__call__
    fetch = array.ArrayImpl._value.fget  # noqa: SLF001  what float(), bool(), print() and device_get() read; no public way
    start = array.ArrayImpl.copy_to_host_async
    start_all: Any = getattr(getattr(lib, "_jax", None), "batched_copy_to_host_async", None)  # jax 0.12 has it
    started = _Started()

    def counted(self: Any, *args: Any) -> Any:
        tally.dispatches += 1
        return execute(self, *args)

    def fetched(self: Any) -> Any:
        tally.transfers += self._npy_value is None and started.is_waited_for(self)
        return fetch(self)

    def begun(self: Any) -> None:
        started.add(self)
        start(self)

    def begun_together(arrays: Any) -> None:
        for one in arrays:
            started.add(one)
        start_all(arrays)

    def on_duration(event: str, _seconds: float, **_: Any) -> None:
        tally.compilations += event == COMPILED

    jax.monitoring.register_event_duration_secs_listener(on_duration)
    pjit._get_fastpath_data = _no_fast_path  # noqa: SLF001  what jitted functions call; no public way
    pxla.MeshExecutable.create_cpp_call = _no_fast_path  # of what `.lower().compile()` gives
    pxla.ExecuteReplicated.__call__ = counted
    array.ArrayImpl._value = property(fetched)  # noqa: SLF001
    array.ArrayImpl.copy_to_host_async = begun
    if start_all is not None:
        lib._jax.batched_copy_to_host_async = begun_together  # noqa: SLF001


class _Started:
    """The copies that `copy_to_host_async` has begun, as `jax.device_get` does of all that it is given before it reads
    the first: they come side by side, and are waited for once."""

    def __init__(self) -> None:
        self.together: dict[int, Any] = {}  # by id, and kept, so that no other array takes it
        self.waited = False

    def add(self, array: Any) -> None:
        if self.waited:
            self.together, self.waited = {}, False
        self.together[id(array)] = array

    def is_waited_for(self, array: Any) -> bool:
        """Whether reading `array` now is a wait of its own."""
        if self.together.pop(id(array), None) is None:
            return True
        first, self.waited = not self.waited, True
        return first


def _no_fast_path(*_args: Any, **_kwargs: Any) -> None:
    return None


def count(entry: Entry, tally: Tally, warmup: bool) -> dict[str, int]:
    """Compilations, dispatches and transfers of one call of the entry, its outputs awaited. Raises JobError."""
    function, given = prepared(entry)
    if warmup:
        called(entry, function, given)
        _, given = prepared(entry)  # the first call may have donated its arguments
    before = asdict(tally)
    called(entry, function, given)
    return {quantity: number - before[quantity] for quantity, number in asdict(tally).items()}


def prepared(entry: Entry, like: Entry | None = None) -> tuple[Function, Arguments]:
    """The entry's function, and concrete arguments: its own, or those of the entry `like`. Raises JobError."""
    with blaming("import", entry):
        function = loading.load(entry)
        of = entry if like is None else like
        return function, arguments.concrete(of, loading.load(of))


def called(entry: Entry, function: Function, given: Arguments) -> Any:
    """What the function returns, once it is there. Raises JobError."""
    import jax

    args, kwargs = given
    with blaming("run", entry):
        return jax.block_until_ready(function(*args, **kwargs))


def difference(entry: Entry, other: Entry, *, in_distribution: bool = False) -> str | None:
    """Where the outputs of two functions differ, called with the arguments of `entry`; None where nowhere. Pytrees are
    compared leaf by leaf, whatever holds the leaves: element by element, or by mean and spread. Raises JobError."""
    import jax

    first = jax.tree.leaves(called(entry, *prepared(entry)))
    second = jax.tree.leaves(called(other, *prepared(other, like=entry)))
    if len(first) != len(second):
        return f"{len(first)} outputs against {len(second)}"
    compare = _spread_difference if in_distribution else _element_difference
    found = (_leaf_difference(i, *pair, compare) for i, pair in enumerate(zip(first, second, strict=True)))
    return next(filter(None, found), None)


def _leaf_difference(index: int, one: Any, other: Any, compare: Callable[[Any, Any], str | None]) -> str | None:
    one, other = _plain(one), _plain(other)
    kinds = [f"{array.dtype}{list(array.shape)}" for array in (one, other)]
    if kinds[0] != kinds[1]:
        return f"output {index} is {kinds[0]} against {kinds[1]}"
    found = compare(one, other)
    return found and f"output {index} {found}"


def _element_difference(one: Any, other: Any) -> str | None:
    if one.dtype.kind in "biuSUO":
        where = np.argwhere(np.atleast_1d(one != other))
    else:
        tolerance = _tolerance(one.dtype)
        wide = np.complex128 if one.dtype.kind == "c" else np.float64
        one, other = one.astype(wide), other.astype(wide)
        near = np.isclose(one, other, rtol=tolerance, atol=tolerance, equal_nan=True)
        where = np.argwhere(np.atleast_1d(~near))
    if not len(where):
        return None
    at = tuple(int(i) for i in where[0])
    pair = f"{np.atleast_1d(one)[at]} against {np.atleast_1d(other)[at]}"
    return f"differs at {list(at)}: {pair} ({len(where)} of {one.size} elements)"


def _spread_difference(one: Any, other: Any) -> str | None:
    """Mean and standard deviation within five standard errors of n independent draws."""
    one, other = one.astype(np.float64), other.astype(np.float64)
    room = 5 * max(one.std(), other.std()) / np.sqrt(max(one.size, 1)) + 1e-12
    for name, a, b in (("mean", one.mean(), other.mean()), ("spread", one.std(), other.std())):
        if abs(a - b) > room:
            return f"has a {name} of {a:.6g} against {b:.6g}, more than chance allows ({room:.2g})"
    return None


def _plain(leaf: Any) -> Any:
    """A numpy array; of a typed key, its data."""
    import jax

    if jax.dtypes.issubdtype(getattr(leaf, "dtype", None), jax.dtypes.prng_key):
        leaf = jax.random.key_data(leaf)
    return np.asarray(leaf)


def _tolerance(dtype: Any) -> float:
    """Room for sums in another order: about a thousand roundings of float32, ten of the short floats."""
    return {8: 1e-9, 16: 1e-9, 4: 1e-4}.get(dtype.itemsize, 3e-2) if dtype.kind in "fc" else 3e-2
