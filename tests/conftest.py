"""Options and fixtures that more than one test file needs."""

from __future__ import annotations

import package_index
import projects
import pytest

pytest_plugins = ("compilers",)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-pages", action="store_true", help="measure again and rewrite the tables of rules/*.md")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "any_jax: holds with every jax that is supported; .ci/versions.py runs these")


@pytest.fixture(scope="session")
def update_pages(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--update-pages"))


@pytest.fixture(scope="session", params=projects.folders(), ids=lambda folder: folder.name)
def checked(request: pytest.FixtureRequest) -> projects.Checked:
    """A real project, checked once for all tests that go by what was found in it."""
    if not request.param.exists():
        package_index.require()
        projects.fetch(next(p for p in projects.PROJECTS.values() if projects.cached(p) == request.param))
    return projects.check(request.param)
