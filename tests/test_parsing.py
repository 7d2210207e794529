"""What rules have libcst parse in real projects: parsing is most of what a first `check` costs, and facts are free."""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import Path

import pytest
from projects import PROJECTS, fetch

from fusionlint.rule import SourceSensor, pages
from fusionlint.source.check import check_files
from fusionlint.source.files import python_files
from fusionlint.source.pieces import Piece
from fusionlint.source.scope import Scope, speaking
from fusionlint.source.tree import Source

# Measured 593, with 104 rules. More is no fault of a rule that finds more; a rule that asks about every loop, or every
# call of `max`, is one: a gate by facts (`like`, `when`) costs nothing.
_MOST = 600
# So many pieces one check of a rule may be the only one to ask about.
_ALONE = 60


@pytest.fixture(scope="module")
def asked() -> dict[tuple[str, Piece], set[str]]:
    """Which checks of rules ask libcst about which pieces of the projects' files."""
    found: dict[tuple[str, Piece], set[str]] = defaultdict(set)
    places = SourceSensor.places

    def noted(self: SourceSensor, source: Source) -> frozenset[Piece]:
        pieces = places(self, source)
        for piece in pieces:
            found[source.path, piece].add(f"{self.check.__module__}.{self.check.__name__}")
        return pieces

    folders = [fetch(project) for project in PROJECTS.values()]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SourceSensor, "places", noted)
        result = check_files(python_files(folders), Scope(speaking(tuple(pages()), ())), jobs=1)
    assert result.problems == ()
    assert len(result.findings) > 50
    return found


def test_few_pieces_of_real_projects_have_to_be_parsed(asked: dict[tuple[str, Piece], set[str]]) -> None:
    assert len(asked) <= _MOST


def test_no_check_alone_has_much_parsed(asked: dict[tuple[str, Piece], set[str]]) -> None:
    alone = Counter(next(iter(checks)) for checks in asked.values() if len(checks) == 1)
    assert {check: count for check, count in alone.items() if count > _ALONE} == {}


def test_what_is_measured_are_files_of_the_projects(asked: dict[tuple[str, Piece], set[str]]) -> None:
    assert len({Path(path) for path, _ in asked}) > 100
