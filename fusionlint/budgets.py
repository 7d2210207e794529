"""How much of what a test compiles is allowed, and what goes beyond it. Never imports jax or pytest."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from fusionlint.explained import Report
from fusionlint.recorded import Told
from fusionlint.recording import Place, RecordedFunction, Recording
from fusionlint.report.budget_text import compiled_text, launched_text


@dataclass(frozen=True, slots=True)
class Budget:
    """What each of the user's functions may have at `most`: launches on `target` ("" is the default one), or
    compilations. It was counted with `jaxlib`, "0.10.2" or "0.10"; "" holds for any."""

    of: Literal["launches", "compiles"]
    most: int
    target: str = ""
    jaxlib: str = ""

    @property
    def name(self) -> str:
        return f"max_{self.of}"

    def is_of(self, jaxlib: str) -> bool:
        """Whether it was counted with a jaxlib like the one that is installed."""
        return not self.jaxlib or f"{jaxlib}.".startswith(f"{self.jaxlib}.")


def launch_budget(most: int, *, target: str = "", jaxlib: str = "") -> Budget:
    """What `@pytest.mark.max_launches(...)` says. Raises TypeError."""
    return Budget("launches", _count(most), _text("target", target), _text("jaxlib", jaxlib))


def compile_budget(most: int, *, jaxlib: str = "") -> Budget:
    """What `@pytest.mark.max_compiles(...)` says. Raises TypeError."""
    return Budget("compiles", _count(most), jaxlib=_text("jaxlib", jaxlib))


def _count(most: object) -> int:
    if type(most) is not int or most < 0:
        raise TypeError(f"the most it may have is a whole number, not {most!r}")
    return most


def _text(name: str, value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f'{name} is a text such as {name}="{"h100" if name == "target" else "0.10.2"}", not {value!r}')
    return value


def own(recording: Recording) -> list[RecordedFunction]:
    """The user's functions, not those that libraries jit for themselves."""
    return [function for function in recording.functions if function.owner == "user"]


def compiled_too_often(budget: Budget, recording: Recording) -> Iterator[str]:
    """A text for each of the user's functions that was compiled more often."""
    for function in own(recording):
        if len(function.compilations) > budget.most:
            yield compiled_text(function, budget.most)


def launched_too_often(budget: Budget, told: Sequence[Told]) -> Iterator[str]:
    """A text for each function with more launches, that of the program with most of them, a loop of unknown length
    counted once; and for each program without a report, of which it cannot be told."""
    dearest: dict[tuple[str, Place | None], Report] = {}
    for one in told:
        for result in one.results:
            if isinstance(result, Report):
                known = dearest.setdefault((one.function.name, one.function.defined), result)
                dearest[one.function.name, one.function.defined] = max(known, result, key=_launches)
            else:
                yield result.message
    yield from (launched_text(report, budget.most) for report in dearest.values() if _launches(report) > budget.most)


def _launches(report: Report) -> int:
    return report.launches + report.launches_per_iteration
