"""made_again(): what a loop does anew in every turn is told from what only looks so, on HLO as XLA prints it."""

from __future__ import annotations

import pytest

from fusionlint.hlo import parse as hlo
from fusionlint.hlo.barriers import barriers

SCALE = """
%scale (s: f32[64]) -> f32[64] {
  %s = f32[64]{0} parameter(0)
  ROOT %sine = f32[64]{0} sine(%s)
}

%both (b: f32[64], c: f32[64]) -> f32[64] {
  %b = f32[64]{0} parameter(0)
  %c = f32[64]{0} parameter(1)
  ROOT %added = f32[64]{0} add(%b, %c)
}
"""
MADE = "%made = f32[64]{0} fusion(%given), kind=kLoop, calls=%scale"
USED = "%new = f32[64]{0} fusion(%made, %old), kind=kLoop, calls=%both"


def loop(*lines: str, given: str = "%given", before: str = "", calls: str = SCALE) -> hlo.Module:
    """A while of ten turns over (s32[], f32[64], f32[64]). The lines make %new of %old and %given, and the loop hands
    on `given` for the latter."""
    body = "\n".join(f"  {line}" for line in lines)
    return hlo.parse(
        f"""HloModule jit_f, is_scheduled=true
{calls}{before}
%body (p: (s32[], f32[64], f32[64])) -> (s32[], f32[64], f32[64]) {{
  %p = (s32[], f32[64]{{0}}, f32[64]{{0}}) parameter(0)
  %i = s32[] get-tuple-element(%p), index=0
  %old = f32[64]{{0}} get-tuple-element(%p), index=1
  %given = f32[64]{{0}} get-tuple-element(%p), index=2
  %one = s32[] constant(1)
  %next = s32[] add(%i, %one)
{body}
  ROOT %carry = (s32[], f32[64]{{0}}, f32[64]{{0}}) tuple(%next, %new, {given})
}}

%condition (q: (s32[], f32[64], f32[64])) -> pred[] {{
  %q = (s32[], f32[64]{{0}}, f32[64]{{0}}) parameter(0)
  %j = s32[] get-tuple-element(%q), index=0
  %ten = s32[] constant(10)
  ROOT %less = pred[] compare(%j, %ten), direction=LT
}}

ENTRY %main (x: f32[64], w: f32[64]) -> f32[64] {{
  %x = f32[64]{{0}} parameter(0)
  %w = f32[64]{{0}} parameter(1)
  %zero = s32[] constant(0)
  %start = (s32[], f32[64]{{0}}, f32[64]{{0}}) tuple(%zero, %x, %w)
  %loop = (s32[], f32[64]{{0}}, f32[64]{{0}}) while(%start), condition=%condition, body=%body
  ROOT %end = f32[64]{{0}} get-tuple-element(%loop), index=1
}}
"""
    )


def again(module: hlo.Module) -> dict[str, tuple[str, list[str]]]:
    """By value that crosses memory: the loop in whose every turn it is made, and all kernels there that are so."""
    return {
        barrier.value: (barrier.again.loop[1], [kernel.name for kernel in barrier.again.kernels])
        for barrier in barriers(module)
        if barrier.again
    }


def test_what_reads_only_what_the_loop_hands_on_unchanged_is_the_same_in_every_turn() -> None:
    assert again(loop(MADE, USED)) == {"made": ("loop", ["made"])}


def test_so_is_what_is_made_of_it_by_several_kernels_and_names() -> None:
    lines = (
        MADE,
        "%named = f32[8,8]{1,0} bitcast(%made)",
        "%product = f32[8,8]{1,0} dot(%named, %named), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
        "%flat = f32[64]{0} bitcast(%product)",
        USED.replace("%made", "%flat"),
    )
    assert again(loop(*lines)) == {name: ("loop", ["made", "product"]) for name in ("made", "product")}


@pytest.mark.parametrize("given", ["%made", "%old", "%new"])
def test_what_the_loop_replaces_is_not_however_alike(given: str) -> None:
    assert again(loop(MADE, USED, given=given)) == {}


def test_what_reads_the_count_of_turns_is_not() -> None:
    cut = (
        "%made = f32[1]{0} dynamic-slice(%given, %i), dynamic_slice_sizes={1}",
        "%spread = f32[64]{0} broadcast(%made), dimensions={0}",
        USED.replace("%made", "%spread"),
    )
    assert again(loop(*cut)) == {}


def test_what_is_made_of_constants_alone_is_the_compilers_business() -> None:
    lines = (
        "%made = f32[64]{0} iota(), iota_dimension=0",
        "%sines = f32[64]{0} fusion(%made), kind=kLoop, calls=%scale",
        USED.replace("%made", "%sines"),
    )
    assert again(loop(*lines)) == {}


@pytest.mark.parametrize(
    "made",
    [
        "%made = f32[64]{0} rng(%given, %given), distribution=rng_uniform",
        '%made = f32[64]{0} custom-call(%given), custom_call_target="xla_ffi_python_cpu_callback"',
        '%made = f32[64]{0} custom-call(%given), custom_call_target="f", custom_call_has_side_effect=true',
    ],
)
def test_what_draws_or_calls_back_is_not_the_same_though_it_is_given_the_same(made: str) -> None:
    assert again(loop(made, USED)) == {}


BRANCHES = """
%taken (t: f32[64]) -> f32[64] {
  %t = f32[64]{0} parameter(0)
  %made = f32[64]{0} fusion(%t), kind=kLoop, calls=%scale
  ROOT %twice = f32[64]{0} fusion(%made), kind=kLoop, calls=%scale
}

%not (n: f32[64]) -> f32[64] {
  ROOT %n = f32[64]{0} parameter(0)
}
"""


def test_of_a_branch_nothing_is_said_and_what_it_gives_changes_with_what_chooses() -> None:
    lines = (
        "%five = s32[] constant(5)",
        "%late = pred[] compare(%i, %five), direction=GT",
        "%chosen = f32[64]{0} conditional(%late, %given, %given), true_computation=%taken, false_computation=%not",
        "%made.2 = f32[64]{0} fusion(%chosen), kind=kLoop, calls=%scale",
        USED.replace("%made", "%made.2"),
    )
    assert again(loop(*lines, before=BRANCHES)) == {}


def inner(makes: str) -> str:
    """A loop inside, over the same, whose body makes %new.2 of %old.2 and %given.2, and what calls it."""
    return f"""
%inner (r: (s32[], f32[64], f32[64])) -> (s32[], f32[64], f32[64]) {{
  %r = (s32[], f32[64]{{0}}, f32[64]{{0}}) parameter(0)
  %i.2 = s32[] get-tuple-element(%r), index=0
  %old.2 = f32[64]{{0}} get-tuple-element(%r), index=1
  %given.2 = f32[64]{{0}} get-tuple-element(%r), index=2
  %one.2 = s32[] constant(1)
  %next.2 = s32[] add(%i.2, %one.2)
  {makes}
  %new.2 = f32[64]{{0}} fusion(%made.2, %old.2), kind=kLoop, calls=%both
  ROOT %carry.2 = (s32[], f32[64]{{0}}, f32[64]{{0}}) tuple(%next.2, %new.2, %given.2)
}}

%until (u: (s32[], f32[64], f32[64])) -> pred[] {{
  %u = (s32[], f32[64]{{0}}, f32[64]{{0}}) parameter(0)
  %k = s32[] get-tuple-element(%u), index=0
  %four = s32[] constant(4)
  ROOT %less.2 = pred[] compare(%k, %four), direction=LT
}}
"""


def around(start: str) -> tuple[str, ...]:
    """The lines of a body that runs the loop inside, which begins with `start` for what it changes and is given."""
    return (
        "%zero.2 = s32[] constant(0)",
        f"%start.2 = (s32[], f32[64]{{0}}, f32[64]{{0}}) tuple(%zero.2, {start})",
        "%loop.2 = (s32[], f32[64]{0}, f32[64]{0}) while(%start.2), condition=%until, body=%inner",
        "%new = f32[64]{0} get-tuple-element(%loop.2), index=1",
    )


INSIDE = "%made.2 = f32[64]{0} fusion(%given.2), kind=kLoop, calls=%scale"


def test_it_is_the_outermost_loop_that_changes_nothing_of_it() -> None:
    of_both = loop(*around("%old, %given"), before=inner(INSIDE))
    assert again(of_both) == {"made.2": ("loop", ["made.2"])}
    of_the_inner_alone = loop(*around("%given, %old"), before=inner(INSIDE))
    assert again(of_the_inner_alone) == {"made.2": ("loop.2", ["made.2"])}


def test_a_loop_inside_that_is_given_only_the_same_is_the_same_as_a_whole() -> None:
    changing = "%made.2 = f32[64]{0} fusion(%old.2), kind=kLoop, calls=%scale"
    lines = (*around("%given, %given")[:-1], "%made = f32[64]{0} get-tuple-element(%loop.2), index=1", USED)
    found = again(loop(*lines, before=inner(changing)))
    assert found == {name: ("loop", ["made.2", "new.2"]) for name in ("made.2", "new.2")}
