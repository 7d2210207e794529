"""Entry and its callable -> arguments: abstract ones to compile with, concrete ones to run with. Runs in a worker.

Arrays are inputs of the program; every other value (numbers too) is part of it, closed over under the function's own
name. A function that is already jitted is used as it is, and decides itself what is static.
"""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MethodType
from typing import Any, TypeAlias

import numpy as np

from fusionlint.compiling.entry import DTYPES, WAYS, Argument, Array, Entry, EntryError, Group, Key, Static
from fusionlint.compiling.loading import Function, module

Arguments: TypeAlias = "tuple[tuple[Any, ...], dict[str, Any]]"


def abstract(entry: Entry, function: Function, sharding: Any = None) -> Arguments:
    """The entry's arguments with a jax.ShapeDtypeStruct, placed by `sharding`, for every array. Raises EntryError."""
    import jax

    def leaf(value: Any) -> Any:
        if not is_array(value):
            return value
        weak = bool(getattr(value, "weak_type", False))
        return jax.ShapeDtypeStruct(value.shape, value.dtype, sharding=sharding, weak_type=weak)

    return jax.tree.map(leaf, _given(entry, function))  # type: ignore[no-any-return]


def concrete(entry: Entry, function: Function) -> Arguments:
    """The entry's arguments with real arrays, the same at every call: floats uniform in [0.1, 1), integers 0 to 2,
    random booleans, real keys. Arrays that an `example_args` gives are kept. Raises EntryError."""
    import jax

    random = np.random.default_rng(0)

    def leaf(value: Any) -> Any:
        return _array(value, random) if isinstance(value, jax.ShapeDtypeStruct) else value

    return jax.tree.map(leaf, _given(entry, function))  # type: ignore[no-any-return]


def is_array(value: Any) -> bool:
    """True of jax's and numpy's arrays and scalars, and of jax.ShapeDtypeStruct."""
    return hasattr(value, "shape") and hasattr(value, "dtype") and not inspect.isclass(value)


@dataclass(frozen=True, slots=True)
class Call:
    """Something jitted, and the arguments it is called with: `jitted.trace(*args, **kwargs)`."""

    jitted: Any
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]


def jitted_call(function: Function, arguments: Arguments, sharding: Any = None) -> Call:
    """`function`, jitted unless it is, with its arrays as inputs and its other arguments bound.

    `sharding` places the outputs of a function without array arguments, which nothing else places."""
    import jax

    args, kwargs = arguments
    arrays = [leaf for leaf in jax.tree.leaves(arguments) if is_array(leaf)]
    own = _jitted(function)
    if own is not None and arrays:
        # A bound method forwards `trace` to its function without its instance: put the instance back.
        self = (function.__self__,) if isinstance(function, MethodType) else ()
        return Call(own, (*self, *args), kwargs)
    if not arrays:
        return Call(jax.jit(_bind(function, arguments), out_shardings=sharding), (), {})
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
    while isinstance(function, functools.partial):
        function = function.func
    function = inspect.unwrap(function)
    if not hasattr(function, "__code__"):
        function = inspect.unwrap(type(function).__call__)
    code = getattr(function, "__code__", None)
    return f"{code.co_filename}:{code.co_firstlineno}" if code else ""


def _is_none(value: object) -> bool:
    return value is None


def _given(entry: Entry, function: Function) -> Arguments:
    """The arguments with a ShapeDtypeStruct where the SPEC or an annotation gives a shape, checked against the
    function's signature."""
    if entry.args is None:
        args, kwargs = _found(entry, function)
    else:
        args = tuple(value_of(argument) for argument in entry.args)
        kwargs = {name: value_of(argument) for name, argument in entry.kwargs}
    signature = _signature(function)
    if signature is not None:
        try:
            signature.bind(*args, **kwargs)
        except TypeError as error:
            given = ", ".join([*map(_show, args), *(f"{name}={_show(value)}" for name, value in kwargs.items())])
            raise EntryError(f"{entry.function}{signature} does not take ({given}): {error}") from None
    return args, kwargs


def _found(entry: Entry, function: Function) -> Arguments:
    """Arguments of a SPEC without parentheses: `example_args`, none needed, or jaxtyping annotations."""
    signature = _signature(function)
    needed = [p for p in signature.parameters.values() if _is_needed(p)] if signature else []
    if not needed and signature is not None:
        return (), {}
    examples = getattr(function, "example_args", None)
    if examples is None:
        examples = getattr(module(entry), "example_args", None)
    if isinstance(examples, Mapping):
        examples = examples.get(entry.function, examples.get(entry.function.rpartition(".")[2]))
    if examples is not None:
        return tuple(examples) if isinstance(examples, (tuple, list)) else (examples,), {}
    annotated = [_of_annotation(parameter.annotation) for parameter in needed]
    if needed and None not in annotated:
        values = {p.name: value_of(a) for p, a in zip(needed, annotated, strict=True) if a is not None}
        by_position = [values[p.name] for p in needed if p.kind is not p.KEYWORD_ONLY]
        return tuple(by_position), {p.name: values[p.name] for p in needed if p.kind is p.KEYWORD_ONLY}
    shown = f"{entry.function}{signature or '(...)'}"
    raise EntryError(f"{shown} needs arguments: {WAYS.format(text=entry.text)}")


def _is_needed(parameter: inspect.Parameter) -> bool:
    variadic = (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    return parameter.default is parameter.empty and parameter.kind not in variadic


def _signature(function: Function) -> inspect.Signature | None:
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):  # builtins and some callables have none
        return None


_ANNOTATION = re.compile(r"""(?:\w+\.)*(\w+)\[[^\]]*?,\s*["']([\d\s]*)["']\]""")
_KINDS = {"Float": "float32", "Int": "int32", "UInt": "uint32", "Bool": "bool", "Complex": "complex64"}


def _of_annotation(annotation: Any) -> Array | Key | None:
    """What jaxtyping's `Float[Array, "8 128"]` says, from its text (also its class's name); None if it is another."""
    text = annotation.__name__ if inspect.isclass(annotation) else str(annotation)
    found = _ANNOTATION.fullmatch(text.strip("\"' "))
    if found is None:
        # PRNGKeyArray, as a string, or as what jaxtyping defines it to be: a Union that begins with Key.
        return Key(()) if re.search(r"PRNGKeyArray$|Union\[jaxtyping\.Key\[|^jaxtyping\.Key\[.* \| ", text) else None
    shape = tuple(int(dim) for dim in found[2].split())
    dtype = _KINDS.get(found[1]) or DTYPES.get(found[1].lower())
    return Array(dtype, shape) if dtype else Key(shape) if found[1] == "Key" else None


def value_of(argument: Argument) -> Any:
    """What a SPEC's argument stands for, with a jax.ShapeDtypeStruct for every array. Raises EntryError."""
    match argument:
        case Static(value=value):
            return value
        case Group(kind="dict", parts=parts, names=names):
            return dict(zip(names, map(value_of, parts), strict=True))
        case Group(kind=kind, parts=parts):
            return tuple(map(value_of, parts)) if kind == "tuple" else list(map(value_of, parts))
    return _struct(argument)


def _struct(argument: Array | Key) -> Any:
    import jax

    if isinstance(argument, Key):
        return jax.ShapeDtypeStruct(argument.shape, jax.eval_shape(jax.random.key, 0).dtype)
    dtype = jax.numpy.dtype(argument.dtype)
    if jax.dtypes.canonicalize_dtype(dtype) != dtype:
        short = jax.dtypes.canonicalize_dtype(dtype)
        raise EntryError(f"{_show(argument)}: jax runs in 32 bits; write {short}, or set JAX_ENABLE_X64=1")
    return jax.ShapeDtypeStruct(argument.shape, dtype)


def _array(struct: Any, random: np.random.Generator) -> Any:
    import jax

    if jax.dtypes.issubdtype(struct.dtype, jax.dtypes.prng_key):
        seed = jax.random.key(int(random.integers(2**31)))
        return jax.random.split(seed, struct.shape) if struct.shape else seed
    kind = np.dtype(struct.dtype).kind
    if kind == "b":
        values = random.integers(0, 2, struct.shape).astype(bool)
    elif jax.numpy.issubdtype(struct.dtype, jax.numpy.integer):
        values = random.integers(0, 3, struct.shape)
    else:
        values = random.uniform(0.1, 1.0, struct.shape)
    return jax.numpy.asarray(values, dtype=struct.dtype)


def _show(value: Any) -> str:
    """As a SPEC would write it."""
    if isinstance(value, Array) or is_array(value):
        return f"{value.dtype}[{','.join(map(str, value.shape))}]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name}: {_show(part)}" for name, part in value.items()) + "}"
    if isinstance(value, (tuple, list)):
        inner = ", ".join(map(_show, value))
        return f"[{inner}]" if isinstance(value, list) else f"({inner})"
    return repr(value)
