"""`jax.random.choice(key, jnp.array([a, b]))`, and `jax.random.permutation` of two: random integers and a gather, or a
sort, where a coin and a `where` fuse."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from fusionlint.finding import Edit, Finding
from fusionlint.patterns.code.at import RANGES, constant
from fusionlint.patterns.code.before import free_name, line_before
from fusionlint.patterns.code.calls import argument, has_only
from fusionlint.patterns.code.layout import Called, Part, in_place_of
from fusionlint.patterns.code.left_unused import left_unused
from fusionlint.patterns.code.modules import named
from fusionlint.patterns.operations.choice import CHOICE, are_numbers, choice, coin, listed, one_of_two
from fusionlint.patterns.operations.drawn import draws_again
from fusionlint.patterns.runs.concrete import is_concrete
from fusionlint.rule import Rule
from fusionlint.source.tree import Source

rule = Rule(__name__, harm="fusion")

_PERMUTATION = "jax.random.permutation"


@rule.source("Call", calls=(CHOICE,))
def choice_of_two(node: cst.Call, source: Source) -> Iterator[Finding]:
    """A draw from an array whose two elements are written out, both alike."""
    made = choice(node, source)
    values = listed(made.among, source) if made is not None and made.p is None else None
    if made is None or values is None or len(values) != 2 or is_concrete(node, source):
        return
    if any(isinstance(value, cst.List | cst.Tuple) for value in values) or _is_asked_by_python(node, source):
        return
    drawn = one_of_two(node, made, values, None, source)
    yield source.finding(
        node,
        "one of two values is drawn as a random integer, and gathered",
        write=" ".join(str(drawn).split()),
        edits=_edits(node, drawn, source) if are_numbers(made, values, source) else (),
    )


@rule.source("Call", calls=(_PERMUTATION,))
def order_of_two(node: cst.Call, source: Source) -> Iterator[Finding]:
    """A permutation of two numbers: of numbers in a row it does not matter whether each is moved for itself."""
    if not has_only(node, 2, "key", "x", "independent"):
        return
    key, among = argument(node, 0, "key"), argument(node, 1, "x")
    if key is None or among is None or not _is_of_two(among, source):
        return
    numpy = named("jax.numpy", node, source)
    pair = f"{numpy}.arange(2)" if isinstance(among, cst.Integer) else source.code(among)
    is_named = isinstance(among, cst.Name)
    x = pair if is_named else free_name("pair", node, source)
    drawn = Called(f"{numpy}.where", (coin(node, key, None, None, source), x, f"{x}[::-1]"))
    before = line_before(node, f"{x} = {pair}", source) if not is_named else None
    is_whole = (is_named or before is not None) and not source.has_comment(node) and not draws_again(node, source)
    yield source.finding(
        node,
        "two numbers are put in a random order by sorting random bits",
        write=str(drawn) if is_named else f"{x} = {' '.join(pair.split())}; {drawn}",
        edits=(*([before] if before is not None else ()), in_place_of(node, drawn, source)) if is_whole else (),
        pair=1,
    )


def _is_asked_by_python(node: cst.Call, source: Source) -> bool:
    """Whether Python goes by what is drawn, `if v == -1`, which no trace knows: one draw beside what the host does."""
    for read in source.readers(node):
        for below, above in source.outward(read):
            if isinstance(above, cst.If | cst.While | cst.IfExp) and above.test is below:
                return True
    return False


def _edits(node: cst.Call, drawn: Part, source: Source) -> tuple[Edit, ...]:
    """The draw, and without `sides = jnp.array([0, 1])` where nothing else reads that."""
    if source.has_comment(node) or draws_again(node, source):
        return ()
    return (in_place_of(node, drawn, source), *left_unused(node, str(drawn), source))


def _is_of_two(among: cst.BaseExpression, source: Source) -> bool:
    """Whether two numbers are written out: `2`, `jnp.arange(2, 4)`, `jnp.array([a, b])`."""
    values = listed(among, source)
    if values is not None:
        return len(values) == 2 and not any(isinstance(value, cst.List | cst.Tuple) for value in values)
    made = source.meant(among)
    if not source.calls(made, *RANGES):
        return constant(among) == 2
    first, last = argument(made, 0, "start"), argument(made, 1, "stop")
    match [constant(bound) for bound in (first, last) if bound is not None]:
        case [length]:
            return length == 2 and has_only(made, 1, "stop", "dtype")
        case [int(start), int(stop)]:
            return stop - start == 2 and has_only(made, 2, "start", "stop", "dtype")
    return False
