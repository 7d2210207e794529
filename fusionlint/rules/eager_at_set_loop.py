"""A Python loop on the host that writes a jax array place by place, each time a dispatch and a copy of it all."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import libcst as cst

from fusionlint.finding import Edit, Finding
from fusionlint.lazily import regex
from fusionlint.patterns.code.at import FRESH_BY_SHAPE, WRITES, Write, at_write, holds, inside, place_of
from fusionlint.patterns.code.before import lines_beside
from fusionlint.patterns.code.calls import as_argument
from fusionlint.patterns.code.imports import imported, numpy_of_jax
from fusionlint.patterns.code.rewritten import rewritten
from fusionlint.patterns.code.unpacked import assignment
from fusionlint.patterns.loops.carry import calls
from fusionlint.patterns.loops.collected import is_few, target_names
from fusionlint.patterns.loops.timed import is_timed
from fusionlint.patterns.runs.made_once import is_for_constructors
from fusionlint.patterns.values.kinds import kind
from fusionlint.patterns.writes.heavy import is_made_by_heavy_work
from fusionlint.patterns.writes.loop import piecewise
from fusionlint.patterns.writes.loop_fix import of_loop
from fusionlint.patterns.writes.places import is_fresh_before
from fusionlint.rule import Rule
from fusionlint.source.tree import Source
from fusionlint.source.variables import Use
from fusionlint.source.walk import dotted

rule = Rule(__name__, harm="dispatch")

# What makes first values, or a part of something, runs once, often under a trace after all.
_INITIALIZES = regex(r"(^|_)init(_|$)|initiali[sz]er?(_|$)|^_?(make|build|set_?up)_")
_EPOCH = regex(r"epoch", re.I)
_EVENT = regex(r"(^|[._])events?([._]|$)")
_LIKE = ("jax.numpy.zeros_like", "jax.numpy.ones_like", "jax.numpy.empty_like")
# What jax.numpy and numpy both call a dtype.
_DTYPES = frozenset(f"{kind}{bits}" for kind in ("float", "int", "uint") for bits in (8, 16, 32, 64)) | {"bool_"}
_OPERATORS = {"set": "=", "add": "+=", "subtract": "-=", "multiply": "*=", "divide": "/="}


def _calls_what_it_goes_over(loop: cst.For) -> bool:
    """Whether the loop is over functions: they are few, and do more than a dispatch."""
    names = target_names(loop)
    calls = (node.func for node in inside(loop.body, cst.Call))
    return any(isinstance(called, cst.Name) and called.value in names for called in calls)


def _is_of_epochs(loop: cst.For) -> bool:
    """Whether an iteration takes so long that a write is nothing beside it: an epoch."""
    done = (dotted(node.func) for node in inside(loop.body, cst.Call))
    return any(_EPOCH.search(name) for name in (*target_names(loop), *done))


def _is_of_events(loop: cst.For) -> bool:
    """Whether the loop goes over what somebody did meanwhile, `pygame.event.get()`: a key now and then."""
    return isinstance(loop.iter, cst.Call) and _EVENT.search(dotted(loop.iter.func)) is not None


def _is_drawn(loop: cst.For, source: Source) -> bool:
    """Whether the function draws, `plt.imshow(image)`: that takes longer."""
    function = source.function(loop)
    body = function.body if isinstance(function, cst.FunctionDef) else loop
    return any((source.qualified_name(call.func) or "").startswith("matplotlib.") for call in calls(body))


def _is_a_check(loop: cst.For, source: Source) -> bool:
    """Whether the function only looks whether all is well: it raises or says nothing, and changes nothing."""
    function = source.function(loop)
    if not isinstance(function, cst.FunctionDef):
        return False
    own = [node for node in inside(function.body) if source.function(node) is function]
    is_told = any(isinstance(node, cst.Return) and node.value is not None for node in own)
    targets = [node.target for node in own if isinstance(node, cst.AssignTarget | cst.AugAssign)]
    is_changed = any(isinstance(target, cst.Attribute | cst.Subscript) for target in targets)
    return any(isinstance(node, cst.Raise) for node in own) and not is_told and not is_changed


def _kept(write: Write, loop: cst.For, jnp: str) -> str:
    """A stack of one value for each turn; of values for other places, `x.at[i, j]`, it would have another shape."""
    match write.index:
        case [cst.Name(value=name)] if name in target_names(loop) and write.method == "set":
            return f"a list, and one {jnp}.stack"
    twice = ", if no place comes twice" if write.method == "set" else ""  # nobody says which of two stays
    return f"a list and one of their places, and one `.{write.method}` of all after the loop{twice}"


@rule.source("For", calls=WRITES, where="host", in_loop=True)
def written_eagerly(node: cst.For, source: Source) -> Iterator[Finding]:
    """The loop of a host function fills a new array of jax place by place."""
    if source.context(node) != "host" or is_few(node.iter, source) or _calls_what_it_goes_over(node):
        return
    if _is_of_epochs(node) or _is_of_events(node) or is_timed(node, source):
        return
    if any(_INITIALIZES.search(name) for name in source.scope(node).split(".")):
        return
    if is_for_constructors(source.project, source.place(node)) or is_made_by_heavy_work(node, source):
        return
    if _is_drawn(node, source) or _is_a_check(node, source):
        return
    found = piecewise(node, source)
    if found is None or not all(is_fresh_before(write, node, source) for write in found.writes):
        return
    array = found.arrays[0]
    more = f" and {len(found.arrays) - 1} more are" if len(found.arrays) > 1 else " is"
    jnp = source.jnp
    yield source.finding(
        found.writes[0].call,
        f"`{array}`{more} copied whole to write one place, in a dispatch of its own, in every iteration",
        write=f"a numpy array, `{array}[i] = value` in the loop, and {jnp}.asarray({array}) after it; of values that "
        f"jax computes {_kept(found.writes[0], node, jnp)}",
        edits=_on_the_host(found.writes, node, source) or of_loop(found, node, source),
    )


def _on_the_host(writes: Sequence[Write], loop: cst.For, source: Source) -> tuple[Edit, ...]:
    """The edits for all arrays that `writes`, of a loop, are of."""
    arrays = {write.array.value: write.array for write in writes if isinstance(write.array, cst.Name)}
    numpy, jnp = imported("numpy", loop, source), numpy_of_jax(loop, source)
    if not arrays or numpy is None or jnp is None or (numpy.edits and jnp.edits):
        return ()
    around = _outermost(list(arrays.values()), loop, source)
    statements = [_written_by(use.node, source) for array in arrays.values() for use in _within(array, around, source)]
    if any(statement is None for statement in statements):
        return ()
    made = {name: _where_it_is_made(array, around, source) for name, array in arrays.items()}
    before = [f"{name} = {numpy.name}.array({name})" for name in arrays if made[name] is None]
    behind = [f"{name} = {jnp.name}.asarray({name})" for name in arrays]
    lines = lines_beside(around, source, before=before, behind=behind)
    if lines is None:
        return ()
    edits = {}
    for statement in statements:
        if statement is None or (text := _in_place(statement, source)) is None:
            return ()
        edits[statement] = source.replace(statement, text)
    return (
        *numpy.edits,
        *jnp.edits,
        *(source.replace(v, _made_by_numpy(v, numpy.name, source)) for v in made.values() if v is not None),
        *lines,
        *edits.values(),
    )


def _made_by_numpy(made: cst.Call, numpy: str, source: Source) -> str:
    """`np.zeros(n)` for `jnp.zeros(n)`, `np.zeros(x.shape, x.dtype)` for `jnp.zeros_like(x)`; what else makes an array
    is copied."""
    name, (first, *more) = (source.qualified_name(made.func) or "").rpartition(".")[2], made.args
    if source.calls(made, *_LIKE) and not more and isinstance(first.value, cst.Name | cst.Attribute):
        like = source.code(first.value)
        return f"{numpy}.{name.removesuffix('_like')}({like}.shape, {like}.dtype)"
    if source.calls(made, *FRESH_BY_SHAPE):
        dtypes = {
            arg.value: f"{numpy}.{dotted(arg.value).rpartition('.')[2]}" for arg in more if _is_jax_s(arg, source)
        }
        return rewritten(made, {made.func: f"{numpy}.{name}", **dtypes}, source)
    return f"{numpy}.array({source.code(made)})"


def _is_jax_s(arg: cst.Arg, source: Source) -> bool:
    """Whether an argument is a dtype by jax's name for it, `jnp.int32`, which numpy has too."""
    return (source.qualified_name(arg.value) or "").removeprefix("jax.numpy.") in _DTYPES


def _where_it_is_made(array: cst.Name, around: cst.For, source: Source) -> cst.Call | None:
    """What a line of the same block, and nothing behind it, writes to an array before the loop."""
    before = [use for use in source.uses(array) if use.order < source.order(around.body)]
    outside = [use for use in before if around not in source.ancestors(use.node)]
    made = assignment(outside[-1].node, source) if outside and outside[-1].is_write else None
    if made is None or len(made.targets) != 1 or source.has_comment(made):
        return None
    if not isinstance(made.value, cst.Call) or not made.value.args:
        return None
    line = source.parent(made)
    return made.value if line is not None and source.parent(line) is source.parent(around) else None


def _within(array: cst.Name, around: cst.For, source: Source) -> list[Use]:
    return [use for use in source.uses(array) if around in source.ancestors(use.node)]


def _outermost(arrays: Sequence[cst.Name], loop: cst.For, source: Source) -> cst.For:
    """The outermost of the loops right around `loop` in which nothing is asked of the arrays but such writes."""
    found = loop
    for below, above in source.outward(loop):
        if isinstance(above, cst.FunctionDef | cst.Lambda | cst.ClassDef | cst.Module):
            break
        if isinstance(above, cst.IndentedBlock):
            continue
        uses = (use for array in arrays for use in _within(array, above, source)) if isinstance(above, cst.For) else ()
        if not isinstance(above, cst.For) or below is not above.body:
            break
        if not all(_written_by(use.node, source) is not None for use in uses):
            break
        found = above
    return found


def _written_by(name: cst.Name, source: Source) -> cst.Assign | None:
    """The statement `x = x.at[i].set(v)` that `name` is one of the two `x` of."""
    target = assignment(name, source)
    line = target if target is not None else source.nearest(name, cst.Assign)
    match line:
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Name(written))], value=value):
            write = at_write(value)
            is_own = write is not None and isinstance(write.array, cst.Name) and write.array.value == written
            is_one = write is not None and (target is not None or write.array is name)
            return line if is_own and is_one else None
    return None


def _in_place(statement: cst.Assign, source: Source) -> str | None:
    """`x[i] = v`, of a value that is on the host already: for one of jax each write would wait."""
    write = at_write(statement.value)
    if write is None or write.value is None or len(write.call.args) != 1 or source.has_comment(statement):
        return None
    operator = _OPERATORS.get(write.method)
    if operator is None or kind(write.value, source) not in ("scalar", "numpy"):
        return None
    if any(isinstance(part, cst.BaseExpression) and kind(part, source) == "array" for part in write.index):
        return None  # jax leaves out what lies outside, numpy raises
    if operator != "=" and not all(_is_number(part, source) for part in write.index):
        return None  # of places that come twice `+=` adds once
    if holds(statement, cst.NamedExpr, cst.Await, cst.Yield):
        return None
    value = as_argument(write.value, source)
    value = f"({value})" if "\n" in value and not write.value.lpar else value  # which the brackets of the call held
    return f"{source.code(write.array)}[{place_of(write, source)}] {operator} {value}"


def _is_number(part: cst.CSTNode, source: Source) -> bool:
    # What stands for one place, so that no place comes twice.
    one = cst.Integer | cst.UnaryOperation | cst.BinaryOperation | cst.Name
    return isinstance(part, one) and kind(part, source) == "scalar"
