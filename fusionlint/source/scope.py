"""What a run looks for: rules, targets, and what some files are not checked for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from fusionlint.finding import Finding
from fusionlint.source.briefs import briefs
from fusionlint.source.per_file import NOWHERE, PerFile

# What is a fourth more is worth leaving a CPU alone for; of one launch in eight that may be a matter of sizes.
_CLEARLY_MORE = 1.25


class Scope(NamedTuple):
    """What to look for: rules by name, the targets that matter (none is all of them), what some files are not checked
    for, whether comments that silence nothing count, and whether findings that assume how their code runs do not;
    `usual` where neither a rule nor a target is named."""

    rules: tuple[str, ...]
    targets: tuple[str, ...] = ()
    per_file: PerFile = NOWHERE
    unused_ignores: bool = False
    only_seen: bool = False
    usual: bool = False

    def rules_in(self, path: str) -> frozenset[str]:
        """The rules that are asked about the file `path`."""
        return frozenset(self.rules) - self.per_file.silent(path)


def usual() -> tuple[str, ...]:
    """The rules that a run looks for where neither a target nor a rule is named. What only makes a CPU compute more
    helps accelerators as a rule, and is written for them: who runs it on a CPU, and minds, says so."""
    return tuple(name for name, brief in briefs().items() if not brief.is_of_arithmetic)


def speaking(names: Iterable[str], targets: Sequence[str]) -> tuple[str, ...]:
    """Those of the rules `names` whose page shows harm on one of `targets` (on any, without targets)."""
    chosen, wanted = {*names}, {*targets, "any"}
    found = {name: brief.targets for name, brief in briefs().items() if name in chosen}
    return tuple(name for name, on in found.items() if on and (not targets or not wanted.isdisjoint(on)))


def matters(finding: Finding, scope: Scope) -> bool:
    """Whether it does harm on a target that was asked for; a page that is being written says not where.

    What costs a CPU alone, and an accelerator would pay for, is of concern to who names a CPU, or the rule.
    """
    if scope.usual and finding.targets == ("cpu",) and _is_paid_elsewhere(finding):
        return False
    return not (finding.targets and scope.targets) or not {*scope.targets, "any"}.isdisjoint(finding.targets)


def _is_paid_elsewhere(finding: Finding) -> bool:
    """Whether the good form has clearly more launches on an accelerator."""
    counts = (m for m in finding.evidence if m.target != "cpu" and m.quantity == "launches")
    return any(m.good > _CLEARLY_MORE * m.bad for m in counts)
