"""barriers(): every cause is told from its lookalikes, on HLO in the form in which XLA prints it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

import pytest

from fusionlint.hlo import parse as hlo
from fusionlint.hlo.barriers import Barrier, barriers
from fusionlint.hlo.kernels import kernels
from fusionlint.hlo.lost import lost
from fusionlint.hlo.verdicts import Verdict

SUM = """
%sum (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %add = f32[] add(%a, %b)
}
"""


def program(*lines: str, before: str = "") -> hlo.Module:
    """A module whose ENTRY has the parameter %x = f32[64] and these lines, the last one its root."""
    *inner, root = lines
    body = "\n".join(f"  {line}" for line in inner)
    return hlo.parse(
        f"HloModule jit_f, is_scheduled=true\n{before}\nENTRY %main (x: f32[64]) -> f32[64] {{\n"
        f"  %x = f32[64]{{0}} parameter(0)\n{body}\n  ROOT {root}\n}}\n"
    )


def fused(name: str, *lines: str) -> str:
    """A fusion body with the parameter %{name}.p = f32[64]."""
    *inner, root = lines
    body = "\n".join(f"  {line}" for line in inner)
    return (
        f"\n%{name} ({name}.p: f32[64]) -> f32[64] {{\n  %{name}.p = f32[64]{{0}} parameter(0)\n"
        f"{body}\n  ROOT {root}\n}}\n"
    )


def loop(
    *lines: str,
    known: bool = True,
    start: str = "%x",
    first: str = "",
    last: str = "",
    called: str = "",
    before: str = "",
) -> hlo.Module:
    """A while of ten iterations over (s32[], f32[64]) that begins with `start`; the lines make %new, the next f32[64],
    of %old and %i. With `known` false nobody knows how many iterations.
    `first` stands before the loop, which is `called` that, at line 7; `last` after it makes the result of %end;
    `before` are other computations."""
    at = f', metadata={{op_name="jit(f)/vmap()/{called}" source_file="f.py" source_line=7}}' if called else ""
    body = "\n".join(f"  {line}" for line in lines)
    return program(
        *([first] if first else []),
        "%zero = s32[] constant(0)",
        f"%start = (s32[], f32[64]{{0}}) tuple(%zero, {start})",
        f"%loop = (s32[], f32[64]{{0}}) while(%start), condition=%condition, body=%body{at}",
        "%end = f32[64]{0} get-tuple-element(%loop), index=1",
        *([last] if last else []),
        before=f"""{before}
%body (p: (s32[], f32[64])) -> (s32[], f32[64]) {{
  %p = (s32[], f32[64]{{0}}) parameter(0)
  %i = s32[] get-tuple-element(%p), index=0
  %old = f32[64]{{0}} get-tuple-element(%p), index=1
  %one = s32[] constant(1)
  %next = s32[] add(%i, %one)
{body}
  ROOT %carry = (s32[], f32[64]{{0}}) tuple(%next, %new)
}}

%condition (q: (s32[], f32[64])) -> pred[] {{
  %q = (s32[], f32[64]{{0}}) parameter(0)
  %j = s32[] get-tuple-element(%q), index=0
  %ten = s32[] {"constant(10)" if known else "bitcast(%j)"}
  ROOT %less = pred[] compare(%j, %ten), direction=LT
}}
""",
    )


def by_value(module: hlo.Module, verdicts: dict[str, Verdict] | None = None) -> dict[str, Barrier]:
    return {barrier.value: barrier for barrier in barriers(module, verdicts)}


def test_inputs_read_and_results_returned_are_no_barriers() -> None:
    assert barriers(program("%y = f32[64]{0} sine(%x)")) == ()


def test_a_value_between_two_kernels_is_one_barrier_with_bytes_writer_and_readers() -> None:
    module = program("%y = f32[64]{0} sine(%x)", "%z = f32[64]{0} cosine(%y)")
    (barrier,) = barriers(module)
    assert (barrier.value, barrier.writer, barrier.readers) == ("y", "y", ("z",))
    assert (barrier.bytes, barrier.crossings, barrier.launches) == (256, 1, 1)
    assert (barrier.cause, barrier.opcodes) == ("unknown", ("sine",))


def test_bitcasts_tuples_and_calls_are_seen_through() -> None:
    module = program(
        "%y = f32[64]{0} sine(%x)",
        "%pair = (f32[64]{0}, f32[64]{0}) tuple(%x, %y)",
        "%called = f32[8,8]{1,0} call(%pair), to_apply=%callee",
        "%z = f32[8,8]{1,0} cosine(%called)",
        before="""
%callee (c: (f32[64], f32[64])) -> f32[8,8] {
  %c = (f32[64]{0}, f32[64]{0}) parameter(0)
  %second = f32[64]{0} get-tuple-element(%c), index=1
  ROOT %bits = f32[8,8]{1,0} bitcast(%second)
}
""",
    )
    (barrier,) = barriers(module)
    assert (barrier.writer, barrier.readers) == ("y", ("z",))


def test_the_elements_of_one_kernels_result_are_told_apart() -> None:
    module = program(
        "%both = (f32[64]{0}, f32[64]{0}) fusion(%x), kind=kLoop, calls=%body",
        "%first = f32[64]{0} get-tuple-element(%both), index=0",
        "%second = f32[64]{0} get-tuple-element(%both), index=1",
        "%z = f32[64]{0} cosine(%second)",
        "%all = (f32[64]{0}, f32[64]{0}) tuple(%first, %z)",
        before=fused(
            "body",
            "%s = f32[64]{0} sine(%body.p)",
            "%e = f32[64]{0} exponential(%body.p)",
            "%t = (f32[64]{0}, f32[64]{0}) tuple(%s, %e)",
        ),
    )
    (barrier,) = barriers(module)
    assert (barrier.value, barrier.writer, barrier.opcodes) == ("second", "both", ("exponential",))


def test_returned_and_consumed() -> None:
    module = program(
        "%y = f32[64]{0} sine(%x)", "%z = f32[64]{0} cosine(%y)", "%r = (f32[64]{0}, f32[64]{0}) tuple(%y, %z)"
    )
    assert by_value(module)["y"].cause == "returned and consumed"


def test_the_last_value_of_a_loops_carry_is_not_returned_and_consumed() -> None:
    module = loop("%new = f32[64]{0} sine(%old)")
    assert by_value(module)["new"].cause == "loop carry"


@pytest.mark.parametrize(
    ("target", "cause", "detail"),
    [
        ("my_kernel", "custom call", "my_kernel"),
        ("lapack_spotrf_ffi", "library call", "lapack_spotrf_ffi"),
        ("cusolver_potrf_ffi", "library call", "cusolver_potrf_ffi"),
        ("__cublas$gemm", "library call", "__cublas$gemm"),
        ("xla_ffi_python_cpu_callback", "callback", "pure_callback"),
    ],
)
def test_custom_calls_are_told_apart_by_their_target(target: str, cause: str, detail: str) -> None:
    call = (
        f'%y = f32[64]{{0}} custom-call(%s), custom_call_target="{target}", api_version=API_VERSION_TYPED_FFI, '
        'metadata={op_name="jit(f)/pure_callback"}'
    )
    found = by_value(program("%s = f32[64]{0} sine(%x)", call, "%z = f32[64]{0} cosine(%y)"))
    assert {(found[name].cause, found[name].detail) for name in ("s", "y")} == {(cause, detail)}


def test_a_custom_call_that_xla_made_of_a_primitive_is_not_taken_for_the_users() -> None:
    call = (
        '%y = f32[64]{0} custom-call(%s), custom_call_target="GatherScatterIndicesBitpacked", '
        'metadata={op_name="jit(f)/vmap()/gather"}'
    )
    found = by_value(program("%s = f32[64]{0} sine(%x)", call, "%z = f32[64]{0} cosine(%y)"))
    assert {(found[name].cause, found[name].detail) for name in ("s", "y")} == {("custom call", "XLA's own for gather")}


@pytest.mark.parametrize(
    ("primitive", "detail"),
    [
        ("dot_general", "XLA's own for dot_general"),
        ("ragged_dot_general/ragged-dot-none", "XLA's own for ragged_dot"),
        ("pallas_call", "tpu_custom_call"),
        ("", "tpu_custom_call"),
    ],
)
def test_a_kernel_that_xla_writes_for_a_tpu_is_not_taken_for_somebodys(primitive: str, detail: str) -> None:
    call = (
        '%y = f32[64]{0} custom-call(%s), custom_call_target="tpu_custom_call", '
        f'metadata={{op_name="jit(f)/{primitive}"}}'
    )
    found = by_value(program("%s = f32[64]{0} sine(%x)", call, "%z = f32[64]{0} cosine(%y)"))
    assert {found[name].detail for name in ("s", "y")} == {detail}


@pytest.mark.parametrize(
    ("line", "detail"),
    [
        ("%y = f32[64]{0} sort(%s), dimensions={0}, to_apply=%less", "sort"),
        ("%y = f32[64]{0} fft(%s), fft_type=FFT, fft_length={64}", "fft"),
        ("%y = f32[64]{0} dot(%s, %x), lhs_contracting_dims={}, rhs_contracting_dims={}", "dot"),
        (
            '%y = f32[64]{0} convolution(%s, %x), dim_labels=bf_io->bf, metadata={op_name="jit(f)/dot_general"}',
            "dot",
        ),
    ],
)
def test_library_calls_name_the_library(line: str, detail: str) -> None:
    less = SUM.replace("%sum", "%less")
    found = by_value(program("%s = f32[64]{0} sine(%x)", line, "%z = f32[64]{0} cosine(%y)", before=less))
    assert {(found[name].cause, found[name].detail) for name in ("s", "y")} == {("library call", detail)}


@pytest.mark.parametrize("kind", ["kLoop", "kCustom"])
@pytest.mark.parametrize(("opcode", "detail"), [("dot", ""), ("convolution", "convolution")])
def test_a_dot_in_a_kernel_of_xlas_own_is_no_library_call(kind: str, opcode: str, detail: str) -> None:
    body = fused("body", f"%d = f32[64]{{0}} {opcode}(%body.p, %body.p)")
    lines = ("%s = f32[64]{0} sine(%x)", f"%y = f32[64]{{0}} fusion(%s), kind={kind}, calls=%body")
    found = by_value(program(*lines, "%z = f32[64]{0} cosine(%y)", before=body))
    assert {(found[name].cause, found[name].detail) for name in ("s", "y")} == {("dot", detail)}


def test_a_fourier_transform_that_xla_makes_products_of_is_told() -> None:
    body = fused("body", '%d = f32[64]{0} convolution(%body.p, %body.p), metadata={op_name="jit(f)/jit(fft)"}')
    lines = ("%s = f32[64]{0} sine(%x)", "%y = f32[64]{0} fusion(%s), kind=kOutput, calls=%body")
    found = by_value(program(*lines, "%z = f32[64]{0} cosine(%y)", before=body))
    assert {(found[name].cause, found[name].detail) for name in ("s", "y")} == {("dot", "an FFT as matrix products")}


def test_a_dot_of_xlas_own_beside_a_library_call_is_told_by_the_call() -> None:
    body = fused("body", "%d = f32[64]{0} dot(%body.p, %body.p)")
    lines = ("%s = f32[64]{0} sine(%x)", "%y = f32[64]{0} fusion(%s), kind=kLoop, calls=%body")
    found = by_value(program(*lines, "%z = f32[64]{0} fft(%y), fft_type=FFT, fft_length={64}", before=body))
    assert [(found[name].cause, found[name].detail) for name in ("s", "y")] == [("dot", ""), ("library call", "fft")]


def test_a_concatenate_is_blamed_where_the_value_is_what_it_joined() -> None:
    body = fused(
        "body",
        "%half = f32[32]{0} slice(%body.p), slice={[0:32]}",
        "%joined = f32[64]{0} concatenate(%half, %half), dimensions={0}",
        "%s = f32[64]{0} sine(%joined)",
    )
    module = program("%y = f32[64]{0} fusion(%x), kind=kLoop, calls=%body", "%z = f32[64]{0} cosine(%y)", before=body)
    assert by_value(module)["y"].cause == "concatenate"


def test_a_small_concatenate_inside_the_writer_is_not_blamed() -> None:
    body = fused(
        "body",
        "%one = f32[1]{0} slice(%body.p), slice={[0:1]}",
        "%two = f32[2]{0} concatenate(%one, %one), dimensions={0}",
        "%start = s32[] constant(0)",
        "%piece = f32[1]{0} dynamic-slice(%two, %start), dynamic_slice_sizes={1}",
        "%scalar = f32[] bitcast(%piece)",
        "%wide = f32[64]{0} broadcast(%scalar), dimensions={}",
        "%s = f32[64]{0} add(%body.p, %wide)",
    )
    module = program("%y = f32[64]{0} fusion(%x), kind=kLoop, calls=%body", "%z = f32[64]{0} cosine(%y)", before=body)
    assert by_value(module)["y"].cause == "unknown"


def test_a_concatenate_written_as_pads_on_a_tpu_is_blamed() -> None:
    pad = '%y = f32[64]{0} pad(%h, %zero), padding=0_32, metadata={op_name="jit(f)/concatenate"}'
    module = program(
        "%zero = f32[] constant(0)", "%h = f32[32]{0} slice(%x), slice={[0:32]}", pad, "%z = f32[64]{0} cosine(%y)"
    )
    assert by_value(module)["y"].cause == "concatenate"


def test_reduce_feeding_reduce() -> None:
    module = program(
        "%zero = f32[] constant(0)",
        "%y = f32[] reduce(%x, %zero), dimensions={0}, to_apply=%sum",
        "%wide = f32[64]{0} broadcast(%y), dimensions={}",
        "%z = f32[] reduce(%wide, %zero), dimensions={0}, to_apply=%sum",
        before=SUM,
    )
    found = by_value(module)
    assert found["y"].cause == "reduction"
    body = fused(
        "body",
        "%zero = f32[] constant(0)",
        "%w = f32[64]{0} multiply(%body.p, %body.p)",
        "%r = f32[] reduce(%w, %zero), dimensions={0}, to_apply=%sum",
    )
    module = program(
        "%zero.1 = f32[] constant(0)",
        "%y = f32[64]{0} reduce-window(%x, %zero.1), window={size=3 pad=1_1}, to_apply=%sum",
        "%z = f32[] fusion(%y), kind=kInput, calls=%body",
        before=SUM + body,
    )
    assert by_value(module)["y"].cause == "reduce feeding reduce"


@pytest.mark.parametrize(
    ("name", "line", "detail"),
    [
        ("reduce_sum", 3, "XLA's two steps of one"),
        ("reduce_sum", 4, ""),
        ("dot_general", 4, "a matrix product as a sum"),
    ],
)
def test_two_reductions_that_xla_makes_of_one_or_of_a_product_are_told_to_be_that(
    name: str, line: int, detail: str
) -> None:
    at = f'metadata={{op_name="jit(f)/{name}" source_file="f.py" source_line=%d}}'
    module = program(
        "%zero = f32[] constant(0)",
        "%wide = f32[8,8]{1,0} bitcast(%x)",
        f"%y = f32[8]{{0}} reduce(%wide, %zero), dimensions={{1}}, to_apply=%sum, {at % 3}",
        f"%z = f32[] reduce(%y, %zero), dimensions={{0}}, to_apply=%sum, {at % line}",
        before=SUM,
    )
    found = by_value(module)["y"]
    assert (found.cause, found.detail) == ("reduce feeding reduce", detail)


def test_a_reduction_that_went_back_into_a_whole_array_is_not_the_line_to_blame() -> None:
    """Of a softmax and what is done with it, in one kernel, the line of the maximum was shown."""
    at = 'metadata={op_name="jit(f)/f" source_file="f.py" source_line=%d}'
    body = fused(
        "body",
        "%zero = f32[] constant(0)",
        f"%r = f32[] reduce(%body.p, %zero), dimensions={{0}}, to_apply=%sum, {at % 1}",
        f"%w = f32[64]{{0}} broadcast(%r), dimensions={{}}, {at % 1}",
        f"%d = f32[64]{{0}} divide(%body.p, %w), {at % 2}",
    )
    whole = "%y = f32[64]{0} fusion(%x), kind=kCustom, calls=%body", "%zero.1 = f32[] constant(0)"
    again = "%z = f32[] reduce(%y, %zero.1), dimensions={0}, to_apply=%sum"
    for last in (again, "%z = f32[64]{0} cosine(%y)"):
        barrier = by_value(program(*whole, last, before=SUM + body))["y"]
        assert [frame.line for frame in barrier.stack] == [2], barrier.cause
    step = f"%s = f32[] reduce(%alone.p, %zero.2), dimensions={{0}}, to_apply=%sum, {at % 1}"
    alone = SUM + fused("alone", "%zero.2 = f32[] constant(0)", step, f"%n = f32[] negate(%s), {at % 2}")
    mean = "%y = f32[] fusion(%x), kind=kInput, calls=%alone"
    barrier = by_value(program(mean, "%z = f32[] cosine(%y)", before=alone))["y"]
    assert [frame.line for frame in barrier.stack] == [1]


def test_scatter_is_blamed_for_what_it_reads_and_for_what_it_writes() -> None:
    scatter = (
        "%y = f32[64]{0} scatter(%s, %i, %u), update_window_dims={}, inserted_window_dims={0}, "
        "scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=%sum"
    )
    module = program(
        "%i = s32[8,1]{1,0} constant({...})",
        "%u = f32[8]{0} constant({...})",
        "%s = f32[64]{0} sine(%x)",
        scatter,
        "%z = f32[64]{0} cosine(%y)",
        before=SUM,
    )
    found = by_value(module)
    assert found["s"].cause == found["y"].cause == "scatter"
    assert found["s"].bytes == 32  # the scatter writes 8 elements in place


def test_in_place_update() -> None:
    module = program(
        "%u = f32[4]{0} constant({1, 2, 3, 4})",
        "%i = s32[] constant(3)",
        "%s = f32[64]{0} sine(%x)",
        "%y = f32[64]{0} dynamic-update-slice(%s, %u, %i)",
    )
    barrier = by_value(module)["s"]
    assert (barrier.cause, barrier.bytes) == ("in-place update", 16)


def test_a_reduction_that_xla_names_is_the_cause_whatever_its_reader_does() -> None:
    module = program(
        "%zero = f32[] constant(0)",
        "%y = f32[1]{0} reduce-window(%x, %zero), window={size=64}, to_apply=%sum",
        "%i = s32[] constant(3)",
        "%z = f32[64]{0} dynamic-update-slice(%x, %y, %i)",
        before=SUM,
    )
    named = Verdict("y", "z", "fusion into output of a reduce fusion would create a loop fusion")
    assert by_value(module, {"y": named})["y"].cause == "reduction"
    assert by_value(module)["y"].cause == "in-place update"


@pytest.mark.parametrize(
    "metadata",
    ["jit(f)/jit(_uniform)/mul", "jit(f)/threefry2x32", "jit(f)/jit(_normal)/erf_inv", "jit(f)/vmap(jit(_uniform))/x"],
)
def test_random_bits_are_known_by_jax_randoms_names(metadata: str) -> None:
    line = f'%y = f32[64]{{0}} sine(%x), metadata={{op_name="{metadata}"}}'
    assert by_value(program(line, "%z = f32[64]{0} cosine(%y)"))["y"].cause == "random bits"


@pytest.mark.parametrize(
    "metadata", ["jit(f)/jit(_where)/select_n", "jit(uniform_grid)/sin", "jit(f)/jit(split_heads)/x"]
)
def test_names_that_only_sound_random_are_not(metadata: str) -> None:
    line = f'%y = f32[64]{{0}} sine(%x), metadata={{op_name="{metadata}"}}'
    assert by_value(program(line, "%z = f32[64]{0} cosine(%y)"))["y"].cause == "unknown"


def test_a_key_that_was_sliced_out_of_a_split_is_random_bits_and_a_float_made_of_bits_is_not() -> None:
    split = 'metadata={op_name="jit(f)/random_split"}'
    for dtype, cause in (("u32", "random bits"), ("f32", "unknown")):
        body = f"""
%body (p: f32[64]) -> {dtype}[64] {{
  %p = f32[64]{{0}} parameter(0)
  %s = {dtype}[64]{{0}} convert(%p), {split}
  ROOT %n = {dtype}[64]{{0}} reverse(%s), dimensions={{0}}
}}
"""
        y = f"%y = {dtype}[64]{{0}} fusion(%x), kind=kLoop, calls=%body"
        assert by_value(program(y, f"%z = {dtype}[64]{{0}} not(%y)", before=body))["y"].cause == cause


@pytest.mark.parametrize(
    ("last", "cause"),
    [
        ("select(%q, %b, %k)", "random bits"),  # one of two keys
        ("concatenate(%b), dimensions={0}", "random bits"),
        ("and(%b, %k)", "unknown"),
        ("convert(%c)", "unknown"),  # a number that was drawn, as a small one
        ("scatter(%k, %i, %b), to_apply=%sum", "scatter"),  # a board of small numbers, at a place that was drawn
    ],
)
def test_unsigned_integers_are_random_bits_while_they_are_only_moved(last: str, cause: str) -> None:
    drawn = 'metadata={op_name="jit(f)/jit(_randint)/random_bits"}'
    body = f"""
%body (p: f32[64]) -> u8[64] {{
  %p = f32[64]{{0}} parameter(0)
  %q = pred[64]{{0}} compare(%p, %p), direction=LT
  %i = s32[64]{{0}} convert(%p)
  %k = u8[64]{{0}} convert(%p)
  %c = s32[64]{{0}} convert(%p), {drawn}
  %b = u8[64]{{0}} convert(%p), {drawn}
  ROOT %n = u8[64]{{0}} {last}
}}
"""
    y = "%y = u8[64]{0} fusion(%x), kind=kLoop, calls=%body"
    assert by_value(program(y, "%z = u8[64]{0} not(%y)", before=SUM + body))["y"].cause == cause


def test_tokens_are_no_barriers_and_host_transfers_are_callbacks() -> None:
    module = program(
        "%token = token[] after-all()",
        "%y = f32[64]{0} sine(%x)",
        "%send = (f32[64]{0}, u32[], token[]) send(%y, %token), channel_id=1, is_host_transfer=true",
        "%sent = token[] send-done(%send), channel_id=1, is_host_transfer=true",
        "%recv = (f32[64]{0}, u32[], token[]) recv(%sent), channel_id=2, is_host_transfer=true",
        "%received = (f32[64]{0}, token[]) recv-done(%recv), channel_id=2, is_host_transfer=true",
        "%back = f32[64]{0} get-tuple-element(%received), index=0",
        "%z = f32[64]{0} cosine(%back)",
    )
    found = barriers(module)
    assert {(barrier.writer, barrier.readers, barrier.cause) for barrier in found} == {
        ("y", ("send",), "callback"),
        ("recv", ("z",), "callback"),
    }


def test_an_asynchronous_copy_is_one_kernel_and_says_where_to() -> None:
    module = program(
        "%y = f32[64]{0} sine(%x)",
        "%start = (f32[64]{0:S(1)}, f32[64]{0}, u32[]{:S(2)}) copy-start(%y)",
        "%done = f32[64]{0:S(1)} copy-done(%start)",
        "%z = f32[64]{0} cosine(%done)",
    )
    found = {barrier.writer: barrier for barrier in barriers(module)}
    assert (found["y"].readers, found["start"].readers) == (("start",), ("z",))
    assert (found["start"].cause, found["start"].detail, found["start"].bytes) == ("copy", "into on-chip memory", 256)


def test_what_goes_to_the_hosts_memory_and_comes_from_there_says_so() -> None:
    """As a checkpoint policy offloads it. It is not on the device's chip."""
    module = program(
        "%y = f32[64]{0} sine(%x)",
        "%start = (f32[64]{0:S(5)}, f32[64]{0}, u32[]) copy-start(%y)",
        "%there = f32[64]{0:S(5)} copy-done(%start)",
        "%back = (f32[64]{0}, f32[64]{0:S(5)}, u32[]) copy-start(%there)",
        "%here = f32[64]{0} copy-done(%back)",
        "%z = f32[64]{0} cosine(%here)",
    )
    found = {barrier.writer: barrier for barrier in barriers(module)}
    assert {name: (one.cause, one.detail, one.on_chip) for name, one in found.items()} == {
        "y": ("copy", "into the host's memory", False),
        "start": ("copy", "into the host's memory", False),
        "back": ("copy", "out of the host's memory", False),
    }


def test_a_copy_in_parts_crosses_once_for_each_and_joining_them_is_no_kernel() -> None:
    start = "(({}), f32[32]{{0:S(1)}}, s32[]{{:S(2)}}) slice-start(%y), slice={{[{}]}}"
    module = program(
        "%y = f32[64]{0} sine(%x)",
        "%first = " + start.format("f32[64]{0}", "0:32"),
        "%second = " + start.format("f32[64]{0}", "32:64"),
        "%a = f32[32]{0:S(1)} slice-done(%first)",
        "%b = f32[32]{0:S(1)} slice-done(%second)",
        '%whole = f32[64]{0:S(1)} custom-call(%a, %b), custom_call_target="ConcatBitcast"',
        "%z = f32[64]{0} cosine(%whole)",
    )
    found = {barrier.writer: barrier for barrier in barriers(module)}
    assert {name: (one.readers, one.bytes, one.cause) for name, one in found.items()} == {
        "y": (("first", "second"), 128, "copy"),
        "first": (("z",), 128, "copy"),
        "second": (("z",), 128, "copy"),
    }
    assert {found[name].detail for name in ("first", "second")} == {"into on-chip memory"}
    sizes = {kernel.name: (kernel.kind, kernel.bytes_read, kernel.bytes_written) for kernel in kernels(module)}
    assert sizes["first"] == sizes["second"] == ("copy", 128, 128)


def test_conditional() -> None:
    module = program(
        "%p = pred[] constant(true)",
        "%s = f32[64]{0} sine(%x)",
        "%c = f32[64]{0} conditional(%p, %s, %s), true_computation=%yes, false_computation=%no",
        "%z = f32[64]{0} cosine(%c)",
        before="""
%yes (a: f32[64]) -> f32[64] {
  %a = f32[64]{0} parameter(0)
  ROOT %t = f32[64]{0} tanh(%a)
}

%no (b: f32[64]) -> f32[64] {
  %b = f32[64]{0} parameter(0)
  ROOT %e = f32[64]{0} exponential(%b)
}
""",
    )
    found = by_value(module)
    assert {name: (barrier.cause, barrier.readers) for name, barrier in found.items()} == {
        "s": ("conditional", ("t", "e")),
        "t": ("conditional", ("z",)),
        "e": ("conditional", ("z",)),
    }


def test_a_carry_crosses_once_an_iteration() -> None:
    found = by_value(loop("%new = f32[64]{0} sine(%old)"))
    assert set(found) == {"new", "next"}
    assert (found["new"].cause, found["new"].crossings, found["new"].readers) == ("loop carry", 10, ("new",))
    assert (found["next"].bytes, found["next"].launches, found["next"].per_iteration) == (4, 10, False)


def test_a_loop_of_unknown_length_counts_one_iteration() -> None:
    barrier = by_value(loop("%new = f32[64]{0} sine(%old)", known=False))["new"]
    assert (barrier.crossings, barrier.per_iteration) == (1, True)
    module = loop("%new = f32[64]{0} sine(%old)", known=False, start="%s", first="%s = f32[64]{0} cosine(%x)")
    assert not by_value(module)["s"].per_iteration  # a start value is read once


def around(inner: str, *, known: bool) -> dict[str, Barrier]:
    """Of twenty steps that each make %s, run a loop that begins with `inner`, its carry, and take the sine of what is
    left. The loop adds %s, which it hands on, to half of its other array."""
    array = "f32[64]{0}"
    carry, outer = f"(s32[], {array}, {array})", f"(s32[], {array})"
    count = '{"known_trip_count":{"n":"%s"}}'
    trips = f", backend_config={count % 5}" if known else ""
    return by_value(
        program(
            "%zero = s32[] constant(0)",
            f"%start = {outer} tuple(%zero, %x)",
            f"%outer = {outer} while(%start), condition=%more, body=%step, backend_config={count % 20}",
            f"%end = {array} get-tuple-element(%outer), index=1",
            before=f"""
%half (p: {carry}) -> {carry} {{
  %p = {carry} parameter(0)
  %i = s32[] get-tuple-element(%p), index=0
  %a = {array} get-tuple-element(%p), index=1
  %b = {array} get-tuple-element(%p), index=2
  %new = {array} add(%a, %b)
  ROOT %carry = {carry} tuple(%i, %new, %b)
}}

%again (q: {carry}) -> pred[] {{
  %q = {carry} parameter(0)
  %j = s32[] get-tuple-element(%q), index=0
  ROOT %less = pred[] compare(%j, %j), direction=LT
}}

%step (r: {outer}) -> {outer} {{
  %r = {outer} parameter(0)
  %k = s32[] get-tuple-element(%r), index=0
  %c = {array} get-tuple-element(%r), index=1
  %s = {array} cosine(%c)
  %first = {carry} tuple(%k, {inner})
  %loop = {carry} while(%first), condition=%again, body=%half{trips}
  %left = {array} get-tuple-element(%loop), index=1
  %t = {array} sine(%left)
  ROOT %next = {outer} tuple(%k, %t)
}}

%more (m: {outer}) -> pred[] {{
  %m = {outer} parameter(0)
  %n = s32[] get-tuple-element(%m), index=0
  ROOT %fewer = pred[] compare(%n, %n), direction=LT
}}
""",
        )
    )


@pytest.mark.parametrize("known", [True, False])
def test_a_start_value_of_a_loop_is_read_as_often_as_the_loop_is_entered(known: bool) -> None:
    """A loop of unknown length began anew at one, and 20 reads of the start value were one."""
    barrier = around("%s, %c", known=known)["s"]
    assert (barrier.launches, barrier.crossings, barrier.per_iteration) == (20, 20, False)


def test_a_value_that_every_iteration_reads_is_counted_as_it_is_written() -> None:
    """Written 20 times in a call and read per iteration of a loop of unknown length: 20 launches were said to be those
    of each iteration."""
    barrier = around("%c, %s", known=False)["s"]
    assert (barrier.launches, barrier.crossings, barrier.per_iteration) == (20, 20, False)
    barrier = around("%c, %s", known=True)["s"]
    assert (barrier.launches, barrier.crossings, barrier.per_iteration) == (20, 100, False)


def test_what_a_loop_of_unknown_length_leaves_crosses_once_for_each_of_its_iterations_at_most() -> None:
    """It is read 20 times in a call: those were said to be in each iteration."""
    barrier = around("%s, %c", known=False)["new"]
    assert barrier.readers == ("new", "t")
    assert (barrier.launches, barrier.crossings, barrier.per_iteration) == (1, 1, True)
    assert around("%s, %c", known=True)["new"].crossings == 100


def test_a_start_value_is_read_in_the_first_iteration_alone() -> None:
    module = loop("%new = f32[64]{0} sine(%old)", start="%x", first="%s = f32[64]{0} cosine(%x)")
    assert "s" not in by_value(module)
    module = loop("%new = f32[64]{0} sine(%old)", start="%s", first="%s = f32[64]{0} cosine(%x)")
    barrier = by_value(module)["s"]
    assert (barrier.cause, barrier.detail) == ("loop carry", "read inside the loop")
    assert (barrier.crossings, barrier.readers) == (1, ("new",))


def test_what_a_loop_never_changes_is_read_in_every_iteration() -> None:
    lines = "%y = f32[64]{0} sine(%old)", "%n = f32[64]{0} negate(%y)", "%new = f32[64]{0} bitcast(%old)"
    found = by_value(loop(*lines, start="%s", first="%s = f32[64]{0} cosine(%x)"))
    assert (found["s"].crossings, found["s"].readers) == (10, ("y",))
    assert found["y"].cause == "unknown"


def test_a_value_read_after_its_loop_crosses_once() -> None:
    module = loop(
        "%new = f32[64]{0} sine(%x.inside)", "%x.inside = f32[64]{0} bitcast(%old)", last="%z = f32[64]{0} tanh(%end)"
    )
    barrier = by_value(module)["new"]
    assert barrier.readers == ("new", "z")
    assert barrier.crossings == 10


def test_a_buffer_that_a_loop_fills_in_place_is_no_barrier() -> None:
    lines = "%u = f32[1]{0} constant({1})", "%new = f32[64]{0} dynamic-update-slice(%old, %u, %i)"
    assert set(by_value(loop(*lines))) == {"next"}


def test_a_buffer_that_a_loop_fills_and_reads_crosses_by_what_it_reads() -> None:
    lines = (
        "%u = f32[1]{0} dynamic-slice(%old, %i), dynamic_slice_sizes={1}",
        "%new = f32[64]{0} dynamic-update-slice(%old, %u, %i)",
    )
    barrier = by_value(loop(*lines))["new"]
    assert (barrier.cause, barrier.bytes, barrier.readers) == ("in-place update", 4, ("u",))


@pytest.mark.parametrize(
    ("made_by", "written_by", "cause"),
    [
        ("closed_call/add", "jit(dynamic_update_index_in_dim)/dynamic_update_slice", "loop carry"),
        ("closed_call/add", "dynamic_update_slice", "loop carry"),
        ("closed_call/add", "closed_call/dynamic_update_slice", "in-place update"),
    ],
)
def test_what_a_scan_stacks_is_no_update_of_the_users(made_by: str, written_by: str, cause: str) -> None:
    made, written = (f'metadata={{op_name="jit(f)/while/body/{name}"}}' for name in (made_by, written_by))
    lines = (
        f"%new = f32[64]{{0}} sine(%old), {made}",
        "%all = f32[64]{0} constant({...})",
        f"%z = f32[64]{{0}} dynamic-update-slice(%all, %new, %i), {written}",
    )
    assert by_value(loop(*lines))["new"].cause == cause


def test_a_copy_is_made_whole_whatever_is_written_to_it() -> None:
    """Of 256 bytes that are copied to write 16 of them in place, 16 were told."""
    lines = "%u = f32[4]{0} constant({1, 2, 3, 4})", "%i = s32[] constant(3)"
    copy, write = "%c = f32[64]{0} copy(%x)", "%y = f32[64]{0} dynamic-update-slice(%c, %u, %i)"
    module = program(*lines, copy, write, "%z = f32[64]{0} cosine(%y)")
    found = by_value(module)
    assert (found["c"].cause, found["c"].bytes, found["c"].crossings) == ("copy", 256, 1)
    assert (found["y"].cause, found["y"].bytes) == ("in-place update", 16)  # %z reads the rest in any case


def written_to(result: str, *more: str, donated: Collection[int] = ()) -> Barrier:
    """The copy of an argument, which is written to in place twice; `result` is what the program returns."""
    lines = "%u = f32[4]{0} constant({1, 2, 3, 4})", "%i = s32[] constant(3)", "%c = f32[64]{0} copy(%x)"
    writes = "%y = f32[64]{0} dynamic-update-slice(%c, %u, %i)", "%z = f32[64]{0} dynamic-update-slice(%y, %u, %i)"
    return by_value(replace(program(*lines, *writes, *more, result), donated=frozenset(donated)))["c"]


def test_a_copy_that_donation_would_save_is_said_to_be_one() -> None:
    returned = "%r = (s32[], f32[64]{0}) tuple(%i, %z)"
    assert written_to(returned).detail == "of an argument that is not donated"
    # The caller gives it; it is returned as it was; something else reads it; nothing of its shape is returned.
    assert written_to(returned, donated={0}).detail == ""
    assert written_to("%r = (f32[64]{0}, f32[64]{0}) tuple(%x, %z)").detail == ""
    assert written_to("%r = (f32[64]{0}, f32[64]{0}) tuple(%s, %z)", "%s = f32[64]{0} sine(%x)").detail == ""
    assert written_to("%r = f32[64]{0} cosine(%z)").detail == ""


def test_a_copy_by_way_of_on_chip_memory_is_one_that_donation_would_save() -> None:
    """On a TPU: f32[1000,1000] that one row is written to, 22 us, donated 2.5 us by XLA's own estimates."""
    lines = "%u = f32[4]{0} constant({1, 2, 3, 4})", "%i = s32[] constant(3)", "%in = f32[64]{0:S(1)} copy(%x)"
    out = "%out = (f32[64]{0}, f32[64]{0:S(1)}, u32[]{:S(2)}) copy-start(%in)", "%done = f32[64]{0} copy-done(%out)"
    found = by_value(program(*lines, *out, "%y = f32[64]{0} dynamic-update-slice(%done, %u, %i)"))
    details = {barrier.writer: barrier.detail for barrier in found.values()}
    assert details == {"in": "into on-chip memory", "out": "of an argument that is not donated"}


def test_a_copy_that_a_loop_hands_round_is_no_arguments() -> None:
    module = loop("%new = f32[64]{0} copy(%old)", last="%z = f32[64]{0} copy(%end)")
    assert {barrier.detail for barrier in barriers(module)} == {"", "of a loop's carry"}


def test_a_copy_of_an_argument_that_a_loop_writes_to_is_said_to_be_one() -> None:
    lines = "%u = f32[1]{0} constant({1})", "%new = f32[64]{0} dynamic-update-slice(%old, %u, %i)"
    copy = "%c = f32[64]{0} copy(%x)"
    assert by_value(loop(*lines, start="%c", first=copy))["c"].detail == "of an argument that is not donated"
    after = "%z = f32[64]{0} tanh(%end)"
    assert by_value(loop(*lines, start="%c", first=copy, last=after))["c"].detail == "of a loop's carry"


def test_what_is_written_into_an_argument_in_place_crosses_alone() -> None:
    body = fused(
        "body",
        "%u = f32[4]{0} constant({1, 2, 3, 4})",
        "%i = s32[] constant(3)",
        "%b = f32[64]{0} bitcast(%body.p)",
        "%d = f32[64]{0} dynamic-update-slice(%b, %u, %i)",
        "%e = f32[64]{0} bitcast(%d)",
    )
    module = program("%y = f32[64]{0} fusion(%x), kind=kLoop, calls=%body", "%z = f32[64]{0} cosine(%y)", before=body)
    assert by_value(module)["y"].bytes == 16


def test_what_was_made_to_be_written_to_crosses_whole() -> None:
    """Fused into the sine, the write would leave nothing for %z to read."""
    lines = "%u = f32[4]{0} constant({1, 2, 3, 4})", "%i = s32[] constant(3)", "%s = f32[64]{0} sine(%x)"
    writes = "%y = f32[64]{0} dynamic-update-slice(%s, %u, %i)", "%w = f32[64]{0} dynamic-update-slice(%y, %u, %i)"
    found = by_value(program(*lines, *writes, "%z = f32[64]{0} cosine(%w)"))
    assert {name: found[name].bytes for name in ("s", "y", "w")} == {"s": 16, "y": 16, "w": 256}


def test_a_copy_into_a_loop_that_writes_to_it_in_place_is_a_barrier() -> None:
    lines = "%u = f32[1]{0} constant({1})", "%new = f32[64]{0} dynamic-update-slice(%old, %u, %i)"
    found = by_value(loop(*lines, start="%c", first="%c = f32[64]{0} copy(%x)"))
    assert set(found) == {"next", "c"}
    assert found["c"].cause == "copy"
    assert (found["c"].bytes, found["c"].crossings, found["c"].launches) == (256, 1, 1)


def test_a_copy_that_a_loop_reads_again_and_again_is_made_once() -> None:
    lines = "%y = f32[64]{0} sine(%old)", "%n = f32[64]{0} negate(%y)", "%new = f32[64]{0} bitcast(%old)"
    barrier = by_value(loop(*lines, start="%c", first="%c = f32[64]{0} copy(%x)"))["c"]
    assert (barrier.bytes, barrier.crossings) == (256, 1)


def test_what_a_loop_writes_in_place_and_reads_whole_crosses_as_far_as_it_is_new() -> None:
    lines = (
        "%u = f32[1]{0} constant({1})",
        "%new = f32[64]{0} dynamic-update-slice(%old, %u, %i)",
        "%y = f32[64]{0} sine(%new)",
    )
    barrier = by_value(loop(*lines))["new"]
    assert (barrier.bytes, barrier.crossings, barrier.readers) == (4, 10, ("y",))


def test_stacked_outputs_read_after_the_loop_are_its_carry_not_an_update() -> None:
    lines = "%u = f32[1]{0} constant({1})", "%new = f32[64]{0} dynamic-update-slice(%old, %u, %i)"
    barrier = by_value(loop(*lines, last="%z = f32[64]{0} tanh(%end)"))["new"]
    assert (barrier.cause, barrier.detail, barrier.crossings) == ("loop carry", "read after the loop", 1)
    assert barrier.bytes == 40  # ten iterations write one number each; the others were there


@pytest.mark.parametrize(
    ("op_name", "of_gradient"),
    [
        ("jit(f)/transpose(jvp(vmap()))/reduce_sum", True),
        ("jit(f)/vmap(transpose(jvp(net)))/while/body/reduce_sum", True),
        ("jit(f)/jvp(net)/reduce_sum", False),
        ("jit(f)/jit(transpose)/transpose", False),
    ],
)
def test_the_work_of_a_gradient_is_told_from_that_of_its_line(op_name: str, of_gradient: bool) -> None:
    at = f'metadata={{op_name="{op_name}" source_file="f.py" source_line=7}}'
    reduced = "%s = f32[] reduce(%x, %zero), dimensions={0}, to_apply=%sum"
    module = program("%zero = f32[] constant(0)", f"{reduced}, {at}", "%z = f32[64]{0} broadcast(%s)", before=SUM)
    barrier = by_value(module)["s"]
    assert (barrier.cause, barrier.stack[0].line, barrier.of_gradient) == ("reduction", 7, of_gradient)


@pytest.mark.parametrize(
    "reads",
    [
        "%z = f32[64]{0} concatenate(%end), dimensions={0}",
        "%z = f32[64]{0} dot(%end, %x), lhs_contracting_dims={}, rhs_contracting_dims={}",
        "%z = f32[64]{0} scatter(%end, %x, %x), to_apply=%body",
    ],
)
def test_what_is_done_with_stacked_outputs_after_the_loop_is_not_why_its_steps_write_them(reads: str) -> None:
    """The steps of a PPO rollout store f32[64] each; a concatenate of the slices afterwards had all of their launches,
    at its own line: 96 of the 1844 of the program, of which 3 were its own."""
    at = 'metadata={op_name="jit(f)/while/body/dynamic_update_slice" source_file="f.py" source_line=7}'
    lines = "%u = f32[1]{0} constant({1})", f"%new = f32[64]{{0}} dynamic-update-slice(%old, %u, %i), {at}"
    barrier = by_value(loop(*lines, last=f'{reads}, metadata={{source_file="f.py" source_line=9}}'))["new"]
    assert (barrier.cause, barrier.detail, barrier.launches) == ("loop carry", "read after the loop", 10)
    assert [frame.line for frame in barrier.stack] == [7]


def test_a_copy_is_shown_where_the_copied_value_was_made() -> None:
    at = 'metadata={op_name="jit(f)/concatenate" source_file="f.py" source_line=7}'
    lines = (
        "%half = f32[32]{0} slice(%old), slice={[0:32]}",
        f"%joined = f32[64]{{0}} concatenate(%half, %half), dimensions={{0}}, {at}",
        "%new = f32[64]{0} copy(%joined)",
    )
    found = by_value(loop(*lines))
    assert (found["joined"].cause, found["joined"].readers) == ("concatenate", ("new",))
    assert (found["new"].cause, found["new"].detail) == ("copy", "of a loop's carry")
    assert [(frame.path, frame.line) for frame in found["new"].stack] == [("f.py", 7)]


def test_what_a_branch_hands_on_is_copied_at_the_conditional_and_so_is_its_result_for_a_loop() -> None:
    at = 'metadata={op_name="jit(f)/%s" source_file="f.py" source_line=%d}'
    branches = f"""
%change (a: f32[64]) -> f32[64] {{
  %a = f32[64]{{0}} parameter(0)
  ROOT %t = f32[64]{{0}} tanh(%a), {at % ("tanh", 3)}
}}

%keep (b: f32[64]) -> f32[64] {{
  %b = f32[64]{{0}} parameter(0)
  ROOT %k = f32[64]{{0}} copy(%b)
}}
"""
    lines = (
        "%yes = pred[] constant(true)",
        "%c = f32[64]{0} conditional(%yes, %old, %old), true_computation=%change, false_computation=%keep, "
        + at % ("cond", 7),
        "%new = f32[64]{0} copy(%c)",
    )
    found = by_value(loop(*lines, start="%s", first=f"%s = f32[64]{{0}} sine(%x), {at % ('sin', 1)}", before=branches))
    details = {name: (found[name].cause, found[name].detail, found[name].stack[0].line) for name in ("k", "new")}
    assert details == {"k": ("copy", "handed on by a branch", 7), "new": ("copy", "of a loop's carry", 7)}


def test_a_copy_of_an_argument_is_shown_where_it_is_written_to() -> None:
    at = 'metadata={op_name="jit(f)/set" source_file="f.py" source_line=%d}'
    copy, read = "%c = f32[64]{0} copy(%x)", f"%s = f32[64]{{0}} sine(%c), {at % 3}"
    write = f"%y = f32[64]{{0}} dynamic-update-slice(%c, %u, %i), {at % 4}"
    lines = "%u = f32[4]{0} constant({1, 2, 3, 4})", "%i = s32[] constant(3)", copy, read, write
    found = by_value(program(*lines, "%r = (f32[64]{0}, f32[64]{0}) tuple(%s, %y)"))
    assert [frame.line for frame in found["c"].stack] == [4]


def test_what_a_loop_begins_with_is_copied_at_the_loop() -> None:
    """The line of what reads the counter first, somewhere in the body, was shown."""
    at = 'metadata={op_name="jit(f)/while" source_file="f.py" source_line=%d}'
    text = f"""HloModule jit_f

%body (p: (s32[], f32[64])) -> (s32[], f32[64]) {{
  %p = (s32[], f32[64]{{0}}) parameter(0)
  %i = s32[] get-tuple-element(%p), index=0
  %old = f32[64]{{0}} get-tuple-element(%p), index=1
  %f = f32[] convert(%i), {at % 3}
  %new = f32[64]{{0}} pad(%old, %f), {at % 3}
  %one = s32[] constant(1)
  %next = s32[] add(%i, %one), {at % 4}
  ROOT %carry = (s32[], f32[64]{{0}}) tuple(%next, %new)
}}

%condition (q: (s32[], f32[64])) -> pred[] {{
  %q = (s32[], f32[64]{{0}}) parameter(0)
  %j = s32[] get-tuple-element(%q), index=0
  %ten = s32[] constant(10)
  ROOT %less = pred[] compare(%j, %ten), direction=LT
}}

ENTRY %main (x: f32[64]) -> f32[64] {{
  %x = f32[64]{{0}} parameter(0)
  %zero = s32[] constant(0)
  %c = s32[] copy(%zero)
  %d = f32[64]{{0}} copy(%x)
  %start = (s32[], f32[64]{{0}}) tuple(%c, %d)
  %loop = (s32[], f32[64]{{0}}) while(%start), condition=%condition, body=%body, {at % 7}
  ROOT %end = f32[64]{{0}} get-tuple-element(%loop), index=1
}}
"""
    found = by_value(hlo.parse(text))
    assert {name: [frame.line for frame in found[name].stack] for name in ("c", "d")} == {"c": [7], "d": [7]}


def test_a_transpose_of_an_argument_that_lost_its_line_is_shown_where_it_was_written() -> None:
    """A batched scan turns its inputs first; the line of what reads them in the loop was shown."""
    at = 'metadata={op_name="jit(f)/transpose" source_file="f.py" source_line=%d}'
    turned = "%t = f32[64]{0} transpose(%x), dimensions={0}"
    module = program(turned, f"%z = f32[64]{{0}} cosine(%t), {at % 9}")

    def lines(*written: str) -> list[int]:
        before = lost(program(*written, "%r = f32[64]{0} cosine(%x)"))
        return [frame.line for barrier in barriers(module, before=before) for frame in barrier.stack]

    once = f"{turned}, {at % 4}"
    assert lines(once) == [4]
    assert lines(once, once.replace("%t", "%u").replace("=4", "=5")) == [9]  # in which of them?
    assert lines(f"%s = f32[64]{{0}} sine(%x), {at % 3}", once.replace("(%x)", "(%s)")) == [9]  # of something else


def test_a_scatter_that_lost_its_line_is_known_by_the_operation_it_is_made_with() -> None:
    """A TPU's compiler gives what it makes of one neither a name nor a line, but calls what the one written called."""
    at = 'metadata={op_name="jit(f)/scatter" source_file="f.py" source_line=%d}'
    sums = SUM + SUM.replace("%sum", "%other") + SUM.replace("%sum", "%sum.clone.1")
    indices = "%i = s32[64]{0} iota(), iota_dimension=0"

    def scatter(name: str, into: str, by: str) -> str:
        return f"%{name} = f32[64]{{0}} scatter({into}, %i, %x), to_apply=%{by}"

    def lines(*written: str) -> set[int]:
        before = lost(program(indices, *written, before=sums))
        module = program(indices, scatter("y", "%x", "sum.clone.1"), scatter("z", "%y", "other"), before=sums)
        (found,) = (barrier for barrier in barriers(module, before=before) if barrier.value == "y")
        return {frame.line for frame in found.stack}

    first, second = f"{scatter('a', '%x', 'sum')}, {at % 4}", f"{scatter('b', '%a', 'other')}, {at % 5}"
    assert lines(first, second) == {4}
    assert not lines(first, second, f"{scatter('c', '%b', 'sum')}, {at % 6}")  # in which of them?


TOP_K = 'custom_call_target="__gpu$TopK", called_computations={%sum}'
RAGGED = 'custom_call_target="tpu_custom_call", metadata={op_name="jit(f)/ragged_dot_general/ragged-dot-none"}'


@pytest.mark.parametrize(
    ("was", "now"),
    [
        ("convolution(%s, %x), dim_labels=bf_io->bf", "fusion(%s), kind=kCustom, calls=%body"),
        ("ragged-dot(%s, %x, %x), lhs_contracting_dims={0}", f"custom-call(%s), {RAGGED}"),
        ("topk(%s), k=64, largest=true", f"custom-call(%s), {TOP_K}"),
    ],
)
def test_what_lost_its_line_is_that_of_what_it_takes_not_of_what_reads_it(was: str, now: str) -> None:
    """A CPU's compiler writes convolutions anew, a TPU's calls a kernel for a ragged dot, a GPU's one for a top-k."""
    at = 'metadata={op_name="jit(f)/x" source_file="f.py" source_line=%d}'
    total = SUM.replace("add(%a, %b)", f"add(%a, %b), {at % 9}")
    body = fused("body", "%d = f32[64]{0} convolution(%body.p, %body.p)")
    made = f"%s = f32[64]{{0}} sine(%x), {at % 3}"
    other = f"%o = f32[64]{{0}} {was.replace('%s', '%x')}, {at % 7}"
    before = lost(program(made, f"%y = f32[64]{{0}} {was}, {at % 4}", other))
    summed = f"%z = f32[] reduce(%y, %x), dimensions={{0}}, to_apply=%sum, {at % 5}"
    module = program(made, f"%y = f32[64]{{0}} {now}", summed, before=total + body)
    found = {barrier.value: barrier.stack[0].line for barrier in barriers(module, before=before)}
    assert found["y"] == 4


def test_a_value_that_is_made_of_nothing_can_be_copied() -> None:
    body = """
%body () -> f32[64] {
  %c = f32[] constant(1)
  ROOT %b = f32[64]{0} broadcast(%c), dimensions={}
}
"""
    module = program("%y = f32[64]{0} fusion(), kind=kLoop, calls=%body", "%z = f32[64]{0} copy(%y)", before=body)
    assert by_value(module)["y"].cause == "copy"


def test_a_line_is_found_through_operands_then_users() -> None:
    at = 'metadata={op_name="jit(f)/sin" source_file="f.py" source_line=%d}'
    lines = ["%a = f32[64]{0} sine(%x)", "%b = f32[64]{0} cosine(%a)", "%c = f32[64]{0} tanh(%b)"]
    through_operand = [f"{lines[0]}, {at % 1}", lines[1], f"{lines[2]}, {at % 3}"]
    assert by_value(program(*through_operand))["b"].stack[0].line == 1
    through_user = [lines[0], lines[1], f"{lines[2]}, {at % 3}"]
    assert by_value(program(*through_user))["b"].stack[0].line == 3
    assert by_value(program(*lines))["b"].stack == ()


def test_an_array_that_the_function_holds_says_where_that_is_called_and_not_what_is_done_with_it() -> None:
    """A matrix of ones times a vector had the line of the call of the jitted method."""
    at = 'metadata={op_name="%s" source_file="f.py" source_line=%d}'
    held = f"%w = f32[64]{{0}} broadcast(%one), dimensions={{}}, {at % ('jit(act)', 9)}"
    used = f"%z = f32[64]{{0}} tanh(%y), {at % ('jit(act)/dot_general', 3)}"
    module = program("%one = f32[] constant(1)", held, "%y = f32[64]{0} multiply(%x, %w)", used)
    assert {by_value(module)[name].stack[0].line for name in "wy"} == {3}
    alone = program("%one = f32[] constant(1)", held, "%y = f32[64]{0} multiply(%x, %w)", "%z = f32[64]{0} tanh(%y)")
    assert by_value(alone)["y"].stack[0].line == 9


def test_the_cost_model_is_the_cause_only_where_fusing_is_no_faster() -> None:
    module = program("%y = f32[64]{0} sine(%x)", "%z = f32[64]{0} cosine(%y)")
    dear, cheap = (Verdict("y", "z", "", us_fused=us, us_unfused=4.0) for us in (4.2, 3.0))
    assert by_value(module, {"y": dear})["y"].cause == "cost model"
    assert by_value(module, {"y": cheap})["y"].cause == "unknown"
    assert by_value(module, {"y": cheap})["y"].verdict == cheap


def test_an_optimization_barrier_that_xla_names_is_the_cause() -> None:
    """It is gone from the optimized program, and the cause was unknown."""
    module = program("%y = f32[64]{0} sine(%x)", "%z = f32[64]{0} cosine(%y)")
    held = Verdict("y", "b", "the consumer is not fusible", consumers=("opt-barrier",))
    assert by_value(module, {"y": held})["y"].cause == "optimization barrier"
    assert by_value(module, {"y": replace(held, consumers=("tuple",))})["y"].cause == "unknown"


def test_several_readers() -> None:
    module = program(
        "%y = f32[64]{0} sine(%x)",
        "%a = f32[64]{0} cosine(%y)",
        "%b = f32[64]{0} tanh(%y)",
        "%r = (f32[64]{0}, f32[64]{0}) tuple(%a, %b)",
    )
    barrier = by_value(module)["y"]
    assert (barrier.cause, barrier.detail, barrier.readers) == ("several readers", "2 kernels", ("a", "b"))


def test_a_slice_that_a_step_copies_out_of_what_a_scan_goes_over() -> None:
    """48 of a transformer's 506 launches cut the layers' weights out of their stack, and the cause was unknown."""
    at = 'metadata={{op_name="jit(f)/{}" source_file="f.py" source_line={}}}'
    lines = (
        f"%two = s32[] add(%i, %one), {at.format('add', 8)}",
        f"%y = f32[8]{{0}} dynamic-slice(%old, %two), dynamic_slice_sizes={{8}}, {at.format('dynamic_slice', 9)}",
        "%n = f32[8]{0} negate(%y)",
        "%new = f32[64]{0} bitcast(%old)",
    )
    stacked = f"%made = f32[64]{{0}} sine(%x), {at.format('sin', 3)}"
    barrier = by_value(loop(*lines, start="%made", first=stacked))["y"]
    assert (barrier.cause, barrier.detail, barrier.stack[0].line) == ("copy", "of a slice", 9)


def test_who_computes_with_what_is_cut_out_does_more_than_copy() -> None:
    body = fused("g", "%h = f32[32]{0} slice(%g.p), slice={[0:32]}", "%t = f32[32]{0} tanh(%h)")
    module = program("%y = f32[32]{0} fusion(%x), kind=kLoop, calls=%g", "%z = f32[32]{0} sine(%y)", before=body)
    assert by_value(module)["y"].cause == "unknown"
    module = program("%y = f32[32]{0} slice(%x), slice={[0:32]}", "%z = f32[32]{0} sine(%y)")
    assert (by_value(module)["y"].cause, by_value(module)["y"].detail) == ("copy", "of a slice")


@pytest.mark.parametrize(
    ("called", "cause", "lines"),
    [("scatter-add", ("run as a loop", "scatter-add"), {7}), ("while", ("unknown", ""), set())],
)
def test_what_a_tpu_does_place_after_place_is_a_loop_of_one_operation_at_its_line(
    called: str, cause: tuple[str, str], lines: set[int]
) -> None:
    """The values of a scatter of each step under a vmap were a reduction, several readers and an in-place update."""
    module = loop("%y = f32[64]{0} sine(%old)", "%new = f32[64]{0} cosine(%y)", called=called)
    barrier = by_value(module)["y"]
    assert (barrier.cause, barrier.detail) == cause
    assert barrier.stack[0].line == 7
    assert {frame.line for kernel in kernels(module) for frame in kernel.stack} == lines


SAVED = sorted((Path(__file__).parent / "hlo").glob("*.txt"))


@pytest.mark.parametrize("path", SAVED, ids=lambda path: path.stem)
def test_every_barrier_of_a_saved_program_has_its_kernels_its_bytes_and_a_line(path: Path) -> None:
    module = hlo.parse(path.read_text())
    launched = {kernel.name for kernel in kernels(module)}
    for barrier in barriers(module):
        assert {barrier.writer, *barrier.readers} <= launched
        assert barrier.readers
        assert barrier.bytes > 0
        assert barrier.crossings > 0
        assert barrier.stack, barrier


@pytest.mark.parametrize("name", ["scan", "ordering", "unbounded"])
def test_both_source_formats_give_the_same_causes_at_the_same_lines(name: str) -> None:
    """The metadata's format changed, the program XLA:CPU makes of these did not."""
    found = set()
    for path in (path for path in SAVED if path.name.startswith(f"{name}_cpu_")):
        every = barriers(hlo.parse(path.read_text()))
        found.add(tuple(sorted((barrier.cause, barrier.bytes, barrier.stack[0].line) for barrier in every)))
    assert len(found) == 1


def test_what_xla_on_a_cpu_finds_not_worth_it_is_of_the_cost_model() -> None:
    module = program("%y = f32[64]{0} sine(%x)", "%z = f32[64]{0} cosine(%y)")
    said = Verdict("y", "z", "Fusion is not profitable.")
    assert by_value(module, {"y": said})["y"].cause == "cost model"
    assert by_value(module, {"y": replace(said, reason="Another.")})["y"].cause == "unknown"


@pytest.mark.parametrize("reader", ["copy(%y)", "reshape(%y)"])
def test_what_its_reader_copies_is_shown_where_it_was_made_not_where_what_it_is_made_of_was(reader: str) -> None:
    at = 'metadata={op_name="jit(f)/x" source_file="f.py" source_line=%d}'
    lines = (f"%s = f32[64]{{0}} sine(%x), {at % 3}", f"%y = f32[64]{{0}} cosine(%s), {at % 4}")
    found = by_value(program(*lines, f"%z = f32[64]{{0}} {reader}"))["y"]
    assert (found.cause, found.detail, found.stack[0].line) == ("copy", "made by the reader", 4)


def test_what_a_scatter_keeps_apart_as_xla_says_has_no_unknown_cause() -> None:
    """A broadcast of zeros is written twice: for a scatter, and for a reader that does not scatter."""
    module = program("%y = f32[64]{0} sine(%x)", "%z = f32[64]{0} cosine(%y)")
    verdict = Verdict("y", "z", "do not fuse into the in-place operand of scatter")
    assert by_value(module, {"y": verdict})["y"].cause == "scatter"


def test_a_buffer_that_nobody_has_written_to_is_no_custom_call() -> None:
    lines = "%u = f32[1]{0} constant({1})", "%i = s32[] constant(3)"
    module = program(
        *lines,
        '%b = f32[64]{0} custom-call(), custom_call_target="AllocateBuffer"',
        "%w = f32[64]{0} fusion(%b), kind=kLoop, calls=%f",
        "%z = f32[64]{0} cosine(%w)",
        before=fused(
            "f",
            '%c = f32[64]{0} custom-call(), custom_call_target="AllocateBuffer"',
            "%one = f32[1]{0} constant({1})",
            "%at = s32[] constant(3)",
            "%d = f32[64]{0} dynamic-update-slice(%c, %one, %at)",
        ),
    )
    assert by_value(module)["w"].cause == "in-place update"


def test_places_that_are_joined_to_look_something_up_are_no_concatenate() -> None:
    """Of an argmax whose result is looked up, jnp.take_along_axis was said to concatenate."""
    named = 'metadata={op_name="jit(f)/jit(take_along_axis)/gather"}'
    module = program(
        "%y = f32[64]{0} fusion(%x), kind=kLoop, calls=%sums",
        f"%z = f32[128]{{0}} concatenate(%x, %y), dimensions={{0}}, {named}",
        before=SUM
        + fused(
            "sums",
            "%n = f32[] constant(0)",
            "%r = f32[64]{0} reduce-window(%sums.p, %n), window={size=3}, to_apply=%sum",
        ),
    )
    assert by_value(module)["y"].cause == "reduction"
