"""A few columns worked on by themselves: `x.at[:, :3].multiply(c)`, a scatter where arithmetic with all fuses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from fusionlint.finding import Edit, Finding
from fusionlint.patterns.callbacks.calls import is_for_the_host
from fusionlint.patterns.code.at import Part, Write, at_write, constant, first_axis, is_literal, is_whole
from fusionlint.patterns.code.calls import brief
from fusionlint.patterns.code.passed_over import is_short
from fusionlint.patterns.compiled.known_places import is_of_a_part
from fusionlint.patterns.runs.concrete import is_concrete
from fusionlint.patterns.runs.for_traces import is_for_traces
from fusionlint.patterns.runs.under import under_vmap
from fusionlint.patterns.values.annotations import axes_said
from fusionlint.patterns.values.kinds import kind
from fusionlint.patterns.writes.axis import compared
from fusionlint.patterns.writes.beside import is_of_numpy, is_taken_to_the_host
from fusionlint.patterns.writes.by_ones import BY_ONES, has_three_axes, is_at_an_end
from fusionlint.patterns.writes.chain import chain, is_last, is_only_written, root
from fusionlint.patterns.writes.folded import is_folded, is_set_up
from fusionlint.patterns.writes.fused import is_worked_on_alone
from fusionlint.rule import Rule
from fusionlint.source.tree import Source

if TYPE_CHECKING:
    from fusionlint.hlo import parse as hlo
    from fusionlint.hlo.barriers import Barrier

rule = Rule(__name__, harm="fusion")

# What leaves a number as it is, with the operator that says so.
_NEUTRAL = {
    "multiply": ("*", 1), "mul": ("*", 1), "divide": ("/", 1), "div": ("/", 1), "power": ("**", 1),
    "add": ("+", 0), "subtract": ("-", 0),
}  # fmt: skip
_CHOICES = {"max": "maximum", "min": "minimum"}
_LONG = 30
# The measured pairs of the page: what a scatter changes, what is divided by ones, what a GPU fuses all the same, and
# what is changed in steps.
_CHANGED, _BY_ONES, _FUSED, _IN_STEPS = range(4)
_WITH_ALL = (
    "the same with every element, by a number that changes nothing elsewhere: x * jnp.where(jnp.arange(n) < k, c, 1); "
    "it fuses with what makes x and with what reads it"
)


@rule.source("Call", calls=tuple(f".at.{method}" for method in (*_NEUTRAL, *_CHOICES)))
def columns_worked_on_by_a_scatter(node: cst.Call, source: Source) -> Iterator[Finding]:
    """One number, and places along a later axis that are written out, or every so many along any: no other write goes
    before or follows."""
    write = at_write(node)
    if write is None or not (_is_along_a_later_axis(write) or _is_in_steps(write)):
        return
    if not is_for_traces(node, source):
        return
    if not _is_a_number(write.value, source) or not is_last(write, source) or len(chain(write, source)) > 1:
        return
    if source.in_loop(node) or is_folded([write], source) or is_set_up([write], source):
        return
    if is_only_written(root(write), source) or is_of_numpy(root(write), source):
        return
    if is_concrete(node, source) or is_taken_to_the_host(node, source) or is_for_the_host(node, source):
        return
    is_fused, is_by_ones = is_at_an_end(write) or has_three_axes(write), write.method in BY_ONES
    if is_by_ones and (is_fused or _is_in_steps(write)):
        return
    if _is_in_steps(write):
        what = "every other part is read, changed and written back by a scatter, which fuses with nothing"
        yield source.finding(node, what, write=_instead(write, source), edits=_fix(write, source), pair=_IN_STEPS)
        return
    what, pair = "a part of each row is read, changed and written back by a scatter", _FUSED
    if is_by_ones:  # which is how jax does that
        does = "raised to a power of" if write.method == "power" else "divided by"
        what = f"everything is {does} ones, into which a scatter writes the number first"
        # Of three axes, as there are under a vmap, a CPU and a GPU make it in one kernel with what is around.
        pair = _FUSED if under_vmap(node, source) else _BY_ONES
    elif not is_fused or not is_worked_on_alone(node, source):
        what, pair = f"{what}, which fuses with nothing after it", _CHANGED
    yield source.finding(node, what, write=_instead(write, source), edits=_fix(write, source), pair=pair)


@rule.barrier(pair=_FUSED)
@rule.barrier
def part_of_each_row(barrier: Barrier, module: hlo.Module) -> str | None:
    """What goes into arithmetic with a number at known places, comes out of it, or says whether they are there."""
    return _WITH_ALL if is_of_a_part(barrier, module) else None


def _is_along_a_later_axis(write: Write) -> bool:
    """`.at[:, :3]`, `.at[..., 0]`, `.at[:, 1, :]`: one part is not all of its axis, and comes after one that is. Whole
    rows are changed in place."""
    parts = [part for part in write.index if not is_whole(part)]
    return len(parts) == 1 and is_whole(write.index[0]) and _is_written_out(parts[0])


def _is_in_steps(write: Write) -> bool:
    """`.at[1::2]`, `.at[:, ::2]`: numbers that are written out, and no end."""
    match [part for part in write.index if not is_whole(part)]:
        case [cst.Slice(lower=first, upper=None, step=cst.Integer() as step)]:
            begin = 0 if first is None else constant(first)
            return begin is not None and 0 <= begin < step.evaluated_value
    return False


def _is_written_out(part: Part) -> bool:
    """`0`, `-1`, `:3`, `a:b`: a trace knows the ends of a slice."""
    return part.step is None if isinstance(part, cst.Slice) else constant(part) is not None


def _is_a_number(value: cst.BaseExpression | None, source: Source) -> bool:
    return value is not None and (is_literal(source.meant(value)) or kind(value, source) == "scalar")


def _instead(write: Write, source: Source, *, longest: int = _LONG) -> str:
    """`x * jnp.where(i < 3, c, 1)`, and what `i` is."""
    jnp = source.jnp
    array = brief(source.code(root(write)), longest, "x")
    value = brief(source.code(write.value), longest, "c") if write.value is not None else "c"
    place = compared(next(part for part in write.index if not is_whole(part)), source)
    if write.method in _NEUTRAL:
        sign, neutral = _NEUTRAL[write.method]
        text = f"{array} {sign} {jnp}.where({place}, {value}, {neutral})"
    else:
        text = f"{jnp}.where({place}, {jnp}.{_CHOICES[write.method]}({array}, {value}), {array})"
    return f"{text}, with `«i» = {jnp}.arange(«n»){_axes_after(write)}` along that axis"


def _fix(write: Write, source: Source) -> tuple[Edit, ...]:
    """The arithmetic, with the numbers of the axis written out, for an array that is read and not computed.

    Not safe: a whole number may become another.
    """
    array, place = root(write), first_axis(write)
    is_open = [isinstance(part, cst.Ellipsis) for part in write.index]
    if source.alias_at(write.call, "jax.numpy") is None or not is_short(array) or any(is_open[place:]):
        return ()
    if len(write.call.args) != 1 or source.has_comment(write.call) or array is not write.array:
        return ()
    jnp, x = source.jnp, source.code(array)
    axes = _axes_said(array, source)
    size = f"{x}.shape[{place - len(write.index) if any(is_open) else place}]"
    numbers = f"{jnp}.arange({size}){_axes_after(write)}"
    if axes is None and not any(is_open):  # of which the index need not name the last
        numbers = f"{jnp}.indices({x}.shape, sparse=True)[{place}]"
    text, _, _ = _instead(write, source, longest=len(source.code(write.call))).partition(", with `«i» =")
    text = text.replace("«i»", numbers).replace("«n»", size)
    if "..." in text or (axes is not None and not any(is_open) and axes != len(write.index)):
        return ()
    is_alone = isinstance(source.parent(write.call), cst.Assign | cst.AnnAssign | cst.Return | cst.Arg)
    return (source.replace(write.call, text if is_alone else f"({text})"),)


def _axes_said(array: cst.BaseExpression, source: Source) -> int | None:
    """How many axes an array is annotated with."""
    said = axes_said(array, source) if isinstance(array, cst.Name) else None
    return len(said) if said is not None else None


def _axes_after(write: Write) -> str:
    """What puts the numbers of an axis beside those that come after it, `[:, None]`: else they lie along the last."""
    place = first_axis(write)
    behind = write.index[place + 1 :]
    if any(isinstance(part, cst.Ellipsis) for part in behind):  # nobody says how many those are
        return ""
    return f"[:{', None' * len(behind)}]" if behind else ""
