"""A function without arguments -> those that are found beside it: `example_args`, else what its annotations say.

`example_args` is an attribute of the function, or a name of its module: there a dict by function name, or the
arguments of whatever in the module needs some. It holds what `fusionlint.explain` takes (real arrays,
jax.ShapeDtypeStructs, shapes as texts): a tuple of arguments, a dict of them by the names of the parameters, one alone,
or a function that returns one of these. Sizes that are given for dims mean the annotations: these then come first.
"""

from __future__ import annotations

import functools
import inspect
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import FunctionType
from typing import Any, TypeAlias

from fusionlint.compiling.annotations import Shape, axes_of, dims_of, shape_of, value
from fusionlint.compiling.entry import EntryError
from fusionlint.compiling.loading import Function
from fusionlint.compiling.sizes import Dims
from fusionlint.compiling.values import show, value_of_text

Arguments: TypeAlias = "tuple[tuple[Any, ...], dict[str, Any]]"

# How jax.vmap begins a docstring: what it returns has no other mark, and the attributes of what it maps.
_MAPPED = re.compile(r"Vectorized version of .+?\. Takes similar arguments as ", re.S)


@dataclass(frozen=True, slots=True)
class Named:
    """How a function was named: `called` in messages, `names` as keys of `example_args`, `say` for how to say the
    arguments, and `record` how to do without; `module` is where else to look than in its own."""

    called: str
    names: tuple[str, ...]
    say: str
    module: Any = None
    record: str = ""


def named_as(function: Function) -> Named:
    """Of a function that is given itself."""
    name = getattr(function, "__qualname__", None) or type(function).__qualname__
    name = name.rpartition("<locals>.")[2]
    names = () if _is_mapped(function) else (name, name.rpartition(".")[2])
    return Named(name, names, f'give its arguments, as in `explain({name}, "f32[8,128]", "key", n=8)`')


def found(function: Function, named: Named, dims: Dims) -> Arguments:
    """Its arguments, with what `example_args` gives as it is, and a jax.ShapeDtypeStruct for every array of an
    annotation. Raises EntryError, and whatever a function raises that makes `example_args`."""
    signature = signature_of(function)
    needed = [p for p in signature.parameters.values() if is_needed(p)] if signature else []
    shapes = {} if _is_mapped(function) else _shapes(function, needed)
    annotated = bool(shapes) and all(shapes.values())
    used = {name for shape in shapes.values() if shape and dims for name in dims_of(shape)}
    if annotated and not used.isdisjoint(dims):
        return _annotated(needed, shapes, named, dims)
    examples = _examples(function, named, is_needed=bool(needed) or signature is None)
    if examples is not None:
        return examples
    if annotated:
        return _annotated(needed, shapes, named, dims)
    if needed or signature is None:
        raise EntryError(_missing(function, named, needed, shapes))
    return (), {}


def check(function: Function, called: str, arguments: Arguments) -> None:
    """Raises EntryError if the function does not take the arguments."""
    args, kwargs = arguments
    signature = signature_of(function)
    if signature is None:
        return
    try:
        signature.bind(*args, **kwargs)
    except TypeError as error:
        given = ", ".join([*map(show, args), *(f"{name}={show(one)}" for name, one in kwargs.items())])
        why = _unknown(signature, kwargs) or error
        raise EntryError(f"{called}{_short(signature)} does not take ({given}): {why}") from None


def _unknown(signature: inspect.Signature, named: Iterable[str]) -> str:
    """The names that no parameter has, of which Python tells only where nothing is missing; "" where none is."""
    parameters = signature.parameters.values()
    if any(one.kind is inspect.Parameter.VAR_KEYWORD for one in parameters):
        return ""
    strange = [name for name in named if name not in signature.parameters]
    return f"it has no {' and no '.join(strange)}" if strange else ""


def meant_as_shape(arguments: Arguments) -> str:
    """What to say of a failure where an argument is a tuple of numbers, which is a static value; "" where none is."""
    args, kwargs = arguments
    tuples = (one for one in (*args, *kwargs.values()) if type(one) is tuple and one)
    shape = next((one for one in tuples if all(type(size) is int for size in one)), None)
    if shape is None:
        return ""
    return f"{shape} is a static value: an array of that shape is " + f'"f32[{",".join(map(str, shape))}]"'


def _short(signature: inspect.Signature) -> inspect.Signature:
    """Without annotations, which may be long, and are not what is wrong."""
    parameters = [one.replace(annotation=one.empty) for one in signature.parameters.values()]
    return signature.replace(parameters=parameters, return_annotation=signature.empty)


def signature_of(function: Function) -> inspect.Signature | None:
    """None of builtins and some callables."""
    try:
        return inspect.signature(_plain(function))
    except (TypeError, ValueError):
        return None


def innermost(function: Function) -> Function:
    """The user's own function under partials, decorators, jit and methods."""
    own: Function
    *_, own = _layers(function)
    return own


def _plain(function: Any) -> Any:
    """A partial of another kind, as what equinox binds its methods to their modules by, as Python's own."""
    parts = [getattr(function, name, None) for name in ("func", "args", "keywords")]
    if isinstance(function, functools.partial) or not (callable(parts[0]) and isinstance(parts[2], dict)):
        return function
    return functools.partial(parts[0], *parts[1] or (), **parts[2])


def _layers(function: Any) -> Iterator[Any]:
    yield function
    function = _plain(function)
    if isinstance(function, functools.partial):
        yield from _layers(function.func)
    elif hasattr(function, "__wrapped__"):
        yield from _layers(function.__wrapped__)
    elif not hasattr(function, "__code__") and hasattr(type(function).__call__, "__code__"):
        yield from _layers(type(function).__call__)


def _alike(function: Any) -> Iterator[Any]:
    """The function, and what it wraps that takes the same arguments."""
    yield function
    while hasattr(function, "__wrapped__") and not isinstance(function, functools.partial) and not _maps(function):
        function = function.__wrapped__
        yield function


def _is_mapped(function: Any) -> bool:
    """Whether it takes arguments with an axis more than the function below it says."""
    return any(map(_maps, _layers(function)))


def _maps(layer: Any) -> bool:
    """Whether it is what jax.vmap returns, or equinox.filter_vmap."""
    if _MAPPED.match(getattr(layer, "__doc__", None) or ""):
        return True
    equinox = sys.modules.get("equinox")
    return equinox is not None and type(layer) is type(equinox.filter_vmap(_maps))


def is_needed(parameter: inspect.Parameter) -> bool:
    variadic = (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    return parameter.default is parameter.empty and parameter.kind not in variadic


def _examples(function: Function, named: Named, *, is_needed: bool) -> Arguments | None:
    examples = _example_args(function, named, is_needed=is_needed)
    return None if examples is None else _split(_called(examples))


def _example_args(function: Function, named: Named, *, is_needed: bool) -> Any:
    own = next((one for layer in _alike(function) if (one := getattr(layer, "example_args", None)) is not None), None)
    # What vmap returns has the attributes of what it maps.
    below = getattr(innermost(function), "example_args", None)
    if own is not None and not (own is below and _is_mapped(function)):
        return own
    modules = (named.module, sys.modules.get(getattr(function, "__module__", None) or ""))
    for module in filter(None, modules):
        examples = _called(getattr(module, "example_args", None))
        if isinstance(examples, Mapping):
            one = next((examples[name] for name in named.names if name in examples), None)
            if one is not None:
                return one
        elif examples is not None and is_needed:
            return examples
    return None


def _called(examples: Any) -> Any:
    """A function makes them once they are asked for: arrays made by an import cost everyone who imports."""
    return examples() if isinstance(examples, FunctionType) else examples


def _split(examples: Any) -> Arguments:
    import jax

    def leaf(one: Any) -> Any:
        return value_of_text(one) if isinstance(one, str) else one

    if isinstance(examples, Mapping):
        return (), {name: jax.tree.map(leaf, one) for name, one in examples.items()}
    by_place = tuple(examples) if isinstance(examples, (tuple, list)) else (examples,)
    return jax.tree.map(leaf, by_place), {}


def _shapes(function: Function, needed: Sequence[inspect.Parameter]) -> dict[str, Shape | None]:
    names = getattr(innermost(function), "__globals__", {})
    return {one.name: shape_of(one.annotation, names) for one in needed}


def _annotated(
    needed: Sequence[inspect.Parameter],
    shapes: Mapping[str, Shape | None],
    named: Named,
    dims: Dims,
) -> Arguments:
    known = {name: shape for name, shape in shapes.items() if shape is not None}
    missing = {name: set(dims_of(shape)) - set(dims) for name, shape in known.items()}
    if any(missing.values()):
        raise EntryError(_unsized(known, missing, named, dims))
    values = {name: value(shape, dims) for name, shape in known.items()}
    by_position = [values[p.name] for p in needed if p.kind is not p.KEYWORD_ONLY]
    return tuple(by_position), {p.name: values[p.name] for p in needed if p.kind is p.KEYWORD_ONLY}


def _unsized(known: Mapping[str, Shape], missing: Mapping[str, set[str]], named: Named, dims: Dims) -> str:
    """Every dim without a size, once, and the arguments that have it."""
    names = [name for shape in known.values() for name in dims_of(shape)]
    wanted = [name for name in dict.fromkeys(names) if any(name in each for each in missing.values())]
    where = ", ".join(f"{name}: {axes_of(known[name])}" for name, each in missing.items() if each)
    flags = " ".join(f"--dim {name}=8" for name in wanted)
    unused = [name for name in dims if name not in names]
    other = f"; it has no dim {' or '.join(unused)}" if unused else ""
    return (
        f"{named.called} needs a size for {_listed(wanted)} ({where}): say {flags}, or in Python "
        f"dims={dict.fromkeys(wanted, 8)}{other}"
    )


def _listed(names: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def _missing(
    function: Function,
    named: Named,
    needed: Sequence[inspect.Parameter],
    shapes: Mapping[str, Shape | None],
) -> str:
    called = f"{named.called}({', '.join(p.name for p in needed) or '...'})"
    ways = f"{named.say}; or put `example_args = (...)` beside it (a tuple, or a dict of them by function name)"
    if _is_mapped(function):
        return f"{called} needs arguments, with an axis for vmap that no annotation says: {ways}"
    shapeless = [_declared(p) for p in needed if shapes.get(p.name) is None and p.annotation is not p.empty]
    which = "the annotation" if len(shapeless) == 1 else "the annotations"
    says = "says no shape" if len(shapeless) == 1 else "say no shapes"
    why = f", and {which} of {_listed(shapeless)} {says}" if shapeless else ""
    ways += '; or annotate them with jaxtyping, as in `x: Float[Array, "8 128"]`'
    return f"{called} needs arguments{why}: {ways}{named.record}"


def _declared(parameter: inspect.Parameter) -> str:
    import jax

    said = parameter.annotation
    text = said if isinstance(said, str) else inspect.formatannotation(said)
    text = text.replace(inspect.formatannotation(jax.Array), "jax.Array")  # it calls itself jax.jaxlib._jax.Array
    return f"`{parameter.name}: {text}`"
