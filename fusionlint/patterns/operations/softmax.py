"""What a softmax along the last axis is called: network libraries hand jax.nn's on under names of their own."""

from __future__ import annotations

_LIBRARIES = ("jax.nn", "flax.linen", "flax.nnx")

SOFTMAX = tuple(f"{library}.softmax" for library in _LIBRARIES)
LOG_SOFTMAX = tuple(f"{library}.log_softmax" for library in _LIBRARIES)
