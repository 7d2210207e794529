"""Branches that have an object write a place of a buffer: `lax.cond(p, lambda: cache.copy_page(a, b), lambda: cache)`.

In: a branch of a Source. Whose method that is, only a run says; where all methods of the project that are called so
write a place of something, it does.
"""

from __future__ import annotations

import libcst as cst

from fusionlint.lazily import regex
from fusionlint.patterns.branches.conditional import Branch
from fusionlint.source.answers import remembered
from fusionlint.source.facts import last_name
from fusionlint.source.places import Place
from fusionlint.source.project import Project
from fusionlint.source.tree import Source

# How the facts call a write of a place, `x.at[i].set(row)`.
_WRITES = regex(r"(^|.*)\.at\.(set|add|subtract|multiply|min|max)$|jax\.lax\.dynamic_update_\w+$")
# Beside what takes so long a copy of a buffer is nothing.
_LONG = regex(
    r"jax\.(lax\.(scan|while_loop|fori_loop|map|associative_scan|conv\w*|dot\w*|sort|top_k)|grad|value_and_grad|vjp|jvp"
    r"|jac\w+|hessian|numpy\.(linalg\.\w+|sort|argsort|unique|matmul|dot|einsum|tensordot)|scipy\..+|nn\.softmax)$"
)
# A helper of a method is seldom further away than this.
_DEPTH = 4


def has_a_method_write(branch: Branch, source: Source) -> bool:
    """Whether a branch returns what a method of an object that nobody knows makes, alone or beside other values, and
    that is a write of a place."""
    result = source.meant(branch.result)
    parts = [part.value for part in result.elements] if isinstance(result, cst.Tuple) else [result]
    return any(_is_of_a_writer(source.meant(part), source) for part in parts)


def _is_of_a_writer(made: cst.BaseExpression, source: Source) -> bool:
    match made:
        case cst.Call(func=cst.Attribute(attr=cst.Name(name)) as called):
            return source.qualified_name(called) is None and _all_write(source.project, name)
    return False


@remembered
def _all_write(project: Project, name: str) -> bool:
    """Whether all methods of a name that return something write a place, and not all of them do something long."""
    every = (method for own in project.methods().values() for method in own if last_name(method.scope) == name)
    methods = [one for one in every if (function := project.function_at(one)) is not None and function.returns]
    called = [_called_within(project, method, _DEPTH) for method in methods]
    writes = (any(map(_WRITES.match, names)) for names in called)
    return bool(called) and all(writes) and not all(any(map(_LONG.match, names)) for names in called)


def _called_within(project: Project, place: Place, depth: int) -> list[str]:
    """What the function at `place` calls, itself or by helpers."""
    found, layer, seen = list[str](), [place], {place}
    for _ in range(depth):
        calls = [each for one in layer for each in project.calls_within(one)]
        names = [project.callee(where, call.value) for where, call in calls]
        written = (call.value.callee.name if call.value.callee is not None else "" for _, call in calls)
        found += [name or other for name, other in zip(names, written, strict=True)]
        inner = {one for name in names if (one := project.find(name)) is not None and project.function_at(one)}
        layer = [*inner - seen]
        seen |= inner
    return found
