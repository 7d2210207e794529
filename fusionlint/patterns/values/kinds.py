"""What a value is, as far as a rule needs: a jax array, a numpy array, a Python number, a list of arrays, a key.

In: expressions of a Source. Out: a Kind, None for what cannot be seen. Python numbers are known while XLA compiles:
`len(x)`, `x.shape[0]`, the elements of `range(n)`; a range itself counts as one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import libcst as cst

from fusionlint.lazily import regex
from fusionlint.patterns.values.annotations import Kind, annotated
from fusionlint.patterns.values.returned import returned_by
from fusionlint.source.facts import last_name
from fusionlint.source.tree import Source
from fusionlint.source.walk import dotted, lines_of

__all__ = ["Kind", "element_kind", "kind"]

_DEPTH = 10
_WRITES = 8  # of a variable written more often nothing is said
_SAME = frozenset(("min", "max", "abs", "pow", "divmod"))
_CONSTANTS = regex(r"^(jax\.numpy|numpy|math)\.(pi|e|inf|nan|tau|euler_gamma|newaxis)$")
_METHODS = (
    "all any argmax argmin argsort astype clip compress conj conjugate copy cumprod cumsum diagonal dot flatten max"
    " mean min prod ravel repeat reshape round searchsorted sort squeeze std sum swapaxes take trace transpose var"
    " block_until_ready"
)
_ATTRIBUTES = frozenset(("T", "mT", "real", "imag"))
_WRITING = frozenset(("set", "add", "multiply", "mul", "divide", "div", "power", "min", "max", "apply", "get"))
# A field of these is a leaf of a tree: what is annotated as an int is an array under a trace.
_LEAVES = ("flax.struct.dataclass", "chex.dataclass", "jax_dataclasses.pytree_dataclass", "tree_math.struct")


def kind(node: cst.BaseExpression, source: Source) -> Kind | None:
    """What the value of `node` is; None where that is unknown."""
    return _Reader(source).of(node, _DEPTH)


def element_kind(node: cst.BaseExpression, source: Source) -> Kind | None:
    """What a loop over `node` gets one by one; None where that is unknown, or where it gets tuples."""
    return _Reader(source).element(node, _DEPTH)


class _Reader(NamedTuple):
    """One question. `assumed` is what a variable is taken for while its own writes are read."""

    source: Source
    assumed: tuple[tuple[int, Kind | None], ...] = ()

    def of(self, node: cst.BaseExpression, depth: int) -> Kind | None:
        if depth == 0:
            return None
        match node:
            case cst.Integer() | cst.Float() | cst.Imaginary():
                return "scalar"
            case cst.Name(value="True" | "False"):
                return "scalar"
            case cst.Name():
                return self._of_name(node, depth)
            case cst.Attribute():
                return self._of_attribute(node, depth)
            case cst.Subscript():
                return self._of_subscript(node, depth)
            case cst.Call():
                return self._of_call(node, depth)
            case cst.NamedExpr(value=value):
                return self.of(value, depth)
        return self._of_compound(node, depth)

    def _of_compound(self, node: cst.BaseExpression, depth: int) -> Kind | None:
        match node:
            case cst.BinaryOperation(left=left, right=right):
                return _joined([self.of(left, depth - 1), self.of(right, depth - 1)])
            case cst.UnaryOperation(operator=cst.Not()):
                return "scalar"
            case cst.UnaryOperation(expression=expression):
                return self.of(expression, depth)
            case cst.Comparison(
                comparisons=[
                    cst.ComparisonTarget(operator=cst.Is() | cst.IsNot() | cst.In())
                    | cst.ComparisonTarget(comparator=cst.Name("None"))
                ]
            ):
                return "scalar"  # an array is no None, and says so to `x != None` too
            case cst.Comparison(left=left, comparisons=comparisons):
                return _joined([self.of(n, depth - 1) for n in (left, *(c.comparator for c in comparisons))])
            case cst.BooleanOperation(left=left, right=right) | cst.IfExp(body=left, orelse=right):
                return _agreed([self.of(left, depth - 1), self.of(right, depth - 1)])
            case cst.List() | cst.Tuple() | cst.ListComp():
                return "list" if self.element(node, depth) in ("array", "key") else None
        return None

    def element(self, node: cst.BaseExpression, depth: int) -> Kind | None:
        """What `node` holds, one by one."""
        match node:
            case cst.List(elements=elements) | cst.Tuple(elements=elements):
                return _agreed([self.of(e.value, depth - 1) for e in elements if isinstance(e, cst.Element)])
            case cst.ListComp(elt=made) | cst.GeneratorExp(elt=made):
                return self.of(made, depth - 1)
            case cst.Attribute(attr=cst.Name("shape")):
                return "scalar"
            case cst.Subscript(value=whole, slice=[cst.SubscriptElement(slice=cst.Slice())]):
                return self.element(whole, depth - 1) if depth else None
            case cst.Call(args=[cst.Arg(value=inner)]) if self.source.calls(
                node, "reversed", "list", "tuple", "sorted"
            ):
                return self.element(inner, depth - 1)
            case cst.Name() if (value := self.source.value(node)) is not None and depth:
                found = self.element(value, depth - 1)
                return found or _held(self.of(node, depth))
        return _held(self.of(node, depth))

    def _of_attribute(self, node: cst.Attribute, depth: int) -> Kind | None:
        name, owner = node.attr.value, node.value
        if _CONSTANTS.match(self.source.qualified_name(node) or ""):
            return "scalar"
        if name == "ndim":
            return "scalar"
        if isinstance(owner, cst.Name) and (field := self._field(owner, name)) is not None:
            return field
        if name in _ATTRIBUTES or name == "size":
            whole = self.of(owner, depth - 1)
            if whole in ("array", "numpy"):
                return "scalar" if name == "size" else whole
        return None

    def _field(self, owner: cst.Name, name: str) -> Kind | None:
        """What the class of `self`, or of a parameter annotated with a class of this file, says of its field."""
        if owner.value == "self":
            around = (a for a in self.source.ancestors(owner) if isinstance(a, cst.ClassDef))
            return self._declared(next(around, None), name)
        parameter = self.source.parameter(owner)
        if parameter is not None and parameter.annotation is not None:
            meant = dotted(parameter.annotation.annotation)
            scopes = (scope for scope in self.source.facts.raw.classes if meant and last_name(scope) == meant)
            classes = (c for c in map(self.source.definition, scopes) if isinstance(c, cst.ClassDef))
            return self._declared(next(classes, None), name)
        return None

    def _declared(self, owner: cst.ClassDef | None, name: str) -> Kind | None:
        for statement in lines_of(owner) if owner is not None else ():
            match statement:
                case cst.SimpleStatementLine(
                    body=[cst.AnnAssign(target=cst.Name(found), annotation=cst.Annotation(annotation=annotation))]
                ) if found == name and owner is not None:
                    said = annotated(annotation, name, statement, self.source)
                    return None if said == "scalar" and self._is_tree(owner) else said
        return None

    def _is_tree(self, owner: cst.ClassDef) -> bool:
        """Whether the fields of a class are leaves of a tree."""
        decorators = (d.decorator for d in owner.decorators)
        made = [d.func if isinstance(d, cst.Call) else d for d in decorators]
        bases = {dotted(arg.value).rpartition(".")[2] for arg in owner.bases}
        named = any(self.source.qualified_name(d) in _LEAVES or "pytree" in dotted(d) for d in made)
        return (
            named
            or any(self.source.qualified_name(arg.value) == "typing.NamedTuple" for arg in owner.bases)
            or (not bases.isdisjoint(("PyTreeNode", "EnvState", "EnvParams", "PyTree")))
        )

    def _of_subscript(self, node: cst.Subscript, depth: int) -> Kind | None:
        match node:
            case cst.Subscript(
                value=cst.Attribute(attr=cst.Name("shape")), slice=[cst.SubscriptElement(slice=cst.Index())]
            ):
                return "scalar"
            case cst.Subscript(value=value, slice=[cst.SubscriptElement(slice=cst.Slice())]):
                return self.of(value, depth - 1)
        whole = self.of(node.value, depth - 1)
        return self.element(node.value, depth - 1) if whole == "list" else whole

    def _of_call(self, call: cst.Call, depth: int) -> Kind | None:
        name = self.source.qualified_name(call.func)
        if name is None and isinstance(call.func, cst.Name):
            bound = self.source.facts.lookup(self.source.scope(call), call.func.value)
            name = None if bound else call.func.value
        if name is not None and (found := returned_by(name)):
            return found
        if name in _SAME:
            return _joined([self.of(arg.value, depth - 1) for arg in call.args])
        if name == "sum" and call.args:
            return self.element(call.args[0].value, depth - 1)
        if name is not None and ":" in name:
            return self._returned(name)
        match call.func:
            case cst.Attribute(value=cst.Subscript(value=cst.Attribute(attr=cst.Name("at"))), attr=cst.Name(method)):
                return "array" if method in _WRITING else None
            case cst.Attribute(value=owner, attr=cst.Name(method)) if method in _METHODS.split() and name is None:
                whole = self.of(owner, depth - 1)
                return whole if whole in ("array", "numpy") else None
            case cst.Attribute(attr=cst.Name("item" | "bit_length")):
                return "scalar"
        return None

    def _returned(self, name: str) -> Kind | None:
        """What a function of this file is annotated to return."""
        place = self.source.project.find(name)
        if place is None or place.path != self.source.path:
            return None
        function = self.source.definition(place.scope)
        returns = function.returns if isinstance(function, cst.FunctionDef) else None
        return annotated(returns.annotation, "", function, self.source) if function and returns else None

    def _of_name(self, name: cst.Name, depth: int) -> Kind | None:
        writes = [use.node for use in self.source.writes(name)]
        if writes and (known := dict(self.assumed)).keys() >= {id(writes[0])}:
            return known[id(writes[0])]
        one = self.source.written(name)
        if one is not None and not isinstance(self.source.parent(one), cst.AugAssign):
            return self.stored(one, depth - 1)
        if not writes or len(writes) > _WRITES:
            return None
        blank = self._replace(assumed=(*self.assumed, (id(writes[0]), None)))
        first = [blank.stored(write, depth - 1) for write in writes]
        sure = {found for found in first if found is not None}
        if len(sure) != 1 or depth < 2:
            return None
        (guess,) = sure
        again = self._replace(assumed=(*self.assumed, (id(writes[0]), guess)))
        # x = zeros(3), then in a loop x = x * 2: an array if it is one.
        open_ = [write for write, found in zip(writes, first, strict=True) if found is None]
        return guess if all(again.stored(write, depth // 2) == guess for write in open_) else None

    def stored(self, written: cst.Name, depth: int) -> Kind | None:
        """What the write at `written` stores."""
        match parent := self.source.parent(written):
            case cst.AssignTarget():
                statement = self.source.parent(parent)
                return self.of(statement.value, depth) if isinstance(statement, cst.Assign) else None
            case cst.AnnAssign(annotation=cst.Annotation(annotation=annotation), value=value):
                said = annotated(annotation, written.value, parent, self.source)
                return said or (self.of(value, depth) if value is not None else None)
            case cst.Param(annotation=cst.Annotation(annotation=annotation), star=star) if star == "":
                return annotated(annotation, written.value, parent, self.source)
            case cst.AugAssign(target=target, value=value):
                before = self.of(target, depth) if self.assumed else None
                return _joined([before, self.of(value, depth)])
            case cst.NamedExpr(value=value):
                return self.of(value, depth)
            case cst.For(iter=iterated) | cst.CompFor(iter=iterated):
                return self.element(iterated, depth)
            case cst.Element():
                return self._unpacked(parent, depth)
        return None

    def _unpacked(self, element: cst.Element, depth: int) -> Kind | None:
        """What one target of `a, b = ...` or `for a, b in ...` gets."""
        targets = self.source.parent(element)
        if not isinstance(targets, cst.Tuple | cst.List):
            return None
        place = targets.elements.index(element)
        match above := self.source.parent(targets):
            case cst.AssignTarget():
                statement = self.source.parent(above)
                value = statement.value if isinstance(statement, cst.Assign) else None
                match value:
                    case cst.Tuple(elements=parts) | cst.List(elements=parts):
                        return self.of(parts[place].value, depth) if len(parts) == len(targets.elements) else None
                    case cst.BaseExpression():
                        return self.element(value, depth)
            case cst.For(iter=iterated) | cst.CompFor(iter=iterated):
                return self._in_turn(iterated, place, depth)
        return None

    def _in_turn(self, iterated: cst.BaseExpression, place: int, depth: int) -> Kind | None:
        """What stands at `place` of the tuples that a loop over `iterated` gets."""
        match iterated:
            case cst.Call(args=[cst.Arg(value=first), *_]) if self.source.calls(iterated, "enumerate"):
                return "scalar" if place == 0 else self.element(first, depth)
            case cst.Call(args=args) if self.source.calls(iterated, "zip") and place < len(args):
                return self.element(args[place].value, depth)
        held = self.of(iterated, depth)
        return held if held in ("array", "numpy", "key") else None


def _held(whole: Kind | None) -> Kind | None:
    """What a value of a kind holds: an array rows, a list arrays."""
    return "array" if whole == "list" else whole


def _joined(kinds: Sequence[Kind | None]) -> Kind | None:
    """What arithmetic makes of them: an array of one array and anything."""
    for wanted in ("array", "numpy", "scalar"):
        if wanted in kinds:
            mixed = wanted != "array" and None in kinds
            return None if mixed or "list" in kinds or "key" in kinds else wanted
    return "list" if kinds and all(found == "list" for found in kinds) else None


def _agreed(kinds: Iterable[Kind | None]) -> Kind | None:
    found = set(kinds)
    return found.pop() if len(found) == 1 else None
