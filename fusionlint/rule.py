"""What a rule is: one cause, a sensor for the source, a sensor for the compiled program, and a page."""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from fusionlint.page import Page, read_page

if TYPE_CHECKING:
    import libcst as cst

    from fusionlint.finding import Finding
    from fusionlint.hlo import parse as hlo
    from fusionlint.hlo.barriers import Barrier
    from fusionlint.source.tree import Source

Harm = Literal["fusion", "dispatch", "recompile", "transfer", "memory", "compile-time"]
SourceCheck = Callable[[Any, "Source"], Iterator["Finding"]]
FactsCheck = Callable[["Source"], bool]
BarrierCheck = Callable[["Barrier", "hlo.Module"], "str | None"]


@dataclass(frozen=True, slots=True)
class SourceSensor:
    """`check` is asked about every node of `nodes` in files that call one of `calls` or use one of `attributes`
    (with neither, in every file) and of whose facts `when` is true."""

    check: SourceCheck
    nodes: tuple[type[cst.CSTNode], ...]
    calls: frozenset[str]
    attributes: frozenset[str]
    when: FactsCheck | None = None

    def wants(self, calls: frozenset[str], attributes: frozenset[str]) -> bool:
        """Whether a file that makes these `calls` and reads these `attributes` could hold a finding."""
        if not (self.calls or self.attributes):
            return True
        return not (self.calls.isdisjoint(calls) and self.attributes.isdisjoint(attributes))


@dataclass(slots=True)
class Rule:
    """One cause of harm. A rule module holds `rule = Rule(__name__, harm=...)` and decorates free functions with
    `@rule.source(...)` and `@rule.barrier`; nothing else has to know of it."""

    module: str
    harm: Harm
    source_sensors: list[SourceSensor] = field(default_factory=list)
    barrier_sensors: list[BarrierCheck] = field(default_factory=list)

    @property
    def name(self) -> str:
        """`columns-by-at-set` for the module `fusionlint.rules.columns_by_at_set`."""
        return self.module.rpartition(".")[2].replace("_", "-")

    @property
    def page(self) -> Page:
        return page(self.name)

    def source(
        self,
        *nodes: type[cst.CSTNode],
        calls: tuple[str, ...] | frozenset[str] = (),
        attributes: tuple[str, ...] = (),
        when: FactsCheck | None = None,
    ) -> Callable[[SourceCheck], SourceCheck]:
        """Ask the decorated `(node, source) -> findings` about every such node.

        `calls` (qualified names, "jax.numpy.stack"), `attributes` (".at" is "at") and `when`, which must ask only
        for facts, say which files are worth parsing; the check still has to make sure of each node.
        """

        def register(check: SourceCheck) -> SourceCheck:
            self.source_sensors.append(SourceSensor(check, nodes, frozenset(calls), frozenset(attributes), when))
            return check

        return register

    def barrier(self, check: BarrierCheck) -> BarrierCheck:
        """Ask the decorated `(barrier, module) -> advice or None` about every barrier of a compiled program."""
        self.barrier_sensors.append(check)
        return check


@functools.cache
def all_rules() -> tuple[Rule, ...]:
    """Every rule, by name: the modules of fusionlint.rules that hold a `rule`."""
    import fusionlint.rules as package

    names = sorted(m.name for m in pkgutil.iter_modules(package.__path__))
    return tuple(importlib.import_module(f"{package.__name__}.{name}").rule for name in names)


@functools.cache
def page(name: str) -> Page:
    """The page of the rule `name`; KeyError when there is none."""
    return read_page(name)
