"""How a loop of host code writes places of a numpy array in place of one of jax.

In: the writes of a loop, each by a statement of its own. Out: the edits that make the array one of numpy before the
outermost loop that only writes to it, write to it where it stands, and make it one of jax again behind that loop.
"""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from fusionlint.finding import Edit
from fusionlint.patterns.code.at import FRESH_BY_SHAPE, Write, at_write, holds, place_of
from fusionlint.patterns.code.before import lines_beside
from fusionlint.patterns.code.calls import as_argument
from fusionlint.patterns.code.imports import imported, numpy_of_jax
from fusionlint.patterns.code.rewritten import rewritten
from fusionlint.patterns.code.unpacked import assignment
from fusionlint.patterns.values.kinds import kind
from fusionlint.source.tree import Source
from fusionlint.source.variables import Use
from fusionlint.source.walk import dotted

_LIKE = ("jax.numpy.zeros_like", "jax.numpy.ones_like", "jax.numpy.empty_like")
# What jax.numpy and numpy both call a dtype.
_DTYPES = frozenset(f"{kind}{bits}" for kind in ("float", "int", "uint") for bits in (8, 16, 32, 64)) | {"bool_"}
_OPERATORS = {"set": "=", "add": "+=", "subtract": "-=", "multiply": "*=", "divide": "/="}


def on_the_host(writes: Sequence[Write], loop: cst.For, source: Source) -> tuple[Edit, ...]:
    """The edits for all arrays that `writes`, of a loop, are of."""
    arrays = {write.array.value: write.array for write in writes if isinstance(write.array, cst.Name)}
    numpy, jnp = imported("numpy", loop, source), numpy_of_jax(loop, source)
    if not arrays or numpy is None or jnp is None or (numpy.edits and jnp.edits):
        return ()
    around = _outermost(list(arrays.values()), loop, source)
    statements = [_written_by(use.node, source) for array in arrays.values() for use in _within(array, around, source)]
    if any(statement is None for statement in statements):
        return ()
    made = {name: _where_it_is_made(array, around, source) for name, array in arrays.items()}
    before = [f"{name} = {numpy.name}.array({name})" for name in arrays if made[name] is None]
    behind = [f"{name} = {jnp.name}.asarray({name})" for name in arrays]
    lines = lines_beside(around, source, before=before, behind=behind)
    if lines is None:
        return ()
    edits = {}
    for statement in statements:
        if statement is None or (text := _in_place(statement, source)) is None:
            return ()
        edits[statement] = source.replace(statement, text)
    return (
        *numpy.edits,
        *jnp.edits,
        *(source.replace(v, _made_by_numpy(v, numpy.name, source)) for v in made.values() if v is not None),
        *lines,
        *edits.values(),
    )


def _made_by_numpy(made: cst.Call, numpy: str, source: Source) -> str:
    """`np.zeros(n)` for `jnp.zeros(n)`, `np.zeros(x.shape, x.dtype)` for `jnp.zeros_like(x)`; what else makes an array
    is copied."""
    name, (first, *more) = (source.qualified_name(made.func) or "").rpartition(".")[2], made.args
    if source.calls(made, *_LIKE) and not more and isinstance(first.value, cst.Name | cst.Attribute):
        like = source.code(first.value)
        return f"{numpy}.{name.removesuffix('_like')}({like}.shape, {like}.dtype)"
    if source.calls(made, *FRESH_BY_SHAPE):
        dtypes = {
            arg.value: f"{numpy}.{dotted(arg.value).rpartition('.')[2]}" for arg in more if _is_jax_s(arg, source)
        }
        return rewritten(made, {made.func: f"{numpy}.{name}", **dtypes}, source)
    return f"{numpy}.array({source.code(made)})"


def _is_jax_s(arg: cst.Arg, source: Source) -> bool:
    """Whether an argument is a dtype by jax's name for it, `jnp.int32`, which numpy has too."""
    return (source.qualified_name(arg.value) or "").removeprefix("jax.numpy.") in _DTYPES


def _where_it_is_made(array: cst.Name, around: cst.For, source: Source) -> cst.Call | None:
    """What a line of the same block, and nothing behind it, writes to an array before the loop."""
    before = [use for use in source.uses(array) if use.order < source.order(around.body)]
    outside = [use for use in before if around not in source.ancestors(use.node)]
    made = assignment(outside[-1].node, source) if outside and outside[-1].is_write else None
    if made is None or len(made.targets) != 1 or source.has_comment(made):
        return None
    if not isinstance(made.value, cst.Call) or not made.value.args:
        return None
    line = source.parent(made)
    return made.value if line is not None and source.parent(line) is source.parent(around) else None


def _within(array: cst.Name, around: cst.For, source: Source) -> list[Use]:
    return [use for use in source.uses(array) if around in source.ancestors(use.node)]


def _outermost(arrays: Sequence[cst.Name], loop: cst.For, source: Source) -> cst.For:
    """The outermost of the loops right around `loop` in which nothing is asked of the arrays but such writes."""
    found = loop
    for below, above in source.outward(loop):
        if isinstance(above, cst.FunctionDef | cst.Lambda | cst.ClassDef | cst.Module):
            break
        if isinstance(above, cst.IndentedBlock):
            continue
        uses = (use for array in arrays for use in _within(array, above, source)) if isinstance(above, cst.For) else ()
        if not isinstance(above, cst.For) or below is not above.body:
            break
        if not all(_written_by(use.node, source) is not None for use in uses):
            break
        found = above
    return found


def _written_by(name: cst.Name, source: Source) -> cst.Assign | None:
    """The statement `x = x.at[i].set(v)` that `name` is one of the two `x` of."""
    target = assignment(name, source)
    line = target if target is not None else source.nearest(name, cst.Assign)
    match line:
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Name(written))], value=value):
            write = at_write(value)
            is_own = write is not None and isinstance(write.array, cst.Name) and write.array.value == written
            is_one = write is not None and (target is not None or write.array is name)
            return line if is_own and is_one else None
    return None


def _in_place(statement: cst.Assign, source: Source) -> str | None:
    """`x[i] = v`, of a value that is on the host already: for one of jax each write would wait."""
    write = at_write(statement.value)
    if write is None or write.value is None or len(write.call.args) != 1 or source.has_comment(statement):
        return None
    operator = _OPERATORS.get(write.method)
    if operator is None or kind(write.value, source) not in ("scalar", "numpy"):
        return None
    if operator != "=" and not all(_is_number(part, source) for part in write.index):
        return None  # of places that come twice `+=` adds once
    if holds(statement, cst.NamedExpr, cst.Await, cst.Yield):
        return None
    value = as_argument(write.value, source)
    value = f"({value})" if "\n" in value and not write.value.lpar else value  # which the brackets of the call held
    return f"{source.code(write.array)}[{place_of(write, source)}] {operator} {value}"


def _is_number(part: cst.CSTNode, source: Source) -> bool:
    # What stands for one place, so that no place comes twice.
    one = cst.Integer | cst.UnaryOperation | cst.BinaryOperation | cst.Name
    return isinstance(part, one) and kind(part, source) == "scalar"
