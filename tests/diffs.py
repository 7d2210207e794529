"""Reports as `explain` and `run` write them, made up for the tests of `diff`."""

from __future__ import annotations

from typing import Any

from fusionlint.diff.side import Side, side_from

Fields = dict[str, Any]

VERSIONS = {"jax": "0.10.2", "jaxlib": "0.10.2"}
LINE = "state = jnp.stack([x, v], axis=1)"


def barrier(
    text: str | None = LINE,
    line: int = 15,
    cause: str = "concatenate",
    reason: str | None = "the consumer is not fusible",
    **more: Any,
) -> Fields:
    told: Fields = {
        "cause": cause,
        "detail": "",
        "opcodes": ["concatenate"],
        "bytes": 32,
        "crossings": 1000,
        "launches": 1000,
        "per_iteration": False,
        "location": {"path": "/repo/env.py", "line": line, "function": "rollout.<locals>.step"},
        "writer": "fusion.1",
        "reason": reason,
        "rule": None,
        "advice": None,
        "text": text,
    }
    return told | more


def report(entry: str = "env.py:rollout(f32[8])", *barriers: Fields, **more: Any) -> Fields:
    told: Fields = {
        "entry": entry,
        "target": "h100",
        "versions": VERSIONS,
        "launches": 4,
        "launches_per_iteration": 0,
        "bytes": 1000,
        "bytes_per_iteration": 0,
        "microseconds": 5.0,
        "microseconds_per_iteration": 0.0,
        "timed_by": ["XLA's model"],
        "barriers": [*barriers],
    }
    return told | more


def document(*reports: Fields, **more: Any) -> Fields:
    told = {"version": 1, "folder": "/repo", "top": "/repo", "reports": [*reports], "errors": []}
    return told | more


def ran(entry: str = "env.py:rollout(x: f32[8])", times: int = 1, why: str = "x: f32[8] -> f32[4]") -> Fields:
    """A function as `run` tells of it."""
    compilations = [{"entry": entry, "why": [why] if number else []} for number in range(times)]
    return {"name": "rollout", "compilations": compilations}


def run_document(*functions: Fields, reports: tuple[Fields, ...] = (), eager: int = 0, **more: Any) -> Fields:
    lines = [{"programs": eager}] if eager else []
    return document(*reports, functions=[*functions], eager=lines, versions={**VERSIONS, "python": "3.11"}, **more)


def side(*reports: Fields, name: str = "a.json", **more: Any) -> Side:
    return side_from(name, document(*reports, **more))
