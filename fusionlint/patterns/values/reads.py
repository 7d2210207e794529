"""Where Python reads what a compiled call has returned: `float(x)`, `x.item()`, `jax.tree.map(np.asarray, x)`.

In: the names that the call's results are assigned to. Out: each expression that makes Python wait for the device.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import libcst as cst

from fusionlint.patterns.code.at import inside, names_in
from fusionlint.patterns.code.calls import call_of
from fusionlint.patterns.code.unpacked import assigned
from fusionlint.source.names import TREE_MAPS
from fusionlint.source.tree import Source

READERS = frozenset(
    ("float", "int", "bool", "numpy.asarray", "numpy.array", "numpy.float32", "numpy.float64", "jax.device_get")
)
METHODS = frozenset(("item", "tolist"))
# What brings an array to the host as it is.
FETCHES = ("numpy.asarray", "numpy.array", "jax.device_get")
# What of an array is known without it.
_KNOWN = frozenset(("shape", "ndim", "size", "dtype", "sharding", "at"))
# A number that has been read seldom goes through more names than this.
_NAMES = 3


class Read(NamedTuple):
    """The expression that waits, the text of what it reads, and whether it reads each part of that by itself."""

    node: cst.Call
    what: str
    is_of_each: bool = False


def reads_of(name: cst.Name, source: Source) -> Iterator[Read]:
    """The reads of what was just written to `name`, or of parts of it."""
    for use in source.reads(name):
        part = _part(use, source)
        match above := source.parent(part):
            case cst.Arg():
                yield from _by_a_call(above, part, source)
            case cst.Attribute(attr=cst.Name(method)) if method in METHODS:
                if (call := call_of(above, source)) is not None:
                    yield Read(call, source.code(part))


def is_always_read(node: cst.CSTNode, where: cst.CSTNode, source: Source) -> bool:
    """Whether `node` is evaluated every time that the function or loop `where` runs its body."""
    for below, above in source.outward(node):
        if above is where:
            return True
        match above:
            case cst.If(test=test) | cst.IfExp(test=test) if test is not below:
                return False
            case cst.ExceptHandler() | cst.BooleanOperation() | cst.Match() | cst.Lambda() | cst.FunctionDef():
                return False
    return False


def needs_another(read: Read, reads: Sequence[Read], source: Source) -> bool:
    """Whether what is read is cut by what another of the `reads` has brought to the host, `values[:n]` behind `n =
    int(count)`: that one has to be there first."""
    others = {each.node for each in reads if each is not read}
    return any(_is_made_of(name, others, source, _NAMES) for name in names_in(read.node))


def _is_made_of(name: cst.Name, reads: set[cst.Call], source: Source, depth: int) -> bool:
    before = (use.node for use in source.writes(name) if use.order < source.order(name)) if depth else ()
    for value in (assigned(write, source) for write in before):
        if value is not None and any(node in reads for node in inside(value)):
            return True
        if value is not None and any(_is_made_of(each, reads, source, depth - 1) for each in names_in(value)):
            return True
    return False


def _by_a_call(arg: cst.Arg, part: cst.BaseExpression, source: Source) -> Iterator[Read]:
    call = source.parent(arg)
    if not isinstance(call, cst.Call):
        return
    called = source.qualified_name(call.func)
    if called in READERS and call.args[0] is arg:
        yield Read(call, source.code(part))
    elif called in TREE_MAPS and arg is not call.args[0] and _reads_each(call.args[0].value, source):
        yield Read(call, source.code(part), is_of_each=True)


def _reads_each(function: cst.BaseExpression, source: Source) -> bool:
    match function:
        case cst.Lambda(body=cst.Call(func=function)):
            return source.qualified_name(function) in READERS or _is_method(function)
        case cst.Name() | cst.Attribute():
            return source.qualified_name(function) in READERS
    return False


def _is_method(function: cst.BaseExpression) -> bool:
    return isinstance(function, cst.Attribute) and function.attr.value in METHODS


def attributes_of(name: cst.Name, source: Source) -> Iterator[cst.Attribute]:
    """What is asked of the variable that `name` names, wherever that is: `x.shape`, `x.at`."""
    above = (source.parent(read) for read in source.reads_at_all(name))
    return (each for each in above if isinstance(each, cst.Attribute))


def _part(use: cst.Name, source: Source) -> cst.BaseExpression:
    """`metrics["loss"]`, where `use` is the name in it."""
    part: cst.BaseExpression = use
    while True:
        match above := source.parent(part):
            case cst.Subscript() if above.value is part:
                part = above
            case cst.Attribute(attr=cst.Name(name)) if above.value is part and name not in _KNOWN | METHODS:
                if call_of(above, source) is not None:
                    return part
                part = above
            case _:
                return part
