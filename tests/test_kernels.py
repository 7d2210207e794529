"""hlo.kernels, with hlo.trips and hlo.cost: what is launched, how often, and what one launch moves."""

import itertools
from pathlib import Path

import pytest

from fusionlint.hlo import parse as hlo
from fusionlint.hlo.kernels import Kernel, Loop, is_library_call, kernels, launched, loops

HLO = Path(__file__).parent / "hlo"
TEXTS = sorted(path.name for path in HLO.glob("*.txt"))


def read(name: str) -> hlo.Module:
    return hlo.parse((HLO / f"{name}.txt").read_text(encoding="utf-8"))


def module(entry: str, *computations: str) -> hlo.Module:
    """An ENTRY with these lines; each computation is its name and its lines."""
    blocks = [f"%{text}\n}}\n" for text in computations]
    return hlo.parse("HloModule m\n\n" + "\n".join([*blocks, f"ENTRY %e {{\n{entry}\n}}\n"]))


def by_name(found: tuple[Kernel, ...]) -> dict[str, Kernel]:
    return {kernel.name: kernel for kernel in found}


# Loops ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "version", ["cpu_jax0.4.38", "cpu_jax0.6.2", "cpu_jax0.10.2", "h100_jax0.10.2", "v5e_jax0.10.2"]
)
def test_trip_counts_of_nested_loops_multiply(version):
    outer, inner = loops(read(f"nested_scan_{version}"))
    assert (outer.trip_count, inner.trip_count, outer.parent, inner.parent) == (4, 3, None, outer.name)
    found = kernels(read(f"nested_scan_{version}"))
    assert {kernel.loop: kernel.launches for kernel in found} == {None: 1, outer.name: 4, inner.name: 12}
    assert not any(kernel.per_iteration for kernel in found)


@pytest.mark.parametrize(
    "version", ["cpu_jax0.4.38", "cpu_jax0.8.1", "cpu_jax0.10.2", "h100_jax0.10.2", "v5e_jax0.10.2"]
)
def test_a_loop_counts_the_launches_of_one_iteration(version):
    found = kernels(read(f"scan_{version}"))
    (loop,) = loops(read(f"scan_{version}"))
    inside = [kernel for kernel in found if kernel.loop == loop.name]
    assert loop.trip_count == 10
    assert loop.launches_per_iteration == len(inside)
    assert loop.copies_per_iteration == sum(kernel.kind == "copy" for kernel in inside)
    assert launched(found) == 10 * len(inside) + len(found) - len(inside)


def test_a_loop_that_contains_another_counts_its_launches_too():
    outer, inner = loops(read("nested_scan_h100_jax0.10.2"))
    assert (outer.launches_per_iteration, inner.launches_per_iteration) == (4 + 3 * 2, 2)


@pytest.mark.parametrize("version", ["cpu_jax0.6.2", "cpu_jax0.10.2", "h100_jax0.10.2", "v5e_jax0.10.2"])
def test_without_a_trip_count_body_and_condition_are_counted_per_iteration(version):
    (loop,) = loops(read(f"unbounded_{version}"))
    inside = [kernel for kernel in kernels(read(f"unbounded_{version}")) if kernel.loop]
    assert loop.trip_count is None
    assert loop.launches_per_iteration == len(inside)
    assert all(kernel.per_iteration and kernel.launches == 1 for kernel in inside)
    assert any("compare" in kernel.opcodes for kernel in inside)
    assert any("add" in kernel.opcodes and "multiply" in kernel.opcodes for kernel in inside)


def test_with_a_trip_count_the_condition_is_not_run():
    assert not any(kernel.opcodes == ("compare",) for kernel in kernels(read("scan_h100_jax0.10.2")))
    assert any(kernel.opcodes == ("compare",) for kernel in kernels(read("unbounded_h100_jax0.10.2")))


def test_a_loop_inside_one_of_unknown_length_starts_to_count_anew():
    body = "{\n  %t = (s32[]) parameter(0)\n  %i = s32[] get-tuple-element(%t), index=0\n  %n = s32[] negate(%i)\n"
    found = module(
        "  %c = s32[] constant(0)\n  %t = (s32[]) tuple(%c)\n  ROOT %o = (s32[]) while(%t), condition=%cond,"
        ' body=%outer, backend_config={"known_trip_count":{"n":"7"}}',
        "cond {\n  %t = (s32[]) parameter(0)\n  ROOT %r = pred[] constant(true)",
        f"inner {body}  ROOT %r = (s32[]) tuple(%n)",
        f"middle {body}  %u = (s32[]) tuple(%n)\n  ROOT %w2 = (s32[]) while(%u), condition=%cond, body=%inner,"
        ' backend_config="{\\"known_trip_count\\":{\\"n\\":\\"5\\"}}"',
        f"outer {body}  %u = (s32[]) tuple(%n)\n  ROOT %w1 = (s32[]) while(%u), condition=%cond, body=%middle",
    )
    assert [(loop.name, loop.trip_count, loop.launches_per_iteration) for loop in loops(found)] == [
        ("o", 7, 2 + 5),
        ("w1", None, 1 + 5),
        ("w2", 5, 1),
    ]
    assert [(kernel.loop, kernel.launches, kernel.per_iteration) for kernel in kernels(found)] == [
        ("o", 7, False),
        ("w1", 1, True),
        ("w2", 5, True),
    ]


def counting(start: str, compare: str, step: str) -> Loop:
    """A loop of a TPU, which notes no trip count."""
    (loop,) = loops(
        module(
            f"  %c = s32[] constant({start})\n  %k = s32[] copy(%c)\n  %x = f32[] constant(0)\n"
            "  %t = (f32[], s32[]) tuple(%x, %k)\n  ROOT %w = (f32[], s32[]) while(%t), condition=%cond, body=%body",
            f"cond {{\n  %t = (f32[], s32[]) parameter(0)\n  %n = s32[] constant(12)\n"
            f"  %i = s32[] get-tuple-element(%t), index=1\n  ROOT %r = pred[] compare({compare}",
            "inc {\n  %a = s32[] parameter(0)\n  %one = s32[] constant(1)\n  ROOT %r = s32[] add(%a, %one)",
            "body {\n  %t = (f32[], s32[]) parameter(0)\n  %x = f32[] get-tuple-element(%t), index=0\n"
            "  %i = s32[] get-tuple-element(%t), index=1\n  %j = s32[] copy(%i)\n  %two = s32[] constant(2)\n"
            "  %less = s32[] constant(-1)\n"
            f"  %s = s32[] {step}\n  ROOT %r = (f32[], s32[]) tuple(%x, %s)",
        )
    )
    return loop


@pytest.mark.parametrize(
    ("start", "compare", "step", "count"),
    [
        ("0", "%i, %n), direction=LT", "fusion(%j), kind=kLoop, calls=%inc", 12),
        ("0", "%i, %n), direction=LE", "fusion(%j), kind=kLoop, calls=%inc", 13),
        ("0", "%n, %i), direction=GT", "fusion(%i), kind=kLoop, calls=%inc", 12),
        ("0", "%i, %n), direction=LT", "add(%j, %two)", 6),
        ("-1", "%i, %n), direction=LT", "add(%two, %j)", 7),
        ("20", "%i, %n), direction=LT", "add(%two, %j)", 0),
        ("0", "%i, %n), direction=LT", "add(%j, %less)", None),
        ("0", "%i, %n), direction=NE", "add(%j, %two)", None),
        ("0", "%n, %i), direction=LT", "add(%j, %two)", None),
        ("0", "%i, %n), direction=LT", "multiply(%j, %two)", None),
        ("0", "%i, %n), direction=LT", "subtract(%j, %two)", None),
        ("0", "%i, %n), direction=LT", "add(%j, %j)", None),
        ("0", "%i, %i), direction=LT", "add(%j, %two)", None),
    ],
)
def test_a_trip_count_is_read_from_the_loop_where_xla_notes_none(start, compare, step, count):
    assert counting(start, compare, step).trip_count == count


# What counts ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name.removesuffix(".txt") for name in TEXTS])
def test_kernels_stand_outside_fusions_and_reducers(name):
    """And each is listed once: no program here calls a computation from two places."""
    found = read(name)
    inside = {
        callee
        for computation in found.computations.values()
        for item in computation.instructions.values()
        if item.opcode not in ("while", "call", "conditional")
        for callee in item.called
    }
    listed = [(kernel.computation, kernel.name) for kernel in kernels(found)]
    assert len(set(listed)) == len(listed) > 0
    assert not {computation for computation, _ in listed} & inside


@pytest.mark.parametrize("name", [name.removesuffix(".txt") for name in TEXTS])
def test_what_is_no_kernel_is_on_a_short_list(name):
    found = read(name)
    entry = found.computations[found.entry].instructions.values()
    listed = {kernel.name for kernel in kernels(found)}
    left_out = {item.opcode for item in entry if item.name not in listed}
    known = {"parameter", "constant", "tuple", "get-tuple-element", "bitcast", "while", "call", "conditional"}
    assert left_out - known <= {"after-all", "copy-done", "send-done", "recv-done", "custom-call"}


def test_allocating_a_buffer_is_no_kernel():
    found = read("scan_v5e_jax0.10.2")
    (item,) = [item for item in found.computations[found.entry].instructions.values() if item.opcode == "custom-call"]
    assert item.attributes["custom_call_target"] == '"AllocateBuffer"'
    assert item.name not in by_name(kernels(found))


def test_nothing_is_launched_for_an_array_of_no_elements():
    text = """HloModule jit_f, is_scheduled=true

ENTRY %main (x: f32[0,3], y: f32[2]) -> (f32[0,3], f32[2]) {
  %x = f32[0,3]{1,0} parameter(0)
  %y = f32[2]{0} parameter(1)
  %none = f32[0,3]{1,0} copy(%x)
  %two = f32[2]{0} copy(%y)
  ROOT %both = (f32[0,3]{1,0}, f32[2]{0}) tuple(%none, %two)
}
"""
    assert [kernel.name for kernel in kernels(hlo.parse(text))] == ["two"]


def test_an_asynchronous_pair_counts_once_at_its_start():
    found = by_name(kernels(read("scan_v5e_jax0.10.2")))
    assert found["copy-start"].kind == "copy"
    assert found["copy-start"].opcodes == ("copy",)
    assert not any(name.startswith("copy-done") for name in found)


def test_an_asynchronous_computation_counts_as_what_it_runs():
    found = module(
        "  %p = f32[64]{0} parameter(0)\n"
        "  %s = ((f32[64]{0}), f32[8]{0}, u32[]) slice-start(%p), slice={[0:8]}, calls=%sliced\n"
        "  %u = ((f32[64]{0}), f32[8]{0}, u32[]) slice-update(%s)\n  %d = f32[8]{0} slice-done(%u)\n"
        "  %q = ((f32[64]{0}), f32[64]{0}, u32[]) call-start(%p), calls=%calling\n"
        "  %r = f32[64]{0} call-done(%q)\n"
        "  ROOT %t = (f32[8]{0}, f32[64]{0}) tuple(%d, %r)",
        "sliced {\n  %a = f32[64]{0} parameter(0)\n  ROOT %b = f32[8]{0} slice(%a), slice={[0:8]}",
        "two {\n  %a = f32[64]{0} parameter(0)\n  %b = f32[64]{0} negate(%a)\n  ROOT %c = f32[64]{0} sine(%b)",
        "calling {\n  %a = f32[64]{0} parameter(0)\n  ROOT %b = f32[64]{0} call(%a), to_apply=%two",
    )
    assert [(k.computation, k.name, k.kind, k.bytes_read, k.bytes_written) for k in kernels(found)] == [
        ("e", "s", "slice", 32, 32),
        ("two", "b", "negate", 256, 256),
        ("two", "c", "sine", 256, 256),
    ]


def test_scalar_operations_of_a_tpu_count():
    kinds = [kernel.kind for kernel in kernels(read("scan_v5e_jax0.10.2"))]
    assert "add" in kinds
    assert "dynamic-update-slice" in kinds


@pytest.mark.parametrize(
    ("program", "target", "opcodes"),
    [
        ("linear_algebra", "lapack_spotrf_ffi", "custom-call"),
        ("linear_algebra", "lapack_sgetrf_ffi", "custom-call"),
        ("linear_algebra", "lapack_strsm_ffi", "custom-call"),
        ("ordering", "TopK", "custom-call"),
        ("ordering", "", "sort"),
        ("spectrum", "", "fft"),
        ("layers", "", "convolution"),
    ],
)
def test_library_calls_are_told_from_other_kernels(program, target, opcodes):
    found = read(f"{program}_cpu_jax0.10.2")
    kinds = set()
    for kernel in kernels(found):
        item = found.computations[kernel.computation].instructions[kernel.name]
        if item.opcode == opcodes and target in item.attributes.get("custom_call_target", ""):
            kinds.add(kernel.kind)
            assert is_library_call(item)
    assert kinds == {"library call"}


def test_a_fusion_that_a_library_runs_is_a_library_call():
    found = by_name(kernels(read("layers_cpu_jax0.10.2")))
    assert (found["ynn_fusion"].kind, found["ynn_fusion"].opcodes) == ("library call", ("dot",))
    assert by_name(kernels(read("layers_h100_jax0.10.2")))["gemm_fusion_dot_general.1"].kind == "custom"


@pytest.mark.parametrize("version", ["0.4.38", "0.10.2"])
def test_a_callback_is_a_custom_call_but_no_library_call(version):
    (kernel,) = [k for k in kernels(read(f"talkative_cpu_jax{version}")) if k.opcodes == ("custom-call",)]
    assert kernel.kind == "custom call"


@pytest.mark.parametrize(
    "target", ["__cublas$gemm", "__cudnn$convForward", "__onednn$matmul", "cusolver_potrf_ffi", "__gpu$TopK"]
)
def test_targets_of_gpu_libraries_are_known(target):
    found = module(f'  ROOT %c = f32[] custom-call(), custom_call_target="{target}"')
    assert [kernel.kind for kernel in kernels(found)] == ["library call"]


def test_collectives_are_named_so():
    found = module(
        "  %p = f32[8]{0} parameter(0)\n  %a = f32[8]{0} all-reduce(%p), to_apply=%add\n"
        "  %s = (f32[8]{0}, f32[16]{0}) all-gather-start(%a), dimensions={0}\n"
        "  ROOT %d = f32[16]{0} all-gather-done(%s)",
        "add {\n  %x = f32[] parameter(0)\n  %y = f32[] parameter(1)\n  ROOT %z = f32[] add(%x, %y)",
    )
    assert [(k.kind, k.opcodes, k.bytes_read, k.bytes_written) for k in kernels(found)] == [
        ("collective", ("all-reduce",), 32, 32),
        ("collective", ("all-gather",), 32, 64),
    ]


def test_a_fusion_has_xlas_kind_and_the_distinct_work_inside():
    kernel = by_name(kernels(read("scan_h100_jax0.10.2")))
    assert {name: (found.kind, found.opcodes) for name, found in kernel.items() if found.loop} == {
        "input_add_reduce_fusion": ("input", ("sine", "broadcast", "add", "reduce")),
        "loop_dynamic_update_slice_fusion": ("custom", ("copy", "dynamic-update-slice")),
        "loop_add_fusion": ("loop", ("add",)),
    }


def test_a_fusion_that_only_copies_is_a_copy():
    found = module(
        "  %p = f32[4,2]{1,0} parameter(0)\n  %a = f32[4,2]{0,1} fusion(%p), kind=kLoop, calls=%copying\n"
        "  ROOT %b = f32[8]{0} fusion(%a), kind=kLoop, calls=%renaming",
        "copying {\n  %x = f32[4,2]{1,0} parameter(0)\n  ROOT %y = f32[4,2]{0,1} copy(%x)",
        "renaming {\n  %x = f32[4,2]{0,1} parameter(0)\n  ROOT %y = f32[8]{0} bitcast(%x)",
    )
    assert [(kernel.kind, kernel.opcodes) for kernel in kernels(found)] == [("copy", ("copy",))] * 2


# Branches -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", ["cpu_jax0.6.2", "cpu_jax0.10.2", "h100_jax0.10.2"])
def test_every_branch_is_listed_and_only_the_busiest_is_launched(version):
    found = kernels(read(f"branches_{version}"))
    sizes = [sum(kernel.branches[:1] == ((name, number),) for kernel in found) for name, number in branches_of(found)]
    assert len(sizes) == 3
    assert min(sizes) >= 1
    assert launched(found) == len(found) - sum(sizes) + max(sizes)


def branches_of(found: tuple[Kernel, ...]) -> list[tuple[str, int]]:
    return sorted({kernel.branches[0] for kernel in found if kernel.branches})


def test_branches_inside_branches_and_loops_are_weighed_by_their_launches():
    found = module(
        "  %p = s32[] parameter(0)\n  %t = (s32[]) tuple(%p)\n"
        "  %c = (s32[]) conditional(%p, %t, %t), branch_computations={%three, %looped}\n"
        '  ROOT %w = (s32[]) while(%c), condition=%cond, body=%chosen, backend_config={"known_trip_count":{"n":"2"}}',
        "cond {\n  %t = (s32[]) parameter(0)\n  ROOT %r = pred[] constant(true)",
        "three {\n  %t = (s32[]) parameter(0)\n  %i = s32[] get-tuple-element(%t), index=0\n  %a = s32[] negate(%i)\n"
        "  %b = s32[] negate(%a)\n  %c = s32[] negate(%b)\n  ROOT %r = (s32[]) tuple(%c)",
        "one {\n  %t = (s32[]) parameter(0)\n  %i = s32[] get-tuple-element(%t), index=0\n  %a = s32[] negate(%i)\n"
        "  ROOT %r = (s32[]) tuple(%a)",
        "looped {\n  %t = (s32[]) parameter(0)\n"
        '  ROOT %w = (s32[]) while(%t), condition=%cond, body=%one, backend_config={"known_trip_count":{"n":"5"}}',
        "chosen {\n  %t = (s32[]) parameter(0)\n  %i = s32[] get-tuple-element(%t), index=0\n"
        "  ROOT %d = (s32[]) conditional(%i, %t, %t), true_computation=%three, false_computation=%one",
    )
    listed = kernels(found)
    assert [kernel.branches for kernel in listed] == [(("c", 0),)] * 3 + [(("c", 1),)] + [(("d", 0),)] * 3 + [
        (("d", 1),)
    ]
    assert [kernel.launches for kernel in listed] == [1, 1, 1, 5, 2, 2, 2, 2]
    assert launched(listed) == 5 + 2 * 3
    assert {loop.trip_count: loop.launches_per_iteration for loop in loops(found)} == {5: 1, 2: 3}


# Bytes ----------------------------------------------------------------------------------------------------------------


def moved(entry: str, *computations: str) -> tuple[int, int]:
    """Bytes of the last kernel."""
    kernel = kernels(module(entry, *computations))[-1]
    return kernel.bytes_read, kernel.bytes_written


GIVEN = "  %x = f32[64]{0} parameter(0)\n  %i = s32[] parameter(1)\n  %u = f32[4]{0} parameter(2)\n"
INNER = GIVEN.replace("%", "%f")


def test_an_operand_used_twice_is_read_once():
    assert moved(GIVEN + "  ROOT %r = f32[64]{0} add(%x, %x)") == (256, 256)


def test_an_operand_that_is_only_sliced_is_read_in_part():
    assert moved(GIVEN + "  ROOT %r = f32[4]{0} dynamic-slice(%x, %i), dynamic_slice_sizes={4}") == (16 + 4, 16)


def test_a_fusion_reads_the_slices_of_what_it_only_slices():
    fused = INNER + (
        "  %b = f32[8,8]{1,0} bitcast(%fx)\n  %s = f32[1,8]{1,0} slice(%b), slice={[0:1], [0:8]}\n"
        "  %d = f32[1,8]{1,0} dynamic-slice(%b, %fi, %fi), dynamic_slice_sizes={1,8}\n"
        "  ROOT %r = f32[1,8]{1,0} add(%s, %d)"
    )
    call = GIVEN + "  ROOT %r = f32[1,8]{1,0} fusion(%x, %i, %u), kind=kLoop, calls=%f"
    assert moved(call, "f {\n" + fused) == (32 + 32 + 4 + 0, 32)


def test_a_fusion_reads_all_of_what_it_also_uses_whole():
    fused = INNER + (
        "  %s = f32[1]{0} slice(%fx), slice={[0:1]}\n  %b = f32[64]{0} broadcast(%s), dimensions={0}\n"
        "  ROOT %r = f32[64]{0} add(%fx, %b)"
    )
    call = GIVEN + "  ROOT %r = f32[64]{0} fusion(%x, %i, %u), kind=kLoop, calls=%f"
    assert moved(call, "f {\n" + fused) == (256, 256)


def test_an_update_in_place_moves_the_update_alone():
    assert moved(GIVEN + "  ROOT %r = f32[64]{0} dynamic-update-slice(%x, %u, %i)") == (16 + 4, 16)
    made = GIVEN + "  %n = f32[64]{0} negate(%x)\n"
    assert moved(made + "  ROOT %r = f32[64]{0} dynamic-update-slice(%n, %u, %i)") == (16 + 4, 16)


def test_a_fusion_whose_results_are_updates_in_place_writes_the_updates():
    fused = INNER + (
        "  %b = f32[64]{0} bitcast(%fx)\n  %n = f32[4]{0} negate(%fu)\n"
        "  %d = f32[64]{0} dynamic-update-slice(%b, %n, %fi)\n"
        "  %c = f32[64]{0} bitcast(%d)\n  ROOT %r = (f32[64]{0}, f32[4]{0}) tuple(%c, %n)"
    )
    call = GIVEN + "  ROOT %r = (f32[64]{0}, f32[4]{0}) fusion(%x, %i, %u), kind=kLoop, calls=%f"
    assert moved(call, "f {\n" + fused) == (16 + 4, 16 + 16)


def test_an_update_that_something_else_is_made_of_reads_what_stands_in_the_buffer():
    """A write that fuses with the sum behind it was said to move 104 of 1124 bytes."""
    body = (
        "f (fx: f32[64], fu: f32[4], fi: s32[]) -> f32[64] {\n  %fx = f32[64]{0} parameter(0)\n"
        "  %fu = f32[4]{0} parameter(1)\n  %fi = s32[] parameter(2)\n"
        "  %d = f32[64]{0} dynamic-update-slice(%fx, %fu, %fi)\n"
    )
    call = GIVEN + "  ROOT %r = f32[64]{0} fusion(%x, %u, %i), kind=kLoop, calls=%f"
    assert moved(call, body + "  ROOT %b = f32[64]{0} bitcast(%d)") == (16 + 4, 16)
    assert moved(call, body + "  ROOT %n = f32[64]{0} negate(%d)") == (256 + 16 + 4, 256)
    again = "  ROOT %again = f32[64]{0} dynamic-update-slice(%d, %fu, %fi)"
    assert moved(call, body + again)[0] == 16 + 4
    names = ["d", *(f"d.{i}" for i in range(2000))]
    many = "".join(
        f"  %{one} = f32[64]{{0}} dynamic-update-slice(%{before}, %fu, %fi)\n"
        for before, one in itertools.pairwise(names)
    )
    last = f"  ROOT %last = f32[64]{{0}} dynamic-update-slice(%{names[-1]}, %fu, %fi)"
    assert moved(call, body + many + last)[0] == 16 + 4


def test_an_update_of_a_buffer_that_the_fusion_fills_itself_writes_all_of_it():
    fused = INNER + (
        "  %z = f32[] constant(0)\n  %b = f32[64]{0} broadcast(%z), dimensions={}\n"
        "  ROOT %r = f32[64]{0} dynamic-update-slice(%b, %fu, %fi)"
    )
    call = GIVEN + "  ROOT %r = f32[64]{0} fusion(%x, %i, %u), kind=kLoop, calls=%f"
    assert moved(call, "f {\n" + fused) == (16 + 4, 256)


def test_a_scatter_moves_its_indices_and_its_updates():
    lines = "  %n = s32[2,1]{1,0} parameter(3)\n  %v = f32[2]{0} parameter(4)\n"
    scatter = "  ROOT %r = f32[64]{0} scatter(%x, %n, %v), to_apply=%add"
    add = "add {\n  %a = f32[] parameter(0)\n  %b = f32[] parameter(1)\n  ROOT %c = f32[] add(%a, %b)"
    assert moved(GIVEN + lines + scatter, add) == (8 + 8, 8)


@pytest.mark.parametrize(
    ("printed", "read_and_written"),
    [
        ("(f32[64]{0:S(1)}, f32[64]{0}, u32[]) copy-start(%x)", (256, 256)),
        ("(f32[4]{0}, u32[], token[]) send(%u, %k), channel_id=1", (16, 16)),
        ("(f32[4]{0}, u32[], token[]) recv(%k), channel_id=1", (0, 16)),
    ],
)
def test_an_asynchronous_start_writes_the_value_and_not_its_context(printed, read_and_written):
    assert moved(GIVEN + "  %k = token[] after-all()\n  ROOT %r = " + printed) == read_and_written


def test_a_softmax_in_one_kernel_reads_and_writes_its_array_once():
    (kernel,) = kernels(read("softmax_h100_jax0.10.2"))
    assert (kernel.bytes_read, kernel.bytes_written) == (64 * 128 * 4, 64 * 128 * 4)
