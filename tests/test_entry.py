"""SPEC text -> Entry: what it may say, and how its errors say it right. No jax here."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys

import pytest

from fusionlint.compiling.artifacts import Job, read_job, write_job
from fusionlint.compiling.entry import Array, Entry, EntryError, Group, Key, Named, Static, parse_spec
from fusionlint.compiling.sizes import parse_dims, parse_mesh

F4 = Array("float32", (4,))


def arguments(text: str) -> tuple[object, ...]:
    """The arguments of a SPEC, those with names as pairs."""
    entry = parse_spec(f"m:f({text})")
    assert entry.args is not None
    return (*entry.args, *entry.kwargs)


def error(text: str) -> str:
    with pytest.raises(EntryError) as caught:
        parse_spec(text)
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "module", "function", "is_file"),
    [
        ("pkg.mod:step", "pkg.mod", "step", False),
        ("mod:Class.method", "mod", "Class.method", False),
        ("path/file.py:step", "path/file.py", "step", True),
        ("../my dir (old)/file.py:step", "../my dir (old)/file.py", "step", True),
        (r"C:\code\file.py:step", r"C:\code\file.py", "step", True),
        ("  pkg.mod:step  ", "pkg.mod", "step", False),
    ],
)
def test_a_spec_names_a_module_or_a_file_and_a_function(text: str, module: str, function: str, is_file: bool) -> None:
    for entry in (parse_spec(text), parse_spec(f"{text.strip()}(f32[4])")):
        assert (entry.module, entry.function, entry.is_file) == (module, function, is_file)


def test_no_parentheses_is_not_the_same_as_no_arguments() -> None:
    assert parse_spec("m:f").args is None
    assert parse_spec("m:f()").args == ()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("f32[8,128]", Array("float32", (8, 128))),
        ("float32[3]", Array("float32", (3,))),
        ("bf16[4]", Array("bfloat16", (4,))),
        ("i32[]", Array("int32", ())),
        ("s32[ ]", Array("int32", ())),
        ("f32[8,]", Array("float32", (8,))),
        ("u32[2]", Array("uint32", (2,))),
        ("pred[]", Array("bool", ())),
        ("bool[2]", Array("bool", (2,))),
        ("c64[2]", Array("complex64", (2,))),
        ("f8e4m3fn[2]", Array("float8_e4m3fn", (2,))),
        ("f32[0]", Array("float32", (0,))),
        ("~f32[]", Array("float32", (), weak=True)),
        ("~i32[3]", Array("int32", (3,), weak=True)),
        ("key", Key(())),
        ("key[]", Key(())),
        ("key[8]", Key((8,))),
    ],
)
def test_arrays_by_xlas_or_numpys_names_and_keys(text: str, expected: object) -> None:
    assert arguments(text) == (expected,)


@pytest.mark.parametrize(
    ("text", "shape", "spread"),
    [
        ("f32[8@data,128]", (8, 128), (("data",), ())),
        ("f32[8, 128@model]", (8, 128), ((), ("model",))),
        ("f32[8@(x,y)]", (8,), (("x", "y"),)),
        ("f32[8@()]", (8,), ()),
    ],
)
def test_arrays_are_spread_over_axes_as_jax_typeof_shows_it(
    text: str, shape: tuple[int, ...], spread: tuple[tuple[str, ...], ...]
) -> None:
    assert arguments(text) == (Array("float32", shape, spread=spread),)
    assert arguments(text.replace("f32", "key")) == (Key(shape, spread),)


def test_an_entry_knows_the_axes_of_all_its_arrays() -> None:
    assert parse_spec("m:f({w: f32[8@a]}, [key[4@(b,c)]], x=f32[2@d], n=3)").axes == {"a", "b", "c", "d"}
    assert parse_spec("m:f(f32[8])").axes == parse_spec("m:f").axes == set()


def test_a_mesh_is_read_in_the_order_of_its_axes() -> None:
    assert [*parse_mesh("data=4, model=2").items()] == [("data", 4), ("model", 2)]
    assert parse_mesh("") == {}


def test_only_arrays_are_of_weak_type() -> None:
    for text in ("~key[2]", "~key[]"):
        assert "`~` stands before an array of weak type: ~f32[]" in error(f"m:f({text})")
    assert "is neither an array" in error("m:f(~n)")


@pytest.mark.parametrize(
    "literal", ["3", "-1e-3", '"adam"', "None", "True", "(3, 4)", "[64, 64]", "{'a': 1}", "()", "1j"]
)
def test_any_python_literal_is_a_static_value(literal: str) -> None:
    (found,) = arguments(literal)
    assert isinstance(found, Static)
    assert repr(found.value) == repr(eval(literal))


@pytest.mark.parametrize("name", ["config", "jnp.bfloat16", "jax.nn.relu", "Mode.FAST"])
def test_a_name_is_what_the_module_has_under_it(name: str) -> None:
    assert arguments(name) == (Named(name),)
    assert arguments(f"({name}, f32[4])") == (Group("tuple", (Named(name), F4)),)


def test_empty_brackets_inside_a_string_stay_what_they_are() -> None:
    assert arguments('"a[] (b)", f32[]') == (Static("a[] (b)"), Array("float32", ()))


def test_pytrees_hold_arrays_and_static_values() -> None:
    assert arguments("(f32[4], key)") == (Group("tuple", (F4, Key(()))),)
    assert arguments("[f32[4], (f32[4], 3)]") == (Group("list", (F4, Group("tuple", (F4, Static(3))))),)
    bare, quoted = arguments("{w: f32[4], b: 2}, {'w': f32[4], 'b': 2}")
    assert bare == quoted == Group("dict", (F4, Static(2)), ("w", "b"))
    assert arguments("{0: f32[4]}") == (Group("dict", (F4,), (0,)),)


def test_arguments_may_have_names() -> None:
    assert arguments('f32[4], n=8, key=key, mode="x"') == (
        F4,
        ("n", Static(8)),
        ("key", Key(())),
        ("mode", Static("x")),
    )


@pytest.mark.parametrize(
    ("text", "column", "pointed", "says"),
    [
        ("m:f(f33[3])", 5, "f33[3]", "`f33` is no dtype: write f32, bf16"),
        ("m:f(f32[8], f32[a])", 17, "a", "a shape is whole numbers, as in f32[8,128]"),
        ("m:f(f32[-1])", 9, "-1", "a shape is whole numbers"),
        ("m:f(f32[True])", 9, "True", "a shape is whole numbers"),
        ("m:f(f32[8@2])", 9, "8@2", "or f32[8@data,128] over a mesh"),
        ("m:f(f32[8@(a,2)])", 9, "8@(a,2)", "a shape is whole numbers"),
        ("m:f(f32)", 5, "f32", "`f32` needs a shape: f32[8,128], or f32[] for a scalar"),
        ("m:f(-f32[3])", 5, "-f32[3]", "neither an array"),
        ("m:f({f32[2]})", 5, "{f32[2]}", "neither an array"),
        ("m:f({f32[2]: 3})", 6, "f32[2]", "a dict is written {w: f32[2,2], b: f32[2]}"),
        ("m:f(x=1, **d)", 12, "d", "write name=value"),
        ("m:f(x=f32[3], y=1, x=f32[4])", 22, "f32[4]", "`x` is given twice"),
        ("m:f({w: f32[2], b: f32[2], w: f32[3]})", 28, "w", "the dict has `w` twice"),
        ('m:f({"w": 1, w: 2})', 14, "w", "the dict has `w` twice"),
        ("m:f(f32[9999999999999999999999])", 5, "f32[9999999999999999999999]", "no array has so many elements"),
        ("m:f(f32[9999999999,9999999999])", 5, "f32[9999999999,9999999999]", "no array has so many elements"),
        ("m:f(1)(2)", 4, "(", "one pair of parentheses"),
        ('m:f("é", f33[3])', 10, "f33[3]", "`f33` is no dtype"),
    ],
)
def test_an_argument_that_cannot_be_read_is_pointed_at(text: str, column: int, pointed: str, says: str) -> None:
    first, excerpt, carets = error(text).splitlines()
    assert first.startswith(f"cannot read the SPEC at column {column}: ")
    assert says in first
    start = carets.index("^")
    assert excerpt[start : start + carets.count("^")] == pointed


@pytest.mark.parametrize("text", ["m:f(f32[3]", "m:f(f32[3]))", "m:f(x=1, f32[2])", "m:f(f32[2] f32[3])", "m:f(,)"])
def test_what_does_not_parse_is_said_with_a_place(text: str) -> None:
    first, excerpt, carets = error(text).splitlines()
    assert first.startswith("cannot read the SPEC at column ")
    assert excerpt == f"    {text}"
    assert carets.strip() == "^"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("step", "names no function: write package.module:function or path/file.py:function"),
        ("f(f32[3])", "names no function"),
        ("dir/file:step", "is not a Python file: write path/file.py:step"),
        ("train.ipynb:step(f32[8])", "`train.ipynb` is a notebook: ask in a cell of it, fusionlint.explain(step, ...)"),
        ("dir/train.ipynb:step", "is a notebook: ask in a cell of it, fusionlint.explain(step, ...)"),
        ("pkg.mod:", "write package.module:function"),
        ("pkg mod:step", "write package.module:function"),
        ("", "names no function"),
        ("dumps/gone", "there is neither a file nor a folder `dumps/gone`: write path/file.py:function"),
        ("dumps/gone.py", "names no function"),
    ],
)
def test_a_spec_without_a_function_says_how_to_name_one(text: str, says: str) -> None:
    assert says in error(text)
    assert "\n" not in error(text)


FULL = 'p/q.py:C.m(f32[8,128], key[2], {w: [bf16[], 3]}, n=(1, "a"))'


def test_an_entry_is_its_text_again() -> None:
    entry = parse_spec(FULL)
    assert parse_spec(entry.text) == entry
    assert pickle.loads(pickle.dumps(entry)) == entry


def test_a_spec_over_several_lines_is_named_in_one() -> None:
    entry = parse_spec('m:f(\n    f32[8],\n    "a  b",\n)\n')
    assert entry.text == 'm:f( f32[8], "a  b", )'
    assert parse_spec(entry.text) == entry


def test_a_job_survives_json() -> None:
    for job in (
        Job(parse_spec(FULL)),
        Job(parse_spec("m:f"), "agree", parse_spec("n:f()")),
        Job(Entry("m:f", "m", "f"), "count", warmup=True),
        Job(parse_spec("m:f"), dims=parse_dims(["batch=32", "rest=8,4", "...="])),
    ):
        assert read_job(json.loads(json.dumps(write_job(job)))) == job


def test_dims_have_one_size_or_several_or_none() -> None:
    found = parse_dims(["batch=32", "rest=8,4", "...=", "_=1"])
    assert found == {"batch": (32,), "rest": (8, 4), "...": (), "_": (1,)}
    assert parse_dims(["n=3", "n=3"]) == {"n": (3,)}
    assert parse_dims([]) == {}


@pytest.mark.parametrize(
    "text", ["batch", "=3", "batch=x", "batch=-1", "batch=3,", "batch=3.5", "b c=3", "3=3", "", "a=1 2"]
)
def test_a_dim_that_cannot_be_read_says_how_to_write_it(text: str) -> None:
    with pytest.raises(EntryError, match=r"cannot read the dim `.*`: write batch=32, or rest=8,4 for several axes"):
        parse_dims([text])


def test_a_dim_has_one_meaning() -> None:
    with pytest.raises(EntryError, match="the dim n has two sizes, 3 and 4,5"):
        parse_dims(["n=3", "n=4,5"])


@pytest.mark.parametrize("module", ["entry", "targets", "artifacts", "jobs", "counting"])
def test_the_parents_side_imports_neither_jax_nor_numpy(module: str) -> None:
    code = f"import sys, fusionlint.compiling.{module}; print(sorted({{'jax', 'jaxlib', 'numpy'}} & set(sys.modules)))"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "[]"
