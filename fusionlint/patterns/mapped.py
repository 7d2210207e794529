"""Which numbers differ from element to element where code is vectorized: what a `vmap` maps, the state of an
environment, a random draw.

In: expressions of a Source. What cannot be seen, such as the counter of a loop, does not differ.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

from fusionlint.patterns.calls import argument
from fusionlint.patterns.columns import parameters
from fusionlint.patterns.environments import in_environment
from fusionlint.patterns.loop_bodies import all_loop_bodies
from fusionlint.patterns.under import under_vmap
from fusionlint.source.project import Place
from fusionlint.source.tree import Source

Function = cst.FunctionDef | cst.Lambda

_DEPTH = 6
_DRAWS = re.compile(r"jax\.random\.(?!split|key|PRNGKey|fold_in|wrap_key)\w+$")
_STATIC = frozenset(("shape", "ndim", "size", "dtype"))
# One for all environments.
_SHARED = re.compile(r"^(self|cls|(env_)?params|config|cfg|settings)$")


def differs(node: cst.CSTNode, source: Source, depth: int = _DEPTH) -> bool:
    """Whether the value of `node` is seen to differ between the elements that a vmap around this code maps over."""
    if depth == 0:
        return False
    if isinstance(node, cst.Call) and _DRAWS.match(source.qualified_name(node.func) or ""):
        return under_vmap(node, source) or in_environment(node, source)
    match node:
        case cst.Name():
            return _name_differs(node, source, depth)
        case cst.Attribute(attr=cst.Name(field)) if field in _STATIC:
            return False
        case cst.Attribute(value=value):
            return differs(value, source, depth) or _is_of_a_tree(value, source)
        case cst.Arg(value=value):
            return differs(value, source, depth)
        case cst.Call(func=cst.Name("len" | "range")) | cst.Lambda():
            return False
        case cst.Call(func=cst.Name(), args=args):
            return any(differs(arg, source, depth) for arg in args)
    return any(differs(child, source, depth) for child in node.children)


def is_mapped_by(call: cst.Call, position: int) -> bool:
    """Whether this `vmap` maps the parameter at `position`, as far as its `in_axes` are written out."""
    axes = argument(call, 1, "in_axes")
    match axes:
        case None:
            return not any(arg.star for arg in call.args)
        case cst.Integer():
            return True
        case cst.Tuple(elements=each) | cst.List(elements=each) if position < len(each):
            return not isinstance(each[position].value, cst.Name)
    return False


def _name_differs(name: cst.Name, source: Source, depth: int) -> bool:
    written = source.written(name)
    parent = source.parent(written) if written is not None else None
    if isinstance(parent, cst.Param):
        return _parameter_differs(parent, source)
    while isinstance(parent, cst.Element | cst.Tuple | cst.List):
        parent = source.parent(parent)
    match parent:
        case cst.AssignTarget():
            statement = source.parent(parent)
            return isinstance(statement, cst.Assign) and differs(statement.value, source, depth - 1)
        case cst.AnnAssign(value=cst.BaseExpression() as value):
            return differs(value, source, depth - 1)
    return False


def _is_of_a_tree(owner: cst.BaseExpression, source: Source) -> bool:
    """Whether `owner.field` is read of an object that code under a `vmap` takes: numbers known early seldom are."""
    written = source.written(owner) if isinstance(owner, cst.Name) else None
    parameter = source.parent(written) if written is not None else None
    function = source.function(owner)
    if not isinstance(parameter, cst.Param) or function is None or _SHARED.match(parameter.name.value):
        return False
    in_body = Place(source.path, source.body_scope(function)) in all_loop_bodies(source.project)
    return under_vmap(owner, source) and not in_body


def _parameter_differs(parameter: cst.Param, source: Source) -> bool:
    function = next((a for a in source.ancestors(parameter) if isinstance(a, Function)), None)
    if function is None or _SHARED.match(parameter.name.value):
        return False
    if Place(source.path, source.body_scope(function)) in all_loop_bodies(source.project):
        return False
    names = [p.name.value for p in parameters(function)]
    calls = list(_vmaps_of(function, source))
    if calls and parameter.name.value in names:
        place = names.index(parameter.name.value)
        return any(not isinstance(call, cst.Call) or is_mapped_by(call, place) for call in calls)
    return in_environment(function.body, source)


def _vmaps_of(function: Function, source: Source) -> Iterator[cst.CSTNode]:
    """What maps this function itself: calls of `vmap` in this file, and its decorators."""
    if isinstance(function, cst.FunctionDef):
        for decorator in function.decorators:
            if source.qualified_name(decorator.decorator) == "jax.vmap":
                yield decorator
    for call in source.nodes(cst.Call):
        if not source.calls(call, "jax.vmap") or not isinstance(call, cst.Call):
            continue
        handed = argument(call, 0, "fun")
        if handed is function:
            yield call
        elif isinstance(handed, cst.Name):
            bound = source.facts.lookup(source.scope(handed), handed.value)
            if bound is not None and bound[1].kind == "function" and bound[1].target == source.body_scope(function):
                yield call
