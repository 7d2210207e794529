"""Keys of a split that nobody draws by any more: `k1, k2, k3 = jax.random.split(key, 3)`, where one draw by k1 is made
for three.

In: where the key of that draw and those of the others are written, in a Source. Out: what that key is to be called, and
the edits that leave the others out; a split that is no tuple of names stays as it is.
"""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from fusionlint.finding import Edit
from fusionlint.patterns.code.calls import argument, has_only
from fusionlint.patterns.code.left_unused import whole_line, without_gaps
from fusionlint.patterns.code.same import is_same_at
from fusionlint.patterns.code.unpacked import assignment
from fusionlint.source.tree import Source


def without(
    dropped: Sequence[cst.Name], key: cst.Name, there: cst.CSTNode, source: Source
) -> tuple[str, tuple[Edit, ...]]:
    """What `key` is called at the draw, and the edits of the splits that `dropped` are of, none of which is read."""
    called, edits = key.value, []
    statements = [_split(name, source) for name in dropped]
    for split in {id(each): each for each in statements if each is not None}.values():
        names = _names(split)
        kept = [name for name in names if name not in dropped and (name is key or source.reads(name))]
        over = _what_is_split(split)
        line = whole_line(split, source)
        if line is not None and over is not None and {each.value for each in kept} <= {over.value}:
            edits.append(Edit(line, ""))  # that goes on as it is
        elif kept == [key] and over is not None and line is not None and _is_for(over, there, source):
            called = over.value
            edits.append(Edit(line, ""))
        elif kept and len(names) > 2 and not source.has_comment(split):
            edits.append(source.replace(split, _fewer(split, [name.value for name in kept], source)))
    return called, without_gaps(edits, source)


def _split(name: cst.Name, source: Source) -> cst.Assign | None:
    """The statement `a, b = jax.random.split(key)` that writes a name, if all that it writes are names."""
    element = source.parent(name)
    several = source.parent(element) if element is not None else None
    statement = assignment(several, source)
    if statement is None or len(statement.targets) > 1 or not isinstance(statement.value, cst.Call):
        return None
    if not source.calls(statement.value, "jax.random.split") or not has_only(statement.value, 2, "key", "num"):
        return None
    return statement if _names(statement) and argument(statement.value, 0, "key") is not None else None


def _names(split: cst.Assign) -> list[cst.Name]:
    target = split.targets[0].target
    parts = [element.value for element in target.elements] if isinstance(target, cst.Tuple) else []
    names = [part for part in parts if isinstance(part, cst.Name)]
    return names if len(names) == len(parts) else []


def _what_is_split(split: cst.Assign) -> cst.Name | None:
    over = argument(split.value, 0, "key") if isinstance(split.value, cst.Call) else None
    return over if isinstance(over, cst.Name) else None


def _is_for(key: cst.Name, there: cst.CSTNode, source: Source) -> bool:
    """Whether nothing but the split reads a key, which is the same at the draw."""
    written = source.written(key)
    return written is not None and len(source.reads(written)) == 1 and is_same_at(key, there, source)


def _fewer(split: cst.Assign, names: Sequence[str], source: Source) -> str:
    """The split into fewer keys: two at least, one of which may be for nobody."""
    names = [*names, *(["_"] if len(names) == 1 else [])]
    assert isinstance(split.value, cst.Call)
    over = argument(split.value, 0, "key")
    assert over is not None
    given = [source.code(over), *([str(len(names))] if len(names) > 2 else [])]
    return f"{', '.join(names)} = {source.code(split.value.func)}({', '.join(given)})"
