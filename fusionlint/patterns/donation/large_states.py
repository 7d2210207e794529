"""States that are large by their name: the parameters of a model, what is trained, a cache.

In: names as a file writes them, and the compiled step that is handed what they name. Out: whether so much memory is
worth a donation. Of a name that says nothing this is unknown.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

import libcst as cst

from fusionlint.lazily import regex
from fusionlint.patterns.dispatch.jit import asks, takes_gradients, trains
from fusionlint.source.tree import Source

# Those of particles and samples are a number for each.
_WEIGHTS = r"(?<!log_)(?<!importance_)(?<!particle_)(?<!sample_)weights"
# What calls itself so is as large as the model, or larger.
_LARGE = regex(
    rf"(^|[._])(params?|{_WEIGHTS}|opt(imi[sz]er)?_?state|(train(ing|er)?|learner|runner|agent)_?state|ts|repertoire|cache|kv|buffer(_state)?)$",
    re.I,
)
# What calls itself so is written here and there.
_CACHE = regex(r"(^|_)(cache|kv|buffer(_state)?)$", re.I)
# One of several is called by a letter or a word more, `state_f`.
_STATE = regex(r"(^|[._])(state(_\w+)?|model|theta|variables)$", re.I)
# What an agent keeps of each of its networks, and the agent itself.
_PART = regex(r"(^|[._])(actor|critic|policy|agent|network)$", re.I)
_MODEL = regex(r"(^|[._])(params?|weights|theta|model)$", re.I)
_AVERAGE = regex(r"(^|[._])(ema|avg|averaged?|polyak)(_|$)", re.I)
# What plays an environment for many steps, and what cuts that up to learn from.
_ROLLOUT = regex(r"(^|[._])(rollouts?|collect_\w+|\w*_rollouts?|\w*_trajector(y|ies))$", re.I)
# The same by each of many policies, and what makes as many of one.
_EPISODES = regex(r"(^|[._:])(\w*_)?(rollouts?|episodes?|trajector(y|ies))$", re.I)
_COPIES = regex(r"^jax\.numpy\.(repeat|tile)$")
_PERTURBS = regex(r"(^|[._:])_?(add_noise|perturb|mutate)(_\w+)?$", re.I)
_MINIBATCHES = regex(r"mini_?batch", re.I)
# An iteration of EM goes over all data; its parameters are a few matrices.
_OF_EM = regex(r"(^|[._])em(_|$)", re.I)


def is_state(name: str) -> bool:
    """Whether this is called as what a program goes on with: as large as a model where something is trained."""
    return _STATE.search(name) is not None


def is_large(name: str, compiled: cst.Call | cst.Name, source: Source) -> bool:
    """Whether what `compiled` hands back under this name is as large as a model."""
    return _LARGE.search(name) is not None or (is_state(name) and trains(compiled, source))


def are_large(names: Iterable[str], compiled: cst.Call | cst.Name, source: Source) -> bool:
    """Whether of what `compiled` replaces under these names anything is as large as a model, parts of an agent too."""
    names = [*names]
    if any(_LARGE.search(name) for name in names):
        return True
    trained = trains(compiled, source) or takes_gradients(compiled, source)
    return trained and any(is_state(name) or _PART.search(name) for name in names)


def are_caches(names: Iterable[str]) -> bool:
    """Whether all of this is written to in places."""
    return all(_CACHE.search(name) for name in names)


def are_averages(names: Collection[str]) -> bool:
    """Whether all of this is averages of parameters."""
    return bool(names) and all(_AVERAGE.search(name) for name in names)


def is_beside_its_model(names: Collection[str], handed: Iterable[str]) -> bool:
    """Whether `names`, among all that is `handed` to a step, stand beside a model."""
    models = {name for name in handed if _MODEL.search(name)}
    return bool(models) and (len(names) > 1 or models.isdisjoint(names))


def is_of_em(step: str) -> bool:
    """Whether a step is called as one of EM, whose parameters are small."""
    return _OF_EM.search(step) is not None


def is_of_a_population(compiled: cst.Call | cst.Name, source: Source) -> bool:
    """Whether `compiled` makes many of what it is handed, perturbs them, and plays episodes with each, as evolution
    strategies do: beside those the one that it goes on with is nothing."""
    return all(asks(compiled, each, source) for each in (_COPIES, _PERTURBS, _EPISODES))


def is_beside_rollouts(compiled: cst.Call | cst.Name, handed: Iterable[str], source: Source) -> bool:
    """Whether `compiled` plays an environment and cuts what it saw into minibatches, `update(minibatch_size)`, among
    what it is `handed` or calls: those steps are far more memory, while it runs, than what is trained on them."""
    if not asks(compiled, _ROLLOUT, source):
        return False
    return any(map(_MINIBATCHES.search, handed)) or asks(compiled, _MINIBATCHES, source)
