"""How a Python loop over compiled calls is paced: by counting, by what the device computes, or by the host.

In: nodes of a loop. A loop that the host paces or feeds (data, files, a simulator, a window) cannot become a scan.
Which of its turns run a node is asked in `loop_gates.py`, whether somebody takes the time in `timed.py`.
"""

from __future__ import annotations

import re

import libcst as cst

from fusionlint.lazily import regex
from fusionlint.patterns.code.at import inside
from fusionlint.patterns.dispatch.jit import is_jitted
from fusionlint.patterns.loops.carry import Carry, Loop, calls, read
from fusionlint.patterns.loops.collected import BARS
from fusionlint.patterns.runs.options import as_given
from fusionlint.patterns.values.reads import FETCHES
from fusionlint.source.tree import Source
from fusionlint.source.walk import children, dotted

# Up to so many iterations nobody writes a scan.
MOST_OF_FEW = 10
# What computes on the host.
_ON_THE_HOST = "scipy."

_DEVICE = regex(r"^(jax|numpy|math|functools|operator|chex|jaxtyping|copy)\.(?!random\.|load|save|device_get|io|from)")
_JAX_RANDOM = "jax.random."
_BUILTIN = frozenset(("range", "enumerate", "zip", "len", "float", "int", "bool", "list", "tuple", "sum", "min", "max",
                      "reversed", "sorted", "print"))  # fmt: skip
_COUNTERS = frozenset(("range", "tqdm.trange", "tqdm.auto.trange", "tqdm.notebook.trange", "itertools.count",
                       "numpy.arange", "jax.numpy.arange"))  # fmt: skip
# What a scan can do after, or at the end of, as many steps as one likes.
_NOTES = regex(
    r"^(append|extend|set_description|set_postfix|set_postfix_str|update|write|info|debug|warning|log|format|join|items"
    r"|keys|values|copy|item|tolist|block_until_ready)$"
)
_NOTING = regex(r"^(print|logging\.|absl\.logging\.|time\.(time|perf_counter|monotonic)|tqdm\.|jax\.|numpy\.)")
_PACING = regex(r"render|draw|plot|imshow|imwrite|show|viewer|send|recv|queue|socket|sleep|save|wait|acquire")
# What is not compiled and called so takes steps of its own, as many as the host finds it needs.
_SOLVES = regex(r"(^|[._])(solve|minimi[sz]e|optimi[sz]e|search|fit)r?(_|$)|_solve$", re.I)


def is_short(loop: Loop, source: Source, most: int = MOST_OF_FEW) -> bool:
    """Whether the loop is seen to run `most` times at most: `range(3)`, or `range(n)` of a parameter `n=3`; or once,
    `[5.0]`."""
    count = _count(loop, source)
    return count is not None and count <= most


def is_repeated(node: cst.CSTNode, source: Source) -> bool:
    """Whether the loops around `node`, together, are not seen to run it a few times only: of `range(4)` in
    `range(100)` the outer one does."""
    times, loop = 1, source.loop(node)
    while isinstance(loop, cst.For | cst.While):
        count = _count(loop, source)
        if count is None:
            return True
        times, loop = times * count, source.loop(loop)
    return times > MOST_OF_FEW


def _count(loop: Loop, source: Source) -> int | None:
    if runs_once(loop):
        return 1
    if not isinstance(loop, cst.For) or not isinstance(loop.iter, cst.Call):
        return None
    match loop.iter.args:
        case [cst.Arg(value=value)] if source.calls(loop.iter, "range"):
            count = as_given(value, source)
            return count.evaluated_value if isinstance(count, cst.Integer) else None
    return None


def runs_once(loop: Loop) -> bool:
    """`for length in [5.0]:`, of which there were more once."""
    match loop:
        case cst.For(iter=cst.List(elements=[cst.Element()]) | cst.Tuple(elements=[cst.Element()])):
            return True
    return False


def is_counted(loop: Loop, source: Source) -> bool:
    """Whether the loop goes on by counting or by what it computes, not by what comes in."""
    if isinstance(loop, cst.While):
        carry = Carry(loop)
        return all(feeds_from_device(c, carry, source) for c in calls(loop.test))
    return _counts(loop.iter, source)


def _counts(iterated: cst.BaseExpression, source: Source) -> bool:
    if isinstance(iterated, cst.Name):
        value = source.value(iterated)
        return value is not None and not isinstance(value, cst.Name) and _counts(value, source)
    if not isinstance(iterated, cst.Call):
        return False
    name = source.qualified_name(iterated.func) or ""
    if name in _COUNTERS or (name.startswith("jax.") and name != "jax.device_get"):
        return True
    return name in BARS and all(_counts(a.value, source) for a in iterated.args if a.keyword is None)


def feeds_from_device(node: cst.CSTNode, carry: Carry, source: Source) -> bool:
    """Whether an expression is computed by compiled calls, jax, or arithmetic, not taken from the host."""
    if isinstance(node, cst.Subscript) and is_part_of_data(node, carry):
        return False
    if isinstance(node, cst.Await | cst.Yield | cst.Lambda):
        return False
    if isinstance(node, cst.Call) and (_fetches(node, carry, source) or not _computes(node, carry, source)):
        return False
    return all(feeds_from_device(child, carry, source) for child in children(node))


def _fetches(call: cst.Call, carry: Carry, source: Source) -> bool:
    """Whether what the loop makes is brought to the host, `env.step(np.asarray(action))`: something there wants it."""
    return source.calls(call, *FETCHES) and any(carry.varies(arg.value) for arg in call.args)


def is_part_of_data(node: cst.Subscript, carry: Carry) -> bool:
    """Whether this is another slice of an array that the loop does not make: `images[i:i + 32]`."""
    sliced = any(isinstance(e.slice, cst.Slice) and carry.varies(e) for e in node.slice)
    return sliced and not carry.varies(node.value)


def _computes(call: cst.Call, carry: Carry, source: Source) -> bool:
    name = source.qualified_name(call.func)
    if is_jitted(call.func, source):
        return True
    if name is None:
        match call.func:
            case cst.Attribute(value=owner):
                if _is_handed_out(owner, source):
                    return False
                return isinstance(owner, cst.Call | cst.Subscript) or carry.varies(owner) or _is_array(owner, source)
        return False
    if ":" in name:
        place = source.project.find(name)
        is_host = place is not None and source.contexts.get(place) == "host"
        return not is_host and not _PACING.search(name.rpartition(":")[2])
    return name in _BUILTIN or name.startswith(_JAX_RANDOM) or bool(_DEVICE.match(name))


def _is_handed_out(owner: cst.BaseExpression, source: Source) -> bool:
    """Whether this is what a function of a module that is not jax's makes of nothing, `communicator.get()`: an object
    of the host, whose methods are its own, `communicator.get().all_reduce(x)`."""
    if not isinstance(owner, cst.Call) or owner.args:
        return False
    name = source.qualified_name(owner.func)
    return name is not None and not name.startswith("jax.")


def _is_array(owner: cst.BaseExpression, source: Source) -> bool:
    value = source.value(owner) if isinstance(owner, cst.Name) else None
    return isinstance(value, cst.Call) and (source.qualified_name(value.func) or "").startswith("jax.")


def benign(call: cst.Call, carry: Carry, source: Source) -> bool:
    """Whether a call that the loop makes every time could as well be made after it: no window, no queue, no pause,
    nothing that decides when to stop."""
    name = source.qualified_name(call.func)
    last = call.func.attr.value if isinstance(call.func, cst.Attribute) else dotted(call.func)
    if _PACING.search(name or last) or last == "next":
        return False
    if is_jitted(call.func, source):
        return True
    if _SOLVES.search(dotted(call.func)):
        return False
    if _computes(call, carry, source):
        return True
    if _NOTING.match(name) if name else _NOTES.match(last):
        return True
    return not (isinstance(source.parent(call), cst.Expr) or _decides(call, carry, source))


def _decides(call: cst.Call, carry: Carry, source: Source) -> bool:
    """Whether `call` is part of what an `if` or `while` of the loop tests, or of what such a test names: `score =
    float(evaluate(candidate))`, `if score < best`."""
    for below, above in source.outward(call):
        if isinstance(above, cst.If | cst.IfExp | cst.While) and above.test is below:
            return True
        if isinstance(above, cst.Assign) and _is_tested(above, carry):
            return True
        if above is carry.loop.body:
            return False
    return False


def _is_tested(made: cst.Assign, carry: Carry) -> bool:
    tests = (part.test for part in inside(carry.loop.body) if isinstance(part, cst.If | cst.IfExp | cst.While))
    tested = {name for test in tests for name in read(test)}
    return any(isinstance(t.target, cst.Name) and t.target.value in tested for t in made.targets)


def is_of_the_host(call: cst.Call, source: Source) -> bool:
    """Whether a library for the host solves something, `scipy.optimize.minimize`: it waits for what it is handed."""
    return (source.qualified_name(call.func) or "").startswith(_ON_THE_HOST)


def yields(loop: Loop) -> bool:
    """Whether the loop hands something out in between: a generator or a coroutine."""
    todo: list[cst.CSTNode] = [loop.body]
    while todo:
        node = todo.pop()
        if isinstance(node, cst.Yield | cst.Await):
            return True
        if not isinstance(node, cst.FunctionDef | cst.Lambda):
            todo += children(node)
    return False
