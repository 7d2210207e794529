"""Conditionals that choose between values which are there already, `cond(accepted, lambda: proposal, lambda: state)`.

In: conditionals of a Source. Such a one spares no work, whoever calls the function around it, and however.
"""

from __future__ import annotations

import libcst as cst

from fusionlint.patterns.branches.conditional import Branch, Conditional, is_handed_on, is_unchanged
from fusionlint.patterns.code.at import inside, names_read
from fusionlint.patterns.code.unpacked import stored_in
from fusionlint.source.tree import Source

# What makes an array like one that is there.
_LIKE = ("jax.numpy.zeros_like", "jax.numpy.ones_like", "jax.numpy.full_like")


def chooses_what_is_there(found: Conditional, source: Source) -> bool:
    """Whether no branch computes anything, and what is asked for is computed in the function around: what that is
    handed, `should_log`, its caller may know."""
    branches = found.branches
    if not any(map(is_unchanged, branches)) or not all(_hands_on(branch, source) for branch in branches):
        return False
    return _is_computed(found, source)


def _hands_on(branch: Branch, source: Source) -> bool:
    """Whether a branch hands on values, or makes a record of some."""
    return is_unchanged(branch) or (isinstance(branch.function, cst.Lambda) and _is_there(branch.result, source))


def _is_there(node: cst.BaseExpression, source: Source) -> bool:
    match node:
        case cst.Tuple(elements=elements):
            return bool(elements) and all(_is_there(element.value, source) for element in elements)
        case cst.Call(func=cst.Name(name) | cst.Attribute(attr=cst.Name(name)), args=args):
            is_record = name[:1].isupper() or source.calls(node, *_LIKE)
            return is_record and all(_is_there(argument.value, source) for argument in args)
    return is_handed_on(node)


def computed_for(found: Conditional, source: Source) -> list[cst.BaseExpression]:
    """What the function around computes and gives a name that the test reads."""
    here = source.function(found.call)
    values = (stored_in(name, source) for name in names_read(found.test))
    return [value for value in values if value is not None and source.function(value) is here]


def _is_computed(found: Conditional, source: Source) -> bool:
    asked = (found.test, *computed_for(found, source))
    return any(_computes(part, source) for value in asked for part in (value, *inside(value)))


def _computes(node: cst.CSTNode, source: Source) -> bool:
    """Whether this is a call of jax, or asks an array by a method."""
    match node:
        case cst.Call(func=cst.Attribute(attr=cst.Name("any" | "all"))):
            return True
        case cst.Call():
            return (source.qualified_name(node.func) or "").startswith("jax.")
    return False
