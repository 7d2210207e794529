"""How many of what is sorted are taken: nearly all of it, a share, a number that only a trace knows, or a few.

In: the number taken, as it is written in a Source. Unknown is none of these.
"""

from __future__ import annotations

import libcst as cst

from fusionlint.lazily import regex
from fusionlint.patterns.code.at import constant, inside, names_read
from fusionlint.patterns.code.calls import argument
from fusionlint.patterns.code.functions import parameters
from fusionlint.patterns.code.unpacked import assigned, unpacked
from fusionlint.patterns.operations.sort import Sorted
from fusionlint.patterns.runs.options import as_given, default_of
from fusionlint.source.names import TREE_MAPS
from fusionlint.source.tree import Source
from fusionlint.source.walk import dotted

# What is sorted is seldom made in more steps than this.
_VALUES = 4
_SIZE = regex(r"(^|_)(pop)?(size|capacity)$")


def keeps_its_own_size(made: Sorted, count: cst.BaseExpression | None, source: Source) -> bool:
    """Whether those that survive are chosen from what there is and something new, `concatenate([self.x, new])`, and
    are `self.size` again: nearly all of them, of which `top_k` is a sort as well."""
    match count:
        case cst.Attribute(value=cst.Name(owner), attr=cst.Name(name)) if _SIZE.search(name):
            return _joins_what_is_held(made.array, owner, source)
    return False


def is_a_share(count: cst.BaseExpression | None, source: Source, depth: int = _VALUES) -> bool:
    """Whether as many are read as are a part of all, `int(0.1 * x.size)`: of so many `top_k` is a sort, too."""
    if isinstance(count, cst.Name) and depth:
        value = source.value(count)
        return value is not None and is_a_share(value, source, depth - 1)
    if source.calls(count, "max", "min"):
        return any(is_a_share(arg.value, source, depth) for arg in count.args)
    parts = list(inside(count)) if count is not None else []
    is_part = any(
        isinstance(part, cst.BinaryOperation) and isinstance(part.operator, cst.Multiply | cst.Divide | cst.FloorDivide)
        for part in parts
    )
    parts += [source.meant(part) for part in parts if isinstance(part, cst.Name)]  # size, of `size = x.shape[0]`
    return is_part and any(_is_a_size(part, source) for each in parts for part in (each, *_subscripted(each)))


def _subscripted(node: cst.CSTNode) -> tuple[cst.CSTNode, ...]:
    """x.shape, of `x.shape[0]`."""
    return (node.value,) if isinstance(node, cst.Subscript) else ()


def is_of_a_leaf(count: cst.BaseExpression | None, source: Source) -> bool:
    """Whether a number is computed of what a `jax.tree.map` hands the function around: leaves of trees are arrays."""
    function = source.function(count) if count is not None else None
    if count is None or not isinstance(function, cst.FunctionDef):
        return False
    mapped = (argument(call, 0, "f") for call in source.calls_of(TREE_MAPS))
    is_mapped = any(isinstance(one, cst.Name) and one.value == function.name.value for one in mapped)
    return is_mapped and not {name.value for name in names_read(count)}.isdisjoint(
        each.name.value for each in parameters(function)
    )


def is_at_most(limit: int, count: cst.BaseExpression | None, source: Source) -> bool:
    """Whether no more are read, by what is written, given a name, or the default of a parameter or a field."""
    match count:
        case cst.Name():
            count = as_given(count, source)
        case cst.Attribute(attr=cst.Name(field)):
            count = default_of(field, count, source)
    number = constant(count) if count is not None else None
    return number is not None and number <= limit


def _is_a_size(node: cst.CSTNode, source: Source) -> bool:
    match node:
        case cst.Attribute(attr=cst.Name("size" | "shape")):
            return True
        case cst.Call():
            return source.calls(node, "len", "jax.numpy.size")
    return False


def _joins_what_is_held(node: cst.BaseExpression, owner: str, source: Source, depth: int = _VALUES) -> bool:
    """Whether `node` is made of an attribute of `owner` with something behind it, as far as can be seen."""
    for part in inside(node, cst.Call):
        if source.calls(part, "jax.numpy.concatenate"):
            listed = part.args[0].value if part.args else None
            joined = listed.elements if isinstance(listed, cst.Tuple | cst.List) else ()
            if any(dotted(one.value).startswith(f"{owner}.") for one in joined):
                return True
    if depth == 0:
        return False
    made = (_made(name, source) for name in names_read(node))
    return any(one is not None and _joins_what_is_held(one, owner, source, depth - 1) for one in made)


def _made(name: cst.Name, source: Source) -> cst.BaseExpression | None:
    """What gave `name` its value, alone or with others: `_, novelty = scores(fitness)`."""
    written = source.written(name)
    return None if written is None else assigned(written, source) or unpacked(written, source)
