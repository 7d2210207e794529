"""Source: one file's text and libcst tree, and the questions that rules ask of it.

Names, scopes and order of evaluation come from one walk. libcst parses only those pieces of the file that somebody asks
about, and positions are computed for findings alone: libcst's own metadata costs nine times its parse.
"""

from __future__ import annotations

import builtins
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import libcst as cst

from fusionlint.finding import Edit, Finding, Location, Suggestion
from fusionlint.lazily import regex
from fusionlint.rule import Where
from fusionlint.source import flow
from fusionlint.source.edited import are_apart, names_in, with_names
from fusionlint.source.facts import NOTHING, Call, Facts, RawCall, other_meaning, unpacked_call
from fusionlint.source.names import PARTIAL
from fusionlint.source.parsed import Parsed
from fusionlint.source.pieces import Piece, Pieces
from fusionlint.source.places import At, Place
from fusionlint.source.project import Project
from fusionlint.source.traced import Context, is_idle
from fusionlint.source.walk import Walk, dotted, holds_comment, statement_at

if TYPE_CHECKING:
    from fusionlint.source.positions import Positions


# What the facts say of a name that nothing is assigned to.
_NOT_ASSIGNED = frozenset(("import", "function", "class", "parameter"))

# A name that is no attribute.
_NAME = regex(r"(?<![\w.])[A-Za-z_]\w*")
_TYPE_CHECKING = regex(r"if\s+([\w.]+\.)?TYPE_CHECKING\s*:")
_IMPORTS = regex(r"\s*(from\s+\S+\s+)?import\s+(?P<names>.*)")

Node = TypeVar("Node", bound="cst.CSTNode | None")


class Use(NamedTuple):
    """One appearance of a variable; `order` counts in order of evaluation."""

    order: int
    node: cst.Name
    is_write: bool


@dataclass(frozen=True, eq=False)
class Source:
    """One file: its bytes, and the project that knows the files around it."""

    path: str
    data: bytes
    project: Project
    contexts: Mapping[At, Context]

    @cached_property
    def facts(self) -> Facts:
        return self.project.files[self.path]

    @cached_property
    def pieces(self) -> Pieces:
        """What of the file libcst can parse by itself."""
        return Pieces(self.data, self.facts.raw)

    @cached_property
    def _parsed(self) -> Parsed:
        return Parsed(self.pieces)

    def line(self, number: int) -> str:
        """A line of the file, 1-based, with its end."""
        return self.pieces.lines[number - 1]

    def nodes(self, *types: type[cst.CSTNode]) -> Iterator[cst.CSTNode]:
        """The nodes of exactly these types in all of the file, a node before those inside it."""
        return self._parsed.nodes(self.pieces, types)

    def nodes_in(self, pieces: Collection[Piece], *types: type[cst.CSTNode]) -> Iterator[cst.CSTNode]:
        """The nodes of exactly these types in some pieces of the file, which are parsed if they are not yet."""
        return self._parsed.nodes(pieces, types)

    def nodes_with(self, word: str, *types: type[cst.CSTNode]) -> Iterator[cst.CSTNode]:
        """The nodes of exactly these types in those pieces of the file that a name stands in."""
        return self._parsed.nodes(list(self.pieces.mentioning(word)), types)

    def fields_called(self, name: str, owner: str) -> Iterator[cst.CSTNode]:
        """Where `name`, "self.state", stands in the class of the scope `owner`; with "" outside of classes."""
        for node in self.nodes_with(name.rpartition(".")[2], cst.Attribute):
            if dotted(node) == name and self.facts.class_around(self.scope(node)) == owner:
                yield node

    def nodes_called(self, kind: str, pieces: Collection[Piece]) -> Iterator[cst.CSTNode]:
        """The nodes of libcst's type `kind` ("Call") in some pieces of the file; without pieces nothing is loaded."""
        return self.nodes_in(pieces, getattr(cst, kind)) if pieces else iter(())

    def definition(self, scope: str) -> cst.CSTNode | None:
        """The def, lambda or class that opens a scope of the file."""
        found = self.nodes_in({self.pieces.of_scope(scope)}, cst.FunctionDef, cst.Lambda, cst.ClassDef)
        return next((node for node in found if self.body_scope(node) == scope), None)

    def calls_of(self, names: Collection[str]) -> Iterator[cst.CSTNode]:
        """The calls in this file of what is called by one of the qualified `names`."""
        made = (call for name in names for _, call in self.called(name))
        pieces = {self.pieces.of_line(line) for *_, line in made}
        return (call for call in self.nodes_in(pieces, cst.Call) if self.name_called(call) in names)

    @property
    def _walk(self) -> Walk:
        return self._parsed.walk

    def parent(self, node: cst.CSTNode) -> cst.CSTNode | None:
        return self._walk.parents.get(node)

    def ancestors(self, node: cst.CSTNode) -> Iterator[cst.CSTNode]:
        """The nodes around `node`, innermost first."""
        return flow.ancestors(self._walk.parents, node)

    def scope(self, node: cst.CSTNode) -> str:
        """The dotted scope that the code of `node` runs in: of a def that of its decorators and defaults."""
        return self._walk.scopes[node]

    def place(self, node: cst.CSTNode) -> Place:
        return Place(self.path, self.scope(node))

    def body_scope(self, function: cst.CSTNode) -> str:
        """The scope that a def, lambda or class opens."""
        return self._walk.opened[function]

    def function(self, node: cst.CSTNode) -> cst.FunctionDef | cst.Lambda | None:
        """The function whose code `node` is part of, None at the module's own level."""
        around = (a for a in self.ancestors(node) if isinstance(a, cst.FunctionDef | cst.Lambda))
        return next((a for a in around if self._holds(a, node)), None)

    def _holds(self, function: cst.CSTNode, node: cst.CSTNode) -> bool:
        """Whether `node`, somewhere in `function`, is code of its body: decorators and defaults are not."""
        return f"{self.scope(node)}.".startswith(f"{self.body_scope(function)}.")

    def context(self, node: cst.CSTNode) -> Context:
        """How the code at `node` runs: "traced", "host", or "library" where nobody can see."""
        return self._context_in(self.scope(node))

    def _context_in(self, scope: str) -> Context:
        while scope in self.facts.raw.classes:  # a class's own code runs where the class is made
            scope = scope.rpartition(".")[0]
        return self.contexts.get(Place(self.path, scope), "library") if scope else "host"

    def whole(self, call: RawCall) -> Call:
        """A call as its facts hand it out."""
        return unpacked_call(call)

    @property
    def names(self) -> Collection[str]:
        """The qualified names of all that this file calls."""
        return self._called.keys()

    def runs(self, scope: str, where: Where) -> bool:
        """Whether the code of `scope` has to be taken as running where a rule looks."""
        key = scope, where
        if key not in self._runs:
            self._runs[key] = self._does_run(scope, where)
        return self._runs[key]

    def _does_run(self, scope: str, where: Where) -> bool:
        match where:
            case "traced":
                return self._context_in(scope) != "host"
            case "host" if self._context_in(scope) == "traced":
                return False
        return where == "any" or not is_idle(self.project, Place(self.path, scope))

    @cached_property
    def _positions(self) -> Positions:
        from fusionlint.source.positions import Positions  # of libcst's own, which is loaded when something is parsed

        return Positions()

    @cached_property
    def _runs(self) -> dict[tuple[str, str], bool]:
        return {}

    def scope_of_code(self, node: cst.CSTNode) -> str:
        """The scope whose code a node is: of a def or lambda its own."""
        return self.body_scope(node) if isinstance(node, cst.FunctionDef | cst.Lambda) else self.scope(node)

    def called(self, name: str) -> list[tuple[Place, RawCall]]:
        """The calls of this file, by its facts, of what is called `name`."""
        return self._called.get(name, [])

    @cached_property
    def _called(self) -> dict[str, list[tuple[Place, RawCall]]]:
        found: dict[str, list[tuple[Place, RawCall]]] = defaultdict(list)
        for place, name, call in self.project.named_calls(self.path):
            if name is not None:
                found[name].append((place, call))
        return found

    def is_traced(self, node: cst.CSTNode) -> bool:
        """Whether the code at `node` is to be taken as traced: shown to be, or not shown to be host code; and not
        behind a `raise`, where nothing runs, nor in a function inside another, of which that never asks."""
        if self.context(node) == "host" or self.is_dead(node):
            return False
        scope = self.scope(node)
        if scope not in self._asked_for:
            around = (above for above in self.ancestors(node) if isinstance(above, cst.FunctionDef))
            self._asked_for[scope] = not any(self._is_never_asked_for(a) for a in around if self._holds(a, node))
        return self._asked_for[scope]

    def is_dead(self, node: cst.CSTNode) -> bool:
        """Whether nothing runs `node`, as it is written: behind a `raise` or a `return`, in a branch of `if False`."""
        return flow.is_dead(self._walk.parents, node)

    @cached_property
    def _asked_for(self) -> dict[str, bool]:
        """By scope, whether something reads the names of the defs around; filled as it is asked."""
        return {}

    def _is_never_asked_for(self, function: cst.FunctionDef) -> bool:
        """Whether this is a def inside a function, without a decorator, whose name nothing outside of it reads."""
        scope = self.scope(function)
        if function.decorators or not scope or scope in self.facts.raw.classes:
            return False
        reads = (use.node for use in self.uses(function.name) if not use.is_write)
        return all(function in self.ancestors(read) for read in reads)

    def loop(self, node: cst.CSTNode) -> cst.CSTNode | None:
        """The innermost Python loop or comprehension, inside the same function, that runs `node` again and again."""
        inner, below = node, node
        for above in self.ancestors(node):
            match above:
                case cst.FunctionDef() | cst.Lambda() if self._holds(above, node):
                    return None
                case cst.For(body=body) if below is body:
                    return above
                case cst.While(orelse=orelse) if below is not orelse:
                    return above
                case cst.ListComp() | cst.SetComp() | cst.GeneratorExp() | cst.DictComp():
                    # Only what the first `for` goes over is evaluated once.
                    if below is not above.for_in or inner is not above.for_in.iter:
                        return above
            inner, below = below, above
        return None

    def alias(self, module: str) -> str | None:
        """What the file calls a module that it imports at its own level: "jnp" for "jax.numpy"."""
        names = self.facts.bindings.get("", {}).items()
        return next((n for n, b in names if b.kind == "import" and b.target == module and "." not in n), None)

    def alias_at(self, node: cst.CSTNode, module: str) -> str | None:
        """What code that a fix writes at `node` may call `module`: None where the file does not import it at its own
        level, imports it for type checkers alone, or where the name means something else there."""
        name = self.alias(module)
        found = self.facts.lookup(self.scope(node), name) if name else None
        is_of_the_file = found is not None and not found[0]
        return name if name and is_of_the_file and not _is_for_type_checkers(name, self.pieces.lines) else None

    def apart(self, one: cst.CSTNode, other: cst.CSTNode) -> bool:
        """Whether the two stand in different branches of one `if` or `match`: never both run."""
        return flow.apart(self._walk.parents, one, other)

    def in_loop(self, node: cst.CSTNode) -> bool:
        return self.loop(node) is not None

    def qualified_name(self, node: cst.CSTNode) -> str | None:
        """What a name or attribute is really called, "jax.numpy.stack" for `jnp.stack`; None where that is unknown."""
        name = dotted(node)
        return self.project.qualified_name(self.place(node), self._as_chosen(node, name)) if name else None

    def _as_chosen(self, node: cst.CSTNode, name: str) -> str:
        """The dotted `name`, read at `node`; of what `np = jnp if ON else onp` chose, where ON is false, the other."""
        head, dot, rest = name.partition(".")
        if other_meaning(head) not in self.facts.other_meanings:
            return name
        found = self.facts.lookup(self.scope(node), head)
        other = self.facts.bound(found[0], other_meaning(head)) if found else None
        if other is None or not other.target or not other.value.name:
            return name
        return f"{other.value.name}{dot}{rest}" if self._is_off(other.target, node) else name

    def _is_off(self, flag: str, node: cst.CSTNode) -> bool:
        """Whether an `if` around `node` says that `flag`, a name, is false there."""
        below = node
        for above in self.ancestors(node):
            match above:
                case cst.If(test=cst.UnaryOperation(operator=cst.Not(), expression=test), body=off):
                    pass
                case cst.IfExp(test=cst.UnaryOperation(operator=cst.Not(), expression=test), body=off):
                    pass
                case cst.If(test=test, orelse=off) | cst.IfExp(test=test, orelse=off):
                    pass
                case _:
                    off = None
            if off is below and dotted(test) == flag:
                return True
            below = above
        return False

    def _is_sure(self, node: cst.CSTNode, where: Location, edits: Sequence[Edit]) -> bool:
        """Whether all that stands in a finding at `node`, or is written instead, is jax's or is not, by name."""
        place = self.place(node)
        texts = (*self.pieces.lines[where.line - 1 : where.end_line], *(edit.text for edit in edits))
        words = {word for text in texts for word in _NAME.findall(text)}
        unsure = (word for word in words if not self.project.is_sure(place, word))
        return not any(f"{self.project.qualified_name(place, word)}.".startswith("jax.") for word in unsure)

    def name_called(self, call: cst.CSTNode) -> str | None:
        """The qualified name of what `call` calls, as facts have it: ".at.set" of `x.at[...].set(v)`, jax.jit of
        `partial(jax.jit, ...)(f)`."""
        match call:
            case cst.Call(
                func=cst.Attribute(value=cst.Subscript(value=cst.Attribute(attr=cst.Name("at"))), attr=method)
            ):
                return f".at.{method.value}"
            case cst.Call(func=cst.Call() as inner):
                handed = dotted(inner.args[0].value) if inner.args and inner.args[0].keyword is None else ""
                is_partial = self.qualified_name(inner.func) in PARTIAL
                return self.project.qualified_name(self.place(call), handed) if handed and is_partial else None
            case cst.Call(func=func):
                return self.qualified_name(func)
        return None

    def calls(self, node: cst.CSTNode, *names: str) -> bool:
        """Whether `node` is a call of one of the qualified `names`."""
        return isinstance(node, cst.Call) and self.qualified_name(node.func) in names

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

    def handed_to(self, node: cst.CSTNode) -> cst.Call | None:
        """The call that `node` is an argument of."""
        argument = self.parent(node)
        call = self.parent(argument) if isinstance(argument, cst.Arg) else None
        return call if isinstance(call, cst.Call) else None

    def order(self, node: cst.CSTNode) -> int:
        """A number that is higher the later a node is evaluated; of a node higher than of all inside it."""
        return self._walk.order[node]

    def uses(self, name: cst.Name) -> list[Use]:
        """Every appearance of the variable that `name` names, closures included, in order of evaluation."""
        variable = self._variable(name)
        return self._uses_in(variable, self.pieces.mentioning(name.value))

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
        written = self.written(read)
        above = self.parent(written) if written is not None else None
        return above if isinstance(above, cst.Param) else None

    def meant(self, node: Node) -> Node | cst.BaseExpression:
        """The right-hand side that a name stands for; whatever else `node` is, or where that is not seen, itself."""
        return (self.value(node) or node) if isinstance(node, cst.Name) else node

    def location(self, node: cst.CSTNode) -> Location:
        """Where `node` stands, without parentheses around it."""
        around = [node, *self.ancestors(node)]
        top = next(self._parsed.statements[above] for above in around if above in self._parsed.statements)
        function = next((above for above in around if isinstance(above, cst.FunctionDef)), None)
        if function is None:
            span = self._positions.of(node, top.node, top.line, top.tree, ())
        else:
            line = self.facts.raw.functions[self.body_scope(function)][0]
            blocks = (a for a in self.ancestors(function) if isinstance(a, cst.IndentedBlock | cst.Match))
            indents = [top.tree.default_indent if block.indent is None else block.indent for block in blocks]
            span = self._positions.of(node, function, line, top.tree, reversed(indents))
        start, end = span.start, span.end
        return Location(self.path, start.line, start.column + 1, end.line, end.column + 1)

    def code(self, node: cst.CSTNode) -> str:
        """The text of `node` as written, without parentheses around it."""
        has_comma = isinstance(getattr(node, "comma", None), cst.Comma)  # which libcst writes, and is no part of it
        if not has_comma and not _parentheses(node) and "\n" not in (text := cst.Module([]).code_for_node(node)):
            return text  # of one line, which needs no position; further ones begin with blanks of the blocks around
        return self._text_at(self.location(node))

    def has_comment(self, node: cst.CSTNode) -> bool:
        """Whether a comment stands in the text of `node`, where a fix would lose it."""
        return any(holds_comment(child) for child in node.children if child not in _parentheses(node))

    def replace(self, node: cst.CSTNode, text: str) -> Edit:
        """Write `text` in place of `node`."""
        return Edit(self.location(node), text)

    def finding(
        self,
        node: cst.CSTNode,
        message: str,
        *,
        until: cst.CSTNode | None = None,
        write: str | None = None,
        edits: tuple[Edit, ...] = (),
        safe: bool = False,
        pair: int = 0,
    ) -> Finding:
        """A finding at `node`, or from it to the end of `until`; `write` says what to write instead, made-up names as
        `«k»`, `pair` which measured pair of the rule's page it is a case of.

        The engine adds the rule's name, its targets and its numbers.
        """
        where = self.location(node)
        if until is not None:
            end = self.location(until)
            where = where._replace(end_line=end.end_line, end_column=end.end_column)
        if edits and not (self._is_sure(node, where, edits) and self._can_make(node, edits)):
            edits, safe = (), False  # numpy may have no such keyword, and what is numpy's no `at`
        suggestion = Suggestion(with_names(write), edits, safe) if write is not None else None
        return Finding("", where, message, suggestion, pair=pair, assumed=self.context(node) == "library")

    def _can_make(self, node: cst.CSTNode, edits: Sequence[Edit]) -> bool:
        """Whether no two edits of one fix meet, and the names that they bring along mean something at `node`, and not
        a variable in the place of a module or of a function of Python's."""
        brought = {name for edit in edits for name in names_in(edit.text) - set(_NAME.findall(self._text_at(edit[0])))}
        return are_apart(edits) and all(self._is_known(name, self.scope(node)) for name in brought)

    def _is_known(self, name: str, scope: str) -> bool:
        found, of_file = self.facts.lookup(scope, name), self.facts.bound("", name)
        is_everywhere = hasattr(builtins, name) or (of_file is not None and of_file.kind == "import")
        return (is_everywhere and not (found and found[0])) or (found is not None and not is_everywhere)

    def _text_at(self, where: Location) -> str:
        lines = self.pieces.lines[where.line - 1 : where.end_line]
        lines[-1] = lines[-1][: where.end_column - 1]
        lines[0] = lines[0][where.column - 1 :]
        return "".join(lines)

    def _variable(self, name: cst.Name) -> tuple[str, str]:
        scope = self.scope(name)
        if (scope, name.value) in self._walk.declared:  # global, or nonlocal
            scope = "" if self._walk.declared[scope, name.value] else scope.rpartition(".")[0]
        bound = self.facts.lookup(scope, name.value)
        return (bound[0] if bound else ""), name.value


def _parentheses(node: cst.CSTNode) -> list[cst.CSTNode]:
    """The parentheses around a node, which are no part of its text."""
    return [*getattr(node, "lpar", ()), *getattr(node, "rpar", ())]


def _is_for_type_checkers(name: str, lines: Sequence[str]) -> bool:
    """Whether the file imports `name` only below `if TYPE_CHECKING:`, which no run does."""
    where = set()
    is_below = False
    for line in lines:
        if line[:1].strip():
            is_below = _TYPE_CHECKING.match(line) is not None
        imported = _IMPORTS.match(line)
        if imported and name in map(_name_bound, imported["names"].split("#")[0].split(",")):
            where.add(is_below)
    return where == {True}


def _name_bound(clause: str) -> str:
    """jnp, of `jax.numpy as jnp`; jax, of `jax.numpy`."""
    what, _, name = clause.strip(" ()\r\n").partition(" as ")
    return name.strip() or what.partition(".")[0].strip()
