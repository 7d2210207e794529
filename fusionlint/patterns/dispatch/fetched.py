"""Reads on the host of what a Python loop's compiled calls return, and whether the loop needs what it read.

In: a loop and its compiled calls. Out: the expressions that make Python wait: `float(loss)`, `jax.device_get(out)`.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from fusionlint.lazily import regex
from fusionlint.patterns.code.at import holds, inside, names_in
from fusionlint.patterns.code.unpacked import storing
from fusionlint.patterns.loops.carry import Carry, Loop, Write, calls, read
from fusionlint.patterns.loops.loop_gates import is_every_so_often, is_gated
from fusionlint.patterns.values.kinds import kind
from fusionlint.patterns.values.reads import METHODS
from fusionlint.source.names import TREE_MAPS
from fusionlint.source.tree import Source
from fusionlint.source.walk import dotted

_READERS = frozenset(
    ("float", "int", "numpy.asarray", "numpy.array", "numpy.float32", "numpy.float64", "jax.device_get")
)
# What goes over the parts of a value one by one.
_PARTS = frozenset(("items", "values"))
# What computes on the device from what it is given, so that the outcome is there too.
_ON_DEVICE = regex(r"^jax\.(numpy|lax|nn|tree|tree_util|scipy)\.")
# What takes a value and gives nothing back to the loop.
_KEEPS = frozenset(("append", "extend", "set_description", "set_postfix", "set_postfix_str", "write", "info", "debug",
                    "warning", "add_scalar", "scalar", "format"))  # fmt: skip
_KEEPING = regex(r"^(print$|logging\.|absl\.logging\.|wandb\.log$|tqdm\.\w+\.write$)")
# Not print: who prints every step wants to see each.
_REPORTS = regex(r"^wandb\.log$")
_NUMBERS = frozenset(("float", "int"))
_SHOWS = frozenset(("set_description", "set_postfix", "set_postfix_str", "add_scalar"))
_WRITER = regex(r"(summary|writer|tensorboard)$")
_ARITHMETIC = regex(r"^(numpy\.(?!random|save|load)\w+|float|int|round|abs|min|max|sum|str|len|dict|jax\.device_get)$")
# What says of a value whether it is so.
_ASKS = regex(r"^(bool|any|all|abs|(math|numpy)\.(is(nan|inf|finite)|any|all|abs))$")
_DEPTH = 4


def fetched(loop: Loop, steps: list[cst.Call], source: Source) -> Iterator[cst.BaseExpression]:
    """What in the loop's body reads on the host what one of `steps` returned in this iteration."""
    carry = Carry(loop)
    there = _on_device(carry, steps, source)
    for call in calls(loop.body):
        if any(_is_there(what, there, steps, source) for what in _read_by(call, source)):
            yield call
    for statement in inside(loop.body):
        match statement:
            case cst.Assign(targets=[cst.AssignTarget(target=cst.Subscript(value=cst.Name() as kept))], value=value):
                fetch = _fetch(kept, source)
                # What this iteration has fetched is no record of its steps: the host works on it.
                is_record = fetch is None or loop not in source.ancestors(fetch)
                if is_record and _is_there(value, there, steps, source) and kind(kept, source) == "numpy":
                    yield value


def is_whole(node: cst.BaseExpression, source: Source) -> bool:
    """Whether `node` reads arrays as they are, not one number."""
    match node:
        case cst.Call(func=cst.Attribute(attr=cst.Name(method)), args=[]) if method in METHODS:
            return False
    return not source.calls(node, *_NUMBERS)


def is_asked_for(step: cst.Call, loop: Loop, source: Source) -> bool:
    """Whether an `if` of every iteration goes by what `step` returned, `if jnp.isnan(loss): break`: the host waits for
    the step there, whatever else it reads of it."""
    there = _on_device(Carry(loop), [step], source)
    tests = (part.test for part in inside(loop.body, cst.If) if not is_gated(part, loop, source))
    return any(_goes_by(test, there, step, source) for test in tests)


def _goes_by(test: cst.BaseExpression, there: set[str], step: cst.Call, source: Source) -> bool:
    """Whether a test takes an array of the device for true or false; not whether there is one, `if loss is None`."""
    match test:
        case cst.Comparison(left=left, comparisons=compared):
            values = [left, *(each.comparator for each in compared)]
            asks_no_value = (cst.Is, cst.IsNot, cst.In, cst.NotIn)
            is_of_values = not any(isinstance(each.operator, asks_no_value) for each in compared)
            return is_of_values and any(_is_there(value, there, [step], source) for value in values)
        case cst.BooleanOperation(left=left, operator=cst.And(), right=right) if _is_there_at_all(left):
            return _goes_by(right, there, step, source)  # a limit that may be set, `limit is not None and kl > limit`
        case cst.UnaryOperation(operator=cst.Not(), expression=asked) | cst.BooleanOperation(left=asked):
            return _goes_by(asked, there, step, source)
        case cst.Call(args=[cst.Arg(value=asked)]) if _ASKS.match(source.qualified_name(test.func) or ""):
            return _goes_by(asked, there, step, source)
    return _is_there(test, there, [step], source)


def _is_there_at_all(test: cst.BaseExpression) -> bool:
    """`limit is not None`."""
    match test:
        case cst.Comparison(
            left=cst.Name() | cst.Attribute(),
            comparisons=[cst.ComparisonTarget(operator=cst.IsNot(), comparator=cst.Name("None"))],
        ):
            return True
    return False


def is_needed(node: cst.BaseExpression, loop: Loop, source: Source, depth: int = _DEPTH) -> bool:
    """Whether the loop does anything with the value of `node` but to keep it, to add it up or to print it. What it
    does once in so many iterations is no reason to wait for the device in each."""
    if is_every_so_often(node, loop, source):
        return False
    for below, above in source.outward(node):
        match above:
            case cst.Call() if above.func is not below and not _hands_on(above, source):
                return not _keeps(above, source)
            case cst.If() | cst.While() | cst.IfExp() | cst.Assert() | cst.Return() | cst.Raise():
                return True
            case cst.For():
                return _is_read_on(above.iter, above.target, loop, source, depth)
            case cst.AugAssign(target=target) | cst.Assign(targets=[cst.AssignTarget(target=target)]):
                return _is_read_on(above, target, loop, source, depth)
            case cst.BaseSmallStatement():
                return not isinstance(above, cst.Expr)
    return True


def _is_read_on(statement: cst.CSTNode, target: cst.BaseExpression, loop: Loop, source: Source, depth: int) -> bool:
    if isinstance(target, cst.Subscript):
        return _is_picked_by(target.value, statement, loop)
    if depth == 0 or holds(target, cst.Attribute, cst.Subscript):
        return True
    names = list(names_in(target))
    reads = (r for name in names for r in source.reads(name) if loop in source.ancestors(r))
    return any(statement not in source.ancestors(r) and is_needed(r, loop, source, depth - 1) for r in reads)


def _is_picked_by(array: cst.BaseExpression, statement: cst.CSTNode, loop: Loop) -> bool:
    """Whether what is stored in an array says which elements of another are taken, `candidates = points[mask]`: the
    host has to know how many before it goes on."""
    own = {id(part) for part in inside(statement)}
    picked = (part for part in inside(loop.body, cst.Subscript) if id(part) not in own)
    return any(
        isinstance(element.slice, cst.Index) and element.slice.value.deep_equals(array)
        for part in picked
        for element in part.slice
    )


def _read_by(call: cst.Call, source: Source) -> Iterator[cst.BaseExpression]:
    """x, of `float(x)` or `x.item()`; what is formatted, of `bar.set_description(f"{x}")`."""
    name = source.qualified_name(call.func) or ""
    match call:
        case cst.Call(func=cst.Attribute(value=owner, attr=cst.Name(method)), args=[]) if method in METHODS:
            yield owner
        case cst.Call(args=[cst.Arg(value=what), *_]) if name in _READERS:
            yield what
        case cst.Call(args=[cst.Arg(value=reader), *trees]) if name in TREE_MAPS:
            if source.qualified_name(reader) in _READERS:
                yield from (tree.value for tree in trees)
        case cst.Call(args=args) if _REPORTS.match(name) or _shows(call):
            for arg in args:
                yield arg.value
                for part in inside(arg):
                    match part:
                        case cst.FormattedStringExpression(expression=value) | cst.DictElement(value=value):
                            yield value


def _is_there(node: cst.BaseExpression, there: set[str], steps: list[cst.Call], source: Source) -> bool:
    """Whether `node` is an array that the device computes: a name of `there`, a part of it, arithmetic on it."""
    match node:
        case cst.Call() if node in steps:
            return True
        case cst.Call(func=function, args=args) if _ON_DEVICE.match(source.qualified_name(function) or ""):
            return any(_is_there(a.value, there, steps, source) for a in args)
        case cst.Call(func=cst.Attribute(value=owner, attr=cst.Name("mean" | "sum" | "max" | "min"))):
            return _is_there(owner, there, steps, source)
        case cst.Call(func=cst.Attribute(value=owner, attr=cst.Name(method)), args=[]) if method in _PARTS:
            return _is_there(owner, there, steps, source)
        case cst.Call(args=args) if source.calls(node, "enumerate", "zip"):
            return any(_is_there(a.value, there, steps, source) for a in args)
        case cst.Tuple(elements=elements) | cst.List(elements=elements):
            return any(_is_there(e.value, there, steps, source) for e in elements)
        case cst.BinaryOperation(left=left, right=right):
            return _is_there(left, there, steps, source) or _is_there(right, there, steps, source)
        case cst.Subscript(value=value):
            return _is_there(value, there, steps, source)
        case cst.Attribute(value=value, attr=cst.Name(name)):
            return name not in ("shape", "ndim", "size", "dtype") and _is_there(value, there, steps, source)
        case cst.Name(value=name):
            return name in there and _fetch(node, source) is None
    return False


def _fetch(read: cst.Name, source: Source) -> cst.Assign | None:
    """The statement that last wrote the name, where it wrote what a read on the host returned: `x = np.asarray(x)`."""
    made = storing(read, source)
    return made if made is not None and source.calls(made.value, *_READERS) else None


def _on_device(carry: Carry, steps: list[cst.Call], source: Source) -> set[str]:
    """The names that hold nothing but what `steps` returned, or what jax computes of it, in every iteration."""
    found: set[str] = set()
    writes = [*carry.writes, *_comprehended(carry.loop)]
    for write in writes:
        if write.always and _is_there(write.value, found, steps, source):
            found.update(write.names)
    others = {n for w in writes if not _is_there(w.value, found, steps, source) for n in _from_elsewhere(w)}
    return found - others


def _comprehended(loop: Loop) -> Iterator[Write]:
    """What comprehensions in the loop go over, as assignments: `{k: float(v) for k, v in metrics.items()}`."""
    for node in inside(loop.body, cst.CompFor):
        names = tuple(name.value for name in names_in(node.target))
        yield Write(names, node.iter, always=True)


def _shows(call: cst.Call) -> bool:
    match call.func:
        case cst.Attribute(value=owner, attr=cst.Name("scalar")):  # tf.summary.scalar("loss", loss, step=i)
            return len(call.args) > 1 and _WRITER.search(dotted(owner)) is not None
        case cst.Attribute(attr=cst.Name(method)):
            return method in _SHOWS
    return False


def _from_elsewhere(write: Write) -> set[str]:
    """What a write holds that it did not hold before: none of `loss = float(loss)`."""
    return set(write.names).difference(read(write.value))


def _hands_on(call: cst.Call, source: Source) -> bool:
    return bool(_ARITHMETIC.match(source.qualified_name(call.func) or "")) or _is_method_of_array(call)


def _is_method_of_array(call: cst.Call) -> bool:
    return isinstance(call.func, cst.Attribute) and call.func.attr.value in ("astype", "mean", "sum", "item", "items")


def _keeps(call: cst.Call, source: Source) -> bool:
    if _KEEPING.match(source.qualified_name(call.func) or ""):
        return True
    return isinstance(call.func, cst.Attribute) and call.func.attr.value in _KEEPS
