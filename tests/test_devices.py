"""What code asks about its device while it is traced is answered for the target."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from fusionlint.compiling.devices import as_where_it_runs

jax = pytest.importorskip("jax")


@pytest.mark.parametrize(("platform", "said"), [("cpu", "cpu"), ("cuda", "gpu"), ("tpu", "tpu")])
def test_code_is_told_what_it_is_told_on_the_target_and_only_then(platform: str, said: str) -> None:
    here = jax.default_backend
    assert as_where_it_runs(jax.default_backend, platform) == here()  # it was taken before
    assert as_where_it_runs(lambda: jax.default_backend(), platform) == said
    assert jax.default_backend is here


def test_other_threads_are_told_where_they_are() -> None:
    with ThreadPoolExecutor(1) as pool:
        asked = as_where_it_runs(lambda: pool.submit(lambda: jax.default_backend()).result(), "tpu")
    assert asked == jax.default_backend()


def test_what_fails_where_it_runs_is_traced_as_here() -> None:
    said: list[str] = []

    def trace() -> str:
        said.append(jax.default_backend())
        jax.devices(said[-1])
        return said[-1]

    assert as_where_it_runs(trace, "tpu") == "cpu"
    assert said == ["tpu", "cpu"]


@pytest.mark.parametrize("asks", [True, False])
def test_an_error_that_comes_of_nothing_it_was_told_comes_once(asks: bool) -> None:
    """Whoever asks, and runs on the target, was told the truth."""
    traced: list[str] = []

    def trace() -> None:
        traced.append(jax.default_backend() if asks else "")
        raise ValueError("the user's own")

    with pytest.raises(ValueError, match="the user's own"):
        as_where_it_runs(trace, "cpu" if asks else "tpu")
    assert len(traced) == 1
