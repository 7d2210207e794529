"""reads-one-by-one, beside steps that take so long that a wait more is nothing."""

from __future__ import annotations

import pytest

from fusionlint.source.judging import check_text
from fusionlint.source.scope import Scope

HEAD = """
import jax, jax.numpy as jnp
import numpy as np
import optax

step = jax.jit(lambda s, x: (s + x, s.sum(), s.max(), s > 0))
train_step = jax.jit(lambda s, x: (s + x, s.sum(), s.max(), s > 0))

@jax.jit
def descend(s, x):
    loss, grads = jax.value_and_grad(lambda s: jnp.sum(s * x))(s)
    return s - grads, loss, s.max(), s > 0

@jax.jit
def fit(s, x):
    loss, grads = jax.value_and_grad(lambda s: jnp.sum(s * x))(s)
    return optax.apply_updates(s, grads), loss, s.max(), s > 0

"""


def found(name: str, body: str) -> int:
    code = f"def drive(s, simulator, x):\n    while True:\n        s, a, b, c = {name}(s, x)\n        {body}\n"
    return len(check_text((HEAD + code).encode(), "m.py", Scope(("reads-one-by-one",))))


NUMBERS = "x = simulator(float(a), bool(b))"
MANY = "x = simulator(float(a), b.item(), int(s[0]), int(s[1]))"
ARRAYS = "x = simulator(np.asarray(a), np.asarray(c))"


@pytest.mark.parametrize(
    ("name", "body", "number"),
    [
        ("step", NUMBERS, 1),
        ("train_step", NUMBERS, 0),
        ("descend", NUMBERS, 0),
        ("descend", MANY, 1),
        ("descend", ARRAYS, 1),
        ("fit", MANY, 0),
        ("fit", ARRAYS, 1),
        ("step", f"{NUMBERS}; simulator.calculate(x)", 0),
        ("step", f"{NUMBERS}; simulator.calculated(x)", 1),
    ],
)
def test_a_wait_more_counts_beside_a_short_step(name: str, body: str, number: int) -> None:
    assert found(name, body) == number


CONDITION = """
import jax
import jax.numpy as jnp

def step(ones, others):
    if {condition}:
        return 1
"""
ALL = "all(jnp.allclose(x, 0) for x in jax.tree.leaves({}))"


@pytest.mark.parametrize(
    "condition",
    [ALL.format("ones"), f"{ALL.format('ones')} and not {ALL.format('others')} and {ALL.format('ones')}"],
)
def test_a_condition_is_told_once_however_often_it_waits(condition: str) -> None:
    findings = check_text(CONDITION.format(condition=condition).encode(), "m.py", Scope(("reads-one-by-one",)))
    assert [finding.location.column for finding in findings] == [8]


CHECKED = """
def goes_on(arrays):
    if len(arrays) > 3:
        wrong = any(jnp.isnan(x).any() for x in arrays.values())
        {line}
    return arrays

def drive(s, x):
    while True:
        s, *rest = step(s, x)
        goes_on(rest)
"""


@pytest.mark.parametrize(("line", "count"), [("print(wrong)", 1), ("raise ValueError(wrong)", 0)])
def test_what_is_asked_for_an_error_that_is_raised_is_asked_once(line: str, count: int) -> None:
    code = HEAD + CHECKED.format(line=line)
    assert len(check_text(code.encode(), "m.py", Scope(("reads-one-by-one",)))) == count


@pytest.mark.parametrize(
    ("over", "count"),
    [("jax.tree.leaves(ones)", 1), ("(others, *ones.values())", 1), ("ones", 0), ("others.gates", 0)],
)
def test_of_what_is_handed_over_there_may_be_one_or_two(over: str, count: int) -> None:
    code = CONDITION.format(condition=f"all(jnp.allclose(x, 0) for x in {over})")
    assert len(check_text(code.encode(), "m.py", Scope(("reads-one-by-one",)))) == count
    looped = code.replace("    if", "    while True:\n      if").replace("return 1", "  return 1")
    assert len(check_text(looped.encode(), "m.py", Scope(("reads-one-by-one",)))) == 1


@pytest.mark.parametrize(
    ("body", "number"),
    [
        (f"{ARRAYS}; frames.append(renderer.render(x))", 0),
        (f"{ARRAYS}; window.imshow(x)", 0),
        (f"{ARRAYS}; frames.append(x)", 1),
    ],
)
def test_a_wait_more_is_nothing_where_every_iteration_is_shown(body: str, number: int) -> None:
    assert found("step", body) == number


CUT = """
import jax, jax.numpy as jnp, numpy as np

@jax.jit
def expanded(costs):
    return jnp.argsort(costs), jnp.isfinite(costs).sum(), costs * 2.0

def visit(costs, most):
    order, count, targets = expanded(costs)
    n = int(count)
    {reads}
    return first, values

def run(batches, most):
    return [visit(costs, most) for costs in batches]
"""


@pytest.mark.parametrize(
    ("reads", "count"),
    [
        ("first = np.asarray(order[:n]); values = np.asarray(targets[first])", 0),
        ("first = np.asarray(order[:n]); first = first[:most]; values = np.asarray(targets[first])", 0),
        ("first = np.asarray(order[:n]); values = np.asarray(targets[:most])", 1),
        ("first = np.asarray(order); values = np.asarray(targets)", 1),
    ],
)
def test_what_is_cut_by_what_was_read_cannot_be_read_with_it(reads: str, count: int) -> None:
    assert len(check_text(CUT.format(reads=reads).encode(), "m.py", Scope(("reads-one-by-one",)))) == count
