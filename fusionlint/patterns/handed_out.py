"""Compiled steps that a factory makes for others: `return jax.jit(train_step)`.

In: calls of a jit, and the functions that they compile. Out: whether nobody here calls what is made, and which argument
the step hands back anew.
"""

from __future__ import annotations

import libcst as cst

from fusionlint.patterns.at import constant, inside
from fusionlint.patterns.replaced import calls_of_name
from fusionlint.source.tree import Source


def is_for_others(jit: cst.Call, source: Source) -> bool:
    """Whether what `jit` makes is returned and no call of it is seen."""
    match source.parent(jit):
        case cst.Return():
            return True
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Name() as name)]):
            reads = source.reads(name)
            return bool(reads) and all(map(_is_returned, map(source.parent, reads))) and not calls_of_name(name, source)
    return False


def donates(jit: cst.Call) -> frozenset[int] | None:
    """The arguments that are donated, by number; None where that is not written out."""
    found: frozenset[int] = frozenset()
    for arg in jit.args:
        if arg.star or (arg.keyword is not None and arg.keyword.value == "donate_argnames"):
            return None
        if arg.keyword is not None and arg.keyword.value == "donate_argnums":
            parts = arg.value.elements if isinstance(arg.value, cst.Tuple | cst.List) else (arg,)
            numbers = [constant(part.value) for part in parts]
            if None in numbers:
                return None
            found = frozenset(int(number) for number in numbers if number is not None)
    return found


def goes_on(step: cst.FunctionDef, source: Source) -> int | None:
    """The number of the parameter that `step` returns first, made anew: 0 of `return state.replace(step=1), loss`."""
    returns = (part for part in inside(step.body) if isinstance(part, cst.Return) and source.function(part) is step)
    values = [part.value for part in returns]
    firsts = [v.elements[0].value if isinstance(v, cst.Tuple) and v.elements else v for v in values]
    roots = {root for first in firsts for root in _roots(first, source, frozenset())}
    root = roots.pop() if len(roots) == 1 else None
    if root is None or any(first in source.reads(root) for first in firsts):
        return None
    return next((i for i, parameter in enumerate(step.params.params) if parameter.name is root), None)


def _is_returned(parent: cst.CSTNode | None) -> bool:
    return isinstance(parent, cst.Return)


def _roots(node: cst.BaseExpression | None, source: Source, seen: frozenset[cst.Name]) -> set[cst.Name | None]:
    """The parameters that a value is made from by methods, `state.apply_gradients(grads=grads).replace(step=0)`; None
    among them where it may be made from anything else."""
    match node:
        case cst.Call(func=cst.Attribute(value=owner)):
            return _roots(owner, source, seen)
        case cst.Name():
            last = source.written(node)
            writes = [last] if last is not None else [use.node for use in source.writes(node)]
            return {root for each in writes if each not in seen for root in _bound(each, source, seen | {each})}
    return {None}


def _bound(name: cst.Name, source: Source, seen: frozenset[cst.Name]) -> set[cst.Name | None]:
    """The same of what one write binds a name to."""
    match target := source.parent(name):
        case cst.Param():
            return {name}
        case cst.AssignTarget():
            statement = source.parent(target)
            return _roots(statement.value, source, seen) if isinstance(statement, cst.Assign) else {None}
    return {None}
