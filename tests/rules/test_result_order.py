"""jax hands a donated array to the first result of its shape, and XLA copies it where that is another's: so the results
have an order, which update-without-donation tells where the code has another."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import pytest

import fusionlint
from fusionlint.source.judging import check_text
from fusionlint.source.scope import Scope

LOOP = """\
import jax, optax

@jax.jit
def step({parameters}):
    grads = jax.grad(lambda params: (params @ batch).sum())(params)
    updates, opt_state = optimizer.update(grads, opt_state, params)
    params = optax.apply_updates(params, updates)
    return {results}

def fit(params, opt_state, batches, params_seen):
    for batch in batches:
        {results} = step({parameters})
        {after}
    return params
"""


def step(params, opt_state, batch):  # type: ignore[no-untyped-def]
    mean, square = opt_state
    grads = jax.grad(lambda params: jnp.sum(jnp.tanh(batch @ params)))(params)
    mean, square = 0.9 * mean + 0.1 * grads, 0.9 * square + 0.1 * grads**2
    return params - mean / jnp.sqrt(square), (mean, square)


def turned(params, opt_state, batch):  # type: ignore[no-untyped-def]
    return step(params, opt_state, batch)[::-1]


def swapped(opt_state, params, batch):  # type: ignore[no-untyped-def]
    return step(params, opt_state, batch)


def moved(function, donated, *given: object) -> float:  # type: ignore[no-untyped-def]
    return fusionlint.explain(jax.jit(function, donate_argnums=donated), *given, target="cpu").bytes


def test_xla_copies_what_is_donated_where_another_result_comes_first() -> None:
    params, state, batch = "f32[256,256]", ("f32[256,256]", "f32[256,256]"), "f32[8,256]"
    of_step, of_turned = functools.partial(moved, step), functools.partial(moved, turned)
    assert of_step(1, params, state, batch) > of_step((), params, state, batch)
    assert of_turned(1, params, state, batch) == of_turned((), params, state, batch)
    assert moved(swapped, (0, 1), state, params, batch) > moved(swapped, (), state, params, batch)


@pytest.mark.parametrize(
    ("parameters", "results", "after", "is_told"),
    [
        ("params, opt_state, batch", "params, opt_state", "params_seen.append(params)", True),  # the state alone
        ("params, opt_state, batch", "opt_state, params", "params_seen.append(params)", False),
        ("params, opt_state, batch", "params, opt_state", "", False),
        ("opt_state, params, batch", "params, opt_state", "", True),
        ("opt_state, params, batch", "opt_state, params", "", False),
    ],
)
def test_the_order_of_the_results_is_told_where_it_is_another(
    parameters: str, results: str, after: str, is_told: bool
) -> None:
    code = LOOP.format(parameters=parameters, results=results, after=after or "pass")
    (found,) = check_text(code.encode(), "m.py", Scope(("update-without-donation",)))
    assert found.suggestion is not None
    assert ("return what is donated first" in found.suggestion.text) == is_told


def test_what_goes_round_before_it_may_be_the_model_whatever_it_is_called() -> None:
    code = LOOP.format(
        parameters="params, opt_state, batch", results="params, opt_state", after="params_seen.append(params)"
    ).replace("params", "net")
    (found,) = check_text(code.encode(), "m.py", Scope(("update-without-donation",)))
    assert found.suggestion is not None
    assert "return what is donated first" in found.suggestion.text
