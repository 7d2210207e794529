"""The options that several commands have."""

from __future__ import annotations

import pytest
from commands import run


@pytest.mark.parametrize(
    "command",
    [
        ("check", "nowhere", "--output-format=text"),
        ("explain", "nowhere", "--target=cpu", "--output-format=text"),
        ("diff", "nowhere", "nowhere", "--target=cpu", "--output-format=full"),
    ],
)
def test_text_and_full_are_the_same_format_everywhere(command: tuple[str, ...]) -> None:
    done = run(*command)
    assert done.exit_code == 2
    assert "nowhere" in done.stderr
    assert "--output-format" not in done.stderr


@pytest.mark.parametrize("number", ["nan", "inf", "-inf", "1e999"])
@pytest.mark.parametrize(
    "command",
    [
        ("diff", "a.json", "b.json", "--tolerance"),
        ("diff", "a.json", "b.json", "--timeout"),
        ("explain", "env.py:step", "--timeout"),
        ("run", "--timeout"),
    ],
)
def test_a_number_that_nothing_exceeds_is_refused(command: tuple[str, ...], number: str) -> None:
    done = run(*command[:-1], f"{command[-1]}={number}", *(["train.py"] if command[0] == "run" else []))
    assert (done.exit_code, done.stdout) == (2, "")
    assert f"Invalid value for '{command[-1]}': {number}" in done.stderr
