"""Functions that say themselves how they are spread over the eight devices of a mesh, data=2 by model=4."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

mesh = Mesh(np.array(jax.devices()).reshape(2, 4), ("data", "model"))


def held(x):
    return jax.lax.with_sharding_constraint(x * 2.0, NamedSharding(mesh, PartitionSpec("data"))).sum()


@partial(jax.jit, in_shardings=NamedSharding(mesh, PartitionSpec("data", "model")))
def jitted(x):
    return x.sum()


def beside(x):
    return jnp.max(x, axis=1)


beside.example_args = (
    jax.ShapeDtypeStruct((16, 64), "float32", sharding=NamedSharding(mesh, PartitionSpec(None, "model"))),
)


@partial(jax.pmap, axis_name="each")
def mapped(x):
    return jax.lax.pmean(x * 2.0, "each")
