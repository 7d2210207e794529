"""Caches that a layer makes longer, and whether a loop hands one round.

In: nodes of a Source. What makes one token after the other hands each call what the last one kept: `logits, cache =
model(token, cache)`.
"""

from __future__ import annotations

import libcst as cst

from fusionlint.lazily import regex
from fusionlint.patterns.code.at import elements, is_cut, takes_all
from fusionlint.patterns.code.unpacked import assigned, stored_in
from fusionlint.source.answers import of_project
from fusionlint.source.asked import CALLS, EVERYWHERE
from fusionlint.source.facts import last_name
from fusionlint.source.places import Place
from fusionlint.source.project import Project
from fusionlint.source.traced import is_idle
from fusionlint.source.tree import Source
from fusionlint.source.walk import dotted

_CACHE = regex(r"(^|[._])(kv|cached?|caches|past)(_|\.|$)")
# What makes one token after the other.
_DECODES = regex(r"(^|_)(generat|decod|sampl|infer|complet|stream|chat)")
_OF_JAX = frozenset(("jax", "flax", "equinox", "haiku"))
_JOINS = ("jax.numpy.concatenate", "jax.numpy.stack")
# A name seldom stands for more names than this.
_DEPTH = 4


def is_held_before(old: cst.BaseExpression, source: Source) -> bool:
    """Whether `old` is a whole part of a cache that the function around is handed: `cache[0]`, `kv_cache["k"]`, or a
    name for one. A window, `cache[:, 1:]`, keeps its length."""
    for _ in range(_DEPTH):
        match old:
            case cst.Subscript(value=inner):
                if any(map(is_cut, elements(old.slice))):
                    return False
                old = inner
            case cst.Attribute(value=inner):
                old = inner
            case cst.Name():
                written = source.written(old)
                if written is not None and isinstance(source.parent(written), cst.Param):
                    return _CACHE.search(old.value) is not None
                meant = stored_in(old, source)
                if meant is None or isinstance(meant, cst.Call):
                    return False
                old = meant
            case _:
                return False
    return False


def goes_back(name: cst.Name, source: Source, depth: int = _DEPTH) -> bool:
    """Whether the function hands back what `name` was just written with, as it is: alone, with others, or joined with
    more. Where a part of it is kept, `k = k[-window:]`, it does not grow."""
    later = (use.node for use in source.writes(name) if source.order(use.node) > source.order(name))
    if any(isinstance(assigned(each, source), cst.Subscript) for each in later):
        return False
    return depth > 0 and any(_is_handed_back(read, source, depth) for read in source.reads(name))


def _is_handed_back(node: cst.CSTNode, source: Source, depth: int) -> bool:
    match above := source.parent(node):
        case cst.Return():
            return True
        case cst.Element() | cst.DictElement() | cst.Tuple() | cst.List() | cst.Dict() | cst.IfExp():
            return _is_handed_back(above, source, depth)
        case cst.Subscript(value=value) if value is node:  # k[None, ...]
            return all(map(takes_all, elements(above.slice))) and _is_handed_back(above, source, depth)
        case cst.Arg():
            call = source.parent(above)
            return isinstance(call, cst.Call) and _keeps(call, source) and _is_handed_back(call, source, depth)
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Name() as stored)]):
            return goes_back(stored, source, depth - 1)
    return False


def _keeps(call: cst.Call, source: Source) -> bool:
    """Whether what a call is handed is in what it returns: a join, or an object that is made, `KVCache(k, v)`."""
    return source.calls(call, *_JOINS) or dotted(call.func).rpartition(".")[2].lstrip("_")[:1].isupper()


def hands_a_cache_round(source: Source) -> bool:
    """Whether a loop of the project hands a cache to what it calls, in host code, or in what is called as what makes
    one token after the other."""
    return any(
        source.contexts.get(place) == "host"
        or (source.contexts.get(place) != "traced" and _DECODES.search(last_name(place.scope)))
        for place in _loops_with_a_cache(source.project)
    )


@of_project
def _loops_with_a_cache(project: Project) -> frozenset[Place]:
    """The functions of the project that hand what is called a cache to something, in a Python loop."""
    project.log.asked.add((EVERYWHERE, CALLS))
    found = set()
    for path, facts in project.files.items():
        if not any(name.partition(".")[0] in _OF_JAX for name in facts.imports()):
            continue  # of a model in torch
        for place, _, ((_, arguments, keywords), _, loops, _) in project.named_calls(path):
            handed = (*arguments, *(value for _, value in keywords)) if loops and place.scope else ()
            if any(isinstance(each, str) and _CACHE.search(each) for each in handed) and not is_idle(project, place):
                found.add(place)
    return frozenset(found)
