"""../numpyro_svi.py with a start that is compiled, and whole batches alone."""

import sys

import jax
import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
from numpyro.infer import SVI, Trace_ELBO
from numpyro.infer.autoguide import AutoNormal

EXAMPLES, FEATURES, BATCH = 1000, 8, 128


def model(x, y=None):
    weights = numpyro.sample("weights", dist.Normal(jnp.zeros(FEATURES), 1.0).to_event(1))
    bias = numpyro.sample("bias", dist.Normal(0.0, 5.0))
    with numpyro.plate("examples", EXAMPLES, subsample_size=len(x)):
        numpyro.sample("y", dist.Bernoulli(logits=x @ weights + bias), obs=y)


def main(epochs):
    data_key, weight_key, key = jax.random.split(jax.random.key(0), 3)
    x = jax.random.normal(data_key, (EXAMPLES, FEATURES))
    y = (x @ jax.random.normal(weight_key, (FEATURES,)) > 0.5).astype(jnp.float32)
    svi = SVI(model, AutoNormal(model), numpyro.optim.Adam(0.05), Trace_ELBO())
    state = jax.jit(svi.init)(key, x[:BATCH], y[:BATCH])
    update = jax.jit(svi.update)
    for _ in range(epochs):
        for start in range(0, EXAMPLES, BATCH):
            start = min(start, EXAMPLES - BATCH)  # the last batch is a whole one too, and begins sooner
            state, loss = update(state, x[start : start + BATCH], y[start : start + BATCH])
    print(f"loss after {epochs} epochs: {float(loss):.1f}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20)
