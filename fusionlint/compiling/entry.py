"""SPEC text -> Entry: which function to compile, and with what arguments, before anything is imported.

    package.module:function      path/file.py:function      ...:Class.method      ...:instance.method
    arguments:  f32[8,128]  bf16[4]  i32[]  pred[]  float32[3]     arrays, by XLA's or numpy's names
                ~f32[]                                             of weak type, as a Python number that is an input
                f32[8@data,128]  f32[8@(x,y)]                      spread over axes of a mesh, as jax.typeof shows it
                key  key[8]                                        typed PRNG keys
                (f32[4], f32[4])  [..]  {w: f32[2,2], b: f32[2]}   pytrees
                3  1e-3  "adam"  None  True                        Python literals: static values
                name=value

An Entry is frozen and picklable, and `parse_spec(entry.text) == entry`: the text is its serialized form.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, zip_longest
from math import prod
from typing import Literal, TypeAlias

Spread: TypeAlias = "tuple[tuple[str, ...], ...]"  # of each dimension the axes that it is spread over; () over none


class EntryError(Exception):
    """A SPEC that cannot be read or does not fit the code. The first line of the message says how to say it right;
    where the text does not parse, the place follows with a caret under it."""


class AbsentError(EntryError):
    """What a SPEC names is not there: its file, its module, or its function."""


@dataclass(frozen=True, slots=True)
class Array:
    """An array argument; `dtype` is numpy's name (ml_dtypes' for the others), which gives way to others if `weak`."""

    dtype: str
    shape: tuple[int, ...]
    weak: bool = False
    spread: Spread = ()


@dataclass(frozen=True, slots=True)
class Key:
    """A typed PRNG key argument, or an array of them."""

    shape: tuple[int, ...]
    spread: Spread = ()


@dataclass(frozen=True, slots=True)
class Static:
    """A Python literal: part of the program, not an input of it."""

    value: object


@dataclass(frozen=True, slots=True)
class Named:
    """What the function's module has under a name, dotted or not: `config`, `jnp.bfloat16`."""

    name: str


@dataclass(frozen=True, slots=True)
class Group:
    """A pytree of arguments, at least one of them no literal; `names` are the keys of a dict."""

    kind: Literal["tuple", "list", "dict"]
    parts: tuple[Argument, ...]
    names: tuple[str | int, ...] = ()


Argument: TypeAlias = Array | Key | Static | Named | Group


@dataclass(frozen=True, slots=True)
class Entry:
    """A function and its arguments. `module` is a dotted name, or a path that ends in .py; `function` may be dotted;
    `args` is None where the SPEC has no parentheses: the arguments are then to be found beside the function."""

    text: str
    module: str
    function: str
    args: tuple[Argument, ...] | None = None
    kwargs: tuple[tuple[str, Argument], ...] = ()

    @property
    def name(self) -> str:
        """As messages say it: module:function, or the path of a program that has no function."""
        return f"{self.module}:{self.function}" if self.function else self.module

    @property
    def axes(self) -> frozenset[str]:
        """Those of a mesh that its arrays are spread over."""
        every = (*(self.args or ()), *(argument for _, argument in self.kwargs))
        return frozenset(axis for argument in every for axis in _axes_of(argument))

    @property
    def is_file(self) -> bool:
        return self.module.endswith(".py")


_FLOATS = ("f16 float16", "bf16 bfloat16", "f32 float32", "f64 float64", "c64 complex64", "c128 complex128")
_INTS = tuple(f"{x}{bits} {name}{bits}" for bits in (8, 16, 32, 64) for x, name in (("s", "int"), ("i", "int")))
_UINTS = tuple(f"u{bits} uint{bits}" for bits in (4, 8, 16, 32, 64))
_SMALL = ("s4 int4", "i4 int4", "pred bool", *(f"f8{x} float8_{x}" for x in ("e4m3fn", "e5m2", "e4m3b11fnuz")))
DTYPES = {alias: pair.split()[1] for pair in (*_FLOATS, *_INTS, *_UINTS, *_SMALL) for alias in pair.split()}
_SHORT = {name: alias for alias, name in DTYPES.items() if alias not in (name, "pred")}

_MOST_ELEMENTS = 2**59  # of 16 bytes each, whose number XLA keeps in 64 bits

_SPEC = re.compile(
    r"\s*(?P<module>.*?\.py|[^\W\d][\w.]*):(?P<function>[^\W\d]\w*(?:\.[^\W\d]\w*)*)\s*(?P<rest>\(.*)?", re.S
)
_NAME = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*")
# `f32[]` is no Python: the same number of characters that is, so that positions stay true.
_EMPTY = re.compile(r"(?<=\w)\[(\s*)\]")


def array_text(dtype: str, shape: Sequence[int], spread: Spread = ()) -> str:
    """`f32[8@data,128]`, `key[4]`: an array as a SPEC has it; `dtype` is numpy's or jax's name. `spread` may leave out
    the last dimensions."""
    sizes = ",".join(f"{size}{_over(axes)}" for size, axes in zip_longest(shape, spread, fillvalue=()))
    if dtype.startswith("key"):
        return f"key[{sizes}]" if shape else "key"
    return f"{_SHORT.get(dtype, dtype)}[{sizes}]"


def _over(axes: Sequence[str]) -> str:
    return f"@({','.join(axes)})" if len(axes) > 1 else f"@{axes[0]}" if axes else ""


def parse_spec(text: str) -> Entry:
    """Read a SPEC. Raises EntryError."""
    found = _SPEC.fullmatch(text.rstrip())
    if found is None or found["module"].strip().endswith(".ipynb"):
        raise EntryError(_why_no_spec(text))
    rest = found["rest"]
    if rest is None:
        return Entry(_in_one_line(text), found["module"].strip(), found["function"])
    args, kwargs = _Reader(text, found.start("rest"), rest).arguments()
    return Entry(_in_one_line(text), found["module"].strip(), found["function"], args, kwargs)


def parse_argument(text: str) -> Argument:
    """Read one argument of a SPEC: `f32[8,128]`, `key`, `{w: f32[2,2]}`. Raises EntryError."""
    args, kwargs = _Reader(text, -1, f"({text})").arguments()
    if len(args) != 1 or kwargs:
        raise EntryError(f"`{text}` is not one argument: write f32[8,128], key, (f32[4], f32[4]) or {{w: f32[2,2]}}")
    return args[0]


def _axes_of(argument: Argument) -> Iterator[str]:
    match argument:
        case Array(spread=spread) | Key(spread=spread):
            yield from chain.from_iterable(spread)
        case Group(parts=parts):
            yield from chain.from_iterable(map(_axes_of, parts))


def _in_one_line(text: str) -> str:
    """As reports and messages name it."""
    return " ".join(line.strip() for line in text.strip().splitlines())


def _why_no_spec(text: str) -> str:
    head = text.partition("(")[0].strip()
    if ":" not in head and ("/" in head or "\\" in head) and not head.endswith(".py"):
        return f"there is neither a file nor a folder `{head}`: write path/file.py:function for a function"
    if ":" not in head:
        return f"`{text}` names no function: write package.module:function or path/file.py:function"
    module, _, function = head.rpartition(":")
    if module.endswith(".ipynb"):
        return f"`{module}` is a notebook: ask in a cell of it, fusionlint.explain({function or 'function'}, ...)"
    if "/" in module or "\\" in module:
        return f"`{module}` is not a Python file: write path/file.py:{function or 'function'}"
    return f"cannot read `{text}`: write package.module:function, or package.module:function(f32[8,128], n=8)"


def _dim(node: ast.expr) -> tuple[int, tuple[str, ...]] | None:
    """A size and the axes of a mesh that it is spread over: 8, 8@data, 8@(x,y); None of anything else."""
    match node:
        case ast.Constant(value=int(size)) if type(size) is int:
            return size, ()
        case ast.BinOp(left=ast.Constant(value=int(size)), op=ast.MatMult(), right=ast.Name(id=axis)):
            return size, (axis,)
        case ast.BinOp(left=ast.Constant(value=int(size)), op=ast.MatMult(), right=ast.Tuple(elts=parts)):
            axes = tuple(part.id for part in parts if isinstance(part, ast.Name))
            return (size, axes) if len(axes) == len(parts) else None
    return None


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reads the arguments, `rest`, which begin at `start` in `text`. Python's own parser does the work: every
    argument is a Python expression but for `f32[]`."""

    text: str
    start: int
    rest: str

    def arguments(self) -> tuple[tuple[Argument, ...], tuple[tuple[str, Argument], ...]]:
        source = "_" + _EMPTY.sub(r"(\1)", self.rest)
        try:
            call = ast.parse(source, mode="eval").body
        except SyntaxError as error:
            raise self.failed((error.offset or 1) - 2, 1, error.msg or "it does not parse") from None
        if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "_"):
            raise self.failed(0, 1, "write one pair of parentheses after the function")
        args = tuple(self.argument(node) for node in call.args)
        self.check_names(call.keywords)
        return args, tuple((str(keyword.arg), self.argument(keyword.value)) for keyword in call.keywords)

    def check_names(self, keywords: Sequence[ast.keyword]) -> None:
        names: set[str] = set()
        for keyword in keywords:
            if keyword.arg is None:
                raise self.refused(keyword.value, "write name=value")
            if keyword.arg in names:  # which Python's parser lets pass
                raise self.refused(keyword.value, f"`{keyword.arg}` is given twice")
            names.add(keyword.arg)

    def argument(self, node: ast.expr) -> Argument:
        match node:
            case ast.Name(id="key"):
                return Key(())
            case ast.Subscript(value=ast.Name(id=name)):
                return self.array(node, name, *self.shape(node.slice))
            case ast.Call(func=ast.Name(id=name), args=[], keywords=[]):
                return self.array(node, name, (), ())
            case ast.UnaryOp(op=ast.Invert(), operand=ast.Subscript() | ast.Call() as operand):
                return self.weak(node, operand)
            case ast.Tuple(elts=parts):
                return self.group("tuple", parts)
            case ast.List(elts=parts):
                return self.group("list", parts)
            case ast.Dict(keys=keys, values=parts):
                return self.group("dict", parts, self.names(keys, node))
            case ast.Name(id=name) if name in DTYPES:
                raise self.refused(node, f"`{name}` needs a shape: {name}[8,128], or {name}[] for a scalar")
            case ast.Name() | ast.Attribute() if _NAME.fullmatch(written := ast.unparse(node)):
                return Named(written)
        return Static(self.literal(node))

    def array(self, node: ast.expr, name: str, shape: tuple[int, ...], spread: Spread) -> Array | Key:
        if name == "key":
            return Key(shape, spread)
        if name not in DTYPES:
            raise self.refused(node, f"`{name}` is no dtype: write f32, bf16, s32, u32, pred, ... or numpy's names")
        if prod(shape) > _MOST_ELEMENTS:
            raise self.refused(node, "no array has so many elements")
        return Array(DTYPES[name], shape, spread=spread)

    def weak(self, node: ast.expr, operand: ast.expr) -> Array:
        array = self.argument(operand)
        if not isinstance(array, Array):
            raise self.refused(node, "`~` stands before an array of weak type: ~f32[]")
        return replace(array, weak=True)

    def shape(self, node: ast.expr) -> tuple[tuple[int, ...], Spread]:
        """The sizes, and over which axes of a mesh each is spread; () where none is."""
        dims = [*map(_dim, node.elts if isinstance(node, ast.Tuple) else [node])]
        found = [dim for dim in dims if dim is not None]
        if len(found) != len(dims):
            raise self.refused(node, "a shape is whole numbers, as in f32[8,128], or f32[8@data,128] over a mesh")
        spread = tuple(axes for _, axes in found)
        return tuple(size for size, _ in found), spread if any(spread) else ()

    def group(
        self,
        kind: Literal["tuple", "list", "dict"],
        nodes: list[ast.expr],
        names: tuple[str | int, ...] = (),
    ) -> Group | Static:
        parts = tuple(self.argument(part) for part in nodes)
        if not all(isinstance(part, Static) for part in parts):
            return Group(kind, parts, names)
        values = [part.value for part in parts if isinstance(part, Static)]
        if kind == "dict":
            return Static(dict(zip(names, values, strict=True)))
        return Static(tuple(values) if kind == "tuple" else values)

    def names(self, keys: Sequence[ast.expr | None], parent: ast.expr) -> tuple[str | int, ...]:
        found: dict[str | int, None] = {}
        for key in keys:
            name = self.name(key, parent)
            if name in found:
                raise self.refused(key or parent, f"the dict has `{name}` twice")
            found[name] = None
        return tuple(found)

    def name(self, key: ast.expr | None, parent: ast.expr) -> str | int:
        match key:
            case ast.Name(id=name) | ast.Constant(value=str(name)):
                return name
            case ast.Constant(value=int(number)):
                return number
            case _:
                raise self.refused(key or parent, "a dict is written {w: f32[2,2], b: f32[2]}")

    def literal(self, node: ast.expr) -> object:
        # From the text as it was written: `[]` inside a string must stay as it is.
        written = ast.get_source_segment("_" + self.rest, node) or ""
        try:
            return ast.literal_eval(written)
        except (ValueError, SyntaxError):
            why = f'`{written}` is neither an array (f32[8,128]), `key`, a literal (3, "adam", None), nor a name'
            raise self.refused(node, why) from None

    def refused(self, node: ast.expr, why: str) -> EntryError:
        before = ("_" + self.rest).encode()[: node.col_offset].decode()
        written = ast.get_source_segment("_" + self.rest, node) or " "
        return self.failed(len(before) - 1, len(written), why)

    def failed(self, offset: int, width: int, why: str) -> EntryError:
        at = self.start + max(offset, 0)
        line = self.text.replace("\n", " ")
        excerpt = f"    {line}\n    {' ' * at}{'^' * max(width, 1)}"
        return EntryError(f"cannot read the SPEC at column {at + 1}: {why}\n{excerpt}")
