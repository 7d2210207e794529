"""eager-optimizer-update, in the loops that its page has no room for."""

from __future__ import annotations

import pytest

from fusionlint.source.judging import check_text
from fusionlint.source.scope import Scope

HEAD = """
import jax, jax.numpy as jnp, optax
from network import loss_fn

compiled_loss = jax.jit(loss_fn)
gradient = jax.jit(jax.grad(loss_fn))
loss_and_grad = jax.jit(jax.value_and_grad(loss_fn, has_aux=True))
opt_init, opt_update = optax.adam(0.1)
optimizer = optax.sgd(0.1)
compiled_update = jax.jit(optimizer.update)
"""


def lines(body: str, name: str = "main") -> list[int]:
    """Lines of the findings in a loop over `batches` with this body, counted from the body's first."""
    code = f"{HEAD}def {name}(params, state, average, batches):\n    for batch in batches:\n"
    start = code.count("\n") + 1
    code += "".join(f"        {line}\n" for line in body.splitlines()) + "    return params\n"
    found = check_text(code.encode(), "m.py", Scope(("eager-optimizer-update",)))
    return [finding.location.line - start for finding in found]


APPLY = "params = optax.apply_updates(params, updates)"


@pytest.mark.parametrize(
    ("body", "line"),
    [
        (f"grads = gradient(params, batch)\nupdates, state = optimizer.update(grads, state)\n{APPLY}", 1),
        (f"(loss, aux), grads = loss_and_grad(params, batch)\nupdates, state = opt_update(grads, state)\n{APPLY}", 1),
        (f"updates, state = optimizer.update(gradient(params, batch), state)\n{APPLY}", 0),
        (f"grads = jax.grad(compiled_loss)(params, batch)\nupdates, state = opt_update(grads, state)\n{APPLY}", 1),
        (f"f = jax.grad(compiled_loss)\nupdates, state = opt_update(f(params, batch), state)\n{APPLY}", 1),
        ("params = jax.tree.map(lambda p, g: p - g, params, gradient(params, batch))", 0),
        ("g = gradient(params, batch)\nparams = jax.tree_util.tree_map(jnp.subtract, params, g)", 1),
        (
            "g = gradient(self.params, batch)\nupdates, self.state = optimizer.update(g, self.state)\n"
            "self.params = optax.apply_updates(self.params, updates)",
            1,
        ),
        ("grads = gradient(state, batch)\nstate = state.apply_gradients(grads=grads)", 1),
        ("(loss, aux), grads = loss_and_grad(state.params, batch)\nstate = state.apply_gradients(grads=grads)", 1),
        (f"g = gradient(params, batch)\ng = clipped(g)\nupdates, state = opt_update(g, state)\n{APPLY}", 2),
        # A picture now and then is no reason to wait for each update.
        (
            f"g = gradient(params, batch)\nupdates, state = opt_update(g, state)\n{APPLY}\n"
            "if batch.last: plot_losses(g)",
            1,
        ),
        (
            f"g = gradient(params, batch)\nupdates, state = opt_update(g, state)\n{APPLY}\n"
            "if batch.last:\n    render_video(params)",
            1,
        ),
    ],
)
def test_an_update_that_python_makes(body: str, line: int) -> None:
    assert lines(body) == [line]


@pytest.mark.parametrize(
    "body",
    [
        f"updates, state = compiled_update(gradient(params, batch), state)\n{APPLY}",
        f"updates = gradient(params, batch)\n{APPLY}",
        "state.apply_gradients(zip(gradient(params, batch), params))",
        "state = state.apply_gradients(grads=batch)",
        "state = other.apply_gradients(grads=gradient(state, batch))",
        "average = jax.tree.map(lambda a, g: a + g, average, gradient(params, batch))",
        "g = gradient(params, batch)\nparams = jax.tree.map(lambda p: 2 * p, params)",
        "g = gradient(average, batch)\nparams = jax.tree.map(lambda p, g: p - g, params, g)",
        "g = jax.device_get(batch)\nparams = jax.tree.map(lambda p, g: p - g, params, g)",
        f"g = gradient(params, batch)\nif batch.last:\n    updates, state = opt_update(g, state)\n    {APPLY}",
        f"g = gradient(params, batch)\nupdates, state = opt_update(g, state)\n{APPLY}\nplot_losses(g)",
        f"g = gradient(params, batch)\nupdates, state = opt_update(g, state)\n{APPLY}\nwindow.render(params)",
    ],
)
def test_what_is_compiled_seldom_looked_at_or_no_update(body: str) -> None:
    assert lines(body) == []


def test_frames_that_are_drawn_when_the_loop_is_over() -> None:
    code = f"""{HEAD}
def main(params, state, batches):
    frames, losses = [], []
    for batch in batches:
        g = gradient(params, batch)
        updates, state = opt_update(g, state)
        {APPLY}
        frames.append(params)
    KEPT
"""
    for kept, count in (("animate(frames)", 0), ("animate(params)", 1), ("return frames", 1)):
        found = check_text(code.replace("KEPT", kept).encode(), "m.py", Scope(("eager-optimizer-update",)))
        assert len(found) == count, kept


def test_few_steps_and_tests_are_left_alone() -> None:
    body = f"updates, state = optimizer.update(gradient(params, batch), state)\n{APPLY}"
    assert lines(body, "test_training") == []
    assert lines("for _ in range(3):\n" + "".join(f"    {line}\n" for line in body.splitlines())) == []


@pytest.mark.parametrize(("turns", "count"), [("150", 0), ("TURNS", 0), ("5000", 1), ("len(batches)", 1)])
def test_a_hundred_steps_are_over_in_a_second(turns: str, count: int) -> None:
    body = f"grads = gradient(params)\n        updates, state = optimizer.update(grads, state)\n        {APPLY}"
    code = f"{HEAD}TURNS = 200\n\ndef main(params, state, batches):\n    for i in range({turns}):\n        {body}\n"
    assert len(check_text(code.encode(), "m.py", Scope(("eager-optimizer-update",)))) == count
