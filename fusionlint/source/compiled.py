"""Which callables of a project dispatch a compiled program: what is decorated or wrapped with a jit, or made so."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

from fusionlint.source.facts import NOTHING, Facts, Function, RawValue, Value, unpacked
from fusionlint.source.names import DEPTH, JIT, PARTIAL, Memo, Names
from fusionlint.source.of_file import NONE_KNOWN, Known, OfFile
from fusionlint.source.places import Bound, Place


@dataclass(frozen=True, eq=False)
class Compiled(Names):
    """Answers about calls. What is `known` of the files already is not found out again."""

    known: Known = field(default=NONE_KNOWN, repr=False)
    _jitted: Memo[Bound, bool] = field(default_factory=dict, repr=False)

    @cached_property
    def perhaps_compiled(self) -> frozenset[str]:
        """The names that something compiled may be called by: what is called by none of them is a plain def, a class,
        or nothing of the project's."""
        return frozenset().union(*(one.perhaps_compiled for one in self._of_each_file()))

    @cached_property
    def perhaps_wrapped(self) -> frozenset[str]:
        """Those of them that something compiled may be called by whose qualified name is known: that of a def."""
        return frozenset().union(*(one.perhaps_wrapped for one in self._of_each_file()))

    def _of_each_file(self) -> Iterator[OfFile | Facts]:
        """What is known of each file already, else its facts, which say the same."""
        return (self.known.files.get(path, facts) for path, facts in self.files.items())

    def is_jitted(self, place: Place, value: Value, depth: int = DEPTH) -> bool:
        """Whether calling `value` dispatches one compiled program: a function decorated or wrapped with a jit, a
        partial of one, or what a factory of the project returns."""
        place = self._meaning_the_same(place, value.name) if value.name else place
        return self.log.remembered(self._jitted, Bound(place, value), self._find_jitted, place, value, depth)

    def dispatches(self, place: Place, name: str | None, called: RawValue) -> bool:
        """Whether a call at `place` of `called`, whose qualified name is `name`, dispatches a compiled program."""
        return self.may_dispatch(name, called) and self.is_jitted(place, unpacked(called))

    def may_dispatch(self, name: str | None, called: RawValue) -> bool:
        """Whether that is worth asking: most calls are of plain functions, and of the methods of lists and strings."""
        if not isinstance(called, str):
            return called is not None
        last = called.rpartition(".")[2]
        if name is None:
            return last in self.perhaps_compiled
        return ":" in name and last in self.perhaps_wrapped  # else it is of no file of the project

    def _find_jitted(self, place: Place, value: Value, depth: int) -> bool:
        self._jitted[Bound(place, value)] = False, frozenset()  # a name defined by itself is not jitted
        return depth > 0 and self._is_jitted(place, value, depth - 1)

    def _is_jitted(self, place: Place, value: Value, depth: int) -> bool:
        if value.is_call:
            called = self.callee(place, value)
            if called in JIT:
                return True
            if called in PARTIAL and value.arguments:
                return self.is_jitted(place, value.arguments[0], depth)
            made_at = self.find(called)
            factory = self.function_at(made_at)
            return bool(made_at and factory and any(self.is_jitted(made_at, r, depth) for r in factory.returns))
        if not value.name:
            return False
        found = self.value_of(place, value.name)
        if found and self.is_jitted(*found, depth):
            return True
        if self._is_jitted_by_a_base(place, value.name, depth):
            return True
        defined = self.find(self.qualified_name(place, value.name))
        function = self.function_at(defined)
        return bool(defined and function and self._is_decorated_with_jit(defined, function, depth))

    def _is_jitted_by_a_base(self, place: Place, name: str, depth: int) -> bool:
        """Whether `solver.update`, a method, is wrapped by the class that its own is derived from:
        `self.update = jax.jit(self.update)`."""
        owner, _, last = name.rpartition(".")
        made_by = self.class_of(place, owner, depth) if owner else None
        bases = deque(self.bases(made_by)) if made_by else deque()
        for _ in range(DEPTH):
            if not bases:
                break
            base = bases.popleft()
            bound = self._bound(base, last)
            if bound and bound.value.is_call and self.callee(base, bound.value) in JIT:
                return True
            bases.extend(self.bases(base))
        return False

    def _is_decorated_with_jit(self, place: Place, function: Function, depth: int) -> bool:
        if not JIT.isdisjoint(self.decorators(place.path, function)):
            return True
        return any(self.is_jitted(place.outer, Value("", d, (NOTHING,)), depth) for d in function.decorators)
