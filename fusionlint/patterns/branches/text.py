"""Writing a conditional as `jnp.where`, where its branches are expressions of arrays."""

from __future__ import annotations

import libcst as cst

from fusionlint.lazily import regex
from fusionlint.patterns.branches.conditional import Branch, Conditional, conditional, is_unchanged
from fusionlint.patterns.code.at import inside, names_in
from fusionlint.patterns.code.calls import REPLACES, as_argument
from fusionlint.patterns.code.elementwise import is_elementwise
from fusionlint.patterns.code.functions import parameters
from fusionlint.patterns.code.layout import Called, Part
from fusionlint.patterns.values.kinds import kind
from fusionlint.patterns.values.one_number import is_scalar_literal
from fusionlint.source.tree import Source
from fusionlint.source.walk import holds_comment

_ASKS = (
    "all any isnan isinf isfinite allclose isclose array_equal logical_and logical_or logical_not logical_xor"
    " equal not_equal less less_equal greater greater_equal"
)
_TRUTHS = tuple(f"jax.numpy.{name}" for name in _ASKS.split())
# What is called so is a tree of arrays.
_TREE = regex(r"(^|_)(params|weights|variables|grads|gradients|state|stats|tree)$")
_OF_PYTHON = ("Is", "IsNot", "In", "NotIn")


def as_where(found: Conditional, source: Source) -> Part | None:
    """`jnp.where(test, a, b)` for a `cond` of two lambdas; None where a branch may return a tree, where names would
    have to change, or where a comment would be lost."""
    numpy = source.alias_at(found.call, "jax.numpy")
    if numpy is None or found.is_switch or len(found.branches) != 2 or holds_comment(found.call):
        return None
    if not any(_is_array(branch.result, source) for branch in found.branches):
        return None
    if (truth := _as_test(found, numpy, source)) is not None:
        return truth
    parts = [part for branch in found.branches if (part := _text(branch, found, source)) is not None]
    return Called(f"{numpy}.where", (as_argument(found.test, source), *parts)) if len(parts) == 2 else None


def of_fields(found: Conditional, numpy: str) -> str | None:
    """`state.replace(x=jnp.where(p, new, state.x))`, where one branch replaces fields and the other none: of a whole
    tree, all that stays as it was would be chosen too."""
    for branch in found.branches:
        match branch.result:
            case cst.Call(func=cst.Attribute(value=cst.Name(whole), attr=cst.Name(method)), args=[*args]) if (
                method in REPLACES and args and all(arg.keyword is not None for arg in args)
            ):
                if any(is_unchanged(other) and _is_same(whole, branch, other) for other in found.branches):
                    fields = [arg.keyword.value for arg in args if arg.keyword is not None]
                    old = f"{whole}.{fields[0]}"
                    chosen = f"{numpy}.where(p, new, {old})"
                    if _TREE.search(fields[0]):
                        chosen = f"jax.tree.map(lambda a, b: {numpy}.where(p, a, b), new, {old})"
                    return f"{whole}.{method}({fields[0]}={chosen}{', ...' if fields[1:] else ''})"
    return None


def _is_same(whole: str, branch: Branch, other: Branch) -> bool:
    """Whether `other` hands on what `branch` calls `whole`: the same name of the code around both, or what both are
    given at the same place."""
    handed = other.result.value if isinstance(other.result, cst.Name) else ""
    ours, theirs = ([each.name.value for each in parameters(one.function)] for one in (branch, other))
    if whole in ours and handed in theirs:
        return ours.index(whole) == theirs.index(handed)
    return handed == whole and whole not in ours and handed not in theirs


def _as_test(found: Conditional, numpy: str, source: Source) -> str | None:
    """What is asked itself, where that is what a `cond` hands on: True if it is true, else False."""
    told = [branch.result.value if isinstance(branch.result, cst.Name) else "" for branch in found.branches]
    if sorted(told) != ["False", "True"] or not _is_truth(found.test, source):
        return None
    text = as_argument(found.test, source)
    if told == ["False", "True"]:
        return f"{numpy}.logical_not({text})"
    stands_alone = isinstance(source.parent(found.call), cst.Assign | cst.AnnAssign | cst.Arg | cst.Return)
    return text if isinstance(found.test, cst.Call | cst.Name) or stands_alone else f"({text})"


def _is_truth(test: cst.BaseExpression, source: Source) -> bool:
    """Whether this is a truth value, of the type that is called bool, and no number."""
    meant = source.meant(test)
    if isinstance(meant, cst.Comparison):
        return all(type(each.operator).__name__ not in _OF_PYTHON for each in meant.comparisons)
    return source.calls(meant, *_TRUTHS)


def _text(branch: Branch, found: Conditional, source: Source) -> Part | None:
    function = branch.function
    nested = conditional(branch.result, source)
    if not isinstance(function, cst.Lambda) or not _keeps_names(function, found, source):
        return None
    if nested is not None:
        return as_where(nested, source)
    inner = (part for part in inside(branch.result) if isinstance(part, cst.Call))
    if isinstance(branch.result, cst.Tuple) or any(conditional(part, source) for part in inner):
        return None
    return as_argument(branch.result, source)


def _keeps_names(function: cst.Lambda, found: Conditional, source: Source) -> bool:
    """Whether what the branch calls its parameters are the names of the operands, or it does not read them, and what
    else it reads means the same where the conditional stands: a lambda may have been written in another scope."""
    names = [parameter.name.value for parameter in parameters(function)]
    used = {part.value for part in names_in(function.body)}
    there, here = source.scope(function), source.scope(found.call)
    if any(source.facts.lookup(there, name) != source.facts.lookup(here, name) for name in used.difference(names)):
        return False
    star = function.params.star_arg
    if isinstance(star, cst.Param) and star.name.value in used:
        return False
    given = [source.code(operand.value) if not operand.star else "*" for operand in found.operands]
    return all(name not in used or (i < len(given) and given[i] == name) for i, name in enumerate(names))


def _is_array(node: cst.BaseExpression, source: Source) -> bool:
    """Whether an expression is one array or number, and no tree of them: names stand for what they were given."""
    node = source.meant(node)
    if is_scalar_literal(node, source) or isinstance(node, cst.BinaryOperation | cst.Comparison | cst.UnaryOperation):
        return True
    if isinstance(node, cst.Call) and (nested := conditional(node, source)):
        return any(_is_array(branch.result, source) for branch in nested.branches)
    return kind(node, source) == "array" or (isinstance(node, cst.Call) and is_elementwise(node, source))
