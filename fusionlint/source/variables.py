"""The variables of a file: where they are written and read, and what a name stands for."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, TypeVar

import libcst as cst

from fusionlint.source import flow
from fusionlint.source.facts import NOTHING
from fusionlint.source.pieces import Piece
from fusionlint.source.syntax import Syntax
from fusionlint.source.walk import statement_at

# What the facts say of a name that nothing is assigned to.
_NOT_ASSIGNED = frozenset(("import", "function", "class", "parameter"))

Node = TypeVar("Node", bound="cst.CSTNode | None")


class Use(NamedTuple):
    """One appearance of a variable; `order` counts in order of evaluation."""

    order: int
    node: cst.Name
    is_write: bool


@dataclass(frozen=True, eq=False)
class Variables(Syntax):
    """The questions about variables."""

    def assigned_name(self, node: cst.CSTNode) -> cst.Name | None:
        """`x`, where `node` is all of the right-hand side of `x = node`, or its part of it in `x, y = node, other`."""
        match self.parent(node):
            case cst.Assign(targets=[cst.AssignTarget(target=cst.Name() as name)], value=value) if value is node:
                return name
            case cst.AnnAssign(target=cst.Name() as name, value=value) if value is node:
                return name
            case cst.Element() as element:
                target, given = self._pair(element) or (None, None)
                return target if given is node and isinstance(target, cst.Name) else None
        return None

    def _pair(self, element: cst.BaseElement) -> tuple[cst.BaseExpression, cst.BaseExpression] | None:
        """The two sides that an element of either is one of, `x` and `a` of `x, y = a, b`."""
        several = self.parent(element)
        above = self.parent(several) if isinstance(several, cst.Tuple) else None
        match self.parent(above) if isinstance(above, cst.AssignTarget) else above:
            case cst.Assign(
                targets=[cst.AssignTarget(target=cst.Tuple(elements=targets))], value=cst.Tuple(elements=values)
            ) if len(targets) == len(values):
                if not any(isinstance(each, cst.StarredElement) for each in (*targets, *values)):
                    pairs = zip(targets, values, strict=True)
                    return next((one.value, other.value) for one, other in pairs if element in (one, other))
        return None

    def uses(self, name: cst.Name) -> list[Use]:
        """Every appearance of the variable that `name` names, closures included, in order of evaluation."""
        variable = self._variable(name)
        return self._uses_in(variable, self.pieces.mentioning(name.value))

    def reads_at_all(self, name: cst.Name) -> Iterator[cst.Name]:
        """The reads of the variable that `name` names, whatever it holds by then."""
        return (use.node for use in self.uses(name) if not use.is_write)

    def uses_between(self, name: cst.Name, first: cst.CSTNode, last: cst.CSTNode) -> list[Use]:
        """The appearances of the variable that are evaluated after one node and before another."""
        start, end = self.order(first), self.order(last)
        statement = statement_at(start)
        is_one = statement == statement_at(end)
        pieces = (self.pieces.holding(statement),) if is_one else self.pieces.mentioning(name.value)
        return [use for use in self._uses_in(self._variable(name), pieces) if start < use.order < end]

    def is_never_assigned(self, name: cst.Name) -> bool:
        """Whether nothing is assigned to a variable, by the facts: it is imported, defined, handed in, or Python's."""
        if (self.scope(name), name.value) in self._walk.declared:
            return False
        bound = self.facts.lookup(self.scope(name), name.value)
        if bound is None:
            return not self.pieces.has_global
        return bound[1].kind in _NOT_ASSIGNED and bound[1].value == NOTHING

    def writes(self, name: cst.Name) -> list[Use]:
        """The appearances of the variable that write to it."""
        variable = self._variable(name)
        return [use for use in self._uses_in(variable, self.pieces.writing(name.value)) if use.is_write]

    def _uses_in(self, variable: tuple[str, str], pieces: Iterable[Piece]) -> list[Use]:
        """The uses of a variable; `pieces` are those that may use it, if it is of the file's own level."""
        around = self.pieces.seeing(*variable) if variable[0] else pieces
        found = [use for piece in around for use in self._uses_by_piece(piece).get(variable, ())]
        return sorted(found, key=lambda use: use.order)

    def _uses_by_piece(self, piece: Piece) -> dict[tuple[str, str], list[Use]]:
        if piece not in self._uses:
            uses = self._uses[piece] = defaultdict(list)
            for name, is_write in self._parsed.names(piece):
                uses[self._variable(name)].append(Use(self._walk.order[name], name, is_write))
        return self._uses[piece]

    @cached_property
    def _uses(self) -> dict[Piece, dict[tuple[str, str], list[Use]]]:
        return {}

    def _variable(self, name: cst.Name) -> tuple[str, str]:
        scope = self.scope(name)
        if (scope, name.value) in self._walk.declared:  # global, or nonlocal
            scope = "" if self._walk.declared[scope, name.value] else scope.rpartition(".")[0]
        bound = self.facts.lookup(scope, name.value)
        return (bound[0] if bound else ""), name.value

    def reads(self, written: cst.Name) -> list[cst.Name]:
        """The reads of what the write `written` stored: those up to the next write that is sure to happen, around a
        loop too, and those of functions that see the variable."""
        uses = self.uses(written)
        start = next(i for i, use in enumerate(uses) if use.node is written and use.is_write)
        later, end = self._until_written(written, uses[start + 1 :])
        earlier = [use.node for use in uses[:start] if not use.is_write and self.scope(use.node) != self.scope(written)]
        for loop in flow.loops(self._walk.parents, written):
            if end is not None and loop in self.ancestors(end):
                break
            again = [use for use in uses[:start] if loop in self.ancestors(use.node)]
            more, again_end = self._until_written(loop.body.body[0], again)
            earlier += [name for name in more if name not in earlier]
            end = again_end or end
        return later + earlier

    def _until_written(self, start: cst.CSTNode, uses: list[Use]) -> tuple[list[cst.Name], cst.Name | None]:
        """The reads among `uses` that what stood at `start` reaches, and the write that ends its time."""
        parents = self._walk.parents
        found: list[cst.Name] = []
        for use in uses:
            if use.is_write and flow.always_follows(parents, start, use.node):
                return found, use.node
            if not use.is_write and not flow.apart(parents, start, use.node):
                found.append(use.node)
        return found, None

    def readers(self, node: cst.CSTNode) -> Sequence[cst.CSTNode]:
        """Where what `node` makes is read: the reads of its name, where it is all that is assigned, else itself."""
        name = self.assigned_name(node)
        return [node] if name is None else self.reads(name)

    def sure_readers(self, node: cst.CSTNode) -> Sequence[cst.CSTNode]:
        """Those of the `readers` that nothing else can reach: no other branch writes that name, nor a turn before."""
        name = self.assigned_name(node)
        return [node] if name is None else [read for read in self.reads(name) if self.written(read) is name]

    def written(self, read: cst.Name) -> cst.Name | None:
        """The write that `read` reads, where only one is possible."""
        parents = self._walk.parents
        writes = [use for use in self.writes(read) if not flow.apart(parents, use.node, read)]
        if len(writes) < 2:
            return writes[0].node if writes else None
        order = self._walk.order[read]
        last = next((use.node for use in reversed(writes) if use.order < order), None)
        if last is None or self.scope(last) != self.scope(read) or not flow.always_precedes(parents, last, read):
            return None
        around = set(self.ancestors(last))
        again = [loop for loop in flow.loops(parents, read) if loop not in around]
        # Where `read` comes round again without `last`, another write may have come in between.
        return None if any(loop in self.ancestors(use.node) for loop in again for use in writes) else last

    def binder(self, read: cst.Name) -> cst.CSTNode | None:
        """What binds the variable that `read` reads, where it is one: the target of an assignment or of a loop, a part
        of one, a parameter, a def."""
        written = self.written(read)
        return self.parent(written) if written is not None else None

    def always_precedes(self, first: cst.CSTNode, second: cst.CSTNode) -> bool:
        """Whether `first`, earlier in the text of one function, has run whenever `second` does."""
        return flow.always_precedes(self._walk.parents, first, second)

    def always_follows(self, first: cst.CSTNode, second: cst.CSTNode) -> bool:
        """Whether `second`, later in the text of one function, runs whenever `first` has."""
        return flow.always_follows(self._walk.parents, first, second)

    def value(self, read: cst.Name) -> cst.BaseExpression | None:
        """The right-hand side that `read` stands for, where only one is possible."""
        if self.is_never_assigned(read):
            return None  # most names are modules and functions: where those are written, nothing has to be parsed
        written = self.written(read)
        match self.parent(written) if written else None:
            case cst.AssignTarget() as target:
                statement = self.parent(target)
                return statement.value if isinstance(statement, cst.Assign) else None
            case cst.AnnAssign(value=value) | cst.NamedExpr(value=value):
                return value
            case cst.Element() as element:
                pair = self._pair(element)
                return pair[1] if pair is not None else None
        return None

    def parameter(self, read: cst.Name) -> cst.Param | None:
        """The parameter of a function around whose value `read` is, where it is nothing else."""
        above = self.binder(read)
        return above if isinstance(above, cst.Param) else None

    def owner(self, parameter: cst.Param) -> cst.FunctionDef | cst.Lambda:
        """The function that a parameter is of."""
        return next(above for above in self.ancestors(parameter) if isinstance(above, cst.FunctionDef | cst.Lambda))

    def meant(self, node: Node) -> Node | cst.BaseExpression:
        """The right-hand side that a name stands for; whatever else `node` is, or where that is not seen, itself."""
        return (self.value(node) or node) if isinstance(node, cst.Name) else node
