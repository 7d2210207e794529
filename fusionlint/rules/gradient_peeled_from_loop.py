"""Gradients that are accumulated in a loop whose first turn stands before it: the model is in the program twice."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from fusionlint.finding import Finding
from fusionlint.lazily import regex
from fusionlint.patterns.code.at import constant, inside
from fusionlint.patterns.code.calls import argument
from fusionlint.patterns.code.functions import definitions
from fusionlint.patterns.runs.loop_bodies import bodies_of
from fusionlint.rule import Rule
from fusionlint.source.tree import Source

rule = Rule(__name__, harm="compile-time")

_LOOP = "jax.lax.fori_loop"
_GRADIENTS = regex(r"(^|\.)(filter_)?(grad|value_and_grad|vjp)$")
_NAMED = regex(r"(^|_)grads?(ients?)?(_|$)|gradient")


@rule.source("Call", calls=(_LOOP,))
def first_gradient_before_the_loop(node: cst.Call, source: Source) -> Iterator[Finding]:
    """A loop from 1 on, whose body calls the function of a gradient that its own function has called before it."""
    start = argument(node, 0, "lower")
    if start is None or constant(start) != 1:
        return
    function = source.function(node)
    if not isinstance(function, cst.FunctionDef):
        return
    again = {
        call.func.value
        for body in definitions(bodies_of(node, source), source)
        for call in inside(body.body, cst.Call)
        if isinstance(call.func, cst.Name)
    }
    for call in inside(function.body):
        match call:
            case cst.Call(func=cst.Name(value=name) as called) if name in again and source.function(call) is function:
                if _is_gradient(called, source) and not source.in_loop(call) and not source.apart(call, node):
                    yield source.finding(
                        call,
                        f"`{name}` is in the program twice, here and in the loop, and is compiled twice",
                        write="zeros to start from (jax.tree.map(jnp.zeros_like, params)), and the loop from 0; or a "
                        "jax.lax.scan over the microbatches",
                    )
                    return


def _is_gradient(function: cst.Name, source: Source) -> bool:
    """Whether a gradient is what the function computes, by what made it or by its name."""
    value = source.value(function)
    if isinstance(value, cst.Call):
        return bool(_GRADIENTS.search(source.qualified_name(value.func) or "")) or bool(_NAMED.search(function.value))
    return bool(_NAMED.search(function.value))
