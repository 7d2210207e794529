"""The same permutation drawn again for every leaf: `tree.map(lambda x: jax.random.permutation(key, x), data)`."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from fusionlint.finding import Finding
from fusionlint.patterns.calls import argument, has_only
from fusionlint.patterns.columns import parameters
from fusionlint.rule import Rule
from fusionlint.source.project import Place
from fusionlint.source.traced import reached_from
from fusionlint.source.tree import Source

rule = Rule(__name__, harm="fusion")

_PERMUTATION = "jax.random.permutation"
_MAPS = frozenset(("jax.tree.map", "jax.tree_map", "jax.tree_util.tree_map", "optax.tree.map", "equinox.tree_map"))


@rule.source("Call", calls=(_PERMUTATION,))
def same_for_every_leaf(node: cst.Call, source: Source) -> Iterator[Finding]:
    """A function mapped over a tree permutes its leaf by a key that comes from outside of it."""
    if not source.calls(node, _PERMUTATION) or not has_only(node, 3, "key", "x", "axis"):
        return
    function, key, leaf = source.function(node), argument(node, 0, "key"), argument(node, 1, "x")
    if function is None or not isinstance(key, cst.Name) or not isinstance(leaf, cst.Name):
        return
    here = Place(source.path, source.body_scope(function))
    if not source.is_traced(node) or here not in reached_from(source.project, _MAPS):
        return
    if leaf.value not in {parameter.name.value for parameter in parameters(function)} or not _is_outer(key, source):
        return
    random, numpy = source.alias("jax.random") or "jax.random", source.alias("jax.numpy") or "jax.numpy"
    yield source.finding(
        node,
        "every leaf of a tree is permuted on its own, each by a sort",
        write=f"order = {random}.permutation({key.value}, n) once, and {numpy}.take({leaf.value}, order, axis=0)",
    )


def _is_outer(key: cst.Name, source: Source) -> bool:
    """Whether the key is written outside of the function that reads it."""
    written = source.written(key)
    return written is not None and source.scope(written) != source.scope(key)
