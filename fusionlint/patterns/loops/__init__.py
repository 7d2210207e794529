"""Loops of Python and of jax.lax: what a turn does and hands on, how many there are, and which of them run a node."""
