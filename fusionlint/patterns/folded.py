"""Arrays that are known when a program is compiled: XLA writes them out, whatever is set in them one after the other.

In: writes of a Source. Out: whether the array, the places and the values are made of numbers that are written out, of
sizes, settings and what Python counts. Of that a compiled program keeps a constant, as measured on the pages.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

import libcst as cst

from fusionlint.lazily import regex
from fusionlint.patterns.array_sizes import FILLED, FULL, sizes_of
from fusionlint.patterns.at import (
    RANGES,
    TO_ARRAY,
    Part,
    Write,
    at_write,
    elements,
    is_literal,
    is_none,
    is_static,
    is_whole,
)
from fusionlint.patterns.at_chain import root
from fusionlint.patterns.calls import argument
from fusionlint.patterns.counts import is_counted, is_counted_on
from fusionlint.patterns.records import is_made_of_defaults
from fusionlint.patterns.unpacked import assigned, stored
from fusionlint.source.tree import Source
from fusionlint.source.walk import dotted

# Of an array that need not be known: only its shape and type are asked for.
_LIKE = ("jax.numpy.zeros_like", "jax.numpy.ones_like", "jax.numpy.empty_like")
_FULL_LIKE = ("jax.numpy.full_like",)
# Places of which a trace knows all when it knows how many there are, as it has to.
_PLACES = tuple(
    f"{module}.{name}"
    for module in ("jax.numpy", "numpy")
    for name in ("arange", "diag_indices", "diag_indices_from", "tril_indices", "triu_indices")
)
# What is set before a program is compiled.
_SETTING = regex(r"^_?(config|cfg|hparams|settings|constants|consts)$", re.I)
_ABOUT = frozenset(("ndim", "size"))
_CONSTANTS = regex(r"^(jax\.numpy|numpy|math)\.(pi|e|inf|nan|tau|euler_gamma)$")
# Functions whose result XLA knows where it knows what they are handed.
_ELEMENTWISE = regex(
    r"^(jax\.numpy|numpy|math)\."
    r"(abs|arctan2|clip|cos|exp|linspace|log|log2|log10|maximum|minimum|power|radians|sin|sqrt|square|tan|tanh|where)$"
)
# What lays out anew, or joins, what is known, and takes nothing else but sizes.
_LAID_OUT = regex(
    r"^(jax\.numpy|numpy)\."
    r"(concatenate|expand_dims|flip|meshgrid|moveaxis|outer|ravel|repeat|reshape|stack|swapaxes|tile|transpose)$"
)
_LAID_OUT_BY_METHODS = frozenset(("astype", "flatten", "ravel", "reshape", "transpose", "repeat"))
# As long as the names of matrices are.
_LETTERS = 2
# A name seldom stands for more names than this, and an array is seldom written more often in a row.
_DEPTH = 8
_WRITES = 32


def is_folded(writes: Sequence[Write], source: Source) -> bool:
    """Whether XLA knows the result before the program runs: known values at known places of a known array."""
    made = [root(writes[0]), *(write.value for write in writes if write.value is not None)]
    sizes = frozenset(size for one in made for size in sizes_of(one, source))
    # Where a slice ends at a field, `: self.count`, along a second axis, XLA leaves the write as it is, as measured.
    return _is_known(writes, _Reader(source, sizes), _Reader(source, frozenset(filter(str.isidentifier, sizes))))


def is_set_up(writes: Sequence[Write], source: Source) -> bool:
    """Whether a few writes in a row make what an object knows of itself, `bounds(self)` of a problem: numbers that are
    written out, at places that its settings say. XLA folds them, and whoever asks without a trace does so once.

    Of a loop nothing is said: so many writes are many dispatches there.
    """
    function = source.function(writes[0].call)
    if not isinstance(function, cst.FunctionDef) or source.code(function.params).strip() not in ("self", "cls"):
        return False
    sizes = frozenset(filter(str.isidentifier, sizes_of(root(writes[0]), source)))
    reader = _Reader(source, sizes, is_wide=True)
    return _is_known(writes, reader, reader._replace(is_of_self=True))


def _is_known(writes: Sequence[Write], values: _Reader, places: _Reader) -> bool:
    """Whether one reader knows the values that are written, and the other where they are."""
    array = root(writes[0])
    rows = [() if _is_rows(write) else write.index for write in writes]
    return (
        values.is_array(array, _WRITES)
        and all(write.value is not None and values.is_value(write.value, write.index) for write in writes)
        and all(places.is_known(part, _DEPTH) for index in rows for part in index)
    )


def _is_rows(write: Write) -> bool:
    """`.at[begin:end]`: where a slice begins and ends, a trace has to know. Slices along other axes are left as writes,
    as measured, where more than a little is written."""
    first, *others = write.index
    return isinstance(first, cst.Slice) and not is_whole(first) and all(map(is_whole, others))


class _Reader(NamedTuple):
    """One question. `sizes` are the names that say how long the array is, which a trace has to know; `assumed` are
    variables that are taken for known while what is stored in them is read. A wide one knows what is called as
    constants are, `self.SPEED`; one of `self` also what an object counts by, `self.n`, `self.place("x")`."""

    source: Source
    sizes: frozenset[str]
    assumed: frozenset[int] = frozenset()
    is_wide: bool = False
    is_of_self: bool = False

    def is_array(self, array: cst.BaseExpression, depth: int) -> bool:
        """`jnp.zeros(n)`, `-jnp.ones(n)`, `jnp.array([1.0, 2.0])`, and what is written into them: of what shape, a
        trace knows in any case."""
        if depth <= 0:
            return False
        if (write := at_write(array)) is not None:
            parts, names = (write.value, *write.index), min(depth, _DEPTH)
            return self.is_array(write.array, depth) and all(p is not None and self.is_known(p, names) for p in parts)
        match array:
            case cst.Name():
                return self._is_variable(array, depth)
            case cst.UnaryOperation(expression=inner):
                return self.is_array(inner, depth)
            case cst.BinaryOperation(left=left, right=right):
                return self._are_known(left, depth) and self._are_known(right, depth)
            case cst.Comparison(left=left, comparisons=others):
                return all(self._are_known(one, depth) for one in (left, *(other.comparator for other in others)))
            case cst.Subscript(value=whole, slice=slices) if not isinstance(whole, cst.Attribute):
                return self.is_array(whole, depth - 1) and all(map(_is_static_or_new, elements(slices)))
            case cst.Attribute(value=cst.BaseExpression() as whole, attr=cst.Name("T" | "mT")):
                return self.is_array(whole, depth - 1)
            case cst.Call():
                return self._is_made(array, depth) or self._is_laid_out(array, depth)
            case cst.Attribute(value=cst.Name() as record):
                return is_made_of_defaults(record, self.source)
        return False

    def _is_made(self, array: cst.Call, depth: int) -> bool:
        """Whether `array` is new, and of numbers that are known."""
        if self.source.calls(array, *TO_ARRAY) or dotted(array.func).endswith("asarray"):
            given = array.args[0].value if array.args else None
            return given is not None and (is_literal(given) or self.is_array(given, depth - 1))
        if self.source.calls(array, *FULL, *_FULL_LIKE):
            value = argument(array, 1, "fill_value")
            return value is not None and self.is_known(value, min(depth, _DEPTH))
        return self.source.calls(array, *FILLED, *_LIKE)

    def _is_laid_out(self, array: cst.Call, depth: int) -> bool:
        """Whether `array` counts, or is what is known in another order, or worked on by itself: `jnp.arange(n)`,
        `jnp.stack([rows, columns])`, `x.reshape(-1)`, `jnp.sin(x)`."""
        given = [arg.value for arg in array.args if arg.keyword is None]
        if self.source.calls(array, *RANGES):
            return bool(given)  # no trace counts to what it does not know
        match array.func:
            case cst.Attribute(value=whole, attr=cst.Name(method)) if method in _LAID_OUT_BY_METHODS:
                if self.is_array(whole, depth - 1):
                    return True
        if self._is_of(_LAID_OUT, array):
            return bool(given) and self._are_known(given[0], depth)
        return self._is_of(_ELEMENTWISE, array) and all(self._are_known(one, depth) for one in given)

    def _is_of(self, names: re.Pattern[str], call: cst.Call) -> bool:
        return bool(names.match(self.source.qualified_name(call.func) or ""))

    def _are_known(self, given: cst.BaseExpression, depth: int) -> bool:
        """An array, a number, or several in brackets."""
        match given:
            case cst.Tuple(elements=several) | cst.List(elements=several):
                return all(self._are_known(one.value, depth - 1) for one in several)
        return self.is_array(given, depth - 1) or self.is_known(given, min(depth, _DEPTH) - 1)

    def _is_variable(self, name: cst.Name, depth: int) -> bool:
        """Whether all that is stored in a variable is known, loops included: each goes on with what is known."""
        value = stored(name, self.source)
        if value is not None:
            return self.is_array(value, depth - 1)
        writes = [use.node for use in self.source.writes(name)]
        if not writes:
            return False
        if id(writes[0]) in self.assumed:
            return True
        assuming = self._replace(assumed=self.assumed | {id(writes[0])})
        values = [assigned(each, self.source) for each in writes]
        return all(value is not None and assuming.is_array(value, depth - 1) for value in values)

    def is_value(self, value: cst.BaseExpression, index: Sequence[Part]) -> bool:
        """Whether what is written is a known number, or an array that is known: not in steps, which is a scatter."""
        if self.is_known(value, _DEPTH):
            return True
        in_steps = any(isinstance(part, cst.Slice) and part.step is not None for part in index)
        return not in_steps and self.is_array(value, _DEPTH)

    def is_known(self, part: Part, depth: int) -> bool:
        """Whether `part` is a number when the program is compiled: written out, a size, counted, or made of those."""
        if isinstance(part, cst.Slice):
            bounds = (part.lower, part.upper, part.step)
            return is_static(part) or all(bound is None or self.is_known(bound, depth) for bound in bounds)
        if not isinstance(part, cst.BaseExpression) or depth <= 0:
            return False
        if is_literal(part) or (not isinstance(part, cst.Name) and self.source.code(part) in self.sizes):
            return True
        match part:
            case cst.Name():
                return self._is_known_name(part, depth)
            case cst.BinaryOperation(left=left, right=right):
                return all(self.is_known(operand, depth) for operand in (left, right))
            case cst.UnaryOperation(expression=inner):
                return self.is_known(inner, depth)
            case cst.Attribute():
                return self._is_known_attribute(part)
            case cst.Subscript(value=cst.Attribute(attr=cst.Name("shape"))):
                return True
            case cst.Subscript(value=inner, slice=slices) if all(_is_new_axis(each) for each in elements(slices)):
                return self.is_known(inner, depth)
            case cst.Subscript(value=cst.Name() as table):
                return self._is_dictionary(table, depth)
            case cst.Call():
                return self._is_known_call(part) or (self.is_wide and self._is_worked_out(part, depth))
        return False

    def _is_known_attribute(self, part: cst.Attribute) -> bool:
        """`x.ndim`, `config.width`, `Node.GOAL`, `jnp.pi`; of a wide reader `self.SPEED`, and what an object counts by,
        `self.n`."""
        said = dotted(part).split(".")
        if said[-1] in _ABOUT or any(map(_SETTING.match, said)) or _is_of_a_class(said):
            return True
        if _CONSTANTS.match(self.source.qualified_name(part) or ""):
            return True
        return self.is_wide and len(said) == 2 and said[0] == "self" and (self.is_of_self or said[1].isupper())

    def _is_worked_out(self, call: cst.Call, depth: int) -> bool:
        """`jnp.cos(0.3)`; of where something stands also `self.place("x", 1)`."""
        if not all(arg.star == "" and self.is_known(arg.value, depth - 1) for arg in call.args):
            return False
        is_asked = isinstance(call.func, cst.Attribute) and dotted(call.func).startswith("self.")
        return (is_asked and self.is_of_self) or self._is_of(_ELEMENTWISE, call)

    def _is_known_name(self, name: cst.Name, depth: int) -> bool:
        value = self.source.value(name)
        if name.value not in self.sizes and value is not None:
            return self.is_known(value, depth - 1)
        if name.value in self.sizes or (name.value.isupper() and len(name.value) > 1):
            return True
        written = self.source.written(name)
        if written is None:
            return is_counted_on(name, self.source)
        return is_counted(written, self.source) or self._is_listed(written, depth)

    def _is_listed(self, written: cst.Name, depth: int) -> bool:
        """Whether a loop goes over what is written out, `for rows in (slice(0, n), slice(n, None))`."""
        match self.source.parent(written):
            case cst.For(target=target, iter=over) if target is written:
                listed = self.source.meant(over)
                if isinstance(listed, cst.Tuple | cst.List):
                    return all(self.is_known(element.value, depth - 1) for element in listed.elements)
        return False

    def _is_known_call(self, call: cst.Call) -> bool:
        if self.source.calls(call, *_PLACES):
            return bool(call.args)
        if self.source.calls(call, *TO_ARRAY):
            return bool(call.args) and is_literal(call.args[0].value)
        if isinstance(call.func, cst.Name) and call.func.value == "slice":
            return True  # no trace cuts at what it does not know
        # Of what it is, an array has no `index`; a list has.
        is_found = isinstance(call.func, cst.Attribute) and call.func.attr.value == "index"
        return is_found or self.source.calls(call, "len")

    def _is_dictionary(self, table: cst.Name, depth: int) -> bool:
        """Whether what is looked up is known, whatever by: `{name: i for i, name in enumerate(names)}`."""
        match self.source.value(table):
            case cst.DictComp(value=value):
                return self.is_known(value, depth - 1)
            case cst.Dict(elements=entries):
                return all(isinstance(e, cst.DictElement) and self.is_known(e.value, depth - 1) for e in entries)
        return False


def _is_of_a_class(said: Sequence[str]) -> bool:
    """`Node.GOAL`, a constant of a class, and `cells.EARTH`, a word in capitals: a matrix has a letter or two."""
    *_, owner, constant = ["", *said]
    if owner[:1].isupper():
        return constant.isupper() and len(constant) > 1
    return constant.isupper() and len(constant) > _LETTERS and owner != "self"


def _is_static_or_new(part: Part) -> bool:
    """A part of an index that is written out: a number, `1:`, `None`."""
    return is_static(part) or _is_new_axis(part)


def _is_new_axis(part: Part) -> bool:
    """`:`, `None` or `...`."""
    return is_whole(part) or is_none(part)
