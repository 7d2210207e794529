"""What is asked of jax's own functions: sorts, joins, one-hots, random choices, factorizations."""
