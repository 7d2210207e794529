"""What the fixes of `check` make of gymnax as it is: one step of 4096 environments, each fix compiled alone.

    pip install -e '.[cuda,examples]'
    python benchmarks/tried.py [--target h100] [NAME...]

As `fusionlint explain --try-fixes` says of each; a row a fix, and how many were better, the same and worse.
"""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path

from gymnax_envs import ENVIRONMENTS, STEPS

from fusionlint.compiling import targets
from fusionlint.compiling.artifacts import Job
from fusionlint.compiling.entry import parse_spec
from fusionlint.explained import Report
from fusionlint.report.units import differences
from fusionlint.tasks import explain_all
from fusionlint.trials import Trial
from fusionlint.trying import fixable, tried

SLOW = ("Freeway", "Seaquest")  # up to a minute for each compilation, and a dozen fixes
TIMEOUT = 600.0


def trials(name: str, target: targets.Target) -> tuple[Trial, ...]:
    """Of the environment's step. Raises RuntimeError where it does not compile."""
    job = Job(parse_spec(f"{STEPS}:{name}"))
    (report,) = explain_all([(job, target)], timeout=TIMEOUT)
    if not isinstance(report, Report):
        raise RuntimeError(report.message)
    return tried(fixable(report, target), report, job, target, TIMEOUT)


def row(name: str, trial: Trial) -> str:
    """`| Asterix | asterix.py:225 choice-with-probabilities | better | 68 -> 56 launches, ... |`."""
    where = trial.fixes[0].location
    one = f"{Path(where.path).name}:{where.line} {trial.fixes[0].rule}"
    what = one if len(trial.fixes) == 1 else f"{len(trial.fixes)} together"
    return f"| {name} | {what} | {trial.word} | {differences(trial.measured) or trial.error} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    quick = [name for name in ENVIRONMENTS if name not in SLOW]
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"by default {', '.join(quick)}")
    parser.add_argument("--target", default="h100")
    options = parser.parse_args()
    words: Counter[str] = Counter()
    print(f"| one step of 4096 | fix | on {options.target} | |\n|---|---|---|---|")
    for name in options.names or quick:
        for trial in trials(name, targets.get(options.target)):
            words[trial.word] += len(trial.fixes) == 1
            print(row(name, trial), flush=True)
    print(", ".join(f"{count} {word}" for word, count in words.items() if count))


if __name__ == "__main__":
    main()
