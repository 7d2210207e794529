"""Every leaf of a tree cut into its elements by host code: `[jax.tree.map(lambda x: x[i], tree) for i in range(n)]`."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from fusionlint.finding import Finding
from fusionlint.lazily import regex
from fusionlint.patterns.code.at import inside, names_read
from fusionlint.patterns.code.calls import brief
from fusionlint.patterns.code.unpacked import stored_in
from fusionlint.patterns.loops.carry import Carry
from fusionlint.patterns.loops.collected import is_few
from fusionlint.rule import Rule
from fusionlint.source.facts import Value
from fusionlint.source.names import TREE_MAPS
from fusionlint.source.tree import Source
from fusionlint.source.walk import dotted

rule = Rule(__name__, harm="dispatch")

# What a list, a file or a queue does with what it is handed, and what draws it.
_KEEPS = regex(r"(append|extend|write|save|put|render|draw|update_scene|get_data|add_frame)(_|$)")
_RANGES = ("range", "numpy.arange")
_READERS = ("float", "int", "bool", "numpy.asarray", "numpy.array", "jax.device_get")
_LONG = 40


def _mapped_in_a_loop(source: Source) -> Iterator[str]:
    """The scopes of host code that map over a tree in a loop: asked of the facts alone."""
    made = (found for name in TREE_MAPS for found in source.called(name))
    return (place.scope for place, call in made if call[2] and source.runs(place.scope, "host"))


@rule.source("ListComp", where="host", when=_mapped_in_a_loop, needs=TREE_MAPS)
def cut_into_elements(loop: cst.ListComp, source: Source) -> Iterator[Finding]:
    """A list of all elements, of a tree that is not seen to be numpy's, in what is shown to be host code."""
    match loop:
        case cst.ListComp(
            elt=cst.Call() as mapped,
            for_in=cst.CompFor(target=cst.Name(counter), iter=iterated, inner_for_in=None, ifs=[]),
        ) if source.calls(source.meant(iterated), *_RANGES) and not is_few(iterated, source):
            tree = _tree_cut(mapped, counter, source)
            if tree is not None and _is_of_the_host(tree, source):
                yield _finding(mapped, tree, source)


@rule.source("For", where="host", when=_mapped_in_a_loop, needs=TREE_MAPS)
def cut_step_by_step(loop: cst.For, source: Source) -> Iterator[Finding]:
    """The same by a loop's own statements, of a tree that was there before: `for t in range(n): frame =
    jax.tree.map(lambda x: x[t], history)`. Of several trees the first is told."""
    match loop:
        case cst.For(target=cst.Name(counter), iter=iterated) if source.calls(source.meant(iterated), *_RANGES):
            if is_few(iterated, source):
                return
            calls = (part for part in inside(loop.body, cst.Call) if source.loop(part) is loop)
            cut = ((call, tree) for call in calls if (tree := _tree_cut(call, counter, source)) is not None)
            for mapped, tree in cut:
                is_of_before = not Carry(loop).varies(tree) and _is_of_the_host(tree, source)
                if is_of_before and (_is_read(mapped, source) or _is_kept(mapped, source)):
                    yield _finding(mapped, tree, source)
                    return


def _is_of_the_host(tree: cst.BaseExpression, source: Source) -> bool:
    """Whether host code cuts a tree, or a part of one, that nobody has fetched before."""
    whole = tree
    while isinstance(whole, cst.Attribute | cst.Subscript):
        whole = whole.value
    return isinstance(whole, cst.Name) and _is_on_the_host(whole, source) and not _is_fetched(whole, source)


def _is_read(mapped: cst.Call, source: Source) -> bool:
    """Whether Python's or numpy's numbers are made of the parts, `lambda x: x[t].item()`: none goes back."""
    function = mapped.args[0].value
    return isinstance(function, cst.Lambda) and _part_read(function.body, source) is not None


def _part_read(node: cst.BaseExpression, source: Source) -> cst.BaseExpression | None:
    """`x[t]` of `x[t].item()` and of `float(x[t])`."""
    match node:
        case cst.Call(func=cst.Attribute(value=part, attr=cst.Name("item" | "tolist")), args=[]):
            return part
        case cst.Call(args=[cst.Arg(value=part)]) if source.calls(node, *_READERS):
            return part
    return None


def _is_kept(cut: cst.Call, source: Source) -> bool:
    """Whether a part goes into a list or a file: it may well go back to the device otherwise, to one compiled step
    after the other; and of what is cut again that is told."""
    reads = source.readers(cut)
    return bool(reads) and all(_goes_into(read, source) for read in reads)


def _goes_into(read: cst.CSTNode, source: Source) -> bool:
    match source.handed_to(read):
        case cst.Call(func=cst.Attribute(attr=cst.Name(method))):
            return _KEEPS.match(method) is not None
    return False


def _finding(mapped: cst.Call, tree: cst.BaseExpression, source: Source) -> Finding:
    shown = brief(source.code(tree), _LONG, "the tree")
    return source.finding(
        mapped,
        f"every leaf of `{shown}` is cut into its elements, each by a program of its own",
        write=f"jax.device_get({shown}) once, before the loop: elements of numpy arrays are views",
    )


def _tree_cut(mapped: cst.Call, counter: str, source: Source) -> cst.BaseExpression | None:
    """`history` of `jax.tree.map(lambda x: x[t], history)`; a field of a name or what it has under a key, too."""
    match mapped:
        case cst.Call(args=[cst.Arg(value=cst.Lambda() as function), cst.Arg(value=tree)]):
            is_part = isinstance(tree, cst.Name | cst.Attribute) or _is_under_a_key(tree)
            is_cut = source.calls(mapped, *TREE_MAPS) and _takes_element(function, counter, source)
            return tree if is_part and is_cut else None
    return None


def _is_under_a_key(tree: cst.BaseExpression) -> bool:
    """`states["x"]`."""
    match tree:
        case cst.Subscript(slice=[cst.SubscriptElement(slice=cst.Index(value=cst.SimpleString()))]):
            return True
    return False


def _takes_element(function: cst.Lambda, counter: str, source: Source) -> bool:
    """`lambda x: x[i]` or `lambda x, i=i: x[i]`; or `lambda x: x[i].item()`."""
    leaf, *others = function.params.params or (None,)
    bound = {p.name.value for p in others if isinstance(p.default, cst.Name) and p.default.value == counter}
    match _part_read(function.body, source) or function.body:
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


def _is_on_the_host(name: cst.Name, source: Source) -> bool:
    """Whether the code at `name` is host code: shown to be, or by what `name` holds."""
    context = source.context(name)
    return context == "host" or (context != "traced" and _is_compiled(name, source))


def _is_compiled(name: cst.Name, source: Source) -> bool:
    """Whether a compiled function returned what `name` holds, alone or among others; or what all calls that this file
    shows of the function around hand to it."""
    if _is_returned(name, source):
        return True
    parameter, function = source.parameter(name), source.function(name)
    if parameter is None or not isinstance(function, cst.FunctionDef):
        return False
    place = source.body_place(function)
    position = next((i for i, one in enumerate(function.params.params) if one is parameter), None)
    calls = [*source.calls_of((source.project.name_of(place),))]
    if position is None or place.outer.scope or not calls:
        return False
    handed = [call.args[position].value for call in calls if position < len(call.args)]
    held = [value for value in handed if isinstance(value, cst.Name) and source.context(value) != "traced"]
    return len(held) == len(calls) and all(_is_returned(value, source) for value in held)


def _is_returned(name: cst.Name, source: Source) -> bool:
    value = stored_in(name, source)
    if not isinstance(value, cst.Call) or not any(names_read(value.func)):
        return False
    return source.project.is_jitted(source.place(value), Value(dotted(value.func)))
