"""Loops of host code that read few elements of an array, or read them once, or have them told.

In: a loop of a Source, and what it goes over.
"""

from __future__ import annotations

import re
from typing import TypeAlias

import libcst as cst

from fusionlint.lazily import regex
from fusionlint.patterns.code.at import TO_JAX_ARRAY, constant, elements, is_literal, names_read
from fusionlint.patterns.code.unpacked import unpacked
from fusionlint.patterns.dispatch.host import MOST_OF_FEW, is_short
from fusionlint.patterns.dispatch.jit import is_jitted
from fusionlint.patterns.loops.carry import calls
from fusionlint.patterns.loops.collected import FEW, is_few
from fusionlint.patterns.loops.pictures import is_plot
from fusionlint.patterns.runs.alternatives import is_way_asked_for
from fusionlint.patterns.runs.gated import is_known_early
from fusionlint.patterns.runs.made_once import is_for_constructors, is_made_once, is_of_a_factory
from fusionlint.patterns.runs.options import as_given
from fusionlint.patterns.values.annotations import axes_said
from fusionlint.patterns.values.handed_settings import is_constant
from fusionlint.source.facts import CONSTRUCTORS, last_name
from fusionlint.source.hosts import MAIN
from fusionlint.source.tree import Source
from fusionlint.source.walk import dotted

_NUMPY = "jax.numpy."
# What is gone through is seldom made further away than this.
_NEAR = 6
# What a loop goes over another by, an element at a time.
_GOES_OVER = ("enumerate", "zip", "reversed")
# What writes down what came of something, analyzes it, or looks at a setting.
_REPORTS = regex(
    r"(^|_)(to|as|from)_(dict|json|text|str|string|yaml|config)$|summar|report|diagnos|check|validat|analy[sz]"
)
_WORDS = regex(r"(typing\.)?([Ll]ist|[Tt]uple|Sequence)\[str\b")
_TOLD = regex(r"verbos|debug|log_level|print", re.I)
_LOGS = regex(r"(^|[._])(log|logger|logging)\.\w+$")

Loop: TypeAlias = "cst.For | cst.ListComp | cst.GeneratorExp | cst.SetComp | cst.DictComp"


def are_few_or_once(loop: Loop, iterated: cst.BaseExpression, source: Source) -> bool:
    """Whether `loop` has few turns, over what `iterated` is, or runs once, or where somebody asks to be told."""
    return (
        is_few(iterated, source)
        or _is_said_to_be_short(iterated, source)
        or _is_a_short_part(iterated, source)
        or _is_a_key(iterated, source)
        or _are_named(iterated, source)
        or _is_a_shape(loop, source)
        or _is_written_out(iterated, source)
        or (isinstance(loop, cst.For) and is_short(loop, source))
        or is_of_a_factory(source.project, source.place(loop))
        or _is_once(loop, source)
        or is_way_asked_for(loop, _TOLD, source)
        or is_known_early(loop, source)
    )


def _is_said_to_be_short(iterated: cst.BaseExpression, source: Source) -> bool:
    """Whether jaxtyping says that few are gone through, `lengths: Float[Array, "3"]`."""
    axes = axes_said(iterated, source) if isinstance(iterated, cst.Name) else None
    return bool(axes and axes[0].isdigit() and int(axes[0]) <= FEW)


def _is_a_short_part(iterated: cst.BaseExpression, source: Source, depth: int = _NEAR) -> bool:
    """Whether the loop goes over few elements of an array, each once: `order[:5]`, `jnp.argsort(x)[-k:][::-1]` where
    `k=5` is a parameter, what `lax.top_k(x, k)` gives, or `range(min(k, len(x)))`."""
    if depth == 0:
        return False  # a variable may be made of itself, `x = x[::-1]`
    made = source.meant(iterated)
    if isinstance(made, cst.Name):
        made = unpacked(source.written(made), source) or made
    match made:
        case cst.Call(args=[_, cst.Arg(value=count), *_]) if source.calls(made, "jax.lax.top_k"):
            return _is_a_small(count, source)
        case cst.Call(args=[cst.Arg(value=count)]) if source.calls(made, "range"):
            return _is_a_small(count, source)
        case cst.Call(args=args) if source.calls(made, *_GOES_OVER):
            return any(_is_a_short_part(arg.value, source, depth - 1) for arg in args)
        case cst.Subscript(value=inner, slice=slices):
            match elements(slices):
                case [cst.Slice() as part]:
                    return _is_short_slice(part, source) or _is_a_short_part(inner, source, depth - 1)
    return False


def _is_short_slice(part: cst.Slice, source: Source) -> bool:
    """`:5`, or `-k:` where `k=5` is a parameter."""
    match part:
        case cst.Slice(lower=None, upper=cst.BaseExpression() as count):
            return _is_a_small(count, source)
        case cst.Slice(lower=cst.UnaryOperation(operator=cst.Minus(), expression=count), upper=None):
            return _is_a_small(count, source)
    return False


def _is_a_small(count: cst.BaseExpression, source: Source) -> bool:
    """Whether this is a small number, or at most one, `min(k, len(x))`."""
    meant = as_given(count, source)
    if source.calls(meant, "min"):
        return any(_is_a_small(arg.value, source) for arg in meant.args if arg.value is not count)
    number = constant(meant)
    return number is not None and 0 <= number <= MOST_OF_FEW


def _is_once(loop: Loop, source: Source) -> bool:
    """Whether so many elements are read once as there are names of parameters, layers or settings: what makes
    something, or writes down what came of it, goes through a row of them. A table is many all the same."""
    place = source.place(loop)
    if _is_by_name(loop):
        return True  # few names are told apart, and what is computed of them each time is more than that
    if last_name(place.scope) in MAIN and not _is_in_a_loop_of_steps(loop, source):
        return True
    if source.in_loop(loop):
        return False
    if last_name(place.scope) in CONSTRUCTORS or is_for_constructors(source.project, place):
        return True
    is_report = _REPORTS.search(last_name(place.scope)) is not None
    return is_report or is_made_once(source.project, source.contexts, place)


def _is_in_a_loop_of_steps(loop: Loop, source: Source) -> bool:
    """Whether a loop around dispatches a compiled program each time: in a script's `main` nothing else is done again
    and again that takes as long as it takes to start the script."""
    around = (above for above in source.ancestors(loop) if isinstance(above, cst.For | cst.While))
    return any(is_jitted(call.func, source) for above in around for call in calls(above.body))


def _is_by_name(loop: Loop) -> bool:
    """`{name: float(x[i]) for i, name in enumerate(names)}`: a number for each of some names."""
    if not isinstance(loop, cst.DictComp) or not isinstance(loop.key, cst.Name):
        return False
    read = {name.value for name in names_read(loop.value)}
    return loop.key.value not in read and loop.for_in.inner_for_in is None


def _are_named(iterated: cst.BaseExpression, source: Source) -> bool:
    """Whether each element has a word beside it, `zip(coefficients, names)` of `names: list[str]`: so many as somebody
    reads."""
    if not source.calls(iterated, "zip"):
        return False
    beside = (source.parameter(arg.value) for arg in iterated.args if isinstance(arg.value, cst.Name))
    said = (each.annotation.annotation for each in beside if each is not None and each.annotation is not None)
    return any(_WORDS.match(source.code(each)) for each in said)


def _is_a_key(iterated: cst.BaseExpression, source: Source) -> bool:
    """Whether the loop goes over the two words of a key."""
    match iterated:
        case cst.Call(args=[cst.Arg(value=inner), *_]) if source.calls(iterated, "enumerate", "zip"):
            return _is_a_key(inner, source)
    return source.calls(iterated, "jax.random.key_data")


def _is_a_shape(loop: Loop, source: Source) -> bool:
    """Whether whole numbers of an array become a tuple, `tuple(int(n) for n in sizes)`: a shape, or a place in one."""
    if not isinstance(loop, cst.ListComp | cst.GeneratorExp) or not source.calls(loop.elt, "int"):
        return False
    arg = source.parent(loop)
    return isinstance(arg, cst.Arg) and source.calls(source.parent(arg) or arg, "tuple")


def _is_written_out(iterated: cst.BaseExpression, source: Source) -> bool:
    """Whether the loop goes over a constant, `LEVELS`, a list that stands in the program, `zip(names, flags)`, or
    an array of numbers that do."""
    match iterated:
        case cst.List() | cst.Tuple():
            return True
        case cst.Name(name) if is_constant(name):
            return True
        case cst.Name() if isinstance(source.value(iterated), cst.List | cst.Tuple):
            return True
        case cst.Call(args=args) if source.calls(iterated, "zip", "enumerate"):
            return any(_is_written_out(arg.value, source) for arg in args)
    return _is_of_numbers(source.meant(iterated), source)


def _is_of_numbers(made: cst.CSTNode, source: Source) -> bool:
    """Whether an array is made of numbers that stand in the program: `jnp.log(jnp.array([0.2, 0.1]))`."""
    match made:
        case cst.Call(args=[cst.Arg(value=whole), *_]) if source.calls(made, *TO_JAX_ARRAY):
            return isinstance(whole, cst.List | cst.Tuple) and all(is_literal(e.value) for e in whole.elements)
        case cst.Call(args=[cst.Arg(value=whole)]) if (source.qualified_name(made.func) or "").startswith(_NUMPY):
            return _is_of_numbers(whole, source)
    return False


def is_told(call: cst.Call, source: Source) -> bool:
    """Whether somebody is told what `call` reads: it is printed, stands in a plot, `axes.plot(x, label=f"{b[i]}")`, or
    is said by the error that the block ends in."""
    for above in source.ancestors(call):
        match above:
            case cst.Call() if source.calls(above, "print") or is_plot(above) or _LOGS.search(dotted(above.func)):
                return True
            case cst.IndentedBlock(body=[*_, cst.SimpleStatementLine(body=[cst.Raise()])]):
                return True
            case cst.FunctionDef() | cst.Lambda():
                return False
    return False
