"""`fusionlint` run in this process, and a file with one hazard in it."""

from __future__ import annotations

from click.testing import CliRunner, Result

from fusionlint.cli import main

CALL = "jnp.zeros((n, 2)).at[:, 0].set(s[:, 1]).at[:, 1].set(s[:, 0])"
HAZARD = f"import jax.numpy as jnp\n\n\ndef swap(s):\n    n = s.shape[0]\n    return {CALL}\n"
RULE = "columns-by-at-set"


def run(*args: str) -> Result:
    result = CliRunner().invoke(main, list(args))
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exc_info
    return result
