"""The arguments of a function that is named without any: `example_args` beside it, then its annotations."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import pytest

from fusionlint.compiling.entry import EntryError
from fusionlint.compiling.sizes import parse_dims
from fusionlint.compiling.values import is_array, show, value_of_text

jax = pytest.importorskip("jax")
pytest.importorskip("jaxtyping")

import jax.numpy as jnp  # noqa: E402
from jaxtyping import Array, Bool, Float, Int, Key, jaxtyped  # noqa: E402

from fusionlint.compiling.found import Named, check, found, named_as  # noqa: E402


def step(x: Float[Array, "batch 3"], i: Int[Array, "n"], scale=2.0):
    return x


def rest(x: Float[Array, "*batch n"], *, mask: Bool[Array, "n"], key: Key[Array, ""], steps: int = 10):
    return x


def half(x: Float[Array, "batch 3"], y: jax.Array, n: int):
    return x


def bare(x, y):
    return x


def ready(steps=3):
    return steps


def said(function: Callable[..., Any], *dims: str, named: Named | None = None) -> str:
    """The arguments that are found, as a SPEC writes them."""
    args, kwargs = found(function, named or named_as(function), parse_dims(dims))
    check(function, "it", (args, kwargs))
    return ", ".join([*map(show, args), *(f"{name}={show(value)}" for name, value in kwargs.items())])


def error(function: Callable[..., Any], *dims: str, named: Named | None = None) -> str:
    with pytest.raises(EntryError) as caught:
        said(function, *dims, named=named)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.fixture
def module() -> Iterator[ModuleType]:
    made = ModuleType("of_the_user")
    sys.modules[made.__name__] = made
    yield made
    del sys.modules[made.__name__]


def in_module(function: Callable[..., Any], module: ModuleType) -> Callable[..., Any]:
    copy = functools.wraps(function)(lambda *args, **kwargs: function(*args, **kwargs))
    copy.__module__ = module.__name__
    return copy


def test_annotations_give_shapes_and_defaults_stay_what_they_are() -> None:
    assert said(step, "batch=32", "n=100") == "float32[32,3], int32[100]"
    assert said(rest, "batch=8,4", "n=2") == "float32[8,4,2], mask=bool[2], key=key"


def test_dims_without_a_size_are_named_once_with_their_arguments_and_how_to_give_them() -> None:
    assert error(step) == (
        'step needs a size for batch and n (x: "batch 3", i: "n"): say --dim batch=8 --dim n=8, '
        "or in Python dims={'batch': 8, 'n': 8}"
    )
    assert error(rest, "batch=8").startswith('rest needs a size for n (x: "*batch n", mask: "n"): say --dim n=8, ')
    assert error(step, "bacth=32", "n=5").endswith("; it has no dim bacth")


def test_an_annotation_without_a_shape_is_named_with_what_to_do() -> None:
    said = error(half, "batch=8")
    assert said.startswith(
        "half(x, y, n) needs arguments, and the annotations of `y: jax.Array` and `n: int` say no shapes"
    )
    for way in ('explain(half, "f32[8,128]"', "put `example_args = (...)` beside it", "annotate them with jaxtyping"):
        assert way in said
    assert error(bare).startswith("bare(x, y) needs arguments: give its arguments")


@pytest.mark.parametrize(
    "wrap",
    [
        pytest.param(jax.jit, id="jit"),
        pytest.param(functools.partial(jax.jit, static_argnames="scale"), id="jit-static"),
        pytest.param(jax.checkpoint, id="checkpoint"),
        pytest.param(lambda f: jaxtyped(f, typechecker=None), id="jaxtyped"),
        pytest.param(lambda f: functools.partial(f, scale=3.0), id="partial"),
        pytest.param(lambda f: jax.jit(functools.partial(f, scale=3.0)), id="jit-of-partial"),
        pytest.param(lambda f: type("Env", (), {"step": staticmethod(f)})().step, id="static-method"),
    ],
)
def test_annotations_are_found_below_wrappers(wrap: Callable[..., Any]) -> None:
    assert said(wrap(step), "batch=2", "n=4") == "float32[2,3], int32[4]"


def test_annotations_are_found_on_methods_and_on_objects_that_can_be_called() -> None:
    class Layer:
        def __call__(self, x: Float[Array, "n"]):
            return x

        def apply(self, x: Int[Array, "n"]):
            return x

    assert said(Layer(), "n=4") == "float32[4]"
    assert said(Layer().apply, "n=4") == said(jax.jit(Layer().apply), "n=4") == "int32[4]"


def test_annotations_are_found_on_the_methods_of_equinoxs_modules() -> None:
    equinox = pytest.importorskip("equinox")

    class Layer(equinox.Module):
        def __call__(self, x: Float[Array, "n"]):
            return x

        @equinox.filter_jit
        def apply(self, x: Int[Array, "n"]):
            return x

    assert said(Layer(), "n=4") == "float32[4]"
    assert said(Layer().apply, "n=4") == "int32[4]"


def test_what_a_partial_binds_is_not_asked_for() -> None:
    assert said(functools.partial(step, jnp.ones((2, 3))), "n=4") == "int32[4]"
    assert said(functools.partial(step, i=jnp.ones(3)), "batch=4") == "float32[4,3]"


def filter_vmap(function: Callable[..., Any]) -> Callable[..., Any]:
    return pytest.importorskip("equinox").filter_vmap(function)


@pytest.mark.parametrize("wrap", [jax.vmap, lambda f: jax.jit(jax.vmap(f)), filter_vmap], ids=["vmap", "jit", "filter"])
def test_vmap_adds_an_axis_that_neither_annotations_nor_examples_below_it_know(wrap: Callable[..., Any]) -> None:
    def one(x: Float[Array, "3"]):
        return x

    assert "with an axis for vmap that no annotation says" in error(wrap(one))
    one.example_args = ("f32[3]",)
    assert said(one) == "float32[3]"
    assert "with an axis for vmap that no annotation says" in error(wrap(one))


@pytest.mark.parametrize("outer", [lambda f: f, jax.jit, lambda f: jax.jit(jax.grad(f))], ids=["vmap", "jit", "grad"])
def test_examples_of_what_vmap_returned_are_its_own_whatever_wraps_it(outer: Callable[..., Any]) -> None:
    def one(x: Float[Array, "3"]):
        return x

    one.example_args = ("f32[3]",)
    mapped = jax.vmap(one)
    mapped.example_args = ("f32[8,3]",)
    assert said(outer(mapped)) == "float32[8,3]"


def test_examples_are_found_below_wrappers_that_keep_no_attributes() -> None:
    def one(x, n):
        return x

    one.example_args = ("f32[3]", 4)
    assert said(pytest.importorskip("equinox").filter_jit(one)) == "float32[3], 4"
    with pytest.raises(EntryError, match="needs arguments"):
        said(functools.partial(one, jnp.ones(3)))


def test_a_docstring_about_vectorizing_is_no_vmap() -> None:
    def batched(x: Float[Array, "n"]):
        """Vectorized version of step."""

    assert said(jax.jit(batched), "n=4") == "float32[4]"


EXAMPLES = {
    "arrays": ((jnp.ones((2, 3)), jnp.arange(4)), "float32[2,3], int32[4]"),
    "structs": ((jax.ShapeDtypeStruct((2, 3), "bfloat16"), "i32[4]"), "bfloat16[2,3], int32[4]"),
    "texts": (("f32[2,3]", {"name": "adam", "w": "f32[2]"}), "float32[2,3], {name: 'adam', w: float32[2]}"),
    "list": (["f32[2,3]", "key"], "float32[2,3], key"),
    "by name": ({"y": 3, "x": "f32[2,3]"}, "y=3, x=float32[2,3]"),
    "made": (lambda: ("f32[2,3]", 3), "float32[2,3], 3"),
}


@pytest.mark.parametrize("kind", EXAMPLES)
def test_example_args_are_what_explain_takes_on_the_function_or_in_its_module(kind: str, module: ModuleType) -> None:
    examples, expected = EXAMPLES[kind]
    own = in_module(bare, module)
    own.example_args = examples
    assert said(own) == said(jax.jit(own)) == expected
    named = in_module(bare, module)
    for module.example_args in ({"bare": examples}, lambda: {"bare": examples}):
        assert said(named) == said(jax.jit(named)) == expected
        assert said(named, named=Named("C.bare", ("C.bare", "bare"), "say")) == expected


def test_one_argument_need_not_be_a_tuple() -> None:
    def alone(x):
        return x

    alone.example_args = jnp.ones(3)
    assert said(alone) == "float32[3]"


def test_arguments_in_a_module_are_those_of_every_function_there_that_needs_some(module: ModuleType) -> None:
    module.example_args = ("f32[3]", 4)
    assert said(in_module(bare, module)) == "float32[3], 4"
    assert said(in_module(ready, module)) == ""
    module.example_args = {"ready": (5,)}
    assert said(in_module(ready, module)) == "5"
    assert "needs arguments" in error(in_module(bare, module))


def test_the_module_that_was_named_comes_before_the_functions_own(module: ModuleType) -> None:
    other = ModuleType("other")
    module.example_args, other.example_args = {"bare": ("f32[3]", 1)}, {"bare": ("f32[4]", 2)}
    named = Named("bare", ("bare",), "say", other)
    assert said(in_module(bare, module), named=named) == "float32[4], 2"
    other.example_args = {"else": ()}
    assert said(in_module(bare, module), named=named) == "float32[3], 1"


def test_example_args_come_before_annotations_but_for_sizes_that_are_given(module: ModuleType) -> None:
    both = in_module(step, module)
    both.example_args = ("f32[7,3]", "i32[7]")
    assert said(both) == "float32[7,3], int32[7]"
    assert said(both, "batch=2", "n=4") == "float32[2,3], int32[4]"
    assert said(both, "elsewhere=2") == "float32[7,3], int32[7]"
    assert "needs a size for n " in error(both, "batch=2")


def test_examples_that_do_not_fit_are_one_line() -> None:
    def of_two(x, y):
        return x

    of_two.example_args = ("f32[3]",)
    assert error(of_two) == "it(x, y) does not take (float32[3]): missing a required argument: 'y'"
    of_two.example_args = {"x": "f32[3]", "z": 3}
    assert "does not take (x=float32[3], z=3)" in error(of_two)
    many = [jnp.zeros((2, size)) for size in range(20)]
    of_two.example_args = (jnp.zeros(3), jax.tree_util.Partial(of_two, jnp.zeros((2, 2)), jnp.zeros(4)), many)
    assert error(of_two) == "it(x, y) does not take (float32[3], 2 arrays, 20 arrays): too many positional arguments"
    of_two.example_args = ("f32[3", 3)
    with pytest.raises(EntryError, match="cannot read the SPEC at column"):
        said(of_two)


class ByName:
    """Looks its names up, and says so where there is none, as the state of a library of evolution does."""

    def __getattr__(self, name: str) -> Any:
        raise KeyError(name)


def test_a_class_that_raises_something_else_for_a_name_it_has_not_is_no_array() -> None:
    """`no verdict: this jax or jaxlib is not known here: KeyError: 'shape'` was said of a whole compilation."""
    assert is_array(ByName()) is False
    assert is_array(jnp.ones(3)) is True


def test_a_text_that_is_no_shape_is_a_text_and_no_name() -> None:
    """What fusionlint.explain() is given has values of its own."""
    assert [value_of_text(text) for text in ("adam", "jnp.bfloat16", "__class__")] == [
        "adam",
        "jnp.bfloat16",
        "__class__",
    ]
