"""Options and fixtures that more than one test file needs."""

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-pages", action="store_true", help="measure again and rewrite the tables of rules/*.md")


@pytest.fixture(scope="session")
def update_pages(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--update-pages"))
