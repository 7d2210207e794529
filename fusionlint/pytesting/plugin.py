"""The pytest plugin, which the entry point `pytest11` names: a fixture, two markers, `--fusionlint`.

pytest imports this at every start, wherever fusionlint is installed. So nothing is imported here that costs anything,
jax least of all: what is asked for is imported when somebody asks for it.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Protocol

import pytest

if TYPE_CHECKING:
    from fusionlint.explained import Report

_MARKERS = {
    "max_launches": "(most, *, target, jaxlib): each function of yours that the test compiles launches at most so many "
    "kernels on the target, present or not; counted with this jaxlib, it warns under another one",
    "max_compiles": "(most, *, jaxlib): each function of yours is compiled at most so many times while the test runs",
}


class Fusion(Protocol):
    """The fixture `fusion`: see `fusionlint.explain`."""

    def __call__(
        self, function: Any, /, *args: Any, target: str = "", timeout: float = 600.0, **kwargs: Any
    ) -> Report: ...


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("fusionlint", "what XLA makes of JAX code")
    group.addoption("--fusionlint", action="store_true", help="Report on everything that the tests compile.")
    group.addoption(
        "--fusionlint-target",
        action="append",
        default=[],
        metavar="NAME[,NAME]",
        help="Hardware to compile for, present or not, where a test names none: cpu, h100, v5e, ...; repeatable.",
    )
    group.addoption(
        "--fusionlint-strict",
        action="store_true",
        help="Fail, not warn, where a budget was counted with another jaxlib, or cannot be checked here.",
    )


def pytest_configure(config: pytest.Config) -> None:
    for name, says in _MARKERS.items():
        config.addinivalue_line("markers", name + says)
    if config.getoption("--fusionlint"):
        from fusionlint.pytesting.summary import Summary

        config.pluginmanager.register(Summary(config), "fusionlint-summary")


@pytest.hookimpl(trylast=True)  # of the tests that are left
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if any(item.get_closest_marker(name) for item in items for name in _MARKERS):
        from fusionlint.pytesting.marks import Budgets

        config.pluginmanager.register(Budgets(), "fusionlint-budgets")


@pytest.fixture
def fusion(request: pytest.FixtureRequest) -> Fusion:
    """What XLA makes of a function: `fusion(step, state, key, target="h100")` is a report, as of `fusionlint.explain`.

    A test that fails shows its reports, each barrier at its line.
    """
    from fusionlint.explaining import explain

    def explained(function: Any, /, *args: Any, target: str = "", timeout: float = 600.0, **kwargs: Any) -> Report:
        from fusionlint.pytesting.targets import names
        from fusionlint.report.explain_head import IN_PYTEST
        from fusionlint.report.explain_text import report_text

        wanted = target or next(iter(names(request.config)), "")
        report = explain(function, *args, target=wanted, timeout=timeout, **kwargs)
        request.node.add_report_section("call", "fusionlint", report_text(report, option=IN_PYTEST))
        return report

    return explained


def pytest_assertrepr_compare(op: str, left: object, right: object) -> list[str] | None:
    """`assert report.launches <= 6` shows the report's barriers."""
    explained = sys.modules.get("fusionlint.explained")
    counts = [one for one in (left, right) if explained and isinstance(one, explained.Count)]
    if not counts:
        return None
    from fusionlint.report.budget_text import compared_lines

    return [*compared_lines(left, op, right, counts[0].report)]
