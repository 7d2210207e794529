"""Every leaf of a tree cut into its elements by host code: `[jax.tree.map(lambda x: x[i], tree) for i in range(n)]`."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from fusionlint.finding import Finding
from fusionlint.patterns.at import inside
from fusionlint.patterns.collected import is_few
from fusionlint.rule import Rule
from fusionlint.source.project import TREE_MAPS
from fusionlint.source.tree import Source

rule = Rule(__name__, harm="dispatch")


def _mapped_in_a_loop(source: Source) -> Iterator[str]:
    """The scopes of host code that map over a tree in a loop: asked of the facts alone."""
    made = (found for name in TREE_MAPS for found in source.called(name))
    return (place.scope for place, call in made if call[2] and source.runs(place.scope, "host"))


@rule.source("ListComp", where="host", when=_mapped_in_a_loop)
def cut_into_elements(loop: cst.ListComp, source: Source) -> Iterator[Finding]:
    """A list of all elements, of a tree that is not seen to be numpy's, in what is shown to be host code."""
    match loop:
        case cst.ListComp(
            elt=cst.Call(args=[cst.Arg(value=cst.Lambda() as function), cst.Arg(value=cst.Name() as tree)]) as mapped,
            for_in=cst.CompFor(target=cst.Name(counter), iter=iterated, inner_for_in=None, ifs=[]),
        ) if source.calls(mapped, *TREE_MAPS) and source.calls(iterated, "range") and _takes_element(function, counter):
            if is_few(iterated, source) or source.context(loop) != "host" or _is_fetched(tree, source):
                return
            yield source.finding(
                mapped,
                f"every leaf of `{tree.value}` is cut into its elements, each by a program of its own",
                write=f"jax.device_get({tree.value}) once, before the loop: elements of numpy arrays are views",
            )


def _takes_element(function: cst.Lambda, counter: str) -> bool:
    """`lambda x: x[i]` or `lambda x, i=i: x[i]`."""
    leaf, *others = function.params.params or (None,)
    bound = {p.name.value for p in others if isinstance(p.default, cst.Name) and p.default.value == counter}
    match function.body:
        case cst.Subscript(
            value=cst.Name(value=array), slice=[cst.SubscriptElement(slice=cst.Index(value=cst.Name(value=index)))]
        ):
            return leaf is not None and array == leaf.name.value and index in bound | {counter}
    return False


def _is_fetched(tree: cst.Name, source: Source) -> bool:
    """Whether the leaves of `tree` are seen to be on the host: fetched, or made by numpy."""
    value = source.value(tree)
    if value is None:
        return False
    names = (source.qualified_name(part) or "" for part in inside(value) if isinstance(part, cst.Attribute | cst.Name))
    return any(name == "jax.device_get" or name.startswith("numpy.") for name in names)
