"""A small language model of flax nnx on eight devices, its weights spread over four of them.

    XLA_FLAGS=--xla_force_host_platform_device_count=8 JAX_PLATFORMS=cpu \\
        fusionlint run --target h100 examples/meshes/flax_lm.py joined

`joined` cuts queries, keys and values out of one axis, `apart` gives them an axis of their own.
"""

import sys

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx
from jax.sharding import Mesh, NamedSharding, PartitionSpec

MESH = Mesh(np.array(jax.devices()).reshape(2, 4), ("data", "model"))
WIDTH, HEADS, LAYERS, WORDS, INNER = 256, 8, 2, 4096, 1024
APART = sys.argv[1:] == ["apart"]


def spread(*axes):
    return nnx.with_partitioning(nnx.initializers.lecun_normal(), axes)


def linear(rngs, inputs, outputs, *axes):
    return nnx.LinearGeneral(inputs, outputs, use_bias=False, kernel_init=spread(*axes), rngs=rngs)


class Block(nnx.Module):
    def __init__(self, rngs):
        self.before_attention, self.before_inner = nnx.RMSNorm(WIDTH, rngs=rngs), nnx.RMSNorm(WIDTH, rngs=rngs)
        if APART:
            self.project = linear(rngs, WIDTH, (3, WIDTH), None, None, "model")
        else:
            self.project = linear(rngs, WIDTH, 3 * WIDTH, None, "model")
        self.out = linear(rngs, WIDTH, WIDTH, "model", None)
        self.up, self.down = linear(rngs, WIDTH, INNER, None, "model"), linear(rngs, INNER, WIDTH, "model", None)

    def __call__(self, x):
        projected = self.project(self.before_attention(x))
        parts = jnp.unstack(projected, axis=-2) if APART else jnp.split(projected, 3, axis=-1)
        q, k, v = (part.reshape(*x.shape[:2], HEADS, WIDTH // HEADS) for part in parts)
        x = x + self.out(jax.nn.dot_product_attention(q, k, v, is_causal=True).reshape(x.shape))
        return x + self.down(jax.nn.gelu(self.up(self.before_inner(x))))


class Model(nnx.Module):
    def __init__(self, rngs):
        self.embed = nnx.Embed(WORDS, WIDTH, embedding_init=spread("model", None), rngs=rngs)
        self.blocks = nnx.List([Block(rngs) for _ in range(LAYERS)])
        self.head = linear(rngs, WIDTH, WORDS, None, "model")

    def __call__(self, words):
        x = self.embed(words)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


@nnx.jit
def create():
    model = Model(nnx.Rngs(0))
    return model, nnx.Optimizer(model, optax.adamw(1e-3), wrt=nnx.Param)


@nnx.jit(donate_argnames=("model", "optimizer"))
def train_step(model, optimizer, words):
    def loss_of(model):
        return optax.softmax_cross_entropy_with_integer_labels(model(words[:, :-1]), words[:, 1:]).mean()

    loss, gradients = nnx.value_and_grad(loss_of)(model)
    optimizer.update(model, gradients)
    return loss


with jax.set_mesh(MESH):
    model, optimizer = create()
    words = np.random.default_rng(0).integers(0, WORDS, (16, 129))
    words = jax.device_put(words, NamedSharding(MESH, PartitionSpec("data")))
    for _ in range(2):
        loss = train_step(model, optimizer, words)
    print(loss)
