"""cond-for-where: what is written where a conditional hands on what it is asked, and what it guards."""

from __future__ import annotations

from pathlib import Path

import compilers
import pytest

from fusionlint.rule import all_rules
from fusionlint.source.judging import check_text
from fusionlint.source.scope import Scope

IMPORTED = """
import jax.numpy as jnp
from jax import jit, lax
{imported}

def interpolated(values, points):
    @jit
    def place(point):
        i = jnp.int32(point)
        return lax.cond(i <= 1, lambda i: jnp.int32(2), lambda i: i, i)

    @jit
    def one(point):
        return values[place(point)]

    return mapped(jit(one))(points)
"""
CODE = """
import jax
import jax.numpy as jnp

@jax.jit
def solved(x, status, flag):
    failed = jnp.isnan(x[0])
    {statement}

def run(x, states):
    return jax.lax.scan(lambda x, state: (solved(x, *state), None), x, states)
"""


@pytest.mark.parametrize(
    ("test", "branches", "advice"),
    [
        ("jnp.any(x < 0)", ("True", "False"), "jnp.any(x < 0)"),
        ("status == 1", ("True", "False"), "status == 1"),
        ("status == 1", ("False", "True"), "jnp.logical_not(status == 1)"),
        ("failed", ("True", "False"), "failed"),
        # A number is no truth value.
        ("flag", ("True", "False"), "jnp.where(flag, True, False)"),
        ("status == 1", ("True", "failed"), "jnp.where(status == 1, True, failed)"),
    ],
)
def test_a_truth_that_is_handed_on_is_itself(test: str, branches: tuple[str, str], advice: str) -> None:
    conditional = f"jax.lax.cond({test}, lambda _: {branches[0]}, lambda _: {branches[1]}, 0)"
    (found,) = check_text(CODE.format(statement=f"return {conditional}").encode(), "m.py", Scope(("cond-for-where",)))
    assert found.suggestion is not None
    assert found.suggestion.text == advice


def test_what_is_seen_to_be_an_array_is_chosen_as_it_is() -> None:
    conditional = "jax.lax.cond(status == 1, lambda _: x[:4], lambda _: jnp.full_like(x[:4], jnp.nan), 0)"
    (found,) = check_text(CODE.format(statement=f"return {conditional}").encode(), "m.py", Scope(("cond-for-where",)))
    assert found.suggestion is not None
    assert found.suggestion.text == "jnp.where(status == 1, x[:4], jnp.full_like(x[:4], jnp.nan))"


def test_a_comparison_that_is_part_of_something_stands_in_parentheses() -> None:
    conditional = "jax.lax.cond(status > 1, lambda _: True, lambda _: False, 0)"
    code = CODE.format(statement=f"return failed | {conditional}")
    (found,) = check_text(code.encode(), "m.py", Scope(("cond-for-where",)))
    assert found.suggestion is not None
    assert [edit.text for edit in found.suggestion.edits] == ["(status > 1)"]


# What the share is made of is 0 as long as it is hot: with both branches done, its gradient would be NaN there.
GUARD = """
import jax
import jax.numpy as jnp

@jax.jit
def ionized(x, y, z):
    share = x * y / 2
    return jax.lax.cond(jnp.abs(share) < 5e-5, lambda: jnp.exp(y) * (1 - z), lambda: DIVIDED * jnp.sqrt(1 + y))
"""


@pytest.mark.parametrize(
    ("divided", "count"),
    [
        ("z / x", 0),
        ("z / share", 0),
        ("z / jnp.exp(z)", 1),
        ("z / 2", 1),
        ("jnp.log(share)", 0),
        ("jnp.log(1 + share)", 1),
        ("jnp.log(z)", 1),
        ("jnp.arccos(z)", 0),
    ],
)
def test_what_not_all_that_is_asked_about_has_is_guarded(divided: str, count: int) -> None:
    code = GUARD.replace("DIVIDED", divided)
    assert len(check_text(code.encode(), "m.py", Scope(("cond-for-where",)))) == count


@pytest.mark.parametrize(
    ("test", "product", "count"),
    [
        ("jnp.isinf(n)", "a * (n - 1)", 0),
        ("~jnp.isinf(n)", "a * (n - 1)", 1),
        ("jnp.isnan(n)", "a ** n", 0),
        ("jnp.isinf(n)", "a + n", 1),
        ("jnp.isinf(n)", "2 * a", 1),
        ("n > 3", "a * (n - 1)", 1),
    ],
)
def test_a_product_with_what_may_be_infinite_has_no_gradient(test: str, product: str, count: int) -> None:
    code = f"""
import jax
import jax.numpy as jnp

@jax.jit
def summed(a, n):
    return jax.lax.cond({test}, lambda a, n: a + 1, lambda a, n: {product}, a, n)
"""
    assert len(check_text(code.encode(), "m.py", Scope(("cond-for-where",)))) == count


@pytest.mark.parametrize(
    ("branches", "advice"),
    [
        (
            "lambda s: s.replace(pc=s.pc + 2), lambda s: s",
            "state.replace(pc=jnp.where(k == 3, state.pc + 2, state.pc))",
        ),
        (
            "lambda s: s.replace(target_params=s.params), lambda s: s",
            "s.replace(target_params=jax.tree.map(lambda a, b: jnp.where(p, a, b), new, s.target_params))",
        ),
        ("lambda s: s, lambda s: s._replace(a=s.a * 2, b=s.b)", "s._replace(a=jnp.where(p, new, s.a), ...)"),
        (
            "lambda _: more, lambda s: s.replace(pc=0)",
            "jnp.where(k == 3, more, state.replace(pc=0))",
        ),
        ("lambda _: state, lambda _: state.replace(pc=0)", "state.replace(pc=jnp.where(k == 3, state.pc, 0))"),
        (
            "lambda s: s.replace(pc=s.pc + 2), lambda s: s.replace(pc=0)",
            "jnp.where(p, a, b); for a tree: jax.tree.map(lambda a, b: jnp.where(p, a, b), new, old)",
        ),
        ("lambda _: more, lambda _: less", "jnp.where(k == 3, more, less)"),
    ],
)
def test_what_changes_is_chosen_by_itself_and_what_has_a_name_is_said_by_it(branches: str, advice: str) -> None:
    code = f"""
import jax
import jax.numpy as jnp

@jax.jit
def step(state, x, k):
    more = x * 2
    less = given(x)
    return jax.lax.cond(k == 3, {branches}, state)
"""
    (found,) = check_text(code.encode(), "m.py", Scope(("cond-for-where",)))
    assert found.suggestion is not None
    assert found.suggestion.text == advice


# Two defs that a factory returns; who runs them is not seen.
FACTORY = """
import jax
import optax

def clipping(largest):
    def FIRST(params):
        return params

    def SECOND(updates, norm, params=None):
        return jax.lax.cond(norm > largest, lambda v: v * largest / norm, lambda v: v, updates)

    return RETURNED
"""


@pytest.mark.parametrize(
    ("first", "second", "returned", "count"),
    [
        ("init", "update", "init, update", 1),
        ("init_fn", "update_fn", "optax.GradientTransformation(init_fn, update_fn)", 1),
        ("init_fn", "update_fn", "optax.GradientTransformation(init=init_fn, update=update_fn)", 1),
        ("energy", "update", "energy, update", 0),
        ("init", "step", "init, step", 0),
        ("init", "update", "update", 0),
        ("init", "update", "jax.vmap(update)", 0),
    ],
)
def test_what_is_returned_beside_an_init_is_an_optimizers_update(
    first: str, second: str, returned: str, count: int
) -> None:
    code = FACTORY.replace("FIRST", first).replace("SECOND", second).replace("RETURNED", returned)
    assert len(list(check_text(code.encode(), "m.py", Scope(("cond-for-where",))))) == count


@pytest.mark.parametrize(
    ("parameters", "returned", "count"),
    [
        ("i, key, updates, norm", "init, update, get_params", 1),
        ("i, key, updates, norm", "init, update", 0),
        ("i, key, state, norm", "init, update, get_params", 0),
    ],
)
def test_the_update_of_a_triple_may_be_told_a_step_and_a_key_before_the_gradients(
    parameters: str, returned: str, count: int
) -> None:
    code = FACTORY.replace("FIRST", "init").replace("SECOND", "update").replace("RETURNED", returned)
    code = code.replace("updates, norm, params=None", parameters)
    assert len(list(check_text(code.encode(), "m.py", Scope(("cond-for-where",))))) == count


@pytest.mark.parametrize(
    ("parameters", "count"), [("i, updates, norm", 1), ("state, position, updates, norm", 0), ("updates, norm", 1)]
)
def test_the_update_of_an_optimizer_takes_gradients_before_a_state(parameters: str, count: int) -> None:
    code = FACTORY.replace("FIRST", "init").replace("SECOND", "update").replace("RETURNED", "init, update")
    code = code.replace("updates, norm, params=None", parameters)
    assert len(list(check_text(code.encode(), "m.py", Scope(("cond-for-where",))))) == count


@pytest.mark.parametrize(
    ("size", "count"),
    [("x.shape[0]", 0), ("len(x)", 0), ("x.ndim", 0), ("status", 1), ("x[0]", 1), ("x.shape[0] - status", 1)],
)
def test_what_a_shape_decides_a_trace_knows(size: str, count: int) -> None:
    statement = f"m = {size}\n    return jax.lax.cond(m == 1, lambda _: 0, lambda _: status, None)"
    code = CODE.format(statement=statement)
    assert len(list(check_text(code.encode(), "m.py", Scope(("cond-for-where",))))) == count


SETTING = """
import jax
import jax.numpy as jnp
from functools import partial
from flax import nnx

class Model(nnx.Module):
    def __init__(self, learns: bool, gain: jax.Array):
        self.learns = learns
        self.gain = gain

    def __call__(self, x):
        return jax.lax.cond({test}, lambda: x, lambda: jax.lax.stop_gradient(x))

@partial(jax.jit, static_argnames=("fast",))
def run(x, fast, slow):
    return jax.lax.cond({of_run}, lambda: x, lambda: 2.0 * x)

def make(plain):
    def step(x):
        return jax.lax.cond(plain, lambda: x, lambda: 2.0 * x)
    return jax.jit(step)

def main():
    return make(True)(jnp.ones(3))
"""


@pytest.mark.parametrize(
    ("test", "of_run", "lines"),
    [
        ("self.learns", "fast", []),
        ("not self.learns", "fast and cfg.DEEP", []),
        ("self.gain > 0", "fast", [13]),
        ("self.learns", "slow", [17]),
        ("self.learns", "fast & (x[0] > 0)", [17]),
    ],
)
def test_of_what_python_knows_one_branch_is_left(test: str, of_run: str, lines: list[int]) -> None:
    code = SETTING.format(test=test, of_run=of_run)
    found = check_text(code.encode(), "m.py", Scope(("cond-for-where",)))
    assert [one.location.line for one in found] == lines


GAME = """
import jax
import jax.numpy as jnp
from functools import partial

class Game:
    @partial(jax.jit, static_argnums=0)
    def step(self, state):
        def struck(state):
            hit = self.sees
            hit &= {more}
            return jax.lax.cond(hit, lambda: state.replace(score=state.score + 1), lambda: state)

        return struck(state)
"""


@pytest.mark.parametrize(("more", "count"), [("self.counts", 0), ("state.y > self.top", 1)])
def test_what_an_augmented_assignment_adds_is_asked_too(more: str, count: int) -> None:
    assert len(check_text(GAME.format(more=more).encode(), "m.py", Scope(("cond-for-where",)))) == count


# Nothing says that this is compiled or runs again; what is asked is a result, no setting.
RESULT = """
import jax
import jax.numpy as jnp

def mean(x, w, low, limit):
    total = {total}
    sign = jax.lax.cond({test}, lambda: -1.0, lambda: 1.0)
    return sign * jnp.sum(x * w)
"""


@pytest.mark.parametrize(
    ("total", "test", "count"),
    [
        ("jnp.sum(w)", "total < 0", 1),
        ("jax.lax.fori_loop(0, 9, lambda i, c: c * x[i], 1.0)", "total < limit", 1),
        ("limit + 1", "total < 0", 0),
        ("jnp.sum(w)", "low == limit", 0),
        ("len(w)", "total < 4", 0),
    ],
)
def test_a_number_chosen_by_a_result_is_told_wherever_it_runs(total: str, test: str, count: int) -> None:
    code = RESULT.format(total=total, test=test).replace("lambda: 1.0", "lambda: low")
    assert len(check_text(code.encode(), "m.py", Scope(("cond-for-where",)))) == count


@pytest.mark.parametrize(
    ("branch", "count"),
    [
        ("lambda: 1.0", 0),
        ("lambda: low * 2", 0),
        ("lambda: (1.0,) * 5", 0),
        ("lambda: 2 * x['a']", 0),
        ("lambda: jnp.array([low])", 1),
        ("lambda: low", 1),
        ("lambda: x[3]", 1),
    ],
)
def test_numbers_that_both_are_computed_cost_no_kernel_outside_of_loops(branch: str, count: int) -> None:
    code = RESULT.format(total="jnp.sum(w)", test="total < 0").replace("lambda: 1.0", branch)
    assert len(check_text(code.encode(), "m.py", Scope(("cond-for-where",)))) == count
    looped = code + "\n\ndef run(x, w):\n    return jax.lax.fori_loop(0, 9, lambda i, x: x + mean(x, w, 1, 2), x)\n"
    assert len(check_text(looped.encode(), "m.py", Scope(("cond-for-where",)))) == 1


def test_numbers_of_another_type_and_lengths_are_numbers() -> None:
    code = """
import jax, jax.numpy as jnp

def cell(grid, point):
    i = jnp.int32(point)
    return jax.lax.cond(i >= grid.shape[0] - 1, lambda p: jnp.int32(grid.shape[0] - 2), lambda p: jnp.int32(p), i)

found = jax.jit(lambda grid, point: cell(grid, point))
"""
    assert not check_text(code.encode(), "m.py", Scope(("cond-for-where",)))
    compiled = code.replace("def cell", "@jax.jit\ndef cell")
    assert len(check_text(compiled.encode(), "m.py", Scope(("cond-for-where",)))) == 1


def test_arrays_computed_by_a_result_may_be_mapped() -> None:
    code = RESULT.format(total="jnp.sum(w)", test="total < 0").replace(
        "lambda: -1.0, lambda: 1.0", "lambda: 2 * x, lambda: w"
    )
    assert not check_text(code.encode(), "m.py", Scope(("cond-for-where",)))


MAPPED = """
import jax
import jax.numpy as jnp

@jax.jit
def modes(x, k_all, m_all):
    rows, columns = x.shape
    def mode(k, m):
        half = jax.lax.cond((rows % 2 == 0) & (k == rows / 2), lambda: 0.5, lambda: 1.0)
        half = jax.lax.cond((columns % 2 == 0) & (abs(m) == columns / 2), lambda: half / 2, lambda: half)
        return jnp.sum(x * half)
    return jax.vmap(lambda k: jax.vmap(lambda m: mode(k, m))(m_all))(k_all)
"""


def test_a_test_that_asks_a_number_of_the_shape_and_an_argument_of_the_vmap_is_mapped_too() -> None:
    assert not check_text(MAPPED.encode(), "m.py", Scope(("cond-for-where",)))


# Whoever calls it may map it: what is there already costs nothing to choose from all the same.
ACCEPTED = """
from typing import NamedTuple
import jax
import jax.numpy as jnp

class State(NamedTuple):
    q: jax.Array
    p: jax.Array

def kernel(state, proposal, log_p, key, should_move):
    accepted = jax.random.uniform(key) < jnp.exp(log_p)
    return jax.lax.cond({test}, lambda: {new}, lambda: {old})
"""


@pytest.mark.parametrize(
    ("test", "new", "old", "count"),
    [
        ("accepted", "proposal", "state", 1),
        ("jnp.isfinite(proposal.energy)", "(proposal.q, proposal.p)", "(state.q, state.p)", 1),
        ("accepted", "proposal", "State(state.q, jnp.zeros_like(state.p))", 1),
        ("should_move", "proposal", "state", 0),  # the caller may know
        ("accepted", "proposal", "state.q * 2", 0),  # computed, which a map would do for all
        ("accepted", "(proposal, True)", "(state, False)", 0),
    ],
)
def test_a_choice_between_what_is_there_is_told_where_no_trace_is_seen(
    test: str, new: str, old: str, count: int
) -> None:
    code = ACCEPTED.format(test=test, new=new, old=old)
    assert len(check_text(code.encode(), "m.py", Scope(("cond-for-where",)))) == count


COUNTED = """
import jax
import jax.numpy as jnp

def relaxed(x, limit):
    def step(i, state):
        x, last = state
        new = jnp.sin(x)
        return jax.lax.cond({test}, lambda: 0.4 * new + 0.6 * last, lambda: new), x
    return jax.lax.fori_loop(0, 25, step, (x, x))[0]

@jax.jit
def all_of(xs, limits):
    return jax.vmap(relaxed)(xs, limits)
"""


@pytest.mark.parametrize(("test", "count"), [("i > 0", 1), ("i > limit", 0), ("new.sum() > 0", 0)])
def test_under_a_vmap_the_counter_of_a_loop_is_the_same_for_all(test: str, count: int) -> None:
    assert len(check_text(COUNTED.format(test=test).encode(), "m.py", Scope(("cond-for-where",)))) == count


@pytest.mark.parametrize(("other", "count"), [("lambda x: x", 0), ("lambda x: x + 1", 1)])
def test_branches_that_are_the_same_are_no_choice(other: str, count: int) -> None:
    code = f"import jax\n\n@jax.jit\ndef f(p, x):\n    return jax.lax.cond(p, lambda x: x, {other}, x)\n"
    assert len(check_text(code.encode(), "m.py", Scope(("cond-for-where",)))) == count


@pytest.mark.parametrize(
    ("made", "count"),
    [
        ("s.update(q=s.q + 1, p=s.p)", 1),
        ("s.update(other)", 0),
        ("s.update()", 0),
        ("jnp.concatenate([s[:-1], s[-1:] * 2])", 1),
        ("jnp.pad(s[1:], (0, 1))", 1),
        ("jax.tree.map(jnp.copy, other)", 1),
        ("jax.tree.map(jnp.add, s, other)", 1),
        ("jax.tree.map(jnp.sort, s)", 0),
        ("jnp.sort(s)", 0),
    ],
)
def test_what_makes_a_state_anew_in_one_pass_is_cheap(made: str, count: int) -> None:
    code = "import jax\nimport jax.numpy as jnp\n\n@jax.jit\ndef f(p, s, other):\n"
    code += f"    return jax.lax.cond(p != 0, lambda s: {made}, lambda s: s, s)\n"
    assert len(check_text(code.encode(), "m.py", Scope(("cond-for-where",)))) == count


@pytest.mark.parametrize(
    ("imported", "count"),
    [
        ("from jax import vmap as mapped", 0),
        ("from jax._src.api import vmap as mapped", 0),
        ("from of_us import mapped", 1),
    ],
)
def test_a_map_is_one_wherever_it_is_imported_from(imported: str, count: int) -> None:
    code = f"{IMPORTED.format(imported=imported)}\nsteps = lax.scan(lambda c, x: (c + x, interpolated(c, x)), 0, 0)\n"
    assert len(check_text(code.encode(), "m.py", Scope(("cond-for-where",)))) == count


SAMPLER = """
import jax
import jax.numpy as jnp

def sample(model, sde, x, times, low):
    def step(x, t):
        gamma = jax.lax.cond(t > low, lambda: 0.1, lambda: t * 2)
        return {moved}, None
    return jax.lax.scan(step, x, times)[0]
"""


@pytest.mark.parametrize(
    ("moved", "count"),
    [("x * gamma", 1), ("sde.scale(low) * gamma", 1), ("model(x, gamma)", 0), ("sde.denoise(model, x, gamma)", 0)],
)
def test_a_few_numbers_beside_a_network_are_nothing(moved: str, count: int) -> None:
    code = SAMPLER.format(moved=moved)
    assert len(check_text(code.encode(), "m.py", Scope(("cond-for-where",)))) == count


FACTORED = """
import jax
import jax.numpy as jnp

@jax.jit
def factor(a, shifts):
    best = jnp.zeros_like(a)
    for shift in shifts:
        made = {made}
        best = jax.lax.cond(jnp.any(jnp.isnan(made)), lambda _: best, lambda _: made, None)
    return best
"""


@pytest.mark.parametrize(("made", "count"), [("jnp.linalg.cholesky(a * shift)", 0), ("jnp.tanh(a * shift)", 1)])
def test_a_choice_between_factors_is_nothing_beside_the_factorization(made: str, count: int) -> None:
    code = FACTORED.format(made=made)
    assert len(check_text(code.encode(), "m.py", Scope(("cond-for-where",)))) == count


FIELD = """
import diffrax, jax, jax.numpy as jnp

def weight(y):
    total = jnp.sum(y)
    return jax.lax.cond(total > 0, lambda: 1.0, lambda: 0.5 * total)

def field(t, y, args):
    return weight(y) * jax.lax.cond(jnp.sum(y) > 0, lambda y: y, lambda y: -y, y)

term = {term}
"""


@pytest.mark.parametrize(("term", "number"), [("diffrax.ODETerm(field)", 2), ("print(field)", 0)])
def test_what_a_solver_is_handed_runs_in_each_of_its_steps(term: str, number: int) -> None:
    text = FIELD.format(term=term).encode()
    assert len(check_text(text, "m.py", Scope(("cond-for-where",)))) == number


AGENTS = """
import jax

class Agent:
    def act(self, obs, key):
        return self._go(obs, key)

    @jax.jit
    def _go(self, obs, key):
        return jax.lax.cond(obs[0] > 0, lambda: obs + key, lambda: obs)

class Wrapped:
    def act(self, obs, key):
        return self.agent.act(obs, key)

class Population:
    def act_all(self, obs, keys):
        return {call}
"""


@pytest.mark.parametrize(
    ("call", "count"),
    [
        ("jax.vmap(self.policy.act)(obs, keys)", 0),
        ("jax.vmap(functools.partial(self.policy.act, obs))(keys)", 0),
        ("jax.vmap(lambda o, k: self.policy.act(o, k))(obs, keys)", 0),
        ("self.policy.act(obs, keys)", 1),
        ("jax.vmap(self.policy.act)(obs, keys), self.policy.act(obs[0], keys[0])", 1),
    ],
)
def test_a_method_that_vectorized_code_alone_calls_is_vectorized(call: str, count: int) -> None:
    code = AGENTS.format(call=call).replace("import jax\n", "import functools\nimport jax\n", 1)
    assert len(check_text(code.encode(), "m.py", Scope(("cond-for-where",)))) == count


@pytest.mark.parametrize(
    ("branches", "written"),
    [
        ("lambda: (x + 1.0, key), lambda: (x, key)", "(jnp.where(p, x + 1.0, x), key)"),
        # of a number a conditional makes an array
        (
            "lambda: (x + 1.0, 0.0), lambda: (x, 0.0)",
            "jax.tree.map(lambda a, b: jnp.where(p, a, b), (x + 1.0, 0.0), (x, 0.0))",
        ),
        (
            "lambda: (x + 1.0, x), lambda: (x, key)",
            "jax.tree.map(lambda a, b: jnp.where(p, a, b), (x + 1.0, x), (x, key))",
        ),
        (
            "lambda: jax.tree.map(lambda leaf: leaf, x), lambda: key",
            "jax.tree.map(lambda a, b: jnp.where(p, a, b), x, key)",
        ),
    ],
)
def test_what_both_branches_return_is_not_chosen(branches: str, written: str) -> None:
    code = f"import jax, jax.numpy as jnp\n\n@jax.jit\ndef step(p, x, key):\n    return jax.lax.cond(p, {branches})\n"
    (found,) = check_text(code.encode(), "m.py", Scope(("cond-for-where",)))
    assert found.suggestion is not None
    assert found.suggestion.edits[-1].text == written


def test_a_tuple_that_is_too_long_has_a_part_a_line() -> None:
    names = "temperature_of_the_bath, random_key_of_the_bath"
    code = (
        "import jax, jax.numpy as jnp\n\n@jax.jit\n"
        f"def step(positions, {names}):\n"
        "    return jax.lax.cond(\n"
        "        positions[0, 0] > 0,\n"
        f"        lambda: (positions + 1.0, {names}),\n"
        f"        lambda: (positions, {names}),\n    )\n"
    )
    (found,) = check_text(code.encode(), "m.py", Scope(("cond-for-where",)))
    assert found.suggestion is not None
    assert found.suggestion.edits[-1].text.splitlines() == [
        "(",
        "        jnp.where(positions[0, 0] > 0, positions + 1.0, positions),",
        "        temperature_of_the_bath,",
        "        random_key_of_the_bath,",
        "    )",
    ]


@pytest.mark.compilers
def test_the_conditional_is_named_where_another_line_is_shown(tmp_path: Path) -> None:
    """What goes into it is shown where it was made."""
    code = (
        "import jax, jax.numpy as jnp\n\n"
        "def step(w, old, p):\n"
        "    new = jnp.cumsum(w)\n"
        "    return jax.lax.cond(p > 0, lambda: 0.1 * new + 0.9 * old, lambda: old)\n"
    )
    specs = compilers.written(code, ["step(f32[65536], f32[65536], f32[])"], tmp_path)
    (report,) = compilers.explained(specs, "cpu", all_rules()).values()
    told = {one.barrier.stack[0].line: one.advice for one in report.barriers if one.rule == "cond-for-where"}
    assert told[4].endswith("in place of the cond of code.py:5")


@pytest.mark.parametrize(("inner", "is_guard"), [("jnp.sqrt(q * q - 1)", True), ("dt * q", False)])
def test_of_a_guard_inside_a_branch_no_choice_is_written_as_it_is(inner: str, is_guard: bool) -> None:
    """Where both are done, the roots of both are taken, and the gradient is NaN: `a(where(p, x, 1))` has one."""
    code = f"""
import jax
import jax.numpy as jnp

@jax.jit
def damped(dt, q, x):
    low, high = lambda: jnp.sinh({inner}) * x, lambda: jnp.sin({inner}) * x
    return jax.lax.cond(jnp.allclose(q, 0.5), lambda: dt * x, lambda: jax.lax.cond(q > 0.5, high, low))
"""
    (found,) = check_text(code.encode(), "m.py", Scope(("cond-for-where",)))
    assert found.suggestion is not None
    assert bool(found.suggestion.edits) is not is_guard
    assert ("handed only what it can work on" in found.suggestion.text) is is_guard


@pytest.mark.parametrize(
    ("place", "count"),
    [
        ("jnp.where(d == x, size=1, fill_value=-1)", 0),
        ("jnp.nonzero(d == x, size=1)", 0),
        ("jnp.where(d == x, size=1)[0]", 1),
        ("jnp.where(d == x, 0, -1)", 1),
        ("jnp.flatnonzero(d == x, size=1)", 1),
    ],
)
def test_a_tuple_of_places_is_equal_to_no_number(place: str, count: int) -> None:
    code = f"""
import jax
import jax.numpy as jnp

@jax.jit
def f(d, x):
    place = {place}
    return jax.lax.cond(place == -1, lambda: -jnp.ones_like(d), lambda: 2 * d)
"""
    assert len(check_text(code.encode(), "m.py", Scope(("cond-for-where",)))) == count
