"""What stands for an array, in a SPEC or a text -> a jax.ShapeDtypeStruct, or a real array."""

from __future__ import annotations

import difflib
import inspect
import re
from types import ModuleType
from typing import Any

import numpy as np

from fusionlint.compiling.entry import Argument, Array, EntryError, Group, Key, Named, Spread, Static, parse_argument

WIDEST = 60  # characters of a value, said to people
_SHAPED = re.compile(r"\s*~?\w+\[[^\]]*\]?\s*")  # what means an array, and is a mistake where it is none


def short(text: str) -> str:
    """What a value is said to be, cut where that is long."""
    return text if len(text) <= WIDEST else text[: WIDEST - 3] + "..."


def a(noun: str) -> str:
    """`a Config`, `an Optimizer`."""
    return f"{'an' if noun[:1] in 'aeiouAEIOU' else 'a'} {noun}"


def is_array(value: Any) -> bool:
    """True of jax's and numpy's arrays and scalars, and of jax.ShapeDtypeStruct."""
    try:
        return hasattr(value, "shape") and hasattr(value, "dtype") and not inspect.isclass(value)
    except Exception:  # noqa: BLE001 - a class of the user's that looks names up in a dict, and raises KeyError
        return False


def has_array(value: Any) -> bool:
    """Whether a pytree holds an array."""
    import jax

    return any(map(is_array, jax.tree.leaves(value)))


def value_of(argument: Argument, mesh: Any = None, module: ModuleType | None = None) -> Any:
    """What a SPEC's argument stands for, with a jax.ShapeDtypeStruct for every array, placed on `mesh` as the SPEC says
    where there is one, and for a name what `module` has under it. Raises EntryError."""
    match argument:
        case Static(value=value):
            return value
        case Named(name=name):
            return _named(name, module)
        case Group(kind="dict", parts=parts, names=names):
            return dict(zip(names, (value_of(part, mesh, module) for part in parts), strict=True))
        case Group(kind=kind, parts=parts):
            values = [value_of(part, mesh, module) for part in parts]
            return tuple(values) if kind == "tuple" else values
    return _struct(argument, mesh)


def _named(name: str, module: ModuleType | None) -> Any:
    if module is None:
        raise EntryError(f"`{name}` is a name in a SPEC alone: give the value itself")
    value: Any = module
    for part in name.split("."):
        try:
            value = getattr(value, part)
        except AttributeError:
            raise EntryError(_not_there(name, part, value)) from None
    return value


def _not_there(name: str, part: str, owner: Any) -> str:
    near = difflib.get_close_matches(part, [one for one in dir(owner) if not one.startswith("__")], n=1)
    hint = f"did you mean {near[0]}?" if near else f'write "{name}" for a string, f32[8,128] for an array'
    where = getattr(owner, "__name__", type(owner).__name__)
    return f"`{name}` in the SPEC: {where} has no {part}; {hint}"


def value_of_text(text: str) -> Any:
    """What "f32[8,4]" or "key" stands for; any other string is itself. Raises EntryError for what is meant to be an
    array and is none."""
    try:
        value = value_of(parse_argument(text))
    except EntryError:
        if _SHAPED.fullmatch(text):
            raise
        return text
    return value if has_array(value) else text


def spread_over(mesh: Any, spread: Spread) -> Any:
    """The sharding of an array on `mesh`, whose dimensions are spread over those axes; whole on each device if ()."""
    import jax

    return jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec(*(axes or None for axes in spread)))


def default_dtypes() -> tuple[str, ...]:
    """What jax makes of Python's numbers, float first, in the settings of this process."""
    import jax

    wide = ("float64", "int64", "bool", "uint64", "complex128")
    return tuple(str(jax.dtypes.canonicalize_dtype(name)) for name in wide)


def random_array(struct: Any, random: np.random.Generator) -> Any:
    """A real array for a jax.ShapeDtypeStruct: floats uniform in [0.1, 1), integers 0 to 2, booleans, real keys."""
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


def show(value: Any) -> str:
    """As a SPEC would write it, where that is short; of what no SPEC can write, and holds arrays, how many."""
    if isinstance(value, Array) or is_array(value):
        dims = f"[{','.join(map(str, value.shape))}]"
        if str(value.dtype).startswith("key<"):
            return f"key{dims}" if value.shape else "key"
        return f"{value.dtype}{dims}"
    text = _written(value)
    arrays = _arrays(value) if not text or len(text) > WIDEST else 0
    return f"{arrays} array{'s' * (arrays > 1)}" if arrays else " ".join((text or repr(value)).split())


def _written(value: Any) -> str:
    """Of a container of Python's; "" of anything else."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name}: {show(part)}" for name, part in value.items()) + "}"
    if isinstance(value, (tuple, list)):
        inner = ", ".join(map(show, value))
        return f"[{inner}]" if isinstance(value, list) else f"({inner})"
    return ""


def _arrays(value: Any) -> int:
    import jax

    return sum(map(is_array, jax.tree.leaves(value)))


def _struct(argument: Array | Key, mesh: Any) -> Any:
    import jax

    if argument.spread and mesh is None:
        raise EntryError(
            "an array can be spread over axes in a SPEC, with --mesh; elsewhere give a jax.ShapeDtypeStruct with its "
            "sharding"
        )
    placed = {} if mesh is None else {"sharding": spread_over(mesh, argument.spread)}
    if isinstance(argument, Key):
        return jax.ShapeDtypeStruct(argument.shape, jax.eval_shape(jax.random.key, 0).dtype, **placed)
    dtype = jax.numpy.dtype(argument.dtype)
    if jax.dtypes.canonicalize_dtype(dtype) != dtype:
        short = jax.dtypes.canonicalize_dtype(dtype)
        raise EntryError(f"{show(argument)}: jax runs in 32 bits; write {short}, or set JAX_ENABLE_X64=1")
    return jax.ShapeDtypeStruct(argument.shape, dtype, weak_type=argument.weak, **placed)
