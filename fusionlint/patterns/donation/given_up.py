"""What the calls of one compiled function could give it to write its results to: what they replace, and nobody keeps.

In: its calls, and which of their arguments are donated already. Out: the others, where they are and what they are
called.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import libcst as cst

from fusionlint.lazily import regex
from fusionlint.patterns.donation.held import is_handed_again, is_handed_out, may_be_a_target
from fusionlint.patterns.donation.kept import is_kept_by_a_caller
from fusionlint.patterns.donation.outlives import is_read_later
from fusionlint.patterns.donation.replaced import given_at, replaced
from fusionlint.source.tree import Source

Names = dict[int | str, str]

_RANDOM = regex(r"(^|[._])(key|rng|rngs|seed|step|i|t|epoch|count|loss|metrics)s?\d*$", re.I)
_DATA = regex(r"([xyz]s?\d*|batch|data|inputs?|targets?|labels?)$", re.I)
_BATCH = regex(r"(^|[._])(batch(es)?|data|inputs?|images?|labels?)$", re.I)
_OPTIMIZERS = regex(r"(^|[._])opt(imi[sz]er)?_?states?$", re.I)
# Who else may hold what a call replaces.
_KEPT = (is_handed_out, is_read_later, is_handed_again, is_kept_by_a_caller)


def given_up(calls: Sequence[cst.Call], donated: frozenset[int], source: Source, *, is_equinox: bool) -> Names:
    """What each of the calls is handed and replaces, that is not donated and that nobody else keeps. Where somebody
    keeps some of it, the states of optimizers alone: they are arrays of their own, of others nobody knows."""
    found = [replaced(call, source) for call in calls]
    # What only some of the calls replace is needed after the others.
    common = set.intersection(*(set(each) for each in found))
    names = {key: name for key, name in found[0].items() if key in common and not _RANDOM.search(name)}
    names = {k: n for k, n in names.items() if not any(may_be_a_target(given_at(c, k), c, source) for c in calls)}
    if donated:  # which parameter a keyword of a call is, numbers do not say
        if not all(map(_BATCH.search, useless(donated, calls[0], source))):
            return {}  # new parameters may take the memory of gradients
        names = {k: n for k, n in names.items() if isinstance(k, int) and k not in donated}
    if is_equinox:  # all but the first: data that others hold can go there, with what is not replaced
        names = {k: n for k, n in names.items() if not _DATA.match(n)}
    free = {k: n for k, n in names.items() if not any(_is_kept(given_at(call, k), call, source) for call in calls)}
    if len(free) == len(names):
        return free
    return {} if is_equinox else {k: n for k, n in free.items() if _OPTIMIZERS.search(n)}


def _is_kept(argument: cst.BaseExpression, call: cst.Call, source: Source) -> bool:
    return any(is_kept(argument, call, source) for is_kept in _KEPT)


def useless(donated: frozenset[int], call: cst.Call, source: Source) -> list[str]:
    """What `call` donates of what it does not replace, as it is written."""
    rest = sorted(donated - replaced(call, source).keys())
    return [source.code(call.args[number].value) for number in rest if number < len(call.args)]
