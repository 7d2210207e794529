"""Compilations and dispatches are counted exactly, and outputs compared.

The counts rest on private names of jax: where jax changes them, these tests fail by the numbers.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from fusionlint.compiling.artifacts import CompileError
from fusionlint.compiling.counting import (
    Counts,
    agree,
    agree_many,
    agreeing_job,
    count_calls,
    count_many,
    counting_job,
    operations,
)

USER = """
import functools
import jax
import jax.numpy as jnp

@jax.jit
def step(x):
    return x * 2 + 1

def loop_over_jit(x, n=20):
    for _ in range(n):
        x = step(x)
    return x

def jit_of_a_lambda_per_call(x, n=20):
    for _ in range(n):
        x = jax.jit(lambda y: y * 2 + 1)(x)
    return x

def jit_of_the_same_function_per_call(x, n=20):
    for _ in range(n):
        x = jax.jit(step)(x)
    return x

def eager(x, n=20):
    for _ in range(n):
        x = x * 2 + 1
    return x

def one_scan(x, n=20):
    return jax.lax.scan(lambda c, _: (step(c), None), x, None, length=n)[0]

one_jitted_scan = jax.jit(one_scan, static_argnames="n")

ahead_of_time = jax.jit(lambda x: x - 1).lower(jax.ShapeDtypeStruct((4,), "float32")).compile()

def ahead_of_time_in_a_loop(x, n=20):
    for _ in range(n):
        x = ahead_of_time(x)
    return x

@functools.partial(jax.jit, donate_argnums=0)
def donated(x):
    return x + 1

def statics(x):
    f = jax.jit(lambda y, k: y * k, static_argnums=1)
    return [f(x, k) for k in range(5)]

def growing(x):
    for _ in range(4):
        x = jnp.append(x, 1.0)
    return x

def reads(x):
    total, arrays = 0.0, []
    for _ in range(5):
        x = step(x)
        total += float(x.sum())
        arrays.append(x)
    return total, jax.device_get(arrays)

def fails(x):
    raise ValueError("no luck")
"""

EXPECTED = {
    ("loop_over_jit(f32[4])", False): Counts(1, 20),
    ("loop_over_jit(f32[4])", True): Counts(0, 20),
    ("loop_over_jit(f32[4], n=3)", True): Counts(0, 3),
    ("jit_of_a_lambda_per_call(f32[4])", True): Counts(20, 20),
    ("jit_of_the_same_function_per_call(f32[4])", True): Counts(0, 20),
    ("eager(f32[4])", False): Counts(2, 40),
    ("eager(f32[4])", True): Counts(0, 40),
    ("one_jitted_scan(f32[4], n=20)", False): Counts(1, 1),
    ("one_jitted_scan(f32[4], n=20)", True): Counts(0, 1),
    ("ahead_of_time_in_a_loop(f32[4])", False): Counts(0, 20),
    ("donated(f32[4])", True): Counts(0, 1),
    ("statics(f32[4])", True): Counts(5, 5),
    ("reads(f32[4])", True): Counts(0, 10, 6),  # what one device_get asks for comes together
}


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("user") / "calls.py"
    path.write_text(USER)
    return path


@pytest.fixture(scope="module")
def counted(path: Path) -> dict[tuple[str, bool], Counts | CompileError]:
    jobs = [counting_job(path, *_split(spec), warmup=warmup) for spec, warmup in EXPECTED]
    return dict(zip(EXPECTED, count_many(jobs), strict=True))


def _split(spec: str) -> tuple[str, str]:
    function, _, arguments = spec.partition("(")
    return function, f"({arguments}"


@pytest.mark.any_jax
@pytest.mark.parametrize("case", EXPECTED)
def test_a_call_is_counted_exactly_whatever_ran_before_it(
    counted: dict[tuple[str, bool], Counts | CompileError], case: tuple[str, bool]
) -> None:
    assert counted[case] == EXPECTED[case]


def test_one_call_alone_counts_the_same(path: Path) -> None:
    assert count_calls(path, "loop_over_jit", "(f32[4])") == Counts(1, 20)


def test_a_function_that_raises_is_one_line_at_its_own_line(path: Path) -> None:
    with pytest.raises(CompileError) as caught:
        count_calls(path, "fails", "(f32[4])")
    line = USER.splitlines().index('    raise ValueError("no luck")') + 1
    assert str(caught.value) == f"{path}:fails failed: ValueError: no luck ({path}:{line})"


ONE = """
import jax, jax.numpy as jnp
def same(x): return x.sum(), {"a": x}
def tuples(x): return [x[0], x[1]]
def keys(key): return jax.random.split(key)
def values(x): return x * 2
def shapes(x): return x[None]
def dtypes(x): return x
def numbers(x): return x, x
def nan(x): return x * jnp.nan
def integers(i): return i + 1
def donated(x): return x
donated = jax.jit(donated, donate_argnums=0)
def plain(n): return n
"""
OTHER = """
import jax, jax.numpy as jnp
def same(x): return [x[::-1].sum(), x]
def tuples(x): return jnp.split(x, 2)[0][0], x[1]
def keys(key): return jnp.stack([jax.random.split(key)[0], jax.random.split(key)[1]])
def values(x): return (x * 2).at[1].add(0.5)
def shapes(x): return x
def dtypes(x): return x.astype("bfloat16")
def numbers(x): return x
def nan(x): return x * jnp.nan
def integers(i): return i + 2
def donated(x): return x
donated = jax.jit(donated, donate_argnums=0)
def plain(n): return n
"""
AGREEMENTS = {
    "same(f32[1000])": None,
    "tuples(f32[2])": None,
    "keys(key)": None,
    "nan(f32[3])": None,
    "donated(f32[3])": None,
    "plain(3)": None,
    "values(f32[4])": "output 0 differs at [1]: ",
    "shapes(f32[4])": "output 0 is float32[1, 4] against float32[4]",
    "dtypes(f32[4])": "output 0 is float32[4] against bfloat16[4]",
    "numbers(f32[4])": "2 outputs against 1",
    "integers(s32[])": "output 0 differs at [0]: ",
}


@pytest.fixture(scope="module")
def two_files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Two files of one name in two folders, as pages have them."""
    paths = [tmp_path_factory.mktemp(name) / "block.py" for name in ("bad", "good")]
    for path, text in zip(paths, (ONE, OTHER), strict=True):
        path.write_text(text)
    return paths[0], paths[1]


@pytest.fixture(scope="module")
def compared(two_files: tuple[Path, Path]) -> dict[str, str | CompileError | None]:
    jobs = [agreeing_job(*two_files, spec) for spec in AGREEMENTS]
    return dict(zip(AGREEMENTS, agree_many(jobs), strict=True))


@pytest.mark.parametrize("spec", AGREEMENTS)
def test_two_files_agree_or_the_first_difference_is_said(
    compared: dict[str, str | CompileError | None], spec: str
) -> None:
    expected, found = AGREEMENTS[spec], compared[spec]
    assert found == expected if expected is None else str(found).startswith(expected)


def test_one_pair_alone_is_compared_the_same(two_files: tuple[Path, Path]) -> None:
    assert agree(*two_files, "same(f32[1000])") is None


def test_operations_are_those_of_the_text_before_xla_and_a_shared_function_counts_once() -> None:
    text = """module @m {
  func.func public @main(%arg0: tensor<4xf32>) -> (tensor<4xf32>) {
    %0 = stablehlo.add %arg0, %arg0 : tensor<4xf32>
    %1 = call @f(%0) : (tensor<4xf32>) -> tensor<4xf32>
    %2 = call @f(%1) : (tensor<4xf32>) -> tensor<4xf32>
    return %2 : tensor<4xf32>
  }
  func.func private @f(%arg0: tensor<4xf32>) -> tensor<4xf32> {
    %0:2 = stablehlo.while(%a = %arg0, %b = %arg0) : tensor<4xf32>, tensor<4xf32>
     cond {
      stablehlo.return %c : tensor<i1>
    } do {
      %1 = "stablehlo.gather"(%a, %b) : tensor<4xf32>
      stablehlo.return %1, %b : tensor<4xf32>, tensor<4xf32>
    }
    return %0#0 : tensor<4xf32>
  }
}"""
    assert operations(text) == 5
