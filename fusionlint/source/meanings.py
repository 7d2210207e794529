"""What the names of a file mean, and what it calls."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TypeGuard

import libcst as cst

from fusionlint.lazily import regex
from fusionlint.source.facts import Call, RawCall, other_meaning, unpacked_call
from fusionlint.source.names import PARTIAL
from fusionlint.source.places import Place
from fusionlint.source.variables import Variables
from fusionlint.source.walk import dotted

_TYPE_CHECKING = regex(r"if\s+([\w.]+\.)?TYPE_CHECKING\s*:")
_IMPORTS = regex(r"\s*(from\s+\S+\s+)?import\s+(?P<names>.*)")
# What everybody calls them, also where the name comes by `from lib.types import jnp` or `from lib import *`.
_USUAL = {"jax": "jax", "jax.numpy": "jnp", "jax.lax": "lax", "numpy": "np"}


@dataclass(frozen=True, eq=False)
class Meanings(Variables):
    """The questions about qualified names."""

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
        for below, above in self.outward(node):
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
        return False

    def name_called(self, call: cst.CSTNode, *, in_two: bool = True) -> str | None:
        """The qualified name of what `call` calls, as facts have it: ".at.set" of `x.at[...].set(v)`, and, unless what
        is handed over `in_two` calls does not count, jax.jit of `partial(jax.jit, ...)(f)`."""
        match call:
            case cst.Call(
                func=cst.Attribute(value=cst.Subscript(value=cst.Attribute(attr=cst.Name("at"))), attr=method)
            ):
                return f".at.{method.value}"
            case cst.Call(func=cst.Call() as inner) if in_two:
                handed = dotted(inner.args[0].value) if inner.args and inner.args[0].keyword is None else ""
                is_partial = self.qualified_name(inner.func) in PARTIAL
                return self.project.qualified_name(self.place(call), handed) if handed and is_partial else None
            case cst.Call(func=func):
                return self.qualified_name(func)
        return None

    def calls(self, node: cst.CSTNode | None, *names: str) -> TypeGuard[cst.Call]:
        """Whether `node` is a call of one of the qualified `names`."""
        return isinstance(node, cst.Call) and self.qualified_name(node.func) in names

    def calls_of(self, names: Collection[str]) -> Iterator[cst.Call]:
        """The calls in this file of what is called by one of the qualified `names`."""
        made = (call for name in names for _, call in self.called(name))
        pieces = {self.pieces.of_line(line) for *_, line in made}
        return (call for call in self.nodes_in(pieces, cst.Call) if self.name_called(call) in names)

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

    @property
    def names(self) -> Collection[str]:
        """The qualified names of all that this file calls."""
        return self._called.keys()

    def whole(self, call: RawCall) -> Call:
        """A call as its facts hand it out."""
        return unpacked_call(call)

    @cached_property
    def jnp(self) -> str:
        """What advice calls jax.numpy: what the file calls it, or else what everybody does."""
        return self.alias("jax.numpy") or "jnp"

    def alias(self, module: str) -> str | None:
        """What the file calls a module that it imports at its own level: "jnp" for "jax.numpy"."""
        names = self.facts.bindings.get("", {}).items()
        return next((n for n, b in names if b.kind == "import" and b.target == module and "." not in n), None)

    def alias_at(self, node: cst.CSTNode, module: str) -> str | None:
        """What code that a fix writes at `node` may call `module`: None where the file does not import it at its own
        level, by way of another file of the project or not, imports it for type checkers alone, or where the name means
        something else there."""
        name = self.alias(module)
        if name is None:
            usual = _USUAL.get(module, "")
            is_handed_on = bool(usual) and self.project.qualified_name(self.place(node), usual) == module
            return usual if is_handed_on and usual not in self._for_type_checkers else None
        found = self.facts.lookup(self.scope(node), name) if name else None
        is_of_the_file = found is not None and not found[0]
        return name if name and is_of_the_file and name not in self._for_type_checkers else None

    @cached_property
    def _for_type_checkers(self) -> frozenset[str]:
        """The names that the file imports only below `if TYPE_CHECKING:`, which no run does."""
        below: set[str] = set()
        elsewhere: set[str] = set()
        is_below = False
        for line in self.pieces.lines:
            if line[:1].strip():
                is_below = _TYPE_CHECKING.match(line) is not None
            if imported := _IMPORTS.match(line):
                names = map(_name_bound, imported["names"].split("#")[0].split(","))
                (below if is_below else elsewhere).update(names)
        return frozenset(below - elsewhere)


def _name_bound(clause: str) -> str:
    """jnp, of `jax.numpy as jnp`; jax, of `jax.numpy`."""
    what, _, name = clause.strip(" ()\r\n").partition(" as ")
    return name.strip() or what.partition(".")[0].strip()
