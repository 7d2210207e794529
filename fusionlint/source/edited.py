"""What can be said of edits and of advice by themselves: whether edits meet, and the names that either brings along."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from itertools import combinations
from textwrap import dedent

from fusionlint.finding import Edit
from fusionlint.lazily import regex

# A name that advice makes up, `«k»`; and any name.
_MADE_UP = regex(r"«(\w+)»")
_NAME = regex(r"(?<![\w.«])[A-Za-z_]\w*")


def overlap(one: Edit, other: Edit) -> bool:
    """Whether two edits touch the same characters, or insert at the same place."""
    a, b = one.location, other.location
    return a == b or (
        (a.line, a.column) < (b.end_line, b.end_column) and (b.line, b.column) < (a.end_line, a.end_column)
    )


def are_apart(edits: Sequence[Edit]) -> bool:
    """Whether no two of the edits overlap: of one inside another nothing would be left."""
    return not any(overlap(one, other) for one, other in combinations(edits, 2))


def names_in(text: str) -> set[str]:
    """The variables that code reads and does not bind itself. Code is an expression, or some arguments of a call; of
    what is neither nothing is known."""
    try:
        nodes = [*ast.walk(ast.parse(f"_({text}\n)").body[0])][1:]
    except (SyntaxError, ValueError):
        return set()
    read = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)} - {"_"}
    written = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    return read - written - {node.arg for node in nodes if isinstance(node, ast.arg)}


def bound_by(text: str) -> set[str]:
    """The names that lines which a fix adds give to something, however they are indented: `import jax.numpy as jnp`,
    `kept = jax.device_get(x)`. Other edits of the same fix read them."""
    lines = _parsed(dedent(text)) or _parsed("\n".join(map(str.strip, text.splitlines())))
    nodes = [node for line in lines for node in ast.walk(line)]
    written = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    defined = {node.name for node in nodes if isinstance(node, ast.FunctionDef)}
    imported = (one for node in nodes if isinstance(node, ast.Import | ast.ImportFrom) for one in node.names)
    return written | defined | {one.asname or one.name.partition(".")[0] for one in imported}


def _parsed(code: str) -> list[ast.stmt]:
    try:
        return ast.parse(code).body
    except (SyntaxError, ValueError):
        return []


def with_names(text: str) -> str:
    """Advice with the names that it makes up, `«k» = jnp.arange(«n»)`, each with an underscore behind it where the code
    that stands beside it calls something else so: `k_`."""
    if "«" not in text:
        return text
    taken = set(_NAME.findall(text))
    return _MADE_UP.sub(lambda made: f"{made[1]}_" if made[1] in taken else made[1], text)
