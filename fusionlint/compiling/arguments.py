"""Entry and its callable -> arguments: abstract ones to compile with, concrete ones to run with. Runs in a worker.

Arrays are inputs of the program; every other value (numbers too) is part of it, closed over under the function's own
name. A function that is already jitted is used as it is, and decides itself what is static.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from types import CodeType, MethodType
from typing import Any

import numpy as np

from fusionlint.compiling import found
from fusionlint.compiling.entry import NO_DIMS, Dims, Entry
from fusionlint.compiling.found import Arguments
from fusionlint.compiling.loading import Function, module
from fusionlint.compiling.values import has_array, is_array, random_array, value_of


def abstract(entry: Entry, function: Function, sharding: Any = None, dims: Dims = NO_DIMS) -> Arguments:
    """The entry's arguments with a jax.ShapeDtypeStruct, placed by `sharding`, for every array. Where the SPEC has
    none they are found beside the function, with the sizes `dims` for its annotations. Raises EntryError."""
    import jax

    def leaf(value: Any) -> Any:
        if not is_array(value):
            return value
        weak = bool(getattr(value, "weak_type", False))
        return jax.ShapeDtypeStruct(value.shape, value.dtype, sharding=sharding, weak_type=weak)

    return jax.tree.map(leaf, _given(entry, function, dims))  # type: ignore[no-any-return]


def concrete(entry: Entry, function: Function) -> Arguments:
    """The entry's arguments with real arrays, the same at every call: floats uniform in [0.1, 1), integers 0 to 2,
    random booleans, real keys. Arrays that an `example_args` gives are kept. Raises EntryError."""
    import jax

    random = np.random.default_rng(0)

    def leaf(value: Any) -> Any:
        return random_array(value, random) if isinstance(value, jax.ShapeDtypeStruct) else value

    return jax.tree.map(leaf, _given(entry, function, NO_DIMS))  # type: ignore[no-any-return]


@dataclass(frozen=True, slots=True)
class Call:
    """Something jitted, and the arguments it is called with: `jitted.trace(*args, **kwargs)`."""

    jitted: Any
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]


def jitted_call(function: Function, arguments: Arguments) -> Call:
    """`function`, jitted unless it is, with its arrays as inputs and its other arguments bound."""
    import jax

    args, kwargs = arguments
    own = _jitted(function)
    if own is not None:
        # A bound method forwards `trace` to its function without its instance: put the instance back.
        self = (function.__self__,) if isinstance(function, MethodType) else ()
        return Call(own, (*self, *args), kwargs)
    if not has_array(arguments):
        return Call(jax.jit(_bind(function, arguments)), (), {})
    if all(is_array(leaf) for leaf in jax.tree.leaves(arguments, is_leaf=_is_none)) and hasattr(function, "__name__"):
        return Call(jax.jit(function), args, kwargs)
    inputs = jax.tree.map(lambda leaf: leaf if is_array(leaf) else None, arguments)
    return Call(jax.jit(_bind(function, arguments)), *inputs)


def _jitted(function: Function) -> Any:
    import jax

    inner = function.__func__ if isinstance(function, MethodType) else function
    return inner if type(inner) is type(jax.jit(_is_none)) else None


def _bind(function: Function, arguments: Arguments) -> Function:
    """`function` of its arrays alone, None elsewhere, with the other arguments as they are; name and signature stay."""
    import jax

    leaves, tree = jax.tree.flatten(arguments, is_leaf=_is_none)

    @functools.wraps(function, updated=())
    def bound(*args: Any, **kwargs: Any) -> Any:
        traced = iter(jax.tree.leaves((args, kwargs)))
        merged = [next(traced) if is_array(leaf) else leaf for leaf in leaves]
        all_args, all_kwargs = jax.tree.unflatten(tree, merged)
        return function(*all_args, **all_kwargs)

    bound.__name__ = name_of(function)
    return bound


def name_of(function: Function) -> str:
    """A name for what may be a partial or a callable object."""
    while isinstance(function, functools.partial):
        function = function.func
    return str(getattr(function, "__name__", type(function).__name__))


def definition(function: Function) -> str:
    """path:line of the user's own function under partials, decorators and jit; "" where Python does not know."""
    code = code_of(function)
    return f"{code.co_filename}:{code.co_firstlineno}" if code else ""


def code_of(function: Function) -> CodeType | None:
    """That of the user's own function, as `definition` finds it."""
    return getattr(found.innermost(function), "__code__", None)


def _is_none(value: object) -> bool:
    return value is None


def _given(entry: Entry, function: Function, dims: Dims) -> Arguments:
    """The arguments with a ShapeDtypeStruct where the SPEC or an annotation gives a shape, checked against the
    function's signature."""
    if entry.args is None:
        given = found.found(function, _named(entry), dims)
    else:
        given = tuple(map(value_of, entry.args)), {name: value_of(argument) for name, argument in entry.kwargs}
    found.check(function, entry.function, given)
    return given


def _named(entry: Entry) -> found.Named:
    say = f"say its arguments, as in `{entry.text}(f32[8,128], key, n=8)`"
    return found.Named(entry.function, (entry.function, entry.function.rpartition(".")[2]), say, module(entry))
