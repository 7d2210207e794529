"""What is known of a file before libcst parses it: imports, functions, loops, calls, and what its names are bound to.

Plain picklable values; `reading.py` reads them off a text. Names stay as written here (`jnp.stack`), `project.py` says
what they mean.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

Kind = Literal["import", "function", "class", "parameter", "value", "other"]


@dataclass(frozen=True, slots=True)
class Value:
    """What facts keep of an expression: a dotted name, a call of another Value, a lambda, a tuple; else nothing.

    `name` is "jnp.stack" for a name or attribute, the scope's name for a lambda, "" for anything else.
    """

    name: str = ""
    callee: Value | None = None
    arguments: tuple[Value, ...] = ()
    keywords: tuple[tuple[str, Value], ...] = ()
    line: int = 0

    @property
    def is_call(self) -> bool:
        return self.callee is not None


NOTHING = Value()


@dataclass(frozen=True, slots=True)
class Binding:
    """What a scope says about a name. `target` is the qualified name of an import, the scope of a function or class;
    `value` what it was assigned, of a function or import what it was wrapped in: `step = jax.jit(step)`."""

    kind: Kind
    target: str = ""
    value: Value = NOTHING


@dataclass(frozen=True, slots=True)
class Call:
    """One call: where it stands, in which scope and how deep in loops of that scope."""

    value: Value
    scope: str
    loops: tuple[int, ...]  # lines of the enclosing loops of this scope, outermost first
    line: int


@dataclass(frozen=True, slots=True)
class Function:
    """One def or lambda. `scope` is its dotted name inside the file ("Env.step", "train.update")."""

    scope: str
    line: int
    decorators: tuple[Value, ...]
    parameters: tuple[str, ...]
    returns: tuple[Value, ...]
    owner: str  # the class around it, "" without one


@dataclass(frozen=True, slots=True)
class Class:
    scope: str
    bases: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Facts:
    """Everything `check` knows of a file before libcst parses it. Scope "" is the module's own."""

    path: str
    inside: str  # the path as the file's project writes it
    module: str  # dotted name, "" when unknown
    is_package: bool
    bindings: dict[str, dict[str, Binding]] = field(default_factory=dict)
    functions: dict[str, Function] = field(default_factory=dict)
    classes: dict[str, Class] = field(default_factory=dict)
    calls: tuple[Call, ...] = ()
    attributes: frozenset[str] = frozenset()

    def lookup(self, scope: str, name: str) -> tuple[str, Binding] | None:
        """The scope and binding of `name` read in `scope`. Python's scoping: only a class's own code sees its body."""
        first = True
        while True:
            if (first or scope not in self.classes) and (found := self.bindings.get(scope, {}).get(name)):
                return scope, found
            if not scope:
                return None
            scope, first = scope.rpartition(".")[0], False

    def class_around(self, scope: str) -> str:
        """The innermost class that the code of `scope` stands in, "" without one: what `self` is an instance of."""
        while scope and scope not in self.classes:
            scope = scope.rpartition(".")[0]
        return scope

    def absolute(self, target: str) -> str:
        """`..math.rotate`, imported in brax.envs.ant, is `brax.math.rotate`."""
        dots = len(target) - len(target.lstrip("."))
        if not dots:
            return target
        parts = self.module.split(".")
        keep = len(parts) - dots + (1 if self.is_package else 0)
        return ".".join([*parts[: max(keep, 0)], target[dots:]]).strip(".")
