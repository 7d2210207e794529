"""`fusionlint.capture()`: what this process compiles inside a `with` block, and what XLA makes of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from fusionlint.recording import Recording, recording_json

if TYPE_CHECKING:
    from fusionlint.compiling.capture import Recorder
    from fusionlint.recorded import Told

PLATFORMS = ("cpu", "cuda", "tpu")


@contextmanager
def capture(*, everything: bool = False) -> Iterator[Capture]:
    """Record every program that XLA compiles while the block runs, in any thread of this process.

        with fusionlint.capture() as captured:
            state = step(state, batch)
        for function in captured.recording.functions:
            print(function.name, function.seconds, [one.why for one in function.compilations])
        for told in captured.explain("h100"):
            print(told.results[0].totals.launches)

    What was compiled before is not compiled again, and so not seen. With `everything` also the programs of libraries'
    functions, and every program of a function, can be explained: that keeps their constants in memory.
    """
    from fusionlint.compiling.capture import Recorder, recording

    recorder = Recorder(everything)
    with recording(recorder):
        yield Capture(recorder)


@dataclass(frozen=True, slots=True)
class Capture:
    """What was captured until now; it can be asked inside the block and after it."""

    recorder: Recorder

    @property
    def recording(self) -> Recording:
        """Functions with their compilations, and eager operations by line; seconds are those of the compiler."""
        return self.recorder.recording()

    def explain(self, *targets: str, timeout: float = 600.0) -> list[Told]:
        """What XLA makes of each of the user's functions (their largest program) on the targets of these names, by
        default the one that `fusionlint explain` takes: a `Told` has a `Report` or a `Failure` for each target.
        Compiles in processes of their own, given `timeout` seconds a program. Raises ValueError for an unknown name.
        """
        from fusionlint.compiling.attached import chosen
        from fusionlint.recorded import explain_recorded
        from fusionlint.rule import all_rules

        found = chosen(targets)
        platforms = tuple(dict.fromkeys(target.platform for target in found))
        return explain_recorded(self.recorder.recording(platforms), found, all_rules(), timeout)

    def save(self, path: str | Path) -> None:
        """Write a recording that `fusionlint explain --recorded` reads, with programs for every platform."""
        from fusionlint.recorded import to_save

        Path(path).write_text(recording_json(to_save(self.recorder.recording(PLATFORMS))), encoding="utf-8")
