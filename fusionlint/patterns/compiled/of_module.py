"""The compiled side: a module as a key, to remember something of it; two are the same if they are one."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from fusionlint.hlo import parse as hlo

Found = TypeVar("Found")


@dataclass(frozen=True, slots=True, eq=False)
class OfModule:
    """With `functools.lru_cache(maxsize=1)`: each barrier of a module is asked about, then those of another."""

    module: hlo.Module

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OfModule) and other.module is self.module

    def __hash__(self) -> int:
        return id(self.module)


def by_computation(ask: Callable[[str, hlo.Module], Found]) -> Callable[[str, hlo.Module], Found]:
    """`ask` of a computation, by its name, once: each barrier in it asks, and each rule."""

    @functools.lru_cache(maxsize=1)
    def known(_: OfModule) -> dict[str, Found]:
        return {}

    @functools.wraps(ask)
    def asked(name: str, module: hlo.Module) -> Found:
        found = known(OfModule(module))
        if name not in found:
            found[name] = ask(name, module)
        return found[name]

    return asked
