"""Which hardware a pytest run is about."""

from __future__ import annotations

import pytest

from fusionlint.config import ConfigError, read_config


def names(config: pytest.Config) -> list[str]:
    """Those of `--fusionlint-target`, else those of [tool.fusionlint]; [] for the default. Raises pytest.UsageError."""
    given = [part.strip() for text in config.getoption("--fusionlint-target") for part in text.split(",")]
    try:
        return [*filter(None, given)] or [*read_config(config.rootpath).target]
    except ConfigError as error:
        raise pytest.UsageError(f"fusionlint: {error}") from None
