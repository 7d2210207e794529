"""Changes that people make to a Python file, drawn at random: functions come and go, are renamed, compiled, handed to
transformations, called by others, in loops."""

from __future__ import annotations

import ast
import random

_CALLS = ("{}(1)", "jax.vmap({})(1)", "jax.lax.scan({}, 0, None, 9)", "jax.jit({})", "jax.pure_callback({}, 1)")


def edited(text: str, chance: random.Random) -> str:
    """The text with one change more; the text itself where the change would not parse."""
    tree = ast.parse(text)
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    if not functions:
        return text + "\n\ndef added(x):\n    return x\n"
    lines, one = text.splitlines(keepends=True), chance.choice(functions)
    begin = min([one.lineno, *(decorator.lineno for decorator in one.decorator_list)]) - 1
    below, indent = one.body[0].lineno - 1, " " * one.body[0].col_offset
    called = sorted({ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)} | {one.name})
    name = chance.choice(called)
    match chance.randrange(7):
        case 0:
            one.name += "_again"
            lines.append(f"\n\n{ast.unparse(one)}\n")
        case 1:
            lines = [line.replace(one.name, f"{one.name}_anew") for line in lines]
        case 2:
            lines.insert(begin, " " * one.col_offset + "@jax.jit\n")
        case 3:
            lines.insert(below, f"{indent}for _ in range(100):\n{indent}    {name}(1)\n")
        case 4:
            lines.insert(below, f"{indent}done = {chance.choice(_CALLS).format(name)}\n")
        case 5:
            lines.append(f"\n{one.name} = {name}\n")
        case 6 if one.col_offset == 0:
            del lines[begin : one.end_lineno]
    changed = "".join(lines)
    try:
        ast.parse(changed)
    except SyntaxError:
        return text
    return changed
