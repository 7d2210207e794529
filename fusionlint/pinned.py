"""The frame that stands between the lines of a rule and the step that it is the rule of, in the call path of an
operation: `compiling/rule_lines.py` puts it there, `hlo/frames.py` takes it out again. Its line, from 1, says how many
frames before it led to the rule's call: who calls jax has nothing to do with the step."""

from __future__ import annotations

FILE = "<fusionlint: the step of this rule>"


def line_of(callers: int) -> int:
    return callers + 1


def callers_at(line: int) -> int:
    return line - 1
