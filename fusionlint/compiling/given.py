"""How a call was given its arguments -> what a compilation depends on beside shapes and static values, as plain text
and numbers, no hold on anything. Runs where jax runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from fusionlint.compiling.values import is_array, short

_NODES = 100  # containers and traced arrays of an argument that are looked at: a millisecond at most
_TRANSFORMATIONS = {"JVPTracer": "differentiated", "LinearizeTracer": "differentiated"}


@dataclass(frozen=True, slots=True)
class Given:
    """`ways` says of each argument whether it was given by position or by name; `kinds` what the containers are that
    arrays come in, and which transformation is at work on an array, by path (`p['w']`), with a hash of what else jax
    knows of a container; `tree` is a hash of all of that structure. `values` are hashes and texts of static literals,
    which may be cut, and may lie in tuples whose text is; `options` are those of jit."""

    ways: Mapping[str, str] = field(default_factory=dict)
    kinds: Mapping[str, tuple[str, int | None]] = field(default_factory=dict)
    tree: int = 0
    values: Mapping[str, tuple[int, str]] = field(default_factory=dict)
    options: Mapping[str, str] = field(default_factory=dict)


def given(
    positional: Mapping[str, Any],
    named: Mapping[str, Any],
    static: Mapping[str, Any],
    literals: Mapping[str, tuple[Any, str]],
    options: Mapping[str, Any],
    within: Mapping[str, Any],
) -> Given:
    """Of a call with these arguments by name, of which `static` are part of the program; `literals` are those of them
    that Python can write, and their texts, `within` the pytrees that some of them lie in."""
    import jax

    arrays = {name: value for name, value in {**positional, **named}.items() if name not in static}
    every = {**arrays, **within}
    kinds = (kind for name, value in every.items() for kind in islice(_kinds(name, value), _NODES))
    return Given(
        ways={**dict.fromkeys(positional, "by position"), **dict.fromkeys(named, "by name")},
        kinds=dict(kinds),
        tree=hash(jax.tree.structure(every)),
        values={name: (found, text) for name, (value, text) in literals.items() if (found := _hash(value)) is not None},
        options={name: str(value) for name, value in options.items()},
    )


def otherwise(old: Given, new: Given) -> Iterator[str]:
    """What is otherwise at `new` than at `old`, one line each."""
    ways = [name for name in {**old.ways, **new.ways} if old.ways.get(name) != new.ways.get(name)]
    for name in ways:
        yield f"{name}: {_way(old, name)} -> {_way(new, name)}"
    for name in {**old.values, **new.values}:
        if old.values.get(name) != new.values.get(name):
            yield f"{name} (static): {_other_value(old.values.get(name), new.values.get(name))}"
    for name, option in new.options.items():
        if option != old.options.get(name, option):
            yield f"{name} of jit: {short(old.options[name])} -> {short(option)}"
    if not ways:
        kinds = [*_other_kinds(old.kinds, new.kinds)]
        yield from kinds
        if not kinds and old.tree != new.tree:
            yield "the same arrays in another pytree"


def _other_value(old: tuple[int, str] | None, new: tuple[int, str] | None) -> str:
    if old is None:
        return f"new, {new[1]}" if new else ""
    if new is None:
        return f"gone, was {old[1]}"
    return f"{old[1]} -> {new[1]}" if old[1] != new[1] else "another value, which begins alike"


def transformed(value: Any) -> str:
    """What is at work on a traced array: `mapped by vmap over axis 0`; "" for one with values."""
    import jax

    said = []
    while isinstance(value, jax.core.Tracer):
        axis, kind = getattr(value, "batch_dim", None), type(value).__name__
        said.append(f"mapped by vmap over axis {axis}" if kind == "BatchTracer" else _TRANSFORMATIONS.get(kind, kind))
        value = getattr(value, "val", None)
    return ", ".join(said)


def _way(one: Given, name: str) -> str:
    return f"given {one.ways[name]}" if name in one.ways else "not given"


def _other_kinds(old: Mapping[str, tuple[str, int | None]], new: Mapping[str, tuple[str, int | None]]) -> Iterator[str]:
    for path in {**old, **new}:
        if old.get(path) != new.get(path):
            (before, _), (after, _) = old.get(path, ("", None)), new.get(path, ("", None))
            change = f"{before} -> {after}" if before and after else after or f"no longer {before}"
            yield f"{path}: {f'{after} with other static fields' if before == after else change}"


def _kinds(path: str, value: Any) -> Iterator[tuple[str, tuple[str, int | None]]]:
    """The value and the containers in it, each before what it holds."""
    import jax

    if transformation := transformed(value):
        yield path, (transformation, None)
    if is_array(value) or isinstance(value, (bool, int, float, complex)):
        return
    parts, tree = jax.tree_util.tree_flatten_with_path(value, is_leaf=lambda one: one is not value)
    node = tree.node_data()
    if node is None and value is not None:  # what jax takes for an array
        return
    # The fields of a class that are no arrays are part of the program; their own text may be long, or slow.
    yield path, ("None" if value is None else type(value).__name__, _hash(node))
    for keys, part in parts:
        yield from _kinds(f"{path}{''.join(map(str, keys))}", part)


def _hash(value: Any) -> int | None:
    try:
        return hash(value)
    except TypeError:
        return None
