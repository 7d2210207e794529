"""What `fusionlint run` says of eager operations, told from a recording that was made up. No jax here."""

from __future__ import annotations

from dataclasses import replace

from fusionlint.recording import EagerLine, Place, Recording
from fusionlint.report.run_text import run_text

MAIN = Place("train.py", 36, "main")


def said(*lines: EagerLine) -> list[str]:
    return run_text(Recording(("train.py",), eager=lines), ()).splitlines()


def test_a_line_that_a_library_called_says_who_called_the_library() -> None:
    inner = EagerLine(Place("train.py", 16, "Network.__call__"), {"dot_general": 2}, 0.5, MAIN)
    assert "   train.py:16, from main:36: 2 programs (dot_general 2), 500 ms" in said(inner)
    outside = replace(inner, outer=Place("train.py", 36, "<module>"))
    assert "   train.py:16, from train.py:36: 2 programs (dot_general 2), 500 ms" in said(outside)


def test_a_call_that_costs_many_programs_is_told_with_all_that_it_costs() -> None:
    lines = [
        EagerLine(Place("train.py", line, "Network.__call__"), {"add": 3, "mul": 2}, 0.25, MAIN) for line in (7, 8)
    ]
    found = said(*lines, EagerLine(MAIN, {"sqrt": 1}, 0.5), EagerLine(Place("train.py", 40, "main"), {"sub": 9}, 0.5))
    assert found[-1] == "   train.py:36 costs 11 programs, 1 s: inside one jax.jit they are one program"


def test_few_programs_need_no_advice() -> None:
    assert not [line for line in said(EagerLine(MAIN, {"add": 9}, 1.0)) if "jax.jit they are" in line]


def test_a_line_of_an_installed_package_is_named_from_the_package_on() -> None:
    inside = EagerLine(Place("/home/me/.venv/lib/python3.11/site-packages/flax/linen.py", 9, "init"), {"add": 9}, 1.0)
    assert any(line.startswith("   flax/linen.py:9: 9 programs") for line in said(inside))
