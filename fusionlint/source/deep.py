"""A text -> whether its tree can be gone through at all: asked before libcst parses it, which takes half a minute for a
sum of 2600 terms."""

from __future__ import annotations

import ast
import sys

from fusionlint.source.quietly import quietly

# The calls that a level of the tree takes at least, in libcst as in our own walk.
_CALLS = 2
# And at most, in a rule that goes through a tree.
_CALLS_OF_A_RULE = 25
# One of these opens nearly every level that there can be thousands of; to count them takes no time beside a parse.
_OPENS = b"+-*/@%&|^<>.([{"


def refuse_what_is_too_deep(text: str | bytes) -> None:
    """RecursionError for a text that is nested more deeply than what calls itself for each level can go."""
    most = sys.getrecursionlimit() // _CALLS
    data = text if isinstance(text, bytes) else text.encode()
    if len(data) - len(data.translate(None, _OPENS)) > most and _is_deeper(text, most):
        raise RecursionError


def is_deep(text: str | bytes) -> bool:
    """Whether a text is nested so deeply that going through it may be too much; of any other text it is not."""
    return _is_deeper(text, sys.getrecursionlimit() // _CALLS_OF_A_RULE)


def _is_deeper(text: str | bytes, most: int) -> bool:
    """False as well where another Python has to read it."""
    try:
        with quietly():
            level: list[ast.AST] = [ast.parse(text)]
    except (SyntaxError, ValueError):
        return False
    except (RecursionError, MemoryError):
        return True
    depth = 0
    while level and depth <= most:
        level = [child for node in level for child in ast.iter_child_nodes(node)]
        depth += 1
    return depth > most
