"""How often `check` is right, by what people said of its findings in public repositories.

    python benchmarks/verdicts.py benchmarks/read/round*.jsonl FOLDER [--show wrong] [--page docs/precision.md]

A line of these files is a finding that somebody read at its place: repo, commit, path, line, rule, why, and the
verdict: "act" on it, "agree" but it is small, or "wrong". FOLDER holds a checkout of each repository at its commit,
called by the last part of its name (OWNER+NAME where two share that). Prints by file what was said of all that was read
(what it was drawn from stands in rounds.json beside the files), and by rule, for the checkouts that are there, what was
said and what of it is still found, in all and without what assumes how its code runs (as with --only-seen): since rules
are mended by what was read, only the first says how right `check` was on code that nobody had looked at. Of a place
that was read more than once the last verdict counts for what is still found. What is missing is named. `--page` writes
the tables.
Exit status 2 where no checkout is there, or `check` fails.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from os import cpu_count
from pathlib import Path
from typing import Any, NamedTuple

VERDICTS = ("act", "agree", "wrong")
# The script, as users call it: `python -m` would first look for modules among the files that are checked.
SCRIPT = str(Path(sys.executable).with_name("fusionlint"))
CHECK = (SCRIPT, "check", ".", "--no-cache", "--jobs", "1", "--output-format", "json")
PAGE = """\
# How often is `check` right?

Findings in public repositories, read one by one at their places by somebody who had not seen them before, with the
code around them, its callers and the rule's page: would an engineer who knows XLA act on it ("act"), agree that it is
so though it is small ("agree"), or is it wrong: not so, advice that does not fit, or code of which nobody minds the
speed ("wrong": dead, run once, a demonstration, tiny beside the work around it). Each verdict stands with its reason in
[benchmarks/read/](../benchmarks/read); pypi/NAME is a wheel of PyPI, its commit the version. {date}; with checkouts of
the repositories in FOLDER, the tables are made by

    python benchmarks/verdicts.py benchmarks/read/round*.jsonl FOLDER --page docs/precision.md

## As it was read

Rules were mended by what readers called wrong, so the honest figure for code that fusionlint has not met is what was
right when it was read, round by round. It depends on whose code it is: of well-known packages 76 to 91 of a hundred
findings are right, of small projects of research five to seven of ten. More than half of what is wrong is so because
nobody minds the speed of that code, which no pattern of source text knows for certain. And it depends on the reader:
two who did not know of each other differed by up to 30 of 100 on the same findings.

{rounds}

## What is still found

Of what was read in {number} repositories, what `check` finds today. Of a place that was read twice the last verdict
counts. They are {names}.

{tables}
"""


class Read(NamedTuple):
    """A finding that somebody read: in which file of verdicts it stands, where in a repository, the rule, and what was
    said of it; of one that is still found, whether it assumes how its code runs."""

    file: str
    repo: str
    path: str
    line: int
    rule: str
    verdict: str
    why: str
    assumed: bool = False

    @property
    def key(self) -> tuple[str, str, int, str]:
        return self.repo, self.path, self.line, self.rule


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("verdicts", type=Path, nargs="+")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--show", choices=VERDICTS, help="list those that are still found and were called so")
    parser.add_argument("--page", type=Path, help="write the tables there, as Markdown")
    args = parser.parse_args()
    rounds = {path.stem: read(path) for path in args.verdicts}
    rows = [row for some in rounds.values() for row in some]
    there = checkouts({row.repo for row in rows}, args.folder)
    with ThreadPoolExecutor(cpu_count()) as pool:
        now = {place: assumed for one in pool.map(found, there.items()) for place, assumed in one.items()}
    rows = [row for row in rows if row.repo in there]
    still = [row._replace(assumed=now[row.key]) for row in last_said(rows) if row.key in now]
    by_round, now_found = as_read(rounds, drawn(args.verdicts[0].parent)), "\n\n".join(tables(rows, still))
    print(f"{by_round}\n\n{now_found}")
    if args.page:
        told = {"rounds": by_round, "number": len(there), "names": ", ".join(there), "tables": now_found}
        args.page.write_text(PAGE.format(date=date.today(), **told), encoding="utf-8")
    for one in still:
        if one.verdict == args.show:
            print(f"{one.repo}/{one.path}:{one.line} {one.rule}: {one.why}")


def read(path: Path) -> list[Read]:
    """The rows of a file of verdicts."""
    lines = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    return [Read(path.stem, **{name: line[name] for name in Read._fields if name in line}) for line in lines]


def checkouts(repos: Collection[str], folder: Path) -> dict[str, Path]:
    """Where each repository lies in `folder`, of those there; the others are named, and without any it ends. Of two
    with one name each lies in OWNER+NAME."""
    sharing = Counter(repo.rpartition("/")[2] for repo in repos)
    names = {repo: repo.rpartition("/")[2] for repo in sorted(repos)}
    places = {repo: folder / (name if sharing[name] == 1 else repo.replace("/", "+")) for repo, name in names.items()}
    there = {repo: at for repo, at in places.items() if at.is_dir()}
    if len(there) < len(repos):
        print(f"not in {folder}: {', '.join(repo for repo in sorted(repos) if repo not in there)}", file=sys.stderr)
    if not there:
        sys.exit(2)
    return there


def found(repo: tuple[str, Path]) -> dict[tuple[str, str, int, str], bool]:
    """What `check` finds in a checkout now, and whether it assumes how the code runs."""
    name, folder = repo
    findings = checked(folder)
    return {(name, Path(one["path"]).as_posix(), one["line"], one["rule"]): one["assumed"] for one in findings}


def checked(folder: Path) -> list[dict[str, Any]]:
    """What `check` finds in a folder now, as its JSON says it."""
    done = subprocess.run(CHECK, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        print(f"{folder}: {done.stderr[-500:]}", file=sys.stderr)
        sys.exit(2)
    findings: list[dict[str, Any]] = json.loads(done.stdout)["findings"]
    return findings


def last_said(rows: Iterable[Read]) -> list[Read]:
    """Each place once, with what was said of it last."""
    return [*{row.key: row for row in rows}.values()]


def drawn(folder: Path) -> dict[str, str]:
    """What each round drew its findings from, where somebody wrote it down beside the verdicts."""
    path = folder / "rounds.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}


def as_read(rounds: Mapping[str, Sequence[Read]], drawn_from: Mapping[str, str]) -> str:
    """How much of each round was right when it was read, and of all of them."""
    everything = [row for rows in rounds.values() for row in rows]
    lines = [
        f"| {name} | {_counts(rows)} | {_share(rows)} | {drawn_from.get(name, '')} |".replace("  ", " ")
        for name, rows in rounds.items()
    ]
    heads = ["| round | act, agree, wrong | right | drawn from |", "|---|---|---|---|"]
    return "\n".join((*heads, *lines, f"| all | {_counts(everything)} | {_share(everything)} | |"))


def tables(rows: Sequence[Read], still: Sequence[Read]) -> Iterator[str]:
    """All together; and by rule, those with most wrong ones first."""
    seen = [row for row in still if not row.assumed]
    yield "\n".join(
        f"- {name}: {_right(some)}"
        for name, some in (("read", rows), ("still found", still), ("of these with --only-seen", seen))
    )
    by_rule, left = _by(rows, lambda row: row.rule), _by(still, lambda row: row.rule)
    wrong = {rule: sum(row.verdict == "wrong" for row in left.get(rule, ())) for rule in by_rule}
    yield _by_rule(by_rule, left, sorted(by_rule, key=lambda rule: (-wrong[rule], rule)))


def _by(rows: Iterable[Read], of: Callable[[Read], str]) -> dict[str, list[Read]]:
    found: dict[str, list[Read]] = defaultdict(list)
    for row in rows:
        found[of(row)].append(row)
    return found


def _by_rule(read: dict[str, list[Read]], left: dict[str, list[Read]], order: Sequence[str]) -> str:
    heads = ("| rule | act, agree, wrong | still found: act, agree, wrong | right |", "|---|---|---|---|")
    now = {one: left.get(one, []) for one in order}
    lines = (f"| {one} | {_counts(read[one])} | {_counts(now[one])} | {_share(now[one])} |" for one in order)
    return "\n".join((*heads, *lines))


def _counts(rows: Iterable[Read]) -> str:
    said = Counter(row.verdict for row in rows)
    return ", ".join(str(said[verdict]) for verdict in VERDICTS)


def _right(rows: Sequence[Read]) -> str:
    right = sum(row.verdict != "wrong" for row in rows)
    return f"{right} of {len(rows)} right ({_share(rows) or 'none'})"


def _share(rows: Sequence[Read]) -> str:
    return f"{sum(row.verdict != 'wrong' for row in rows) / len(rows):.0%}" if rows else ""


if __name__ == "__main__":
    main()
