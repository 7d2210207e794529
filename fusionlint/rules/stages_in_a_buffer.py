"""Stages of an integrator kept in an array that is written stage by stage: `k = k.at[i].set(f(x + a[i] @ k))`."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from fusionlint.finding import Finding
from fusionlint.patterns.code.at import WRITES, Write, at_write, inside, names_in
from fusionlint.patterns.code.functions import definitions
from fusionlint.patterns.runs.loop_bodies import bodies_of
from fusionlint.rule import Rule
from fusionlint.source.names import TREE_MAPS
from fusionlint.source.tree import Source

rule = Rule(__name__, harm="fusion")

_FORI = "jax.lax.fori_loop"
_CONTRACTIONS = tuple(f"jax.numpy.{name}" for name in ("tensordot", "dot", "einsum", "matmul", "vdot"))


@rule.source("For", calls=WRITES)
def stages_of_a_loop(node: cst.For, source: Source) -> Iterator[Finding]:
    """A Python loop over the stages of a step."""
    if not isinstance(node.target, cst.Name):
        return
    for write in _writes(node.body):
        is_stage = _is_stage(write, node.target.value) and _goes_on(write, source)
        if is_stage and _is_of_a_step(node.body, _array(write), source):
            yield _finding(write, source)
            return


@rule.source("Call", calls=(_FORI,))
def stages_of_a_fori_loop(node: cst.Call, source: Source) -> Iterator[Finding]:
    """`fori_loop(1, 7, body, k)` whose body evaluates one stage."""
    for function in definitions(bodies_of(node, source), source):
        counter, array = _parameters(function)
        for write in _writes(function.body):
            if _array(write) == array and _is_stage(write, counter) and _is_of_a_step(function.body, array, source):
                yield _finding(write, source)


def _parameters(function: cst.FunctionDef | cst.Lambda) -> tuple[str, str]:
    """i and k of `def body(i, k)`."""
    names = [parameter.name.value for parameter in function.params.params]
    return (names[0], names[1]) if len(names) == 2 else ("", "")


def _writes(body: cst.CSTNode) -> Iterator[Write]:
    return (write for node in inside(body, cst.Call) if (write := at_write(node)) is not None)


def _is_of_a_step(body: cst.CSTNode, array: str, source: Source) -> bool:
    return _combines(body, array, source) and _evaluates(body, source)


def _finding(write: Write, source: Source) -> Finding:
    name = _array(write)
    return source.finding(
        write.call,
        f"the stages are kept in `{name}`, which is written and read whole for every stage",
        write=f"a list, `{name}.append(stage)`, and sums of the stages that there are: "
        f"sum(c * s for c, s in zip(row, {name}))",
    )


def _array(write: Write) -> str:
    return write.array.value if isinstance(write.array, cst.Name) else ""


def _is_stage(write: Write, counter: str) -> bool:
    """Whether the row that is written is the one that the loop counts."""
    if write.method != "set" or not isinstance(write.array, cst.Name):
        return False
    return any(part.value == counter for part in names_in(write.index[0]))


def _goes_on(write: Write, source: Source) -> bool:
    """`k = k.at[i].set(...)`, or the same for the leaves of a tree."""
    name = source.assigned_name(write.call)
    if name is not None:
        return name.value == _array(write)
    function = source.function(write.call)
    argument = source.parent(function) if isinstance(function, cst.Lambda) else None
    mapped = source.parent(argument) if argument is not None else None
    stored = source.assigned_name(mapped) if source.calls(mapped, *TREE_MAPS) else None
    return stored is not None and any(
        isinstance(arg.value, cst.Name) and arg.value.value == stored.value
        for arg in (mapped.args[1:2] if isinstance(mapped, cst.Call) else ())
    )


def _combines(body: cst.CSTNode, array: str, source: Source) -> bool:
    """Whether all stages go into one contraction: `jnp.tensordot(a[i], k, 1)`, `a[i] @ k`."""
    for node in inside(body):
        match node:
            case cst.Call(args=args) if source.calls(node, *_CONTRACTIONS):
                if any(_is_all_of(arg.value, array) for arg in args):
                    return True
            case cst.BinaryOperation(operator=cst.MatrixMultiply(), left=left, right=right):
                if _is_all_of(left, array) or _is_all_of(right, array):
                    return True
    return False


def _is_all_of(node: cst.BaseExpression, array: str) -> bool:
    """`k`, `k[:i]`, `k.T`."""
    match node:
        case cst.Name(value=name):
            return name == array
        case cst.Subscript(value=value, slice=[cst.SubscriptElement(slice=cst.Slice()), *_]):
            return _is_all_of(value, array)
        case cst.Attribute(value=value, attr=cst.Name("T")):
            return _is_all_of(value, array)
    return False


def _evaluates(body: cst.CSTNode, source: Source) -> bool:
    """Whether a function that jax does not bring is called: the right-hand side of the equation. Where there is
    arithmetic alone, a triangular system is solved row by row."""
    for node in inside(body, cst.Call):
        if at_write(node) is None and isinstance(node.func, cst.Name | cst.Attribute):
            name = source.qualified_name(node.func)
            if name is None and isinstance(node.func, cst.Attribute):
                # `self.rhs(x)` and `model.rhs(x)`, not a method of an array
                if isinstance(node.func.value, cst.Name) and node.func.value.value == "self":
                    return True
            elif name is None or ":" in name:
                return True
    return False
