"""Several `x.at[i].set(v)`: where they go, what is between them, and what to write instead."""
