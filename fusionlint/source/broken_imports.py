"""Files that cannot be imported: at their own level they take a name from another file of their package, and that has
none of that name; and those that import from such a file.

In: a Project. Out: their paths. What was moved or renamed some time ago leaves such files behind: nothing in them runs.
What an `if` or a `try` stands around may be meant to fail, so a file with such imports is never one of these.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from fusionlint.source.answers import of_project
from fusionlint.source.asked import EVERYWHERE, IMPORTS, ITS_CALLS, STARS
from fusionlint.source.facts import Facts, last_name
from fusionlint.source.modules import home_of
from fusionlint.source.project import Project

# What gives a module names that nobody reads in it, and the function by which it makes one that is asked for.
_MAKES_NAMES = frozenset(("globals", "vars", "locals", "setattr", "exec"))
_ASKED_FOR = "__getattr__"


@of_project
def broken(project: Project) -> frozenset[str]:
    """The paths of the files that cannot be imported. A package, and what it imports at once, somebody would have
    noticed: there a name that nobody sees comes from elsewhere."""
    project.log.asked.add((EVERYWHERE, IMPORTS))
    counts = Counter(facts.module for facts in project.files.values())
    homes = {path: [*_homes(path, project)] for path in project.files}
    packages = {path for path, facts in project.files.items() if facts.is_package}
    noticed = packages.union(home for path in packages for home, _ in homes[path])
    plain = {path: homes[path] for path, facts in project.files.items() if path not in noticed and _is_plain(facts)}
    found = {path for path, taken in plain.items() if any(_is_missing(*one, counts, project) for one in taken)}
    while new := {path for path, taken in plain.items() if any(one in found for one, _ in taken)} - found:
        found |= new
    return frozenset(found)


def _homes(path: str, project: Project) -> Iterator[tuple[str, str]]:
    """The other files of the same package that a file imports at its own level, each with the name that it takes."""
    facts = project.files[path]
    package = facts.module.partition(".")[0]
    for name, (kind, target, _) in facts.raw.bindings[""].items():
        absolute = facts.absolute(target) if kind == "import" else ""
        if absolute.startswith(f"{package}.") and not name.startswith("*"):
            home, rest = home_of(absolute, project.modules)
            if home is not None and home != path:
                yield home, rest


def _is_plain(facts: Facts) -> bool:
    """Whether a file is a module of a package, all of whose imports stand by themselves."""
    return "." in facts.module and "" not in facts.has("imports in a block")


def _is_missing(home: str, name: str, counts: Counter[str], project: Project) -> bool:
    """Whether nothing of that name is seen in a module, nor what makes names that are not seen."""
    facts = project.files[home]
    project.log.add(home, name)
    if not name or "." in name or facts.is_package or counts[facts.module] > 1 or not home.endswith(".py"):
        return False
    bound = facts.raw.bindings[""]
    if name in bound or any(last_name(scope) == name for scope in (*facts.raw.functions, *facts.raw.classes)):
        return False
    project.log.asked.update(((home, _ASKED_FOR), (home, STARS), (home, ITS_CALLS)))
    if _ASKED_FOR in bound or any(one.startswith("*") for one in bound):
        return False
    return not any(called in _MAKES_NAMES for (called, _, _), *_ in facts.raw.calls if isinstance(called, str))
