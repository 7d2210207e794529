"""A call of something jitted -> what is to be kept of it: plain text, no hold on its arrays. Runs where jax runs."""

from __future__ import annotations

import functools
import inspect
import sys
import weakref
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import CodeType, FunctionType, MappingProxyType, MethodType
from typing import Any

from fusionlint.compiling import arguments, libraries
from fusionlint.compiling.entry import array_text
from fusionlint.compiling.given import Given, given, transformed
from fusionlint.compiling.values import WIDEST, a, is_array, short

_LITERALS = (bool, int, float, complex, str, bytes, type(None))
NO_OPTIONS: Mapping[str, Any] = MappingProxyType({})
_DEPTH = 8  # of the tuples in a static argument
_PARTS = 1000  # of a tuple that are compared one by one: a millisecond


class _CannotSayError(Exception):
    """A SPEC has no words for a value."""


@dataclass(frozen=True, slots=True)
class Call:
    """The function that was given to jit: its name and module, where it is defined ("" if Python does not know; the
    column of a lambda), and whether module and name lead to it. `static` are the arguments that are part of the
    program, as text; `spec` all arguments as a SPEC has them, None where it cannot or the function is not plain, or
    where its name leads to the function as it was before jit was given options.
    `identity` tells functions apart without keeping them alive."""

    name: str
    module: str
    defined: str
    column: int
    plain: bool
    static: Mapping[str, str]
    spec: str | None
    identity: Identity = field(compare=False)
    objects: Mapping[str, Identity] = field(compare=False)  # of the static arguments that are no literals
    local: Mapping[str, Identity] = field(compare=False)  # of functions in them that another function made, by name
    given: Given = field(compare=False)


@dataclass(frozen=True, slots=True)
class Identity:
    """Which object a function is, held weakly; of a bound method, its function and its instance."""

    parts: tuple[Any, ...]

    def is_same(self, other: Identity) -> bool:
        """Whether both are one object that still lives."""
        pairs = list(zip(self.parts, other.parts, strict=False))
        return len(self.parts) == len(other.parts) and all(one() is not None and one() is its() for one, its in pairs)


def call_of(
    function: Any,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    argnums: Sequence[int],
    argnames: Sequence[str],
    options: Mapping[str, Any] = NO_OPTIONS,
) -> Call:
    """What is kept of `jit(function, static_argnums=argnums, static_argnames=argnames, **options)(*args, **kwargs)`."""
    parameters = _parameters(function)
    positional = dict(zip(_positions(parameters, len(args)), args, strict=True))
    jits = _static(parameters, positional, kwargs, argnums, argnames)
    users, within = libraries.static_of(function, jits)
    static = {**_bound(function), **users}
    leaves = dict(leaf for name, value in static.items() for leaf in _leaves(name, value, _DEPTH))
    inner = _inner(function)
    name = getattr(inner, "__qualname__", type(inner).__qualname__)
    plain = inner is function and hasattr(function, "__code__") and "<" not in name
    return Call(
        name=name,
        module=getattr(inner, "__module__", "") or "",
        defined=arguments.definition(function),
        column=column_of(arguments.code_of(function)),
        plain=plain,
        static={name: text_of(value) for name, value in static.items()},
        spec=_spec(args, kwargs, {*argnums}, {*argnames}) if plain and not _is_lost(function, options) else None,
        identity=_identity(function),
        objects={name: _identity(value) for name, value in static.items() if not _is_literal(value)},
        local={one.__qualname__: _identity(one) for one in _local(tuple(static.values()), _DEPTH)},
        given=given(
            positional,
            kwargs,
            jits,
            {name: (value, text_of(value)) for name, value in leaves.items() if _is_literal(value)},
            options,
            within,
        ),
    )


def text_of(value: Any) -> str:
    """A static value for people: a literal as Python writes it, a function by its name, anything else by its class.
    The value's own repr is not asked: it may be long, slow, or read arrays."""
    if isinstance(value, _LITERALS):
        text = repr(value)
    elif isinstance(value, (tuple, list)) and type(value) in (tuple, list):
        inner = ", ".join(map(text_of, value[:8])) + (", ..." if len(value) > 8 else "")
        text = f"({inner})" if isinstance(value, tuple) else f"[{inner}]"
    elif is_array(value):
        text = f"{value.dtype}{list(value.shape)}"
    else:
        name = getattr(value, "__qualname__", None)
        text = str(name) if isinstance(name, str) else a(type(value).__qualname__)
    return short(text)


def leads_to(function: Any) -> bool:
    """Whether its module and its qualified name lead to it: to the very object, jitted or not."""
    found: Any = sys.modules.get(getattr(function, "__module__", None) or "")
    for name in getattr(function, "__qualname__", "").split("."):
        found = getattr(found, name, None)
    return found is function


def spec_of(args: Sequence[Any], kwargs: Mapping[str, Any]) -> str | None:
    """All arguments of a function that is explained as a SPEC has them, in which a number stands for itself; None where
    it cannot say them."""
    try:
        by_place = [_said(value, is_literal=True) for value in args]
        by_name = [f"{name}={_said(value, is_literal=True)}" for name, value in kwargs.items()]
    except _CannotSayError:
        return None
    return f"({', '.join([*by_place, *by_name])})"


def in_words(args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
    """The arguments of an explained function, as a SPEC has them where that is short: `(f32[8,4], 3 arrays, n=2)`."""
    parts = [*map(_word, args), *(f"{name}={_word(value)}" for name, value in kwargs.items())]
    return f"({', '.join(parts)})"


def _word(value: Any) -> str:
    import jax

    if is_array(value):
        return array_text(*_abstract(value))
    arrays = sum(map(is_array, jax.tree.leaves(value)))
    if not arrays:
        return text_of(value)
    text = ""
    if type(value) is dict:
        text = "{" + ", ".join(f"{name}: {_word(part)}" for name, part in value.items()) + "}"
    elif type(value) in (tuple, list):
        inner = ", ".join(map(_word, value)) + "," * (type(value) is tuple and len(value) == 1)
        text = f"[{inner}]" if type(value) is list else f"({inner})"
    return text if text and len(text) <= WIDEST else f"{arrays} array{'s' * (arrays > 1)}"


def column_of(code: CodeType | None) -> int:
    """Where the body of a lambda begins, from 1; 0 of other code, or where Python does not know."""
    if code is None or code.co_name != "<lambda>" or not hasattr(code, "co_positions"):
        return 0
    begins = (column for _, _, column, end in code.co_positions() if column is not None and end)
    return next(begins, -1) + 1


def _inner(function: Any) -> Any:
    """The user's own function under partials, vmaps, grads and other wrappers."""
    while True:
        if isinstance(function, functools.partial):
            function = function.func
        elif isinstance(function, MethodType):
            function = function.__func__
        elif hasattr(function, "__wrapped__"):
            function = function.__wrapped__
        else:
            return function


def _bound(function: Any) -> dict[str, Any]:
    """What a partial binds, where it is part of the program: literals and functions, no arrays."""
    if not isinstance(function, functools.partial):
        return {}
    every = {**{f"partial[{i}]": value for i, value in enumerate(function.args)}, **function.keywords}
    return {name: value for name, value in every.items() if not is_array(value)}


def _static(
    parameters: Sequence[inspect.Parameter],
    positional: Mapping[str, Any],
    kwargs: Mapping[str, Any],
    argnums: Sequence[int],
    argnames: Sequence[str],
) -> dict[str, Any]:
    """The static arguments, and the defaults of those that were not given. As in jax a negative number counts from the
    last argument of the call, and a number stands for the name of a parameter that may be given by either."""
    args = [*positional.items()]
    places = sorted({number % len(args) for number in argnums if -len(args) <= number < len(args)})
    found = dict(args[i] for i in places)
    found |= {name: kwargs[name] for name in argnames if name in kwargs}
    numbered = [one.name for i, one in enumerate(parameters) if i in argnums and one.kind is one.POSITIONAL_OR_KEYWORD]
    static = {*argnames, *numbered}
    defaults = {p.name: p.default for p in parameters if p.name in static and p.default is not p.empty}
    return defaults | found


def _positions(parameters: Sequence[inspect.Parameter], count: int) -> list[str]:
    """A name for each of the first `count` arguments that are given by position."""
    names = [one.name for one in parameters if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
    return [names[i] if i < len(names) else f"args[{i}]" for i in range(count)]


def _is_lost(function: Any, options: Mapping[str, Any]) -> bool:
    """Whether options of jit are unknown to who goes by the function's name: `fast = jit(slow, donate_argnums=0)`."""
    return not all(map(_is_default, options.values())) and leads_to(function)


def _is_default(option: Any) -> bool:
    if isinstance(option, tuple):
        return all(map(_is_default, option))
    # From jax 0.12 on, whether to inline is left to jax: Inline.AUTO.
    is_left_open = type(option).__name__ == "UnspecifiedValue" or getattr(option, "name", None) == "AUTO"
    return is_left_open or option is None or option is False


def _parameters(function: Any) -> list[inspect.Parameter]:
    try:
        return [*inspect.signature(function).parameters.values()]
    except (TypeError, ValueError):  # builtins and some callables have none
        return []


def _spec(args: Sequence[Any], kwargs: Mapping[str, Any], argnums: set[int], argnames: set[str]) -> str | None:
    try:
        by_place = [_said(value, is_static={i, i - len(args)} & argnums) for i, value in enumerate(args)]
        by_name = [f"{name}={_said(value, is_static=name in argnames)}" for name, value in kwargs.items()]
    except _CannotSayError:
        return None
    return f"({', '.join([*by_place, *by_name])})"


def _said(value: Any, *, is_static: object = False, is_literal: bool = False) -> str:
    """The value as a SPEC has it; a number is an input of the program unless it `is_literal`. Raises _CannotSayError:
    of a class of its own, a SPEC knows no fields, and what vmap maps has a shape that the program has not."""
    if value is None or isinstance(value, str):
        return repr(value)
    if is_static or (is_literal and type(value) in _LITERALS):
        return _literal(value)
    part = functools.partial(_said, is_literal=is_literal)
    if type(value) in (tuple, list):
        parts = ", ".join(map(part, value))
        comma = "," if type(value) is tuple and len(value) == 1 else ""
        return f"[{parts}]" if type(value) is list else f"({parts}{comma})"
    if type(value) is dict:
        if not all(isinstance(name, (str, int)) for name in value):
            raise _CannotSayError
        return "{" + ", ".join(f"{name!r}: {part(one)}" for name, one in value.items()) + "}"
    if isinstance(value, (bool, int, float, complex)) or (is_array(value) and not transformed(value)):
        return f"{'~' if _is_weak(value) else ''}{array_text(*_abstract(value))}"
    raise _CannotSayError


def _literal(value: Any) -> str:
    if not _is_literal(value):
        raise _CannotSayError
    return repr(value)


def _local(value: Any, depth: int) -> Iterator[Any]:
    """The functions and lambdas in a static argument that were made while another function ran."""
    if isinstance(value, (tuple, list)) and depth:
        for part in value:
            yield from _local(part, depth - 1)
    elif isinstance(value, FunctionType) and "<locals>" in value.__qualname__:
        yield value


def _leaves(name: str, value: Any, depth: int) -> Iterator[tuple[str, Any]]:
    """The value, or what a tuple holds by its places: `sizes[9]`."""
    if type(value) is tuple and depth and len(value) <= _PARTS:
        for i, part in enumerate(value):
            yield from _leaves(f"{name}[{i}]", part, depth - 1)
    else:
        yield name, value


def _is_literal(value: Any) -> bool:
    if type(value) in (tuple, list):
        return all(map(_is_literal, value))
    return type(value) in _LITERALS


def _is_weak(value: Any) -> bool:
    """Whether its dtype gives way to that of others, as a Python number's."""
    return bool(getattr(value, "weak_type", False)) if is_array(value) else not isinstance(value, bool)


def _abstract(value: Any) -> tuple[str, tuple[int, ...]]:
    import jax
    import numpy as np

    if not is_array(value):
        kind = next(kind for kind in (bool, int, float, complex) if isinstance(value, kind))
        return str(jax.dtypes.canonicalize_dtype(np.result_type(kind))), ()
    if jax.dtypes.issubdtype(value.dtype, jax.dtypes.extended):
        return str(value.dtype), tuple(value.shape)
    return str(jax.dtypes.canonicalize_dtype(value.dtype)), tuple(value.shape)


def _identity(function: Any) -> Identity:
    parts = (function.__func__, function.__self__) if isinstance(function, MethodType) else (function,)
    return Identity(tuple(map(_weakly, parts)))


def _weakly(value: Any) -> Any:
    try:
        return weakref.ref(value)
    except TypeError:  # an instance of a class with slots: it is told by its address
        address = id(value)
        return lambda: address
