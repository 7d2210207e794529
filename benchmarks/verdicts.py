"""How often `check` is right, by what people said of its findings in public repositories.

    python benchmarks/verdicts.py benchmarks/read/round19.jsonl FOLDER [--show wrong]

A line of the first file is a finding that somebody read at its place: repo, commit, path, line, rule, why, and the
verdict: "act" on it, "agree" but it is small, or "wrong". FOLDER holds a checkout of each repository at its commit,
called by the last part of its name; what is missing is named and left out. Prints what was said of all that was read,
and of what is still found, in all and without what assumes how its code runs (as with --only-seen): since rules are
mended by what was read, only the first says how right `check` was on code that nobody had looked at. Exit status 2
where no checkout is there, or `check` fails.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

VERDICTS = ("act", "agree", "wrong")
# The script, as users call it: `python -m` would first look for modules among the files that are checked.
CHECK = (str(Path(sys.executable).with_name("fusionlint")), "check", ".", "--no-cache", "--output-format", "json")


class Read(NamedTuple):
    """A finding that somebody read: where it stands in a repository, the rule, and what was said of it; of one that is
    still found, whether it assumes how its code runs."""

    repo: str
    path: str
    line: int
    rule: str
    verdict: str
    why: str
    assumed: bool = False

    @property
    def key(self) -> tuple[str, int, str]:
        return self.path, self.line, self.rule


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("verdicts", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--show", choices=VERDICTS, help="list those that are still found and were called so")
    args = parser.parse_args()
    by_repo: dict[str, list[Read]] = defaultdict(list)
    for line in args.verdicts.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        by_repo[row["repo"]].append(Read(**{name: row[name] for name in row if name in Read._fields}))
    there = {repo: args.folder / repo.rpartition("/")[2] for repo in by_repo}
    missing = sorted(repo for repo, folder in there.items() if not folder.is_dir())
    if missing:
        print(f"not in {args.folder}: {', '.join(missing)}", file=sys.stderr)
    if len(missing) == len(there):
        sys.exit(2)
    rows = [one for repo, some in by_repo.items() if repo not in missing for one in some]
    still = [one for repo, some in by_repo.items() if repo not in missing for one in found(some, there[repo])]
    print(table(rows, still))
    for one in still:
        if one.verdict == args.show:
            print(f"{one.repo}/{one.path}:{one.line} {one.rule}: {one.why}")


def found(rows: Iterable[Read], folder: Path) -> list[Read]:
    """Those of the rows that `check` still finds in a checkout."""
    done = subprocess.run(CHECK, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        print(f"{folder}: {done.stderr[-500:]}", file=sys.stderr)
        sys.exit(2)
    findings = json.loads(done.stdout)["findings"]
    now = {(Path(one["path"]).as_posix(), one["line"], one["rule"]): one["assumed"] for one in findings}
    return [row._replace(assumed=now[row.key]) for row in rows if row.key in now]


def table(rows: Sequence[Read], still: Sequence[Read]) -> str:
    """By rule, those with most wrong ones first: what was said of what was read, and of what is still found."""
    read, left = _by_rule(rows), _by_rule(still)
    rules = sorted(read, key=lambda rule: (-read[rule]["wrong"], rule))
    lines = [f"| {rule} | {_counts(read[rule])} | {_counts(left.get(rule, Counter()))} |" for rule in rules]
    head = ("| rule | act, agree, wrong | still found |", "|---|---|---|")
    seen = [row for row in still if not row.assumed]
    told = (f"read: {_right(rows)}", f"still found: {_right(still)}", f"of these with --only-seen: {_right(seen)}")
    return "\n".join((*head, *lines, "", *told))


def _by_rule(rows: Iterable[Read]) -> Mapping[str, Counter[str]]:
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for row in rows:
        counts[row.rule][row.verdict] += 1
    return counts


def _counts(said: Counter[str]) -> str:
    return ", ".join(str(said[verdict]) for verdict in VERDICTS)


def _right(rows: Sequence[Read]) -> str:
    right = sum(row.verdict != "wrong" for row in rows)
    return f"{right} of {len(rows)} right ({right / max(len(rows), 1):.1%})"


if __name__ == "__main__":
    main()
