"""What a trace knows of values and places: what is written out, sizes, settings, what Python counts, arrays of that.

In: expressions of a Source, and the names that say how long an array is. Out: whether each is known.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

import libcst as cst

from fusionlint.lazily import regex
from fusionlint.patterns.code.at import (
    RANGES,
    TO_ARRAY,
    Part,
    at_write,
    elements,
    is_literal,
    is_static,
    is_whole,
    takes_all,
)
from fusionlint.patterns.code.calls import argument, by_position
from fusionlint.patterns.code.constants import is_called_constant
from fusionlint.patterns.code.unpacked import assigned, put, unpacked
from fusionlint.patterns.values.array_sizes import FILLED, FULL
from fusionlint.patterns.values.counts import is_counted, is_counted_on
from fusionlint.patterns.values.predicates import static_names
from fusionlint.patterns.values.records import given_as, is_made_of_defaults
from fusionlint.patterns.values.static_fields import is_static_field
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
# One number of a type, `jnp.bool_(True)`.
_NUMBER = regex(r"^(jax\.numpy|numpy)\.(bool_?|u?int(8|16|32|64)|b?float(16|32|64))$")
_CONSTANTS = regex(r"^(jax\.numpy|numpy|math)\.(pi|e|inf|nan|tau|euler_gamma)$")
# Functions whose result XLA knows where it knows what they are handed.
_ELEMENTWISE = regex(
    r"^(jax\.numpy|numpy|math)\."
    r"(abs|arctan2|clip|cos|exp|linspace|log|log2|log10|maximum|minimum|power|radians|sin|sqrt|square|tan|tanh|where)$"
)
# What counts along each axis, as far as it is told: no trace gets on with a length that it does not know.
_GRIDS = regex(r"^(jax\.numpy|numpy)\.(mgrid|ogrid)$")
# The ends of what a type holds.
_LIMITS = regex(r"^(jax\.numpy|numpy)\.[if]info$")
# What lays out anew, or joins, what is known, and takes nothing else but sizes.
_LAID_OUT = regex(
    r"^(jax\.numpy|numpy)\."
    r"(concatenate|expand_dims|flip|meshgrid|moveaxis|outer|ravel|repeat|reshape|stack|swapaxes|tile|transpose)$"
)
_LAID_OUT_BY_METHODS = frozenset(("astype", "flatten", "ravel", "reshape", "transpose", "repeat"))
# As long as the names of matrices are.
_LETTERS = 2
# A name seldom stands for more names than this.
DEPTH = 8


class Reader(NamedTuple):
    """One question. `sizes` are the names that say how long the array is, which a trace has to know; `assumed` are
    variables that are taken for known while what is stored in them is read. A wide one knows what is called as
    constants are, `self.SPEED`; one of `self` also what an object counts by, `self.n`, `self.place("x")`; one of grids
    what counts along each axis of an array, `jnp.mgrid[:h, :w]`, of which XLA folds no large one."""

    source: Source
    sizes: frozenset[str]
    assumed: frozenset[int] = frozenset()
    is_wide: bool = False
    is_of_self: bool = False
    is_of_grids: bool = False

    def is_array(self, array: cst.BaseExpression, depth: int) -> bool:
        """`jnp.zeros(n)`, `-jnp.ones(n)`, `jnp.array([1.0, 2.0])`, and what is written into them: of what shape, a
        trace knows in any case."""
        if depth <= 0:
            return False
        if (write := at_write(array)) is not None:
            parts, names = (write.value, *_asked(write.index)), min(depth, DEPTH)
            return self.is_array(write.array, depth) and all(
                p is not None and (self.is_known(p, names) or self._is_of_the_module(p)) for p in parts
            )
        match array:
            case cst.Name():
                return self._is_variable(array, depth)
            case cst.UnaryOperation(expression=inner):
                return self.is_array(inner, depth)
            case cst.BinaryOperation(left=left, right=right):
                return self._are_known(left, depth) and self._are_known(right, depth)
            case cst.Comparison(left=left, comparisons=others):
                return all(self._are_known(one, depth) for one in (left, *(other.comparator for other in others)))
            case cst.Subscript(value=cst.Attribute() as grid) if self.is_of_grids and self._is_named(_GRIDS, grid):
                return True
            case cst.Subscript(value=whole, slice=slices) if not isinstance(whole, cst.Attribute):
                return self.is_array(whole, depth - 1) and all(map(_is_static_or_new, elements(slices)))
            case cst.Attribute(value=cst.BaseExpression() as whole, attr=cst.Name("T" | "mT")):
                return self.is_array(whole, depth - 1)
            case cst.Call():
                is_new = self._is_made(array, depth) or self._is_laid_out(array, depth)
                return is_new or self._is_worked_out_of_known(array, depth)
            case cst.Attribute(value=cst.Name() as record):
                is_given = is_made_of_defaults(record, self.source) or is_static_name(record, self.source)
                return is_given or self._is_given(given_as(array, self.source), depth)
        return False

    def _is_given(self, array: cst.BaseExpression | None, depth: int) -> bool:
        return array is not None and self.is_array(array, depth - 1)

    def _is_made(self, array: cst.Call, depth: int) -> bool:
        """Whether `array` is new, and of numbers that are known."""
        is_number = self._is_of(_NUMBER, array)
        if is_number or self.source.calls(array, *TO_ARRAY) or dotted(array.func).endswith("asarray"):
            given = array.args[0].value if array.args else None
            return given is not None and (is_literal(given) or self.is_array(given, depth - 1))
        if self.source.calls(array, *FULL, *_FULL_LIKE):
            value = argument(array, 1, "fill_value")
            return value is not None and self.is_known(value, min(depth, DEPTH))
        return self.source.calls(array, *FILLED, *_LIKE)

    def _is_laid_out(self, array: cst.Call, depth: int) -> bool:
        """Whether `array` counts, or is what is known in another order, or worked on by itself: `jnp.arange(n)`,
        `jnp.stack([rows, columns])`, `x.reshape(-1)`, `jnp.sin(x)`."""
        given = by_position(array)
        if self.source.calls(array, *RANGES):
            return bool(given)  # no trace counts to what it does not know
        match array.func:
            case cst.Attribute(value=whole, attr=cst.Name(method)) if method in _LAID_OUT_BY_METHODS:
                if self.is_array(whole, depth - 1):
                    return True
        if self._is_of(_LAID_OUT, array):
            return bool(given) and self._are_known(given[0], depth)
        return self._is_of(_ELEMENTWISE, array) and all(self._are_known(one, depth) for one in given)

    def _is_worked_out_of_known(self, call: cst.Call, depth: int) -> bool:
        """Whether a function of the project, and of no other function or object, makes `call` of nothing but what is
        known: `room(height, width)`."""
        found = self.source.project.find(self.source.qualified_name(call.func))
        if found is None or "." in found.scope:
            return False
        if found.scope not in self.source.project.files[found.path].raw.functions:
            return False
        return bool(call.args) and all(not arg.star and self._are_known(arg.value, depth) for arg in call.args)

    def _is_of_the_module(self, part: Part) -> bool:
        """Whether a name is given at the file's own level, which a trace finds there."""
        if not isinstance(part, cst.Name):
            return False
        bound = self.source.facts.lookup(self.source.scope(part), part.value)
        return bound is not None and not bound[0] and bound[1].kind == "value"

    def _is_of(self, names: re.Pattern[str], call: cst.Call) -> bool:
        return self._is_named(names, call.func)

    def _is_named(self, names: re.Pattern[str], node: cst.BaseExpression) -> bool:
        return bool(names.match(self.source.qualified_name(node) or ""))

    def _are_known(self, given: cst.BaseExpression, depth: int) -> bool:
        """An array, a number, or several in brackets."""
        match given:
            case cst.Tuple(elements=several) | cst.List(elements=several):
                return all(self._are_known(one.value, depth - 1) for one in several)
        return self.is_array(given, depth - 1) or self.is_known(given, min(depth, DEPTH) - 1)

    def _is_variable(self, name: cst.Name, depth: int) -> bool:
        """Whether all that is stored in a variable is known, loops included: each goes on with what is known."""
        if self._is_of_the_module(name):
            return True
        value = self.source.value(name)
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
        if self.is_known(value, DEPTH):
            return True
        in_steps = any(isinstance(part, cst.Slice) and part.step is not None for part in index)
        return not in_steps and self.is_array(value, DEPTH)

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
            case cst.Attribute(value=cst.Call() as limits) if self.is_of_grids and self._is_of(_LIMITS, limits):
                return True
            case cst.Attribute():
                return self._is_known_attribute(part) or is_static_field(part, self.source)
            case cst.Subscript():
                return self._is_known_element(part, depth)
            case cst.Call():
                return self._is_known_call(part, depth) or (self.is_wide and self._is_worked_out(part, depth))
        return False

    def _is_known_element(self, part: cst.Subscript, depth: int) -> bool:
        """`x.shape[0]`, `config.widths[1]`, `n[None]`, what is looked up in a table of those, `cells[0, 1]` of an array
        that is written out; of a wide reader `self.params["mass"]`."""
        match part:
            case cst.Subscript(value=cst.Attribute(attr=cst.Name("shape"))):
                return True
            case cst.Subscript(value=inner, slice=slices) if all(map(takes_all, elements(slices))):
                return self.is_known(inner, depth)
            case cst.Subscript(value=cst.Name() as table, slice=slices):
                return self._is_table(table, depth) or (
                    self._is_written_out(table) and all(self.is_known(each, depth - 1) for each in elements(slices))
                )
            case cst.Subscript(
                value=cst.Attribute(value=cst.Name("self"), attr=cst.Name("params" | "_params")),
                slice=[cst.SubscriptElement(slice=cst.Index(value=cst.SimpleString()))],
            ) if self.is_wide:
                return True
            case cst.Subscript(value=cst.Attribute() as table):
                return self._is_known_attribute(table)
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
            # A list that begins empty is filled by what nobody sees here.
            return not _is_empty(value) and self.is_known(value, depth - 1)
        if name.value in self.sizes or is_called_constant(name.value):
            return True
        written = self.source.written(name)
        if written is None:
            return is_counted_on(name, self.source) or self._is_added_up(name, depth)
        if self.is_of_grids and _is_of_a_shape(written, self.source):
            return True
        return is_counted(written, self.source) or self._is_listed(written, depth) or _is_static(written, self.source)

    def _is_added_up(self, name: cst.Name, depth: int) -> bool:
        """`start = 0`, then `start += length` of lengths that are known."""
        writes = [use.node for use in self.source.writes(name)]
        if not writes or id(writes[0]) in self.assumed:
            return bool(writes)
        assuming = self._replace(assumed=self.assumed | {id(writes[0])})
        values = [put(each, self.source) for each in writes]
        return all(value is not None and assuming.is_known(value, depth - 1) for value in values)

    def _is_listed(self, written: cst.Name, depth: int) -> bool:
        """Whether a loop goes over what is written out, `for rows in (slice(0, n), slice(n, None))`."""
        match self.source.parent(written):
            case cst.For(target=target, iter=over) if target is written:
                listed = self.source.meant(over)
                if isinstance(listed, cst.Tuple | cst.List):
                    known = (self.is_known(element.value, depth - 1) for element in listed.elements)
                    return not _is_empty(listed) and all(known)
        return False

    def _is_known_call(self, call: cst.Call, depth: int) -> bool:
        if self.source.calls(call, *_PLACES):
            return bool(call.args)
        if self.source.calls(call, *TO_ARRAY):
            return bool(call.args) and is_literal(call.args[0].value)
        if isinstance(call.func, cst.Name) and call.func.value == "slice":
            return True  # no trace cuts at what it does not know
        # Of what it is, an array has no `index`; a list has.
        is_found = isinstance(call.func, cst.Attribute) and call.func.attr.value == "index"
        # Numbers of Python, which no trace makes of what it does not know; and which of those is the largest.
        if is_found or self.source.calls(call, "len", "int", "float"):
            return True
        return self.source.calls(call, "max", "min") and all(self.is_known(arg.value, depth - 1) for arg in call.args)

    def _is_written_out(self, array: cst.Name) -> bool:
        """`jnp.array([[0, 1], [2, 3]])`, by its name."""
        match self.source.value(array):
            case cst.Call(args=[cst.Arg(value=given), *_]) as made:
                return self.source.calls(made, *TO_ARRAY) and is_literal(given)
        return False

    def _is_table(self, table: cst.Name, depth: int) -> bool:
        """Whether what is looked up is known, whatever by: `{name: i for i, name in enumerate(names)}`,
        `list(config.widths)`."""
        match self.source.value(table):
            case cst.Attribute() | cst.List() | cst.Tuple() as whole:
                return self.is_known(whole, depth - 1)
            case cst.Call(func=cst.Name("list" | "tuple"), args=[cst.Arg(value=whole)]):
                return self.is_known(whole, depth - 1)
            case cst.DictComp(value=value):
                return self.is_known(value, depth - 1)
            case cst.Dict(elements=entries):
                return all(isinstance(e, cst.DictElement) and self.is_known(e.value, depth - 1) for e in entries)
        return False


def _is_of_a_shape(written: cst.Name, source: Source) -> bool:
    """Whether this is `h` of `h, w = x.shape`."""
    match unpacked(written, source):
        case cst.Attribute(attr=cst.Name("shape")):
            return True
    return False


def _is_of_a_class(said: Sequence[str]) -> bool:
    """`Node.GOAL`, a constant of a class, and `cells.EARTH`, a word in capitals: a matrix has a letter or two."""
    *_, owner, constant = ["", *said]
    if owner[:1].isupper():
        return is_called_constant(constant)
    return is_called_constant(constant, longest_matrix=_LETTERS) and owner != "self"


def _is_static(written: cst.Name, source: Source) -> bool:
    """Whether this is a parameter that is said to be static, `@partial(jax.jit, static_argnames=("n",))`."""
    if not isinstance(source.parent(written), cst.Param):
        return False
    function = source.nearest(written, cst.FunctionDef)
    return function is not None and written.value in static_names(function, source)


def is_static_name(name: cst.Name, source: Source) -> bool:
    """Whether `name` is such a parameter, as `self` of a method with `static_argnums=0`: its arrays are constants."""
    written = source.written(name)
    return written is not None and _is_static(written, source)


def _asked(index: Sequence[Part]) -> Sequence[Part]:
    """The parts of an index that have to be known: not where a slice of rows begins and ends, which a trace knows."""
    first, *others = index
    return () if isinstance(first, cst.Slice) and all(map(is_whole, others)) else index


def _is_empty(value: cst.BaseExpression) -> bool:
    return isinstance(value, cst.List | cst.Tuple) and not value.elements


def _is_static_or_new(part: Part) -> bool:
    """A part of an index that is written out: a number, `1:`, `None`."""
    return is_static(part) or takes_all(part)
