"""Whether the environments of a project begin every episode alike: a reset that asks its key nothing makes constants.

In: a project. XLA computes such a start once, however many of a batch there are, or while it compiles.
"""

from __future__ import annotations

from fusionlint.lazily import regex
from fusionlint.source.answers import of_project
from fusionlint.source.facts import Value, last_name
from fusionlint.source.places import Place
from fusionlint.source.project import Project

_KEY = regex(r"(^|_)(key|rng|prng|rngs|subkey)s?(_|\d|$)")
RESETS = frozenset(("reset", "_reset", "reset_env", "_reset_env", "reset_fn", "_reset_fn"))


def begin_alike(project: Project) -> bool:
    """Whether resets of the project take a key, and none of them does anything with it. One that hands it on to
    another's reset, as wrappers do, says nothing."""
    draws = _draws(project).values()
    return bool(draws) and not any(draws)


@of_project
def _draws(project: Project) -> dict[Place, bool]:
    """The resets of the project's classes that take a key and return something, each with whether it uses the key."""
    found: dict[Place, bool] = {}
    for places in project.methods().values():
        for place in places:
            function = project.function_at(place) if last_name(place.scope) in RESETS else None
            keys = {name for name in function.parameters if _KEY.search(name)} if function is not None else set()
            if function is None or not keys or not function.returns:
                continue
            users = [call.value for _, call in project.calls_within(place) if _reads(call.value, keys)]
            if not users or not all(_is_reset(user) for user in users):
                found[place] = bool(users)
    return found


def _is_reset(call: Value) -> bool:
    return call.callee is not None and last_name(call.callee.name) in RESETS


def _reads(value: Value, names: set[str]) -> bool:
    """Whether a call hands over one of `names`, itself or in what it makes of them."""
    handed = (*value.arguments, *(given for _, given in value.keywords))
    return any(each.name.partition(".")[0] in names or _reads(each, names) for each in handed)
