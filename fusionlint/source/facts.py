"""What is known of a file before libcst parses it: imports, functions, loops, calls, and what its names are bound to.

`reading.py` reads them off a text. Names stay as written here (`jnp.stack`), `project.py` says what they mean. A
`Facts` holds plain tuples, dictionaries and strings, which travel between processes and to the disk by `marshal`, ten
times faster than objects do; what it is asked for it hands out as the named tuples below.
"""

from __future__ import annotations

import marshal
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Any, Literal, NamedTuple, TypeAlias

# In a Python loop: `x = f(x, ...)`, `x = f(x, w[i])`, and, in one over `s`, `r[a == s]`; anywhere but in `__init__`:
# `self.x = f(x)`. Of a class's field, by the class and its name: `depth: int = 2`. Of a file's own level: an import in
# an `if` or a `try`, or anything else that stands around it.
Shape = Literal[
    "handed on in a loop",
    "handed on with rows in a loop",
    "masked in a loop",
    "kept in self",
    "few by default",
    "imports in a block",
]
Kind = Literal["import", "function", "class", "parameter", "value", "other"]

# What makes an object of a class once, and what Python calls after it.
CONSTRUCTORS = ("__init__", "__post_init__")
# A Value as it is kept: the name alone, (elements,) of a tuple, (callee, arguments, keywords) of a call.
RawValue: TypeAlias = "str | tuple[Any, ...] | None"
RawBinding: TypeAlias = tuple[Kind, str, RawValue]
# A statement of the file's own level: the lines that it begins and ends in, whether it is a def or class, how many
# scopes of that level are opened before it, and of a long class the same of what stands in it.
RawPart: TypeAlias = tuple[int, int, bool]
RawStatement: TypeAlias = tuple[int, int, bool, int, tuple[RawPart, ...]]
# A call, its scope, the lines of the loops around it and its own.
RawCall: TypeAlias = tuple[tuple[Any, ...], str, tuple[int, ...], int]


class Value(NamedTuple):
    """What facts keep of an expression: a dotted name, a call of another Value, a lambda, a tuple; else nothing.

    `name` is "jnp.stack" for a name or attribute, the scope's name for a lambda, "" for anything else.
    """

    name: str = ""
    callee: Value | None = None
    arguments: tuple[Value, ...] = ()
    keywords: tuple[tuple[str, Value], ...] = ()

    @property
    def is_call(self) -> bool:
        return self.callee is not None

    def argument(self, position: int, name: str) -> Value:
        """What a call hands over at a position, or else under a name; nothing, where facts keep neither."""
        if 0 <= position < len(self.arguments):
            return self.arguments[position]
        return dict(self.keywords).get(name, NOTHING)


NOTHING = Value()


def unpacked(raw: RawValue) -> Value:
    """The Value that is kept as `raw`."""
    if raw is None:
        return NOTHING
    if isinstance(raw, str):
        return Value(raw)
    if len(raw) == 1:
        return Value("", None, tuple(map(unpacked, raw[0])))
    callee, arguments, keywords = raw
    pairs = tuple((keyword, unpacked(value)) for keyword, value in keywords)
    return Value("", unpacked(callee), tuple(map(unpacked, arguments)), pairs)


class Binding(NamedTuple):
    """What a scope says about a name. `target` is the qualified name of an import, the scope of a function or class;
    `value` what it was assigned, of a function or import what it was wrapped in: `step = jax.jit(step)`."""

    kind: Kind
    target: str = ""
    value: Value = NOTHING


class Call(NamedTuple):
    """One call: where it stands, in which scope and how deep in loops of that scope."""

    value: Value
    scope: str
    loops: tuple[int, ...]  # lines of the enclosing loops of this scope, outermost first
    line: int


class Function(NamedTuple):
    """One def or lambda. `scope` is its dotted name inside the file ("Env.step", "train.update")."""

    scope: str
    line: int
    decorators: tuple[Value, ...]
    parameters: tuple[str, ...]
    returns: tuple[Value, ...]
    owner: str  # the class around it, "" without one


class Class(NamedTuple):
    scope: str
    bases: tuple[Value, ...]
    decorators: tuple[Value, ...] = ()


class Raw(NamedTuple):
    """What is kept of a file's text. Dictionaries are by scope; "" is the module's own."""

    bindings: dict[str, dict[str, RawBinding]]
    functions: dict[str, tuple[int, tuple[RawValue, ...], tuple[str, ...], tuple[RawValue, ...], str]]
    classes: dict[str, tuple[tuple[RawValue, ...], tuple[RawValue, ...]]]
    calls: tuple[RawCall, ...]
    attributes: frozenset[str]
    shapes: frozenset[tuple[str, str]]  # what is seen of statements, each a name of `Shape` and a scope
    statements: tuple[RawStatement, ...] = ()
    # What Python asks of a value wherever the code of a scope gets to its end: a number, `float(loss)`, or whether it
    # is true, `if jnp.any(x < 0)`.
    asked: frozenset[tuple[str, RawValue]] = frozenset()

    def imports(self) -> Iterator[str]:
        """What any scope of the file imports, as it writes it."""
        for names in self.bindings.values():
            for kind, target, _ in names.values():
                if kind == "import":
                    yield target

    def packed(self) -> bytes:
        return marshal.dumps(tuple(self))

    def outline(self) -> bytes:
        """What of it says anything to other files: all but where things stand. The same text gives the same bytes."""
        functions = {scope: rest for scope, (_, *rest) in self.functions.items()}
        calls = [(value, scope, len(loops)) for value, scope, loops, _ in self.calls]
        # Version 0 of the format writes nothing twice in another way.
        return marshal.dumps(
            (
                *(self.bindings, functions, self.classes, calls),
                *map(sorted, (self.attributes, self.shapes)),
                sorted(self.asked, key=repr),
            ),
            0,
        )

    @classmethod
    def unpacked(cls, data: bytes) -> Raw:
        return cls(*marshal.loads(data))  # noqa: S302 - what a worker or the cache wrote, checksum and all


class Facts:
    """Everything `check` knows of a file before libcst parses it. Scope "" is the module's own. What was kept of the
    text may be packed, or still have to be fetched: after a small change few files are asked about."""

    def __init__(
        self,
        path: str,
        inside: str,
        module: str,
        raw: Raw | bytes | Callable[[], bytes],
        *,
        is_package: bool = False,
        beside: Mapping[str, str] | None = None,
        is_for_others: bool = True,
    ) -> None:
        self.path = path
        self.inside = inside  # the path as the file's project writes it
        self.module = module  # dotted name, "" when unknown
        self.is_package = is_package
        self.beside = beside or {}  # what it imports by a last name, with the package that this is in
        self.is_for_others = is_for_others  # whether another project can import it
        self._kept = raw
        self._bound: dict[tuple[str, str], Binding | None] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        kept = self._packed(), self.is_package, self.beside, self.is_for_others
        return _facts, (self.path, self.inside, self.module, *kept)

    def _packed(self) -> bytes:
        if isinstance(self._kept, Raw):
            return self._kept.packed()
        return self._kept if isinstance(self._kept, bytes) else self._kept()

    @cached_property
    def raw(self) -> Raw:
        return self._kept if isinstance(self._kept, Raw) else Raw.unpacked(self._packed())

    @cached_property
    def bindings(self) -> dict[str, dict[str, Binding]]:
        return {
            scope: {name: Binding(kind, target, unpacked(value)) for name, (kind, target, value) in names.items()}
            for scope, names in self.raw.bindings.items()
        }

    @cached_property
    def functions(self) -> dict[str, Function]:
        return {
            scope: Function(
                scope, line, tuple(map(unpacked, decorators)), parameters, tuple(map(unpacked, returns)), owner
            )
            for scope, (line, decorators, parameters, returns, owner) in self.raw.functions.items()
        }

    @cached_property
    def classes(self) -> dict[str, Class]:
        return {
            scope: Class(scope, tuple(map(unpacked, bases)), tuple(map(unpacked, decorators)))
            for scope, (bases, decorators) in self.raw.classes.items()
        }

    @cached_property
    def calls(self) -> tuple[Call, ...]:
        return tuple(map(unpacked_call, self.raw.calls))

    def calls_within(self, scope: str) -> Iterator[Call]:
        """The calls in the code of a scope and of all scopes inside of it."""
        near = self._calls_by_top.get(scope.partition(".")[0], ())
        return (call for call in near if f"{call.scope}.".startswith(f"{scope}."))

    @cached_property
    def _calls_by_top(self) -> dict[str, list[Call]]:
        """The calls in each def or class of the file's own level, and in what is inside of it."""
        found: dict[str, list[Call]] = {}
        for call in self.calls:
            found.setdefault(call.scope.partition(".")[0], []).append(call)
        return found

    @cached_property
    def handed_on(self) -> frozenset[str]:
        """The names that some call of the file is handed, or a function returns, alone or as an argument: who gets what
        they stand for may call it."""
        handed = ((*arguments, *(value for _, value in keywords)) for (_, arguments, keywords), *_ in self.raw.calls)
        returned = (value for function in self.functions.values() for value in function.returns)
        names = {part.name for value in returned for part in (value, *value.arguments)}
        return frozenset(names.union(value for values in handed for value in values if isinstance(value, str)))

    @property
    def attributes(self) -> frozenset[str]:
        return self.raw.attributes

    def imports(self) -> Iterator[str]:
        """The absolute names of what any scope of the file imports."""
        return map(self.absolute, self.raw.imports())

    def has(self, shape: Shape) -> list[str]:
        """The scopes of the code that looks so."""
        return [scope for name, scope in self.raw.shapes if name == shape]

    @cached_property
    def inner_names(self) -> frozenset[str]:
        """What some scope below the module's own binds; `self` and `cls` mean something else in each class."""
        scopes = (names for scope, names in self.raw.bindings.items() if scope)
        return frozenset(("self", "cls")).union(*scopes)

    @cached_property
    def perhaps_compiled(self) -> frozenset[str]:
        """The names that any scope binds to a value or another name, or to a def with decorators."""
        bindings = (one for names in self.raw.bindings.values() for one in names.items())
        return self.perhaps_wrapped.union(name for name, (*_, value) in bindings if value is not None)

    @cached_property
    def perhaps_wrapped(self) -> frozenset[str]:
        """Those of them that may stand for a def or class of the project, as it is or wrapped: names for other names,
        defs with decorators, and what is bound once more, `step = jax.jit(step)`, or by a base, for a subclass's def:
        `self.update = jax.jit(self.update)`."""
        raw = self.raw
        found = {
            name
            for scope, names in raw.bindings.items()
            for name, (kind, target, value) in names.items()
            if isinstance(value, str)
            or (value is not None and (kind != "value" or scope in raw.classes))
            or (kind == "import" and target.rpartition(".")[2] != name)
        }
        decorated = (scope for scope, (_, decorators, *_) in raw.functions.items() if decorators)
        return frozenset(found.union(last_name(scope) for scope in decorated))

    @cached_property
    def other_meanings(self) -> frozenset[str]:
        """The names that may mean something else, by whatever scope, as `other_meaning` writes them."""
        return frozenset(name for names in self.raw.bindings.values() for name in names if name[-1] == "?")

    def bound(self, scope: str, name: str) -> Binding | None:
        """What `scope` itself binds `name` to, None where it does not."""
        try:
            return self._bound[scope, name]
        except KeyError:
            raw = self.raw.bindings.get(scope, {}).get(name)
            found = Binding(raw[0], raw[1], unpacked(raw[2])) if raw else None
            self._bound[scope, name] = found
            return found

    def lookup(self, scope: str, name: str) -> tuple[str, Binding] | None:
        """The scope and binding of `name` read in `scope`. Python's scoping: only a class's own code sees its body."""
        first = True
        while True:
            if (first or scope not in self.raw.classes) and (found := self.bound(scope, name)):
                return scope, found
            if not scope:
                return None
            scope, first = scope.rpartition(".")[0], False

    def class_around(self, scope: str) -> str:
        """The innermost class that the code of `scope` stands in, "" without one: what `self` is an instance of."""
        while scope and scope not in self.raw.classes:
            scope = scope.rpartition(".")[0]
        return scope

    def absolute(self, target: str) -> str:
        """`..math.rotate`, imported in brax.envs.ant, is `brax.math.rotate`."""
        return absolute(target, self.module, self.beside, is_package=self.is_package)


def other_meaning(name: str) -> str:
    """What the bindings of a scope call, as no code can, what else a name may mean there: of `np = jnp if ON else onp`
    ("value", "ON", "onp"), of what is imported from jax in one branch alone ("other", "", None)."""
    return f"{name}?"


def last_name(scope: str) -> str:
    """What the def or class that opens a scope is called: `update` of `Agent.update#2`."""
    return scope.rpartition(".")[2].partition("#")[0]


def absolute(target: str, module: str, beside: Mapping[str, str], *, is_package: bool) -> str:
    """What `target`, imported in `module`, is called everywhere."""
    dots = len(target) - len(target.lstrip("."))
    if not dots:
        package = beside.get(target.partition(".")[0]) if beside else None
        return f"{package}.{target}" if package else target
    parts = module.split(".")
    keep = len(parts) - dots + (1 if is_package else 0)
    return ".".join([*parts[: max(keep, 0)], target[dots:]]).strip(".")


def unpacked_call(raw: RawCall) -> Call:
    value, scope, loops, line = raw
    return Call(unpacked(value), scope, loops, line)


def _facts(
    path: str,
    inside: str,
    module: str,
    raw: bytes,
    is_package: bool,
    beside: Mapping[str, str],
    is_for_others: bool,
) -> Facts:
    return Facts(path, inside, module, raw, is_package=is_package, beside=beside, is_for_others=is_for_others)
