"""What a rule says: frozen, comparable, picklable values. Nothing here imports anything of ours."""

from __future__ import annotations

from typing import NamedTuple

# What can be another after a fix that is not safe: the rule's page says which of them, and when.
MAY_CHANGE = "may change rounding, ties, NaN, dtypes, shapes or random draws"


class Location(NamedTuple):
    """A span of a file; lines and columns are 1-based, columns count characters, the end column is exclusive."""

    path: str
    line: int
    column: int
    end_line: int
    end_column: int


class Edit(NamedTuple):
    """Replace what stands at `location` by `text`."""

    location: Location
    text: str


class Suggestion(NamedTuple):
    """What to write instead. Without edits it is advice; `safe` edits leave every result the same to the last bit,
    or the rule's page says why that is not needed."""

    text: str
    edits: tuple[Edit, ...] = ()
    safe: bool = False


class Measurement(NamedTuple):
    """One cell of a rule's page: what the compiler made of the bad form and of the good one.

    `target` is a target's name, or "any" where the count does not depend on the hardware (compilations, dispatches,
    transfers). `quantity` is "launches", "bytes", "memory", "flops", "compilations", "dispatches",
    "transfers", or how much there is to compile: "operations", and "seconds" on a CPU.
    """

    target: str
    quantity: str
    bad: float
    good: float


class Confirmation(NamedTuple):
    """What the compiler did at a finding's lines when `entry` was compiled for `target`: values cross memory there.

    `cause` and `reason` (XLA's own, "" where it gives none) are those of the dearest, at `line`, `rule` the one that
    explains it ("" where none does). Launches and bytes are of all of them in one call, or `per_iteration` of a loop of
    unknown length. `measured` is what the finding's fix made of `entry`, where it was tried, with others if it is
    `joined`: then there may be no cause.
    """

    target: str
    entry: str
    line: int
    cause: str
    reason: str
    launches: int
    bytes: int
    per_iteration: bool
    rule: str = ""
    measured: tuple[Measurement, ...] = ()
    joined: bool = False


class Finding(NamedTuple):
    """One hazard at one place. `targets` are those on which the rule's page shows harm; `evidence` is what was
    measured there; `stack` is the call path to the line, innermost first. `pair` is the number of the measured pair
    of the page that this is a case of, and `unclaimed` the hardware that it leaves out; `confirmed` is what
    compilations of the code itself showed, `refuted` the targets for which they showed no harm. `assumed`: nothing in
    the project shows how the code runs, under a trace or not, and the rule takes it to run where it would do harm."""

    rule: str
    location: Location
    message: str
    suggestion: Suggestion | None = None
    targets: tuple[str, ...] = ()
    evidence: tuple[Measurement, ...] = ()
    stack: tuple[Location, ...] = ()
    pair: int = 0
    confirmed: tuple[Confirmation, ...] = ()
    refuted: tuple[str, ...] = ()
    assumed: bool = False
    unclaimed: tuple[str, ...] = ()


class Problem(NamedTuple):
    """Why a file could not be checked; line 0 where no line is to blame. The run goes on without it."""

    path: str
    line: int
    message: str
