"""Damped pendulums with diffrax, for one friction after another: `python diffrax_pendulum.py [FRICTIONS]`."""

import sys

import diffrax
import jax
import jax.numpy as jnp

SECONDS, PENDULUMS = 20.0, 256


def swings(friction, angles):
    """The angles over time of pendulums that start at rest."""

    def field(t, state, args):
        angle, speed = state
        return speed, -9.81 * jnp.sin(angle) - friction * speed

    def swing(angle):
        solution = diffrax.diffeqsolve(
            diffrax.ODETerm(field),
            diffrax.Tsit5(),
            t0=0.0,
            t1=SECONDS,
            dt0=0.01,
            y0=(angle, jnp.zeros_like(angle)),
            saveat=diffrax.SaveAt(ts=jnp.linspace(0.0, SECONDS, 101)),
            stepsize_controller=diffrax.PIDController(rtol=1e-5, atol=1e-6),
        )
        return solution.ys[0]

    return jax.vmap(swing)(angles)


def main(frictions):
    angles = jnp.linspace(0.1, 3.0, PENDULUMS)
    for friction in jnp.linspace(0.1, 1.0, frictions).tolist():
        last = swings(friction, angles)[:, -1]
        print(f"friction {friction:.2f}: {float(jnp.abs(last).max()):.4f} left after {SECONDS:.0f} s")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
