"""Where jax is watched while a program runs: each program that XLA compiles, with what jax lowered for it.

All private names of jax that capture needs stand here and in elsewhere.py. They are the same from jax 0.4.38 to 0.12;
a jax that lacks one, or no longer goes by it, costs what it would have told, and `missing()` says what that is. Nothing
here imports jax before the program does.
"""

from __future__ import annotations

import hashlib
import inspect
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from itertools import chain, dropwhile
from types import CodeType, FrameType
from typing import Any

from fusionlint.compiling.calls import Call, call_of
from fusionlint.compiling.elsewhere import exclude_own_frames
from fusionlint.compiling.rule_lines import show_rule_lines
from fusionlint.compiling.running import COMPILED

Frames = tuple[tuple[CodeType, int], ...]  # code and line, the innermost first
Listener = Callable[["Compiled"], None]
# The arguments of lower_sharding_computation that are read; the others are handed on as they are.
_IN_SHARDINGS, _DONATED = 3, 7
# The options of jit that change programs, by jax's own names for them.
_OPTIONS = {
    "donate_argnums": "donate_argnums",
    "donate_argnames": "donate_argnames",
    "in_shardings_leaves": "in_shardings",
    "out_shardings_leaves": "out_shardings",
    "in_layouts_leaves": "in_layouts",
    "out_layouts_leaves": "out_layouts",
    "device": "device",
    "backend": "backend",
    "keep_unused": "keep_unused",
    "inline": "inline",
    "compiler_options_kvs": "compiler_options",
}
# The functions of jax/_src/pjit.py that hold a call of something jitted.
_CALLS = frozenset({"cache_miss", "jit_lower", "lower", "jit_trace", "trace"})


@dataclass(frozen=True, slots=True)
class Lowering:
    """What jax lowered: a closed jaxpr, per input whether it is donated and its sharding, and how to do it again.
    `settings` are those of jax that change programs, by name; `x64` says whether 64 bits were on."""

    jaxpr: Any
    name: str
    donated: tuple[bool, ...]
    shardings: tuple[Any, ...]
    devices: int
    again: Callable[[str], Any]  # of a platform (cpu, cuda, tpu): something whose `stablehlo()` is the module
    settings: Mapping[str, object]
    x64: bool


@dataclass(frozen=True, slots=True)
class Compiled:
    """A program that XLA compiled in `seconds`, for the call `call` below `frames`; `lowering` is None where jax
    lowered it in a way that is not watched, such as an old pmap. `digest` is equal for programs that are the same but
    for their source lines and the values of large constants; "" where this jax does not show what it compiles. It takes
    a part of the compilation's time, and can be asked for while a listener runs."""

    name: str
    seconds: float
    frames: Frames
    lowering: Lowering | None
    call: Call | None
    digest: Callable[[], str]


UNNAMED = "precision, x64, a mesh or the like (this jax does not name them)"
_WITHOUT_LOWERING = "functions are listed without arguments and launches"
_PROGRAM = re.compile(r"^(?:jit|pmap)([(_])(.*?)\)?$")
_LISTENERS: list[Listener] = []
_CURRENT = threading.local()  # jax lowers and compiles a call on the thread that calls
_ELIDED = 64  # elements of a constant, from which on its values are not looked at
CONTROL_FLOW = "/lax/control_flow/"  # in the paths of jax's own files
_MARK = "_fusionlint_lowering"
_INSTALLED: list[str] = []  # what this jax lacks; "" once the hooks are in place
_PASSED: set[str] = set()  # what went by the hooks in this process: "lowered", "compiled", "told", "told alone"


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Call `listener` for every compilation of this process, on the thread that compiles."""
    install()
    _LISTENERS.append(listener)
    try:
        yield
    finally:
        _LISTENERS.remove(listener)


def follow(listener: Listener) -> None:
    """As `listening`, to the end of the process."""
    install()
    _LISTENERS.append(listener)


def unfollow(listener: Listener) -> None:
    """The end of `follow`."""
    _LISTENERS.remove(listener)


def missing() -> tuple[str, ...]:
    """What this jax does not tell, one line each."""
    return tuple(filter(None, (*_INSTALLED, _unheard())))


def _unheard() -> str:
    """Names that are there as ever may have lost their part: then one hook is passed, and its fellow never is."""
    if "compiled" in _PASSED and "told" not in _PASSED:
        return _unknown("it does not say when it compiles", "nothing was captured")
    if "told alone" in _PASSED and "lowered" not in _PASSED and len(_INSTALLED) == 1:
        return _unknown("it lowers in another way", _WITHOUT_LOWERING)
    return ""


def _unknown(why: object, cost: str) -> str:
    import jax

    return f"no verdict: jax {jax.__version__} is not known here ({why}): {cost}"


def install() -> None:
    """Put the hooks in place, once a process. They cost nothing while nobody listens."""
    if _INSTALLED:
        return
    _INSTALLED.append("")
    try:
        import jax.monitoring

        jax.monitoring.register_event_duration_secs_listener(_on_duration)
    except (ImportError, AttributeError) as error:
        _INSTALLED.append(_unknown(error, "nothing is captured"))
        return
    try:
        _watch_lowering()
    except (ImportError, AttributeError) as error:
        _INSTALLED.append(_unknown(error, _WITHOUT_LOWERING))


def _watch_lowering() -> None:
    from jax._src import traceback_util
    from jax._src.interpreters import pxla

    lower, compiles = pxla.lower_sharding_computation, pxla.MeshComputation.compile

    def lowered(*args: Any, **kwargs: Any) -> Any:
        computation = lower(*args, **kwargs)
        if _LISTENERS:
            _PASSED.add("lowered")
            with _harmless():
                lowering = _lowering(lower, args, kwargs, _devices(computation))
                setattr(computation, _MARK, (lowering, _call(inspect.currentframe())))
        return computation

    def compiled(self: Any, *args: Any, **kwargs: Any) -> Any:
        _CURRENT.lowering, _CURRENT.computation = getattr(self, _MARK, None), self
        try:
            return compiles(self, *args, **kwargs)
        finally:
            _PASSED.update(() if _CURRENT.lowering is None else ("compiled",))
            _CURRENT.lowering = _CURRENT.computation = None
            vars(self).pop(_MARK, None)  # jax keeps the computation; it shall not keep the jaxpr for us

    traceback_util.register_exclusion(__file__)  # the user's tracebacks stay what they are
    exclude_own_frames()  # now: jax keeps the frames of what it has lowered once
    show_rule_lines()
    pxla.lower_sharding_computation = lowered
    pxla.MeshComputation.compile = compiled


def _on_duration(event: str, seconds: float, **details: Any) -> None:
    if event != COMPILED or not _LISTENERS:
        return
    with _harmless():
        frame = inspect.currentframe()
        lowering, call = getattr(_CURRENT, "lowering", None) or (None, _call(frame))
        _PASSED.update(("told", "told alone") if call and not lowering else ("told",))
        # Without a lowering, the program's name: jit(step), jit_step, pmap(step).
        name = lowering.name if lowering else _PROGRAM.sub(r"\2", str(details.get("fun_name") or "(unnamed)"))
        digest = partial(_digest, getattr(_CURRENT, "computation", None))
        found = Compiled(name, seconds, frames_of(frame), lowering, call, digest)
        for listener in tuple(_LISTENERS):
            listener(found)


def _digest(computation: Any) -> str:
    stablehlo = getattr(computation, "stablehlo", None)
    if stablehlo is None:
        return ""
    text = stablehlo().operation.get_asm(enable_debug_info=False, large_elements_limit=_ELIDED)
    return hashlib.sha256(text.encode()).hexdigest()


@contextmanager
def _harmless() -> Iterator[None]:
    """A mistake of ours must not end the program that is watched; it is said in `missing()`."""
    try:
        yield
    except Exception as error:  # noqa: BLE001
        said = f"a compilation could not be recorded: {type(error).__name__}: {error}"
        if said not in _INSTALLED:
            _INSTALLED.append(said)


def frames_of(frame: FrameType | None) -> Frames:
    """The stack from that frame on."""
    found = []
    while frame is not None:
        found.append((frame.f_code, frame.f_lineno))
        frame = frame.f_back
    return tuple(found)


def _devices(computation: Any) -> int:
    """How many it runs on: jax 0.8 and later know it of the computation itself, earlier ones of what compiles it."""
    found = getattr(computation, "_device_list", None)
    if found is None:
        details = getattr(computation, "compile_args", {})
        found = details.get("device_list", details.get("device_assignment"))
    return len(found) if found is not None else 1


def _lowering(lower: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any], devices: int) -> Lowering:
    jaxpr, _, name, *_ = args
    shardings = tuple(args[_IN_SHARDINGS])

    where = _called_from()

    def again(platform: str) -> Any:
        with where():
            return lower(*args, **{**kwargs, "lowering_platforms": (platform,)})

    return Lowering(
        jaxpr=jaxpr,
        name=str(name),
        donated=tuple(args[_DONATED]),
        shardings=shardings,
        devices=devices,
        again=again,
        settings=_settings(),
        x64=has_x64(),
    )


def _called_from() -> Callable[[], AbstractContextManager[object]]:
    """Inside of it jax takes this moment's stack for the callers of what it lowers, not that of the later moment."""
    try:
        from jax._src import source_info_util

        traceback, names = source_info_util.current().traceback, source_info_util.current_name_stack()
        return lambda: source_info_util.user_context(traceback, name_stack=names)
    except (ImportError, AttributeError):
        return nullcontext


def _settings() -> Mapping[str, object]:
    """The settings that jax's own caches depend on, by name: precision, x64, a mesh. Before jax 0.10 they have none."""
    try:
        from jax._src import config

        values = config.trace_context()
    except (ImportError, AttributeError, TypeError):
        return {}
    try:
        return dict(zip(config.trace_context_names(), values, strict=True))
    except (AttributeError, NotImplementedError, ValueError):
        return {UNNAMED: values}


def has_x64() -> bool:
    """Whether jax's 64 bits are on. Asked of what it does, which a thread may have set for itself, and every jax tells
    alike."""
    import jax

    return str(jax.dtypes.canonicalize_dtype("float64")) == "float64"


def _call(frame: FrameType | None) -> Call | None:
    """The innermost call of something jitted on the stack: jax keeps its arguments nowhere else."""
    while frame is not None:
        if frame.f_code.co_name in _CALLS and frame.f_code.co_filename.endswith("pjit.py"):
            return _read_call(frame.f_locals)
        frame = frame.f_back
    return None


def _read_call(names: dict[str, Any]) -> Call | None:
    jitted = names.get("jit_func")
    function = names.get("fun", getattr(jitted, "_fun", None))
    info = names.get("jit_info", getattr(jitted, "_jit_info", None))
    if function is None or info is None:
        return None
    nums, static = getattr(info, "static_argnums", ()), getattr(info, "static_argnames", ())
    options = {shown: getattr(info, name, None) for name, shown in _OPTIONS.items()}
    return call_of(function, names.get("args", ()), names.get("kwargs", {}), nums, static, options)


def argument_names(lowering: Lowering) -> list[str]:
    """jax's path to each input, such as `params['w']`; "" where it has none."""
    inputs = len(lowering.jaxpr.in_avals)
    names = getattr(_debug_info(lowering.jaxpr), "arg_names", None) or ()
    return [str(name) for name in names] if len(names) == inputs else [""] * inputs


def sharding_text(sharding: Any) -> str:
    """How an argument is placed; "" for one that is not committed to a place."""
    kind = type(sharding).__name__
    if kind == "UnspecifiedValue" or sharding is None:
        return ""
    if kind == "NamedSharding":
        axes = ", ".join(f"{name}={size}" for name, size in dict(sharding.mesh.shape).items())
        return f"{sharding.spec} over {axes}"
    devices = sorted(str(device) for device in getattr(sharding, "device_set", ()))
    return f"on {', '.join(devices)}" if devices else kind


def inner_functions(jaxpr: Any) -> Iterator[tuple[str, int, str]]:
    """path, line and name of the functions inside a program that control flow was given: a scan's body."""
    for inner in chain.from_iterable(map(_given, jaxpr.jaxpr.eqns)):
        info = _debug_info(inner)
        name, _, place = (getattr(info, "func_src_info", None) or "").partition(" at ")
        path, _, line = place.rpartition(":")
        if line.isdigit():
            yield path, int(line), name


def frames_inside(jaxpr: Any) -> Iterator[tuple[CodeType, ...]]:
    """Of the first operation of what control flow was given, the code that was running when it was traced, from control
    flow on, the outermost first: jax 0.4 does not name these functions."""
    for inner in chain.from_iterable(map(_given, jaxpr.jaxpr.eqns)):
        for equation in getattr(getattr(inner, "jaxpr", None), "eqns", ())[:1]:
            yield tuple(dropwhile(lambda code: CONTROL_FLOW not in code.co_filename, _codes(equation)))


def traced_frames(jaxpr: Any) -> Iterator[tuple[CodeType, ...]]:
    """Of each operation of a program, before those inside of it, the code that was running when it was traced, the
    outermost first."""
    for equation in getattr(jaxpr, "jaxpr", jaxpr).eqns:
        yield _codes(equation)
        for inner in _given(equation):
            if hasattr(getattr(inner, "jaxpr", inner), "eqns"):
                yield from traced_frames(inner)


def operations(jaxpr: Any) -> int:
    """How many operations a run of the program takes: of a scan's body as often as it runs, of a loop of unknown length
    once, of a conditional the most that a branch has."""
    return sum(map(_operations, getattr(jaxpr, "jaxpr", jaxpr).eqns))


def _operations(equation: Any) -> int:
    inner = [operations(one) for one in _given(equation) if hasattr(getattr(one, "jaxpr", one), "eqns")]
    if not inner:
        return 1
    name = str(equation.primitive)
    most = max(inner) if name == "cond" else sum(inner)
    return most * int(equation.params.get("length", 1)) if name == "scan" else most


def _given(equation: Any) -> Iterator[Any]:
    """What an operation was given: programs (a body, the branches) among other things."""
    for value in equation.params.values():
        yield from value if isinstance(value, tuple) else (value,)


def _codes(equation: Any) -> tuple[CodeType, ...]:
    traceback: Any = getattr(equation.source_info, "traceback", None)
    return tuple(reversed(traceback.raw_frames()[0])) if hasattr(traceback, "raw_frames") else ()


def defined(jaxpr: Any) -> tuple[str, int, str] | None:
    """path, line and name of the function that was traced, as jax knows it."""
    name, _, place = (getattr(_debug_info(jaxpr), "func_src_info", None) or "").partition(" at ")
    path, _, line = place.rpartition(":")
    return (path, int(line), name) if line.isdigit() else None


def _debug_info(jaxpr: Any) -> Any:
    inner = getattr(jaxpr, "jaxpr", jaxpr)  # closed or open
    return getattr(inner, "debug_info", None)
