"""Plain values that are kept together and read one by one: a short run wants few of them."""

from __future__ import annotations

import marshal
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

T = TypeVar("T")


class Parts(Mapping[str, T]):
    """Values by name, each made of what `packed` has of it when it is asked for, once."""

    def __init__(self, packed: Mapping[str, bytes], make: Callable[[Any], T] = lambda value: value) -> None:
        self.packed = packed
        self._make = make
        self._read: dict[str, T] = {}

    def __getitem__(self, name: str) -> T:
        packed = self.packed[name]
        if name not in self._read:
            self._read[name] = self._make(marshal.loads(packed))  # noqa: S302 - what `packed_parts` wrote
        return self._read[name]

    def __contains__(self, name: object) -> bool:
        return name in self.packed

    def only(self, names: Iterable[str]) -> Parts[T]:
        """Those of the names, each read once for both."""
        some = Parts({name: self.packed[name] for name in names}, self._make)
        some._read = self._read
        return some

    def beside(self, others: Mapping[str, T]) -> Parts[T]:
        """The same with others, which need not be read."""
        some = Parts({**self.packed, **dict.fromkeys(others, b"")}, self._make)
        some._read = {**self._read, **others}
        return some

    def __iter__(self) -> Iterator[str]:
        return iter(self.packed)

    def __len__(self) -> int:
        return len(self.packed)


def packed_parts(values: Mapping[str, Any]) -> dict[str, bytes]:
    """What `Parts` reads the plain `values` from."""
    return {name: marshal.dumps(value) for name, value in values.items()}
