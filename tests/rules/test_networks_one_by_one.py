"""networks-one-by-one: which networks are alike, and how many a vmap makes."""

from __future__ import annotations

import pytest

from fusionlint.source.judging import check_text
from fusionlint.source.scope import Scope

ONLY = Scope(("networks-one-by-one",))
HEAD = """\
import flax.linen as nn
import jax.numpy as jnp

class MLP(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.Dense(1)(nn.relu(nn.Dense(64)(x)))

class NoisyDense(nn.Module):
    @nn.compact
    def __call__(self, x):
        return x

class Critic(nn.Module):
    n: int
    @nn.compact
    def __call__(self, x, y):
"""


def counts(body: str) -> list[str]:
    """What each finding says is to be made at once."""
    code = HEAD + "".join(f"        {line}\n" for line in body.splitlines())
    found = [f.suggestion.text for f in check_text(code.encode(), "m.py", ONLY) if f.suggestion is not None]
    return [text.partition("axis_size=")[2].partition(")")[0] for text in found]


@pytest.mark.parametrize(
    ("body", "count"),
    [
        ("q = [MLP()(x) for _ in range(self.n)]\nreturn jnp.stack(q)", "self.n"),
        ("return jnp.concatenate([MLP(name=f'q{i}')(x) for i in range(4)], -1)", "4"),
        ("q = []\nfor _ in range(2):\n    q.append(MLP()(x))\nreturn jnp.stack(q)", "2"),
        ("a = MLP()(x)\nb = MLP()(x)\nc = MLP(name='c')(x)\nreturn a, b, c", "3"),
    ],
)
def test_networks_alike_on_one_input(body: str, count: str) -> None:
    assert counts(body) == [count]


@pytest.mark.parametrize(
    "body",
    [
        "q = [MLP()(x[i]) for i in range(self.n)]\nreturn jnp.stack(q)",
        "q = [MLP()(x) for _ in range(1)]\nreturn jnp.stack(q)",
        "q = [NoisyDense()(x) for _ in range(4)]\nreturn jnp.stack(q)",
        "q = []\nfor _ in range(2):\n    x = MLP()(x)\n    q.append(MLP()(x))\nreturn jnp.stack(q)",
        "a = MLP()(x)\nb = MLP()(y)\nreturn a, b",
        "a = MLP()(x)\nb = Critic()(x)\nreturn a, b",
        "a = MLP()(x)\nx = x + y\nb = MLP()(x)\nreturn a, b",
        "a = NoisyDense()(x)\nb = NoisyDense()(x)\nreturn a * b",
    ],
)
def test_others_are_left_alone(body: str) -> None:
    assert counts(body) == []


@pytest.mark.parametrize(
    ("imported", "linen"),
    [("import flax.linen as nn", "nn"), ("from flax import linen as nn", "nn"), ("from flax import linen", "linen")],
)
def test_the_vmap_is_called_as_the_file_calls_it_and_its_results_are_a_list_of_them(imported: str, linen: str) -> None:
    """With `out_axes=-1` two values of [8, 1] were [8, 1, 2], where `jnp.concatenate` of two makes [8, 2] of them."""
    code = HEAD + "        return jnp.concatenate([MLP()(x) for _ in range(2)], axis=-1)\n"
    code = code.replace("import flax.linen as nn", imported).replace("nn.", f"{linen}.")
    (found,) = check_text(code.encode(), "m.py", ONLY)
    assert found.suggestion is not None
    text = found.suggestion.text
    assert text.startswith(f"{linen}.vmap(MLP, ")
    assert "out_axes" not in text


@pytest.mark.parametrize(
    ("drawn", "said"),
    [
        ("nn.Dropout(0.1)(x)", "split_rngs={'params': True, 'dropout': True}, in_axes=None, axis_size=2):"),
        ("x + jax.random.normal(self.make_rng('noise'))", "axis_size=2), with the names that make_rng is asked for in"),
    ],
)
def test_a_module_that_draws_is_handed_its_stream(drawn: str, said: str) -> None:
    """Without it flax 0.12 raises InvalidRngError: a vmap hands on the streams alone that `split_rngs` names."""
    code = HEAD.replace("        return x\n", f"        return {drawn}\n")
    code += "        q = [Noisy()(x) for _ in range(2)]\n        return jnp.stack(q)\n"
    code += "\nclass Noisy(nn.Module):\n    @nn.compact\n    def __call__(self, x):\n"
    code += "        return NoisyDense()(nn.Dense(4)(nn.Dense(64)(x)))\n"
    (found,) = check_text(code.encode(), "m.py", ONLY)
    assert found.suggestion is not None
    assert said in found.suggestion.text
