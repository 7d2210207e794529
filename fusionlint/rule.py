"""What a rule is: one cause, a sensor for the source, a sensor for the compiled program, and a page."""

from __future__ import annotations

import functools
import hashlib
import importlib
import os
import sys
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, overload

from fusionlint.installed import entry_points, version
from fusionlint.page import Page, pages_folder, read_page

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint
    from types import ModuleType

    import libcst as cst

    from fusionlint.finding import Finding
    from fusionlint.hlo import parse as hlo
    from fusionlint.hlo.barriers import Barrier
    from fusionlint.source.facts import Call, RawCall
    from fusionlint.source.pieces import Piece
    from fusionlint.source.places import Place
    from fusionlint.source.tree import Source

# Packages that bring rules name them under this group: `my-rules = "my_package.rules"`.
ENTRY_POINTS = "fusionlint.rules"

Harm = Literal["fusion", "dispatch", "recompile", "transfer", "memory", "compile-time"]
# Where code has to run for a rule to speak of it: under a trace (or not seen to run on the host), on the host (or not
# seen to run under a trace), in either, or anywhere. Only the last means tests, benchmarks and pictures too.
Where = Literal["traced", "host", "used", "any"]
_NOWHERE: frozenset[Piece] = frozenset()
# Where one of them stands says nothing of how its code runs.
_FUNCTIONS = ("FunctionDef", "Lambda")
SourceCheck = Callable[[Any, "Source"], Iterator["Finding"]]
FactsCheck = Callable[["Source"], "Iterable[str]"]
CallCheck = Callable[["Call"], bool]
BarrierCheck = Callable[["Barrier", "hlo.Module"], "str | None"]


class SourceSensor(NamedTuple):
    """What a check of the source is asked about; the arguments of `Rule.source` say what each means."""

    check: SourceCheck
    nodes: tuple[str, ...]
    calls: frozenset[str]
    where: Where
    in_loop: bool
    like: CallCheck | None
    when: FactsCheck | None
    needs: frozenset[str] = frozenset()

    @property
    def names(self) -> frozenset[str]:
        """The names of which a file has to call one, that it can say anything; none where any file may do."""
        return self.calls or self.needs

    def places(self, source: Source) -> frozenset[Piece]:
        """The pieces of the file that could hold a finding, by its facts: only those does libcst have to parse."""
        if not self.calls:
            return frozenset(source.pieces.of_scope(scope) for scope in self.when(source)) if self.when else _NOWHERE
        named = self.calls.intersection(source.names)
        fitting = (call for name in named for place, call in source.called(name) if self._fits(place, call, source))
        first = next(fitting, None)
        if first is None or (self.when is not None and not any(True for _ in self.when(source))):
            return _NOWHERE
        return frozenset(source.pieces.of_line(line) for *_, line in (first, *fitting))

    def asked_about(self, source: Source) -> Iterator[cst.CSTNode]:
        """The nodes that the check is asked about. In a trace every argument stands in the call itself: of
        `partial(jax.lax.scan, f)(s, xs)` the first is not where a check looks for it."""
        places, in_two = self.places(source), self.where != "traced"
        for kind in self.nodes:
            is_named = self.calls and kind == "Call"
            for node in source.nodes_called(kind, places):
                if is_named and source.name_called(node, in_two=in_two) not in self.calls:
                    continue
                if self._is_where_it_looks(node, source):
                    yield node

    def _is_where_it_looks(self, node: cst.CSTNode, source: Source) -> bool:
        if self.where == "traced" and type(node).__name__ not in _FUNCTIONS:
            return source.is_traced(node)
        return source.runs(source.scope_of_code(node), self.where) and not source.is_dead(node)

    def _fits(self, place: Place, call: RawCall, source: Source) -> bool:
        if self.in_loop and not call[2]:
            return False
        return source.runs(place.scope, self.where) and (self.like is None or self.like(source.whole(call)))


class BarrierSensor(NamedTuple):
    """What a check of the compiled program is asked about, and the number of the page's pair that it recognises."""

    check: BarrierCheck
    pair: int = 0


@dataclass(slots=True)
class Rule:
    """One cause of harm. A rule module holds `rule = Rule(__name__, harm=...)` and decorates free functions with
    `@rule.source(...)` and `@rule.barrier`; nothing else has to know of it."""

    module: str
    harm: Harm
    source_sensors: list[SourceSensor] = field(default_factory=list)
    barrier_sensors: list[BarrierSensor] = field(default_factory=list)

    @property
    def name(self) -> str:
        """`columns-by-at-set` for the module `fusionlint.rules.columns_by_at_set`."""
        return self.module.rpartition(".")[2].replace("_", "-")

    @property
    def page(self) -> Page:
        """Its page: in rules/, of a rule from elsewhere beside its module. KeyError when there is none."""
        return page(self.name) if self.module.startswith("fusionlint.") else page(self.name, self.folder)

    @property
    def folder(self) -> Path:
        """Where its module lies."""
        return Path(str(sys.modules[self.module].__file__)).parent

    def source(
        self,
        *nodes: str,
        calls: Collection[str] = (),
        where: Where = "traced",
        in_loop: bool = False,
        like: CallCheck | None = None,
        when: FactsCheck | None = None,
        needs: Collection[str] = (),
    ) -> Callable[[SourceCheck], SourceCheck]:
        """Ask the decorated `(node, source) -> findings` about every node of these libcst types ("Call", "For"), of
        code that runs as `where` says.

        With `calls` (qualified names, "jax.numpy.stack"; ".at.set" for `x.at[...].set`) it is asked about those calls
        alone, and about other nodes in the function or class around one: `in_loop` for one in a Python loop, `like` for
        one whose facts look so. `when` gives the scopes of a file that hold, by its facts, what the rule looks for;
        where that takes a call of one of some names, `needs` are these.
        All of it is known before libcst parses anything: what says most here costs least.
        """

        def register(check: SourceCheck) -> SourceCheck:
            self.source_sensors.append(
                SourceSensor(check, nodes, frozenset(calls), where, in_loop, like, when, frozenset(needs))
            )
            return check

        return register

    @overload
    def barrier(self, check: BarrierCheck) -> BarrierCheck: ...

    @overload
    def barrier(self, *, pair: int) -> Callable[[BarrierCheck], BarrierCheck]: ...

    def barrier(self, check: BarrierCheck | None = None, *, pair: int = 0) -> Any:
        """Ask the decorated `(barrier, module) -> advice or None` about every barrier of a compiled program, on the
        targets for which the page's pair of that number shows harm."""

        def register(check: BarrierCheck) -> BarrierCheck:
            self.barrier_sensors.append(BarrierSensor(check, pair))
            return check

        return register if check is None else register(check)


class Catalogue(NamedTuple):
    """The rules, by name, and of each package whose rules cannot be used its name and why."""

    rules: tuple[Rule, ...]
    broken: tuple[tuple[str, str], ...]


def all_rules() -> tuple[Rule, ...]:
    """Every rule, by name: fusionlint's own, and those of the packages installed beside it."""
    return catalogue().rules


@functools.cache
def catalogue() -> Catalogue:
    """The modules of fusionlint.rules, and those that other packages name by an entry point.

    A package whose rules cannot be imported, have no page or take a name twice brings none of them; the others stay.
    """
    import fusionlint.rules as package

    rules = {rule.name: rule for rule in _rules_of(package)}
    broken: list[tuple[str, str]] = []
    for point in _entry_points():
        try:
            brought = _brought(point)
            if again := [rule.name for rule in brought if rule.name in rules]:
                raise ValueError(f"there is a rule {again[0]!r} already")
        except Exception as error:  # noqa: BLE001 - whatever somebody else's module raises when it is imported
            broken.append((point.value, f"{type(error).__name__}: {error}".partition("\n")[0]))
        else:
            rules.update({rule.name: rule for rule in brought})
    return Catalogue(tuple(rules[name] for name in sorted(rules)), tuple(broken))


def are_ours() -> bool:
    """Whether no other package brings rules."""
    return not _entry_points()


@functools.cache
def one_of_ours(name: str) -> Rule:
    """The rule `name` of fusionlint's own. ModuleNotFoundError without one."""
    rule: Rule = importlib.import_module(f"fusionlint.rules.{name.replace('-', '_')}").rule
    return rule


def pages() -> dict[str, Page]:
    """The page of every rule, by name. Without rules from elsewhere it takes no import of a rule, nor of libcst."""
    if _entry_points():
        return {rule.name: rule.page for rule in all_rules()}
    import fusionlint.rules as package

    return {name: page(name) for name in sorted(module.replace("_", "-") for module in _modules(package))}


def broken() -> tuple[tuple[str, str], ...]:
    """The packages whose rules cannot be used, and why."""
    return catalogue().broken if _entry_points() else ()


# What `definition` is known to be, by `outside`.
_KNOWN: dict[bytes, bytes] = {}


@functools.cache
def definition() -> bytes:
    """A digest of everything that decides what is found: the code of fusionlint and of rules from elsewhere, the pages,
    and the versions of Python and libcst."""
    if _KNOWN and (known := _KNOWN.get(outside())) is not None:
        return known
    found = _digest_of_versions()
    for folder in _folders():
        for entry in sorted(_texts_below(folder), key=lambda entry: entry.path):
            with open(entry.path, "rb", buffering=0) as file:  # noqa: PTH123 - there are hundreds
                found.update(file.read())
    return found.digest()


def is_defined(outside: bytes, definition: bytes) -> None:
    """For the rest of this process: what looks so from outside has this `definition`."""
    _KNOWN[outside] = definition


@functools.cache
def outside() -> bytes:
    """A digest of what of all that shows without reading it: paths, sizes and times, by which Python itself knows
    whether a module is what it has compiled."""
    found = _digest_of_versions()
    for folder in _folders():
        for entry in sorted(_texts_below(folder), key=lambda entry: entry.path):
            status = entry.stat()
            found.update(f"{entry.path} {status.st_size} {status.st_mtime_ns}\n".encode())
    return found.digest()


def _digest_of_versions() -> hashlib._Hash:
    return hashlib.sha1(repr((sys.version_info, version("libcst"))).encode(), usedforsecurity=False)


def _folders() -> list[str]:
    """Where the code and the pages lie."""
    return [str(folder) for folder in (Path(__file__).parent, pages_folder(), *(r.folder for r in _foreign_rules()))]


def _texts_below(folder: str) -> Iterator[os.DirEntry[str]]:
    """The modules and pages in a folder and in those inside; pathlib takes ten times as long to look."""
    for entry in os.scandir(folder):
        if entry.is_dir(follow_symlinks=False):
            yield from _texts_below(entry.path)
        elif entry.name.endswith((".py", ".md")):
            yield entry


def _foreign_rules() -> list[Rule]:
    return [r for r in all_rules() if not r.module.startswith("fusionlint.")] if _entry_points() else []


def _brought(point: EntryPoint) -> list[Rule]:
    """The rules of one entry point, each with its page."""
    rules = list(_rules_of(point.load()))
    for rule in rules:
        try:
            rule.page  # noqa: B018 - reading it is the test
        except KeyError:
            raise ValueError(f"the rule {rule.name!r} has no page {rule.name}.md beside its module") from None
    return rules


def _rules_of(package: ModuleType) -> Iterator[Rule]:
    """The `rule` of each module of a package; a name with an underscore before it is none."""
    for name in sorted(_modules(package)):
        yield importlib.import_module(f"{package.__name__}.{name}").rule


def _modules(package: ModuleType) -> list[str]:
    # pkgutil looks at every file of a folder as inspect would.
    return [path.stem for folder in package.__path__ for path in Path(folder).glob("[!_]*.py")]


@functools.cache
def _entry_points() -> list[EntryPoint]:
    return entry_points(ENTRY_POINTS)


@functools.cache
def page(name: str, folder: Path | None = None) -> Page:
    """The page of the rule `name`, by default one of ours; KeyError when there is none."""
    return read_page(name, folder or pages_folder())
