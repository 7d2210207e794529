"""What is called as constants are, in capitals: `BC_PERIODIC`, `N_STEPS`.

In: a name, without what it is a field of. A letter alone is a matrix or a size of mathematics, and says nothing.
"""

from __future__ import annotations


def is_called_constant(name: str, *, longest_matrix: int = 1) -> bool:
    """Whether a name is written as constants are, and has more letters than a matrix may have."""
    return name.isupper() and len(name) > longest_matrix
