"""A small function mapped over an array one element after the other: `jax.lax.map(f, xs)`, a scan without a carry."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from fusionlint.finding import Edit, Finding
from fusionlint.lazily import regex
from fusionlint.patterns.code.at import RANGES, inside, is_none, names_in
from fusionlint.patterns.code.calls import argument, as_argument, brief, has_only
from fusionlint.patterns.code.functions import Function, definitions
from fusionlint.patterns.code.imports import imported, numpy_of_jax
from fusionlint.patterns.code.layout import Called, in_place_of
from fusionlint.patterns.compiled.apart import turns_apart
from fusionlint.patterns.dispatch.jit import runs_a_loop
from fusionlint.patterns.loops.step import only_counts
from fusionlint.patterns.loops.step_writes import result
from fusionlint.patterns.loops.undressed import taken, undressed
from fusionlint.patterns.runs.loop_bodies import LOOPS, bodies_of, is_small, of_a_map
from fusionlint.patterns.values.one_number import is_zero
from fusionlint.rule import Rule
from fusionlint.source.names import JIT
from fusionlint.source.places import Place
from fusionlint.source.project import Project
from fusionlint.source.tree import Source
from fusionlint.source.walk import dotted, holds_comment

if TYPE_CHECKING:
    from fusionlint.hlo import parse as hlo
    from fusionlint.hlo.barriers import Barrier

rule = Rule(__name__, harm="fusion")

_MAP = "jax.lax.map"
_SCAN = "jax.lax.scan"
_RESHAPE = "jax.numpy.reshape"
# One element at a time is what saves memory: whoever writes so has decided.
_ON_PURPOSE = regex(
    r"#.*(memory|\boom\b|\bhbm\b|\bvram\b|sequential|(not|n't|avoid|instead of|rather than|unlike).*\bvmap\b"
    r"|\bvmap\b.*(not|n't|both|slow))",
    re.I,
)
_LINES_ABOVE = 4
# What elements are called that are many each.
_CHUNK = regex(r"(^|_)(batches|blocks|chunks|tiles)(_|$)")
_OF_CHUNK = regex(r"(^|_)(chunks?|tiles?|batch_size)(_|$)")
_HELPERS = 2
# What holds many elements at once for each element: matrices, windows, orders.
_BIG = regex(
    r"jax\.(numpy\.(dot|matmul|einsum|tensordot|vdot|inner|outer|sort|argsort|lexsort|convolve|correlate|fft\..+)"
    r"|lax\.(dot\w*|conv\w*|sort|top_k|reduce_window\w*|cond|switch)|nn\.\w*attention|random\.(permutation|choice))$"
)


@rule.source("Call", calls=(_MAP,))
def mapped_one_by_one(node: cst.Call, source: Source) -> Iterator[Finding]:
    """A function that is seen to be small, or no more than a cond: `vmap` runs it for all elements at once."""
    function, over = argument(node, 0, "f"), argument(node, 1, "xs")
    if argument(node, 2, "batch_size") is not None:
        return
    if function is None or over is None or not has_only(node, 2, "f", "xs") or _is_on_purpose(node, source):
        return
    if _OF_CHUNK.search(dotted(function)) or _are_chunks(over, source) or _is_one(over, source):
        return
    bodies = bodies_of(node, source)
    if not bodies or not all(_is_light(body, source) for body in bodies):
        if bodies and all(_is_cond(source.project, body) and not _spares_work(body, source) for body in bodies):
            yield source.finding(
                node,
                "`lax.map` takes one element after the other, and a cond for each",
                write=f"{_jax(source)}.vmap: the cond becomes a select of what both branches give; or one lax.cond "
                "around that, for when no element needs it",
            )
        return
    text = source.code(function)
    shown = brief(text, 60)
    edits: tuple[Edit, ...] = ()
    jax = imported("jax", node, source)
    if jax is not None and not holds_comment(node):
        edits = (*jax.edits, source.replace(node, f"{jax.name}.vmap({text})({as_argument(over, source)})"))
    yield source.finding(
        node,
        "`lax.map` takes one element after the other, each with kernels of its own",
        write=f"{_jax(source)}.vmap({shown})({source.code(over)}), or batch_size= where all at once need too much "
        "memory",
        edits=edits,
    )


@rule.source("Call", calls=(_SCAN,))
def scanned_one_by_one(node: cst.Call, source: Source) -> Iterator[Finding]:
    """A scan that carries nothing, or the number of the step alone: each step returns None, or what was carried as it
    was, and reads none of it; or one more."""
    bodies = bodies_of(node, source)
    found = definitions(bodies, source)
    if len(bodies) != 1 or len(found) != 1 or not _is_light(bodies[0], source) or _is_on_purpose(node, source):
        return
    over = argument(node, 2, "xs")
    has_rows = over is not None and not is_none(over)
    if has_rows and has_only(node, 3, "f", "init", "xs") and _carries_nothing(found[0], source):
        yield source.finding(
            node,
            "this scan carries nothing from step to step, and still takes one element after the other",
            write=f"{_jax(source)}.vmap of what a step does with its element, over "
            f"{brief(source.code(over) if over else '', 60, 'xs')}",
            edits=_mapped(node, found[0], source),
        )
    elif _counts(found[0], source):
        yield source.finding(
            node,
            "this scan carries nothing but the number of the step, and still takes one step after the other",
            write=f"a slice and a reshape, or {_jax(source)}.vmap of what a step makes, over the numbers",
            edits=_numbered(node, source),
            pair=2,
        )


@rule.barrier
def crosses_in_turns_apart(barrier: Barrier, module: hlo.Module) -> str | None:
    """Whatever crosses memory inside of a loop that only stacks what each turn makes of its own."""
    apart = turns_apart(barrier.computation, module)
    if apart is None or not apart.only_stacks or apart.turns is None:
        return None
    return (
        f"jax.vmap in place of the scan or lax.map: its {apart.turns} turns need nothing of one another, and all that "
        "they make is small"
    )


def _mapped(node: cst.Call, body: Function, source: Source) -> tuple[Edit, ...]:
    """The step mapped over its elements, `jax.vmap(f)(xs)`; of what it was carried itself, or where others call it,
    `jax.vmap(f, in_axes=(None, 0))(None, xs)`."""
    step, carried, over = (argument(node, place, name) for place, name in enumerate(("f", "init", "xs")))
    jax = imported("jax", node, source)
    if jax is None or step is None or carried is None or over is None or holds_comment(node):
        return ()
    if is_none(carried) and (plain := undressed(node, step, body, source)):
        called = Called(f"{jax.name}.vmap({as_argument(step, source)})", (as_argument(over, source),))
        return (*jax.edits, *plain, in_place_of(node, called, source))
    axes = "in_axes=(None, 0)" if is_none(carried) else "in_axes=(None, 0), out_axes=(None, 0)"
    mapped = f"{jax.name}.vmap({as_argument(step, source)}, {axes})"
    handed = (as_argument(carried, source), as_argument(over, source))
    return (*jax.edits, in_place_of(node, Called(mapped, handed), source))


def _numbered(node: cst.Call, source: Source) -> tuple[Edit, ...]:
    """The step mapped over its numbers, `jax.vmap(f, in_axes=(0, None))(jnp.arange(n), None)`, where they begin with 0
    and nobody reads the last."""
    step, first, over, length = (argument(node, at, name) for at, name in enumerate(("f", "init", "xs", "length")))
    jax, jnp = imported("jax", node, source), numpy_of_jax(node, source)
    if jax is None or jnp is None or (jax.edits and jnp.edits) or step is None or first is None or length is None:
        return ()
    if not is_none(over) or not is_zero(first, source) or taken(node, source) is None or holds_comment(node):
        return ()
    numbers = f"{jnp.name}.arange({source.code(length)})"
    mapped = Called(f"{jax.name}.vmap({as_argument(step, source)}, in_axes=(0, None))", (numbers, "None"))
    return (*jax.edits, *jnp.edits, in_place_of(node, mapped, source))


def _counts(body: cst.FunctionDef | cst.Lambda, source: Source) -> bool:
    """Whether a step makes something, and hands on its number and nothing else."""
    match result(body), body.params.params:
        case cst.Tuple(elements=[_, cst.Element(value=made)]), [first, _]:
            return not is_none(made) and only_counts(body, first.name, source)
    return False


def _carries_nothing(body: cst.FunctionDef | cst.Lambda, source: Source) -> bool:
    match result(body), body.params.params:
        case cst.Tuple(elements=[cst.Element(value=carried), cst.Element(value=made)]), [first, _]:
            if is_none(made):
                return False
            return all(read is carried for read in source.reads(first.name)) and (
                is_none(carried) or (isinstance(carried, cst.Name) and carried.value == first.name.value)
            )
    return False


def _jax(source: Source) -> str:
    return source.alias("jax") or "jax"


def _is_light(place: Place, source: Source, depth: int = _HELPERS) -> bool:
    """Whether all elements at once need no more memory than their results, as far as can be seen: nor do the functions
    of this file that are called."""
    found = definitions([place], source)
    if not found or not is_small(source.project, place):
        return False
    if any(_is_heavy(node) for function in found for node in inside(function)):
        return False
    project, calls = source.project, [(where, call.value) for where, call in source.project.calls_within(place)]
    names = [project.callee(where, call) or "" for where, call in calls]
    if any(map(_BIG.match, names)):
        return False
    helpers = [helper for name in names if (helper := project.find(name)) is not None]
    helpers += (mapped for where, call in calls for mapped in of_a_map(project, where, call) or ())
    return all(depth > 0 and _is_light(helper, source, depth - 1) for helper in helpers)


def _is_heavy(node: cst.CSTNode) -> bool:
    """A matrix product, or a call of what is looked up, `self.kernels[mode](x)`, which nobody sees."""
    match node:
        case cst.MatrixMultiply() | cst.Call(func=cst.Subscript()):
            return True
    return False


def _is_cond(project: Project, place: Place, depth: int = 2) -> bool:
    """Whether the function at `place` is a cond, or calls a method that is one, and loops over nothing."""
    calls = [
        (where, project.callee(where, call.value)) for where, call in project.calls_within(place) if where == place
    ]
    names = [name for _, name in calls if name is not None]
    if any(name in LOOPS for name in names):
        return False
    if "jax.lax.cond" in names:
        return True
    behind = [found for name in names if (found := project.find(name)) is not None]
    return depth > 0 and len(calls) == len(behind) == 1 and _is_cond(project, behind[0], depth - 1)


def _spares_work(place: Place, source: Source) -> bool:
    """Whether a cond of the function at `place` is there to spare some elements a long computation: a branch is
    compiled by itself, `jax.jit(integral)`, or holds a loop. All elements would pay for it under `vmap`."""
    conds = (
        part
        for function in definitions([place], source)
        for part in inside(function.body, cst.Call)
        if source.calls(part, "jax.lax.cond")
    )
    return any(_is_long(arg.value, source) for cond in conds for arg in cond.args[1:3])


def _is_long(branch: cst.BaseExpression, source: Source) -> bool:
    if isinstance(branch, cst.Call):
        return source.calls(branch, *JIT)
    return isinstance(branch, cst.Name | cst.Attribute | cst.Lambda) and runs_a_loop(branch, source)


def _is_on_purpose(node: cst.Call, source: Source) -> bool:
    """Whether a comment in the call, or just above it, says why one at a time, or another platform does otherwise."""
    if any(isinstance(above, cst.If) and _asks_platform(above.test, source) for above in source.ancestors(node)):
        return True
    where = source.location(node)
    first = max(1, where.line - _LINES_ABOVE)
    return any(_ON_PURPOSE.search(source.line(number)) for number in range(first, where.end_line + 1))


def _are_chunks(over: cst.BaseExpression, source: Source) -> bool:
    """Whether chunks are counted, of which each turn takes one: `size * jnp.arange(n_chunks)`, or rows are put into
    chunks, `x.reshape(-1, chunk)`, those of several arrays too. What is mapped over is cut so that not all of it is
    there at once."""
    meant = source.meant(over)
    if any(source.calls(part, *RANGES) for part in inside(meant)):
        names = (node.value for node in names_in(meant))
        return any(map(_CHUNK.search, names))
    match meant:
        case cst.Tuple(elements=parts):
            is_named = isinstance(over, cst.Name) and _CHUNK.search(over.value)
            return bool(is_named) or any(_are_chunks(part.value, source) for part in parts)
        case cst.Call(func=cst.Attribute(attr=cst.Name("reshape")), args=shape):
            sizes = (node.value for arg in shape for node in names_in(arg.value))
            return any(map(_OF_CHUNK.search, sizes))
    return False


def _is_one(over: cst.BaseExpression, source: Source) -> bool:
    """Whether there is one element, `x.reshape(1, -1)`: a loop of one turn XLA unrolls."""
    match source.meant(over):
        case cst.Call(func=function, args=[first, *rest]) as call:
            is_of_numpy = source.calls(call, _RESHAPE)
            shape = rest[0].value if is_of_numpy and rest else first.value
            if not is_of_numpy and not (isinstance(function, cst.Attribute) and function.attr.value == "reshape"):
                return False
            sizes = shape.elements if isinstance(shape, cst.Tuple | cst.List) else ()
            leading = sizes[0].value if sizes else shape
            return isinstance(leading, cst.Integer) and leading.evaluated_value == 1
        case cst.Subscript(slice=[cst.SubscriptElement(slice=cst.Index(value=cst.Name("None"))), *_]):
            return True
    return False


def _asks_platform(test: cst.BaseExpression, source: Source) -> bool:
    calls = inside(test, cst.Call)
    return any(source.calls(call, "jax.default_backend", "jax.lib.xla_bridge.get_backend") for call in calls)
