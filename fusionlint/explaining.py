"""`fusionlint.explain()`: what XLA makes of a function of this process, for hardware that is here or not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from fusionlint.explained import Report

if TYPE_CHECKING:
    from fusionlint.compiling.sizes import Dims
    from fusionlint.compiling.targets import Target
    from fusionlint.recorded import Told


class ExplainError(RuntimeError):
    """There is no report; the message is one line that says what to do. `stderr` is the end of what the compiler's
    process wrote."""

    def __init__(self, message: str, stderr: str = "") -> None:
        super().__init__(message)
        self.stderr = stderr


def explain(
    function: Any,
    /,
    *args: Any,
    target: str = "",
    timeout: float = 600.0,
    dims: Mapping[str, int | Sequence[int]] | None = None,
    try_fixes: bool = False,
    **kwargs: Any,
) -> Report:
    """What XLA makes of `function(*args, **kwargs)` on the target of that name, by default the one that `fusionlint
    explain` takes. Nothing is run, and the compiler, in a process of its own, has `timeout` seconds.

        report = fusionlint.explain(step, state, "f32[64,4]", n=8, target="h100")
        assert report.launches <= 6
        print(report)

    Arguments are real arrays, jax.ShapeDtypeStructs, or shapes as a SPEC has them: "f32[8,128]", "key",
    {"w": "f32[2,2]"}; of an array only shape and dtype count, and of one that is spread over several devices how it is
    spread: the program is then compiled for as many of the target. All others (numbers, strings, functions) are part of
    the program, but for what `function` is jitted already: then it says itself what is static. It can also be a
    jax.stages.Traced or Lowered, which have their arguments, or a Compiled, of which XLA no longer says why it did not
    fuse. A parameter that is itself called `target`, `timeout`, `dims` or `try_fixes` is given by position, or bound
    before.

    Without any arguments they are those of an `example_args` beside the function, or of its jaxtyping annotations, with
    the sizes `dims` for their dims: `dims={"batch": 32, "n": 100}`, and several sizes for `*rest` and `...`. With
    `dims` the annotations come first.

    With `try_fixes` the function is compiled again with each fix of `fusionlint check` for its lines, by a process that
    imports its file: `report.trials` says what each gains, a note of the report why none could be tried.

    Raises ExplainError where there is no report (a compiler is missing, or refuses; the function takes or returns what
    jax.jit cannot), ValueError for a target or a shape that is none and for arguments that cannot be found, and
    whatever else tracing the function raises.
    """
    from fusionlint.compiling.attached import chosen
    from fusionlint.compiling.entry import EntryError
    from fusionlint.compiling.targets import get, missing

    if absent := missing(get("cpu")):  # jax itself
        raise ExplainError(absent)
    if not callable(function) and not hasattr(function, "args_info"):
        raise TypeError(f"{function!r} is no function: `fusionlint explain` takes a SPEC, this the function itself")
    from fusionlint.compiling.lowering import is_compiled

    try:
        if is_compiled(function):
            if args or kwargs or dims:
                raise EntryError("a Compiled has its arguments: give none")
            report = _explain_compiled(function, chosen([target])[0] if target else None)
            return _untried(report) if try_fixes else report
        (wanted,) = chosen([target] if target else [])
        sizes = {name: (size,) if isinstance(size, int) else tuple(size) for name, size in (dims or {}).items()}
        told = _explain_lowered(function, args, kwargs, wanted, timeout, sizes)
    except EntryError as error:
        raise ValueError(str(error)) from None
    if try_fixes:
        from fusionlint.retrying import with_trials

        told = with_trials(told, [wanted], timeout)
    (result,) = told.results
    if isinstance(result, Report):
        return result
    raise ExplainError(result.message, result.stderr)


def _untried(report: Report) -> Report:
    from fusionlint.retrying import untried

    return untried(report)


def _explain_lowered(
    function: Any, args: Sequence[Any], kwargs: Mapping[str, Any], target: Target, timeout: float, dims: Dims
) -> Told:
    from fusionlint.compiling.blame import no_array
    from fusionlint.compiling.found import named_as
    from fusionlint.compiling.lowering import lowered_for
    from fusionlint.compiling.targets import missing
    from fusionlint.recorded import explain_recorded
    from fusionlint.recording import Recording
    from fusionlint.rule import all_rules

    if absent := missing(target):
        raise ExplainError(absent)
    try:
        recorded = lowered_for(function, args, kwargs, target.platform, dims)
    except TypeError as error:
        said = no_array(error, named_as(function).called)
        if not said:
            raise
        raise ExplainError(said) from error
    (told,) = explain_recorded(Recording(functions=(recorded,)), [target], all_rules(), timeout)
    return told


def _explain_compiled(compiled: Any, target: Target | None) -> Report:
    """It is what it is: only its own platform's targets fit."""
    from fusionlint.compiling.artifacts import Artifacts
    from fusionlint.compiling.dumps import platform_of
    from fusionlint.compiling.jobs import new_folder
    from fusionlint.compiling.lowering import optimized
    from fusionlint.compiling.targets import get, versions
    from fusionlint.rule import all_rules
    from fusionlint.tasks import read

    name, text = optimized(compiled)
    platform = platform_of(text)
    if target and target.platform != platform:
        raise ExplainError(f"{name} is compiled for {platform} already: give the function, to compile it again")
    folder = new_folder()
    (folder / "after.hlo.txt").write_text(text, encoding="utf-8")
    # Which GPU or TPU it was compiled for is not written in it.
    named = target.name if target else {"cuda": "gpu"}.get(platform, platform)
    found = versions(target or get("cpu"))
    result = read(Artifacts(folder, f"{name}, compiled", named, found, name, attached=True), all_rules())
    if isinstance(result, Report):
        return result
    raise ExplainError(result.message)
