"""Writing a conditional as a choice between what its branches give: of arrays, of trees, or of the fields of an object.

In: a conditional of a Source. Out: what to write in its place, and the edits that it takes besides.
"""

from __future__ import annotations

from typing import NamedTuple

import libcst as cst

from fusionlint.finding import Edit
from fusionlint.lazily import regex
from fusionlint.patterns.branches.conditional import Branch, Conditional, conditional, is_unchanged
from fusionlint.patterns.branches.text import as_where, branch_text, is_array, part_of
from fusionlint.patterns.code.at import at_write, inside, is_literal, names_in
from fusionlint.patterns.code.before import free_name, line_before
from fusionlint.patterns.code.calls import REPLACES, as_argument, as_operand
from fusionlint.patterns.code.functions import parameters
from fusionlint.patterns.code.imports import Imported, imported, numpy_of_jax
from fusionlint.patterns.code.layout import Called, Part
from fusionlint.source.tree import Source
from fusionlint.source.walk import dotted, holds_comment

# What is called so is a tree of arrays.
_TREE = regex(r"(^|_)(params|weights|variables|grads|gradients|state|stats|tree)$")
# What the leaves of the branches are called, where nothing there is called so.
_LEAVES = ("a", "b", "c", "d"), ("new", "old", "third", "fourth")
# What is asked gets a name where it is longer, or calls what is not of jax.
_CONDITION, _SHORT = "condition", 24
_TREE_MAP = "jax.tree_util.tree_map"
# What is asked of an array itself.
_METHODS = frozenset(("all", "any", "sum", "max", "min", "mean", "astype"))


class Choice(NamedTuple):
    """What stands for a conditional, the edits that import what it needs and write a line before, and that line."""

    text: Part
    edits: tuple[Edit, ...] = ()
    before: str = ""

    def __str__(self) -> str:
        return f"{self.before}; {self.text}" if self.before else str(self.text)


class _Names(NamedTuple):
    """What a choice is written with, `jnp.where` and `jax.tree.map`, and by what it chooses."""

    where: str
    tree_map: str
    test: str = ""  # as it stands there, where it has no name


def as_choice(found: Conditional, source: Source) -> Choice | None:
    """`jnp.where(test, a, b)`, or that of each leaf; None where the branches are no expressions there."""
    numpy = numpy_of_jax(found.call, source)
    if numpy is None or holds_comment(found.call):
        return None
    if (where := as_where(found, numpy.name, source)) is not None:
        return Choice(where, numpy.edits)
    tree_map = _tree_map(found.call, source)
    if tree_map is None or (numpy.edits and tree_map.edits):
        return None
    names = _Names(f"{numpy.name}.where", tree_map.name)
    named, before = _named_test(found, source)
    for each, line in ((names._replace(test=named), before), (names, None)):
        fields = _of_fields(found, each, source) or _of_a_tuple(found, each, source)
        text = fields if fields is not None else _of_leaves(found, each, source)
        is_asked_again = bool(named) and (str(text).count(named) > 1 or names.tree_map in str(text))
        if text is not None and (line is None or is_asked_again):
            lines, said = ((line,), line.text.strip()) if line is not None else ((), "")
            return Choice(text, (*numpy.edits, *tree_map.edits, *lines), said)
    return None


def _named_test(found: Conditional, source: Source) -> tuple[str, Edit | None]:
    """A name for what is asked, and the line before that gives it one: for each leaf it would stand there again."""
    text = as_argument(found.test, source)
    is_short = len(text) <= _SHORT and not _calls_others(found.test, source)
    if found.is_switch or isinstance(found.test, cst.Name | cst.Attribute) or is_short or "\n" in text:
        return "", None
    name = free_name(_CONDITION, found.call, source)
    before = line_before(found.call, f"{name} = {text}", source)
    return (name, before) if before is not None else ("", None)


def as_masked_write(found: Conditional, source: Source) -> Choice | None:
    """`x.at[i].set(jnp.where(p, row, x[i]))`, where one branch writes a place of what the other hands on as it is."""
    numpy = numpy_of_jax(found.call, source)
    if numpy is None or found.is_switch or len(found.branches) != 2 or holds_comment(found.call):
        return None
    for branch, other in (found.branches, found.branches[::-1]):
        write = at_write(branch.result)
        if write is None or write.method != "set" or write.value is None or len(write.call.args) != 1:
            continue
        parts = (write.array, write.value, *write.index)
        array, row, *index = (part_of(part, branch, found, source) for part in parts)
        kept = part_of(other.result, other, found, source)
        if array is None or array != kept or not is_unchanged(other) or row is None or not all(index):
            return None
        place = f"[{', '.join(map(str, index))}]"
        values = (row, f"{array}{place}") if branch is found.branches[0] else (f"{array}{place}", row)
        chosen = Called(f"{numpy.name}.where", (as_argument(found.test, source), *values))
        return Choice(Called(f"{array}.at{place}.set", (chosen,)), numpy.edits)
    return None


def _tree_map(node: cst.CSTNode, source: Source) -> Imported | None:
    """What the file calls the map over trees, or may call it."""
    if "jax.tree.map" not in source.names and ("jax.tree_map" in source.names or _TREE_MAP in source.names):
        if (name := source.alias_at(node, _TREE_MAP)) is not None:
            return Imported(name)
        if (module := source.alias_at(node, "jax.tree_util")) is not None:
            return Imported(f"{module}.tree_map")
    jax = imported("jax", node, source)
    if jax is None:
        return None
    is_old = "jax.tree.map" not in source.names and _TREE_MAP in source.names
    return Imported(f"{jax.name}.tree_util.tree_map" if is_old else f"{jax.name}.tree.map", jax.edits)


def _of_leaves(found: Conditional, names: _Names, source: Source) -> Part | None:
    """The choice of whole trees, or of arrays by a number."""
    given = [_value(branch, found, names, source) for branch in found.branches]
    values = [value for value in given if value is not None]
    if len(values) != len(found.branches) or (not names.test and _calls_others(found.test, source)):
        return None  # for each leaf it would be called again
    leaves = _leaves(found)
    if found.is_switch:
        if len(values) > 2 and not isinstance(found.test, cst.Name | cst.Attribute):
            return None
        test = as_operand(found.test, source.code(found.test))
        if any(is_array(branch.result, source) for branch in found.branches):
            return _by_number(test, values, names.where)
        chosen = _by_number(test, leaves[: len(values)], names.where)
    else:
        chosen = Called(names.where, (names.test or as_argument(found.test, source), *leaves[:2]))
    return Called(names.tree_map, (f"lambda {', '.join(leaves[: len(values)])}: {chosen}", *values))


def _calls_others(test: cst.BaseExpression, source: Source) -> bool:
    """Whether a test calls what is not of jax."""
    calls = inside(test, cst.Call)
    names = (source.qualified_name(call.func) or dotted(call.func) for call in calls)
    return not all(name.startswith("jax.") or name.rpartition(".")[2] in _METHODS for name in names)


def _by_number(test: str, values: list[Part] | tuple[str, ...], where: str) -> Part:
    """The value at a number, the first below it and the last above: `jnp.where(i <= 0, a, jnp.where(i == 1, b, c))`."""
    *others, last = values
    nest: Part = last
    for number, value in reversed([*enumerate(others)]):
        nest = Called(where, (f"{test} {'==' if number else '<='} {number}", value, nest))
    return nest


def _value(branch: Branch, found: Conditional, names: _Names, source: Source) -> Part | None:
    nested = conditional(branch.result, source)
    if nested is None or not isinstance(branch.function, cst.Lambda):
        return branch_text(branch, found, source)
    numpy = names.where.rpartition(".")[0]
    if part_of(branch.result, branch, found, source) != source.code(branch.result):
        return None
    return as_where(nested, numpy, source) or _of_leaves(nested, names._replace(test=""), source)


def _leaves(found: Conditional) -> tuple[str, ...]:
    read = {name.value for name in names_in(found.call)}
    return next((leaves for leaves in _LEAVES if read.isdisjoint(leaves)), _LEAVES[-1])


def _of_fields(found: Conditional, names: _Names, source: Source) -> Part | None:
    """`state.replace(x=jnp.where(p, new, state.x))`, where one branch replaces fields and the other none: of a whole
    tree, all that stays as it was would be chosen too."""
    if found.is_switch or len(found.branches) != 2:
        return None
    for branch, other in (found.branches, found.branches[::-1]):
        match _replaced(branch, other):
            case cst.Call(func=cst.Attribute(value=cst.Name() as whole, attr=cst.Name(method)), args=args):
                old = part_of(whole, branch, found, source)
                new = [part_of(arg.value, branch, found, source) for arg in args]
                if old is None or not all(new):
                    return None
                fields = [
                    _field(arg, str(value), old, branch is found.branches[0], found, names, source)
                    for arg, value in zip(args, new, strict=True)
                ]
                return Called(f"{old}.{method}", fields)
    return None


def _of_a_tuple(found: Conditional, names: _Names, source: Source) -> Part | None:
    """`(jnp.where(p, a, b), key)`, where all but one part of what the branches return is the same in both."""
    if found.is_switch or len(found.branches) != 2:
        return None
    parts = []
    for branch in found.branches:
        if not isinstance(branch.result, cst.Tuple) or not isinstance(branch.function, cst.Lambda):
            return None
        each = [element.value for element in branch.result.elements]
        if any(conditional(one, source) is not None or is_literal(source.meant(one)) for one in each):
            return None  # of a number a conditional makes an array
        parts.append([(value, part_of(value, branch, found, source)) for value in each])
    if len(parts[0]) != len(parts[1]) or not all(text for part in parts for _, text in part):
        return None
    pairs = [*zip(*parts, strict=True)]
    if sum(one != other for (_, one), (_, other) in pairs) != 1:
        return None
    return Called("", [_chosen(one, other, found, names, source) for one, other in pairs])


def _chosen(
    one: tuple[cst.BaseExpression, str | None],
    other: tuple[cst.BaseExpression, str | None],
    found: Conditional,
    names: _Names,
    source: Source,
) -> Part:
    """One part of a tuple: what both branches have, or a choice of the two."""
    values, (a, b) = (one[1] or "", other[1] or ""), _leaves(found)[:2]
    if values[0] == values[1]:
        return values[0]
    test = names.test or as_argument(found.test, source)
    if is_array(one[0], source) or is_array(other[0], source):
        return Called(names.where, (test, *values))
    return Called(names.tree_map, (f"lambda {a}, {b}: {Called(names.where, (test, a, b))}", *values))


def _field(arg: cst.Arg, new: str, old: str, is_first: bool, found: Conditional, names: _Names, source: Source) -> Part:
    """`x=jnp.where(p, new, state.x)`."""
    assert arg.keyword is not None
    name, test, leaves = arg.keyword.value, names.test or as_argument(found.test, source), _leaves(found)
    values = (new, f"{old}.{name}") if is_first else (f"{old}.{name}", new)
    if is_array(arg.value, source):
        return Called(f"{name}={names.where}", (test, *values))
    chosen = Called(names.where, (test, *leaves[:2]))
    return Called(f"{name}={names.tree_map}", (f"lambda {leaves[0]}, {leaves[1]}: {chosen}", *values))


def of_fields(found: Conditional, numpy: str) -> str | None:
    """The same in words, of the first field."""
    for branch in found.branches:
        for other in found.branches:
            match _replaced(branch, other):
                case cst.Call(func=cst.Attribute(value=cst.Name(whole), attr=cst.Name(method)), args=[*args]):
                    fields = [arg.keyword.value for arg in args if arg.keyword is not None]
                    old = f"{whole}.{fields[0]}"
                    chosen = f"{numpy}.where(p, new, {old})"
                    if _TREE.search(fields[0]):
                        chosen = f"jax.tree.map(lambda a, b: {numpy}.where(p, a, b), new, {old})"
                    return f"{whole}.{method}({fields[0]}={chosen}{', ...' if fields[1:] else ''})"
    return None


def _replaced(branch: Branch, other: Branch) -> cst.Call | None:
    """The call by which `branch` replaces fields of what `other` hands on as it is."""
    match branch.result:
        case cst.Call(func=cst.Attribute(value=cst.Name(whole), attr=cst.Name(method)), args=[_, *_] as args) if (
            method in REPLACES and all(arg.keyword is not None for arg in args)
        ):
            return branch.result if is_unchanged(other) and _is_same(whole, branch, other) else None
    return None


def _is_same(whole: str, branch: Branch, other: Branch) -> bool:
    """Whether `other` hands on what `branch` calls `whole`: the same name of the code around both, or what both are
    given at the same place."""
    handed = other.result.value if isinstance(other.result, cst.Name) else ""
    ours, theirs = ([each.name.value for each in parameters(one.function)] for one in (branch, other))
    if whole in ours and handed in theirs:
        return branch.operands == other.operands and ours.index(whole) == theirs.index(handed)
    return handed == whole and whole not in ours and handed not in theirs
