"""What a function is handed: nothing but sizes, names and tables of Python, or arrays too.

In: a function of a Source. What is made of sizes alone is the same in every call: it runs when something is set up, or
XLA computes it while something else is compiled.
"""

from __future__ import annotations

import libcst as cst

from fusionlint.patterns.code.at import RANGES, inside, is_none, names_read
from fusionlint.patterns.values.annotations import meaning_of
from fusionlint.patterns.values.array_sizes import FILLED, FULL
from fusionlint.source.tree import Source

# A float or a bool is often a tracer where the annotation says otherwise; an int is when it is only a place.
_PYTHON = frozenset(("int", "str", "bytes", "bool", "None", "slice", "pathlib.Path", "os.PathLike"))
_HOLD = frozenset(
    ("list", "tuple", "dict", "set", "frozenset", "typing.List", "typing.Tuple", "typing.Dict", "typing.Set",
     "typing.Sequence", "typing.Mapping", "typing.Iterable", "typing.Optional", "typing.Union",
     "collections.abc.Sequence", "collections.abc.Mapping", "collections.abc.Iterable")
)  # fmt: skip

_BY_SIZE = ("range", *RANGES, *FILLED, *FULL, "jax.numpy.linspace")


def is_given_no_array(function: cst.FunctionDef, source: Source, *, is_traced: bool) -> bool:
    """Whether a function of a file's own level says of all that it is handed that Python knows it: sizes, strings and
    tables of such; or is handed nothing at all. Under a trace ranges and new arrays have to be made of all of it: a
    trace hands over no size, but an int that is a place."""
    given = _given_by_python(function, source)
    if given is None:
        return False
    sizes = _sizes(function, source)
    return given <= sizes or not (is_traced or given.isdisjoint(sizes))


def _given_by_python(function: cst.FunctionDef, source: Source) -> set[str] | None:
    """The parameters of a function, where Python knows what it hands to all of them. Else None: so too where a scope
    around it may hold arrays, or `self` does."""
    parameters = function.params
    if source.scope(function) or isinstance(parameters.star_arg, cst.Param) or parameters.star_kwarg is not None:
        return None
    each = (*parameters.posonly_params, *parameters.params, *parameters.kwonly_params)
    return {one.name.value for one in each} if all(_is_of_python(one, function, source) for one in each) else None


def _sizes(function: cst.FunctionDef, source: Source) -> set[str]:
    """The names that ranges and new arrays of a function are made of, at once or by what was assigned before."""
    made = (part for part in inside(function.body) if source.calls(part, *_BY_SIZE))
    todo = [name for call in made for name in names_read(call)]
    found: set[str] = set()
    while todo:
        name = todo.pop()
        if name.value not in found:
            found.add(name.value)
            value = source.value(name)
            todo += names_read(value) if value is not None else ()
    return found


def _is_of_python(parameter: cst.Param, at: cst.FunctionDef, source: Source) -> bool:
    if parameter.annotation is not None and _says_python(parameter.annotation.annotation, at, source):
        return True
    if parameter.name.value == "dtype":
        return True
    # Of a number written out nobody asks a gradient, where the others are sizes.
    return isinstance(parameter.default, cst.Integer | cst.Float | cst.SimpleString)


def _says_python(annotation: cst.BaseExpression, at: cst.CSTNode, source: Source) -> bool:
    match annotation:
        case cst.BinaryOperation(left=left, operator=cst.BitOr(), right=right):
            return _says_python(left, at, source) and _says_python(right, at, source)
        case cst.Subscript(value=value, slice=slices):
            parts = [e.slice.value for e in slices if isinstance(e.slice, cst.Index)]
            of_python = (isinstance(p, cst.Ellipsis) or _says_python(p, at, source) for p in parts)
            return meaning_of(value, at, source) in _HOLD and all(of_python)
    return is_none(annotation) or meaning_of(annotation, at, source) in _PYTHON
