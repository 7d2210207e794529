"""What an annotation says a value is: a jax array, a numpy array, a Python number, a list of arrays, a key."""

from __future__ import annotations

from typing import Literal

import libcst as cst

from fusionlint.lazily import regex
from fusionlint.patterns.code.at import is_none
from fusionlint.source.tree import Source
from fusionlint.source.walk import dotted

Kind = Literal["array", "numpy", "scalar", "list", "key"]

_ARRAYS = frozenset(
    ("jax.Array", "jax.numpy.ndarray", "jax.numpy.array", "jax.core.Tracer", "chex.Array", "chex.ArrayDevice",
     "jaxtyping.Array", "jax.typing.Array")
)  # fmt: skip
_KEYS = frozenset(("chex.PRNGKey", "jaxtyping.PRNGKeyArray", "jax.random.PRNGKey", "jax.random.KeyArray",
                   "jax.random.PRNGKeyArray", "flax.typing.PRNGKey", "jax.Array.key"))  # fmt: skip
# A float or a bool is often a tracer where the annotation says otherwise.
_SCALARS = frozenset(("int",))
_LISTS = frozenset(
    ("list", "tuple", "typing.List", "typing.Sequence", "typing.Tuple", "typing.Iterable", "collections.abc.Sequence",
     "collections.abc.Iterable")
)  # fmt: skip
_KEY_NAME = regex(r"^_?(key|rng|seed|prng_?key|rng_?key|key_?\w*|\w*_key|\w*_rng|rng_\w*|subkey)$")


def annotated(annotation: cst.BaseExpression, name: str, at: cst.CSTNode, source: Source) -> Kind | None:
    """What `name: annotation`, written at the node `at`, says of the value; None where that is open."""
    match annotation:
        case cst.SimpleString():
            try:
                return annotated(cst.parse_expression(str(annotation.evaluated_value)), name, at, source)
            except cst.ParserSyntaxError:
                return None
        case cst.BinaryOperation(left=left, operator=cst.BitOr(), right=right):
            return _either([left, right], name, at, source)
        case cst.Subscript(value=value, slice=slices):
            parts = [e.slice.value for e in slices if isinstance(e.slice, cst.Index)]
            return _subscripted(meaning_of(value, at, source), parts, name, at, source)
    meaning = meaning_of(annotation, at, source)
    if meaning in _ARRAYS:
        return "key" if _KEY_NAME.match(name) and meaning != "chex.Array" else "array"
    if meaning in _KEYS:
        return "key"
    if meaning == "numpy.ndarray":
        return "numpy"
    return "scalar" if meaning in _SCALARS else None


def meaning_of(node: cst.BaseExpression, at: cst.CSTNode, source: Source) -> str:
    """The qualified name of an annotation, which may have stood in quotes."""
    name = dotted(node)
    return (source.project.qualified_name(source.place(at), name) or name) if name else ""


def _subscripted(
    meaning: str, parts: list[cst.BaseExpression], name: str, at: cst.CSTNode, source: Source
) -> Kind | None:
    if not parts:
        return None
    if meaning in ("typing.Optional", "typing.Union"):
        return _either(parts, name, at, source)
    first = annotated(parts[0], name, at, source)
    if meaning == "jaxtyping.Key":
        return "key"
    if meaning.startswith("jaxtyping."):  # Float[Array, "n 3"]
        return first
    if meaning in ("typing.Annotated", "typing.Final"):
        return first
    if meaning.startswith("numpy.") and meaning.endswith("NDArray"):
        return "numpy"
    if meaning in _LISTS:
        rest = [part for part in parts[1:] if not isinstance(part, cst.Ellipsis)]
        same = all(annotated(part, name, at, source) in ("array", "key") for part in rest)
        return "list" if first in ("array", "key") and same else None
    return None


def is_said_to_be_a_list(name: cst.Name, source: Source) -> bool:
    """Whether a parameter or a variable is annotated as a list or a tuple, `tokens: Sequence[int]`, of whatever."""
    match source.binder(name):
        case cst.Param(annotation=cst.Annotation(said)) | cst.AnnAssign(annotation=cst.Annotation(said)):
            said = said.value if isinstance(said, cst.Subscript) else said
            return meaning_of(said, name, source) in _LISTS
    return False


def _either(parts: list[cst.BaseExpression], name: str, at: cst.CSTNode, source: Source) -> Kind | None:
    """What all of several annotations agree on, None aside."""
    given = [part for part in parts if not is_none(part)]
    kinds = {annotated(part, name, at, source) for part in given}
    return kinds.pop() if len(kinds) == 1 else None


def axes_said(name: cst.Name, source: Source) -> tuple[str, ...] | None:
    """The axes that jaxtyping says a variable or a parameter has: `3` and `3` of `cell: Float[Array, "3 3"]`."""
    match source.binder(name):
        case (
            cst.Param(annotation=cst.Annotation(annotation=cst.Subscript(slice=[_, said])))
            | cst.AnnAssign(annotation=cst.Annotation(annotation=cst.Subscript(slice=[_, said])))
        ):
            match said:
                case cst.SubscriptElement(slice=cst.Index(value=cst.SimpleString() as axes)):
                    return tuple(str(axes.evaluated_value).split())
    return None
