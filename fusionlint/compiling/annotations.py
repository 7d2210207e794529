"""jaxtyping's annotations -> the arrays that they say, once every dim has a size.

jaxtyping is not imported: a `Float[Array, "batch 3"]` is read by its own attributes `dtypes` and `dim_str`, and by its
text where its names are not there, as of imports under TYPE_CHECKING. Tuples, and the fields of NamedTuples and
dataclasses, are read too; of a union the first member that says a shape.
"""

from __future__ import annotations

import ast
import builtins
import dataclasses
import inspect
import re
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from fusionlint.compiling.entry import DTYPES, Array, EntryError, Key
from fusionlint.compiling.sizes import Dims
from fusionlint.compiling.values import default_dtypes, has_array, value_of


@dataclass(frozen=True, slots=True)
class Shaped:
    """An array: its dtype ("key" for PRNG keys), and its axes as jaxtyping writes them."""

    dtype: str
    axes: str


@dataclass(frozen=True, slots=True)
class Parts:
    """Something made of shapes: `make` takes their values."""

    make: Callable[[list[Any]], Any]
    parts: tuple[Shape, ...]


Shape: TypeAlias = Shaped | Parts
Names: TypeAlias = Mapping[str, Any]

_KEY = "key"
_ANY = ("float", "int", "bool", "uint", "complex")  # in the order of `default_dtypes`
_KINDS = {
    **dict.fromkeys(("Float", "Inexact", "Real", "Num", "Shaped"), "float"),
    **dict.fromkeys(("Int", "Integer"), "int"),
    "UInt": "uint",
    "Bool": "bool",
    "Complex": "complex",
    "Key": _KEY,
}
_ARRAYS = {"Array", "ArrayLike", "ndarray", "ShapeDtypeStruct", "Any"}


def shape_of(annotation: Any, names: Names) -> Shape | None:
    """What an annotation says; None if it says no shape. `names` are those that a text may use."""
    return _shape(annotation, names, ())


def dims_of(shape: Shape) -> Iterator[str]:
    """The names of all dims, `...` and `_` among them, in their order; a name may come again."""
    if isinstance(shape, Parts):
        for part in shape.parts:
            yield from dims_of(part)
        return
    for axis in map(_axis, shape.axes.split()):
        yield from axis.names


def value(shape: Shape, dims: Dims) -> Any:
    """The shape with a jax.ShapeDtypeStruct for every array. `dims` has all of its dims. Raises EntryError."""
    if isinstance(shape, Parts):
        return shape.make([value(part, dims) for part in shape.parts])
    sizes = tuple(size for axis in map(_axis, shape.axes.split()) for size in _sizes(axis, dims))
    return value_of(Key(sizes) if shape.dtype == _KEY else Array(shape.dtype, sizes))


def axes_of(shape: Shape) -> str:
    """Its axes as they are written, for messages."""
    if isinstance(shape, Shaped):
        return f'"{shape.axes}"'
    return f"({', '.join(map(axes_of, shape.parts))})"


def _shape(annotation: Any, names: Names, above: tuple[type, ...]) -> Shape | None:
    if isinstance(annotation, typing.ForwardRef):
        annotation = annotation.__forward_arg__
    if isinstance(annotation, str):
        return _of_text(annotation, names, above)
    if isinstance(getattr(annotation, "dim_str", None), str):
        dtype = _dtype(annotation.dtypes)
        return Shaped(dtype, annotation.dim_str) if dtype else None
    origin, inner = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (typing.Union, types.UnionType):
        return _first(_shape(one, names, above) for one in inner)
    if origin is typing.Annotated:
        return _shape(inner[0], names, above)
    if origin is tuple and Ellipsis not in inner:
        return _of_parts(tuple, [_shape(one, names, above) for one in inner])
    if inspect.isclass(annotation) and annotation not in above:
        return _of_class(annotation, (*above, annotation))
    return None


def _of_text(text: str, names: Names, above: tuple[type, ...]) -> Shape | None:
    """By the module's own names, as Python would; where one of them is not there, by the text alone."""
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except SyntaxError:
        return None
    if isinstance(tree, ast.Constant):  # quotes within quotes: an annotation in quotes, where all are texts
        return _of_text(tree.value, names, above) if isinstance(tree.value, str) else None
    try:
        found = eval(text.strip(), dict(names))  # noqa: S307  the user's own code, as typing.get_type_hints reads it
    except Exception:  # noqa: BLE001  whatever it raises: then the text is all there is
        return _of_tree(tree)
    return None if isinstance(found, str) else _shape(found, names, above)


def _of_tree(tree: ast.expr) -> Shape | None:
    match tree:
        case ast.Name(id="PRNGKeyArray") | ast.Attribute(attr="PRNGKeyArray"):
            return Shaped(_KEY, "")
        case ast.Constant(value=str(text)):
            return _of_text(text, {}, ())
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            return _of_tree(left) or _of_tree(right)
        case ast.Subscript(value=head, slice=ast.Tuple(elts=[array, ast.Constant(value=str(axes))])):
            dtype = _dtype_named(_last(head))
            return Shaped(dtype, axes.strip()) if dtype and _last(array) in _ARRAYS else None
        case ast.Subscript(value=head, slice=inner) if _last(head) in ("Optional", "Union", "Annotated"):
            parts = inner.elts if isinstance(inner, ast.Tuple) else [inner]
            return _first(map(_of_tree, parts))
        case ast.Subscript(value=head, slice=ast.Tuple(elts=parts)) if _last(head) in ("tuple", "Tuple"):
            return _of_parts(tuple, [_of_tree(part) for part in parts])
    return None


def _last(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def _of_class(found: type, above: tuple[type, ...]) -> Shape | None:
    """A NamedTuple or dataclass whose fields say shapes, or have defaults, and that jax takes apart."""
    if dataclasses.is_dataclass(found):
        fields = [field.name for field in dataclasses.fields(found) if field.init]
    else:
        fields = [*getattr(found, "_fields", ())]
    parameters = inspect.signature(found).parameters if fields else {}
    if not fields or [*parameters] != fields:  # one with an __init__ of its own makes its fields in its own way
        return None
    names = vars(inspect.getmodule(found) or builtins)
    wanted = [one for one in parameters.values() if one.default is one.empty]

    def make(values: list[Any]) -> Any:
        made = found(**{one.name: part for one, part in zip(wanted, values, strict=True)})
        if not has_array(made):
            raise EntryError(f"{found.__name__} is no pytree to jax: register it, jax.tree_util.register_dataclass")
        return made

    return _of_parts(make, [_shape(one.annotation, names, above) for one in wanted])


def _of_parts(make: Callable[[list[Any]], Any], parts: Sequence[Shape | None]) -> Shape | None:
    known = tuple(part for part in parts if part is not None)
    return Parts(make, known) if known and len(known) == len(parts) else None


def _first(shapes: Iterable[Shape | None]) -> Shape | None:
    return next((shape for shape in shapes if shape is not None), None)


def _dtype(allowed: Any) -> str | None:
    """Of the dtypes that an annotation allows (names or patterns, or a mark for all), what jax makes of a Python
    number, else the first."""
    defaults = default_dtypes()
    if not isinstance(allowed, Sequence):
        return defaults[0]
    if "prng_key" in allowed:
        return _KEY
    usual = (name for name in defaults if any(re.fullmatch(one, name) for one in allowed))
    return next(usual, next((one for one in allowed if isinstance(one, str)), None))


def _dtype_named(name: str) -> str | None:
    """The dtype of `Float`, `Int32`, `BFloat16`, `Key`."""
    kind, low = _KINDS.get(name), name.lower()
    if kind in _ANY:
        return default_dtypes()[_ANY.index(kind)]
    return kind or DTYPES.get(low) or DTYPES.get(low.replace("float8", "float8_"))


@dataclass(frozen=True, slots=True)
class _Axis:
    """One word of "batch #n 3 *rest 2*n": what its size is reckoned from, and the names in that."""

    word: str
    text: str
    names: tuple[str, ...] = ()
    is_variadic: bool = False


def _axis(word: str) -> _Axis:
    if word == "...":
        return _Axis(word, word, (word,), is_variadic=True)
    marks = re.match(r"[#*?_]*", word)
    assert marks is not None
    text = word[marks.end() :]
    if text.count("=") == 1:  # rows=3: 3, with a name for the reader
        text = text.partition("=")[2]
    text = "_" * ("_" in marks[0]) + text
    text = re.sub(r"[{}]", "", text)  # {n}: an argument's value, given by its name as any other
    if text.isidentifier():
        return _Axis(word, text, (text,), is_variadic="*" in marks[0])
    try:
        tree = ast.parse(text, mode="eval")
    except SyntaxError:
        raise EntryError(f'the axis "{word}" of an annotation cannot be read') from None
    used = [node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and not hasattr(builtins, node.id)]
    return _Axis(word, text, tuple(dict.fromkeys(used)))


def _sizes(axis: _Axis, dims: Dims) -> tuple[int, ...]:
    given = {name: dims[name] for name in axis.names}
    if axis.is_variadic:
        return given[axis.text]
    for name, sizes in given.items():
        if len(sizes) != 1:
            raise EntryError(f"{name} is one axis, of one size, in an annotation: {len(sizes)} sizes are given")
    single = {name: size for name, (size,) in given.items()}
    try:
        size = single[axis.text] if axis.text in single else eval(axis.text, single)  # noqa: S307  as jaxtyping does
    except Exception as error:  # noqa: BLE001  whatever the user's expression raises
        raise EntryError(f'the axis "{axis.word}" of an annotation cannot be reckoned: {error}') from None
    if type(size) is not int or size < 0:
        raise EntryError(f'the axis "{axis.word}" of an annotation would have the size {size}')
    return (size,)
