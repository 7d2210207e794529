"""eager-work-in-env-loop: what is little beside the acting, and steps that somebody takes the time of."""

from __future__ import annotations

import textwrap

import pytest

from fusionlint.source.judging import check_text
from fusionlint.source.scope import Scope

LOOP = """
import time
import jax, jax.numpy as jnp
from agents import actor, make_policy, network

@jax.jit
def compiled(obs, key):
    return jnp.tanh(jnp.clip(jnp.exp(jnp.sqrt(obs)), -1.0, 1.0)) + jax.random.normal(key)

def by_operations(obs, key):
    seen = jnp.concatenate([jnp.asarray(obs), jnp.ones(2)])
    return jnp.clip(jnp.tanh(seen), -1.0, 1.0)

def by_network(obs, key):
    return network.apply(actor.params, obs)

def made_anew(obs, key):
    return make_policy(actor.params)(obs, key)[0]

def by_compiled(obs, key):
    return compiled(jnp.asarray(obs), key)

def play(env, obs, key, act):
    for _ in range(1000):
        key, sub = jax.random.split(key)
        action = act(obs, sub)
        obs, reward, done, _ = env.step(action)
"""


def found(code: str) -> int:
    return len(check_text(code.encode(), "m.py", Scope(("eager-work-in-env-loop",))))


@pytest.mark.parametrize(("act", "count"), [
    ("act", 1), ("compiled", 1), ("by_compiled", 1), ("by_operations", 0), ("by_network", 0), ("made_anew", 0),
])  # fmt: skip
def test_a_split_is_little_beside_an_acting_that_is_not_compiled(act: str, count: int) -> None:
    assert found(LOOP.replace("act(obs", f"{act}(obs")) == count


@pytest.mark.parametrize(("act", "count"), [("compiled", 1), ("by_operations", 0)])
def test_the_acting_may_stand_in_the_call_of_the_step(act: str, count: int) -> None:
    code = LOOP.replace("        action = act(obs, sub)\n", "").replace("step(action)", f"step({act}(obs, sub))")
    assert found(code) == count


@pytest.mark.parametrize(("act", "count"), [("compiled", 1), ("by_operations", 0)])
def test_the_acting_may_return_more_than_the_action(act: str, count: int) -> None:
    assert found(LOOP.replace("action = act(", f"action, *more = {act}(")) == count


@pytest.mark.parametrize(("line", "count"), [
    ("started = time.time()", 0), ("time.sleep(0.05)", 0), ("if done: time.sleep(0.05)", 1), ("count = 3", 1),
])  # fmt: skip
def test_steps_that_are_timed_are_meant_to_be_seen_one_by_one(line: str, count: int) -> None:
    assert found(LOOP + f"        {line}\n") == count


HANDED = (
    LOOP.partition("def play")[0]
    + """
def trained(env):
    def policy(obs, key):
        return network.apply(actor.params, obs)

    return WHAT, actor.params

def fetched(env):
    return compiled, actor.params

class Rollouts:
    def train(self, env):
        def policy(obs, key):
            return network.apply(actor.params, obs)

        return policy, env

    def play(self, env, obs, key, *, act):
        for _ in range(1000):
            key, sub = jax.random.split(key)
            obs, reward, done, _ = env.step(act(obs, sub))

    def run(self, env, obs, key):
        policy, params = MADE
        self.play(env, obs, key, act=policy)
"""
)


@pytest.mark.parametrize(("made", "what", "count"), [
    ("self.train(env)", "policy", 0), ("trained(env)", "policy", 0), ("trained(env)", "compiled", 1),
    ("fetched(env)", "policy", 1), ("by_network, env", "policy", 0), ("load(env)", "policy", 1),
])  # fmt: skip
def test_what_a_rollout_is_handed_to_act_by_is_looked_up(made: str, what: str, count: int) -> None:
    code = HANDED.replace("MADE", made).replace("WHAT", what)
    assert found(code) == count
    assert found(code.replace("*, act", "act").replace("act=policy", "policy")) == count


@pytest.mark.parametrize(("opened", "count"), [
    ("VideoWriter(path)", 0), ("imageio.get_writer(path)", 0), ("open(path)", 1), ("SummaryWriter(path)", 1),
    ("VideoReader(path)", 1),
])  # fmt: skip
@pytest.mark.parametrize("line", ["out.add(obs)", "if done: out.add(obs)"])
def test_a_step_that_goes_into_a_film_takes_longer_than_its_operations(opened: str, count: int, line: str) -> None:
    head, _, body = LOOP.partition("    for _")
    loop = "    for _" + body + f"        {line}\n"
    within = f"    with {opened} as out:\n" + textwrap.indent(loop, "    ")
    head = head.replace("import time\n", "import imageio\n")
    assert found(head + within) == found(f"{head}    out = {opened}\n{loop}") == (1 if "if" in line else count)
