"""A write through a mask that is known before compiling: `x.at[mask].set(0.0)`, `x.at[:, mask].set(f(x[:, mask]))`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from fusionlint.finding import Finding
from fusionlint.lazily import regex
from fusionlint.patterns.code.at import WRITES, Write, at_write, inside, is_cut, is_fresh, is_literal, is_whole
from fusionlint.patterns.code.calls import brief
from fusionlint.patterns.compiled.known_places import is_set_at_known_places
from fusionlint.patterns.runs.concrete import is_concrete
from fusionlint.patterns.values.kinds import kind
from fusionlint.patterns.values.known_values import Reader
from fusionlint.patterns.values.masks import is_mask
from fusionlint.patterns.values.two_axes import is_matrix
from fusionlint.rule import Rule
from fusionlint.source.tree import Source
from fusionlint.source.walk import children

if TYPE_CHECKING:
    from fusionlint.hlo import parse as hlo
    from fusionlint.hlo.barriers import Barrier

rule = Rule(__name__, harm="fusion")

# The page's pairs: what stands at the mask is computed anywhere, or is packed.
_ANYWHERE, _PACKED = range(2)
_MADE_BY_NUMPY = regex(
    r"^numpy\.(logical_(and|or|not|xor)|greater(_equal)?|less(_equal)?|equal|not_equal|isnan|isinf|isfinite|isin|in1d"
    r"|isclose)$"
)
_FILLED = regex(r"^numpy\.(zeros|ones|full|tri|array|asarray|empty)(_like)?$")
_TRUTH = regex(r"^(numpy\.bool_?|jax\.numpy\.bool_?|bool)$")
_CALLED_A_MASK = regex(r"(^|_)mask$")
_INFINITE = regex(r"^(jax\.numpy|numpy)\.(inf|nan|pi)$")
_DEPTH = 4
_LONG = 40


@rule.source("Call", calls=WRITES)
def written_through_a_mask(node: cst.Call, source: Source) -> Iterator[Finding]:
    """A trace cannot look up by a mask that it does not know: where this one is traced, the mask is a constant."""
    write = at_write(node)
    mask = _mask(write, source) if write is not None else None
    if write is None or mask is None or write.value is None:
        return
    if source.context(node) != "traced" and not _is_constant(mask, write, source):
        return
    if _is_folded(write, source) or is_concrete(node, source):
        return
    if _is_all_that_is_done(write, source):
        return
    # Of no values the last of none would be looked up.
    unless = "" if _is_for_all(write, source) else ", unless there are none to write"
    yield source.finding(
        node,
        "a mask that is known becomes a list of places, and the write a scatter, which fuses with nothing",
        write=_chosen(write, mask, source) + unless,
        pair=_ANYWHERE if _is_for_all(write, source) else _PACKED,
    )


@rule.barrier
def set_at_known_places(barrier: Barrier, module: hlo.Module) -> str | None:
    """What goes into a scatter to places that are a constant of the program, or comes out of it."""
    if not is_set_at_known_places(barrier, module):
        return None
    return "jnp.where(mask, new, x), with the mask of those places, which are known here: it fuses with what makes x"


def _chosen(write: Write, mask: cst.BaseExpression, source: Source) -> str:
    """The choice to write, and what the mask has to be for it."""
    where = f"{source.jnp}.where"
    array, shown = brief(source.code(write.array), _LONG, "x"), brief(source.code(mask), _LONG, "the mask")
    new = _new(write, mask, source)
    if any(map(is_cut, write.index)):
        return (
            f"{where}(both, {new}, {array}), where `both` is {shown} and the slice as a mask, `np.arange(n) >= first`"
        )
    if (len(write.index) > 1 and write.index[-1] is mask) or _is_a_table(mask, source):
        return f"{where}({shown}, {new}, {array})"
    return f"{where}({shown}, {new}, {array}), the mask with a `[:, None]` for each more axis of {array}"


def _is_a_table(mask: cst.BaseExpression, source: Source) -> bool:
    """Whether a mask is seen to have two axes, `mask.T`, as no vector is turned."""
    match mask:
        case cst.Attribute(attr=cst.Name("T" | "mT")):
            return True
    return is_matrix(mask, source)


def _mask(write: Write, source: Source) -> cst.BaseExpression | None:
    """The one part of the index that is a mask, where the others take all or a slice."""
    masks = [part for part in write.index if isinstance(part, cst.BaseExpression) and _is_mask(part, source, _DEPTH)]
    others = (part for part in write.index if part not in masks)
    is_plain = all(isinstance(part, cst.Slice) or is_whole(part) for part in others)
    if masks and isinstance(masks[0], cst.Name) and source.parameter(masks[0]) is not None:
        # What is called so and only written by may be places: those may be traced.
        is_plain = is_plain and write.value is not None and _reads_there(write.value, write, source)
    return masks[0] if len(masks) == 1 and is_plain and write.method != "apply" else None


def _is_mask(node: cst.BaseExpression, source: Source, depth: int) -> bool:
    """A comparison, what combines or cuts such, what numpy is told to make of truth values, or a parameter that is
    called a mask."""
    if depth == 0:
        return False
    match node:
        case cst.Attribute(value=inner, attr=cst.Name("T" | "mT")) | cst.Subscript(value=inner):
            return _is_mask(inner, source, depth)
        case cst.BinaryOperation(left=left, operator=cst.BitAnd() | cst.BitOr()):
            return _is_mask(left, source, depth - 1)
        case cst.Name(value=name):
            value = source.value(node)
            if value is not None:
                return _is_mask(value, source, depth - 1)
            return bool(_CALLED_A_MASK.search(name)) and source.parameter(node) is not None
        case cst.Call(func=cst.Attribute(attr=cst.Name("astype")), args=[cst.Arg(value=dtype)]):
            return bool(_TRUTH.match(source.qualified_name(dtype) or source.code(dtype)))
        case cst.Call(func=func):
            made = source.qualified_name(func) or ""
            if _FILLED.match(made):
                given = (arg.value for arg in node.args)
                return any(_TRUTH.match(source.qualified_name(each) or source.code(each)) for each in given)
            return bool(_MADE_BY_NUMPY.match(made)) or is_mask(node, source)
    return is_mask(node, source)


def _is_constant(mask: cst.BaseExpression, write: Write, source: Source) -> bool:
    """Whether the mask is made by numpy, of fields and of constants of the file, and not of what is written to."""
    array = source.code(write.array)
    if any(isinstance(part, cst.BaseExpression) and source.code(part) == array for part in inside(mask)):
        return False
    return all(_is_a_constant(name, write, source) for name in _names_read(mask, source))


def _names_read(node: cst.CSTNode, source: Source) -> Iterator[cst.Name]:
    """The names read in `node`, but for what numpy is handed, which no trace can hand it unless it is known."""
    if isinstance(node, cst.Call) and (source.qualified_name(node.func) or "").startswith("numpy."):
        return
    match node:
        case cst.Name():
            yield node
        case cst.Attribute(value=value) | cst.Arg(value=value):
            yield from _names_read(value, source)
        case _:
            for child in children(node):
                yield from _names_read(child, source)


def _is_a_constant(name: cst.Name, write: Write, source: Source) -> bool:
    bound = source.facts.lookup(source.scope(name), name.value)
    if bound is None:
        return True  # of Python's own
    if bound[1].kind == "import":
        return not f"{source.qualified_name(name)}.".startswith("jax.")
    if (value := source.value(name)) is not None:
        return kind(value, source) != "array" and _is_constant(value, write, source)
    if source.parameter(name) is not None:
        return isinstance(source.parent(name), cst.Attribute) or bool(_CALLED_A_MASK.search(name.value))
    return not bound[0] or Reader(source, frozenset()).is_known(name, _DEPTH)


def _is_folded(write: Write, source: Source) -> bool:
    """Numbers that are written into a new array: XLA makes a constant of it."""
    return is_fresh(write.array, source) and write.value is not None and is_literal(write.value)


def _is_all_that_is_done(write: Write, source: Source) -> bool:
    """Whether a function hands back what it is handed, with its own rows in another order where the mask holds,
    `f.at[:, wall].set(f[:, wall][OPPOSITE])`: in a field that a loop carries a scatter does so in place, and a choice,
    which reads other rows than it writes, takes all of it once more."""
    is_handed = isinstance(write.array, cst.Name) and source.parameter(write.array) is not None
    value = write.value
    if not is_handed or value is None or not isinstance(value, cst.Subscript):
        return False
    ends = source.readers(write.call)
    is_handed_on = bool(ends) and all(isinstance(source.parent(end), cst.Return) for end in ends)
    return is_handed_on and any(part is value.value for part in _looked_up(value, write, source))


def _is_for_all(write: Write, source: Source) -> bool:
    """Whether what is written is one number, or made of what stands there: as well computed for all elements."""
    value = write.value
    if value is None:
        return False
    if is_literal(value) or kind(value, source) == "scalar":
        return True
    bare = value.expression if isinstance(value, cst.UnaryOperation) else value
    if _INFINITE.match(source.qualified_name(bare) or ""):
        return True
    return _reads_there(value, write, source)


def _reads_there(value: cst.BaseExpression, write: Write, source: Source) -> bool:
    """`x[:, mask]`, of whatever array."""
    return any(True for _ in _looked_up(value, write, source))


def _looked_up(value: cst.BaseExpression, write: Write, source: Source) -> Iterator[cst.Subscript]:
    """What of a value is looked up where it is written."""
    place = [*map(source.code, write.index)]
    subscripts = inside(value, cst.Subscript)
    return (part for part in subscripts if [source.code(s.slice) for s in part.slice] == place)


def _new(write: Write, mask: cst.BaseExpression, source: Source) -> str:
    """What stands where the mask holds; numpy counts through all of one that has more axes."""
    value = write.value
    if not _is_for_all(write, source):
        packed = source.code(value) if isinstance(value, cst.Name | cst.Attribute) else "values"
        if not _is_a_table(mask, source):
            return f"{packed}[np.cumsum(mask) - 1]"
        m = brief(source.code(mask), _LONG, "mask")
        return f"{packed}[np.cumsum({m}).reshape({m}.shape) - 1]"
    if write.method != "set" or value is None:
        return "new"
    new = source.code(value)
    for part in _looked_up(value, write, source):
        new = new.replace(source.code(part), source.code(part.value))
    return brief(new, _LONG, "new")
