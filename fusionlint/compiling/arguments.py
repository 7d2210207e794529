"""Entry and its callable -> arguments: abstract ones to compile with, concrete ones to run with. Runs in a worker.

Arrays are inputs of the program; every other value (numbers too) is part of it, closed over under the function's own
name. A function that is already jitted is used as it is, and decides itself what is static.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from inspect import Parameter
from types import CodeType, MethodType
from typing import Any

import numpy as np

from fusionlint.compiling import found, libraries
from fusionlint.compiling.entry import Entry
from fusionlint.compiling.found import Arguments
from fusionlint.compiling.loading import Function, module
from fusionlint.compiling.sizes import NO_DIMS, Dims
from fusionlint.compiling.values import has_array, is_array, random_array, value_of


def abstract(
    entry: Entry, function: Function, sharding: Any = None, dims: Dims = NO_DIMS, mesh: Any = None
) -> Arguments:
    """The entry's arguments with a jax.ShapeDtypeStruct for every array: placed by `sharding`, or, where there is a
    `mesh`, as they say themselves. Where the SPEC has none they are found beside the function, with the sizes `dims`
    for its annotations. Raises EntryError."""

    def leaf(value: Any) -> Any:
        return shaped(value, spread_by(value) if mesh is not None else sharding) if is_array(value) else value

    return libraries.mapped(leaf, _given(entry, function, dims, mesh))  # type: ignore[no-any-return]


def shaped(array: Any, sharding: Any = None) -> Any:
    """The jax.ShapeDtypeStruct of an array, or of another one, with that sharding."""
    import jax

    weak = bool(getattr(array, "weak_type", False))
    return jax.ShapeDtypeStruct(array.shape, array.dtype, sharding=sharding, weak_type=weak)


def spread_by(array: Any) -> Any:
    """The sharding of an array that is placed on several devices; None of any other."""
    sharding = getattr(array, "sharding", None)
    return sharding if len(getattr(sharding, "device_set", ())) > 1 else None


def concrete(entry: Entry, function: Function) -> Arguments:
    """The entry's arguments with real arrays, the same at every call: floats uniform in [0.1, 1), integers 0 to 2,
    random booleans, real keys. Arrays that an `example_args` gives are kept. Raises EntryError."""
    import jax

    random = np.random.default_rng(0)

    def leaf(value: Any) -> Any:
        return random_array(value, random) if isinstance(value, jax.ShapeDtypeStruct) else value

    return libraries.mapped(leaf, _given(entry, function))  # type: ignore[no-any-return]


def traced(function: Function, arguments: Arguments) -> Any:
    """The jax.stages.Traced of `function`, jitted unless it is, with its arrays as inputs and its other arguments
    bound. A plain function that writes into modules of flax nnx is traced as nnx.jit does it, which returns them."""
    function, args, kwargs = libraries.unbound(function)
    arguments = (*args, *arguments[0]), kwargs | arguments[1]
    own = _jitted(function)
    if own is not None:
        # A bound method forwards `trace` to its function without its instance: put the instance back.
        self = (function.__self__,) if isinstance(function, MethodType) else ()
        found = own.trace(*self, *arguments[0], **arguments[1])
        return getattr(found, "traced", found)  # nnx wraps it
    if not libraries.nnx_of(arguments):
        return _traced_by_jax(function, arguments)
    written: list[bool] = []
    args, kwargs = _inputs(arguments, libraries.is_nnx)
    bound = _bind(libraries.watched(function, written), arguments, libraries.is_nnx)
    found = libraries.nnx_jit(bound).trace(*args, **kwargs).traced
    # nnx.jit returns whole modules, and copies what is as it was: not the program of who only reads them.
    return found if any(written) else _traced_by_jax(function, arguments)


def _traced_by_jax(function: Function, arguments: Arguments) -> Any:
    import jax

    args, kwargs = arguments
    options = {}
    if libraries.is_filter_jitted(function):
        options = libraries.donated(function, args, kwargs)
        function = libraries.filtered(function)
    if not has_array(arguments):
        return jax.jit(_bind(function, arguments)).trace()
    only_arrays = all(is_array(leaf) for leaf in jax.tree.leaves(arguments, is_leaf=_is_none))
    if only_arrays and hasattr(function, "__name__") and _is_hashable(function):
        return jax.jit(function, **options).trace(*args, **kwargs)
    args, kwargs = _inputs(arguments)
    return jax.jit(_bind(function, arguments), **options).trace(*args, **kwargs)


def _is_hashable(function: Function) -> bool:
    """As what jax.jit is given has to be: a bound method of equinox, of a module that holds arrays, is not."""
    try:
        hash(function)
    except TypeError:
        return False
    return True


def _jitted(function: Function) -> Any:
    import jax

    inner = function.__func__ if isinstance(function, MethodType) else function
    return inner if type(inner) is type(jax.jit(_is_none)) or libraries.is_nnx_jitted(inner) else None


def _inputs(arguments: Arguments, is_whole: Callable[[Any], bool] = lambda _: False) -> Arguments:
    """The arrays and what is to be an input as a whole, None elsewhere."""
    import jax

    def leaf(one: Any) -> Any:
        return one if is_array(one) or is_whole(one) else None

    return jax.tree.map(leaf, arguments, is_leaf=is_whole)  # type: ignore[no-any-return]


def _bind(function: Function, arguments: Arguments, is_whole: Callable[[Any], bool] = lambda _: False) -> Function:
    """`function` of its `_inputs` alone, with the other arguments as they are; name and signature stay."""
    import jax

    leaves, tree = jax.tree.flatten(arguments, is_leaf=lambda one: one is None or is_whole(one))

    @functools.wraps(function, updated=())
    def bound(*args: Any, **kwargs: Any) -> Any:
        given = iter(jax.tree.leaves((args, kwargs), is_leaf=is_whole))
        merged = [next(given) if is_array(leaf) or is_whole(leaf) else leaf for leaf in leaves]
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


def _given(entry: Entry, function: Function, dims: Dims = NO_DIMS, mesh: Any = None) -> Arguments:
    """The arguments with a ShapeDtypeStruct where the SPEC or an annotation gives a shape, checked against the
    function's signature. Of a SPEC that spreads one of its arrays over a mesh, each device has all of the others; one
    that spreads none leaves it to the function."""
    if entry.args is None:
        given = found.found(function, _named(entry, function), dims)
    else:
        on = mesh if entry.axes else None
        home = module(entry)
        by_name = {name: value_of(argument, on, home) for name, argument in entry.kwargs}
        given = tuple(value_of(argument, on, home) for argument in entry.args), by_name
    found.check(function, entry.function, given)
    return given


def _named(entry: Entry, function: Function) -> found.Named:
    say = f"say its arguments, as in `{entry.text}({_sample(function)})`"
    record = "; or record a run: `fusionlint run --record r.json train.py`, then `--recorded r.json`"
    return found.Named(entry.function, (entry.function, entry.function.rpartition(".")[2]), say, module(entry), record)


# What stands in a sample for a parameter with such an annotation.
_SAMPLES = {"int": "8", "float": "0.5", "bool": "True", "str": '"name"'}


def _sample(function: Function) -> str:
    """Arguments as a SPEC says them, by the function's own names; which is an array is for the user to know."""
    signature = found.signature_of(function)
    needed = [one for one in signature.parameters.values() if found.is_needed(one)] if signature else []
    return ", ".join(map(_sample_of, needed)) or "f32[8,128], key, n=8"


def _sample_of(parameter: Parameter) -> str:
    name, said = parameter.name, parameter.annotation
    usual = "key" if "key" in name or "rng" in name else "f32[8,128]"
    value = _SAMPLES.get(said if isinstance(said, str) else getattr(said, "__name__", ""), usual)
    return value if parameter.kind is parameter.POSITIONAL_ONLY else f"{name}={value}"
