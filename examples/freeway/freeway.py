"""gymnax's Freeway with all eight cars at once: the same games, step by step, in a third of the launches.

gymnax 1.0.1 moves, draws and shuffles the cars one by one, in Python loops that are unrolled when it is compiled.
"""

import jax
import jax.numpy as jnp
from gymnax.environments.minatar.freeway import EnvState, MinFreeway, step_agent

START, ROAD = 9, 10


class Freeway(MinFreeway):
    def step_env(self, key, state, action, params):
        state, reward, won = step_agent(self.action_set[action], state, params)
        speed = new_speeds(key)
        shuffled = state.cars.at[:, 2:4].set(jnp.stack([jnp.abs(speed), speed], axis=1))
        state = move_cars(state.replace(cars=jnp.where(won, shuffled, state.cars)))
        state = state.replace(time=state.time + 1)
        done = self.is_terminal(state, params)
        state = state.replace(terminal=done)
        observation, state = jax.lax.stop_gradient((self.get_obs(state), state))
        return observation, state, reward.astype(jnp.float32), done, {"discount": self.discount(state, params)}

    def reset_env(self, key, params):
        speed = new_speeds(key)
        cars = jnp.stack([jnp.zeros(8, int), jnp.arange(1, 9), jnp.abs(speed), speed], axis=1)
        state = EnvState(pos=START, cars=cars, move_timer=params.player_speed, time=0, terminal=False)
        return self.get_obs(state), state

    def get_obs(self, state, params=None, key=None):
        x, y, _, speed = state.cars.T
        behind = (x - jnp.where(speed > 0, 1, -1)) % ROAD
        rows = jnp.concatenate([y, y, jnp.array([state.pos])])
        columns = jnp.concatenate([x, behind, jnp.array([4])])
        channels = jnp.concatenate([jnp.ones(8, int), 1 + jnp.abs(speed), jnp.array([0])])
        return jnp.zeros(self.obs_shape).at[rows, columns, channels].set(1.0)


def new_speeds(key):
    """Of eight cars, from -5 to 5; drawn as gymnax draws them."""
    speed_key, direction_key = jax.random.split(key)
    speed = jax.random.randint(speed_key, (8,), 1, 6)
    return jnp.where(jax.random.randint(direction_key, (8,), 0, 2) == 0, -speed, speed)


def move_cars(state):
    x, y, timer, speed = state.cars.T
    moves = timer == 0
    after = jnp.where(moves, (x + jnp.where(speed > 0, 1, -1)) % ROAD, x)
    hit = (y == state.pos) & ((x == 4) | (moves & (after == 4)))
    cars = jnp.stack([after, y, jnp.where(moves, jnp.abs(speed), timer - 1), speed], axis=1)
    pos = jnp.where(hit.any(), START, state.pos)
    return state.replace(pos=pos, cars=cars, move_timer=state.move_timer - (state.move_timer > 0))
