"""The compiled side: a module as a key, to remember something of it; two are the same if they are one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fusionlint.hlo import parse as hlo


@dataclass(frozen=True, slots=True, eq=False)
class OfModule:
    """With `functools.lru_cache(maxsize=1)`: each barrier of a module is asked about, then those of another."""

    module: hlo.Module

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OfModule) and other.module is self.module

    def __hash__(self) -> int:
        return id(self.module)
