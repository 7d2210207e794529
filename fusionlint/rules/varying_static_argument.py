"""A loop's own variable, or a function it makes, handed to a static argument of a jitted function."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from fusionlint.finding import Finding
from fusionlint.patterns.code.at import inside, names_in, names_read
from fusionlint.patterns.dispatch.anew import made_anew, repeats
from fusionlint.patterns.dispatch.jit import dispatching_in_a_loop
from fusionlint.patterns.loops.carry import Loop
from fusionlint.patterns.loops.loop_gates import is_gated
from fusionlint.patterns.values.kinds import kind
from fusionlint.rule import Rule
from fusionlint.source.names import JIT, PARTIAL
from fusionlint.source.tree import Source

rule = Rule(__name__, harm="recompile")

# What takes few values, however many iterations there are.
_FEW = frozenset(("Comparison", "BooleanOperation", "IfExp", "Modulo", "FloorDivide", "Not", "Call"))


def _dispatching_with_static_arguments(source: Source) -> Iterator[str]:
    """The scopes with a loop that calls a compiled program, in a file with a function that has static arguments."""
    # Decorators are among the calls.
    keywords = (keyword for (_, _, keywords), _, _, _ in source.facts.raw.calls for keyword, _ in keywords)
    if any(keyword.startswith("static_arg") for keyword in keywords):
        yield from dispatching_in_a_loop(source)


@rule.source("Call", where="host", when=_dispatching_with_static_arguments)
def compiled_for_every_value(node: cst.Call, source: Source) -> Iterator[Finding]:
    """A call in a loop of host code, of a function of the file that is jitted with static arguments."""
    loop = source.loop(node)
    if not isinstance(loop, cst.For | cst.While) or not isinstance(node.func, cst.Name):
        return
    made = _jit_of(node.func, source)
    if made is None or repeats(node, source) is not loop or is_gated(node, loop, source):
        return
    numbers, names = _static(made[0])
    names |= {made[1][i] for i in numbers if i < len(made[1])}
    for i, arg in enumerate(node.args):
        name = arg.keyword.value if arg.keyword else (made[1][i] if i < len(made[1]) else "")
        if name not in names or arg.star or _is_asked_for(name, node.func, source):
            continue
        what = f"`{source.code(arg.value)}`" if _counts(arg.value, loop, source) else made_anew(arg.value, loop, source)
        if what is not None:
            yield source.finding(
                node,
                f"`{name}` is a static argument, and {what} another in every iteration: each is compiled anew",
                write=f"`{name}` as an ordinary, traced argument; for a shape, padded to one",
            )
            return


def _is_asked_for(name: str, function: cst.Name, source: Source) -> bool:
    """Whether Python goes by the argument in the function, `if i == 0`, takes with it what is in a list or a dict, or
    makes so many axes, `x.reshape((dim,) * i)`: it is static on purpose."""
    defined = source.binder(function)
    parts = list(inside(defined.body)) if isinstance(defined, cst.FunctionDef) else []
    tests = (part.test for part in parts if isinstance(part, cst.If | cst.IfExp | cst.While))
    return any(read.value == name for test in tests for read in names_read(test)) or any(
        _takes_with(part, name, source) or _makes_as_many(part, name) for part in parts
    )


def _takes_with(part: cst.CSTNode, name: str, source: Source) -> bool:
    """`held[i]`, of what is not seen to be an array: a list or a dict takes no number that is traced."""
    match part:
        case cst.Subscript(
            value=cst.Name() as held, slice=[cst.SubscriptElement(slice=cst.Index(value=cst.Name(index)))]
        ):
            return index == name and kind(held, source) != "array"
    return False


def _makes_as_many(part: cst.CSTNode, name: str) -> bool:
    """`(dim,) * i`: no padding makes two shapes of other axes one."""
    match part:
        case cst.BinaryOperation(left=cst.Tuple() | cst.List(), operator=cst.Multiply(), right=count):
            return any(read.value == name for read in names_read(count))
        case cst.BinaryOperation(left=count, operator=cst.Multiply(), right=cst.Tuple() | cst.List()):
            return any(read.value == name for read in names_read(count))
    return False


def _jit_of(function: cst.Name, source: Source) -> tuple[cst.Call, list[str]] | None:
    """The `jax.jit(f, static_argnums=...)` that makes `function`, or the decorator, and the parameters of f."""
    match source.binder(function):
        case cst.FunctionDef(decorators=decorators, params=params):
            for decorator in decorators:
                match decorator.decorator:
                    case cst.Call(func=maker, args=[cst.Arg(value=jit), *_]) as call:
                        names = {source.qualified_name(maker), source.qualified_name(jit)}
                        if source.qualified_name(maker) in JIT or (names & PARTIAL and names & JIT):
                            return call, _names(params)
        case cst.AssignTarget():
            match source.value(function):
                case cst.Call(func=maker, args=[cst.Arg(value=jitted), *_]) as call:
                    handed = _parameters(jitted, source)
                    if source.qualified_name(maker) in JIT and handed is not None:
                        return call, _names(handed)
    return None


def _parameters(function: cst.BaseExpression, source: Source) -> cst.Parameters | None:
    if isinstance(function, cst.Lambda):
        return function.params
    defined = source.binder(function) if isinstance(function, cst.Name) else None
    return defined.params if isinstance(defined, cst.FunctionDef) else None


def _names(params: cst.Parameters) -> list[str]:
    return [param.name.value for param in (*params.posonly_params, *params.params, *params.kwonly_params)]


def _static(jit: cst.Call) -> tuple[set[int], set[str]]:
    numbers: set[int] = set()
    names: set[str] = set()
    for arg in jit.args:
        if arg.keyword is None or not arg.keyword.value.startswith("static_arg"):
            continue
        for part in inside(arg.value):
            if isinstance(part, cst.Integer):
                numbers.add(part.evaluated_value)
            elif isinstance(part, cst.SimpleString):
                names.add(str(part.evaluated_value))
    return numbers, names


def _counts(node: cst.BaseExpression, loop: Loop, source: Source) -> bool:
    """Whether an expression is another number in every iteration: of a counter of the loop, and of nothing else."""
    if any(type(part).__name__ in _FEW for part in inside(node)):
        return False
    return any(_is_counter(part, loop, source) for part in names_in(node))


def _is_counter(name: cst.Name, loop: Loop, source: Source) -> bool:
    match loop:
        case cst.For(target=cst.Name(value=counter), iter=iterated):
            return counter == name.value and source.calls(iterated, "range", "itertools.count")
        case cst.For(target=cst.Tuple(elements=[cst.Element(value=cst.Name(value=counter)), *_]), iter=iterated):
            return counter == name.value and source.calls(iterated, "enumerate")
        case cst.While(body=cst.IndentedBlock(body=statements)):
            steps = [s for line in statements if isinstance(line, cst.SimpleStatementLine) for s in line.body]
            added = (s.target for s in steps if isinstance(s, cst.AugAssign) and isinstance(s.operator, cst.AddAssign))
            return any(isinstance(t, cst.Name) and t.value == name.value for t in added)
    return False
