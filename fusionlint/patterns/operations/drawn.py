"""What stands at drawn places of what `jax.random.choice` draws from: of a number the places, of an array its rows.

In: what is drawn from, of a Source, and the code that draws places. Out: the code of what is drawn; None where it is
not seen to be the one or the other. And of a draw whether it shares its key, and whether it is no more than an index.
"""

from __future__ import annotations

import libcst as cst

from fusionlint.lazily import regex
from fusionlint.patterns.code.at import RANGES, constant, inside
from fusionlint.patterns.code.calls import argument, as_operand, by_position, has_only
from fusionlint.patterns.code.layout import Called, Part
from fusionlint.patterns.code.modules import named
from fusionlint.patterns.operations.choice import dtype_of, listed
from fusionlint.patterns.values.kinds import kind
from fusionlint.source.facts import last_name
from fusionlint.source.tree import Source
from fusionlint.source.walk import dotted

# What calls itself so is how many there are to draw from.
_COUNT = regex(r"^_?(n|num|size|len|length|count|capacity|n_\w+|num_\w+|\w+_(dim|size|len|length|count))$")
_WHOLE = frozenset(("int", "int32", "jax.numpy.int32", "numpy.int32"))
_OF_KEYS = frozenset(("split", "fold_in", "clone", "key", "PRNGKey", "key_data", "wrap_key_data"))
# What is asked of arrays alone.
_OF_ARRAYS = frozenset(("shape", "dtype", "ndim", "size", "at", "astype", "reshape", "ravel", "flatten", "T"))


def drawn_from(among: cst.BaseExpression, places: Part, node: cst.CSTNode, source: Source) -> Part | None:
    """`places`, of a number, and what is added to them of a range; `x[places]` of an array of jax,
    `jnp.take(x, places, axis=0)` of another."""
    if count_of(among, source) is not None or _counts_from_zero(among, source):
        return places
    start = _start_of(among, source)
    if start is not None and isinstance(places, Called) and _stands_alone(node, source):
        return places._replace(function=f"{start} + {places.function}")
    text = source.code(among)
    match kind(among, source):
        case "array":
            return Called(as_operand(among, text), (places,), "[]")
        case "numpy":
            return Called(f"{named('jax.numpy', node, source)}.take", (text, places, "axis=0"))
    if isinstance(among, cst.Name) and is_used_as_array(among, source):
        return Called(f"{named('jax.numpy', node, source)}.take", (text, places, "axis=0"))
    return None


def _counts_from_zero(among: cst.BaseExpression, source: Source) -> bool:
    """Whether this is `jnp.array([0, 1, 2])`, of whole numbers as jax counts: each stands at its own place."""
    values = listed(among, source)
    said = dtype_of(among, source)
    is_whole = said is None or said.rpartition(".")[2] in ("int32", "int")
    numbers = [value.evaluated_value if isinstance(value, cst.Integer) else None for value in values or ()]
    return is_whole and bool(numbers) and numbers == list(range(len(numbers)))


def count_of(among: cst.BaseExpression, source: Source) -> cst.BaseExpression | None:
    """How many numbers from 0 on are drawn from, n of `n` and of `jnp.arange(n)`; None where it is not seen that what
    is drawn is such a number."""
    made = source.meant(among)
    if source.calls(made, *RANGES):
        return _end_of(made, source)
    found = kind(among, source)
    is_number = found == "scalar" or (found is None and _COUNT.match(last_name(dotted(among))) is not None)
    return among if is_number else None


def _end_of(numbers: cst.Call, source: Source) -> cst.BaseExpression | None:
    """n of `arange(n)`, `arange(0, n)`, `arange(0, n, 1)`, of whole numbers as jax counts."""
    said = argument(numbers, 3, "dtype")
    if said is not None and (source.qualified_name(said) or dotted(said)) not in _WHOLE:
        return None
    if not has_only(numbers, 4, "start", "stop", "step", "dtype"):
        return None
    positional = by_position(numbers)
    if len(positional) + (said is not None) < len(numbers.args):
        return None
    match positional:
        case [end]:
            return end
        case [start, end, *step] if constant(start) == 0 and all(constant(each) == 1 for each in step):
            return end
    return None


def _start_of(among: cst.BaseExpression, source: Source) -> str | None:
    """`first` of `jnp.arange(first, end)`, written in place, where nothing has to stand around it in a sum."""
    if not source.calls(among, *RANGES) or not has_only(among, 2):
        return None
    match among.args:
        case [cst.Arg(value=cst.Name() | cst.Attribute() | cst.Integer() as start), cst.Arg()]:
            return source.code(start)
    return None


def _stands_alone(node: cst.CSTNode, source: Source) -> bool:
    """Whether a sum can stand in place of `node` as it is."""
    return isinstance(source.parent(node), cst.Assign | cst.AnnAssign | cst.Return | cst.Arg | cst.Index)


def draws_again(draw: cst.CSTNode, source: Source) -> bool:
    """Whether another draw takes the key of `draw` too: what the two give hangs together, and would no longer, or only
    then, if one of them went otherwise about it."""
    calls = (part for part in inside(draw, cst.Call) if _is_of_random(part, source))
    keys = (argument(call, 0, "key") for call in calls)
    return any(isinstance(key, cst.Name) and _is_shared(key, source) for key in keys)


def _is_shared(key: cst.Name, source: Source) -> bool:
    others = [read for read in source.reads_at_all(key) if read is not key]
    handed = [(other, source.handed_to(other)) for other in others]
    return any(
        call is not None and _is_of_random(call, source) and source.written(other) is source.written(key)
        for other, call in handed
    )


def _is_of_random(call: cst.Call, source: Source) -> bool:
    """Whether this draws by a key, and does not make others of it."""
    module, _, name = (source.qualified_name(call.func) or "").rpartition(".")
    return module == "jax.random" and name not in _OF_KEYS


def is_used_as_array(name: cst.Name, source: Source) -> bool:
    """Whether the function around asks the variable for what arrays alone have: `x.shape`, `x[0]`, `len(x)`."""
    for use in source.uses(name):
        match above := source.parent(use.node):
            case cst.Attribute(value=value, attr=cst.Name(attribute)) if value is use.node:
                if attribute in _OF_ARRAYS:
                    return True
            case cst.Subscript(value=value) if value is use.node:
                return True
            case cst.Arg():
                call = source.parent(above)
                if source.calls(call, "len"):
                    return True
    return False


def only_picks(node: cst.Call, source: Source) -> bool:
    """Whether what is drawn is read as an index alone, `x[i]`, `jnp.take(x, i, axis=0)`."""
    readers = source.readers(node)
    return source.assigned_name(node) is not None and all(_picks(read, source) for read in readers)


def _picks(read: cst.CSTNode, source: Source) -> bool:
    match source.parent(read):
        case cst.Index() as index:
            return index.value is read
        case cst.Arg():
            call = source.handed_to(read)
            return source.calls(call, "jax.numpy.take") and argument(call, 1, "indices") is read
    return False
