"""hlo.parse reads what jaxlib prints: the same program as jaxlib's own reader does, and the lines of the source."""

import os
import pickle
import random
import re
import time
from pathlib import Path

import pytest

from fusionlint.hlo import parse as hlo

HLO = Path(__file__).parent / "hlo"
TEXTS = sorted(path.name for path in HLO.glob("*.txt"))
PROGRAMS = (HLO / "programs.py").read_text(encoding="utf-8").split("\n")

# Where jaxlib's enum and its printer differ; async-start is printed as what it starts, but in none of the texts.
SAYS_OTHERWISE = {
    "sin": "sine",
    "cos": "cosine",
    "exp": "exponential",
    "expm1": "exponential-minus-one",
    "log1p": "log-plus-one",
    "clz": "count-leading-zeros",
    "population-count": "popcnt",
}


def read(name: str) -> hlo.Module:
    return hlo.parse((HLO / name).read_text(encoding="utf-8"))


def entry(module: hlo.Module) -> hlo.Computation:
    return module.computations[module.entry]


def one(line: str, before: str = "") -> hlo.Instruction:
    """The last instruction of a module that holds `before` and `line`."""
    text = f"HloModule m\n\nENTRY %e (p: f32[]) -> f32[] {{\n  %p = f32[] parameter(0)\n{before}  {line}\n}}\n"
    return list(entry(hlo.parse(text)).instructions.values())[-1]


@pytest.fixture(scope="module")
def jaxlib_reader():
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    bindings = pytest.importorskip("jaxlib._hlo", reason="jaxlib before 0.10 cannot list instructions")
    return bindings.hlo_module_from_text


@pytest.mark.parametrize("name", TEXTS)
def test_the_program_is_the_one_that_jaxlib_reads(name, jaxlib_reader):
    """jaxlib 0.10.2 reads the texts of all four versions, so none is left out."""
    theirs = {c.name: c.instructions() for c in jaxlib_reader((HLO / name).read_text(encoding="utf-8")).computations()}
    ours = read(name).computations
    assert ours.keys() == theirs.keys()
    for key, instructions in theirs.items():
        found = ours[key].instructions
        assert found.keys() == {item.name for item in instructions}
        for item in instructions:
            assert found[item.name].operands == tuple(operand.name for operand in item.operands())
            assert set(found[item.name].users) == {user.name for user in item.users()}
            assert found[item.name].opcode == printed_opcode(item.opcode)


def printed_opcode(opcode) -> str:
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", opcode.name.removeprefix("k")).lower()
    return SAYS_OTHERWISE.get(words, words)


@pytest.mark.parametrize("name", TEXTS)
def test_every_name_in_a_module_can_be_looked_up(name):
    module = read(name)
    for computation in module.computations.values():
        assert computation.instructions[computation.root].name == computation.root
        for item in computation.instructions.values():
            assert all(callee in module.computations for callee in item.called)
            assert all(item.name in computation.instructions[operand].users for operand in item.operands)
            assert all(item.name in computation.instructions[user].operands for user in item.users)
            assert len(set(item.users)) == len(item.users)


@pytest.mark.parametrize("name", TEXTS)
def test_a_fusion_has_as_many_parameters_as_operands(name):
    """Shapes and names with brackets, comments or commas would make them differ."""
    module = read(name)
    for computation in module.computations.values():
        for item in computation.instructions.values():
            if item.opcode in ("fusion", "call"):
                parameters = module.computations[item.called[0]].parameters
                shapes = tuple(computation.instructions[operand].shape.nbytes for operand in item.operands)
                assert tuple(parameter.shape.nbytes for parameter in parameters) == shapes


@pytest.mark.parametrize("name", TEXTS)
def test_instructions_of_a_kind_are_found_in_all_computations_in_printed_order(name):
    module = read(name)
    items = [item for part in module.computations.values() for item in part.instructions.values()]
    for opcode in ("while", "concatenate", "fusion", "none-such"):
        assert [*module.every(opcode)] == [item for item in items if item.opcode == opcode]


@pytest.mark.parametrize("name", TEXTS)
def test_a_fusion_has_a_body_and_does_what_stands_there(name):
    module = read(name)
    for item in (item for part in module.computations.values() for item in part.instructions.values()):
        body = module.body(item)
        assert (body is not None) == (item.opcode == "fusion")
        assert [*module.work_of(item)] == ([*body.instructions.values()] if body else [item])


@pytest.mark.parametrize("name", TEXTS)
def test_a_module_travels_to_another_process(name):
    module = read(name)
    assert pickle.loads(pickle.dumps(module)) == module


# Source lines ---------------------------------------------------------------------------------------------------------


def line_of(text: str) -> int:
    (number,) = (number for number, line in enumerate(PROGRAMS, 1) if text in line)
    return number


def sines(name: str) -> list[hlo.Instruction]:
    items = (item for part in read(name).computations.values() for item in part.instructions.values())
    return [item for item in items if item.opcode == "sine" and item.stack]


@pytest.mark.parametrize(
    "version", ["cpu_jax0.4.38", "cpu_jax0.8.1", "cpu_jax0.10.2", "h100_jax0.10.2", "v5e_jax0.10.2"]
)
def test_an_instruction_knows_its_line_in_every_format(version):
    found = sines(f"scan_{version}.txt")
    assert found
    assert {(item.stack[0].path, item.stack[0].line) for item in found} == {
        ("programs.py", line_of("carry = jnp.sin(carry) + 1"))
    }


@pytest.mark.parametrize("version", ["cpu_jax0.8.1", "cpu_jax0.10.2", "h100_jax0.10.2", "v5e_jax0.10.2"])
def test_columns_are_counted_from_one_and_the_end_is_exclusive(version):
    for item in sines(f"scan_{version}.txt"):
        frame = item.stack[0]
        line = PROGRAMS[frame.line - 1]
        assert frame.end_line == frame.line
        assert line[frame.column - 1 : frame.end_column - 1] in ("jnp.sin(carry)", "jnp.sin(carry) + 1")


def test_a_frame_of_a_version_without_columns_has_none():
    frame = sines("scan_cpu_jax0.4.38.txt")[0].stack[0]
    assert (frame.column, frame.end_line, frame.end_column, frame.function) == (None, None, None, "")


@pytest.mark.parametrize("target", ["cpu", "h100", "v5e"])
def test_a_stack_leads_from_the_line_to_its_callers(target):
    """It would not if parent_frame_id were taken as it is printed."""
    items = [
        item
        for part in read(f"nested_scan_{target}_jax0.10.2.txt").computations.values()
        for item in part.instructions.values()
    ]
    (stack,) = {item.stack for item in items if item.opcode == "cosine" and item.stack}
    places = [(frame.line, frame.function) for frame in stack if frame.path == "programs.py"]
    assert places == [
        (line_of("return jnp.cos(carry), None"), "nested_scan.<locals>.inner"),
        (line_of("lax.scan(inner"), "nested_scan.<locals>.outer"),
        (line_of("lax.scan(outer"), "nested_scan"),
    ]


def test_parents_are_taken_as_printed_once_xla_prints_them_right():
    text = (
        'HloModule m\n\nFileNames\n1 "a.py"\n\nFunctionNames\n1 "f"\n2 "g"\n\nFileLocations\n'
        "1 {file_name_id=1 function_name_id=1 line=3 end_line=3 column=0 end_column=9}\n"
        "2 {file_name_id=1 function_name_id=2 line=7 end_line=8 column=4 end_column=2}\n\nStackFrames\n"
        "1 {file_location_id=1}\n2 {file_location_id=2 parent_frame_id=1}\n\n"
        "ENTRY %e () -> f32[] {\n  ROOT %c = f32[] constant(0), metadata={stack_frame_id=2}\n}\n"
    )
    (item,) = entry(hlo.parse(text)).instructions.values()
    assert item.stack == (hlo.Frame("a.py", 7, 5, 8, 3, "g"), hlo.Frame("a.py", 3, 1, 3, 10, "f"))


def test_strings_are_unescaped():
    item = one(
        r'ROOT %c = f32[] constant(0), metadata={op_name="a \"b\" } \303\244\\" source_file="x.py" source_line=2}'
    )
    assert item.op_name == 'a "b" } ä\\'
    assert item.stack == (hlo.Frame("x.py", 2),)


# The grammar ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("printed", "nbytes"),
    [
        ("f32[]", 4),
        ("f32[64,3]{1,0}", 768),
        ("bf16[8]{0:T(8,128)(2,1)S(1)}", 16),
        ("pred[5]{0}", 5),
        ("s4[9]{0:E(4)}", 5),
        ("u2[5]{0}", 2),
        ("f8e4m3fn[7]{0}", 7),
        ("f4e2m1fn[3]{0}", 2),
        ("c128[2]{0}", 32),
        ("f32[<=10,2]{1,0}", 80),
        ("f32[?,2]{1,0}", 0),
        ("f32[0,7]{1,0}", 0),
        ("token[]", 0),
        ("opaque[]", 0),
        ("()", 0),
        ("(f32[2]{0}, (s32[], /*index=1*/pred[3]{0:T(512)}), /*index=2*/token[])", 15),
        ("b(f32[4]{0})", 16),
    ],
)
def test_a_shape_has_as_many_bytes_as_its_elements(printed, nbytes):
    assert one(f'ROOT %c = {printed} custom-call(), custom_call_target="x"').shape.nbytes == nbytes


def test_a_shape_keeps_its_parts_and_its_memory_space():
    shape = one("ROOT %c = (f32[2,3]{1,0:T(8,128)S(5)}, s32[]) custom-call()").shape
    assert shape == hlo.Shape("tuple", (), (hlo.Shape("f32", (2, 3), memory_space=5), hlo.Shape("s32")))


@pytest.mark.parametrize(
    "operands",
    [
        "%p, %q, %p",
        "%p, /*index=1*/%q, /*index=2*/%p",
        "f32[] %p, (f32[2,2]{1,0}, s32[]) %q, f32[]{:T(128)} %p",
        "p, q, p",
        "f32[] p, (f32[2,2]{1,0}, /*index=1*/s32[]) q, f32[]{:T(128)} p",
    ],
)
def test_operands_are_found_in_every_way_they_are_printed(operands):
    item = one(f"ROOT %r = f32[] custom-call({operands})", before="  %q = f32[] constant(2)\n")
    assert item.operands == ("p", "q", "p")


def test_parameters_are_sorted_by_their_numbers():
    lines = "".join(f"  %p{number} = f32[] parameter({number})\n" for number in reversed(range(12)))
    found = entry(hlo.parse(f"HloModule m\n\nENTRY %e {{\n{lines}}}\n"))
    assert [item.name for item in found.parameters] == [f"p{number}" for number in range(12)]
    assert found.root == "p0"


def test_dumps_without_percent_signs_and_signatures_are_read():
    text = 'HloModule m, is_scheduled=true\n\nf {\n  ROOT a = f32[] parameter(0)\n}, execution_thread="host"\n\n'
    text += "ENTRY e {\n  p = f32[] parameter(0)\n  ROOT c = f32[] call(p), to_apply=f\n}\n"
    module = hlo.parse(text)
    assert entry(module).instructions["c"].called == ("f",)
    assert entry(module).instructions["p"].users == ("c",)


def test_called_computations_stand_in_the_order_of_the_attributes():
    bodies = "".join(f"%{name} {{\n  ROOT %{name}.r = f32[] parameter(0)\n}}\n\n" for name in "abcd")
    tail = "ENTRY %e {\n  %p = f32[] parameter(0)\n"
    tail += "  %b1 = f32[] conditional(%p, %p, %p), branch_computations={%c, %a, /*index=2*/%b}\n"
    tail += "  %b2 = f32[] conditional(%p, %p, %p), true_computation=%d, false_computation=%a\n"
    tail += "  ROOT %w = f32[] while(%p), condition=%b, body=%c\n}\n"
    items = entry(hlo.parse("HloModule m\n\n" + bodies + tail)).instructions
    assert [items[name].called for name in ("b1", "b2", "w")] == [("c", "a", "b"), ("d", "a"), ("b", "c")]


def test_attributes_are_kept_as_printed():
    attributes = {
        "window": "{size=3x3 pad=1_1x1_1}",
        "dim_labels": "b01f_o01i->b01f",
        "replica_groups": "[2,4]<=[8]T(1,0)",
        "custom_call_target": r'"a, \"b={\""',
        "output_to_operand_aliasing": "{{0}: (0, {}), {1}: (1, {2})}",
        "control-predecessors": "{%p}",
        "backend_config": r'{"a":{"b":["}{",{"c":"\\"}]},"d":[]}',
        "metadata": '{op_name="x=1, y={2}"}',
    }
    printed = "".join(f", {key}={value}" for key, value in attributes.items())
    item = one(f"ROOT %c = f32[] custom-call(%p){printed}")
    assert dict(item.attributes) == attributes
    assert item.op_name == "x=1, y={2}"
    assert item.operands == ("p",)


def test_a_constant_keeps_its_value_and_has_no_operands():
    assert one("ROOT %c = s32[2,2]{1,0} constant({ { 1, 2 }, { 3, 4 } })").literal == "{ { 1, 2 }, { 3, 4 } }"
    assert (
        one('ROOT %c = c64[2]{0} constant({(1, 2), (3, -inf)}), metadata={op_name="x"}').literal
        == "{(1, 2), (3, -inf)}"
    )
    assert one("ROOT %c = f32[999]{0} constant({...})").operands == ()


def test_shuffled_attributes_and_random_strings_are_read_back():
    """Any bytes in a string, in any attribute, in any order: brackets in strings must not count."""
    rng = random.Random(0)
    for _ in range(300):
        pool = [f"k{i}" for i in range(rng.randrange(1, 6))]
        given = {key: "".join(rng.choice('ab,={}()[]%"\\ /*') for _ in range(rng.randrange(9))) for key in pool}
        quoted = {key: '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"' for key, value in given.items()}
        nested = {
            key: rng.choice(["%s", "{%s}", "{a=%s b={%s}}"]).replace("%s", value) for key, value in quoted.items()
        }
        item = one("ROOT %c = f32[] custom-call(%p)" + "".join(f", {key}={value}" for key, value in nested.items()))
        assert dict(item.attributes) == nested
        assert (item.operands, item.called) == (("p",), ())


# What is not HLO ------------------------------------------------------------------------------------------------------

GOOD = "HloModule m\n\nENTRY %e (p: f32[]) -> f32[] {\n  %p = f32[] parameter(0)\n  ROOT %r = f32[] negate(%p)\n}\n"


def test_the_sound_module_of_the_broken_ones_is_read():
    assert entry(hlo.parse(GOOD)).root == "r"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1: not HLO: the text is empty"),
        ("def f():\n    pass\n", "line 1: not HLO: expected 'HloModule', found 'def f():'"),
        ("module @jit_f {\n}\n", "line 1: not HLO: expected 'HloModule', found 'module @jit_f {'"),
        ("HloModule m\n", "line 2: the text ends and there was no ENTRY computation"),
        (GOOD.replace("ENTRY ", ""), "line 7: the text ends and there was no ENTRY computation"),
        (GOOD[:-3], "line 5: the text ends inside computation 'e'"),
        (GOOD.replace("negate(%p)", "negate(%p"), "line 5: expected an instruction, found 'ROOT %r = f32[] negate(%p'"),
        (GOOD.replace("negate(%p)", "negate(%q)"), "line 5: computation 'e' does not define 'q'"),
        (GOOD.replace("f32[] negate", "float negate"), "line 5: expected a shape, found 'float'"),
        (GOOD.replace("(%p)", "(%p), to_apply=%f"), "line 5: the text does not define the computation 'f'"),
        (GOOD.replace("(%p)", "(%p), a={"), "line 5: expected attributes of 'r', found ', a={'"),
        (GOOD.replace("{\n  %p", "{\n}\n\n  %p"), "line 4: computation 'e' is empty"),
        (GOOD + "nonsense\n", "line 7: expected a computation, found 'nonsense'"),
    ],
)
def test_text_that_is_not_hlo_is_named_by_its_line(text, message):
    with pytest.raises(hlo.HloSyntaxError) as raised:
        hlo.parse(text)
    assert str(raised.value) == message


@pytest.mark.parametrize("name", ["scan_cpu_jax0.10.2.txt", "scan_cpu_jax0.4.38.txt", "joined_v5e_jax0.10.2.txt"])
def test_a_text_cut_anywhere_is_an_error_of_one_line(name):
    text = (HLO / name).read_text(encoding="utf-8").rstrip()
    for cut in range(0, len(text) - 1, 97):
        with pytest.raises(hlo.HloSyntaxError, match=r"\Aline \d+: [^\n]+\Z"):
            hlo.parse(text[:cut])


# Speed ----------------------------------------------------------------------------------------------------------------


def test_reading_takes_time_in_proportion_to_the_text():
    """25 000 instructions in one computation: 0.2 s where this was written, minutes if anything were quadratic."""
    lines = "".join(
        f'  %add.{i} = f32[64,{i % 7}]{{1,0}} add(%add.{i - 1}, %p), metadata={{op_name="jit(f)/add{i}"}}\n'
        for i in range(1, 25_000)
    )
    text = f"HloModule m\n\nENTRY %e {{\n  %p = f32[] parameter(0)\n  %add.0 = f32[] negate(%p)\n{lines}}}\n"
    start = time.process_time()
    module = hlo.parse(text)
    assert time.process_time() - start < 5
    assert len(entry(module).instructions["p"].users) == 25_000


@pytest.mark.parametrize("junk", ["(", "(x)", "((x)(", "{", '{"a":{}},', '"a', '\\"', "[", ", a={", "%a, ", "f32[], ("])
@pytest.mark.parametrize("place", ["add(%p, ", "add(%p), a={", "add(%p), a="])
def test_no_text_makes_the_reader_hang(place, junk):
    start = time.process_time()
    with pytest.raises(hlo.HloSyntaxError):
        one(f"ROOT %a = f32[] {place}{junk * 3000}(")
    with pytest.raises(hlo.HloSyntaxError):
        one(f"ROOT %a = ({junk * 3000} {place}")
    assert time.process_time() - start < 2


@pytest.mark.parametrize(
    ("head", "numbers"),
    [
        ("", set()),
        (", input_output_alias={ {}: (0, {}, may-alias) }, entry_computation_layout={(f32[])->f32[]}", {0}),
        (", is_scheduled=true, input_output_alias={ {0}: (2, {}, may-alias), {1, 0}: (13, {1}, must-alias) }", {2, 13}),
        (', entry_computation_layout={(f32[], (f32[]))->f32[]}, frontend_attributes={a="{}: (0, x"}', set()),
    ],
)
def test_the_arguments_that_are_donated_stand_in_the_head(head: str, numbers: set[int]) -> None:
    assert hlo.parse(f"HloModule f{head}\n\nENTRY %e {{\n  ROOT %a = f32[] parameter(0)\n}}\n").donated == numbers
