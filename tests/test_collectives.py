"""Who exchanges values with whom, in every form in which XLA writes it, and along which axes of a mesh that is."""

from __future__ import annotations

from itertools import permutations, product
from math import prod

import numpy as np
import pytest

from fusionlint.hlo import parse as hlo
from fusionlint.hlo.barriers import barriers
from fusionlint.hlo.collectives import collective, mesh_of, partners
from fusionlint.hlo.exchanges import told
from fusionlint.hlo.kernels import kernels
from fusionlint.hlo.parse import Module

SUM = """
%sum (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %add = f32[] add(%a, %b)
}
"""


def program(*lines: str, devices: int = 8, before: str = "") -> Module:
    *inner, root = lines
    body = "\n".join(f"  {line}" for line in inner)
    return hlo.parse(
        f"HloModule jit_f, is_scheduled=true, num_partitions={devices}\n{before}\nENTRY %main (x: f32[64]) -> f32[64] "
        f"{{\n  %x = f32[64]{{0}} parameter(0)\n{body}\n  ROOT {root}\n}}\n"
    )


def sent(said: str, opcode: str = "all-reduce") -> hlo.Instruction:
    """A collective whose attributes are `said`."""
    module = program(f"%y = f32[64]{{0}} {opcode}(%x), channel_id=1, {said}, to_apply=%sum", before=SUM)
    return module.computations["main"].instructions["y"]


@pytest.mark.parametrize(
    ("said", "group"),
    [
        ("replica_groups={{0,1},{2,3},{4,5},{6,7}}", {0, 1}),
        ("replica_groups={{1,2,3},{0,4,5}}", {0, 4, 5}),
        ("replica_groups={}", set(range(8))),
        ("replica_groups=[1,8]<=[8]", set(range(8))),
        ("replica_groups=[4,2]<=[8]", {0, 1}),
        ("replica_groups=[2,4]<=[4,2]T(1,0)", {0, 2, 4, 6}),
        ("replica_groups=mesh['axis_0'=2,'axis_1'=4] {'axis_1'}", {0, 1, 2, 3}),
        ("replica_groups=mesh['axis_0'=2,'axis_1'=4] {'axis_0'}", {0, 4}),
        ("replica_groups=mesh['axis_0'=4,'axis_1'=2], device_ids=([2,4]T(1,0)) {'axis_0'}", {0, 1, 2, 3}),
        ("replica_groups=mesh['axis_0'=4,'axis_1'=2], device_ids=([2,4]T(1,0)) {'axis_1'}", {0, 4}),
    ],
)
def test_the_partners_of_the_first_device_are_read_off_every_form(said: str, group: set[int]) -> None:
    assert partners(sent(said), 8) == group


@pytest.mark.parametrize("sizes", [(8,), (2, 4), (4, 2), (2, 2, 2), (1, 3, 2), (2, 3, 2, 2)])
def test_groups_in_another_order_are_those_that_numpy_makes(sizes: tuple[int, ...]) -> None:
    for order, cut in product(permutations(range(len(sizes))), range(len(sizes) + 1)):
        numbers = np.arange(prod(sizes)).reshape(sizes).transpose(order)
        groups = numbers.reshape(prod(numbers.shape[:cut]), -1)
        shape, dims, axes = (",".join(map(str, one)) for one in (groups.shape, sizes, order))
        said = f"replica_groups=[{shape}]<=[{dims}]T({axes})"
        assert partners(sent(said), prod(sizes)) == {*map(int, groups[0])}


@pytest.mark.parametrize(
    ("opcode", "name"),
    [
        ("all-reduce", "all-reduce"),
        ("all-reduce-start", "all-reduce"),
        ("reduce-scatter", "reduce-scatter"),
        ("ragged-all-to-all", "ragged-all-to-all"),
        ("collective-permute-start", "collective-permute"),
        ("all-reduce-done", ""),
        ("reduce", ""),
        ("gather", ""),
    ],
)
def test_collectives_are_told_from_what_is_called_alike(opcode: str, name: str) -> None:
    assert collective(sent("replica_groups={}", opcode)) == name


def test_the_axes_of_a_mesh_are_known_where_one_mesh_has_all_devices() -> None:
    two = 'sdy.mesh @mesh = <["data"=2, "model"=4]>\n'
    assert mesh_of(two, 8) == {"data": 2, "model": 4}
    assert mesh_of(two, 4) == {}
    assert mesh_of('sdy.mesh @m = <["a"=8], device_ids=[1, 0, 2, 3, 4, 5, 6, 7]>', 8) == {}
    assert mesh_of(two + 'sdy.mesh @other = <["x"=8]>\n', 8) == {}
    assert mesh_of("module @jit_f {}", 8) == {}


JOINED = """
%join (a: f32[32], b: f32[32]) -> f32[64] {
  %a = f32[32]{0} parameter(0)
  %b = f32[32]{0} parameter(1)
  ROOT %both = f32[64]{0} concatenate(%a, %b), dimensions={0}
}
%cut (p: f32[64]) -> f32[32] {
  %p = f32[64]{0} parameter(0)
  ROOT %part = f32[32]{0} slice(%p), slice={[0:32]}
}
"""


def test_what_xla_sends_for_a_primitive_names_it_and_what_the_program_asks_for_does_not() -> None:
    def said(op_name: str) -> str:
        metadata = f'metadata={{op_name="jit(f)/{op_name}"}}'
        line = f"%y = f32[64]{{0}} all-reduce(%x), replica_groups={{}}, to_apply=%sum, {metadata}"
        (found,) = details(line, END).values()
        return found[1]

    assert said("jvp()/dot_general") == "all-reduce for dot_general"
    assert said("shard_map/psum_invariant") == said("shard_map/psum") == "all-reduce"


def test_every_collective_says_what_it_does_and_a_split_what_to_write() -> None:
    names = ("all-reduce", "all-gather", "reduce-scatter", "all-to-all", "ragged-all-to-all", "collective-permute")
    for name in names:
        (line,) = told(f"{name} over data for dot_general")
        assert line.startswith(f"{name}: each device ")
    _, instead = told("collective-permute for split")
    assert instead.startswith("     instead: give parts of one size an axis of their own")
    assert [*told("joined with others for one all-reduce")] == []


END = '%end = f32[64]{0} custom-call(%y), custom_call_target="end"'
LINES = (
    '%one = f32[32]{0} custom-call(%x), custom_call_target="one"',
    '%two = f32[32]{0} custom-call(%x), custom_call_target="two"',
    "%all = f32[64]{0} fusion(%one, %two), kind=kLoop, calls=%join",
    "%sent = f32[64]{0} all-reduce-start(%all), replica_groups=[4,2]<=[8], to_apply=%sum",
    "%back = f32[64]{0} all-reduce-done(%sent)",
    "%part = f32[32]{0} fusion(%back), kind=kLoop, calls=%cut",
    '%end = f32[64]{0} custom-call(%part), custom_call_target="end"',
)


def details(*lines: str, before: str = "") -> dict[str, tuple[str, str]]:
    found = barriers(program(*lines, before=SUM + before))
    return {one.writer: (one.cause, one.detail) for one in found}


def test_what_xla_joins_for_one_collective_and_cuts_out_of_it_is_said_so() -> None:
    found = details(*LINES, before=JOINED)
    assert found["one"] == found["two"] == ("collective", "joined with others for one all-reduce")
    assert found["all"] == found["sent"] == ("collective", "all-reduce among 2 of 8")
    assert found["part"] == ("collective", "cut out of one all-reduce")


def test_what_the_program_joins_itself_is_a_concatenate() -> None:
    own = JOINED.replace("dimensions={0}", 'dimensions={0}, metadata={op_name="jit(f)/concatenate"}')
    assert details(*LINES, before=own)["one"][0] == "custom call"
    work = JOINED.replace(
        "ROOT %part = f32[32]{0} slice(%p), slice={[0:32]}",
        "%s = f32[32]{0} slice(%p), slice={[0:32]}\n  ROOT %part = f32[32]{0} negate(%s)",
    )
    assert details(*LINES, before=work)["part"][0] == "custom call"


def test_an_all_reduce_moves_its_value_and_not_what_it_adds_by() -> None:
    """On a GPU it is a start that names the sum of two numbers: 12 bytes were said of any array."""
    (kernel,) = (one for one in kernels(program(*LINES, before=SUM + JOINED)) if one.kind == "collective")
    assert (kernel.bytes_read, kernel.bytes_written) == (64 * 4, 64 * 4)


def test_a_value_sent_in_another_loop_than_it_is_made_in_is_no_exchange_there() -> None:
    """Names are those of a computation: %sent of one is not %sent of another."""
    found = details(
        '%made = f32[64]{0} custom-call(%x), custom_call_target="one"',
        '%y = f32[64]{0} custom-call(%made), custom_call_target="two"',
    )
    assert found["made"] == ("custom call", "one")
