"""What one step of a loop of jax.lax does: whether it is elementwise and short.

In: a def or lambda that a loop runs, or a scan. What is not seen to be elementwise is not.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum, auto
from typing import NamedTuple

import libcst as cst

from fusionlint.patterns.branches.conditional import CONDITIONALS
from fusionlint.patterns.code.at import constant, elements, inside, is_no_array, is_none, is_whole
from fusionlint.patterns.code.calls import argument, is_handed_to
from fusionlint.patterns.code.elementwise import is_elementwise, is_update
from fusionlint.patterns.code.functions import Function, definitions, function_named
from fusionlint.patterns.loops.step_writes import result
from fusionlint.patterns.operations.softmax import LOG_SOFTMAX, SOFTMAX
from fusionlint.patterns.runs.loop_bodies import bodies_of
from fusionlint.patterns.values.matrices import PRODUCTS
from fusionlint.source.names import PARTIAL
from fusionlint.source.tree import Source
from fusionlint.source.walk import children

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
_ROLL = "jax.numpy.roll"
# A product with a vector is such a kernel too. Of two long vectors, all that an optimizer remembers, `vdot` is said.
# What cuts out parts, joins them, or lays them out anew goes into the kernel that reads it.
_PARTS = tuple(
    f"jax.numpy.{name}"
    for name in ("append", "array", "atleast_1d", "concatenate", "hstack", "outer", "pad", "stack", "transpose")
)
_REDUCING = frozenset(("sum", "max", "min", "mean", "prod", "any", "all", "argmax", "argmin"))
_BUILTINS = frozenset(("float", "int", "bool", "len", "abs"))
_METHODS = frozenset(("astype", "clip", "squeeze", "reshape", "ravel", "flatten"))
_LOOPS = frozenset(("For", "While", "ListComp", "GeneratorExp", "DictComp", "SetComp", "FunctionDef", "Lambda"))


class Does(Enum):
    """What an operation of a step is: arithmetic place by place, or as much of it as goes into the kernel around it;
    what asks about many places at once, and stays a kernel; what is none of these, or not seen."""

    PLACE_BY_PLACE = auto()
    ROLL = auto()  # place by place too, but of other places
    REDUCTION = auto()
    PRODUCT = auto()
    ELSE = auto()


class Allowed(NamedTuple):
    """What a step may hold beside arithmetic place by place: reductions where they are counted, and then arrays get an
    axis; with `rolls` places that are moved round, and a conditional between such work; with `parts` places that are
    cut out, looked up and joined, and products."""

    is_counted: bool = False
    reductions: bool = False
    rolls: bool = False
    parts: bool = False


class Step(NamedTuple):
    """The function that a scan over rows runs, and the names of what it is handed: what was carried, and the row."""

    body: Function
    carry: cst.Name
    row: cst.Name


def recurrence(scan: cst.Call, source: Source) -> Function | None:
    """The function of a scan's steps, where it is a short elementwise step without a reduction."""
    step = step_over_rows(scan, source)
    return step.body if step is not None and is_elementwise_step(step.body, source, 0) else None


def step_over_rows(scan: cst.Call, source: Source) -> Step | None:
    """The one function of this file that a scan over rows runs as it is, where it uses what the one before it left.
    Steps that only repeat are a simulation, which seldom stays small; those that read nothing of what was carried are
    one `vmap`."""
    rows = argument(scan, 2, "xs")
    if rows is None or is_no_array(rows):
        return None
    bodies = bodies_of(scan, source)
    functions = definitions(bodies, source)
    if len(bodies) != 1 or len(functions) != 1:
        return None
    (body,) = functions
    filled = _filled(scan, body, source)
    if len(filled) != 2:
        return None
    carry, row = filled
    if _hands_on(body, carry, source) or only_counts(body, carry, source):
        return None
    return Step(body, carry, row) if source.reads(carry) else None


def _filled(scan: cst.Call, body: Function, source: Source) -> list[cst.Name]:
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


def _hands_on(body: Function, carry: cst.Name, source: Source) -> bool:
    """Whether a step hands on what it was handed, as it is: `return carry, x * x`. What was bound to the name since is
    something else."""
    match result(body):
        case cst.Tuple(elements=[cst.Element(value=cst.Name() as returned), _]):
            return any(read is returned for read in source.reads(carry))
    return False


def only_counts(body: Function, carry: cst.Name, source: Source) -> bool:
    """Whether all that a step hands on is its own number: `return i + 1, x[i]`. That is one `vmap` as well; not where
    it begins anew, `i = jnp.where(done, 0, i)`."""
    match result(body):
        case cst.Tuple(elements=[cst.Element(value=returned), _]):
            following = source.meant(returned)
            match following:
                case cst.BinaryOperation(left=cst.Name() as number, operator=cst.Add(), right=cst.Integer()):
                    return any(read is number for read in source.reads(carry))
    return False


def except_on_cpu(steps: int, source: Source) -> str:
    """The `unroll` of a recurrence, as code: a CPU would compute for every stored row all rows before it anew."""
    return f'{steps} if {source.alias("jax") or "jax"}.default_backend() != "cpu" else 1'


def is_elementwise_step(body: Function, source: Source, reductions: int | None = None, *, rolls: bool = False) -> bool:
    """Whether a step is arithmetic on numbers and arrays, place by place, and little of it, with what the functions of
    the file that it calls do. Where `reductions` are counted, so many at most may be among it, and arrays get an axis.
    With `rolls` the places may be moved round, and a conditional may choose between such work.
    """
    found = short_work(body, source, Allowed(reductions is not None, bool(reductions), rolls))
    return found is not None and found.count(Does.REDUCTION) <= (reductions or 0)


def rolls_in(body: Function, source: Source) -> int:
    """How often a step with at most one reduction rolls something; 0 of a step that does what is none of that."""
    found = short_work(body, source, Allowed(is_counted=True, reductions=True, rolls=True))
    return found.count(Does.ROLL) if found else 0


def short_work(body: Function, source: Source, allowed: Allowed) -> list[Does] | None:
    """The operations of a step, where there are few and each is seen to be one that is `allowed`."""
    found = list(_operations(body, source, allowed, _DEPTH))
    return found if Does.ELSE not in found and 0 < len(found) <= _MOST_OPERATIONS else None


def _operations(body: Function, source: Source, allowed: Allowed, depth: int) -> Iterator[Does]:
    """What a function does, with what it calls."""
    for node in _done(body.body):
        match node:
            case cst.BinaryOperation(operator=operator):
                is_product = isinstance(operator, cst.MatrixMultiply)
                yield (Does.PRODUCT if allowed.parts else Does.ELSE) if is_product else Does.PLACE_BY_PLACE
            case cst.Comparison() | cst.UnaryOperation() | cst.AugAssign():
                yield Does.PLACE_BY_PLACE
            case cst.Call() if allowed.rolls and source.calls(node, _ROLL, *CONDITIONALS):
                yield Does.ROLL if source.calls(node, _ROLL) else Does.PLACE_BY_PLACE
            case cst.Lambda() if allowed.rolls and is_handed_to(node, source, *CONDITIONALS):
                pass  # written out as a branch
            case cst.Call():
                yield from _of_call(node, source, allowed, depth)
            case cst.Slice() if allowed.is_counted and (is_whole(node) or (allowed.parts and _is_written_out(node))):
                pass
            case cst.Subscript() if allowed.parts and is_look_up(node):
                yield Does.PLACE_BY_PLACE
            case cst.Attribute(attr=cst.Name("at")) | cst.Slice() | cst.AssignTarget(target=cst.Subscript()):
                yield Does.ELSE
            case _ if type(node).__name__ in _LOOPS:
                yield Does.ELSE


def _done(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """`node` and everything in it that a usual step does: no errors, and nothing that somebody has to hand in."""
    match node:
        case cst.Raise():
            return
        case cst.If(test=test, body=body, orelse=other) if (name := _asked_for(test)) and _calls(body, name):
            if other is not None:
                yield from _done(other)
            return
    yield node
    for child in children(node):
        yield from _done(child)


def _asked_for(test: cst.BaseExpression) -> str | None:
    """The name in `function is not None`."""
    match test:
        case cst.Comparison(
            left=cst.Name(value=name), comparisons=[cst.ComparisonTarget(operator=cst.IsNot(), comparator=nothing)]
        ) if is_none(nothing):
            return name
    return None


def _calls(node: cst.CSTNode, name: str) -> bool:
    return any(isinstance(n, cst.Call) and isinstance(n.func, cst.Name) and n.func.value == name for n in inside(node))


def _is_written_out(part: cst.Slice) -> bool:
    """`1:`, `:-1`, `2:5`."""
    bounds = [bound for bound in (part.lower, part.upper) if bound is not None]
    return part.step is None and all(constant(bound) is not None for bound in bounds)


def is_look_up(node: cst.Subscript) -> bool:
    """Whether a place is looked up by a name, `table[state]`."""
    return any(isinstance(part, cst.Name) and not is_none(part) for part in elements(node.slice))


def _of_call(call: cst.Call, source: Source, allowed: Allowed, depth: int) -> Iterator[Does]:
    if (allowed.reductions and _reduces(call, source)) or (allowed.parts and source.calls(call, *PRODUCTS)):
        yield Does.REDUCTION if _reduces(call, source) else Does.PRODUCT
        return
    if _is_plain(call, source) or (allowed.parts and _lays_out(call, source)):
        yield Does.PLACE_BY_PLACE
        return
    helper = helper_called(call, source) if depth else None
    if helper is None:
        yield Does.ELSE
    else:
        yield from _operations(helper, source, allowed, depth - 1)


def helper_called(call: cst.Call, source: Source) -> Function | None:
    """The function of the file that a step calls by its name."""
    return function_named(call.func, source) if isinstance(call.func, cst.Name) else None


def _lays_out(call: cst.Call, source: Source) -> bool:
    match call.func:
        case cst.Attribute(attr=cst.Name("transpose")):
            return source.qualified_name(call.func) is None
    return source.calls(call, *_PARTS)


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
