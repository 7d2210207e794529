"""Source: one file, and the questions that rules ask of it."""

from __future__ import annotations

import builtins
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import libcst as cst

from fusionlint.finding import Edit, Finding, Location, Suggestion
from fusionlint.lazily import regex
from fusionlint.rule import Where
from fusionlint.source.edited import are_apart, bound_by, names_in, with_names
from fusionlint.source.meanings import Meanings
from fusionlint.source.places import At, Place
from fusionlint.source.traced import Context, is_idle
from fusionlint.source.unread import imports_left

# A name that is no attribute.
_NAME = regex(r"(?<![\w.])[A-Za-z_]\w*")
# What no f-string holds before Python 3.12, quotes because they may be its own; and what libcst may write otherwise.
_OUTSIDE_STRINGS = regex(r"[\"'\\#\n]")
_ODD = re.compile(rb"\r(?!\n)|\x0c")


@dataclass(frozen=True, eq=False)
class Source(Meanings):
    """One file of a project, with how the project's functions run."""

    contexts: Mapping[At, Context]

    def context(self, node: cst.CSTNode) -> Context:
        """How the code at `node` runs: "traced", "host", or "library" where nobody can see."""
        return self._context_in(self.scope(node))

    def _context_in(self, scope: str) -> Context:
        while scope in self.facts.raw.classes:  # a class's own code runs where the class is made
            scope = scope.rpartition(".")[0]
        return self.contexts.get(Place(self.path, scope), "library") if scope else "host"

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
    def _runs(self) -> dict[tuple[str, str], bool]:
        return {}

    def is_idle(self, node: cst.CSTNode) -> bool:
        """Whether the code at `node` is a test's, a benchmark's, a picture's or a Pallas kernel's."""
        return is_idle(self.project, self.place(node))

    def is_traced(self, node: cst.CSTNode) -> bool:
        """Whether the code at `node` is to be taken as traced: shown to be, or not shown to be host code; and not
        behind a `raise`, where nothing runs, nor in a function inside another, of which that never asks; nor in a
        generator, which Python runs from one `yield` to the next."""
        if self.context(node) == "host" or self.is_dead(node):
            return False
        scope = self.scope(node)
        if scope not in self._asked_for:
            around = self.ancestors(node, cst.FunctionDef)
            is_asked_for = not any(self._is_never_asked_for(a) for a in around if self._holds(a, node))
            self._asked_for[scope] = is_asked_for and not self._is_in_a_generator(node)
        return self._asked_for[scope]

    def _is_in_a_generator(self, node: cst.CSTNode) -> bool:
        """Whether the def around hands values out one by one, to no trace that is seen; what stands above it may make
        something else of it."""
        function = self.function(node)
        if not isinstance(function, cst.FunctionDef) or function.decorators or self.context(node) == "traced":
            return False
        piece = self.pieces.of_scope(self.body_scope(function))
        return any(self.function(each) is function for each in self.nodes_in({piece}, cst.Yield))

    @cached_property
    def _asked_for(self) -> dict[str, bool]:
        """By scope, whether something reads the names of the defs around; filled as it is asked."""
        return {}

    def _is_never_asked_for(self, function: cst.FunctionDef) -> bool:
        """Whether this is a def inside a function, without a decorator, whose name nothing outside of it reads."""
        scope = self.scope(function)
        if function.decorators or not scope or scope in self.facts.raw.classes:
            return False
        reads = self.reads_at_all(function.name)
        return all(function in self.ancestors(read) for read in reads)

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
        edits += tuple(imports_left(self.path, self.pieces.text, edits, self.project)) if edits else ()
        suggestion = Suggestion(with_names(write), edits, safe) if write is not None else None
        return Finding("", where, message, suggestion, pair=pair, assumed=self.context(node) == "library")

    def _is_sure(self, node: cst.CSTNode, where: Location, edits: Sequence[Edit]) -> bool:
        """Whether all that stands in a finding at `node`, or is written instead, is jax's or is not, by name."""
        place = self.place(node)
        texts = (*self.pieces.lines[where.line - 1 : where.end_line], *(edit.text for edit in edits))
        words = {word for text in texts for word in _NAME.findall(text)}
        unsure = (word for word in words if not self.project.is_sure(place, word))
        return not any(f"{self.project.qualified_name(place, word)}.".startswith("jax.") for word in unsure)

    def _can_make(self, node: cst.CSTNode, edits: Sequence[Edit]) -> bool:
        """Whether no two edits of one fix meet, and the names that they bring along mean something at `node`, or are
        given one by an edit, and not a variable in the place of a module or of a function of Python's."""
        brought = {name for edit in edits for name in names_in(edit.text) - set(_NAME.findall(self._text_at(edit[0])))}
        bound = {name for edit in edits for name in bound_by(edit.text)}
        is_known = all(self._is_known(name, self.scope(node)) for name in brought - bound)
        return are_apart(edits) and is_known and self._can_hold(node, edits) and self._comes_back

    def _can_hold(self, node: cst.CSTNode, edits: Sequence[Edit]) -> bool:
        """Whether no edit brings into an f-string what none could hold before Python 3.12."""
        is_inside = any(isinstance(around, cst.FormattedString) for around in self.ancestors(node))
        return not (is_inside and any(_OUTSIDE_STRINGS.search(edit.text) for edit in edits))

    @cached_property
    def _comes_back(self) -> bool:
        """Whether libcst gives the file back as it is: behind a lone CR or a form feed its places may be others."""
        try:
            return not _ODD.search(self.data) or cst.parse_module(self.data).bytes == self.data
        except (cst.ParserSyntaxError, RecursionError):  # what is asked about does parse
            return False

    def _is_known(self, name: str, scope: str) -> bool:
        found, of_file = self.facts.lookup(scope, name), self.facts.bound("", name)
        is_everywhere = hasattr(builtins, name) or (of_file is not None and of_file.kind == "import")
        if found is None and of_file is None and not is_everywhere:  # `from lib import *`
            return self.project.qualified_name(Place(self.path, scope), name) is not None
        return (is_everywhere and not (found and found[0])) or (found is not None and not is_everywhere)
