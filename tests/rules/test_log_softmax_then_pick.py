"""log-softmax-then-pick: the logarithm of the sum has the axes of what is picked."""

from __future__ import annotations

import pytest
from fixes import fixed

from fusionlint.source.judging import check_text
from fusionlint.source.scope import Scope

CODE = """\
import jax
import jax.numpy as jnp

def loss(logits, labels):
    log_p = jax.nn.log_softmax(logits, axis={axis})
    return -{pick}.mean()
"""


@pytest.mark.parametrize(
    ("axis", "pick", "summed"),
    [
        # Of [4, 4, 50] and the best 4, [4, 4, 4] less [4, 4] is no error, and another loss.
        ("-1", "jnp.take_along_axis(log_p, labels, axis=-1)", "axis=-1, keepdims=True"),
        ("-1", "jnp.take_along_axis(log_p, labels[..., None], axis=-1)[..., 0]", "axis=-1, keepdims=True"),
        ("-1", "log_p[jnp.arange(8), labels]", "axis=-1"),
        ("0", "jnp.diag(log_p)", "axis=0"),
    ],
)
def test_what_is_subtracted_has_the_axes_of_what_is_picked(axis: str, pick: str, summed: str) -> None:
    code = CODE.format(axis=axis, pick=pick)
    (found,) = check_text(code.encode(), "m.py", Scope(("log-softmax-then-pick",)))
    assert found.suggestion is not None
    assert found.suggestion.text.startswith(pick.partition(")[")[0].replace("log_p", "logits"))
    assert found.suggestion.text.endswith(f" - jax.nn.logsumexp(logits, {summed})")


def test_the_sum_is_over_what_the_log_softmax_is_over() -> None:
    """Of `where=` the whole sum would count what is ruled out, and the loss would be another."""
    code = CODE.format(axis="-1, where=valid", pick="jnp.take_along_axis(log_p, labels, axis=-1)")
    (found,) = check_text(code.encode(), "m.py", Scope(("log-softmax-then-pick",)))
    assert found.suggestion is not None
    assert found.suggestion.text.endswith("logsumexp(logits, axis=-1, keepdims=True, where=valid)")
    assert not found.suggestion.edits


@pytest.mark.parametrize(
    ("picked", "more", "count"),
    [
        ("actions", "", 0),
        ("actions", "total = jax.nn.logsumexp(logits, axis=-1)", 1),
        ("actions", "vocab_size = logits.shape[-1]", 1),
        ("labels", "", 1),
    ],
)
def test_of_a_few_actions_nothing_is_claimed(picked: str, more: str, count: int) -> None:
    pick = f"jnp.take_along_axis(log_p, {picked}[:, None], axis=-1)"
    code = CODE.format(axis="-1", pick=pick).replace("labels)", f"{picked})")
    code = code.replace("    return", f"    {more}\n    return")
    assert len(check_text(code.encode(), "m.py", Scope(("log-softmax-then-pick",)))) == count


def test_a_long_line_is_broken_at_the_difference() -> None:
    code = """\
import jax
import jax.numpy as jnp

def loss(row_of_logits, number_of_rows, mask):
    all_log_probabilities = jax.nn.log_softmax(row_of_logits)
    log_probabilities = jnp.take_along_axis(all_log_probabilities, number_of_rows[..., None], axis=-1).squeeze(-1)
    return -(log_probabilities * mask).sum()
"""
    assert (
        fixed("log-softmax-then-pick", code)
        == """\
import jax
import jax.numpy as jnp

def loss(row_of_logits, number_of_rows, mask):
    log_probabilities = (
        jnp.take_along_axis(row_of_logits, number_of_rows[..., None], axis=-1)
        - jax.nn.logsumexp(row_of_logits, axis=-1, keepdims=True)
    ).squeeze(-1)
    return -(log_probabilities * mask).sum()
"""
    )
