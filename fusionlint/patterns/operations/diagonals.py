"""Products with diagonal matrices, `jnp.diag(v) @ a`, and what they are without: `v[:, None] * a`.

In: a call of `jnp.diag` in a Source that makes a matrix of a vector. Out: the products it is a factor of, and the edits
that multiply by the vector instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import libcst as cst

from fusionlint.finding import Edit
from fusionlint.patterns.code.at import inside, names_read
from fusionlint.patterns.code.calls import as_operand
from fusionlint.patterns.code.left_unused import whole_line
from fusionlint.patterns.code.rewritten import rewritten
from fusionlint.patterns.code.same import is_same_at
from fusionlint.patterns.operations.products import Product, chain_around, product_of
from fusionlint.patterns.values.factors import Axes, axes_of
from fusionlint.patterns.values.kinds import kind
from fusionlint.patterns.values.matrices import TRANSPOSES
from fusionlint.source.tree import Source
from fusionlint.source.walk import holds_comment

_NEW_LINE = "\n"
DIAGONALS = ("jax.numpy.diag", "jax.numpy.diagflat")


def factors_of(node: cst.Call, source: Source) -> list[cst.BaseExpression]:
    """The matrix, or the reads of its name where all of them are factors: who needs it whole has to make it."""
    name = source.assigned_name(node)
    if name is None:
        return [node] if product_of(node, source) is not None else []
    reads = source.reads(name)
    if any(_is_transposed(read, source) for read in reads):
        return []  # nobody transposes a diagonal matrix: this is the diagonal of one
    return [*reads] if all(product_of(read, source) is not None for read in reads) else []


def _is_transposed(read: cst.Name, source: Source) -> bool:
    above = source.parent(read)
    return isinstance(above, cst.Attribute) and above.value is read and above.attr.value in TRANSPOSES


def without_diagonals(node: cst.Call, is_one: Callable[[cst.Call], bool], source: Source) -> tuple[Edit, ...]:
    """The edits by which the vector of `node`, and those of other diagonal matrices in the same chains of products, are
    multiplied by, where `is_one` says that a call makes one; none where that needs what is not seen: whether the rows
    of a matrix are multiplied, or a vector.

    Not safe: sums of zeros are left out, with them the NaN that zero times infinity gives, and rounding.
    """
    matrices = [_Matrix(call, tuple(factors_of(call, source)), source) for call in _together(node, is_one, source)]
    if not all(matrix.can_go for matrix in matrices):
        return ()
    vectors = {factor: matrix.read for matrix in matrices for factor in matrix.factors}
    products = {found.whole: found for factor in vectors if (found := product_of(factor, source)) is not None}
    rewriting = _Rewriting(products, vectors, source)
    if not all(map(rewriting.can_write, products.values())):
        return ()
    chains = list(dict.fromkeys(chain_around(whole, source) for whole in products))
    outermost = [chain for chain in chains if not any(other in source.ancestors(chain) for other in chains)]
    if any(source.has_comment(chain) for chain in outermost):
        return ()
    edits = [source.replace(chain, rewriting.standing(chain)) for chain in outermost]
    return (*edits, *(edit for matrix in matrices for edit in matrix.edits()))


def _together(node: cst.Call, is_one: Callable[[cst.Call], bool], source: Source) -> list[cst.Call]:
    """`node`, and what else makes diagonal matrices of the same chains: where one goes, all of them have to."""
    found = [node]
    for call in found:
        for factor in factors_of(call, source):
            product = product_of(factor, source)
            chain = chain_around(product.whole, source) if product is not None else factor
            names = (source.value(name) for name in names_read(chain))
            made = dict.fromkeys(each for each in (*names, *inside(chain)) if isinstance(each, cst.Call))
            found += [each for each in made if each not in found and is_one(each) and _can_go(each, source)]
    return found


def _can_go(call: cst.Call, source: Source) -> bool:
    return source.function(call) is not None and bool(factors_of(call, source))


@dataclass(frozen=True, slots=True)
class _Matrix:
    """A call that makes a diagonal matrix, and where that is a factor."""

    call: cst.Call
    factors: tuple[cst.BaseExpression, ...]
    source: Source

    @property
    def vector(self) -> cst.BaseExpression:
        return self.call.args[0].value

    @property
    def can_go(self) -> bool:
        """Whether all that reads the matrix reads nothing else under its name."""
        name = self.source.assigned_name(self.call)
        is_plain = name is None or isinstance(self.source.parent(self.call), cst.Assign)
        written = (self.source.written(read) for read in self.factors if isinstance(read, cst.Name))
        return is_plain and all(each is name for each in written) and not holds_comment(self.call)

    @property
    def is_inlined(self) -> bool:
        """Whether the vector is read where the matrix was, and its line goes."""
        name = self.source.assigned_name(self.call)
        if name is None:
            return True
        is_short = len(self.factors) == 1 or isinstance(self.vector, cst.Name)
        is_same = all(is_same_at(self.vector, factor, self.source, dropped=name) for factor in self.factors)
        return is_short and is_same and whole_line(self._statement, self.source) is not None

    @property
    def _statement(self) -> cst.Assign:
        statement = self.source.parent(self.call)
        assert isinstance(statement, cst.Assign)
        return statement

    @property
    def read(self) -> tuple[cst.BaseExpression, str] | None:
        """The vector where the matrix was read, and its text; None where it keeps the matrix' name."""
        return (self.vector, self.source.code(self.vector)) if self.is_inlined else None

    def edits(self) -> Iterator[Edit]:
        if self.source.assigned_name(self.call) is None:
            return
        line = whole_line(self._statement, self.source) if self.is_inlined else None
        if line is not None:
            yield Edit(line, "")
        else:
            text = self.source.code(self.vector)
            yield self.source.replace(self.call, f"({text})" if "\n" in text else text)


class _Rewriting(NamedTuple):
    """The products to write anew, and the vectors behind their factors."""

    products: Mapping[cst.BaseExpression, Product]
    vectors: Mapping[cst.BaseExpression, tuple[cst.BaseExpression, str] | None]
    source: Source

    def can_write(self, product: Product) -> bool:
        """Whether a product can be written elementwise: with the matrix on the right always, on the left where the
        other factor is seen to be a matrix or a vector. A product with another diagonal matrix is a matrix."""
        vector, _ = self.vectors[self._matrix(product)] or (self._matrix(product), "")
        if _bare(product.other) in self.vectors or _asks_for_more(product.whole):
            return False
        if kind(vector, self.source) == kind(product.other, self.source) == "numpy":
            return False  # whose product with numpy's is no array of jax
        return product.is_right or self._rows_of(product) is not None

    def _rows_of(self, product: Product) -> Axes | None:
        """What a diagonal matrix on the left multiplies: between one and itself again nobody puts a vector."""
        behind = (each for each in self.products.values() if each.is_right and each.other is product.whole)
        is_between = any(self._matrix(each).deep_equals(self._matrix(product)) for each in behind)
        return "matrix" if is_between else self._axes(product.other)

    def _axes(self, node: cst.BaseExpression) -> Axes | None:
        return self._axes(self.products[node].other) if node in self.products else axes_of(node, self.source)

    def _matrix(self, product: Product) -> cst.BaseExpression:
        return product.factor if product.factor in self.vectors else _bare(product.factor)

    def standing(self, chain: cst.BaseExpression) -> str:
        """A chain as it can stand where it stood."""
        text = self.text(chain)
        if chain not in self.products or chain.lpar:
            return text
        above = self.source.parent(chain)
        is_tight = isinstance(above, cst.Attribute | cst.Subscript | cst.UnaryOperation) or (
            isinstance(above, cst.BinaryOperation) and not isinstance(above.operator, cst.Add | cst.Subtract)
        )
        return f"({text})" if is_tight else text

    def text(self, node: cst.BaseExpression) -> str:
        if node in self.products:
            return self._multiplied(self.products[node])
        parts = {part: self.standing(part) for part in self._outermost(node)}
        return rewritten(node, parts, self.source)

    def _multiplied(self, product: Product) -> str:
        factor, other = self._matrix(product), self.text(product.other)
        vector, text = self.vectors[factor] or (factor, self.source.code(factor))
        is_chain = product.other in self.products
        if product.is_right:
            is_power = isinstance(vector, cst.BinaryOperation) and isinstance(vector.operator, cst.Power)
            first = other if is_chain else as_operand(product.other, other)
            return f"{first} * {text if is_power and _NEW_LINE not in text else as_operand(vector, text)}"
        second = f"({other})" if is_chain else as_operand(product.other, other)
        spread = "[:, None]" if self._rows_of(product) == "matrix" else ""
        return f"{as_operand(vector, text)}{spread} * {second}"

    def _outermost(self, node: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
        """The products to write anew in `node` that are in no other."""
        found = [part for part in inside(node) if part in self.products and isinstance(part, cst.BaseExpression)]
        yield from (part for part in found if not any(other in self.source.ancestors(part) for other in found))


def _bare(factor: cst.BaseExpression) -> cst.BaseExpression:
    """What is transposed, of what is."""
    is_turned = isinstance(factor, cst.Attribute) and factor.attr.value in TRANSPOSES
    return factor.value if isinstance(factor, cst.Attribute) and is_turned else factor


def _asks_for_more(product: cst.BaseExpression) -> bool:
    """Whether a product is asked for a type; how exact it is may be asked, for what is elementwise is exact."""
    more = product.args[2:] if isinstance(product, cst.Call) else ()
    return any(arg.keyword is None or arg.keyword.value != "precision" for arg in more)
