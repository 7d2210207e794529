"""Functions of a whole project, worked out once: which of its functions a loop runs, which are parts of environments.

What rests on such an answer is looked into again where the answer about what it knows of is another one, not whenever
anything has changed that the answer was made of.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import cache, wraps
from typing import Any, TypeVar, cast

from fusionlint.source.asked import ANSWER, Asked, ByPath, by_path, outermost
from fusionlint.source.places import Place
from fusionlint.source.project import Project

F = TypeVar("F", bound="Callable[..., Any]")


def of_project(function: F) -> F:
    """For what says a set or a mapping of places or names, of a project alone or of a set of names besides."""

    @wraps(function)
    def answer(project: Project, *names: frozenset[str]) -> Any:
        question, key = _question(function, names), (function, *names)
        kept = project.answers.get(key)
        if kept is None:
            kept = _, asked = project.log.noted(project.answers, key, None, function, project, *names)
            inner = [project.rests[name] for mark, name in asked if mark == ANSWER]
            project.rests[question] = asked.union(*inner)
        project.log.asked.add((ANSWER, question))
        return kept[0]

    return cast("F", answer)


def remembered(function: F) -> F:
    """For what is asked again and again about the same place or path of a project."""

    @wraps(function)
    def answer(project: Project, *about: Any) -> Any:
        return project.log.remembered(project.answers, (function, *about), function, project, *about)

    return cast("F", answer)


def rests_of(project: Project, known: Collection[str] = ()) -> dict[str, ByPath]:
    """What those answers about a whole project rest on that were not `known` yet."""
    return {question: by_path(asked) for question, asked in project.rests.items() if question not in known}


def otherwise(question: str, before: Project, now: Project) -> Iterator[Asked]:
    """About what the answer to a question is another one now."""
    old, new = _answer(question, before), _answer(question, now)
    if isinstance(old, Mapping):
        about = {key for key in old.keys() | new.keys() if old.get(key) != new.get(key)}
    else:
        about = old ^ new
    for one in about:
        yield (one.path, outermost(one.scope)) if isinstance(one, Place) else (ANSWER, question)


@cache
def _question(function: Callable[..., Any], names: tuple[frozenset[str], ...]) -> str:
    parts = (name for each in names for name in sorted(each))
    return " ".join((f"{function.__module__}:{function.__qualname__}", *parts))


def _answer(question: str, project: Project) -> Any:
    """What the function that a question names says of a project."""
    function, *names = question.split(" ")
    module, _, name = function.partition(":")
    return getattr(importlib.import_module(module), name)(project, *([frozenset(names)] if names else ()))
