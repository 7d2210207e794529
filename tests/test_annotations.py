"""What jaxtyping's annotations say, read from jaxtyping's own classes, and from texts where these are not there."""

from __future__ import annotations

import dataclasses
import re
import subprocess
import sys
import typing
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, Optional, Union

import pytest

from fusionlint.compiling.entry import EntryError
from fusionlint.compiling.sizes import parse_dims
from fusionlint.compiling.values import show

jax = pytest.importorskip("jax")
jaxtyping = pytest.importorskip("jaxtyping")

import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from jaxtyping import Array, BFloat16, Float, Int, Key, PRNGKeyArray, Shaped  # noqa: E402

from fusionlint.compiling.annotations import axes_of, dims_of, shape_of, value  # noqa: E402

NAMES: Mapping[str, Any] = {**{name: getattr(jaxtyping, name) for name in dir(jaxtyping) if name[0] != "_"}}
NAMES = {**NAMES, "Array": jax.Array, "np": np, "Optional": Optional, "Union": Union, "jaxtyping": jaxtyping}
NAMES = {**NAMES, "PRNGKeyArray": PRNGKeyArray}
NOTHING: Mapping[str, Any] = {}


def said(annotation: object, *dims: str, names: Mapping[str, Any] = NAMES) -> str | None:
    """What the annotation says, as a SPEC writes it."""
    shape = shape_of(annotation, names)
    return None if shape is None else show(value(shape, parse_dims(dims)))


BOTH = {
    'Float[Array, "8 128"]': "float32[8,128]",
    'Float[Array, ""]': "float32[]",
    'Int[Array, " 3 "]': "int32[3]",
    'UInt[Array, "3"]': "uint32[3]",
    'Bool[Array, "3"]': "bool[3]",
    'Complex[Array, "3"]': "complex64[3]",
    'Num[Array, "3"]': "float32[3]",
    'Integer[Array, "3"]': "int32[3]",
    'Shaped[Array, "3"]': "float32[3]",
    'Float16[Array, "3"]': "float16[3]",
    'BFloat16[Array, "3"]': "bfloat16[3]",
    'UInt8[Array, "3"]': "uint8[3]",
    'Float8e4m3fn[Array, "3"]': "float8_e4m3fn[3]",
    'Key[Array, ""]': "key",
    'Key[Array, "4"]': "key[4]",
    "PRNGKeyArray": "key",
    "jaxtyping.PRNGKeyArray": "key",
    'jaxtyping.Float[np.ndarray, "rows=3 #4"]': "float32[3,4]",
    'Float[Array, "3"] | None': "float32[3]",
    'None | Float[Array, "3"]': "float32[3]",
    'Optional[Float[Array, "3"]]': "float32[3]",
    'Union[Float[Array, "3"], Int[Array, "4"]]': "float32[3]",
    'tuple[Float[Array, "3"], tuple[Key[Array, ""], Int[Array, "2"]]]': "(float32[3], (key, int32[2]))",
}


@pytest.mark.parametrize("text", BOTH)
def test_shapes_and_dtypes_are_read_from_jaxtypings_classes_and_from_texts_alike(text: str) -> None:
    written = eval(text, dict(NAMES))
    assert said(written) == said(text) == said(text, names=NOTHING) == BOTH[text]


def test_texts_in_quotes_and_forward_references_are_read_too() -> None:
    assert said("'Float[Array, \"3\"]'") == "float32[3]"
    assert said("\"Float[Array, '3']\"", names=NOTHING) == "float32[3]"
    assert said(typing.ForwardRef('Float[Array, "3"]')) == "float32[3]"
    assert said(Optional["Int[Array, '3']"]) == "int32[3]"


def test_a_text_may_use_names_of_its_own_module() -> None:
    image = Float[Array, "h w 3"]
    names = {**NAMES, "Image": image, "Pair": tuple[image, Float[image, "n"]]}
    assert said("Image", "h=8", "w=4", names=names) == "float32[8,4,3]"
    assert said("Pair", "h=8", "w=4", "n=2", names=names) == "(float32[8,4,3], float32[2,8,4,3])"


@pytest.mark.parametrize(
    ("axes", "dims", "sizes"),
    [
        ("batch 3", ["batch=32"], "32,3"),
        ("batch 3 batch", ["batch=32", "other=4"], "32,3,32"),
        ("#batch ?n", ["batch=2", "n=4"], "2,4"),
        ("_ _rows", ["_=2", "_rows=4"], "2,4"),
        ("*batch n", ["batch=8,4", "n=3"], "8,4,3"),
        ("*batch n", ["batch=8", "n=3"], "8,3"),
        ("*batch n", ["batch=", "n=3"], "3"),
        ("n ... 3", ["...=8,4", "n=2"], "2,8,4,3"),
        ("... 3", ["...="], "3"),
        ("*#rest", ["rest=2,1"], "2,1"),
        ("n+1 2*n n//2 n-m max(n,m)", ["n=4", "m=1"], "5,8,2,3,4"),
        ("{n} {n}+1", ["n=4"], "4,5"),
    ],
)
def test_dims_have_the_sizes_that_they_are_given(axes: str, dims: list[str], sizes: str) -> None:
    assert said(Float[Array, axes], *dims) == said(f'Float[Array, "{axes}"]', *dims, names={}) == f"float32[{sizes}]"


def test_the_names_of_dims_are_told_in_their_order() -> None:
    shape = shape_of(tuple[Float[Array, "batch 3 n+m"], Int[Array, "... #k batch _"]], {})
    assert shape is not None
    assert [*dims_of(shape)] == ["batch", "n", "m", "...", "k", "batch", "_"]
    assert axes_of(shape) == '("batch 3 n+m", "... #k batch _")'


@pytest.mark.parametrize(
    ("axes", "dims", "says"),
    [
        ("n", ["n=3,4"], "n is one axis, of one size, in an annotation: 2 sizes are given"),
        ("n", ["n="], "n is one axis, of one size, in an annotation: 0 sizes are given"),
        ("n-8", ["n=3"], 'the axis "n-8" of an annotation would have the size -5'),
        ("n/2", ["n=3"], 'the axis "n/2" of an annotation would have the size 1.5'),
        ("n//0", ["n=3"], 'the axis "n//0" of an annotation cannot be reckoned: '),
        ("n+", ["n=3"], 'the axis "n+" of an annotation cannot be read'),
    ],
)
def test_sizes_that_make_no_shape_are_one_line(axes: str, dims: list[str], says: str) -> None:
    with pytest.raises(EntryError, match=re.escape(says)):
        said(Float[Array, axes], *dims)


@pytest.mark.parametrize(
    "text",
    [
        *("Array", "jax.Array", "np.ndarray", "int", "float", "object()", "None", "", "not python", "jaxtyping.PyTree"),
        *('dict[str, Float[Array, "3"]]', 'list[Float[Array, "3"]]', 'tuple[Float[Array, "3"], int]', "tuple[()]"),
        *('tuple[Float[Array, "3"], ...]', 'jaxtyping.PyTree[Float[Array, "3"]]', '"Nested"', 'Literal["3"]'),
    ],
)
def test_what_says_no_shape_says_none(text: str) -> None:
    names = {**NAMES, "jax": jax, "Literal": typing.Literal}
    assert said(text, names={**names, "Nested": '"Nested"'}) is None
    assert said(text, names={}) is None


@pytest.mark.parametrize("text", ['Float[Image, "batch"]', 'Float[Float[Array, "3"], "n"]', 'Odd[Array, "3"]'])
def test_a_text_alone_whose_names_may_mean_more_says_nothing(text: str) -> None:
    assert said(text, names={}) is None


class State(NamedTuple):
    x: Float[Array, "batch 2"]
    key: PRNGKeyArray
    time: float = 0.0


@jax.tree_util.register_pytree_node_class
@dataclasses.dataclass
class Registered:
    x: Float[Array, "batch"]
    inner: State

    def tree_flatten(self) -> tuple[Any, None]:
        return (self.x, self.inner), None

    @classmethod
    def tree_unflatten(cls, _: None, parts: Any) -> Registered:
        return cls(*parts)


@dataclasses.dataclass
class Unknown:
    x: Float[Array, "3"]


@dataclasses.dataclass
class Endless:
    x: Float[Array, "3"]
    left: Endless


@dataclasses.dataclass(init=False)
class OfItsOwn:
    x: Float[Array, "3"]

    def __init__(self, size: Float[Array, "3"]) -> None:
        self.x = size


def made(annotation: object, *dims: str) -> Any:
    shape = shape_of(annotation, globals())
    assert shape is not None
    return value(shape, parse_dims(dims))


def test_the_fields_of_namedtuples_and_dataclasses_are_read_and_their_defaults_stay() -> None:
    state = made("State", "batch=4")
    assert isinstance(state, State)
    assert (state.x.shape, state.key.shape, state.time) == ((4, 2), (), 0.0)
    found = made(Registered, "batch=4")
    assert isinstance(found, Registered)
    assert [leaf.shape for leaf in jax.tree.leaves(found) if leaf != 0.0] == [(4,), (4, 2), ()]


def test_a_class_that_jax_cannot_take_apart_is_one_line() -> None:
    with pytest.raises(EntryError, match="Unknown is no pytree to jax: register it"):
        made(Unknown)


@pytest.mark.parametrize("annotation", [Endless, OfItsOwn, int, object])
def test_a_class_that_makes_its_fields_itself_or_holds_itself_says_no_shape(annotation: type) -> None:
    assert shape_of(annotation, globals()) is None


def test_custom_dtypes_by_name_and_by_pattern() -> None:
    class Narrow(jaxtyping.AbstractDtype):
        dtypes: typing.ClassVar = ["uint8", "uint16"]

    class Wide(jaxtyping.AbstractDtype):
        dtypes: typing.ClassVar = [re.compile("u?int(32|64)")]

    class Odd(jaxtyping.AbstractDtype):
        dtypes: typing.ClassVar = [re.compile("posit.*")]

    assert said(Narrow[Array, "3"]) == "uint8[3]"
    assert said(Wide[Array, "3"]) == "int32[3]"
    assert said(Odd[Array, "3"]) is None


def test_dtypes_are_those_of_jaxs_settings(tmp_path: Path) -> None:
    (tmp_path / "wide.py").write_text(
        "import jax\njax.config.update('jax_enable_x64', True)\n"
        "from jaxtyping import Array, Float, Float32, Int, Key\n"
        "from fusionlint.compiling.annotations import shape_of, value\n"
        "for one in (Float, Float32, Int):\n    print(value(shape_of(one[Array, '3'], {}), {}).dtype)\n"
    )
    done = subprocess.run([sys.executable, "wide.py"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["float64", "float32", "int64"]


def test_a_dtype_that_jax_would_narrow_is_refused() -> None:
    with pytest.raises(EntryError, match="jax runs in 32 bits"):
        said('Float64[Array, "3"]')


def test_what_is_annotated_is_what_jaxtyping_itself_accepts() -> None:
    """jaxtyping's own isinstance, on arrays made by the shapes that were read."""
    for one in (
        Float[Array, "2 n+1"],
        Int[Array, "n"],
        BFloat16[Array, "*rest 2"],
        Shaped[Array, "..."],
        Key[Array, "n"],
    ):
        struct = made(one, "n=4", "rest=2,3", "...=2,3,4")
        is_key = jax.dtypes.issubdtype(struct.dtype, jax.dtypes.prng_key)
        array = jax.random.split(jax.random.key(0), struct.shape) if is_key else jnp.zeros(struct.shape, struct.dtype)
        known = one if "n+1" not in one.dim_str else Float[Array, "2 5"]
        assert isinstance(array, known)
