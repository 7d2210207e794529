"""Reading `jax.random.choice(key, a, shape, replace, p)`: what is drawn, from how many, with or without replacement."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

import libcst as cst

from fusionlint.lazily import regex
from fusionlint.patterns.code.at import constant, is_literal, is_no_array, is_none
from fusionlint.patterns.code.calls import argument, as_argument, has_only
from fusionlint.patterns.code.layout import Called, Part
from fusionlint.patterns.code.modules import named
from fusionlint.patterns.runs.made_once import is_method_for_constructors
from fusionlint.patterns.values.one_number import is_a_number
from fusionlint.source.tree import Source

CHOICE = "jax.random.choice"
# What makes an array of a list: by its dtype's name too, `jnp.int32([-1, 1])`.
_KINDS = "array asarray bool_ int8 int16 int32 int64 uint8 uint16 uint32 float16 bfloat16 float32 float64"
_ARRAYS = tuple(f"{numpy}.{kind}" for numpy in ("jax.numpy", "numpy") for kind in _KINDS.split())
# Of these the dtype is said beside the list, or not at all.
_UNSAID = tuple(f"{numpy}.{name}" for numpy in ("jax.numpy", "numpy") for name in ("array", "asarray"))

_KEYS = ("jax.random.PRNGKey", "jax.random.key")
_DATA = regex(
    r"\b(generat|mak|creat|simulat|sampl|synthesi[sz])(es?|ing)\b (the |some |a )?(train(ing)?|toy|synthetic|fake)"
    r"[ -](data|data ?set|labels?)\b",
    re.I,
)


# What says how many steps are between two times that something is done.
_HOW_OFTEN = ("every", "interval", "frequency", "freq", "period")


class Choice(NamedTuple):
    """A choice, as written; `shape` and `p` are None where they are not given."""

    key: cst.BaseExpression
    among: cst.BaseExpression
    shape: cst.BaseExpression | None
    p: cst.BaseExpression | None


def is_drawn_once(node: cst.CSTNode, source: Source) -> bool:
    """Whether what is drawn is said to be the data to train on, or a key that is made for it says that it is drawn in
    one call alone; or it is drawn now and then, or for what constructors keep."""
    if _makes_data(node, source) or _is_of_a_seed(node, source) or _is_every_so_often(node, source):
        return True
    return source.context(node) != "traced" and is_method_for_constructors(source.project, source.place(node))


def _is_every_so_often(node: cst.CSTNode, source: Source) -> bool:
    """Whether an object is told how often it does this, `resample` of `Sampler(resample_every=100)`: once for so many
    steps, by what no trace is seen to reach."""
    around = source.facts.class_around(source.scope(node))
    if not around or source.context(node) == "traced":
        return False
    method = source.scope(node).removeprefix(f"{around}.").partition(".")[0]
    made = source.facts.functions.get(f"{around}.__init__")
    told = made.parameters if made is not None else ()
    return any(f"{method.lstrip('_')}_{how}" in told for how in _HOW_OFTEN)


def _is_of_a_seed(node: cst.CSTNode, source: Source) -> bool:
    """Whether the function around `node`, which no trace is seen to reach, makes a key of a number itself: in each call
    it would draw the same, so that it is called once. Who draws in a loop does so again and again."""
    return is_beside_a_call(node, _KEYS, source)


# What turns a matrix over again and again, by kernels of its own: beside it no draw and no search counts.
FACTORIZATIONS = tuple(
    f"jax.{module}.linalg.{name}" for module in ("numpy", "scipy") for name in ("svd", "eigh", "eig", "qr", "schur")
)


def is_beside_a_call(node: cst.CSTNode, names: Collection[str], source: Source) -> bool:
    """Whether the function around `node`, which is in no trace and no loop that is seen, calls one of `names` too."""
    function = source.function(node)
    if function is None or source.context(node) == "traced" or source.in_loop(node):
        return False
    return any(source.function(call) is function for call in source.calls_of(names))


def _makes_data(node: cst.CSTNode, source: Source) -> bool:
    """Whether the comment above a function around `node`, or how its docstring begins, says that it makes the data to
    train on: "Generate training data."."""
    around = source.ancestors(node, cst.FunctionDef)
    return any(_DATA.search(text) for function in around for text in _said_of(function))


def _said_of(function: cst.FunctionDef) -> Iterator[str]:
    yield (function.get_docstring() or "").partition("\n")[0]
    yield from (line.comment.value for line in function.leading_lines if line.comment is not None)


def choice(call: cst.Call, source: Source, *, replace: bool = True) -> Choice | None:
    """The draw along the first axis, with replacement or without, that `call` is; None for any other, or where it is
    unseen."""
    if not source.calls(call, CHOICE) or not has_only(call, 5, "key", "a", "shape", "replace", "p"):
        return None
    key, among = argument(call, 0, "key"), argument(call, 1, "a")
    match argument(call, 3, "replace"):
        case None | cst.Name("True"):
            is_replacing = True
        case cst.Name("False"):
            is_replacing = False
        case cst.Name() | cst.Attribute() as chosen if _is_true_by_default(chosen, source):
            is_replacing = True
        case _:
            return None
    if key is None or among is None or is_replacing is not replace:
        return None
    return Choice(key, among, argument(call, 2, "shape"), _given(argument(call, 4, "p")))


def _is_true_by_default(chosen: cst.Name | cst.Attribute, source: Source) -> bool:
    """Whether a parameter or a field of that name is True where nobody says otherwise, by what the file shows:
    `def __init__(self, with_replacement: bool = True)`."""
    name = chosen.value if isinstance(chosen, cst.Name) else chosen.attr.value
    defaults = []
    for node in source.nodes_with(name, cst.Param, cst.AnnAssign):
        match node:
            case (
                cst.Param(name=cst.Name(named), default=default) | cst.AnnAssign(target=cst.Name(named), value=default)
            ) if named == name:
                defaults.append(default)
    return bool(defaults) and all(isinstance(each, cst.Name) and each.value == "True" for each in defaults)


def _given(node: cst.BaseExpression | None) -> cst.BaseExpression | None:
    return None if is_none(node) else node


def is_one(shape: cst.BaseExpression | None) -> bool:
    """Whether a draw of this shape is one element."""
    match shape:
        case None:
            return True
        case cst.Tuple(elements=parts) | cst.List(elements=parts):
            return all(constant(part.value) == 1 for part in parts)
    return False


def listed(node: cst.BaseExpression, source: Source) -> list[cst.BaseExpression] | None:
    """The elements of `jnp.array([a, b])`, or of a name for it; None where they are not written out."""
    node = source.meant(node)
    if source.calls(node, *_ARRAYS):
        assert isinstance(node, cst.Call)
        node = argument(node, 0, "object") or node
    match node:
        case cst.List(elements=elements) | cst.Tuple(elements=elements):
            if not any(isinstance(e, cst.StarredElement) for e in elements):
                return [element.value for element in elements]
    return None


def number(node: cst.BaseExpression) -> float | None:
    """The value of a number that is written out, as `0.3` or `1 / 3`; None for anything else."""
    match node:
        case cst.Integer() | cst.Float():
            return float(node.evaluated_value)
        case cst.BinaryOperation(left=left, operator=cst.Divide(), right=right):
            above, below = number(left), number(right)
            return above / below if above is not None and below else None
    return None


def one_of_two(
    node: cst.Call, made: Choice, values: Sequence[cst.BaseExpression], p: str | None, source: Source
) -> Part:
    """`jnp.where(jax.random.bernoulli(key, p), a, b)` for a choice that draws one of two values; the coin alone for
    True and False. A dtype that is said of them stays."""
    first, second = (as_argument(value, source) for value in values)
    thrown = coin(node, made.key, p, made.shape, source)
    said = dtype_of(made.among, source)
    if (first, second) == ("True", "False") or (p is None and (first, second) == ("False", "True")):
        is_of_truths = said is None or said.endswith(("bool", "bool_"))
        return thrown if is_of_truths else thrown._replace(behind=f".astype({said})")
    chosen = Called(f"{named('jax.numpy', node, source)}.where", (thrown, first, second))
    return chosen._replace(behind=f".astype({said})") if said is not None else chosen


def are_numbers(made: Choice, values: Sequence[cst.BaseExpression], source: Source) -> bool:
    """Whether a coin chooses between the values as the choice does: of rows one coin, and of numbers as many as are
    drawn."""
    return (
        made.shape is None
        or is_no_array(made.shape)
        or all(is_literal(value) or is_a_number(value, source) for value in values)
    )


def dtype_of(among: cst.BaseExpression, source: Source) -> str | None:
    """The dtype that what makes an array of values says, `jnp.uint8` of `jnp.uint8([0, 1])`."""
    made = source.meant(among)
    if not source.calls(made, *_ARRAYS):
        return None
    if source.calls(made, *_UNSAID):
        dtype = argument(made, 1, "dtype")
        return source.code(dtype) if dtype is not None else None
    return source.code(made.func)


def coin(
    node: cst.Call, key: cst.BaseExpression, p: str | None, shape: cst.BaseExpression | None, source: Source
) -> Called:
    """`jax.random.bernoulli(key, p, shape)`, with the user's own names."""
    parts = [source.code(key)]
    if p is not None:
        parts.append(p)
    if shape is not None:
        parts.append(f"shape={written_shape(shape, source)}")
    return Called(f"{named('jax.random', node, source)}.bernoulli", parts)


def written_shape(shape: cst.BaseExpression, source: Source) -> str:
    """The shape as an argument among others: a tuple in its brackets."""
    text = source.code(shape)
    return f"({text})" if isinstance(shape, cst.Tuple) and not text.startswith("(") else text
