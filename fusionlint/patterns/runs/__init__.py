"""Who runs code, and how often: a trace, a vmap, a loop of jax.lax, what makes something once; and who calls it with
what."""
