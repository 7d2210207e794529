"""Findings that are known and left alone for now: the file that lists them, and what is new beside it.

A finding is known by its rule, its file and the text of its line, as often as it is listed: so it stays known where
lines move, and one more of the same kind is new.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from pathlib import Path

from fusionlint.config import ConfigError
from fusionlint.finding import Finding
from fusionlint.source.fix import lines_of
from fusionlint.source.texts import text_of


@dataclass(frozen=True, slots=True, order=True)
class Entry:
    """One known finding: its file, from the baseline's folder on, its rule, and its line without the space around."""

    path: str
    rule: str
    code: str


@dataclass(frozen=True, slots=True)
class Baseline:
    """The known findings, sorted, in the file `path`; `targets` are those that were asked for when it was written."""

    path: Path
    entries: tuple[Entry, ...] = ()
    targets: tuple[str, ...] = ()

    def new(self, findings: Iterable[Finding], data: bytes | None = None) -> list[Finding]:
        """Those of `findings` that are not known; `data` is the text of their file, where it is not that on disk."""
        known = Counter(self.entries)
        new = []
        for finding, entry in self.listed(findings, data):
            if known[entry]:
                known[entry] -= 1
            else:
                new.append(finding)
        return new

    @property
    def text(self) -> str:
        """The file: sorted, an entry a line, so that a diff shows what came and went."""
        rows = [json.dumps(asdict(entry), ensure_ascii=False) for entry in self.entries]
        listed = "[\n    " + ",\n    ".join(rows) + "\n  ]" if rows else "[]"
        return f'{{\n  "version": 1,\n  "targets": {json.dumps(sorted(self.targets))},\n  "findings": {listed}\n}}\n'

    def listed(self, findings: Iterable[Finding], data: bytes | None = None) -> list[tuple[Finding, Entry]]:
        """Every finding with the entry that it would have."""
        folder = self.path.resolve().parent
        found = []
        for path, group in groupby(findings, lambda finding: finding.location.path):
            lines = lines_of(text_of(path) if data is None else data)
            inside = Path(os.path.relpath(Path(path).resolve(), folder)).as_posix()
            found += [(one, Entry(inside, one.rule, lines[one.location.line - 1].strip())) for one in group]
        return found

    def judged(
        self, files: Collection[Path], rules: Collection[str], targets: Sequence[str]
    ) -> tuple[list[Entry], list[Entry]]:
        """The entries that a run over `files` can say something of, and the others.

        It can where it asked the rule about the file, or the file is gone; and where it asked for no fewer targets.
        """
        looked, folder = {path.resolve() for path in files}, self.path.resolve().parent
        whole = not targets or {*self.targets} == {*targets}
        seen: list[Entry] = []
        unseen: list[Entry] = []
        for entry in self.entries:
            path = (folder / entry.path).resolve()
            can = whole and entry.rule in rules and (path in looked or not path.exists())
            (seen if can else unseen).append(entry)
        return seen, unseen


def read_baseline(path: Path) -> Baseline:
    """The baseline in the file `path`. ConfigError where there is none."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        entries = sorted(Entry(str(e["path"]), str(e["rule"]), str(e["code"])) for e in document["findings"])
        version, targets = document["version"], tuple(map(str, document["targets"]))
    except FileNotFoundError:
        command = f"fusionlint check --baseline {path} --write-baseline"
        raise ConfigError(f"there is no baseline {path}; `{command}` writes it") from None
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from None
    except (ValueError, KeyError, TypeError):
        raise ConfigError(f"{path} is not a baseline that fusionlint wrote; delete it and write it anew") from None
    if version != 1:
        raise ConfigError(f"{path} is a baseline of version {version}: a newer fusionlint wrote it")
    return Baseline(path, tuple(entries), targets)
