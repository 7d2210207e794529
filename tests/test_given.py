"""What a compilation depends on beside shapes and static values is told as the reason for the next one."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import pytest

from fusionlint.compiling.calls import call_of
from fusionlint.compiling.given import Given, otherwise
from fusionlint.compiling.jobs import new_folder
from fusionlint.compiling.scripts import run_script
from fusionlint.recording import RecordedFunction

pytest.importorskip("jax")

pytestmark = [  # a program without JAX_PLATFORMS meets the compilers that are installed
    pytest.mark.compilers,
    pytest.mark.any_jax,
]

PROGRAM = """\
import os
os.environ["JAX_PLATFORMS"] = "cpu"
import functools
from collections import OrderedDict, namedtuple
import jax
import jax.numpy as jnp

x = jnp.ones(4)


@jax.jit
def two(a, b=None):
    return a + b if isinstance(b, jax.Array) else a


@jax.jit
def tree(p):
    return jax.tree.map(lambda leaf: leaf * 2, p)


@functools.partial(jax.jit, static_argnames="text")
def named(a, text):
    return a * len(text)


@functools.partial(jax.jit, static_argnames="shape")
def shaped(a, shape):
    return a * shape[0]


@functools.partial(jax.jit, static_argnames="shape")
def mixed(a, shape):
    return a * shape[0]


long = functools.partial(jax.jit, static_argnames="shape")(lambda a, shape: a * shape[1])


@jax.tree_util.register_pytree_node_class
class State:
    def __init__(self, value, rate):
        self.value, self.rate = value, rate

    def tree_flatten(self):
        return (self.value,), self.rate

    @classmethod
    def tree_unflatten(cls, rate, values):
        return cls(*values, rate)


@jax.jit
def step(s):
    return s.value * s.rate


@jax.jit
def product(a, b):
    return a @ b


def option(a):
    return a * 2


@jax.jit
def again(a):
    return a * 3


two(x, x)
two(x, b=x)
two(x)
two(x, None)
two(x, {})
First, Second = namedtuple("First", "a b"), namedtuple("Second", "a b")
tree((x, x))
tree([x, x])
tree(First(x, x))
tree(Second(x, x))
tree({"a": x, "b": (x, x)})
tree({"a": x, "b": [x, x]})
tree(OrderedDict(a=x, b=[x, x]))
named(x, "a" * 70)
named(x, "a" * 71)
shaped(x, tuple(range(10)))
shaped(x, (*range(9), 77))
shaped(x, (*range(10), ("b", jnp.sin)))
mixed(x, (*range(10), ("b", jnp.sin)))
mixed(x, (*range(10), ("c", jnp.sin)))
long(x, tuple(range(2000)))
long(x, (*range(1999), 7))
step(State(x, 2))
step(State(x, 3))
square = jnp.ones((4, 4))
jax.vmap(product, (0, None))(square, x)
jax.vmap(product, (1, None))(square, x)
jax.jit(option)(x)
jax.jit(option, compiler_options={"xla_embed_ir_in_executable": True})(x)
again(x)
again.clear_cache()
again(x)
"""


@cache
def compiled() -> dict[str, RecordedFunction]:
    script = new_folder() / "program.py"
    script.write_text(PROGRAM)
    return {one.name: one for one in run_script(str(script)).recording.functions}


def reasons(name: str) -> list[tuple[str, ...]]:
    return [one.why for one in compiled()[name].compilations[1:]]


def test_an_argument_given_by_name_or_not_at_all_is_told() -> None:
    assert reasons("two")[0] == ("b: given by position -> given by name",)
    assert reasons("two")[2:] == [("b: not given -> given by position",), ("b: None -> dict",)]


def test_containers_of_the_same_arrays_are_told_apart_at_any_depth() -> None:
    found = reasons("tree")
    assert found[0] == ("p: tuple -> list",)
    assert found[2] == ("p: First -> Second",)
    assert found[4] == ("p['b']: tuple -> list",)
    assert found[5] == ("p: dict -> OrderedDict",)


def test_static_values_whose_text_is_cut_are_told_apart() -> None:
    assert reasons("named") == [("text (static): another value, which begins alike",)]


def test_of_a_static_tuple_whose_text_is_cut_the_part_that_differs_is_told() -> None:
    assert reasons("shaped") == [
        ("shape[9] (static): 9 -> 77",),
        ("shape[10][0] (static): new, 'b'",),
    ]
    assert reasons("mixed") == [("shape[10][0] (static): 'b' -> 'c'",)]
    assert reasons("<lambda>") == [("shape (static): another value, which begins alike",)]  # too long to go through


def test_static_fields_of_a_class_are_told_apart() -> None:
    assert reasons("step") == [("s: State with other static fields",)]


def test_what_vmap_maps_is_told_and_no_spec_says_its_shape() -> None:
    assert reasons("product") == [("a: mapped by vmap over axis 0 -> mapped by vmap over axis 1",)]
    assert [one.spec for one in compiled()["product"].compilations] == [None, None]


def test_options_of_jit_are_told() -> None:
    (why,) = reasons("option")
    assert why[0].startswith("compiler_options of jit: ")
    assert "xla_embed_ir_in_executable" in why[0]


def test_where_nothing_is_seen_to_differ_that_is_said_and_the_cache_is_not_blamed_for_certain() -> None:
    ((why,),) = reasons("again")
    assert why.startswith("the same arguments, as far as fusionlint sees: ")


def test_the_same_is_not_otherwise() -> None:
    assert [*otherwise(Given(), Given())] == []
    one = Given({"a": "by name"}, {"a": ("tuple", 1)}, 1, {"n": 2}, {"inline": "False"})
    assert [*otherwise(one, one)] == []


def test_a_structure_that_was_not_looked_at_whole_is_another_pytree() -> None:
    assert [*otherwise(Given(tree=1), Given(tree=2))] == ["the same arrays in another pytree"]


def _n_by_default(x: object, n: int = 3, *, flag: bool = True) -> None: ...


def _any_number(x: object, *rest: object, flag: bool = True) -> None: ...


@pytest.mark.parametrize(
    ("function", "args", "argnums", "static"),
    [
        (_n_by_default, (1.0,), (1,), {"n": "3"}),
        (_n_by_default, (1.0, 4), (1,), {"n": "4"}),
        (_n_by_default, (1.0, 4), (-1,), {"n": "4"}),
        (_n_by_default, (1.0,), (-1,), {"x": "1.0"}),
        (_any_number, (1.0, 2), (1,), {"args[1]": "2"}),
    ],
)
def test_a_number_names_a_static_argument_as_jax_counts(
    function: Callable[..., None], args: tuple[object, ...], argnums: tuple[int, ...], static: dict[str, str]
) -> None:
    assert dict(call_of(function, args, {}, argnums, ()).static) == static
