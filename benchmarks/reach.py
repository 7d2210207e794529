"""How much `check` finds, by places that people labelled before any run.

    python benchmarks/reach.py benchmarks/read/sites*.jsonl FOLDER [--show missed|alarms] [--page docs/reach.md]

A line of these files is a place in a public repository that somebody who knows XLA labelled without having seen what
fusionlint says: repo, commit, path, line, end_line, pattern, severity, why, and the verdict, "hazard" or
"benign-lookalike". FOLDER holds a checkout of each repository at its commit, called by the last part of its name; what
is missing is named and left out. A hazard is found, a lookalike is a false alarm, where a finding of any rule overlaps
its lines, one line of slack included. What no pattern of source text shows (`NOT_SHOWN`) is left out. `--page` writes
the table. Exit status 2 where no checkout is there, or `check` fails.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from os import cpu_count
from pathlib import Path
from typing import NamedTuple

from verdicts import checked, checkouts

NOT_SHOWN = frozenset(
    ("cumsum-scan", "dtype-upcast", "layout-einsum", "materialise-or-duplicate", "pytree-leaf-loop-or-ravel")
)
SEVERITIES = ("high", "medium", "low")
LOOKALIKE = "lookalike"
PAGE = """\
# How much does `check` find?

Places in public repositories that somebody who knows XLA labelled before fusionlint was run on them: hazards, by how
much they cost, and lookalikes, which are no hazards and have to stay silent. A hazard is found where any rule's finding
overlaps its lines. {date}; with checkouts in FOLDER, the table is made by

    python benchmarks/reach.py benchmarks/read/sites*.jsonl FOLDER --page docs/reach.md

Rules were mended by what was missed in these files, so they say how far the rules reach in code like that which they
were made by: games and simulations most of all (18a, 32a). Five figures are of code as it was met. Nine libraries that
nobody had read (41a, 41b): 1 of 82 hazards was found before anything was mended by them. Eight packages of which
findings had been read, but whose hazards nobody had labelled (51a; only such as a pattern of source text could show):
59 of 127, 5 of the 7 high ones, and 2 of 66 lookalikes. Ten more of the kind (53a, by another, who labelled every key
that a rollout's steps split, of which `check` says nothing): 33 of 182, 4 of the 13 high ones, and 1 of 83 lookalikes.
Eleven well-known ones (57a, by a third, without such keys): 43 of 133, 4 of the 12 high ones, and 9 of 178 lookalikes.
Ten more (58a, by a fourth, in a hurry): 73 of 216, 4 of the 10 high ones, and 8 of 181 lookalikes.
Of well-kept libraries `check` says little, and most of what costs them something takes meaning that no pattern of
source text has: work that stays the same in a solver's loop, what a caller makes of a function, how large an array is.
For those there are `explain` and `run`.

{table}
"""


class Site(NamedTuple):
    """A labelled place: in which file of labels it stands, where in a repository, and "high", "medium" or "low" of a
    hazard, or "lookalike"."""

    file: str
    repo: str
    path: str
    first: int
    last: int
    kind: str
    pattern: str
    why: str


# The first and last lines of what is found, by path.
Spans = Mapping[str, Sequence[tuple[int, int]]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("labels", type=Path, nargs="+")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--show", choices=("missed", "alarms"), help="list hazards not found, or lookalikes that are")
    parser.add_argument("--page", type=Path, help="write the table there, as Markdown")
    args = parser.parse_args()
    sites = [site for path in args.labels for site in read(path)]
    there = checkouts({site.repo for site in sites}, args.folder)
    with ThreadPoolExecutor(cpu_count()) as pool:
        spans = dict(zip(there, pool.map(found, there.values()), strict=True))
    sites = [site for site in sites if site.repo in there]
    hit = {site for site in sites if is_hit(site, spans[site.repo])}
    text = table(sites, hit)
    print(text)
    if args.page:
        args.page.write_text(PAGE.format(date=date.today(), table=text), encoding="utf-8")
    shown = {
        None: [],
        "missed": [site for site in sites if site.kind != LOOKALIKE and site not in hit],
        "alarms": [site for site in sites if site.kind == LOOKALIKE and site in hit],
    }
    for site in shown[args.show]:
        print(f"{site.repo}/{site.path}:{site.first} [{site.pattern}] {site.why}")


def read(path: Path) -> list[Site]:
    """The places of a file of labels that a pattern of source text can show."""
    lines = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    return [
        Site(
            path.stem,
            line["repo"],
            line["path"],
            line["line"],
            line.get("end_line") or line["line"],
            line["severity"] if line["verdict"] == "hazard" else LOOKALIKE,
            line["pattern"],
            line["why"],
        )
        for line in lines
        if line["verdict"] != "hazard" or line["pattern"] not in NOT_SHOWN
    ]


def found(folder: Path) -> Spans:
    """The lines of what `check` finds in a checkout now."""
    spans = defaultdict(list)
    for one in checked(folder):
        spans[Path(one["path"]).as_posix()].append((one["line"], one["end_line"]))
    return spans


def is_hit(site: Site, spans: Spans) -> bool:
    """Whether a finding overlaps the site's lines, one line of slack included."""
    return any(first <= site.last + 1 and last >= site.first - 1 for first, last in spans.get(site.path, ()))


def table(sites: Sequence[Site], hit: Iterable[Site]) -> str:
    """Found of labelled, by file and kind, and all together."""
    hits, kinds = set(hit), (*SEVERITIES, LOOKALIKE)
    by_file = {name: [site for site in sites if site.file == name] for name in sorted({site.file for site in sites})}
    rows = [*by_file.items(), *([("all", sites)] if len(by_file) > 1 else [])]
    heads = ("| labels | repositories | high | medium | low | lookalikes |", "|---|---|---|---|---|---|")
    lines = (
        f"| {name} | {len({site.repo for site in some})} | {' | '.join(_found(some, kind, hits) for kind in kinds)} |"
        for name, some in rows
    )
    return "\n".join((*heads, *lines))


def _found(sites: Iterable[Site], kind: str, hits: set[Site]) -> str:
    of_kind = [site for site in sites if site.kind == kind]
    return f"{sum(site in hits for site in of_kind)} of {len(of_kind)}"


if __name__ == "__main__":
    main()
