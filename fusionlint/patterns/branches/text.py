"""Writing a conditional as `jnp.where`, where its branches are expressions of arrays."""

from __future__ import annotations

import libcst as cst

from fusionlint.finding import Edit, Location
from fusionlint.patterns.branches.conditional import (
    CONDITIONALS,
    Branch,
    Conditional,
    conditional,
    is_unchanged,
    only_returns,
)
from fusionlint.patterns.code.at import inside, is_literal, names_in
from fusionlint.patterns.code.calls import as_argument
from fusionlint.patterns.code.elementwise import is_elementwise
from fusionlint.patterns.code.functions import Function, function_named, parameters, returns_of
from fusionlint.patterns.code.layout import Called, Part
from fusionlint.patterns.values.kinds import kind
from fusionlint.patterns.values.one_number import is_scalar_literal
from fusionlint.source.fix import apply
from fusionlint.source.names import TREE_MAPS
from fusionlint.source.tree import Source
from fusionlint.source.walk import dotted, holds_comment

_ASKS = (
    "all any isnan isinf isfinite allclose isclose array_equal logical_and logical_or logical_not logical_xor"
    " equal not_equal less less_equal greater greater_equal"
)
_TRUTHS = tuple(f"jax.numpy.{name}" for name in _ASKS.split())
_OF_ARRAYS = ("astype", "reshape", "ravel", "flatten", "transpose", "squeeze")
# A function that returns what another returns is seldom further away than this.
_DEPTH = 2
_OF_PYTHON = ("Is", "IsNot", "In", "NotIn")


def as_where(found: Conditional, numpy: str, source: Source) -> Part | None:
    """`jnp.where(test, a, b)` for a `cond` of expressions, where `numpy` is `jnp`; None where a branch may return a
    tree, where names would have to change, or where a comment would be lost."""
    if found.is_switch or len(found.branches) != 2 or holds_comment(found.call):
        return None
    if not any(is_array(branch.result, source) for branch in found.branches):
        return None
    if (truth := _as_test(found, numpy, source)) is not None:
        return truth
    parts = [part for branch in found.branches if (part := _text(branch, found, numpy, source)) is not None]
    return Called(f"{numpy}.where", (as_argument(found.test, source), *parts)) if len(parts) == 2 else None


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


def _text(branch: Branch, found: Conditional, numpy: str, source: Source) -> Part | None:
    """One value of a choice of arrays; of several none."""
    nested = conditional(branch.result, source)
    if nested is not None and isinstance(branch.function, cst.Lambda):
        return as_where(nested, numpy, source) if _keeps_names(branch, found, source) else None
    if isinstance(branch.result, cst.Tuple | cst.List):
        return None
    return branch_text(branch, found, source)


def branch_text(branch: Branch, found: Conditional, source: Source) -> str | None:
    """What a branch gives, as an expression where the conditional stands: what a lambda, or a def that does no more,
    returns, or a call of a def. None where names would have to change, or a comment would be lost."""
    function, told = branch.function, _operands(branch, source)
    if isinstance(function, cst.Lambda) or is_unchanged(branch):
        text = _inlined(branch, found, source)
        if text is not None or isinstance(function, cst.Lambda):
            return text
    given = _given(branch, found, source)
    name = dotted(given) if given is not None else ""
    if not name or told is None or _branches(function.body, source):
        return None
    return f"{name}({', '.join(told)})"


def _branches(node: cst.CSTNode, source: Source) -> bool:
    """Whether another conditional stands in `node`: that has to be written otherwise first."""
    return any(source.calls(part, *CONDITIONALS) for part in inside(node))


def _given(branch: Branch, found: Conditional, source: Source) -> cst.BaseExpression | None:
    """The name by which the conditional was handed a branch, where it means the same there."""
    is_there = not found.is_switch or source.function(branch.given) is source.function(found.call)
    return branch.given if is_there else None


def _operands(branch: Branch, source: Source) -> list[str] | None:
    """What a branch is handed, as arguments; None for numbers, which a conditional makes arrays of."""
    if any(arg.keyword is not None and arg.keyword.value == "operands" for arg in branch.operands):
        return None
    if any(is_literal(arg.value) for arg in branch.operands):
        return None
    return [f"{arg.star}{as_argument(arg.value, source)}" for arg in branch.operands]


def _inlined(branch: Branch, found: Conditional, source: Source) -> str | None:
    """What the function returns, with what it is handed in the place of its parameters."""
    result = _without_a_copy(branch.result, source)
    return None if _branches(result, source) else part_of(result, branch, found, source)


def _without_a_copy(result: cst.BaseExpression, source: Source) -> cst.BaseExpression:
    """`params`, of `jax.tree.map(lambda x: x, params)`: only the branch of a conditional needs a call."""
    match result:
        case cst.Call(
            args=[
                cst.Arg(value=cst.Lambda(params=cst.Parameters(params=[each]), body=cst.Name(same))),
                cst.Arg(value=tree, star=""),
            ]
        ) if same == each.name.value and source.calls(result, *TREE_MAPS):
            return tree
    return result


def part_of(node: cst.BaseExpression | cst.BaseSlice, branch: Branch, found: Conditional, source: Source) -> str | None:
    """The same of a part of that."""
    if isinstance(branch.function, cst.FunctionDef) and not only_returns(branch.function):
        return None  # what it has computed before is not there
    renamed = _renamed(branch, found, source)
    if renamed is None or holds_comment(node):
        return None
    text = as_argument(node, source) if isinstance(node, cst.BaseExpression) else source.code(node)
    if not renamed:
        return text
    if isinstance(node, cst.Name):
        return renamed.get(node, text)
    start, within = source.location(node), {*inside(node)}
    edits = [Edit(_from(start, source.location(read)), new) for read, new in renamed.items() if read in within]
    code = apply(source.code(node), edits)
    return f"({code})" if text != source.code(node) else code


def _from(start: Location, where: Location) -> Location:
    """A place of a text that begins at `start`."""
    lines = (where.line - start.line + 1, where.end_line - start.line + 1)
    columns = [
        column - start.column + 1 if line == 1 else column
        for line, column in zip(lines, (where.column, where.end_column), strict=True)
    ]
    return Location(start.path, lines[0], columns[0], lines[1], columns[1])


def _renamed(branch: Branch, found: Conditional, source: Source) -> dict[cst.CSTNode, str] | None:
    """The reads of parameters that have other names where the conditional stands, and what each is there; None where
    that is not seen, or another name would mean something else."""
    function, operands = branch.function, branch.operands
    if isinstance(function, cst.Lambda) and _keeps_names(branch, found, source):
        return {}
    if not _is_the_same_there(function, found, source) or function.params.star_arg not in (
        None,
        cst.MaybeSentinel.DEFAULT,
    ):
        return None
    changed: dict[cst.CSTNode, str] = {}
    for place, parameter in enumerate(parameters(function)):
        reads = source.reads(parameter.name)
        if not reads:
            continue
        given = operands[place] if place < len(operands) else None
        if given is None or given.star or not isinstance(given.value, cst.Name | cst.Attribute):
            return None
        if any(source.function(read) is not function for read in reads):
            return None
        changed.update((read, source.code(given.value)) for read in reads)
    return changed


def _is_the_same_there(function: Function, found: Conditional, source: Source) -> bool:
    """Whether what a branch reads, but for its parameters, means the same where the conditional stands."""
    names = {parameter.name.value for parameter in parameters(function)}
    used = {part.value for part in names_in(function.body)} - names
    there, here = source.body_scope(function), source.scope(found.call)
    return all(source.facts.lookup(there, name) == source.facts.lookup(here, name) for name in used)


def _keeps_names(branch: Branch, found: Conditional, source: Source) -> bool:
    """Whether what the branch calls its parameters are the names of the operands, or it does not read them, and what
    else it reads means the same where the conditional stands: a lambda may have been written in another scope."""
    function = branch.function
    names = [parameter.name.value for parameter in parameters(function)]
    used = {part.value for part in names_in(function.body)}
    there, here = source.scope(function), source.scope(found.call)
    if any(source.facts.lookup(there, name) != source.facts.lookup(here, name) for name in used.difference(names)):
        return False
    star = function.params.star_arg
    if isinstance(star, cst.Param) and star.name.value in used:
        return False
    given = [source.code(operand.value) if not operand.star else "*" for operand in branch.operands]
    return all(name not in used or (i < len(given) and given[i] == name) for i, name in enumerate(names))


def is_array(node: cst.BaseExpression, source: Source, depth: int = _DEPTH) -> bool:
    """Whether an expression is one array or number, and no tree of them: names stand for what they were given, and a
    call of a function of the file for what that returns."""
    node = source.meant(node)
    if is_scalar_literal(node, source) or isinstance(node, cst.BinaryOperation | cst.Comparison | cst.UnaryOperation):
        return True
    if isinstance(node, cst.Call) and (nested := conditional(node, source)):
        return any(is_array(branch.result, source) for branch in nested.branches)
    if kind(node, source) in ("array", "scalar"):
        return True
    if not isinstance(node, cst.Call):
        return False
    return is_elementwise(node, source) or _is_of_an_array(node) or (depth > 0 and _gives_one(node, source, depth))


def _is_of_an_array(call: cst.Call) -> bool:
    """`x.astype(int)`: no tree has that."""
    return isinstance(call.func, cst.Attribute) and call.func.attr.value in _OF_ARRAYS


def _gives_one(call: cst.Call, source: Source, depth: int) -> bool:
    """Whether all that a function of the file returns are arrays or numbers."""
    function = function_named(call.func, source)
    if not isinstance(function, cst.FunctionDef) or function.asynchronous is not None:
        return False
    values = [part.value for part in returns_of(function, source)]
    return bool(values) and all(value is not None and is_array(value, source, depth - 1) for value in values)
