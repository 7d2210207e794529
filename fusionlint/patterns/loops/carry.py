"""What a Python loop carries from one iteration to the next, and what feeds it.

In: a `for` or `while` of a Source. Out: which names depend on which, through the assignments of its body. A name is
dotted, so that `self.state` is one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

import libcst as cst

from fusionlint.source.tree import Source
from fusionlint.source.walk import children, dotted

Loop: TypeAlias = "cst.For | cst.While"


class Write(NamedTuple):
    """An assignment in the body of a loop: what it writes, out of which expression, and whether in every iteration."""

    names: tuple[str, ...]
    value: cst.BaseExpression
    always: bool


class Carry:
    """The assignments of one loop's body; functions defined in it are not looked into."""

    def __init__(self, loop: Loop) -> None:
        self.loop = loop
        self.targets = tuple(_names(loop.target)) if isinstance(loop, cst.For) else ()
        self.writes = tuple(_writes(loop.body, always=True))
        self.varying = frozenset(self.targets).union(*(w.names for w in self.writes))

    def write_of(self, call: cst.Call, source: Source) -> Write | None:
        """The assignment whose value `call` is part of."""
        around = {call, *source.ancestors(call)}
        return next((w for w in self.writes if w.value in around), None)

    def behind(self, start: list[cst.CSTNode], *, gated: bool) -> tuple[list[Write], set[str]]:
        """The assignments that the expressions `start` depend on, in this iteration or an earlier one, and every name
        on the way. With `gated`, those that only some iterations make too."""
        found: list[Write] = []
        names = {name for node in start for name in read(node)}
        grown = True
        while grown:
            grown = False
            for write in self.writes:
                if write not in found and (write.always or gated) and _touches(write.names, names):
                    found.append(write)
                    names.update(read(write.value))
                    grown = True
        return found, names

    def varies(self, node: cst.CSTNode) -> bool:
        """Whether an expression reads what the loop changes."""
        return _touches(tuple(self.varying), set(read(node)))


def read(node: cst.CSTNode) -> Iterator[str]:
    """The dotted names that an expression reads, with what they begin with: of `self.state.x` also `self.state`."""
    if isinstance(node, cst.FunctionDef | cst.Annotation):
        return
    if isinstance(node, cst.Attribute | cst.Name) and (name := dotted(node)):
        parts = name.split(".")
        yield from (".".join(parts[:end]) for end in range(1, len(parts) + 1))
        return
    if isinstance(node, cst.Arg):
        yield from read(node.value)
        return
    for child in [node.value] if isinstance(node, cst.Attribute) else children(node):
        yield from read(child)


def calls(node: cst.CSTNode) -> Iterator[cst.Call]:
    """The calls that evaluating `node` makes, those of functions defined in it aside."""
    if type(node) in (cst.FunctionDef, cst.ClassDef, cst.Lambda):
        return
    if type(node) is cst.Call:
        yield node
    for child in children(node):
        yield from calls(child)


def _touches(written: tuple[str, ...], names: set[str]) -> bool:
    return any(name in names for name in written)


def _writes(node: cst.CSTNode, *, always: bool) -> Iterator[Write]:
    match node:
        case cst.FunctionDef() | cst.ClassDef():
            return
        case cst.Assign(targets=targets, value=value):
            names = tuple(name for target in targets for name in _names(target.target))
            yield Write(names, value, always)
        case (
            cst.AugAssign(target=target, value=value)
            | cst.AnnAssign(target=target, value=cst.BaseExpression() as value)
        ):
            yield Write(tuple(_names(target)), value, always)
        case cst.For(target=target, iter=value):
            yield Write(tuple(_names(target)), value, always)
    always = always and not isinstance(node, cst.If | cst.ExceptHandler)
    for child in children(node):
        if isinstance(
            child,
            cst.BaseStatement | cst.BaseSmallStatement | cst.BaseSuite | cst.Else | cst.ExceptHandler | cst.Finally,
        ):
            yield from _writes(child, always=always)


def _names(target: cst.CSTNode) -> Iterator[str]:
    """`state`, `self.state`; of `xs[i] = ...` xs."""
    match target:
        case cst.Tuple(elements=elements) | cst.List(elements=elements):
            for element in elements:
                yield from _names(element.value)
        case cst.Subscript(value=value):
            yield from _names(value)
        case _ if name := dotted(target):
            yield name


def written_before(name: cst.Name, loop: cst.For, source: Source) -> cst.Name | None:
    """Where the variable that `name` names was written last before a loop."""
    before = [use for use in source.writes(name) if loop not in source.ancestors(use.node)]
    return next((use.node for use in reversed(before) if use.order < source.order(loop.iter)), None)
