"""benchmarks/cpu_times.py times both forms of a page, and says which pages a CPU's clock refutes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from fusionlint.rule import page

ROOT = Path(__file__).parents[1]


@pytest.mark.compilers
def test_both_forms_of_each_measured_pair_are_timed_and_what_is_not_claimed_is_refuted_by_nothing() -> None:
    pages = ["sort-for-max", "default-searchsorted"]  # one by far quicker, one slower and not claimed
    command = [sys.executable, str(ROOT / "benchmarks" / "cpu_times.py"), *pages]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = [line.split() for line in done.stdout.splitlines() if " us " in line]
    pairs = [(name, str(number)) for name in pages for number in range(len(page(name).measurements))]
    assert [(line[0], line[1]) for line in lines] == pairs
    assert all(float(line[2]) > float(line[4]) > 0 for line in lines[:2])
    assert all(line[-2:] == ["(no", "claim)"] for line in lines[2:])
