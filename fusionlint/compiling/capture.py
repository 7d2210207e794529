"""What `hooks` sees of a running program -> a Recording. Runs where the program runs."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace

from fusionlint.compiling import hooks
from fusionlint.compiling.calls import Call
from fusionlint.compiling.elsewhere import bytecode, lowering_elsewhere
from fusionlint.compiling.given import otherwise
from fusionlint.compiling.hooks import UNNAMED, Compiled, Lowering
from fusionlint.compiling.origins import called_at, called_from, control_flow, definition, module_line
from fusionlint.compiling.why import Circumstances, why
from fusionlint.recording import Argument, Compilation, EagerLine, Owner, Place, RecordedFunction, Recording, sha256_of

COMPARED = 16  # earlier compilations, the latest ones: each compilation of a loop shall cost the same
Key = tuple[str, "Place | None"]
Lines = tuple["Place | None", "Place | None"]  # of an eager operation, the inner and the outer one
# Called with what was recorded: an eager operation by line and name, or a function with this one compilation.
Keep = Callable[["RecordedFunction | EagerLine"], None]


@dataclass(slots=True)
class _Known:
    """A function as far as it was seen: the compilations, and of each what it takes to tell why the next came."""

    function: RecordedFunction  # without compilations
    compilations: list[Compilation] = field(default_factory=list)
    calls: list[Call | None] = field(default_factory=list)
    settings: list[Mapping[str, object]] = field(default_factory=list)
    lowerings: dict[int, Lowering] = field(default_factory=dict)  # by number
    digests: set[str] = field(default_factory=set)  # of the programs in `lowerings`


class Recorder:
    """Listens to `hooks` and remembers; may be called from any thread.

    `everything` keeps what it takes to lower every program of every function again, not the largest one of each of the
    user's functions alone. `keep` is told of each compilation as it happens.
    """

    def __init__(self, everything: bool = False, keep: Keep = lambda _: None) -> None:
        self.everything, self.keep = everything, keep
        self.known: dict[Key, _Known] = {}
        self.eager: dict[Lines, tuple[Counter[str], float]] = {}
        self.count = 0
        self.lock = threading.Lock()

    def __call__(self, seen: Compiled) -> None:
        """Remember one compilation."""
        place, whose = definition(seen)
        called = called_at(seen.frames)
        with self.lock:
            if whose == "jax":
                self._add_eager(seen, called, called_from(seen.frames))
            else:
                self._add(seen, place, whose, called)

    def _add_eager(self, seen: Compiled, called: Place | None, outer: Place | None) -> None:
        operations, seconds = self.eager.setdefault((called, outer), (Counter(), 0.0))
        operations[seen.name] += 1
        self.eager[called, outer] = operations, seconds + seen.seconds
        self.keep(EagerLine(called, {seen.name: 1}, seen.seconds, outer))

    def _add(self, seen: Compiled, place: Place | None, whose: Owner, called: Place | None) -> None:
        name = _name(seen, place)
        known = self.known.get((name, place))
        if known is None:
            known = self.known[name, place] = _Known(function_of(seen.call, name, place, whose))
        compilation = self._compilation(seen, called, known)
        known.compilations.append(compilation)
        known.calls.append(seen.call)
        known.settings.append(seen.lowering.settings if seen.lowering else {})
        self.count += 1
        if seen.lowering:
            self._keep_lowering(known, compilation, seen, seen.lowering)
        self.keep(replace(known.function, compilations=(compilation,)))

    def _compilation(self, seen: Compiled, called: Place | None, known: _Known) -> Compilation:
        new = Compilation(
            number=self.count,
            called=called,
            arguments=arguments_of(seen.lowering) if seen.lowering else (),
            static=seen.call.static if seen.call else {},
            seconds=seen.seconds,
            thread=threading.current_thread().name,
            devices=seen.lowering.devices if seen.lowering else 1,
            spec=seen.call.spec if seen.call else None,
            operations=hooks.operations(seen.lowering.jaxpr) if seen.lowering else 0,
            x64=seen.lowering.x64 if seen.lowering else None,
            module_line=module_line(seen.frames, known.function.defined.path) if known.function.defined else 0,
        )
        settings = seen.lowering.settings if seen.lowering else {}
        lists = known.compilations, known.calls, known.settings
        earlier = zip(*(each[-COMPARED:] for each in lists), strict=True)
        compared = [(one, _circumstances(seen.call, call, _changed(before, settings))) for one, call, before in earlier]
        return replace(new, why=why(new, compared, control_flow(seen) or "jit"))

    def _keep_lowering(self, known: _Known, compilation: Compilation, seen: Compiled, lowering: Lowering) -> None:
        if self.everything:
            digest = seen.digest()
            if not digest or digest not in known.digests:  # arguments alone do not tell programs apart: a closure's do
                known.digests.add(digest)
                known.lowerings[compilation.number] = lowering
        elif known.function.owner == "user":
            kept = next((one for one in known.compilations if one.number in known.lowerings), compilation)
            if kept.rank <= compilation.rank:  # the others' constants need not stay in memory
                known.lowerings = {compilation.number: lowering}

    def recording(self, platforms: tuple[str, ...] = ()) -> Recording:
        """All that was captured until now, with what was kept lowered for `platforms`."""
        programs: dict[int, dict[str, bytes]] = {}
        failures: dict[int, dict[str, str]] = {}
        for number, platform, program in self.lowered(platforms):
            if isinstance(program, str):
                failures.setdefault(number, {})[platform] = program
            else:
                programs.setdefault(number, {})[platform] = program

        def one(compilation: Compilation) -> Compilation:
            number = compilation.number
            return replace(compilation, programs=programs.get(number, {}), failures=failures.get(number, {}))

        with self.lock:
            functions = tuple(
                replace(k.function, compilations=(*map(one, k.compilations),)) for k in self.known.values()
            )
            eager = tuple(EagerLine(i, dict(names), s, o) for (i, o), (names, s) in self.eager.items())
        where = backend() if functions or eager else ""  # to ask is to start it
        return Recording((), versions(), where, functions, eager, hooks.missing())

    def lowered(self, platforms: tuple[str, ...]) -> Iterator[tuple[int, str, bytes | str]]:
        """number, platform and the program of what was kept, lowered for each platform; a line of text instead of the
        program says why there is none."""
        with self.lock:
            kept = {number: one for known in self.known.values() for number, one in known.lowerings.items()}
        if not kept or not platforms:
            return
        with ExitStack() as stack:
            try:
                stack.enter_context(lowering_elsewhere())
            # What a jax that is not known lacks. A program is watched here, and shall end as it would.
            except Exception as error:  # noqa: BLE001
                yield from (
                    (number, platform, not_lowered(error, platform)) for number in kept for platform in platforms
                )
                return
            for number, lowering in sorted(kept.items()):
                for platform in platforms:
                    yield number, platform, program_of(lowering, platform)


@contextmanager
def recording(recorder: Recorder) -> Iterator[Recorder]:
    """Record what this process compiles inside."""
    with hooks.listening(recorder):
        yield recorder


def versions() -> dict[str, str]:
    """Of what compiles and runs here."""
    import platform

    import jax
    import jaxlib

    return {"jax": jax.__version__, "jaxlib": jaxlib.__version__, "python": platform.python_version()}


def backend() -> str:
    """The platform that jax runs on."""
    import jax

    return str(jax.default_backend())


def program_of(lowering: Lowering, platform: str) -> bytes | str:
    """The StableHLO of what jax lowered, for `platform`; a line of text instead says why there is none."""
    try:
        return bytecode(lowering.again(platform).stablehlo())
    # What an operation has no rule for, a library's own primitive, a callback that needs its device: each raises its
    # own kind, and costs this program alone.
    except Exception as error:  # noqa: BLE001
        return not_lowered(error, platform)


def not_lowered(error: Exception, platform: str) -> str:
    """What jax raised as it lowered a program for `platform`, in one line."""
    first = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
    if "Unknown backend" in first:
        return f"a callback (jax.debug.print, pure_callback) needs the {platform.upper()} itself"
    return f"jax cannot lower it for {platform}: {type(error).__name__}{': ' if first else ''}{first}"


def forget_compiled() -> None:
    """Let jax compile again what it has compiled in this process."""
    import jax

    jax.clear_caches()


def _changed(before: Mapping[str, object], after: Mapping[str, object]) -> tuple[str, ...]:
    """Of jax's settings those that differ: `jax_default_matmul_precision: None -> highest`."""
    names = [name for name in after if name in before and before[name] != after[name]]
    return tuple(name if name == UNNAMED else f"{name}: {before[name]} -> {after[name]}" for name in names)


def _circumstances(call: Call | None, other: Call | None, settings: tuple[str, ...]) -> Circumstances:
    if call is None or other is None:
        return Circumstances(settings=settings)
    known = {name: its for name, its in other.objects.items() if call.static.get(name) == other.static.get(name)}
    others = tuple(name for name, its in call.objects.items() if name in known and not its.is_same(known[name]))
    anew = tuple(name for name, its in call.local.items() if name in other.local and not its.is_same(other.local[name]))
    passed = tuple(otherwise(other.given, call.given))
    return Circumstances(call.identity.is_same(other.identity), settings, others, anew, passed)


def arguments_of(lowering: Lowering) -> tuple[Argument, ...]:
    """One for each input of the program."""
    every = zip(
        hooks.argument_names(lowering), lowering.jaxpr.in_avals, lowering.donated, lowering.shardings, strict=False
    )
    return tuple(
        Argument(
            name=name,
            dtype=str(getattr(aval, "dtype", aval)),
            shape=tuple(getattr(aval, "shape", ())),
            weak=bool(getattr(aval, "weak_type", False)),
            donated=bool(donated),
            sharding=hooks.sharding_text(sharding),
        )
        for name, aval, donated, sharding in every
    )


def function_of(call: Call | None, name: str, place: Place | None, whose: Owner) -> RecordedFunction:
    """A function at the place where it is defined, without compilations yet."""
    is_own = call is not None and place is not None and call.defined == f"{place.path}:{place.line}"
    return RecordedFunction(
        name=name,
        module=call.module if call and is_own else "",
        defined=place,
        owner=whose,
        plain=bool(call and is_own and call.plain),
        compilations=(),
        sha256=sha256_of(place.path) if place and whose == "user" else None,
    )


def _name(seen: Compiled, place: Place | None) -> str:
    return place.function if place and place.function else seen.name or "(unknown)"
