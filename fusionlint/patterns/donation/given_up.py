"""What the calls of one compiled function could give it to write its results to: what they replace, and nobody keeps.

In: its calls, and which of their arguments are donated already. Out: the others, where they are and what they are
called.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import libcst as cst

from fusionlint.lazily import regex
from fusionlint.patterns.code.at import inside
from fusionlint.patterns.code.calls import call_of
from fusionlint.patterns.code.unpacked import assigned
from fusionlint.patterns.donation.kept import is_kept_by_a_caller
from fusionlint.patterns.donation.outlives import is_read_later
from fusionlint.patterns.donation.replaced import given_at, replaced
from fusionlint.source.tree import Source
from fusionlint.source.walk import dotted

Names = dict[int | str, str]

_RANDOM = regex(r"(^|[._])(key|rng|rngs|seed|step|i|t|epoch|count|loss|metrics)s?\d*$", re.I)
_DATA = regex(r"([xyz]s?\d*|batch|data|inputs?|targets?|labels?)$", re.I)
_BATCH = regex(r"(^|[._])(batch(es)?|data|inputs?|images?|labels?)$", re.I)
_OPTIMIZERS = regex(r"(^|[._])opt(imi[sz]er)?_?states?$", re.I)
# What a class hands out of its state to be stored at once, and where it hands over all there is.
_STORES = regex(r"^_?(save|restore|checkpoint|snapshot|serialize|state_dict|to_bytes|__getstate__|__iter__)")
# The same, of a class that takes all of it back by the other.
_STORES_ALL, _TAKES_BACK = "get_state", "set_state"
# What takes a part out of a state that it is handed.
_GETS = regex(r"get_")
# A name seldom stands for more names than this.
_DEPTH = 4
_COPIES = ("jax.", "numpy.", "copy.")
_MODEL = regex(r"(params?|weights)$")
_TARGET = regex(r"target")


def given_up(calls: Sequence[cst.Call], donated: frozenset[int], source: Source, *, is_equinox: bool) -> Names:
    """What each of the calls is handed and replaces, that is not donated and that nobody else keeps. Where somebody
    keeps some of it, the states of optimizers alone: they are arrays of their own, of others nobody knows."""
    found = [replaced(call, source) for call in calls]
    # What only some of the calls replace is needed after the others.
    common = set.intersection(*(set(each) for each in found))
    names = {key: name for key, name in found[0].items() if key in common and not _RANDOM.search(name)}
    names = {k: n for k, n in names.items() if not any(_may_be_shared(given_at(c, k), c, source) for c in calls)}
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


def _may_be_shared(argument: cst.BaseExpression, call: cst.Call, source: Source) -> bool:
    """Whether others may well hold the same arrays: a network that follows this one begins as them."""
    return _may_be_a_target(argument, call, source) or _is_of_another(argument, source)


def _is_of_another(argument: cst.BaseExpression, source: Source) -> bool:
    """Whether this is a field of an object that is handed in, `model.state_dict`, which hands it to whom it likes. The
    state of an optimizer nobody else wants."""
    match argument:
        case cst.Attribute(value=cst.Name(owner) as name) if owner != "self":
            return source.parameter(name) is not None and _OPTIMIZERS.search(dotted(argument)) is None
    return False


def _is_kept(argument: cst.BaseExpression, call: cst.Call, source: Source) -> bool:
    """Whether anybody else may hold what a call replaces."""
    asked = (_is_handed_out, is_read_later, _is_handed_again, is_kept_by_a_caller)
    return any(is_kept(argument, call, source) for is_kept in asked)


def useless(donated: frozenset[int], call: cst.Call, source: Source) -> list[str]:
    """What `call` donates of what it does not replace, as it is written."""
    rest = sorted(donated - replaced(call, source).keys())
    return [source.code(call.args[number].value) for number in rest if number < len(call.args)]


def _is_handed_out(argument: cst.BaseExpression, call: cst.Call, source: Source) -> bool:
    """Whether another method hands out a part of the field `argument` as it is, `return self.state.params`, to whoever
    may keep it over the next step."""
    owner = source.facts.class_around(source.scope(call))
    if isinstance(argument, cst.Name):
        return bool(owner) and _is_handed_to_another(argument, call, owner, source)
    if not isinstance(argument, cst.Attribute):
        return False
    method = source.function(call)
    if f"{owner}.{argument.attr.value}" in source.facts.functions:
        return True  # a property, of what it takes from elsewhere
    for node in source.fields_called(dotted(argument), owner):
        function = source.function(node)
        if function is method and not argument.attr.value.startswith("_") and _is_returned(node, source):
            return True  # who was handed the last one by this method may still hold it
        if not isinstance(function, cst.FunctionDef) or function is method:
            continue
        part = _part(node, source)
        if _is_stored(part, function, owner, source):
            continue
        if _is_returned(part, source):
            return True
        if _GETS.match(function.name.value) and _is_returned(_handed_to(part, source), source):
            return True
    return False


def _is_stored(part: cst.CSTNode, method: cst.FunctionDef, owner: str, source: Source) -> bool:
    """Whether what `method` hands out is meant for a file: its name says so, or it is `get_state`, beside `set_state`,
    and `part` has a name among others, `{"opt_state": self.opt_state}`."""
    if _STORES.match(method.name.value):
        return True
    is_pair = method.name.value == _STORES_ALL and f"{owner}.{_TAKES_BACK}" in source.facts.functions
    return is_pair and isinstance(source.parent(part), cst.DictElement)


def _handed_to(value: cst.CSTNode, source: Source) -> cst.CSTNode:
    """The call that `value` is handed to, in a collection or not, and that may give it back: jax's own copy it. `value`
    where it is handed to none."""
    whole = value
    while isinstance(above := source.parent(whole), cst.Element | cst.List | cst.Tuple):
        whole = above
    call = source.handed_to(whole)
    return value if call is None or (source.qualified_name(call.func) or "").startswith(_COPIES) else call


def _may_be_a_target(argument: cst.BaseExpression, call: cst.Call, source: Source) -> bool:
    """Whether the field `argument` may hold what another argument of `call` does, `self.target_params`, of which this
    class writes nothing: a base class may have said `self.target_params = self.params`."""
    if not isinstance(argument, cst.Attribute) or not _MODEL.search(argument.attr.value):
        return False
    owner = source.facts.class_around(source.scope(call))
    others = (arg.value for arg in call.args if arg.value is not argument)
    return any(
        _TARGET.search(name) and not any(isinstance(source.parent(f), cst.AssignTarget) for f in written)
        for name, written in ((dotted(o), list(source.fields_called(dotted(o), owner))) for o in others)
        if name.startswith("self.")
    )


def _is_handed_to_another(state: cst.Name, call: cst.Call, owner: str, source: Source) -> bool:
    """Whether the method around `call` is handed the state, and another of its class hands out parts of what it is
    handed under the same name: `def get_variables(self, state): return [state.params]`."""
    method = source.function(call)
    if not isinstance(method, cst.FunctionDef) or state.value not in _parameters(method):
        return False
    for other in source.nodes_with(state.value, cst.FunctionDef):
        if not isinstance(other, cst.FunctionDef) or other is method:
            continue
        if source.facts.class_around(source.body_scope(other)) != owner:
            continue
        if state.value not in _parameters(other) or not _GETS.match(other.name.value):
            continue
        parts = inside(other.body, cst.Attribute)
        if any(dotted(part).partition(".")[0] == state.value and _is_returned(part, source) for part in parts):
            return True
    return False


def _parameters(function: cst.FunctionDef) -> set[str]:
    return {param.name.value for param in (*function.params.params, *function.params.kwonly_params)}


def _is_handed_again(argument: cst.BaseExpression, call: cst.Call, source: Source) -> bool:
    """Whether the call is handed a part of `argument` beside it, `step(state, state.params)`, or a name that may be
    one, in a collection or not: jax donates nothing that another argument holds, too."""
    whole = dotted(argument)
    for one in (part for arg in call.args if arg.value is not argument for part in _held(arg.value)):
        stored = (assigned(use.node, source) for use in source.writes(one)) if isinstance(one, cst.Name) else ()
        if any(_is_part_of(part, whole) for value in (one, *stored) if value is not None for part in _held(value)):
            return True
    return False


def _held(value: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
    """What is in a collection that is written out, `(batch, state.step)`, `data + (state.step,)`; `value` if it is
    none."""
    match value:
        case cst.Tuple(elements=elements) | cst.List(elements=elements) | cst.Dict(elements=elements):
            for element in elements:
                yield from _held(element.value)
        case cst.BinaryOperation(left=left, operator=cst.Add(), right=right) if any(
            isinstance(side, cst.Tuple) for side in (left, right)
        ):
            yield from _held(left)
            yield from _held(right)
        case _:
            yield value


def _is_part_of(value: cst.BaseExpression, whole: str) -> bool:
    """`state.params["w"]`, of `state`; not what a call makes of it."""
    while isinstance(value, cst.Attribute | cst.Subscript):
        value = value.value
        if whole and dotted(value) == whole:
            return True
    return False


def _part(node: cst.CSTNode, source: Source) -> cst.CSTNode:
    """`self.state.params["w"]`, where `node` is `self.state` in it."""
    while True:
        match above := source.parent(node):
            case cst.Attribute(value=inner) | cst.Subscript(value=inner) if inner is node:
                node = above
            case _:
                return node


def _is_returned(value: cst.CSTNode, source: Source, depth: int = _DEPTH) -> bool:
    """Whether the function around returns `value`, in a collection or by a name at most."""
    match above := source.parent(value):
        case cst.Return():
            return True
        case cst.Element() | cst.DictElement():
            collection = source.parent(above)
            return collection is not None and _is_returned(collection, source, depth)
        case cst.Subscript(value=whole) if whole is value:
            return _is_returned(above, source, depth)
        case cst.Attribute(value=whole, attr=cst.Name("get")) if whole is value:  # of what is kept under names
            taken = call_of(above, source)
            return taken is not None and _is_returned(taken, source, depth)
        case cst.ListComp(elt=element) if element is value:
            return _is_returned(above, source, depth)
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Name() as name)]) if depth:
            return any(_is_returned(read, source, depth - 1) for read in source.reads(name))
    return False
