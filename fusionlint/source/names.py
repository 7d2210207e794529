"""What a name means across the files of a project: its qualified name, and where that is defined.

In: every file's `Facts`. A def or class of the project is called "its.module:Scope.name", everything else by its dotted
name, whatever it was imported as and through however many re-exports.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias, TypeVar

from fusionlint.source.asked import DECORATORS, EVERYWHERE, METHODS, STARS, Asked, Log
from fusionlint.source.facts import NOTHING, Binding, Facts, Function, Value, other_meaning
from fusionlint.source.modules import home_of, is_elsewhere, modules_of, public
from fusionlint.source.passed_on import OF_LAX, passed_on
from fusionlint.source.places import Bound, Place

JIT = frozenset(
    ("jax.jit", "jax.pmap", "jax.pjit", "jax.experimental.pjit.pjit", "equinox.filter_jit", "equinox.filter_pmap",
     "flax.nnx.jit", "flax.nnx.pmap", "haiku.jit", "jax.api.jit", "jax_dataclasses.jit")
)  # fmt: skip
TREE_MAPS = frozenset(("jax.tree.map", "jax.tree_map", "jax.tree_util.tree_map"))
PARTIAL = frozenset(("functools.partial", "jax.tree_util.Partial"))
_BUILTINS = frozenset(("range", "enumerate", "zip", "len", "float", "int", "bool", "list", "tuple", "print", "sum",
                       "min", "max", "any", "all", "open", "input", "map", "reversed", "sorted",
                       "breakpoint"))  # fmt: skip
# Re-exports and definitions without a cycle are never deeper than this.
DEPTH = 8

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)
# What was found out, and what it took to ask.
Memo: TypeAlias = "dict[K, tuple[T, frozenset[Asked]]]"


@dataclass(frozen=True, eq=False)
class Names:
    """What names mean in the files of a project. `files` maps a path to its facts."""

    files: dict[str, Facts]
    log: Log = field(default_factory=Log, repr=False)
    _names: Memo[tuple[Place, str], str | None] = field(default_factory=dict, repr=False)
    _names_abroad: Memo[tuple[Place, str], str | None] = field(default_factory=dict, repr=False)
    _found: Memo[str | None, Place | None] = field(default_factory=dict, repr=False)
    _origins: Memo[str, str | None] = field(default_factory=dict, repr=False)
    _bases: Memo[tuple[Place, int], tuple[Place, ...]] = field(default_factory=dict, repr=False)
    _starred_files: Memo[str, tuple[str, ...]] = field(default_factory=dict, repr=False)

    @cached_property
    def modules(self) -> dict[str, str]:
        """Dotted module name -> path; the first file of a name wins."""
        return modules_of({path: facts.module for path, facts in self.files.items()})

    def decorated(self) -> Iterator[tuple[Place, Function]]:
        """Every def with decorators."""
        self.log.asked.add((EVERYWHERE, DECORATORS))
        for path, facts in self.files.items():
            for scope, (_, decorators, *_) in facts.raw.functions.items():
                if decorators:
                    yield Place(path, scope), facts.functions[scope]

    def methods(self) -> dict[Place, list[Place]]:
        """The methods of each class."""
        self.log.asked.add((EVERYWHERE, METHODS))
        found: dict[Place, list[Place]] = {}
        for path, facts in self.files.items():
            for scope, (*_, owner) in facts.raw.functions.items():
                if owner:
                    found.setdefault(Place(path, owner), []).append(Place(path, scope))
        return found

    def name_of(self, place: Place) -> str:
        """The qualified name of a def or class; of files that share a module's name, as scripts do, only one has it."""
        module = self.files[place.path].module
        return f"{module if self.modules.get(module) == place.path else place.path}:{place.scope}"

    def find(self, qualified: str | None) -> Place | None:
        """Where "its.module:Scope.name" stands; None for what is not a def or class of the project."""
        return self.log.remembered(self._found, qualified, self._find, qualified)

    def _find(self, qualified: str | None) -> Place | None:
        module, colon, scope = (qualified or "").partition(":")
        path = self.modules.get(module, module) if colon else ""
        facts = self.files.get(path)
        if facts is None:
            return None
        self.log.add(path, scope)
        if not (scope in facts.raw.functions or scope in facts.raw.classes):
            return None
        return Place(path, scope)

    def function_at(self, place: Place | None) -> Function | None:
        if place is None:
            return None
        self.log.add(*place)
        return self.files[place.path].functions.get(place.scope)

    def qualified_name(self, place: Place, name: str, depth: int = DEPTH) -> str | None:
        """What the dotted `name`, read at `place`, is really called: "jax.numpy.stack" for `jnp.stack`.

        None for what is local, unknown, or bound to different things.
        """
        if depth < DEPTH:
            return self._qualified_name(place, name, depth)
        place = self._meaning_the_same(place, name)
        # A file's own names are asked for most often: of them only what lies in other files is written down.
        is_own = place.path == self.log.own
        memo = self._names if is_own else self._names_abroad
        kept = memo.get((place, name))
        if kept is None:
            own = place.path if is_own else None
            kept = self.log.noted(memo, (place, name), own, self._qualified_name, place, name, depth)
        if kept[1]:
            self.log.asked.update(kept[1])
        return kept[0]

    def _meaning_the_same(self, place: Place, name: str) -> Place:
        """The place itself, or its file: what no inner scope of the file binds means the same in all of them."""
        if not place.scope or name.partition(".")[0] in self.files[place.path].inner_names:
            return place
        return Place(place.path, "")

    def _qualified_name(self, place: Place, name: str, depth: int) -> str | None:
        head, _, rest = name.partition(".")
        if head in ("self", "cls") and rest:
            return self._member(place, rest, depth)
        bound = self._lookup(place, head)
        if bound is None:
            return name if head in _BUILTINS else self._starred(place.path, name, depth)
        return self._named(Place(place.path, bound[0]), bound[1], rest, depth)

    def is_sure(self, place: Place, name: str, depth: int = DEPTH) -> bool:
        """Whether the dotted `name`, read at `place`, is nothing else where a flag says so or an import fails, be it in
        the module that it is from; nor a project's own word, which may not take all that jax's does."""
        head, _, rest = name.partition(".")
        found = self._lookup(place, head) if depth else None
        if found is None:
            return True
        at, binding = Place(place.path, found[0]), found[1]
        if self._bound(at, other_meaning(head)) is not None:
            return False
        if binding.kind == "value" and binding.value.name:
            return self.is_sure(at, binding.value.name, depth - 1)
        if binding.kind == "function" and not rest:
            return self._own_word_for(Place(at.path, binding.target), depth - 1) is None
        if binding.kind != "import" or self._is_elsewhere(at, meant := self.files[at.path].absolute(binding.target)):
            return True
        path, left = self._split(f"{meant}.{rest}" if rest else meant)
        return path is None or self.is_sure(Place(path, ""), left, depth - 1)

    def _starred(self, path: str, name: str, depth: int) -> str | None:
        """The qualified name of what the file at `path` has by `from module import *`, where the module is one of the
        project."""
        head = name.partition(".")[0]
        if depth <= 0 or head.startswith("_"):
            return None
        module = next((module for module in self._stars(path) if self._bound(Place(module, ""), head)), None)
        return self.qualified_name(Place(module, ""), name, depth - 1) if module else None

    def _stars(self, path: str) -> tuple[str, ...]:
        """The files of the project whose names `path` has by stars, near or far: of several, the last written counts
        first."""
        return self.log.remembered(self._starred_files, path, self._starred_by, path)

    def _starred_by(self, path: str) -> tuple[str, ...]:
        found: dict[str, None] = {}
        todo = deque((path,))
        while todo:
            facts = self.files[todo.popleft()]
            self.log.add(facts.path, STARS)
            stars = [facts.absolute(to) for key, (_, to, _) in facts.raw.bindings[""].items() if key[0] == "*"]
            modules = (self.modules.get(s) for s in reversed(stars) if not is_elsewhere(s, facts.module))
            new = dict.fromkeys(module for module in modules if module and module not in found)
            found.update(new)
            todo.extend(new)
        return tuple(found)

    def _lookup(self, place: Place, name: str) -> tuple[str, Binding] | None:
        """The scope and binding of `name` read at `place`."""
        self.log.add(*place)
        self.log.add(place.path, name)
        return self.files[place.path].lookup(place.scope, name)

    def _bound(self, place: Place, name: str) -> Binding | None:
        """What the scope `place` itself binds `name` to."""
        self.log.add(place.path, place.scope or name)
        return self.files[place.path].bound(place.scope, name)

    def _named(self, place: Place, binding: Binding, rest: str, depth: int) -> str | None:
        """The qualified name of `rest` inside what `binding`, which stands in `place`, is bound to."""
        tail = f".{rest}" if rest else ""
        if depth <= 0:
            return None
        match binding.kind:
            case "import":
                name = self.files[place.path].absolute(binding.target) + tail
                return public(name) if self._is_elsewhere(place, name) else self._imported(name, depth - 1)
            case "function" | "class":
                scope = Place(place.path, binding.target)
                member = self._of_class(scope, rest, depth - 1) if rest else None
                if binding.kind == "function" and not rest and (meant := self._own_word_for(scope, depth - 1)):
                    return meant
                return member or f"{self.name_of(scope)}{tail}"
            case "value" if binding.value.name:
                return self.qualified_name(place, binding.value.name + tail, depth - 1)
            case "value" if rest and (made := self.find(self.callee(place, binding.value, depth - 1))):
                return self._of_class(made, rest, depth - 1)
        return None

    def _own_word_for(self, place: Place, depth: int) -> str | None:
        """What of jax.lax the def at `place` is the project's own word for."""
        function = self.function_at(place)
        names = (self.callee(place, value, depth) for value in (passed_on(function) if function else ()))
        return next((name for name in names if name in OF_LAX), None)

    def _member(self, place: Place, name: str, depth: int) -> str | None:
        self.log.add(*place)
        around = self.files[place.path].class_around(place.scope)
        return self._of_class(Place(place.path, around), name, depth) if around else None

    def _of_class(self, owner: Place, name: str, depth: int) -> str | None:
        """The qualified name of what a class or an instance of it calls `name`."""
        head, _, rest = name.partition(".")
        found = self.attribute(owner, head, depth)
        return self._named(*found, rest, depth) if found else None

    def attribute(self, owner: Place, name: str, depth: int = DEPTH) -> tuple[Place, Binding] | None:
        """The class that binds an attribute of the class `owner`, itself or a base, and what it binds it to."""
        self.log.add(*owner)
        if owner.scope not in self.files[owner.path].classes or depth <= 0:
            return None
        if binding := self._bound(owner, name):
            return owner, binding
        bases = self.bases(owner, depth)
        return next((found for base in bases if (found := self.attribute(base, name, depth - 1))), None)

    def classes_with(self, path: str, field: str) -> list[str]:
        """The classes of a file that bind a name themselves."""
        self.log.asked.add((EVERYWHERE, METHODS))  # which classes there are
        raw = self.files[path].raw
        for scope in raw.classes:
            self.log.add(path, scope)
        return [scope for scope in raw.classes if field in raw.bindings.get(scope, ())]

    def bases(self, owner: Place, depth: int = DEPTH) -> Sequence[Place]:
        """The classes of the project that the class `owner` is derived from, as it names them."""
        return self.log.remembered(self._bases, (owner, depth), self._bases_of, owner, depth)

    def lineage(self, owner: Place) -> list[Place]:
        """The class `owner`, and those of the project that it is derived from, near or far."""
        found = [owner]
        for each in found:  # which grows
            found += [base for base in self.bases(each) if base not in found]
        return found

    def _bases_of(self, owner: Place, depth: int) -> tuple[Place, ...]:
        return tuple(self._each_base(owner, depth))

    def _each_base(self, owner: Place, depth: int) -> Iterator[Place]:
        self.log.add(*owner)
        for base in self.files[owner.path].classes[owner.scope].bases:
            found = self.find(self.qualified_name(owner.outer, base.name, depth - 1)) if base.name else None
            if found and found.scope in self.files[found.path].classes:
                yield found

    def _is_elsewhere(self, place: Place, name: str) -> bool:
        return is_elsewhere(name, self.files[place.path].module)

    def _imported(self, name: str, depth: int) -> str | None:
        """Follows re-exports: with `from lib.types import jnp`, where lib.types imports it, jnp is jax.numpy still."""
        if depth < DEPTH - 1:
            return self._origin(name, depth)
        return self.log.remembered(self._origins, name, self._origin, name, depth)

    def _origin(self, name: str, depth: int) -> str | None:
        path, rest = self._split(name)
        if path is None or name in JIT:  # also in flax's own examples, where flax.nnx.jit is a def of the project
            return name
        head, _, tail = rest.partition(".")
        binding = self._bound(Place(path, ""), head)
        return (
            self._named(Place(path, ""), binding, tail, depth) if binding else self._starred(path, rest, depth) or name
        )

    def _split(self, name: str) -> tuple[str | None, str]:
        return home_of(name, self.modules)

    def callee(self, place: Place, call: Value, depth: int = DEPTH) -> str | None:
        """The qualified name of what `call` calls; `partial(jax.jit, ...)(f)` calls jax.jit."""
        called = call.callee
        if called is None:
            return None
        if called.is_call:
            if self.callee(place, called, depth) in PARTIAL and called.arguments and called.arguments[0].name:
                return self.qualified_name(place, called.arguments[0].name, depth)
            return None
        return self.qualified_name(place, called.name, depth) if called.name else None

    def value_of(self, place: Place, name: str, depth: int = DEPTH) -> Bound | None:
        """The Value last assigned to a name: here, on a class for `self.x` or `env.x`, or in the module it is from."""
        owner, _, last = name.rpartition(".")
        made_by = self.class_of(place, owner, depth) if owner and depth > 0 else None
        if made_by:
            found = self.attribute(made_by, last)
            return Bound(found[0], found[1].value) if found and found[1].value != NOTHING else None
        facts = self.files[place.path]
        head, _, rest = name.partition(".")
        bound = self._lookup(place, head)
        if bound is None:
            return None
        if bound[1].value != NOTHING and not rest:
            return Bound(Place(place.path, bound[0]), bound[1].value)
        if bound[1].kind != "import":
            return None
        target = facts.absolute(bound[1].target) + (f".{rest}" if rest else "")
        path, left = (None, "") if self._is_elsewhere(place, target) else self._split(target)
        binding = self._bound(Place(path, ""), left) if path else None
        if not (path and binding):
            return None
        if binding.kind == "import" and depth > 0 and binding.value == NOTHING:
            return self.value_of(Place(path, ""), left, depth - 1)
        return Bound(Place(path, ""), binding.value) if binding.value != NOTHING else None

    def value_by_star(self, place: Place, name: str) -> Bound | None:
        """The same of a name that the file may have by `from module import *`."""
        head = name.partition(".")[0]
        if self._lookup(place, head) is not None:
            return self.value_of(place, name)
        module = next((module for module in self._stars(place.path) if self._bound(Place(module, ""), head)), None)
        return self.value_of(Place(module, ""), name) if module else None

    def class_of(self, place: Place, name: str, depth: int = DEPTH) -> Place | None:
        """The class of the project that `self`, an instance or the class itself stands for."""
        if name in ("self", "cls"):
            self.log.add(*place)
            around = self.files[place.path].class_around(place.scope)
            return Place(place.path, around) if around else None
        bound = self.value_of(place, name, depth - 1)
        called = self.callee(*bound, depth - 1) if bound else self.qualified_name(place, name, depth - 1)
        found = self.find(called)
        return found if found and found.scope in self.files[found.path].classes else None

    def decorators(self, path: str, function: Function) -> Iterator[str]:
        """The qualified names of a function's decorators: of `@jit(...)` jit, of `@partial(f, ...)` f."""
        place = Place(path, function.scope).outer
        self.log.add(path, function.scope)
        for decorator in function.decorators:
            name = self.callee(place, decorator) if decorator.is_call else self.qualified_name(place, decorator.name)
            if name in PARTIAL and decorator.arguments:
                name = self.qualified_name(place, decorator.arguments[0].name)
            if name:
                yield name

    def inherits(self, place: Place, names: frozenset[str], depth: int = DEPTH) -> bool:
        """Whether the class at `place` has one of the qualified `names` among its bases, through the project."""
        self.log.add(*place)
        for base in self.files[place.path].classes[place.scope].bases:
            name = self.qualified_name(place.outer, base.name) if base.name else None
            if name in names:
                return True
            other = self.find(name)
            is_class = other is not None and other.scope in self.files[other.path].classes
            if other and is_class and depth and self.inherits(other, names, depth - 1):
                return True
        return False

    def functions_behind(
        self, place: Place, value: Value, wrappers: frozenset[str], depth: int = DEPTH
    ) -> Iterator[Place]:
        """The functions that a value stands for: a name, a lambda, `partial(f)`, `[f, g]`, `vmap(f)` (a wrapper)."""
        return self._behind(place, value, wrappers, depth, {})

    def _behind(
        self, place: Place, value: Value, wrappers: frozenset[str], depth: int, gone: dict[Bound, int]
    ) -> Iterator[Place]:
        """`gone` is how deep was gone from what was met before: factories that return what each other make are many
        paths to few values."""
        if depth <= gone.get(Bound(place, value), 0):
            return
        gone[Bound(place, value)] = depth
        if value.is_call:
            for where, handed_on in self._handed_on(place, value, wrappers):
                yield from self._behind(where, handed_on, wrappers, depth - 1, gone)
        elif value.arguments:
            for part in value.arguments:
                yield from self._behind(place, part, wrappers, depth - 1, gone)
        elif value.name in self.files[place.path].functions and "<lambda>" in value.name:
            yield Place(place.path, value.name)
        elif value.name:
            if found := self.find(self.qualified_name(place, value.name)):
                yield found
            elif bound := self.value_of(place, value.name):
                yield from self._behind(*bound, wrappers, depth - 1, gone)

    def _handed_on(self, place: Place, call: Value, wrappers: frozenset[str]) -> Iterator[Bound]:
        """What a call gives a function for: what it wraps, or what a factory of the project returns."""
        called = self.callee(place, call)
        if called in wrappers | PARTIAL:
            yield from (Bound(place, argument) for argument in call.arguments[:1])
        elif (made_at := self.find(called)) and (factory := self.function_at(made_at)):
            yield from (Bound(made_at, returned) for returned in factory.returns)
