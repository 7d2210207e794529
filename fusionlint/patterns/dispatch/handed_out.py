"""Compiled steps that a factory makes for others: `return jax.jit(train_step)`.

In: calls of a jit, and the functions that they compile. Out: whether nobody here calls what is made, and which argument
the step hands back anew.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import libcst as cst

from fusionlint.patterns.code.at import constant, number_in
from fusionlint.patterns.code.calls import REPLACES, argument
from fusionlint.patterns.code.functions import returns_of
from fusionlint.patterns.code.unpacked import assigned
from fusionlint.patterns.runs.all_calls import calls_of_name
from fusionlint.patterns.runs.loop_bodies import FIRSTS
from fusionlint.source.tree import Source


def is_for_others(jit: cst.Call, source: Source) -> bool:
    """Whether what `jit` makes is returned and no call of it is seen."""
    match source.parent(jit):
        case cst.Return():
            return True
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Name() as name)]) if is_method(jit, source):
            return jit.args[0].value.deep_equals(name)  # update = jax.jit(update)
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Name() as name)]):
            reads = source.reads(name)
            return bool(reads) and all(map(_is_returned, map(source.parent, reads))) and not calls_of_name(name, source)
    return False


def is_handed_over(function: cst.FunctionDef, source: Source) -> bool:
    """Whether a def is returned by the one around it, or is a method, and no call of it is seen."""
    if isinstance(source.function(function), cst.FunctionDef):
        reads = source.reads(function.name)
        return bool(reads) and all(map(_is_returned, map(source.parent, reads)))
    own = f"self.{function.name.value}"
    return is_method(function, source) and all(call[0][0] != own for call in source.facts.raw.calls)


def is_method(node: cst.CSTNode, source: Source) -> bool:
    """Whether `node`, a def or a statement, stands in a class."""
    around = (above for above in source.ancestors(node) if isinstance(above, cst.ClassDef | cst.FunctionDef))
    return isinstance(next(around, None), cst.ClassDef)


def is_replaced(step: cst.FunctionDef, source: Source) -> bool:
    """Whether each `return` of `step` begins with a parameter that has other parts: `return self.replace(x=1)`."""
    firsts = list(_returned_at(0, step, source))
    return bool(firsts) and all(_is_copy(first, source) for first in firsts)


def _is_copy(node: cst.BaseExpression | None, source: Source) -> bool:
    match source.meant(node) if node is not None else None:
        case cst.Call(func=cst.Attribute(value=owner, attr=cst.Name(method))) if method in REPLACES:
            is_handed = isinstance(owner, cst.Name) and source.parameter(owner) is not None
            return is_handed or _is_copy(owner, source)
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


def goes_on(step: cst.FunctionDef, source: Source, place: int = 0) -> int | None:
    """The number of the parameter that `step` returns first, or at another place, made anew: 0 of `return
    state.replace(step=1), loss`."""
    firsts = list(_returned_at(place, step, source))
    roots = {root for first in firsts for root in _roots(first, source, frozenset())}
    root = roots.pop() if len(roots) == 1 else None
    if root is None or any(first in source.reads(root) for first in firsts):
        return None
    return next((i for i, parameter in enumerate(step.params.params) if parameter.name is root), None)


def _returned_at(place: int, step: cst.FunctionDef, source: Source) -> Iterator[cst.BaseExpression | None]:
    """What `step` returns at one place of a tuple, in each of its returns; the first is what stands alone, too."""
    for values in (part.value for part in returns_of(step, source)):
        several = [each.value for each in values.elements] if isinstance(values, cst.Tuple) else [values]
        yield several[place] if place < len(several) else None


def _is_returned(parent: cst.CSTNode | None) -> bool:
    return isinstance(parent, cst.Return)


def _roots(node: cst.BaseExpression | None, source: Source, seen: frozenset[cst.Name]) -> set[cst.Name | None]:
    """The parameters that a value is made from by methods, `state.apply_gradients(grads=grads).replace(step=0)`; None
    among them where it may be made from anything else."""
    match node:
        case cst.Call() if (first := _carried_from(node, (), source)) is not None:
            return _roots(first, source, seen)
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
            return _roots(assigned(name, source), source, seen)
        case cst.Element():
            return _roots(_unpacked_of_a_loop(target, source), source, seen)
    return {None}


def _unpacked_of_a_loop(part: cst.Element, source: Source) -> cst.BaseExpression | None:
    """What a loop of jax.lax begins with in the place that `part` has of what it ends with: `state` of `(new, n), ys =
    jax.lax.scan(f, (state, 0), xs)` for `new`."""
    above: cst.CSTNode | None = part
    path: list[int] = []
    while isinstance(above, cst.Element) and isinstance(several := source.parent(above), cst.Tuple):
        path.insert(0, number_in(several.elements, above))
        above = source.parent(several)
    statement = source.parent(above) if isinstance(above, cst.AssignTarget) else None
    return _carried_from(statement.value, path, source) if isinstance(statement, cst.Assign) else None


def _carried_from(loop: cst.BaseExpression, path: Sequence[int], source: Source) -> cst.BaseExpression | None:
    """What stands in a place of the tuples that a loop begins with, where it ends with `path`."""
    name = source.name_called(loop)
    given = FIRSTS.get(name or "")
    if given is None or not isinstance(loop, cst.Call):
        return None
    if name == "jax.lax.scan":  # which returns what it has collected, too
        if path[:1] != [0]:
            return None
        path = path[1:]
    first = argument(loop, *given)
    for place in path:
        meant = source.meant(first) if first is not None else None
        first = meant.elements[place].value if isinstance(meant, cst.Tuple) and place < len(meant.elements) else None
    return first
