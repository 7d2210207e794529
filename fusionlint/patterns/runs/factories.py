"""Functions that make an object of others, which they define: what else such a one does, it does once, before those
run.

In: nodes of a Source. Out: whether the code at one is a maker's own, and not part of what it hands out: `def
problem(trajectory)`, which maps a function of its own over a mesh, and returns `Problem(f=residual, u0=guess)`.
"""

from __future__ import annotations

import libcst as cst

from fusionlint.patterns.code.at import inside, names_read
from fusionlint.patterns.code.functions import returns_of
from fusionlint.patterns.runs.made_within import is_called_or_mapped
from fusionlint.source.transforms import TRANSFORMS
from fusionlint.source.tree import Source
from fusionlint.source.walk import dotted


def is_beside_what_is_made(node: cst.CSTNode, source: Source) -> bool:
    """Whether the outermost function around `node` returns an object that is made of functions of its own, and `node`
    is not part of any of those. One that returns a bare function, or a value beside, `return y, pullback`, may be
    called in every step."""
    above = list(source.ancestors(node))
    around = [one for one in above if isinstance(one, cst.FunctionDef)]
    if not around or source.contexts.get(source.body_place(around[-1])) == "traced":
        return False
    maker = around[-1]
    if any(isinstance(one, cst.ClassDef) for one in above[: above.index(maker)]):
        return False
    own = {f.name.value: f for f in inside(maker.body) if isinstance(f, cst.FunctionDef)}
    own = {name: function for name, function in own.items() if source.function(function) is maker}
    returned = [one.value for one in returns_of(maker, source)]
    if not own or not returned or not all(value is not None and _is_made(value, own, source) for value in returned):
        return False
    part = around[-2] if len(around) > 1 else None
    return part is None or (_runs_here(part, source) and part.name.value not in _handed_out(returned, own, source))


def _runs_here(part: cst.FunctionDef, source: Source) -> bool:
    """Whether a function is called or mapped, and no more: `@solve.defjvp` makes it a part of another."""
    reads = [*source.reads_at_all(part.name)]
    return not part.decorators and all(is_called_or_mapped(read, source) for read in reads)


def _is_made(value: cst.BaseExpression, own: dict[str, cst.FunctionDef], source: Source) -> bool:
    """`Problem(f=step, u0=guess)`, of functions that are the maker's own."""
    match source.meant(value):
        case cst.Call(func=func, args=args):
            is_object = dotted(func).rpartition(".")[2][:1].isupper()
            return is_object and any(_is_own(arg.value, own, source) for arg in args)
    return False


def _is_own(value: cst.BaseExpression, own: dict[str, cst.FunctionDef], source: Source) -> bool:
    if source.calls(value, *TRANSFORMS):
        return any(_is_own(arg.value, own, source) for arg in value.args)
    return isinstance(value, cst.Name) and value.value in own


def _handed_out(returned: list[cst.BaseExpression | None], own: dict[str, cst.FunctionDef], source: Source) -> set[str]:
    """The own functions that are handed out, and those that they read."""
    todo = [name for value in returned if value is not None for name in _names(value, source)]
    found: set[str] = set()
    while todo:
        name = todo.pop()
        if name in own and name not in found:
            found.add(name)
            todo += [read.value for read in names_read(own[name].body)]
    return found


def _names(value: cst.BaseExpression, source: Source) -> list[str]:
    """The names that are read in an expression, and in what its names stand for, but not those of functions that are
    called there: what comes of one is handed out, and not the function."""
    reads = [*names_read(value)]
    meant = (source.value(read) for read in reads)
    reads += [name for made in meant if made is not None for name in names_read(made)]
    return [read.value for read in reads if not is_called_or_mapped(read, source)]
