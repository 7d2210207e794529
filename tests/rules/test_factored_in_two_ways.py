"""factored-in-two-ways: a helper that solves is known by what it calls."""

from __future__ import annotations

from pathlib import Path

import pytest

from fusionlint.source.check import check_files
from fusionlint.source.scope import Scope

HELPER = """
import jax.numpy as jnp
from jax.scipy.linalg import cho_factor, cho_solve

def {name}(a, b):
    return {solved}
"""
USES = """
import jax
from jax.scipy.stats import multivariate_normal
from helpers import {name}

def step(s, p, y, mean):
    gain = {name}(s, p)
    return gain, multivariate_normal.logpdf(y, mean, {covariance})
"""
CHOLESKY = "cho_solve(cho_factor(a), b)"


@pytest.mark.parametrize(
    ("name", "solved", "covariance", "count"),
    [
        ("psd_solve", CHOLESKY, "s", 1),
        ("psd_solve", "a @ b", "s", 0),
        ("sampled", CHOLESKY, "s", 0),
        ("psd_solve", CHOLESKY, "p", 0),
        ("psd_solve", CHOLESKY, "cov=s", 1),
    ],
)
def test_a_helper_of_another_file(tmp_path: Path, name: str, solved: str, covariance: str, count: int) -> None:
    (tmp_path / "helpers.py").write_text(HELPER.format(name=name, solved=solved))
    (tmp_path / "uses.py").write_text(USES.format(name=name, covariance=covariance))
    assert len(check_files(sorted(tmp_path.glob("*.py")), Scope(("factored-in-two-ways",))).findings) == count
