"""What a package says of the hardware that it runs on: which of a finding's targets are not its own.

In: findings. Out: the same about the targets that are left, without those of which none is. It is said at the level of
an `__init__.py` above the file, and runs whenever something of the package is imported: `JAX_PLATFORMS` that is "cpu",
or 64 bits, which a TPU emulates, so that nobody runs them there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from fusionlint.finding import Finding
from fusionlint.lazily import regex
from fusionlint.source.scope import Scope
from fusionlint.source.stand import project_folder
from fusionlint.source.texts import text_of

# A statement at the module's own level, by whatever names: `os.environ["A"] = `, `config.update("a", `.
_SETS = r"""^\w[\w.]*(?:\[|\.setdefault\(|\.update\()\s*["']"""
_CPU = regex(_SETS + r"""jax_platform(?:s|_name)["']\]?\s*[,=]\s*["']cpu["']""", re.M | re.I)
_WIDE = regex(_SETS + r"""jax_enable_x64["']\]?\s*[,=]\s*["']?(?:true|1)\b""", re.M | re.I)
_TPU = "v5e"
_HERE = frozenset(("cpu", "any"))


def concerning(findings: Iterable[Finding], scope: Scope) -> Iterator[Finding]:
    """The findings about targets that their packages are for; all of them where the run names targets."""
    known: dict[Path, frozenset[str]] = {}
    for finding in findings:
        foreign = frozenset[str]() if scope.targets or _HERE.issuperset(finding.targets) else _foreign(finding, known)
        left = tuple(target for target in finding.targets if target not in foreign)
        if left or not finding.targets:
            evidence = tuple(one for one in finding.evidence if one.target not in foreign)
            unclaimed = tuple(one for one in finding.unclaimed if one not in foreign)
            yield finding._replace(targets=left, evidence=evidence, unclaimed=unclaimed) if foreign else finding


def _foreign(finding: Finding, known: dict[Path, frozenset[str]]) -> frozenset[str]:
    """The targets of a finding that the packages around its file, in its project, are not for. A folder between them
    may have no `__init__.py`: it is imported through theirs all the same."""
    foreign: set[str] = set()
    path = Path(finding.location.path).absolute()
    top = project_folder(path)
    for folder in path.parents:
        if folder not in known:
            known[folder] = _said(folder)
        foreign |= known[folder]
        if folder == top:
            break
    return frozenset(finding.targets) - _HERE if "*" in foreign else frozenset(foreign)


def _said(folder: Path) -> frozenset[str]:
    """What the package in a folder is not for, "*" for all but a CPU."""
    try:
        text = text_of(folder / "__init__.py").decode("utf-8", "ignore")
    except OSError:  # no package
        return frozenset()
    if _CPU.search(text):
        return frozenset("*")
    return frozenset((_TPU,)) if _WIDE.search(text) else frozenset()
