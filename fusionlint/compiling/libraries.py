"""What flax nnx and equinox do around jax.jit: modules that a function writes into, and values that are no arrays.

Neither is imported here: what the program did not import it does not use. Runs in a worker, or where the program runs.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Mapping
from types import MethodType
from typing import Any

from fusionlint.compiling.values import is_array

Function = Callable[..., Any]
_BY_PLACE = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def is_nnx(value: Any) -> bool:
    """Whether it is a module of flax nnx, an optimizer, a variable: jax.jit forgets what a function writes into it."""
    nnx = sys.modules.get("flax.nnx")
    return nnx is not None and isinstance(value, (getattr(nnx, "Pytree", nnx.Object), nnx.Variable))


def nnx_of(values: Any) -> list[Any]:
    """Those of a pytree, outermost ones."""
    import jax

    return [one for one in jax.tree.leaves(values, is_leaf=is_nnx) if is_nnx(one)]


def mapped(leaf: Function, values: Any) -> Any:
    """As `jax.tree.map(leaf, values)`, which would part what modules of nnx share (tied weights)."""
    import jax

    leaves, tree = jax.tree.flatten(values, is_leaf=is_nnx)
    nodes = [one for one in leaves if is_nnx(one)]
    if nodes:
        nnx = sys.modules["flax.nnx"]
        graph, state = nnx.split(nodes)
        nodes = nnx.merge(graph, jax.tree.map(leaf, state))
    after = iter(nodes)
    return tree.unflatten([next(after) if is_nnx(one) else leaf(one) for one in leaves])


def nnx_jit(function: Function) -> Any:
    """What returns also what the function writes into the modules it is given."""
    return sys.modules["flax.nnx"].jit(function)


def is_nnx_jitted(function: Function) -> bool:
    """Whether it is what nnx.jit returns, of which there are several kinds."""
    if "flax.nnx" not in sys.modules:
        return False
    return type(function).__module__ == type(nnx_jit(is_nnx)).__module__ and hasattr(type(function), "trace")


def watched(function: Function, written: list[bool]) -> Function:
    """`function`, which notes as it is traced whether it has written into modules of nnx among its arguments."""
    import jax

    @functools.wraps(function, updated=())
    def watching(*args: Any, **kwargs: Any) -> Any:
        nodes = nnx_of((args, kwargs))
        before = jax.tree.leaves(nodes)
        returned = function(*args, **kwargs)
        after = jax.tree.leaves(nodes)
        written.append([*map(id, before)] != [*map(id, after)])
        return returned

    return watching


def is_filter_jitted(function: Function) -> bool:
    """Whether it is what equinox.filter_jit returns."""
    equinox = sys.modules.get("equinox")
    return equinox is not None and type(function) is type(equinox.filter_jit(is_nnx))


def filtered(function: Function) -> Function:
    """`function` with the results of the program that equinox.filter_jit makes: those that are arrays, and a number of
    its own that it waits for."""
    import jax

    @functools.wraps(function, updated=())
    def filtering(*args: Any, **kwargs: Any) -> Any:
        returned = function(*args, **kwargs)
        return jax.numpy.array(0), jax.tree.map(lambda leaf: leaf if is_array(leaf) else None, returned)

    return filtering


def donated(function: Function, args: Any, kwargs: Any) -> dict[str, Any]:
    """Options of jax.jit for what a function that is filter_jitted donates: its first argument, the others, or all."""
    first, rest = function.donate_first, function.donate_rest  # type: ignore[attr-defined]
    numbers = [number for number in range(len(args)) if (rest if number else first)]
    return {"donate_argnums": numbers, "donate_argnames": [*kwargs] if rest else []}


def static_of(function: Function, static: Mapping[str, Any]) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """The static arguments of what was given to jit by the names that the user gave them, and the arguments that they
    lie in: equinox.filter_jit hands over one tuple for all, of leaves and their trees."""
    import jax

    code = getattr(function, "__code__", None)
    if [*static] != ["static"] or code is None or not code.co_filename.endswith("equinox/_jit.py"):
        return static, {}
    try:
        own, first, (rest, named) = (tree.unflatten(leaves) for leaves, tree in static["static"])
        names = [one.name for one in inspect.signature(own).parameters.values() if one.kind in _BY_PLACE]
    # Classes of the user's are made here with None for their arrays, which they may refuse.
    except Exception:  # noqa: BLE001
        return static, {}
    by_place = {names[i] if i < len(names) else f"args[{i}]": one for i, one in enumerate((first, *rest))}
    every = {**by_place, **named}
    paths, _ = jax.tree_util.tree_flatten_with_path(every)
    return {f"{keys[0].key}{jax.tree_util.keystr(keys[1:])}": leaf for keys, leaf in paths}, every


def unbound(function: Function) -> tuple[Function, tuple[Any, ...], dict[str, Any]]:
    """The function below what binds it to a module, and the arguments that are bound: what is jitted by nnx or equinox
    takes the module as one of its arguments, and what writes into a module of nnx must."""
    if isinstance(function, MethodType) and is_nnx(function.__self__):
        return function.__func__, (function.__self__,), {}
    inner = getattr(function, "func", None)
    if callable(inner) and (is_nnx_jitted(inner) or is_filter_jitted(inner)):
        return inner, tuple(function.args), dict(function.keywords)  # type: ignore[attr-defined]
    if is_nnx(function):
        return type(function).__call__, (function,), {}
    return function, (), {}
