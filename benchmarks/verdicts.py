"""How often `check` is right, by what people said of its findings in public repositories.

    python benchmarks/verdicts.py benchmarks/read/round*.jsonl FOLDER [--show wrong] [--page docs/precision.md]

A line of these files is a finding that somebody read at its place: repo, commit, path, line, rule, why, and the
verdict: "act" on it, "agree" but it is small, or "wrong". FOLDER holds a checkout of each repository at its commit,
called by the last part of its name; what is missing is named and left out. Prints by file and by rule what was said of
all that was read, and of what is still found, in all and without what assumes how its code runs (as with --only-seen):
since rules are mended by what was read, only the first says how right `check` was on code that nobody had looked at.
Of a place that was read more than once the last verdict counts for what is still found. `--page` writes the tables.
Exit status 2 where no checkout is there, or `check` fails.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
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

What was read first is the honest figure for code that fusionlint has not met: rules were mended by it afterwards, so
that what is still found is right more often than it will be in yours. Readers differ: of the 70 findings of round 34
one who measured by the labels of the project's owner called 51 right, and one who was asked to be sceptical 29 (whose
verdicts, in sceptic34.jsonl, are not in the tables). Round 38 read 120 findings of six projects whose places the owner
had labelled before: of the 29 that its readers call wrong those labels call 10 hazards. Rounds 39 and 40 took
at most three findings at a time of each of 156 packages of PyPI: of the 100 that are wrong there 63 are of code that
runs once, is dead or a demonstration, or is tiny beside the work around it, and 37 are not so or advice that does not
fit. Rounds 41 to 43 read only what rules had come to find on one day each, when many were widened
([reach.md](reach.md)), before anything was mended by it: 66 of 98 right, 33 of 48, and 40 of 56. Round 44 drew 20
findings at random in each of six projects that nobody had seen, for two readers: 88 of 120 are right (axiom 16 of 20,
b3d 12, ad_afqmc 12, artifex 18, evox 15, jqmc 15), and of the 32 that are wrong 18 are of code that runs once, is dead,
a demonstration or a test's own reference. Round 45 is all that was found in nine smaller ones: 30 of 46.
Round 47 drew 120 of 1927 findings that nobody had read in the 306 projects which are checked all the time, at most four
in each, for two readers: one called 52 of 60 right, the other 41, 93 in all; of the 27 that are wrong 20 are of code
that runs once, is dead or a demonstration, or is tiny beside the work around it.
Round 49 drew 20 findings at random in each of nine projects of research that nobody had seen, for three readers: 100 of
180 are right (MEAL 15 of 20, script-doctor 14, gfnx 10, aux-ssm-samplers 9, ceridwen 16, rfx-fdtd 9,
variational_sampling_methods 8, simformer 7, emevo 12), and of the 80 that are wrong 55 are of code that runs once or is
dead, or is tiny beside the work around it.
Round 50 drew 80 in thirteen others, after what round 49 called wrong was mended: 54 are right (circulax 9 of 20,
somax 20, infodynamics-jax 11, ten smaller ones 14); 8 of the 26 that are wrong are one loop of two turns.
Round 51 read what nobody had read in 39 well-known packages of those 306 (all of it in JaxMARL, pgx, Craftax,
jumanji, xland-minigrid, mujoco_playground and Stoix, 130 at random in the others), for three readers: 300 of 361 are
right, 83 % (JaxMARL 61 of 83, of which ten wrong ones stand in files that cannot be imported; Craftax and jumanji 62
of 67, pgx 27 of 28); 40 of the 61 that are wrong are of code that runs once or is dead, or is tiny beside the work
around it. Round 52 read 140 in 43 small projects that nobody had seen, at most four in each, for a fourth reader: 104
are right, 74 %. After what they called wrong was mended all 404 right ones are still found, and 42 of the 97 others,
16 of these with another advice.

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
    rows = [row for path in args.verdicts for row in read(path)]
    there = checkouts({row.repo for row in rows}, args.folder)
    with ThreadPoolExecutor(cpu_count()) as pool:
        now = {place: assumed for one in pool.map(found, there.items()) for place, assumed in one.items()}
    rows = [row for row in rows if row.repo in there]
    still = [row._replace(assumed=now[row.key]) for row in last_said(rows) if row.key in now]
    text = "\n\n".join(tables(rows, still))
    print(text)
    if args.page:
        args.page.write_text(PAGE.format(date=date.today(), tables=text), encoding="utf-8")
    for one in still:
        if one.verdict == args.show:
            print(f"{one.repo}/{one.path}:{one.line} {one.rule}: {one.why}")


def read(path: Path) -> list[Read]:
    """The rows of a file of verdicts."""
    lines = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    return [Read(path.stem, **{name: line[name] for name in Read._fields if name in line}) for line in lines]


def checkouts(repos: Collection[str], folder: Path) -> dict[str, Path]:
    """Where each repository lies in `folder`, of those there; the others are named, and without any it ends."""
    there = {repo: at for repo in sorted(repos) if (at := folder / repo.rpartition("/")[2]).is_dir()}
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


def tables(rows: Sequence[Read], still: Sequence[Read]) -> Iterator[str]:
    """By file where there are several, by rule, those with most wrong ones first; and all together."""
    seen = [row for row in still if not row.assumed]
    yield "\n".join(
        f"- {name}: {_right(some)}"
        for name, some in (("read", rows), ("still found", still), ("of these with --only-seen", seen))
    )
    by_file = _by(rows, lambda row: row.file)
    if len(by_file) > 1:
        yield _table("file", by_file, _by(still, lambda row: row.file), sorted(by_file))
    by_rule, left = _by(rows, lambda row: row.rule), _by(still, lambda row: row.rule)
    wrong = {rule: sum(row.verdict == "wrong" for row in left.get(rule, ())) for rule in by_rule}
    yield _table("rule", by_rule, left, sorted(by_rule, key=lambda rule: (-wrong[rule], rule)))


def _by(rows: Iterable[Read], of: Callable[[Read], str]) -> dict[str, list[Read]]:
    found: dict[str, list[Read]] = defaultdict(list)
    for row in rows:
        found[of(row)].append(row)
    return found


def _table(name: str, read: dict[str, list[Read]], left: dict[str, list[Read]], order: Sequence[str]) -> str:
    heads = (f"| {name} | act, agree, wrong | still found: act, agree, wrong | right |", "|---|---|---|---|")
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
