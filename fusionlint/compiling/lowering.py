"""A function and its arguments as they are in this process -> the function as a recording has it, with one program.

Runs where the program runs: what is compiled may be a closure, a lambda, or a cell of a notebook, which no other
process can import. Nothing is run, and nothing is compiled here.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from fusionlint.compiling import arguments, libraries
from fusionlint.compiling.calls import Call, call_of, leads_to, spec_of
from fusionlint.compiling.capture import function_of, not_lowered
from fusionlint.compiling.devices import as_where_it_runs
from fusionlint.compiling.elsewhere import bytecode, lowering_elsewhere, platforms_of, tracing_anew
from fusionlint.compiling.entry import EntryError
from fusionlint.compiling.found import check, found, named_as
from fusionlint.compiling.hooks import frames_of, has_x64, sharding_text
from fusionlint.compiling.origins import module_line
from fusionlint.compiling.sizes import NO_DIMS, Dims
from fusionlint.compiling.values import a, has_array, is_array, value_of_text
from fusionlint.recording import Argument, Compilation, Place, RecordedFunction

_ROOT = re.compile(r"[\[.]")


@dataclass(frozen=True, slots=True)
class _Traced:
    """What there is to lower: a jax.stages.Traced or Lowered, and of a call its function, its static arguments, how its
    arrays are placed, whether the function is the one that its name leads to, and its arguments as a SPEC has them."""

    stage: Any
    call: Call | None = None
    placed: tuple[str, ...] = ()
    plain: bool = False
    spec: str | None = None


def is_compiled(function: Any) -> bool:
    """Whether it is a jax.stages.Compiled: optimized already, for one platform."""
    import jax

    return isinstance(function, jax.stages.Compiled)


def lowered_for(
    function: Any, args: Sequence[Any], kwargs: Mapping[str, Any], platform: str, dims: Dims = NO_DIMS
) -> RecordedFunction:
    """The function, with its program for the platform, or one line that says why there is none.

    `function` may be jitted already, or a jax.stages.Traced or Lowered, which takes no arguments. Arguments are real
    arrays, jax.ShapeDtypeStructs, or their shapes as a SPEC has them ("f32[8,4]"); others are static unless the jitted
    function says otherwise. Without any they are found beside the function, with the sizes `dims` for its annotations.
    Raises EntryError for arguments that cannot be found or read, and what tracing the function raises.
    """
    with lowering_elsewhere(), tracing_anew():
        traced = _traced(function, args, kwargs, platform, dims)
        program = _program(traced, platform)
    recorded = _function(traced)
    return replace(
        recorded,
        plain=traced.plain,
        compilations=(
            Compilation(
                number=0,
                called=None,
                arguments=_arguments(traced),
                static=_static(traced),
                spec=traced.spec,
                programs={platform: program} if isinstance(program, bytes) else {},
                failures={platform: program} if isinstance(program, str) else {},
                x64=has_x64(),
                module_line=_module_line(recorded.defined),
            ),
        ),
    )


def optimized(compiled: Any) -> tuple[str, str]:
    """Of a jax.stages.Compiled its name and its optimized HLO. Raises EntryError where it has none."""
    text = compiled.as_text()
    if not text:
        raise EntryError("this Compiled has no HLO text: give the function itself")
    name = re.match(r"HloModule ([\w.\-]+)", text)
    return (name[1].removeprefix("jit_") if name else "main"), text


def _traced(function: Any, args: Sequence[Any], kwargs: Mapping[str, Any], platform: str, dims: Dims) -> _Traced:
    import jax

    stages = tuple(getattr(jax.stages, name) for name in ("Traced", "Lowered") if hasattr(jax.stages, name))
    if isinstance(function, stages):
        if args or kwargs or dims:
            raise EntryError(f"{a(type(function).__name__)} has its arguments: give none")
        return _Traced(function)
    if not args and not kwargs:
        named = named_as(function)
        args, kwargs = found(function, named, dims)
        check(function, named.called, (args, kwargs))
    elif dims:
        raise EntryError("dims are for the annotations of a function that is given no arguments, and here are some")
    plain = leads_to(function)
    function, bound, bound_by_name = libraries.unbound(function)
    args, kwargs = (*bound, *args), {**bound_by_name, **kwargs}
    by_place, by_name = libraries.mapped(_leaf, (args, kwargs))
    static = [i for i, value in enumerate(by_place) if not has_array(value)]
    names = [name for name, value in by_name.items() if not has_array(value)]
    return _Traced(
        as_where_it_runs(partial(arguments.traced, function, (by_place, by_name)), platform),
        call_of(function, by_place, by_name, static, names),
        tuple(sharding_text(one.sharding) for one in jax.tree.leaves((by_place, by_name)) if is_array(one)),
        plain=plain,
        spec=spec_of(by_place, by_name) if plain else None,
    )


def _leaf(value: Any) -> Any:
    """An abstract array for an array or the text of one, spread over devices as that is; any other value is itself."""
    if isinstance(value, str):
        return value_of_text(value)
    return arguments.shaped(value, arguments.spread_by(value)) if is_array(value) else value


def _program(traced: _Traced, platform: str) -> bytes | str:
    lowered_as = platforms_of(traced.stage)
    if lowered_as and platform not in lowered_as:
        return f"it is lowered for {', '.join(lowered_as)} already: give the function, or its `trace(...)`"
    try:
        is_lowered = hasattr(traced.stage, "compiler_ir")
        lowered = traced.stage if is_lowered else traced.stage.lower(lowering_platforms=(platform,))
        return bytecode(lowered.compiler_ir("stablehlo"))
    # As in a recording: what a primitive has no rule for, and the like, each raises its own kind.
    except Exception as error:  # noqa: BLE001
        return not_lowered(error, platform)


def _function(traced: _Traced) -> RecordedFunction:
    call = traced.call
    if call is None:
        return function_of(None, _name(traced.stage), None, "user")
    path, _, line = call.defined.rpartition(":")
    return function_of(call, call.name, Place(path, int(line), call.name, call.column) if path else None, "user")


def _module_line(defined: Place | None) -> int:
    return module_line(frames_of(inspect.currentframe()), defined.path) if defined else 0


def _name(stage: Any) -> str:
    """Of a Traced or a Lowered, which keep no function."""
    if hasattr(stage, "fun_name"):
        return str(stage.fun_name)
    attributes = stage.compiler_ir("stablehlo").operation.attributes
    return str(attributes["sym_name"].value).removeprefix("jit_") if "sym_name" in attributes else "main"


def _arguments(traced: _Traced) -> tuple[Argument, ...]:
    import jax

    given = jax.tree.leaves(traced.stage.args_info)
    info = getattr(getattr(traced.stage, "jaxpr", None), "jaxpr", None)
    names = [str(name) for name in getattr(getattr(info, "debug_info", None), "arg_names", None) or ()]
    # A number is an input of what is jitted already: then they cannot be told apart here.
    known, placed = (every if len(every) == len(given) else [""] * len(given) for every in (names, traced.placed))
    return tuple(
        Argument(name, str(one.dtype), tuple(one.shape), donated=bool(one.donated), sharding=sharding)
        for name, one, sharding in zip(known, given, placed, strict=True)
    )


def _static(traced: _Traced) -> Mapping[str, str]:
    """Those that are part of the program: a jitted function takes numbers as inputs unless it was told otherwise."""
    inputs = {_ROOT.split(one.name)[0] for one in _arguments(traced)}
    return {name: text for name, text in (traced.call.static if traced.call else {}).items() if name not in inputs}
