"""callback-in-loop-body: how often a step reports, and how much."""

from __future__ import annotations

import pytest

from fusionlint.source.judging import check_text
from fusionlint.source.scope import Scope

ONLY = Scope(("callback-in-loop-body",))
LARGE = """\
import jax
import jax.numpy as jnp
import tree
from jax.experimental import io_callback

def train(state, log, n):
    def update(state, _):
        def step(x, _):
            return jnp.sin(x), x.sum()

        state, rewards = jax.lax.scan(step, state, None, 128)
        info = jax.tree.map(lambda x: x.mean(), {{"rewards": rewards}})
        total = rewards.sum() / rewards.max()
        {report}
        return state, rewards

    return jax.lax.scan(update, state, None, n)
"""
SMALL = """\
import jax

def train(x, log, n):
    def step(x, _):
        jax.debug.callback(log, x.mean())
        return x * 0.9, None

    return jax.lax.scan(step, x, None, n)
"""


def found(report: str) -> int:
    return len(check_text(LARGE.format(report=report).encode(), "m.py", ONLY))


@pytest.mark.parametrize(
    "report",
    [
        "jax.debug.callback(log, total)",
        "jax.debug.callback(log, rewards.mean())",
        "jax.debug.callback(log, jnp.max(rewards), ordered=True)",
        "jax.debug.callback(log, {'total': total, 'mean': rewards.mean() * 2.0})",
        "jax.debug.callback(log, info)",
        "io_callback(log, None, info)",
        "jax.debug.callback(log, (info, n, state.step))",
        "info = tree.map_structure(lambda x: x.mean(), n)\n        jax.debug.callback(log, info)",
        "info['step'] = n\n        jax.debug.callback(log, info, n)",
        "if n: info = info['rewards']\n        jax.debug.callback(log, info)",
        "info = {k: v for k, v in info.items() if k in n}\n        jax.debug.callback(log, info)",
        "info = {'step': state.step, 'mean': rewards.mean()}\n        info.update(n)\n"
        "        jax.debug.callback(log, info)",
    ],
)
def test_a_few_numbers_of_many_steps_are_a_report(report: str) -> None:
    assert found(report) == 0


@pytest.mark.parametrize(
    "report",
    [
        "jax.debug.callback(log, rewards)",
        "if n: jax.debug.callback(show, rewards)",
        "jax.debug.callback(state.log_to_wandb, rewards)",
        "jax.debug.callback(log, rewards.mean(axis=0))",
        "jax.debug.callback(log, jnp.mean(rewards, 0))",
        "every = rewards * 2.0\n        jax.debug.callback(log, {'total': total, 'all': every, 'own': rewards})",
    ],
)
def test_what_the_loop_returns_as_well_is_told_after_it(report: str) -> None:
    assert found(report) == 1


@pytest.mark.parametrize(
    "report",
    [
        "info = state.old\n        jax.debug.callback(log, info)",
        "jax.debug.callback(log, state)",
        "jax.debug.callback(log, jax.tree.map(lambda x: x * 2.0, info))",
        "jax.debug.callback(log, unseen)",
        "jax.debug.callback(log)",
    ],
)
def test_what_a_training_step_has_to_say_costs_little_beside_it(report: str) -> None:
    assert found(report) == 0


@pytest.mark.parametrize("called", ["log", "state.log_to_wandb", "wandb_callback"])
def test_a_log_that_is_switched_on_is_read_while_the_program_runs(called: str) -> None:
    assert found(f"if n: jax.debug.callback({called}, rewards)") == 0


@pytest.mark.parametrize(("asked", "number"), [("if n: ", 0), ("", 1)])
def test_who_asks_to_see_the_steps_has_each_drawn(asked: str, number: int) -> None:
    assert found(f"{asked}jax.debug.callback(state.env.render, rewards)") == number


@pytest.mark.parametrize(
    ("call", "number"),
    [
        ("jax.pure_callback(np.cbrt, x, x)", 1),
        ("jax.pure_callback(lambda x: np.cbrt(x), x, x)", 1),
        ("jax.pure_callback(ring, x, x)", 1),
        ("jax.experimental.io_callback(log.env.step, x, x)", 0),
        ("jax.pure_callback(simulate, x, x)", 0),
        ("equinox.filter_pure_callback(ring, x, result_shape_dtypes=x)", 1),
        ("equinox.filter_pure_callback(simulate, x, result_shape_dtypes=x)", 0),
    ],
)
def test_what_the_host_returns_is_found_where_it_is_seen_to_be_arithmetic(call: str, number: int) -> None:
    head = "import equinox\nimport numpy as np\nimport simulator\n\n"
    head += "def ring(x):\n    return np.roll(x, 1) + np.cos(x)\n\n"
    head += "def simulate(x):\n    return np.asarray(simulator.step(x))\n\n"
    text = head + SMALL.replace("jax.debug.callback(log, x.mean())", f"x = {call}")
    assert len(check_text(text.encode(), "m.py", ONLY)) == number


def test_one_number_of_one_small_step_is_no_report() -> None:
    assert len(check_text(SMALL.encode(), "m.py", ONLY)) == 1


@pytest.mark.parametrize(
    ("line", "number"),
    [
        ("if log.progress_bar: jax.debug.callback(log, n, x)", 0),
        ("if log: jax.debug.callback(show_progress, n, x)", 0),
        ("if log: jax.debug.callback(print_all, n, x)", 0),
        ("if log.verbose_output: jax.debug.callback(log, n, x)", 0),
        ("if log: jax.debug.callback(log, n, x)", 0),
        ("jax.debug.callback(show_progress, n, x)", 1),
    ],
)
def test_progress_is_shown_to_who_asks_for_it(line: str, number: int) -> None:
    text = SMALL.replace("jax.debug.callback(log, x.mean())", line)
    assert len(check_text(text.encode(), "m.py", ONLY)) == number


@pytest.mark.parametrize(
    ("line", "number"),
    [
        ("if log.render: jax.debug.callback(log.env.render, x)", 0),
        ("if log.render:\n            if n: x = jax.experimental.io_callback(log.env.render, x, x)", 0),
        ("if log.on: jax.experimental.io_callback(log.keep, None, x)", 0),
        ("jax.debug.callback(log.env.render, x)", 1),
    ],
)
def test_what_is_switched_on_is_asked_for(line: str, number: int) -> None:
    text = SMALL.replace("jax.debug.callback(log, x.mean())", line)
    assert len(check_text(text.encode(), "m.py", ONLY)) == number


@pytest.mark.parametrize(
    ("old", "new"),
    [("update", "train_and_eval_step"), ("(log, rewards)", "(save_checkpoint, rewards)")],
)
def test_an_evaluation_or_a_checkpoint_of_many_steps_is_told_at_once(old: str, new: str) -> None:
    code = LARGE.format(report="jax.debug.callback(log, rewards)")
    assert len(check_text(code.encode(), "m.py", ONLY)) == 1
    assert not check_text(code.replace(old, new).encode(), "m.py", ONLY)
    assert len(check_text(SMALL.replace("log", "save_checkpoint").encode(), "m.py", ONLY)) == 1


@pytest.mark.parametrize(
    ("report", "count"),
    [
        ("io_callback(lambda x: wandb.log(x, step=x['step']), None, rewards)", 0),
        ("io_callback(lambda x: [wandb.log(each) for each in x], None, rewards)", 1),
        (
            "def entry(told):\n            info, step = told\n            wandb.log(info, step=step)\n\n"
            "        io_callback(entry, None, (rewards, 1))",
            0,
        ),
    ],
)
def test_one_entry_of_a_log_for_many_steps_is_to_be_seen_at_once(report: str, count: int) -> None:
    assert found(report) == count
