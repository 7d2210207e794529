"""Fourier transforms of several fields one by one: `irfft2(1j * kx * f), irfft2(1j * ky * f)`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import libcst as cst

from fusionlint.finding import Edit, Finding, Location
from fusionlint.lazily import regex
from fusionlint.patterns.code.at import constant, inside, listed, names_read
from fusionlint.patterns.code.calls import as_argument, keyword
from fusionlint.patterns.code.elementwise import operands
from fusionlint.patterns.code.functions import own_parts
from fusionlint.patterns.code.imports import vmap_of_jax
from fusionlint.patterns.code.unpacked import unpacked
from fusionlint.patterns.compiled.one_by_one import transforms_alike
from fusionlint.rule import Rule
from fusionlint.source.tree import Source
from fusionlint.source.walk import dotted

if TYPE_CHECKING:
    from fusionlint.hlo import parse as hlo
    from fusionlint.hlo.barriers import Barrier

rule = Rule(__name__, harm="fusion")

_KINDS = ("fft", "ifft", "rfft", "irfft")
_FFTS = tuple(f"jax.numpy.fft.{kind}{axes}" for kind in _KINDS for axes in ("", "2", "n"))
_DEPTH = 6
# What a field is convolved with: of another shape, and often known before.
_KERNEL = regex(r"^[hkwg]$|ker|filt|psf|otf|weight|window|mask|template")
# Python's own loops, rows of an array, and leaves of a tree.
_GOES_OVER = regex(r"^(range|zip|enumerate|reversed|sorted|map|filter)$|(leaves|items|values|keys|split|flatten)$")


@rule.source("Call", calls=_FFTS)
def of_one_field(node: cst.Call, source: Source) -> Iterator[Finding]:
    """The first of several transforms of the same kind, of what was computed from one array: shapes are alike there."""
    if source.in_loop(node):
        return
    alike = [call for call in _calls_beside(node, source) if _is_alike(call, node, source)]
    if alike and alike[0] is not node:
        return
    apart = [call for call in alike[1:] if not _needs(call, alike, source)]
    if not apart or _is_of_tangents(node, source):
        return
    fft = source.code(node.func)
    jnp = source.jnp
    edits = _edits([node, *apart], source)
    yield source.finding(
        node,
        f"{len(apart) + 1} arrays are transformed one by one, each with kernels of its own before and behind",
        write=f"a, b, ... = {fft}({jnp}.stack([...])), which transforms the last axes",
        edits=edits,
    )


@rule.source("Call", calls=_FFTS)
def of_each_field(node: cst.Call, source: Source) -> Iterator[Finding]:
    """`[irfft2(u) for u in spectra]`: what a comprehension goes over exists already, so that a stack holds no more."""
    if not node.args:
        return
    around = source.loop(node)
    if not isinstance(around, cst.ListComp | cst.GeneratorExp) or source.in_loop(around):
        return
    match around.for_in:
        case cst.CompFor(target=cst.Name(field), iter=fields, ifs=[], inner_for_in=None):
            pass
        case _:
            return
    others = (name.value for arg in node.args[1:] for name in names_read(arg))
    if not _is_field(node.args[0].value, field) or field in others or not _are_alike(fields, node, source):
        return
    fft, jnp = source.code(node.func), source.jnp
    each = source.code(node.args[0].value)
    yield source.finding(
        node,
        "fields are transformed one by one, each with kernels of its own before and behind",
        write=f"{fft}({jnp}.stack([{each} for {field} in ...])), which transforms the last axes",
    )


@rule.barrier
def transformed_one_by_one(barrier: Barrier, module: hlo.Module) -> str | None:
    """What goes into one of several transforms alike, or comes out of it."""
    times = transforms_alike(barrier, module)
    return (
        f"one transform of the stack of what these {times} take: each is a library call of its own" if times else None
    )


def _edits(calls: list[cst.Call], source: Source) -> tuple[Edit, ...]:
    """One transform of the stack in place of a tuple of them all, `u, v = irfft2(a), irfft2(b)`.

    Not safe: arrays of several types are brought to one.
    """
    element = source.parent(calls[0])
    several = source.parent(element) if element is not None else None
    jnp, found = source.alias_at(calls[0], "jax.numpy"), _of_a_stack(calls[0], source)
    if not isinstance(several, cst.Tuple) or jnp is None or found is None or source.has_comment(several):
        return ()
    if [each.value for each in several.elements] != calls:
        return ()
    fields = ", ".join(as_argument(call.args[0].value, source) for call in calls)
    rest = "".join(f", {source.code(arg).rstrip(', ')}" for arg in calls[0].args[1:])
    text = f"{found.transform}({jnp}.stack([{fields}]){rest}{found.along})"
    if _is_unpacked(several, source):
        return (source.replace(several, text), *found.edits)
    return (Edit(_with_parentheses(several, source), f"tuple({text})"), *found.edits)


def _with_parentheses(several: cst.Tuple, source: Source) -> Location:
    """Where a tuple stands, with the parentheses close around it, which its call needs no more."""
    where = source.location(several)
    before = source.line(where.line)[: where.column - 1]
    is_closed = before.endswith("(") and source.line(where.end_line)[where.end_column - 1 :].startswith(")")
    if not several.lpar or not is_closed:
        return where
    return where._replace(column=where.column - 1, end_column=where.end_column + 1)


class _OfAStack(NamedTuple):
    """What transforms a stack, what else it is told, and what has to be imported for it."""

    transform: str
    along: str = ""
    edits: tuple[Edit, ...] = ()


def _of_a_stack(call: cst.Call, source: Source) -> _OfAStack | None:
    """How a stack is transformed along the axes of each array: of what goes along all of them a vmap, which is told
    nothing else, or all axes but the first; None where axes are told that may be counted from the front."""
    array, *more = call.args
    if any(arg.keyword is None or arg.keyword.value not in ("norm", "axis", "axes") for arg in more):
        return None
    transform = source.code(call.func)
    told = keyword(call, "axis") or keyword(call, "axes")
    if told is not None:
        axes = [constant(each) for each in listed(told) or [told]]
        return _OfAStack(transform) if all(axis is not None and axis < 0 for axis in axes) else None
    if not transform.endswith("n"):
        return _OfAStack(transform)
    if not more and (vmap := vmap_of_jax(call, source)) is not None:
        return _OfAStack(f"{vmap.name}({transform})", edits=vmap.edits)
    if not isinstance(array.value, cst.Name):
        return None
    return _OfAStack(transform, f", axes=tuple(range(1, {array.value.value}.ndim + 1))")


def _is_unpacked(several: cst.Tuple, source: Source) -> bool:
    """Whether each part gets a name of its own."""
    match source.parent(several):
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Tuple(elements=targets))]):
            return len(targets) == len(several.elements)
    return False


def _is_of_tangents(node: cst.Call, source: Source) -> bool:
    """Whether the function around `node` says how another is differentiated, `@f.defjvp`: with a tangent in one stack a
    primal is no longer known, and a gradient fails."""
    function = source.function(node)
    if not isinstance(function, cst.FunctionDef):
        return False
    above = (each.decorator for each in function.decorators)
    name = function.name.value
    handed = (name in arguments for (called, arguments, _), *_ in source.facts.raw.calls if _defines_a_jvp(called))
    return any(_defines_a_jvp(dotted(each)) for each in above) or any(handed)


def _defines_a_jvp(called: object) -> bool:
    return isinstance(called, str) and called.endswith((".defjvp", ".defjvps"))


def _is_field(node: cst.BaseExpression, field: str) -> bool:
    """`u`, or `u.data`."""
    return dotted(node).partition(".")[0] == field


def _are_alike(fields: cst.BaseExpression, node: cst.Call, source: Source) -> bool:
    """Whether what a comprehension goes over is seen to be several fields of one shape: on their way back, or made
    together by one call of a function that is no part of Python or a tree's."""
    made = source.meant(fields)
    match made:
        case cst.Tuple(elements=parts) | cst.List(elements=parts):
            return len(parts) > 1 and _is_way_back(node, source)
        case cst.Call(func=func):
            return not _GOES_OVER.search(source.code(func)) and not _KERNEL.search(source.code(func))
        case cst.Name() | cst.Attribute():
            return _is_way_back(node, source) and not _KERNEL.search(source.code(made))
    return False


def _is_way_back(node: cst.Call, source: Source) -> bool:
    return (source.qualified_name(node.func) or "").rpartition(".")[2].startswith("i")


def _calls_beside(node: cst.Call, source: Source) -> Iterator[cst.Call]:
    """The calls of the function around `node`, in the order in which they stand."""
    function = source.function(node)
    others = own_parts(function, cst.Call, source) if function is not None else ()
    return (other for other in others if not source.in_loop(other))


def _is_alike(other: cst.Call, node: cst.Call, source: Source) -> bool:
    """Whether both are the same transform, and run together, of what one array went into."""
    if other is node:
        return True
    if source.qualified_name(other.func) != source.qualified_name(node.func):
        return False
    if _block(other, source) is not _block(node, source):
        return False
    if not other.args or not node.args:
        return False
    rest = [[source.code(arg) for arg in call.args[1:]] for call in (other, node)]
    one, two = other.args[0].value, node.args[0].value
    if rest[0] != rest[1] or source.code(one) == source.code(two):
        return False
    if _is_beside(other, node, source):
        return True
    return bool(set(_arrays(one, source, _DEPTH)) & set(_arrays(two, source, _DEPTH)))


def _block(node: cst.CSTNode, source: Source) -> cst.CSTNode | None:
    """The statements among which `node` stands: an `if`, or a return before it, keeps others from running with it."""
    return next((above for above in source.ancestors(node) if isinstance(above, cst.BaseSuite)), None)


def _is_beside(one: cst.Call, other: cst.Call, source: Source) -> bool:
    """`irfft2(u), irfft2(v)`: the way back is made for fields of one shape, the way there for a kernel as well, unless
    both are seen to be parts of one thing."""
    pair = source.parent(one), source.parent(other)
    if not all(isinstance(element, cst.Element) for element in pair):
        return False
    together = [source.parent(element) for element in pair if element is not None]
    if together[0] is not together[1]:
        return False
    return _is_way_back(one, source) or _are_made_together(one.args[0].value, other.args[0].value, source)


def _are_made_together(one: cst.BaseExpression, two: cst.BaseExpression, source: Source) -> bool:
    """Whether what is transformed was made in one statement, `u, v = cut(u), cut(v)` or `fx, fy = forcing(u, v)`, and
    none of it is a kernel: made, so that a stack of them is made as well as each."""
    if isinstance(one, cst.Attribute) and isinstance(two, cst.Attribute) and one.attr.value == two.attr.value:
        one, two = one.value, two.value
    if not isinstance(one, cst.Name) or not isinstance(two, cst.Name):
        return False
    if any(_KERNEL.search(name.value) for name in (one, two)):
        return False
    made, other = (unpacked(source.written(name), source) for name in (one, two))
    if made is not other:
        return False
    match made:
        case cst.Tuple(elements=parts):
            return all(isinstance(part.value, cst.Call | cst.Subscript | cst.BinaryOperation) for part in parts)
        case cst.Call():
            return True
    return False


def _arrays(node: cst.BaseExpression, source: Source, depth: int) -> Iterator[str]:
    """The names of transforms that an expression is computed from element by element."""
    if isinstance(node, cst.Name) and depth:
        value = source.value(node)
        if source.calls(value, *_FFTS):
            yield node.value
        elif value is not None:
            yield from _arrays(value, source, depth - 1)
    for part in operands(node, source) or ():
        yield from _arrays(part, source, depth)


def _needs(call: cst.Call, others: list[cst.Call], source: Source) -> bool:
    """Whether what `call` transforms was computed from the result of another of them."""
    return any(other is not call and _depends(call.args[0].value, other, source, _DEPTH) for other in others)


def _depends(node: cst.BaseExpression, call: cst.Call, source: Source, depth: int) -> bool:
    if depth == 0 or any(part is call for part in inside(node)):
        return True
    values = (source.value(name) for name in names_read(node))
    return any(value is not None and _depends(value, call, source, depth - 1) for value in values)
