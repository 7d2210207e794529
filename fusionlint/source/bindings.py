"""What the names of a file mean, while it is read from top to bottom: one meaning each, or none.

In: the bindings of a file in the order in which they stand, and the blocks that they stand in. Out: `by_scope`, as the
Facts keep it.
"""

from __future__ import annotations

import ast
from typing import TypeAlias

from fusionlint.source.facts import RawBinding, RawValue, other_meaning

# What a name is bound to that may be anything.
OTHER: RawBinding = ("other", "", None)
# Each a statement and which of its blocks, outermost first.
Arms: TypeAlias = "tuple[tuple[ast.stmt, int], ...]"
# What `Bindings.leave` goes back to.
Outside: TypeAlias = "tuple[dict[str, RawBinding], Arms]"


class Bindings:
    """The names of each scope of one file. `renewed` are those that the file's own level has imported anew, as
    something else."""

    def __init__(self) -> None:
        self.by_scope: dict[str, dict[str, RawBinding]] = {"": {}}
        self.renewed: dict[str, RawBinding] = {}
        self._arms: Arms = ()  # the blocks around, of each statement one runs
        self._bound_in: dict[str, Arms] = {}  # where the file's own names are bound

    def of(self, scope: str) -> dict[str, RawBinding]:
        """The names of `scope`, none as yet where it is new."""
        return self.by_scope.setdefault(scope, {})

    def bind(self, scope: str, name: str, binding: RawBinding) -> None:
        """The first import or def of a name wins (`try: ... except ImportError:`); two values make it unknown. The
        functions below a second import of a name see that one, see `renew`."""
        names = self.of(scope)
        old = names.get(name)
        if old is None:
            names[name] = binding
            if not scope:
                self._bound_in[name] = self._arms
        elif old == OTHER:
            pass
        elif wrapped := _wrapped(name, old, binding):
            names[name] = wrapped
        elif not scope and old != binding and self._is_of_jax_in_one(name, old, binding):
            self._bind_either(name, binding)
        elif "value" in (old[0], binding[0]) and old != binding:
            names[name] = OTHER
        elif scope and _is_of_jax(old) and not _is_of_jax(binding):
            names[other_meaning(name)] = OTHER
        elif old[0] == binding[0] == "import" and not scope and (old != binding or self.renewed):
            self.renewed = {**self.renewed, name: binding}

    def renew(self, scope: str) -> None:
        """Binds what `scope` reads of the names that were imported anew as if it imported them itself: notebooks and
        scripts joined to one file have `import numpy as np` below functions whose np is jax.numpy."""
        names, file = self.by_scope[scope], self.by_scope[""]
        for name, binding in self.renewed.items():
            if file[name][0] == "import" and file[name] != binding:
                names.setdefault(name, binding)

    def enter(self, statement: ast.stmt | None, number: int) -> Outside:
        """Goes into one of several blocks of a statement, of which one runs; without a statement, into one that always
        does. What it gives is for `leave`: imports in there say nothing of the other blocks, nor of what stands below
        them all."""
        outside = self.renewed, self._arms
        if statement is not None:
            self._arms = (*self._arms, (statement, number))
        return outside

    def leave(self, outside: Outside) -> None:
        self.renewed, self._arms = outside

    def _is_of_jax_in_one(self, name: str, old: RawBinding, new: RawBinding) -> bool:
        """Whether one of two bindings of the file's own level is an import from jax, and only one of them runs."""
        return _is_of_jax(old) != _is_of_jax(new) and _are_apart(self._bound_in.get(name, ()), self._arms)

    def _bind_either(self, name: str, new: RawBinding) -> None:
        """Without jax the name is something else, `jnp = np`: who uses it is written for jax. The functions below, in
        the same block, see that other one."""
        names = self.by_scope[""]
        names[other_meaning(name)] = OTHER
        if _is_of_jax(new):
            names[name] = new
            self._bound_in[name] = self._arms
        else:
            self.renewed = {**self.renewed, name: new}


def _wrapped(name: str, old: RawBinding, new: RawBinding) -> RawBinding | None:
    """The binding of `step` where `step = jax.jit(step)` meets a def, import or value of that name; of a method
    where `self.step = jax.jit(self.step)` does, in whichever order they stand."""
    if new[0] == "function" and old[0] == "value":
        old, new = new, old
    if new[0] != "value" or old[0] == "other" or not _mentions(new[2], (name, f"self.{name}")):
        return None
    return (old[0], old[1], new[2]) if old[0] in ("function", "class", "import") else new


def _mentions(value: RawValue, names: tuple[str, ...]) -> bool:
    """Whether a call, or one among its arguments, is handed one of `names`."""
    if not isinstance(value, tuple) or len(value) == 1:
        return False
    return any(a in names or _mentions(a, names) for a in value[1])


def _is_of_jax(binding: RawBinding) -> bool:
    return binding[0] == "import" and f"{binding[1]}.".startswith("jax.")


def _are_apart(one: Arms, other: Arms) -> bool:
    """Whether two places stand in different blocks of one statement: only one of them runs."""
    parted = ((a, b) for a, b in zip(one, other, strict=False) if a != b)
    first = next(parted, None)
    return first is not None and first[0][0] is first[1][0]
