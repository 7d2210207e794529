"""A report as JSON -> Side: what `fusionlint diff` compares of it. Pure; the files that it names are not read."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path
from typing import Any

from fusionlint.branches import Branches, branches_of, dearest
from fusionlint.diff.entries import Arguments, split_entry

VERSION = 1
# What is compared of a program: the fields of a report. Each has a fellow for what stands inside a loop of unknown
# length, per iteration of that loop.
QUANTITIES = ("launches", "bytes", "microseconds")
PER_ITERATION = "_per_iteration"

_INSTALLED = re.compile(r".*[/\\](?:site|dist)-packages[/\\]")

Shorten = Callable[[str], str]


class DiffError(ValueError):
    """What cannot be compared; the message is one line that says what to do."""


@dataclass(frozen=True, slots=True)
class Standing:
    """The barriers of one cause at one line of a program.

    `path` is from the top of the project; "" where no line is known. `text` is the line itself without
    its indentation, None where the report does not have it. `launches` and `bytes` are those of all of them (per
    iteration, if `per_iteration`), each writer counted once, of a conditional's branches the dearest; `reasons` are
    XLA's own words.
    """

    cause: str
    path: str = ""
    line: int = 0
    text: str | None = None
    function: str = ""
    details: tuple[str, ...] = ()
    count: int = 1
    launches: int = 0
    bytes: int = 0
    per_iteration: bool = False
    reasons: tuple[str, ...] = ()
    rule: str = ""
    advice: str = ""


@dataclass(frozen=True, slots=True)
class Program:
    """What one function, called with `arguments`, is on each of `devices` of `target`. `amounts` are by the names of
    QUANTITIES and their fellows, None where nothing is known; `timed_by` is who says the microseconds; barriers are
    dearest first."""

    target: str
    arguments: Arguments = field(default_factory=Arguments)
    amounts: Mapping[str, float | None] = field(default_factory=dict)
    timed_by: tuple[str, ...] = ()
    barriers: tuple[Standing, ...] = ()
    devices: int = 1
    host_launches: float | None = None  # of the launches, those of a CUDA graph together; None where nothing is known

    @property
    def hardware(self) -> str:
        """`h100`, or `8 x h100`: what one of eight does is no change of what one of four did."""
        return f"{self.devices} x {self.target}" if self.devices > 1 else self.target


@dataclass(frozen=True, slots=True)
class Function:
    """`name` is path.py:function or module:function. `compilations` is how often a run compiled it, None of what was
    not run; `again` says why, once for each time after the first; `signatures` are the arguments of all of them."""

    name: str
    compilations: int | None = None
    again: tuple[str, ...] = ()
    programs: tuple[Program, ...] = ()
    signatures: tuple[Arguments, ...] = ()


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two things that are compared. `versions` are those of jax, jaxlib and the compilers' plugins,
    `ran_with` those that a run had; `eager` is how many programs of one operation it compiled, None without a run;
    `status` is the exit status of a run, None where none is known; `failed` are the functions that `explain` has no
    report on for a target, each with the kind of its failure, None where that is not told. `is_asked` says that it was
    asked for some functions alone, and tells nothing of others."""

    name: str
    versions: Mapping[str, str] = field(default_factory=dict)
    functions: tuple[Function, ...] = ()
    eager: int | None = None
    errors: tuple[str, ...] = ()
    ran_with: Mapping[str, str] = field(default_factory=dict)
    status: int | None = None
    failed: Mapping[str, str] | None = None
    is_asked: bool = False

    @property
    def targets(self) -> tuple[str, ...]:
        """Those that there are programs for."""
        return tuple(dict.fromkeys(one.target for function in self.functions for one in function.programs))

    def ended_early(self, other: Side) -> bool:
        """Whether it is of a run that ended as no good one does, nor as that of the other side: what it did not come to
        is not gone. A program that always ends with the same status is none."""
        return bool(self.status) and self.status != other.status


def side_from(name: str, document: Mapping[str, Any], root: str = "") -> Side:
    """What `explain` or `run` wrote with `--output-format json`, called `name` in messages. Paths are told from `root`,
    by default the project's top folder where it was written. Raises DiffError."""
    try:
        if document["version"] != VERSION:
            raise DiffError(f"{name} is of version {document['version']}: a newer fusionlint wrote it")
        return _side(name, document, root)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        if isinstance(error, DiffError):
            raise
        raise DiffError(
            f"{name} is neither a report (`explain` or `run` with `--output-format json`) nor a recording "
            "(`run --record`)"
        ) from None


def on(side: Side, targets: Sequence[str]) -> Side:
    """The side with its programs for `targets` alone; as it is if none are named. DiffError if it has only others."""
    if not targets or not side.targets:
        return side
    if set(side.targets).isdisjoint(targets):
        raise DiffError(f"{side.name} has no report for {' or '.join(targets)}: it has {', '.join(side.targets)}")
    kept = (
        replace(function, programs=tuple(one for one in function.programs if one.target in targets))
        for function in side.functions
    )
    return replace(side, functions=tuple(one for one in kept if one.programs or one.compilations is not None))


def _side(name: str, document: Mapping[str, Any], root: str) -> Side:
    written_in = document.get("folder") or os.curdir
    shorten = _shortener(written_in, root or document.get("top") or written_in)
    functions: dict[str, Function] = {}
    for told in document.get("functions", ()):
        _add(functions, _ran(told, shorten))
    specs = _specs(document)
    versions: dict[str, str] = {}
    for report in document["reports"]:
        called, text = _split(report["entry"], shorten)
        arguments = Arguments(text, specs.get(report["entry"], ""))
        _add(functions, Function(called, programs=(_program(report, arguments, shorten),)))
        versions |= report["versions"]
    ran = {key: value for key, value in document.get("versions", {}).items() if key != "python"}
    status, failed = document.get("status"), None
    if "failures" in document:
        # On a target whose compiler is missing nobody has looked whether it is there.
        told = sorted(document["failures"], key=lambda one: one["kind"] == "absent")
        failed = {_split(one["entry"], shorten)[0]: one["kind"] for one in told}
    eager = sum(line["programs"] for line in document["eager"]) if "eager" in document else None
    return Side(name, versions or ran, tuple(functions.values()), eager, tuple(document["errors"]), ran, status, failed)


def _specs(document: Mapping[str, Any]) -> dict[str, str]:
    """What a SPEC would say of the entries of a run, where that is one thing."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for told in document.get("functions", ()):
        for one in told["compilations"]:
            found[one["entry"]].add(one.get("spec") or "")
    return {entry: specs.pop() for entry, specs in found.items() if len(specs) == 1}


def _add(functions: dict[str, Function], one: Function) -> None:
    known = functions.setdefault(one.name, Function(one.name))
    counts = [each.compilations for each in (known, one) if each.compilations is not None]
    compilations = sum(counts) if counts else None
    again, programs = known.again + one.again, known.programs + one.programs
    functions[one.name] = Function(one.name, compilations, again, programs, known.signatures + one.signatures)


def _ran(told: Mapping[str, Any], shorten: Shorten) -> Function:
    """A function of `run`: its compilations know their entry and why they came."""
    compilations = told["compilations"]
    again = tuple("; ".join(one["why"]) for one in compilations if one["why"])
    entries = [(*_split(one["entry"], shorten), one.get("spec") or "") for one in compilations]
    signatures = tuple(Arguments(text, spec) for _, text, spec in entries)
    return Function(entries[0][0], len(compilations), again, signatures=signatures)


def _split(entry: str, shorten: Shorten) -> tuple[str, str]:
    """The entry's name, its path shortened, and its arguments."""
    name, arguments = split_entry(entry)
    where, colon, function = name.rpartition(":")
    return f"{shorten(where) if where.endswith('.py') else where}{colon}{function}", arguments


def _program(report: Mapping[str, Any], arguments: Arguments, shorten: Shorten) -> Program:
    names = [name + fellow for name in QUANTITIES for fellow in ("", PER_ITERATION)]
    barriers = sorted((_written(one, shorten) for one in report["barriers"]), key=lambda one: _place(one.standing))
    groups = [[*group] for _, group in groupby(barriers, key=lambda one: _place(one.standing))]
    return Program(
        target=report["target"],
        arguments=arguments,
        amounts={name: _number(report[name]) for name in names},
        timed_by=tuple(report["timed_by"]),
        devices=report.get("devices", 1),
        host_launches=_number(report.get("host_launches")),
        barriers=tuple(sorted((_together(group) for group in groups), key=lambda one: (-one.launches, -one.bytes))),
    )


def _number(told: Any) -> float | None:
    if told is not None and not isinstance(told, (int, float)):
        raise TypeError(told)
    return told


@dataclass(frozen=True, slots=True)
class _Written:
    """A barrier, who writes it, and in which branches."""

    standing: Standing
    writer: str
    branches: Branches


def _written(barrier: Mapping[str, Any], shorten: Shorten) -> _Written:
    return _Written(_standing(barrier, shorten), barrier["writer"], branches_of(barrier))


def _standing(barrier: Mapping[str, Any], shorten: Shorten) -> Standing:
    at = barrier["location"] or {"path": "", "line": 0, "function": ""}
    # Without a line, what the value is made of is the next best thing to know it by.
    text = barrier.get("text") if at["path"] else " ".join(barrier["opcodes"])
    return Standing(
        cause=barrier["cause"],
        path=shorten(at["path"]) if at["path"] else "",
        line=at["line"],
        text=text,
        function=at["function"].replace("<locals>.", ""),
        details=(barrier["detail"],) if barrier["detail"] else (),
        launches=barrier["launches"],
        bytes=barrier["bytes"] * barrier["crossings"],
        per_iteration=barrier["per_iteration"],
        reasons=(barrier["reason"],) if barrier["reason"] else (),
        rule=barrier["rule"] or "",
        advice=barrier["advice"] or "",
    )


def _place(standing: Standing) -> tuple[str, str, str, int, bool]:
    line = 0 if standing.text is not None else standing.line
    return standing.cause, standing.path, standing.text or "", line, standing.per_iteration


def _together(group: Sequence[_Written]) -> Standing:
    members = [one.standing for one in group]
    launches = {one.writer: (one.branches, one.standing.launches) for one in group}
    ruled = next((one for one in members if one.rule), members[0])
    return replace(
        ruled,
        line=min(one.line for one in members),
        details=tuple(dict.fromkeys(detail for one in members for detail in one.details)),
        count=len(members),
        launches=sum(dearest(launches.values())),
        bytes=sum(dearest((one.branches, one.standing.bytes) for one in group)),
        reasons=tuple(dict.fromkeys(reason for one in members for reason in one.reasons)),
    )


def _shortener(written_in: str, root: str) -> Shorten:
    """Paths as they are below `root`, with slashes, whatever folder the checkout lies in; of what is installed, as it
    is below where packages are. They may be those of another machine: nothing is looked up."""

    def shorten(path: str) -> str:
        full = os.path.normpath(Path(written_in, path))
        relative = os.path.relpath(full, root)
        shown = full if relative.startswith(os.pardir) else relative
        return _INSTALLED.sub("", shown).replace(os.sep, "/")

    return shorten
