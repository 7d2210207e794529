"""../ppo.py with its keys split before the loop over steps, and the advantages' loop unrolled where that pays."""

import sys
from typing import NamedTuple

import gymnax
import jax
import jax.numpy as jnp
import optax

ENVIRONMENTS, STEPS, EPOCHS, MINIBATCHES = 64, 32, 2, 4
UNROLL = 16 if jax.default_backend() != "cpu" else 1
GAMMA, LAMBDA, CLIP = 0.99, 0.95, 0.2

env, env_params = gymnax.make("CartPole-v1")
optimizer = optax.chain(optax.clip_by_global_norm(0.5), optax.adam(3e-4))


class Transition(NamedTuple):
    done: jax.Array
    action: jax.Array
    value: jax.Array
    reward: jax.Array
    log_prob: jax.Array
    observation: jax.Array


def init(key):
    keys = jax.random.split(key, 4)
    sizes = [(4, 64), (64, 64), (64, 2), (64, 1)]
    weights = [jax.random.normal(k, size) / jnp.sqrt(size[0]) for k, size in zip(keys, sizes, strict=True)]
    return [(w, jnp.zeros(w.shape[1])) for w in weights]


def network(params, x):
    for w, b in params[:2]:
        x = jnp.tanh(x @ w + b)
    (w_pi, b_pi), (w_v, b_v) = params[2:]
    return x @ w_pi + b_pi, (x @ w_v + b_v)[..., 0]


def env_step(carry, keys):
    params, state, observation = carry
    act_key, step_keys = keys
    logits, value = network(params, observation)
    action = jax.random.categorical(act_key, logits)
    log_prob = jnp.take_along_axis(jax.nn.log_softmax(logits), action[:, None], axis=1)[:, 0]
    stepped = jax.vmap(env.step, in_axes=(0, 0, 0, None))(step_keys, state, action, env_params)
    after, state, reward, terminated, truncated, _ = stepped
    done = jnp.logical_or(terminated, truncated)
    return (params, state, after), Transition(done, action, value, reward, log_prob, observation)


def advantages(batch, last_value):
    def back(carry, step):
        gae, next_value = carry
        keep = 1.0 - step.done
        delta = step.reward + GAMMA * next_value * keep - step.value
        gae = delta + GAMMA * LAMBDA * keep * gae
        return (gae, step.value), gae

    start = (jnp.zeros_like(last_value), last_value)
    return jax.lax.scan(back, start, batch, reverse=True, unroll=UNROLL)[1]


def loss(params, batch, gae, target):
    logits, value = network(params, batch.observation)
    log_probs = jax.nn.log_softmax(logits)
    log_prob = jnp.take_along_axis(log_probs, batch.action[:, None], axis=1)[:, 0]
    ratio = jnp.exp(log_prob - batch.log_prob)
    gae = (gae - gae.mean()) / (gae.std() + 1e-8)
    policy = -jnp.minimum(ratio * gae, jnp.clip(ratio, 1 - CLIP, 1 + CLIP) * gae).mean()
    entropy = -(jnp.exp(log_probs) * log_probs).sum(-1).mean()
    return policy + 0.5 * jnp.square(value - target).mean() - 0.01 * entropy


def learn(carry, minibatch):
    params, opt_state = carry
    grads = jax.grad(loss)(params, *minibatch)
    updates, opt_state = optimizer.update(grads, opt_state, params)
    return (optax.apply_updates(params, updates), opt_state), None


def update(carry, _):
    params, opt_state, state, observation, key = carry
    key, act_key, step_key, epochs_key = jax.random.split(key, 4)
    keys = jax.random.split(act_key, STEPS), jax.random.split(step_key, (STEPS, ENVIRONMENTS))
    (_, state, observation), batch = jax.lax.scan(env_step, (params, state, observation), keys)
    gae = advantages(batch, network(params, observation)[1])
    flat = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), (batch, gae, gae + batch.value))

    def epoch(carry, epoch_key):
        order = jax.random.permutation(epoch_key, STEPS * ENVIRONMENTS)
        shuffled = jax.tree.map(lambda x: x[order].reshape(MINIBATCHES, -1, *x.shape[1:]), flat)
        return jax.lax.scan(learn, carry, shuffled)[0], None

    (params, opt_state), _ = jax.lax.scan(epoch, (params, opt_state), jax.random.split(epochs_key, EPOCHS))
    return (params, opt_state, state, observation, key), batch.reward.sum() / jnp.maximum(batch.done.sum(), 1)


@jax.jit
def train(key, numbers):
    key, init_key, reset_key = jax.random.split(key, 3)
    params = init(init_key)
    observation, state = jax.vmap(env.reset, in_axes=(0, None))(jax.random.split(reset_key, ENVIRONMENTS), env_params)
    start = (params, optimizer.init(params), state, observation, key)
    return jax.lax.scan(update, start, numbers)[1]


def main(updates):
    returns = train(jax.random.key(0), jnp.arange(updates))
    print(f"return after {updates} updates: {float(returns[-1]):.1f}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20)
