"""A scan from the end to the start by flipping: `scan(f, init, xs[::-1])`, its outputs flipped back."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from fusionlint.finding import Edit, Finding, Location
from fusionlint.patterns.code.at import RANGES, constant, elements, is_literal
from fusionlint.patterns.code.calls import argument, has_only, hides_some
from fusionlint.patterns.code.functions import definitions, result_of
from fusionlint.patterns.code.layout import added
from fusionlint.patterns.code.left_unused import whole_line
from fusionlint.patterns.compiled.matrices import At, made_at
from fusionlint.patterns.compiled.of_jax import is_of_jax, is_path_of_jax
from fusionlint.patterns.compiled.of_module import OfModule
from fusionlint.patterns.runs.loop_bodies import bodies_of
from fusionlint.patterns.values.kinds import kind
from fusionlint.rule import Rule
from fusionlint.source.tree import Source

if TYPE_CHECKING:
    from fusionlint.hlo import parse as hlo
    from fusionlint.hlo.barriers import Barrier

rule = Rule(__name__, harm="fusion")

_SCAN = "jax.lax.scan"
_FLIP = "jax.numpy.flip"
_FLIPUD = "jax.numpy.flipud"
_LINSPACE = "jax.numpy.linspace"
_STACKS = ("jax.numpy.stack", "jax.numpy.concatenate")
# A name seldom stands for more names than this.
_DEPTH = 8
# What jax jits of a flip that the user calls; `x[::-1]` is in none.
_CALLED = ("_flip", "flip", "flipud")
_SAME = frozenset(("bitcast", "copy", "copy-start", "copy-done", "reshape"))


@rule.source("Call", calls=(_SCAN,))
def flipped_rows(node: cst.Call, source: Source) -> Iterator[Finding]:
    """All rows that go in are flipped along the first axis, and all that come out are flipped again or not read."""
    if argument(node, 4, "reverse") is not None:
        return
    if hides_some(node):
        return  # which may turn it round already
    rows = argument(node, 2, "xs")
    given = _flipped_rows(rows, source) if rows is not None else None
    read = _reads(node, source)
    if not given or read is None:
        return
    back = [_flip_around(each, source) for each in read]
    stacked = _stacked(node, source)
    if any(each is None for each in back) or any(_is_tree(each) for each in stacked):
        return
    if not back and all(_is_constant(inner, source, _DEPTH) for _, inner in given):
        return  # XLA turns it round while it compiles
    is_array = bool(stacked) and all(
        isinstance(each, cst.BinaryOperation | cst.UnaryOperation) or kind(each, source) == "array" for each in stacked
    )
    yield source.finding(
        node,
        "the rows are flipped before the scan" + (", and what it makes is flipped back" if back else ""),
        write="reverse=True, on the rows as they are: the scan then reads and writes from the end",
        edits=_edits(node, given, read, back, source),
        safe=all(kind(inner, source) == "array" or isinstance(flip, cst.Call) for flip, inner in given)
        and all(is_array or isinstance(flip, cst.Call) for flip in back),
    )


def _is_constant(node: cst.BaseExpression, source: Source, depth: int) -> bool:
    """Whether rows are made of nothing but numbers that Python knows: a range, parts of one, a stack of such."""
    if depth == 0:
        return False
    match made := source.meant(node):
        case cst.Subscript(value=whole):
            return _is_constant(whole, source, depth - 1)
        case cst.BinaryOperation(left=left, right=right):
            return all(is_literal(side) or _is_constant(side, source, depth - 1) for side in (left, right))
        case cst.Call(args=[cst.Arg(value=cst.List() | cst.Tuple() as parts), *_]) if source.calls(made, *_STACKS):
            return all(_is_constant(part.value, source, depth - 1) for part in parts.elements)
        case cst.Call(args=[cst.Arg(value=start), cst.Arg(value=stop), *_]) if source.calls(made, _LINSPACE):
            return is_literal(start) and is_literal(stop)
        case cst.Call(args=[_, *_]):
            return source.calls(made, *RANGES)
    return False


@rule.barrier
def flipped_before_and_after(barrier: Barrier, module: hlo.Module) -> str | None:
    """What a scan goes over, or has made, and is flipped for it."""
    if not _is_flipped_around_a_loop(barrier, module):
        return None
    return "reverse=True of the scan, without the flips around it: it counts down, and writes where an output belongs"


def _is_tree(node: cst.BaseExpression) -> bool:
    return isinstance(node, cst.Tuple | cst.List | cst.Dict | cst.ListComp | cst.DictComp)


def _stacked(scan: cst.Call, source: Source) -> list[cst.BaseExpression]:
    """What the steps of a scan return second, where their body is seen: `ys[::-1]` of a tuple of arrays turns round the
    tuple, and no rows."""
    results = [result_of(body, source) for body in definitions(bodies_of(scan, source), source)]
    if not all(isinstance(result, cst.Tuple) and len(result.elements) == 2 for result in results):
        return []
    return [source.meant(result.elements[1].value) for result in results if isinstance(result, cst.Tuple)]


def _flipped_rows(rows: cst.BaseExpression, source: Source) -> list[tuple[cst.BaseExpression, cst.BaseExpression]]:
    """The flips that `rows` is made of, each with what it flips; none where an array among them is not flipped."""
    if isinstance(rows, cst.Tuple):
        parts = [_flipped_rows(element.value, source) for element in rows.elements]
        return [flip for part in parts for flip in part] if all(parts) else []
    flip = source.value(rows) if isinstance(rows, cst.Name) else rows
    inner = flipped(flip, source) if flip is not None else None
    if inner is None or kind(inner, source) == "numpy" or _is_list(inner, source):
        return []
    return [(rows, inner)]


def _is_list(node: cst.BaseExpression, source: Source) -> bool:
    """Whether this is a tree of arrays: turned round, it hands the step other arrays, in the same order of time."""
    made = source.value(node) if isinstance(node, cst.Name) else node
    return isinstance(made, cst.List | cst.Tuple | cst.ListComp) or kind(node, source) == "list"


def flipped(node: cst.CSTNode, source: Source) -> cst.BaseExpression | None:
    """x, of `x[::-1]`, `jnp.flip(x, 0)` or `jnp.flipud(x)`: the rows of x in reverse, whatever its other axes."""
    match node:
        case cst.Subscript(value=value, slice=slices):
            match elements(slices):
                case (cst.Slice(lower=None, upper=None, step=cst.BaseExpression() as step),) if constant(step) == -1:
                    return value
        case cst.Call() if source.calls(node, _FLIPUD):
            return argument(node, 0, "m")
        case cst.Call() if source.calls(node, _FLIP) and has_only(node, 2, "m", "axis"):
            axis = argument(node, 1, "axis")
            return argument(node, 0, "m") if axis is not None and constant(axis) == 0 else None
    return None


def _reads(scan: cst.Call, source: Source) -> list[cst.CSTNode] | None:
    """Where the outputs of a scan are read; None where they cannot be followed."""
    match parent := source.parent(scan):
        case cst.Subscript(slice=[cst.SubscriptElement(slice=cst.Index(value=cst.Integer(number)))]):
            return [] if number == "0" else [parent]
        case cst.Assign(
            targets=[cst.AssignTarget(target=cst.Tuple(elements=[_, cst.Element(value=cst.Name() as name)]))]
        ):
            reads = source.reads(name)
            # What another branch or turn has written is not this scan's.
            return [*reads] if all(source.written(read) is name for read in reads) else None
    return None


def _flip_around(read: cst.CSTNode, source: Source) -> cst.BaseExpression | None:
    """The flip that takes `read`."""
    above = source.parent(read)
    if isinstance(above, cst.Arg):
        above = source.parent(above)
    return above if isinstance(above, cst.BaseExpression) and flipped(above, source) is read else None


def _edits(
    scan: cst.Call,
    given: list[tuple[cst.BaseExpression, cst.BaseExpression]],
    read: list[cst.CSTNode],
    back: list[cst.BaseExpression | None],
    source: Source,
) -> tuple[Edit, ...]:
    """None where a flip has a name, which others may read, or where a comment would be lost."""
    if any(isinstance(flip, cst.Name) or source.has_comment(flip) for flip, _ in given):
        return ()
    if any(flip is not None and source.has_comment(flip) for flip in back):
        return ()
    last = scan.args[-1]
    if any(last in source.ancestors(flip) for flip, _ in given):
        (flip, inner), *others = reversed(given)
        if others or last.value is not flip:
            return ()
        keyword = f"{last.keyword.value}=" if last.keyword is not None else ""
        edits = [added(scan, "reverse=True", source, last=f"{keyword}{source.code(inner)}")]
    else:
        edits = [source.replace(flip, source.code(inner)) for flip, inner in given]
        edits.append(added(scan, "reverse=True", source))
    for behind, kept in zip(back, read, strict=True):
        edits += _unflipped(behind, kept, source) if behind is not None else ()
    return tuple(edits)


def _unflipped(flip: cst.BaseExpression, inner: cst.CSTNode, source: Source) -> Iterator[Edit]:
    """Takes away what stands around `inner` in a flip: in it the scan itself may stand, `scan(...)[1][::-1]`. Of
    `ys = ys[::-1]` the line goes."""
    if (line := _line_of(flip, inner, source)) is not None:
        yield Edit(line, "")
        return
    whole, kept = source.location(flip), source.location(inner)
    start, end = (whole.line, whole.column), (kept.line, kept.column)
    if start < end:
        yield Edit(whole._replace(end_line=kept.line, end_column=kept.column), "")
    if (kept.end_line, kept.end_column) < (whole.end_line, whole.end_column):
        yield Edit(whole._replace(line=kept.end_line, column=kept.end_column), "")


def _line_of(flip: cst.BaseExpression, inner: cst.CSTNode, source: Source) -> Location | None:
    """All of the line that stores a flip under the name that it flips."""
    match inner, source.parent(flip):
        case cst.Name(name), cst.Assign(targets=[cst.AssignTarget(target=cst.Name(stored))]) as assign if (
            stored == name
        ):
            return whole_line(assign, source)
    return None


def _is_flipped_around_a_loop(barrier: Barrier, module: hlo.Module) -> bool:
    """Whether the value is what such a loop is given, or what it has made, with a flip on the way."""
    if "reverse" not in module.opcodes or "while" not in module.opcodes:
        return False
    known = _known(OfModule(module))
    return barrier.writer in known or any(name in known for name in barrier.readers)


@functools.lru_cache(maxsize=1)
def _known(of: OfModule) -> frozenset[str]:
    """The kernels that flip, by name."""
    found: set[str] = set()
    for part in of.module.computations.values():
        for loop in part.instructions.values():
            if loop.opcode == "while" and loop.stack and not is_path_of_jax(loop.op_name, loop.stack):
                before, after = {*_before(loop, part, of.module)}, {*_after(loop, part, of.module)}
                if before and after:
                    found |= before | after
    return frozenset(found)


def _before(loop: hlo.Instruction, part: hlo.Computation, module: hlo.Module) -> Iterator[str]:
    """The kernels that flip what a loop is given."""
    given = part.instructions[loop.operands[0]]
    for name in given.operands if given.opcode == "tuple" else ():
        made = made_at(At(name, None, part), module)
        if _flips(made.step(module)):
            yield (made.kernel or made.step(module)).name


def _after(loop: hlo.Instruction, part: hlo.Computation, module: hlo.Module) -> Iterator[str]:
    """The kernels that flip what a loop has made, before they do anything else with it."""
    todo = [user for user in loop.users if part.instructions[user].opcode == "get-tuple-element"]
    while todo:
        name = todo.pop()
        for user in (part.instructions[one] for one in part.instructions[name].users):
            if user.opcode in _SAME:
                todo.append(user.name)
                continue
            body = module.body(user)
            steps = body.instructions if body is not None else part.instructions
            taken = [body.parameters[i].name for i, one in enumerate(user.operands) if one == name] if body else [name]
            while taken:
                for step in (steps[one] for one in steps[taken.pop()].users):
                    if step.opcode in _SAME and body is not None:
                        taken.append(step.name)
                    elif _flips(step):
                        yield user.name


def _flips(step: hlo.Instruction) -> bool:
    return step.opcode == "reverse" and step.attributes.get("dimensions") == "{0}" and not is_of_jax(step, _CALLED)
