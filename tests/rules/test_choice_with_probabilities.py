"""choice-with-probabilities: a coin for one of two has a probability where `choice` takes weights."""

from __future__ import annotations

import pytest

from fusionlint.source.judging import check_text
from fusionlint.source.scope import Scope

SCOPE = Scope(("choice-with-probabilities",))


@pytest.mark.parametrize(
    ("weights", "probability"),
    [
        ("[0.25, 0.75]", "0.25"),
        ("[1 / 3, 2 / 3]", "1 / 3"),
        ("[p, 1 - p]", "p"),
        ("[1.0 - p, p]", "1.0 - p"),
        ("[1.0, 3.0]", "1.0 / (1.0 + 3.0)"),
        ("[p, q]", "p / (p + q)"),
        ("[p * 1.0, q + 1]", "p * 1.0 / (p * 1.0 + (q + 1))"),
        ("[p > 0, q]", "(p > 0) / ((p > 0) + q)"),
    ],
)
def test_a_coin_has_the_share_of_the_first_weight(weights: str, probability: str) -> None:
    code = f"""\
import jax
import jax.numpy as jnp

def treasure(key, p, q):
    return jax.random.choice(key, jnp.array([7, 8]), p=jnp.array({weights}))
"""
    (found,) = check_text(code.encode(), "m.py", SCOPE)
    assert found.suggestion is not None
    assert found.suggestion.text == f"jnp.where(jax.random.bernoulli(key, {probability}), 7, 8)"


OF_A_SOURCE = """\
import jax
import jax.numpy as jnp

{head}
    levels = jnp.linspace(-1.0, 1.0, 4)
    {before}
    return jax.random.choice(key, levels, (n,), p=p)

def symbols(key):
    {call}
"""
FUNCTION, METHOD = "def symbol(key, n, p=None):", "class Source:\n  def symbol(self, key, n, p=None):"


@pytest.mark.parametrize(
    ("head", "before", "call", "count"),
    [
        pytest.param(FUNCTION, "", "return symbol(key, 8)", 0, id="nobody hands them on"),
        pytest.param(FUNCTION, "", "return symbol(key, 8, p=jnp.ones(4))", 1, id="by name"),
        pytest.param(FUNCTION, "", "return symbol(key, 8, jnp.ones(4))", 1, id="in their place"),
        pytest.param(FUNCTION, "if p is None: return key", "return symbol(key, 8)", 0, id="all leave it None"),
        pytest.param(FUNCTION, "if p is None: return key", "return key", 1, id="nobody is seen to call"),
        pytest.param(FUNCTION.replace("=None", ""), "", "return key", 1, id="they have to be given"),
        pytest.param(METHOD, "", "return key", 1, id="a method, which anybody may call"),
    ],
)
def test_what_is_none_by_default_has_to_be_handed_on(head: str, before: str, call: str, count: int) -> None:
    code = OF_A_SOURCE.format(head=head, before=before or "n = n + 0", call=call)
    assert len([*check_text(code.encode(), "m.py", SCOPE)]) == count


OF_A_FIELD = """\
import jax
import jax.numpy as jnp

class Source:
    def __init__(self, levels, p=None):
        self.levels = levels
        self.p = None if p is None else jnp.atleast_1d(p)

    def symbols(self, key, n):
        {before}
            return jax.random.choice(key, self.levels, (n,), p=self.p)

{made}
"""


@pytest.mark.parametrize(
    ("before", "made", "count"),
    [
        ("if n:", "", 1),
        ("if n:", "ONE = Source([0, 1])", 0),
        ("if n:", "ONE, OTHER = Source([0, 1]), Source([0, 1], p=[0.3, 0.7])", 1),
        ("if n:", "OTHER = Source([0, 1], [0.3, 0.7])", 1),
        ("if self.p is not None:", "OTHER = Source([0, 1], [0.3, 0.7])", 1),
    ],
)
def test_a_field_that_nobody_gives_is_none(before: str, made: str, count: int) -> None:
    assert len([*check_text(OF_A_FIELD.format(before=before, made=made).encode(), "m.py", SCOPE)]) == count


@pytest.mark.parametrize(
    ("before", "is_offered"),
    [
        ("if self.p is not None: n = len(self.p)\n        if n:", False),
        ("if self.p is not None:", True),
        ("if n:", True),
    ],
)
def test_where_a_field_may_be_none_nothing_is_summed(before: str, is_offered: bool) -> None:
    """jnp.cumsum(None) raises."""
    code = OF_A_FIELD.replace("None if p is None else jnp.atleast_1d(p)", "p").replace(", p=None", ", p")
    code = code.replace("self.levels, (n,)", "4, (n,)")
    (found,) = check_text(code.format(before=before, made="").encode(), "m.py", SCOPE)
    assert found.suggestion is not None
    assert bool(found.suggestion.edits) is is_offered


def test_a_draw_in_front_of_a_function_that_loops_from_it_on() -> None:
    code = """
import jax
def walk(carry, step):
    return jax.lax.scan(step, carry, length=100)
def walks(points, key, p, step):
    first = points[jax.random.choice(key, 64, (64,), p=p)]
    return {run}
"""
    for run, count in (("walk((first, key), step)", 0), ("step((first, key))", 1)):
        assert len([*check_text(code.format(run=run).encode(), "m.py", SCOPE)]) == count


@pytest.mark.parametrize(
    "given", ["[True, False]), (8,), p=jnp.array([p, 1 - p])", "[False, True]), (8,), p=jnp.array([1 - p, p])"]
)
def test_a_coin_is_true_or_false_as_it_is(given: str) -> None:
    code = f"""\
import jax
import jax.numpy as jnp

def alive(key, p):
    return jax.random.choice(key, jnp.array({given})
"""
    (found,) = check_text(code.encode(), "m.py", SCOPE)
    assert found.suggestion is not None
    assert found.suggestion.text == "jax.random.bernoulli(key, p, shape=(8,))"


@pytest.mark.parametrize(
    ("among", "p", "advised"),
    [
        ("x.shape[0]", "w", "jnp.log(w))"),
        ("len(x)", "jnp.where(x > 0,\n        w,\n        0.0)", "jnp.log(jnp.where(x > 0, w, 0.0)))"),
        ("n**2", "w", "jnp.log(w))"),
        ("len(x)", "jnp.exp(w)", "w)"),
        ("8", "jax.nn.softmax(w + 1)", "w + 1)"),
        ("8", "jax.nn.softmax(w, where=x > 0)", "jnp.log(jax.nn.softmax(w, where=x > 0)))"),
        ("x", "w", "jnp.log(w)) (an index into `x`, if an array)"),
    ],
)
def test_what_is_a_number_is_no_array_and_what_is_a_logarithm_is_not_taken_once_more(
    among: str, p: str, advised: str
) -> None:
    code = f"""\
import jax
import jax.numpy as jnp

def draw(key, x, w, n: int):
    return jax.random.choice(key, {among}, p={p})
"""
    (found,) = check_text(code.encode(), "m.py", SCOPE)
    assert found.suggestion is not None
    assert found.suggestion.text == f"jax.random.categorical(key, {advised}"


def test_of_weights_that_there_may_be_none_of_those_that_are_there_are_summed() -> None:
    code = """\
import jax
import jax.numpy as jnp

@jax.jit
def drawn(key, weights):
    return jax.random.choice(key, 64, (512,), p=weights if weights.size else None)
"""
    (found,) = check_text(code.encode(), "m.py", SCOPE)
    assert found.suggestion is not None
    assert found.suggestion.text == "jax.random.categorical(key, jnp.log(weights), shape=(512,))"


@pytest.mark.parametrize(
    ("draw", "count"),
    [
        ("jax.vmap(lambda k: jax.random.choice(k, n, p=p))(keys)", 0),
        ("jax.vmap(lambda k, p: jax.random.choice(k, n, p=p))(keys, p)", 1),
        ("jax.vmap(lambda k: jax.random.choice(k, 2, p=jnp.array([0.1, 0.9])))(keys)", 1),
        ("jax.vmap(lambda k: x[jax.random.choice(k, n, p=p)])(keys)", 1),
    ],
    ids=["of one table", "of a table each", "of a table of two", "beside more"],
)
def test_many_draws_of_one_table_sum_it_up_once(draw: str, count: int) -> None:
    code = f"import jax\nimport jax.numpy as jnp\n\ndef shots(keys, n, p, x):\n    return {draw}\n"
    assert len(check_text(code.encode(), "m.py", SCOPE)) == count


@pytest.mark.parametrize(("default", "count"), [("True", 1), ("False", 0), ("None", 0)])
def test_a_draw_is_with_replacement_where_that_is_the_default(default: str, count: int) -> None:
    code = f"""\
import jax

class Selector:
    def __init__(self, with_replacement: bool = {default}):
        self.with_replacement = with_replacement

    def select(self, key, cells, p):
        return jax.random.choice(key, cells, p=p, replace=self.with_replacement)
"""
    assert len(check_text(code.encode(), "m.py", SCOPE)) == count


@pytest.mark.parametrize(
    ("drawn", "count"),
    [
        ("state = jax.random.choice(key, 8, p=p)", 0),  # the first carry
        ("state = 0", 0),
        ("state = jax.lax.scan(lambda c, k: (jax.random.choice(k, 8, p=p), c), 0, xs)[0]", 1),
    ],
)
def test_one_draw_beside_a_scan_is_nothing_to_its_steps(drawn: str, count: int) -> None:
    code = f"""\
import jax

def sampled(key, p, xs):
    {drawn}
    return jax.lax.scan(lambda carry, x: (carry + x, carry), state, xs)
"""
    assert len(check_text(code.encode(), "m.py", SCOPE)) == count


@pytest.mark.parametrize(
    ("among", "drawn"),
    [
        ("jnp.array([0, 1, 2])", "{}"),
        ("jnp.int32([0, 1, 2])", "{}"),
        ("jnp.array([0, 1, 2], dtype=jnp.int32)", "{}"),
        ("jnp.uint8([0, 1, 2])", "jnp.uint8([0, 1, 2])[{}]"),
        ("jnp.array([0.0, 1.0, 2.0])", "jnp.array([0.0, 1.0, 2.0])[{}]"),
        ("jnp.array([1, 2, 3])", "jnp.array([1, 2, 3])[{}]"),
    ],
)
def test_numbers_that_stand_at_their_own_places_are_the_places(among: str, drawn: str) -> None:
    code = (
        f"import jax\nimport jax.numpy as jnp\n\ndef role(key, p):\n    return jax.random.choice(key, {among}, p=p)\n"
    )
    (found,) = check_text(code.encode(), "m.py", SCOPE)
    assert found.suggestion is not None
    assert found.suggestion.text == drawn.format("jax.random.categorical(key, jnp.log(p))")


@pytest.mark.parametrize(
    ("step", "count"),
    [
        ("jax.grad(loss)(params)", 0),
        ("nnx.value_and_grad(loss)(params)[1]", 0),
        ("loss(params)", 1),
        ("jax.lax.scan(lambda c, x: (c - jax.grad(loss)(c), x), params, p)[0]", 1),  # of another function
    ],
)
def test_one_draw_beside_a_gradient_is_nothing(step: str, count: int) -> None:
    code = f"""
import jax
from flax import nnx

@jax.jit
def trained(params, codes, p, key):
    params = params - {step}
    return params, codes[jax.random.choice(key, 6, shape=(6,), p=p)]
"""
    assert len(check_text(code.encode(), "m.py", SCOPE)) == count
