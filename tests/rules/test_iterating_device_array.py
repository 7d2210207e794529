"""iterating-device-array, in the loops that its page has no room for."""

from __future__ import annotations

import pytest

from fusionlint.source.judging import check_text
from fusionlint.source.scope import Scope

ONLY = Scope(("iterating-device-array",))
HEAD = "import jax, jax.numpy as jnp, rerun\nimport numpy as np\nNAMES = ('low', 'high', 'nan', 'inf', 'late')\n"


def found(body: str) -> int:
    code = f"{HEAD}def run(x, names):\n    y = jnp.sort(x)\n" + "".join(f"    {line}\n" for line in body.splitlines())
    return len(check_text(code.encode(), "m.py", ONLY))


@pytest.mark.parametrize(
    "body",
    [
        "return [float(v) for v in y]",
        "return [n * bool(v) for n, v in zip(names, y)]",
        "return [float(y[i]) for i in range(len(names))]",
        "return [np.asarray(y[0, i]) for i, n in enumerate(names)]",
        "return tuple(float(v) for v in y)",
        "n = min(500, len(names))\nreturn [float(v) for v in y[:n]]",
        "n = max(5, len(names))\nreturn [float(v) for v in y[:n]]",
        "if x is None:\n    kept = [float(v) for v in y]\n    return kept",
        "for i in jnp.arange(9):\n    names.plot(x[i])\n    names.label = f'b={float(y[i]):.2f}'",
        # A variable that is made of itself, as a parameter is of whatever it is handed.
        "x = jnp.asarray(x)\nreturn [float(x[i]) for i in range(len(x))]",
        "if names:\n    x = jnp.array(x)\nx = jnp.cumsum(x)\nreturn [float(x[i]) for i in range(len(x))]",
        # The error is raised elsewhere.
        "kept = [float(v) for v in y]\nif x is None:\n    raise ValueError\nreturn kept",
    ],
)
def test_elements_that_are_waited_for_one_by_one(body: str) -> None:
    assert found(body) == 1


@pytest.mark.parametrize(
    "body",
    [
        "for i in jnp.arange(9):\n    names.plot(x[i], label=f'b={float(y[i]):.2f}')",
        "return [n * bool(v) for n, v in zip(NAMES, y)]",
        "names = ['low', 'high', 'nan', 'inf', 'late']\nreturn [n * bool(v) for n, v in zip(names, y)]",
        "return [float(y[i]) for i in (0, 5, 10, 15)]",
        "return [load_table(int(v)) for v in y]",
        "for i in range(len(x)):\n    rerun.log('x', rerun.Points3D(x[i] * float(y[i])))",
        "for v in y:\n    with open(names[int(v)]) as file:\n        print(file.read())",
        "for i in range(y.shape[0]):\n    print(i, np.mean(np.asarray(y[i])))",
        "most = min(5, len(y))\nreturn [float(y[i]) for i in range(most)]",
        "return jnp.zeros(tuple(int(v) for v in y))",  # a shape has few axes
        "return [int(v) << 32 for v in jax.random.key_data(x)]",  # a key has two words
        "return [int(v) << i for i, v in enumerate(jax.random.key_data(x))]",
        "return {n: np.asarray(y[0, i]) for i, n in enumerate(names)}",
        "return {n: np.asarray(y[..., i]) for i, n in enumerate(names)}",  # a large part each time
        "return {n: np.asarray(y[:, i]) for i, n in enumerate(names)}",
        "if names.verbose:\n    for i in range(len(x)):\n        value = float(y[i])\n        print(i, value)",
        "n = min(5, len(names))\nreturn [float(v) for v in y[:n]]",
        "if x is None:\n    text = [n * bool(v) for n, v in zip(names, y)]\n    raise ValueError(''.join(text))",
    ],
)
def test_few_elements_and_those_that_somebody_is_told(body: str) -> None:
    assert found(body) == 0


@pytest.mark.parametrize(
    ("done", "count"),
    [
        ("graph = apply(graphs[i])", 1),
        ("graph = apply(graphs[i]); rows, columns = linear_sum_assignment(graph)", 0),
        ("graph = apply(graphs[i]); better = better or graph > best", 0),
        ("print(apply(graphs[i]))", 0),
    ],
)
def test_an_order_is_waited_for_where_nothing_else_of_the_loop_is(done: str, count: int) -> None:
    code = f"""
import jax
from scipy.optimize import linear_sum_assignment

def through(key, graphs, apply, better, best):
    for i in jax.random.permutation(key, len(graphs)):
        {done}
"""
    assert len(check_text(code.encode(), "m.py", ONLY)) == count


@pytest.mark.parametrize(("caller", "count"), [("__init__", 0), ("forward", 1)])
def test_a_few_settings_are_read_once_for_a_constructor(caller: str, count: int) -> None:
    code = f"""
import jax.numpy as jnp

def flags_of(mask):
    return [bool(one) for one in jnp.asarray(mask)]

class Network:
    def {caller}(self, mask):
        self.flags = flags_of(mask)

def main():
    Network([1, 0])
"""
    assert len(check_text(code.encode(), "m.py", ONLY)) == count


@pytest.mark.parametrize(("name", "count"), [("analyze_run", 0), ("_analyse", 0), ("advance", 1)])
def test_what_analyzes_a_run_goes_through_its_parts_once(name: str, count: int) -> None:
    code = f"{HEAD}def {name}(x, names):\n    y = jnp.sort(x)\n    for i, n in enumerate(names): n.keep(float(y[i]))\n"
    assert len(check_text(code.encode(), "m.py", ONLY)) == count
