"""hlo.arithmetic: how much a program computes."""

from fusionlint.hlo import parse as hlo
from fusionlint.hlo.arithmetic import flops

REPEATED = """HloModule m

%body {
  %p = f32[8] parameter(0)
  %once = f32[8] multiply(%p, %p)
  ROOT %twice = f32[8] add(%once, %p)
}

ENTRY %e {
  %x = f32[8] parameter(0)
  %w = f32[8,4] parameter(1)
  %i = s32[8] parameter(2)
  %index = s32[8] add(%i, %i)
  %one = f32[8] fusion(%x), kind=kLoop, calls=%body
  %two = f32[8] fusion(%one), kind=kLoop, calls=%body
  ROOT %dot = f32[4] dot(%two, %w), lhs_contracting_dims={0}, rhs_contracting_dims={0}
}
"""


def test_what_fusions_repeat_counts_again_and_indices_do_not() -> None:
    assert flops(hlo.parse(REPEATED)) == 2 * 16 + 2 * 4 * 8
