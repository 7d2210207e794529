"""An instance made anew, of a class that compiles its methods for each instance."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from fusionlint.finding import Finding
from fusionlint.patterns.code.at import inside
from fusionlint.patterns.dispatch.anew import repeats
from fusionlint.patterns.dispatch.instances import compiled_methods, making_one
from fusionlint.patterns.loops.carry import Carry, read
from fusionlint.rule import Rule
from fusionlint.source.asked import CALLS, EVERYWHERE
from fusionlint.source.facts import last_name
from fusionlint.source.tree import Source
from fusionlint.source.walk import dotted

rule = Rule(__name__, harm="recompile")


@rule.source("Call", where="host", when=making_one)
def instance_made_anew(node: cst.Call, source: Source) -> Iterator[Finding]:
    """`Solver(0.1).step(x)`, or `solver = Solver(0.1)`, then `solver.step(x)`, in host code that runs often."""
    where = repeats(node, source)
    if where is None or not _could_be_made_before(node, where) or _may_be_traced(where, source):
        return
    for method, call in compiled_methods(node, source):
        if where in source.ancestors(call):
            yield source.finding(
                node,
                f"`{method}` is compiled for each instance, and this makes another one every time",
                write="make the instance once, or tell jax which are equal: `__eq__` and `__hash__`, as a frozen "
                "dataclass has them",
            )
            return


def _may_be_traced(where: cst.CSTNode, source: Source) -> bool:
    """Whether code under a trace calls a method of some object by the name of the one around `where`, `env.step` in the
    body of a scan: what that makes, it makes once for each trace."""
    function = where if isinstance(where, cst.FunctionDef) else source.function(where)
    if function is None:
        return False
    place = source.body_place(function)
    facts = source.project.function_at(place)
    if facts is None or not facts.owner:
        return False
    called = f".{last_name(place.scope)}"
    source.project.log.asked.add((EVERYWHERE, CALLS))
    for path, of_file in source.project.files.items():
        for (callee, *_), scope, *_ in of_file.raw.calls:
            if isinstance(callee, str) and callee.endswith(called) and not callee.startswith("self."):
                source.project.log.add(path, scope)
                if source.contexts.get((path, scope)) == "traced":
                    return True
    return False


def _could_be_made_before(made: cst.Call, where: cst.CSTNode) -> bool:
    """Whether what a loop makes is the same each time: other settings may well need programs of their own."""
    if not isinstance(where, cst.For | cst.While):
        return True
    changed = {dotted(target.value) for target in _fields_written(where)}
    return not any(Carry(where).varies(arg) or not changed.isdisjoint(read(arg)) for arg in made.args)


def _fields_written(loop: cst.For | cst.While) -> Iterator[cst.Attribute]:
    """The fields that the loop sets: `grid.points = n`."""
    for node in inside(loop.body, cst.Assign):
        yield from (t.target for t in node.targets if isinstance(t.target, cst.Attribute))
