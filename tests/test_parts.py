"""Parts: values that are read when they are asked for, each once, however many hold them."""

from __future__ import annotations

import pytest

from fusionlint.source.parts import Parts, packed_parts


def test_each_value_is_read_when_it_is_asked_for_and_once_for_all() -> None:
    read = list[int]()

    def make(value: int) -> int:
        read.append(value)
        return value

    parts = Parts(packed_parts({"a": 1, "b": 2, "c": 3}), make)
    some = parts.only(["a", "b"])
    assert (len(parts), len(some), "c" in parts, "c" in some, read) == (3, 2, True, False, [])
    assert (some["a"], parts["a"], parts["c"]) == (1, 1, 3)
    assert read == [1, 3]
    with pytest.raises(KeyError):
        some["c"]  # read by the other one
    more = some.beside({"b": 7, "d": 4})
    assert {**more} == {"a": 1, "b": 7, "d": 4}
    assert read == [1, 3]
