"""What `fusionlint run` captured -> one HTML page: what was compiled and why again, then XLA's verdict on each."""

from __future__ import annotations

from collections.abc import Sequence

from fusionlint.explained import Report
from fusionlint.recorded import Told
from fusionlint.recording import Recording
from fusionlint.report.explain_page import explain_page
from fusionlint.report.run_text import run_text


def run_page(recording: Recording, told: Sequence[Told], everything: bool = False) -> str:
    """The page of the whole run; of libraries' functions `everything`."""
    own = [result for one in told if everything or one.function.owner == "user" for result in one.results]
    return explain_page(
        [result for result in own if isinstance(result, Report)],
        [result.message for result in own if not isinstance(result, Report)],
        title=" ".join(("fusionlint run", *recording.command)),
        text=run_text(recording, (), everything).rstrip("\n"),
    )
