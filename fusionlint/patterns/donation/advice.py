"""What to write so that a compiled step takes the memory of what it replaces, and what has to be copied for that.

In: the step, its calls, and which of their arguments it could take. Out: parts of an advice, as text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

import libcst as cst

from fusionlint.lazily import regex
from fusionlint.patterns.code.calls import REPLACES
from fusionlint.patterns.donation.equinox import all_but_the_first, is_equinox, told_alone
from fusionlint.patterns.donation.first_values import held_by_two, held_twice, is_read_elsewhere
from fusionlint.patterns.donation.given_up import Names, useless
from fusionlint.patterns.donation.outlives import first_part_read, first_read_again, holds_parameters
from fusionlint.patterns.donation.replaced import names_of, replaced
from fusionlint.patterns.runs.from_callers import is_of_a_caller
from fusionlint.source.tree import Source
from fusionlint.source.walk import dotted

# jax donates no buffer twice.
TWICE = "an array that the first state holds twice has to be copied before"
# And hands each donated buffer to the first result of its shape.
_IN_ORDER = (
    "; return what is donated first, in the order of the arguments: jax hands a donated array to the first result of "
    "its shape, and XLA copies it where that is another's"
)
# Of these optimizers the first state does, or holds the parameters: tried with optax 0.2, where Adam's does not.
_STATES_WITH_ONE_TWICE = (
    "optax.lbfgs",
    "optax.scale_by_lbfgs",
    "optax.scale_by_distance_over_gradients",
    *(f"optax.contrib.{name}" for name in ("cocob", "dog", "dowg", "madgrad", "mechanize", "prodigy")),
    *(f"optax.contrib.scale_by_{name}" for name in ("cocob", "madgrad", "prodigy")),
)
_KEY = regex(r"(^|[._])(rngs?|(\w+_)?keys?)\d*$", re.I)
# What has the shapes of the parameters: themselves, an optimizer's state, gradients.
_ALIKE = regex(r"(^|[._])(\w+_)?(params?|weights|theta|model|state|grads?|gradients?)$")


def donate(
    node: cst.Call | cst.Name, names: Names, call: cst.Call, offset: int, donated: frozenset[int], source: Source
) -> str:
    """What to donate: `names`, and with them what is donated already and is replaced."""
    if is_equinox(node, source):
        return all_but_the_first(call, names, source)
    advice = donated_arguments(_all(names, call, donated, source), offset)
    batch = " and ".join(f"`{each}`" for each in useless(donated, call, source))
    return f"{advice}, and not {batch}, which no result replaces" if batch else advice


def keywords(
    node: cst.Call | cst.Name, names: Names, call: cst.Call, offset: int, donated: frozenset[int], source: Source
) -> str | None:
    """The same as the keywords of the jit alone; None where the step has to take its arguments in another order."""
    if is_equinox(node, source):
        return told_alone(call, names)
    return donated_arguments(_all(names, call, donated, source), offset)


def _all(names: Names, call: cst.Call, donated: frozenset[int], source: Source) -> list[int | str]:
    """`names`, and with them what is donated already and is replaced."""
    used = donated & replaced(call, source).keys()
    return sorted({*used, *names}, key=str) if used else [*names]


def donated_arguments(names: Iterable[int | str], offset: int) -> str:
    """`donate_argnums=(0, 1)`, `donate_argnames="state"` of what is given by keyword; numbers from `offset` on."""
    numbers = [str(key + offset) for key in names if isinstance(key, int)]
    keywords = [f'"{key}"' for key in names if isinstance(key, str)]
    both = (("donate_argnums", numbers), ("donate_argnames", keywords))
    return ", ".join(f"{name}={_one_or_all(values)}" for name, values in both if values)


def _one_or_all(values: Sequence[str]) -> str:
    return values[0] if len(values) == 1 else f"({', '.join(values)})"


def copy_before(given: Sequence[tuple[cst.Call, cst.BaseExpression]], source: Source) -> str:
    """What has to be copied of what the calls are `given`, and where: jax deletes that, and donates no buffer twice."""
    return (
        f"{_copied(given, source)}{_again(given, source)}{_made_with_one_twice(source)}{_of_parameters(given, source)}"
    )


def is_free(given: Sequence[tuple[cst.Call, cst.BaseExpression]], source: Source) -> bool:
    """Whether nothing has to be copied of what the calls are `given`, as far as can be seen."""
    return (
        not any(is_of_a_caller(a, call, source) or held_twice(a, call, source) for call, a in given)
        and not any(is_read_elsewhere(a, call, source) or first_read_again(a, call, source) for call, a in given)
        and not any(first_part_read(a, call, source) or holds_parameters(a, call, source) for call, a in given)
        and held_by_two(given, source) is None
        and not _again(given, source)
        and not _made_with_one_twice(source)
    )


def in_order(calls: Iterable[cst.Call], names: Names, source: Source) -> str:
    """The order of the results, where theirs is another than that of the arguments."""
    return _IN_ORDER if any(_comes_late(call, [*names.values()], source) for call in calls) else ""


def _copied(given: Sequence[tuple[cst.Call, cst.BaseExpression]], source: Source) -> str:
    theirs = next((a for call, a in given if is_of_a_caller(a, call, source)), None)
    if theirs is not None:
        name = source.code(theirs)
        return f"whoever called may go on with the first `{name}`: copy it before, jax.tree.map(jnp.copy, {name})"
    part = next(filter(None, (first_part_read(argument, call, source) for call, argument in given)), None)
    if part is not None:
        return (
            f"the old are gone after a call; `{part.value}` is of the first and read again: it has to be "
            f"jax.tree.map(jnp.copy, {part.value})"
        )
    if (shared := held_by_two(given, source)) is not None:
        return (
            f"the old are gone after a call; two of the first ones hold `{shared}`: one of them has to be "
            f"jax.tree.map(jnp.copy, {shared})"
        )
    twice = next(filter(None, (held_twice(argument, call, source) for call, argument in given)), None)
    if twice is not None:
        return (
            f"the old are gone after a call; the first state holds `{twice}` twice, one of which has to be "
            f"jax.tree.map(jnp.copy, {twice})"
        )
    again = next(filter(None, (first_read_again(argument, call, source) for call, argument in given)), None)
    if again is not None:
        return (
            f"the old are gone after a call; the first state holds `{again}`, which is read again: made of "
            f"jax.tree.map(jnp.copy, {again})"
        )
    return f"the old are gone after a call; {TWICE}"


def _again(given: Sequence[tuple[cst.Call, cst.BaseExpression]], source: Source) -> str:
    """Where a copy has to be made later on, for the next step would be handed one buffer twice."""
    made = next(filter(None, (_made_one_again(argument, call, source) for call, argument in given)), None)
    return "" if made is None else f"; and again where `{made}` makes it hold one twice"


def _of_parameters(given: Sequence[tuple[cst.Call, cst.BaseExpression]], source: Source) -> str:
    """Where the first state may hold the very arrays that it was made of."""
    if not any(holds_parameters(argument, call, source) for call, argument in given):
        return ""
    return "; the first state may hold the parameters that it was made of: made of jax.tree.map(jnp.copy, ...) of them"


def _made_with_one_twice(source: Source) -> str:
    """Where an optimizer's own first state holds one buffer twice."""
    used = next((name for name in _STATES_WITH_ONE_TWICE if name in source.names), None)
    if used is None:
        return ""
    return f"; the first state of {used} holds arrays twice, or the parameters: jax.tree.map(jnp.copy, ...) of it"


def _comes_late(call: cst.Call, donated: Sequence[str], source: Source) -> bool:
    """Whether the results that replace `donated`, named in the order of the arguments, are seen to come in another
    order, or behind what may have their shapes."""
    statement = source.parent(call)
    if not isinstance(statement, cst.Assign) or len(statement.targets) != 1:
        return False
    results = [*names_of(statement.targets[0].target)]
    own = [name for name in results if name in donated]
    if sorted(own) != sorted(donated):
        return False  # it is stored by a later line, or handed out as a part of something
    behind = [name for name in results[: results.index(own[-1])] if name not in donated]
    # What goes round as well may be the model, whatever it is called, unless it is a key.
    handed = {name for name in (dotted(arg.value) for arg in call.args) if not _KEY.search(name)}
    return own != [*donated] or any(name in handed or _ALIKE.search(name) for name in behind)


def _made_one_again(argument: cst.BaseExpression, call: cst.Call, source: Source) -> str | None:
    """The assignment, as it is written, by which the variable or field `argument` comes to hold a part twice."""
    whole, around = dotted(argument), source.facts.class_around(source.scope(call))
    if not whole:
        return None
    for node in source.nodes_with(whole.rpartition(".")[2], cst.Assign):
        if not isinstance(node, cst.Assign) or source.facts.class_around(source.scope(node)) != around:
            continue
        is_the_same = whole.startswith("self.") or source.function(node) is source.function(call)
        if is_the_same and any(_is_a_part(part, whole) for part in _parts_put_into(node, whole)):
            return source.code(node)
    return None


def _parts_put_into(node: cst.Assign, whole: str) -> Iterator[cst.BaseExpression]:
    """What an assignment puts into `whole`: `whole.target = ...`, `whole = whole.replace(target=...)`."""
    match node:
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Attribute(value=owner))], value=value) if (
            dotted(owner) == whole
        ):
            yield value
        case cst.Assign(
            targets=[cst.AssignTarget(target=target)],
            value=cst.Call(func=cst.Attribute(value=owner, attr=cst.Name(method)), args=args),
        ) if method in REPLACES and dotted(target) == whole == dotted(owner):
            yield from (arg.value for arg in args if arg.keyword)


def _is_a_part(value: cst.BaseExpression, whole: str) -> bool:
    return isinstance(value, cst.Attribute) and dotted(value.value) == whole
