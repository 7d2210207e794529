"""What one step of a loop of jax.lax does: whether it is elementwise and short.

In: a def or lambda that a loop runs, or a scan. What is not seen to be elementwise is not.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

import libcst as cst

from fusionlint.patterns.at import inside, is_none, is_whole
from fusionlint.patterns.branches import CONDITIONALS, function_named
from fusionlint.patterns.calls import argument
from fusionlint.patterns.elementwise import is_elementwise, is_update
from fusionlint.patterns.loop_bodies import bodies_of, definitions
from fusionlint.patterns.softmax import LOG_SOFTMAX, SOFTMAX
from fusionlint.patterns.step_writes import result
from fusionlint.source.names import PARTIAL
from fusionlint.source.tree import Source

Body: TypeAlias = "cst.FunctionDef | cst.Lambda"


# Steps longer than this are no longer short next to a launch, and sixteen of them take long to compile.
_MOST_OPERATIONS = 40
# A helper's helper is looked into too.
_DEPTH = 2
_MAKES_NO_KERNEL = frozenset(
    ("jax.numpy.zeros_like", "jax.numpy.ones_like", "jax.numpy.full_like", "jax.numpy.float32", "jax.numpy.int32",
     "jax.numpy.bool_", "jax.numpy.asarray", "jax.numpy.array", "jax.lax.stop_gradient", "jax.lax.rsqrt",
     "jax.numpy.expand_dims", "jax.numpy.broadcast_to")
)  # fmt: skip
# Each a kernel of its own, and what is elementwise around it goes into that.
_REDUCTIONS = (
    *("jax.numpy.sum", "jax.numpy.max", "jax.numpy.min", "jax.numpy.mean", "jax.numpy.prod", "jax.numpy.any"),
    *("jax.numpy.all", "jax.numpy.argmax", "jax.numpy.argmin", "jax.numpy.amax", "jax.numpy.amin"),
    *("jax.nn.logsumexp", "jax.nn.one_hot", "jax.scipy.special.logsumexp", *SOFTMAX, *LOG_SOFTMAX),
)
# Moving all places round, and choosing, are elementwise as well for a GPU.
_ROLLS = ("jax.numpy.roll", *CONDITIONALS)
_REDUCING = frozenset(("sum", "max", "min", "mean", "prod", "any", "all", "argmax", "argmin"))
_BUILTINS = frozenset(("float", "int", "bool", "len", "abs"))
_METHODS = frozenset(("astype", "clip", "squeeze"))
_LOOPS = frozenset(("For", "While", "ListComp", "GeneratorExp", "DictComp", "SetComp", "FunctionDef", "Lambda"))


def recurrence(scan: cst.Call, source: Source, reductions: int = 0) -> Body | None:
    """The one function of this file that a scan over rows runs as it is, where it is a short elementwise step, with so
    many `reductions` at most, that uses what the one before it left. Steps that only repeat are a simulation, which
    seldom stays so small; those that read nothing of what was carried are one `vmap`."""
    rows = argument(scan, 2, "xs")
    if rows is None or is_none(rows):
        return None
    bodies = bodies_of(scan, source)
    functions = definitions(bodies, source)
    if len(bodies) != 1 or len(functions) != 1:
        return None
    (body,) = functions
    filled = _filled(scan, body, source)
    if len(filled) != 2 or not is_elementwise_step(body, source, reductions):
        return None
    if _hands_on(body, filled[0], source) or only_counts(body, filled[0], source):
        return None
    return body if source.reads(filled[0]) else None


def _filled(scan: cst.Call, body: Body, source: Source) -> list[cst.Name]:
    """The parameters of `body` that the scan fills: those that no `partial` around it has filled."""
    names = [parameter.name for parameter in body.params.params]
    given = argument(scan, 0, "f")
    if len(names) == 2 or given is None:
        return names
    if isinstance(given, cst.Call) and source.qualified_name(given.func) in PARTIAL:
        filled = [arg for arg in given.args[1:] if arg.keyword is None and not arg.star]
        named = {arg.keyword.value for arg in given.args if arg.keyword is not None}
        return [name for name in names[len(filled) :] if name.value not in named]
    bound = source.facts.lookup(source.scope(scan), given.value) if isinstance(given, cst.Name) else None
    if bound is None or source.project.callee(source.place(scan), bound[1].value) not in PARTIAL:
        return names
    value = bound[1].value
    return [name for name in names[len(value.arguments) - 1 :] if name.value not in dict(value.keywords)]


def _hands_on(body: Body, carry: cst.Name, source: Source) -> bool:
    """Whether a step hands on what it was handed, as it is: `return carry, x * x`. What was bound to the name since is
    something else."""
    match result(body):
        case cst.Tuple(elements=[cst.Element(value=cst.Name() as returned), _]):
            return any(read is returned for read in source.reads(carry))
    return False


def only_counts(body: Body, carry: cst.Name, source: Source) -> bool:
    """Whether all that a step hands on is its own number: `return i + 1, x[i]`. That is one `vmap` as well."""
    match result(body):
        case cst.Tuple(elements=[cst.Element(value=returned), _]):
            following = source.meant(returned)
            match following:
                case cst.BinaryOperation(left=cst.Name(value=name), operator=cst.Add(), right=cst.Integer()):
                    return name == carry.value
    return False


def except_on_cpu(steps: int, source: Source) -> str:
    """The `unroll` of a recurrence, as code: a CPU would compute for every stored row all rows before it anew."""
    return f'{steps} if {source.alias("jax") or "jax"}.default_backend() != "cpu" else 1'


def is_elementwise_step(body: Body, source: Source, reductions: int | None = None, *, rolls: bool = False) -> bool:
    """Whether a step is arithmetic on numbers and arrays, place by place, and little of it, with what the functions of
    the file that it calls do. Where `reductions` are counted, so many at most may be among it, and arrays get an axis.
    With `rolls` the places may be moved round, and a conditional may choose between such work.
    """
    operations = list(_operations(body, source, reductions, _DEPTH, rolls))
    is_plain = None not in operations and sum(map(bool, operations)) <= (reductions or 0)
    return is_plain and 0 < len(operations) <= _MOST_OPERATIONS


def _operations(
    body: Body, source: Source, reductions: int | None, depth: int, rolls: bool = False
) -> Iterator[bool | None]:
    """For each operation of a function whether it is a reduction; None for what is neither that nor elementwise."""
    for node in inside(body.body):
        match node:
            case cst.BinaryOperation(operator=operator):
                yield None if isinstance(operator, cst.MatrixMultiply) else False
            case cst.Comparison() | cst.UnaryOperation() | cst.AugAssign():
                yield False
            case cst.Call() if rolls and source.calls(node, *_ROLLS):
                yield False
            case cst.Lambda() if rolls and _is_a_branch(node, source):
                pass
            case cst.Call():
                yield from _of_call(node, source, reductions, depth, rolls)
            case cst.Slice() if reductions is not None and is_whole(node):
                pass
            case cst.Attribute(attr=cst.Name("at")) | cst.Slice() | cst.AssignTarget(target=cst.Subscript()):
                yield None
            case _ if type(node).__name__ in _LOOPS:
                yield None


def _is_a_branch(node: cst.Lambda, source: Source) -> bool:
    """Whether this is written out as a branch of a conditional."""
    call = source.handed_to(node)
    return call is not None and source.calls(call, *CONDITIONALS)


def _of_call(call: cst.Call, source: Source, reductions: int | None, depth: int, rolls: bool) -> Iterator[bool | None]:
    is_reduction = bool(reductions) and _reduces(call, source)
    if is_reduction or _is_plain(call, source):
        yield is_reduction
        return
    helper = function_named(call.func, source) if isinstance(call.func, cst.Name) and depth else None
    if helper is None:
        yield None
    else:
        yield from _operations(helper, source, reductions, depth - 1, rolls)


def _reduces(call: cst.Call, source: Source) -> bool:
    if source.calls(call, *_REDUCTIONS):
        return True
    match call.func:
        case cst.Attribute(attr=cst.Name(value=method)):
            return method in _REDUCING and source.qualified_name(call.func) is None
    return False


def _is_plain(call: cst.Call, source: Source) -> bool:
    """Whether a call computes place by place, or makes no kernel at all."""
    if is_elementwise(call, source) or source.calls(call, *_MAKES_NO_KERNEL) or is_update(call, source):
        return True
    match call.func:
        case cst.Name(value=name):
            return name in _BUILTINS
        case cst.Attribute(attr=cst.Name(value=method)):
            return method in _METHODS and source.qualified_name(call.func) is None
    return False
