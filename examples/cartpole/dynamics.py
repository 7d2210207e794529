"""Pole on a cart (Barto, Sutton and Anderson 1983), one Euler step of 20 ms, for a batch of carts at once."""

import jax.numpy as jnp

GRAVITY = 9.8  # m/s2
CART = 1.0  # kg
POLE = 0.1  # kg
HALF_POLE = 0.5  # m
FORCE = 10.0  # N
SECONDS = 0.02
EDGE = 2.4  # m
TIPPED = 0.2094395  # rad, 12 degrees


def bang_bang(angle):
    """Push to the side on which the pole hangs. It overshoots: the pole falls every few dozen steps."""
    return jnp.where(angle > 0, FORCE, -FORCE)


def push(x, v, angle, spin, force):
    """The cart's position and speed, the pole's angle and spin, 20 ms later."""
    sin, cos = jnp.sin(angle), jnp.cos(angle)
    total = CART + POLE
    pull = (force + POLE * HALF_POLE * spin**2 * sin) / total
    spin_up = (GRAVITY * sin - cos * pull) / (HALF_POLE * (4 / 3 - POLE * cos**2 / total))
    speed_up = pull - POLE * HALF_POLE * spin_up * cos / total
    return x + SECONDS * v, v + SECONDS * speed_up, angle + SECONDS * spin, spin + SECONDS * spin_up


def has_failed(x, angle):
    """The cart left the track or the pole tipped over."""
    return (jnp.abs(x) > EDGE) | (jnp.abs(angle) > TIPPED)
