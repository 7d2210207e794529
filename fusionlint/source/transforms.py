"""The names of what traces functions, hands them to the host, or keeps the layers of a network."""

from __future__ import annotations

from fusionlint.source.names import JIT

# What calls the functions handed to it in each turn of a loop of its own, of whatever length: solvers, and what these
# are handed.
SOLVERS = frozenset(
    ("jax.experimental.ode.odeint", "jax.scipy.optimize.minimize", "jax.scipy.sparse.linalg.cg",
     "jax.scipy.sparse.linalg.gmres", "jax.scipy.sparse.linalg.bicgstab", "diffrax.ODETerm", "diffrax.ControlTerm",
     "lineax.FunctionLinearOperator", "optimistix.fixed_point", "optimistix.least_squares", "optimistix.minimise",
     "optimistix.root_find", "numpyro.infer.HMC", "numpyro.infer.NUTS")
)  # fmt: skip
# What traces the functions handed to it.
TRANSFORMS = JIT | SOLVERS | frozenset(
    ("jax.vmap", "jax.numpy.vectorize", "jax.grad", "jax.value_and_grad", "jax.jacfwd", "jax.jacrev", "jax.jacobian",
     "jax.hessian", "jax.checkpoint", "jax.remat", "jax.ad_checkpoint.checkpoint", "jax.linearize", "jax.vjp",
     "jax.jvp", "jax.custom_vjp", "jax.custom_jvp", "jax.custom_batching.custom_vmap", "jax.named_call",
     "jax.experimental.checkify.checkify", "jax.lax.platform_dependent", "jax.make_jaxpr", "jax.eval_shape",
     "jax.shard_map", "jax.experimental.shard_map.shard_map", "jax.experimental.maps.xmap",
     "jax.experimental.pallas.pallas_call", "jax.experimental.pallas.BlockSpec",
     "jax.closure_convert", "jax.linear_transpose", "jax.lax.scan",
     "jax.lax.while_loop", "jax.lax.fori_loop", "jax.lax.cond", "jax.lax.switch", "jax.lax.map",
     "jax.lax.associative_scan", "jax.lax.reduce", "jax.lax.custom_root", "jax.lax.custom_linear_solve",
     "equinox.filter_grad", "equinox.filter_value_and_grad", "equinox.filter_vmap", "equinox.filter_checkpoint",
     "equinox.filter_vjp", "equinox.filter_jvp", "equinox.filter_jacfwd", "equinox.filter_jacrev",
     "equinox.filter_hessian", "equinox.filter_closure_convert", "equinox.internal.while_loop",
     "equinox.internal.scan", "flax.nnx.grad", "flax.nnx.value_and_grad",
     "flax.nnx.vmap", "flax.nnx.scan", "flax.nnx.remat", "flax.nnx.cond", "flax.nnx.switch", "flax.nnx.while_loop",
     "flax.nnx.fori_loop", "flax.linen.scan", "flax.linen.vmap", "flax.linen.remat", "flax.linen.checkpoint",
     "flax.linen.jit", "flax.linen.while_loop", "flax.linen.cond", "flax.linen.switch", "flax.linen.compact",
     "haiku.transform", "haiku.transform_with_state", "haiku.scan", "haiku.vmap", "haiku.grad", "haiku.value_and_grad",
     "haiku.cond", "haiku.switch", "haiku.while_loop", "haiku.fori_loop", "haiku.remat", "haiku.transparent")
)  # fmt: skip
# What makes its function a kernel as it stands: XLA has nothing to fuse in there.
PALLAS = "jax.experimental.pallas.pallas_call"
# Which block of an array a turn of a kernel is given is computed where the kernel is.
PALLAS_BLOCKS = "jax.experimental.pallas.BlockSpec"
# What hands its function to the host: that function is host code.
CALLBACKS = frozenset(
    ("jax.debug.callback", "jax.pure_callback", "jax.experimental.io_callback", "jax.experimental.host_callback.call",
     "jax.experimental.host_callback.id_tap", "equinox.filter_pure_callback")
)  # fmt: skip
EQUINOX = frozenset(("equinox.Module",))
MODULES = frozenset(("flax.linen.Module", "flax.nnx.Module", "haiku.Module")) | EQUINOX
