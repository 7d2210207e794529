"""What flax nnx and equinox jit themselves, and what they hand to plain functions: the program is the one that runs."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

import fusionlint
from fusionlint.compiling import arguments
from fusionlint.compiling.entry import parse_spec
from fusionlint.compiling.jobs import compile_entry
from fusionlint.compiling.targets import get

jax = pytest.importorskip("jax")
nnx = pytest.importorskip("flax.nnx")
equinox = pytest.importorskip("equinox")
optax = pytest.importorskip("optax")
jnp = jax.numpy

X = jax.ShapeDtypeStruct((4, 8), "float32")


class Net(nnx.Module):
    def __init__(self) -> None:
        rngs = nnx.Rngs(0)
        self.first, self.drop = nnx.Linear(8, 8, rngs=rngs), nnx.Dropout(0.5, rngs=rngs)
        self.tied = self.first

    def __call__(self, x: Any) -> Any:
        return self.tied(self.first(x))

    def noisy(self, x: Any) -> Any:
        return self.drop(x)

    @nnx.jit
    def jitted(self, x: Any) -> Any:
        return self.drop(x)

    @nnx.jit
    def train(self, optimizer: Any, x: Any) -> Any:
        return step(self, optimizer, x)


def step(net: Net, optimizer: Any, x: Any, how: str = "mean") -> Any:
    loss, gradient = nnx.value_and_grad(lambda net: getattr(jnp, how)(net(x) ** 2))(net)
    optimizer.update(net, gradient)
    return loss


def grown(net: Net, x: Any) -> Any:
    net.kept = nnx.Intermediate(x * 2)
    return net(x)


def returning(net: Net, optimizer: Any, x: Any) -> Any:
    return net, optimizer, step(net, optimizer, x)


@pytest.fixture
def state() -> tuple[Net, Any]:
    net = Net()
    return net, nnx.Optimizer(net, optax.sgd(0.1), wrt=nnx.Param)


def sizes(function: Any, *args: Any, **kwargs: Any) -> tuple[int, int]:
    """How many arrays the program takes and returns."""
    jaxpr = arguments.traced(function, (args, kwargs)).jaxpr
    return len(jaxpr.in_avals), len(jaxpr.out_avals)


STEPS = {
    "plain": step,
    "jitted": nnx.jit(step),
    "as a tree": nnx.jit(step, graph_updates=False),
    "that returns what it was given": returning,
}


@pytest.mark.parametrize("how", STEPS)
def test_what_is_written_into_modules_is_a_result_of_the_program(how: str, state: tuple[Net, Any]) -> None:
    net, optimizer = state
    weights, of_the_optimizer, of_dropout = 2, 1, 2  # weights that are tied are one input
    inputs, outputs = sizes(STEPS[how], net, optimizer, X)
    assert inputs == weights + of_the_optimizer + of_dropout + 1
    assert outputs >= weights + of_the_optimizer + 1


def test_who_only_reads_a_module_returns_no_copy_of_it(state: tuple[Net, Any]) -> None:
    assert sizes(lambda net, x: net(x), state[0], X)[1] == sizes(state[0], X)[1] == 1
    assert sizes(lambda net, x: net.noisy(x), state[0], X)[1] > 1  # dropout counts its draws


def test_what_is_new_in_a_module_is_a_result_too(state: tuple[Net, Any]) -> None:
    assert sizes(grown, state[0], X)[1] == len(jax.tree.leaves(nnx.state(state[0]))) + 2


def test_a_method_takes_its_module_as_an_argument(state: tuple[Net, Any]) -> None:
    net, optimizer = state
    assert sizes(net.noisy, X) == sizes(net.jitted, X) == sizes(Net.jitted, net, X)
    assert sizes(net.train, optimizer, X) == sizes(step, net, optimizer, X)


def test_what_is_no_array_stays_part_of_the_program_beside_modules(state: tuple[Net, Any]) -> None:
    assert sizes(step, *state, X, how="sum") == sizes(step, *state, X, "sum") == sizes(step, *state, X)


def test_modules_are_as_they_were_after_they_were_explained(state: tuple[Net, Any]) -> None:
    before = jax.tree.leaves(nnx.state(state))
    fusionlint.explain(step, *state, X, target="cpu")
    fusionlint.explain(nnx.jit(step), *state, X, target="cpu")
    assert all(one is its for one, its in zip(before, jax.tree.leaves(nnx.state(state)), strict=True))


def captured(function: Any, *args: Any) -> fusionlint.Report:
    with fusionlint.capture() as capture:
        function(*args)
    (told,) = [one for one in capture.explain("cpu") if one.function.owner == "user"]
    (report,) = told.results
    return report


def same(report: fusionlint.Report, other: fusionlint.Report) -> bool:
    return (report.launches, report.bytes) == (other.launches, other.bytes)


def test_explain_and_capture_tell_of_the_same_program_of_nnx(state: tuple[Net, Any]) -> None:
    x = jnp.ones((4, 8))
    reports = [fusionlint.explain(one, *state, x, target="cpu") for one in (step, nnx.jit(step))]
    assert [one.entry.partition(":")[2] for one in reports] == [
        "step(net: 4 arrays, optimizer: u32[], x: f32[4,8])",
        "step(net: 4 arrays, optimizer: u32[], x: f32[4,8])",
    ]
    assert all(same(one, captured(nnx.jit(step), *state, x)) for one in reports)


def predict(model: Any, x: Any) -> Any:
    """Returns the model, of which the activation is no array."""
    return jax.tree.map(lambda leaf: leaf * 2 if equinox.is_array(leaf) else leaf, model), jax.vmap(model)(x), "words"


@pytest.mark.parametrize("donate", ["none", "warn", "warn-except-first"])
def test_explain_and_capture_tell_of_the_same_program_of_equinox(donate: str) -> None:
    jitted = equinox.filter_jit(predict, donate=donate)
    report = fusionlint.explain(jitted, model(), "f32[4,8]", target="cpu")
    assert same(report, captured(jitted, model(), jnp.ones((4, 8))))
    first, rest = (" donated" * one for one in (donate == "warn", donate != "none"))
    assert f"predict(model: 6 arrays{first}, x: f32[4,8]{rest})" in report.entry


def model() -> Any:
    return equinox.nn.MLP(8, 8, 8, 2, key=jax.random.key(0))


class Doubled(equinox.Module):
    weights: Any

    def step(self, x: Any) -> Any:
        return jnp.tanh(self.weights @ x)


def test_a_method_of_a_module_that_holds_arrays_is_explained_though_jax_jit_cannot_hash_it() -> None:
    """It was `unhashable type: 'jaxlib._jax.ArrayImpl'`: what users of such modules jit is filter_jit's."""
    report = fusionlint.explain(Doubled(jnp.ones((4, 4))).step, "f32[4]", target="cpu")
    assert report.launches >= 1


class Owner(equinox.Module):
    model: Any

    @equinox.filter_jit
    def predict(self, x: Any) -> Any:
        return predict(self.model, x)


def test_a_method_that_equinox_jits_takes_its_module_as_an_argument() -> None:
    owner = Owner(model())
    report = fusionlint.explain(owner.predict, "f32[4,8]", target="cpu")
    assert "Owner.predict(self: 6 arrays, x: f32[4,8])" in report.entry
    assert same(report, captured(owner.predict, jnp.ones((4, 8))))


def test_what_jax_cannot_take_or_return_is_said_in_one_line() -> None:
    said = [refused(one, model(), "f32[4,8]") for one in (predict, jax.jit(predict))]
    assert said[0].startswith("predict could not be traced: TypeError: ")
    assert "is not a valid JAX type; a program returns arrays alone: " in said[0]
    assert "; jax.jit takes arrays alone: " in said[1]


def refused(function: Any, *args: Any) -> str:
    with pytest.raises(fusionlint.ExplainError) as raised:
        fusionlint.explain(function, *args, target="cpu")
    assert "\n" not in str(raised.value)
    return str(raised.value)


def test_other_errors_of_the_function_stay_what_they_are() -> None:
    with pytest.raises(TypeError, match="got an unexpected keyword"):
        fusionlint.explain(lambda x: jnp.sum(x, nowhere=1), "f32[4]", target="cpu")


class Scaled(equinox.Module):
    inner: Any
    by: int = equinox.field(static=True)

    @equinox.filter_jit
    def apply(self, x: Any, *rest: int, how: str = "mean") -> Any:
        return getattr(jnp, how)(jax.vmap(self.inner)(x)) * self.by * sum(rest)


def test_static_arguments_of_filter_jit_are_told_by_the_users_own_names() -> None:
    first, other = model(), equinox.nn.MLP(8, 8, 8, 2, activation=jnp.tanh, key=jax.random.key(0))
    calls = [
        (Scaled(first, 2), (1,), {}),
        (Scaled(first, 2), (2,), {}),
        (Scaled(first, 2), (2,), {"how": "sum"}),
        (Scaled(first, 3), (2,), {"how": "sum"}),
        (Scaled(other, 3), (2,), {"how": "sum"}),
    ]
    with fusionlint.capture() as capture:
        for scaled, rest, named in calls:
            scaled.apply(jnp.ones((4, 8)), *rest, **named)
    (function,) = [one for one in capture.recording.functions if one.owner == "user"]
    assert [one.why for one in function.compilations] == [
        (),
        ("args[2] (static): 1 -> 2",),
        ("how (static): not given -> 'sum'",),
        ("self: Scaled with other static fields",),
        ("self.inner.activation (static): relu -> tanh",),
    ]
    assert function.compilations[0].static["args[2]"] == "1"


PROGRAM = """
import jax, optax
import jax.numpy as jnp
from flax import nnx

def step(net, optimizer, x):
    loss, gradient = nnx.value_and_grad(lambda net: jnp.mean(net(x) ** 2))(net)
    optimizer.update(net, gradient)
    return loss

jitted = nnx.jit(step)

def example_args():
    net = nnx.Linear(8, 8, rngs=nnx.Rngs(0))
    return net, nnx.Optimizer(net, optax.sgd(0.1), wrt=nnx.Param), jnp.ones((4, 8))
"""


@pytest.mark.compilers
@pytest.mark.parametrize("name", ["step", "jitted"])
def test_a_worker_compiles_a_train_step_of_nnx_whole(name: str, tmp_path: Any) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    found = compile_entry(parse_spec(f"{tmp_path / 'program.py'}:{name}"), get("cpu"))
    assert sorted(found.outputs) == ["float32[8,8]", "float32[8]", "float32[]", "uint32[]"]


def test_neither_library_is_imported_for_who_does_not_use_it() -> None:
    code = (
        "import sys, jax.numpy as jnp, fusionlint\n"
        "fusionlint.explain(jnp.sin, jnp.ones(3), target='cpu')\n"
        "assert not {'flax', 'equinox'} & set(sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
