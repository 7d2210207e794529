"""What `fusionlint run` captured -> text for people: what was compiled and why again, then XLA's verdict on it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from fusionlint.explained import Report
from fusionlint.recorded import Told, argument_texts, ordered
from fusionlint.recording import EagerLine, Place, RecordedFunction, Recording
from fusionlint.report.explain_text import report_text
from fusionlint.report.source_lines import short_path
from fusionlint.report.units import counted, duration, size

BARRIERS = 3  # of a report, unless all are asked for
AGAIN = 5  # reasons for compiling again
LINES = 10  # of eager operations, of libraries' functions
OPERATIONS = 4  # names
MANY = 10  # programs that one line of the user's cost


def run_text(recording: Recording, told: Sequence[Told], everything: bool = False, *, option: str = "--target") -> str:
    """The whole report, ending in a newline. Of barriers, reasons and lines the dearest, or `everything`; `option` is
    what names a target where it is read."""
    blocks = [[*_head(recording)]]
    own = [one for one in ordered(recording) if one.owner == "user"]
    for number, function in enumerate(own, 1):
        blocks.append([*function_lines(f"{number}. ", function, everything)])
        blocks += _verdicts(function, told, everything, option)
    blocks.append([*_eager(recording.eager, everything)])
    libraries = [one for one in ordered(recording) if one.owner != "user"]
    blocks.append([*_libraries(libraries, everything)])
    if everything:
        blocks += [block for function in libraries for block in _verdicts(function, told, everything, option)]
    return "\n\n".join("\n".join(block) for block in blocks if block) + "\n"


def _head(recording: Recording) -> Iterator[str]:
    command = " ".join(recording.command)
    versions = ", ".join(f"{name} {version}" for name, version in recording.versions.items() if name != "python")
    where = f" ({versions}, on {recording.backend})" if recording.backend else ""
    functions = counted(len(recording.functions), "function", "functions")
    times = counted(recording.compilations, "time", "times")
    seconds = sum(function.seconds for function in recording.functions)
    how_often = f" {times} in {_seconds(seconds)}" if recording.functions else ""
    yield f"fusionlint: {command} compiled {functions}{how_often}{where}"
    if recording.eager:
        yield f"and {_programs(recording.eager)}, outside of any jit, in {_seconds(_total(recording.eager))}"
    yield from recording.notes


def function_lines(number: str, function: RecordedFunction, everything: bool = False) -> Iterator[str]:
    """Where it is defined and called, its arguments, and why it was compiled again."""
    first, *again = function.compilations
    times = counted(len(function.compilations), "time", "times")
    called = f", called at {_place(first.called)}" if first.called else ""
    yield f"{number}{_named(function)}{called}: compiled {times}, {_seconds(function.seconds)}"
    largest = function.largest
    parts = [*argument_texts(largest.arguments), *(f"{name}={text} (static)" for name, text in largest.static.items())]
    if parts:
        bytes_of = size(largest.bytes)
        yield f"   {', '.join(parts)}: {bytes_of}"
    reasons = Counter((one.called, one.why) for one in again)
    shown = reasons.most_common(None if everything else AGAIN)
    for (place, why), count in shown:
        often = f" {count} times" if count > 1 else ""
        yield f"   again{often} at {_place(place)}: {'; '.join(why)}"
    if len(shown) < len(reasons):
        yield f"   … and for {len(reasons) - len(shown)} more reasons; --all shows them"


def _verdicts(function: RecordedFunction, told: Sequence[Told], everything: bool, option: str) -> Iterator[list[str]]:
    for one in told:
        if one.function == function:
            for result in one.results:
                if isinstance(result, Report):
                    text = report_text(result, everything, limit=BARRIERS, option=option)
                    yield ["   " + line if line else "" for line in text.splitlines()]
                else:
                    yield [f"   {result.message}"]


def _eager(lines: Sequence[EagerLine], everything: bool) -> Iterator[str]:
    if not lines:
        return
    yield f"eager operations: {_programs(lines)}, {_seconds(_total(lines))}"
    dearest = sorted(lines, key=lambda line: -line.seconds)
    for line in dearest if everything else dearest[:LINES]:
        names = sorted(line.operations.items(), key=lambda item: -item[1])
        listed = ", ".join(f"{name} {count}" if count > 1 else name for name, count in names[:OPERATIONS])
        more = ", ..." if len(names) > OPERATIONS else ""
        programs = counted(line.programs, "program", "programs")
        outer = f", from {_function(line.outer)}" if line.outer else ""
        yield f"   {_place(line.called)}{outer}: {programs} ({listed}{more}), {_seconds(line.seconds)}"
    if not everything and len(dearest) > LINES:
        yield f"   … and at {len(dearest) - LINES} more lines; --all shows them"
    yield from _to_jit(lines)


def _to_jit(lines: Sequence[EagerLine]) -> Iterator[str]:
    """The lines of the user's that cost many programs, the dearest first."""
    by_line: defaultdict[Place | None, list[EagerLine]] = defaultdict(list)
    for line in lines:
        by_line[line.outer or line.called].append(line)
    many = [(place, found) for place, found in by_line.items() if place and sum(one.programs for one in found) >= MANY]
    for place, found in sorted(many, key=lambda pair: -_total(pair[1])):
        cost = f"{sum(one.programs for one in found)} programs, {_seconds(_total(found))}"
        yield f"   {_place(place)} costs {cost}: inside one jax.jit they are one program"


def _libraries(functions: Sequence[RecordedFunction], everything: bool) -> Iterator[str]:
    if not functions:
        return
    seconds = sum(function.seconds for function in functions)
    asked = "" if everything else "; --all explains them"
    yield f"functions of libraries: {len(functions)}, {_seconds(seconds)}{asked}"
    for function in functions if everything else functions[:LINES]:
        yield from function_lines("   ", function, everything)
    if not everything and len(functions) > LINES:
        yield f"   … and {len(functions) - LINES} more"


def _named(function: RecordedFunction) -> str:
    name = function.name.replace("<locals>.", "")
    column = f":{function.defined.column}" if function.defined and function.defined.column else ""
    return f"{name}  {_place(function.defined)}{column}" if function.defined else name


def _place(place: Place | None) -> str:
    return f"{short_path(place.path)}:{place.line}" if place else "no line of Python"


def _function(place: Place) -> str:
    """As a report's call path has it: `main:36`; outside of any function the file's line."""
    if place.function == "<module>":
        return _place(place)
    return f"{place.function.replace('<locals>.', '')}:{place.line}"


def _programs(lines: Sequence[EagerLine]) -> str:
    return counted(sum(line.programs for line in lines), "program of one operation", "programs of one operation each")


def _total(lines: Sequence[EagerLine]) -> float:
    return sum(line.seconds for line in lines)


def _seconds(seconds: float) -> str:
    return duration(seconds * 1e6)
