"""complex-fft-of-real: how long the result is, and what a filter has to be."""

from __future__ import annotations

import numpy as np
import pytest

from fusionlint.source.judging import check_text
from fusionlint.source.scope import Scope

HALF = "; a filter has to be that of real weights, and is cut to its half, [..., : n // 2 + 1]"


@pytest.mark.parametrize(
    ("computed", "instead"),
    [
        ("fft.ifft(fft.fft(signal) * 2).real", f"rfft and irfft(..., n=signal.shape[-1]), if the data is real{HALF}"),
        (
            "fft.ifft(fft.fft(signal, axis=0) * filter, axis=0).real",
            f"rfft and irfft(..., n=signal.shape[0]), if the data is real{HALF}",
        ),
        (
            "fft.ifftn(fft.fftn(signal, axes=(-2, -1)), axes=(-2, -1)).real",
            f"rfftn and irfftn(..., s=[signal.shape[i] for i in (-2, -1)]), if the data is real{HALF}",
        ),
        (
            "fft.ifft2(fft.fft2(signal) * fft.fft2(filter)).real",
            "rfft2 and irfft2(..., s=signal.shape[-2:]), if the data is real",
        ),
        (
            "fft.ifft(fft.fft(signal + 1) * fft.fft(filter)).real",
            "rfft and irfft(..., n=x.shape[-1]), if the data is real",
        ),
        (  # padded: what comes back is as long as that
            "fft.ifftn(fft.fftn(signal, s=padded) * fft.fftn(filter, s=padded)).real",
            "rfftn and irfftn(..., s=padded), if the data is real",
        ),
        (
            "fft.ifft(fft.fft(signal, 2 * n) * fft.fft(filter, 2 * n)).real",
            "rfft and irfft(..., n=2 * n), if the data is real",
        ),
        (
            "fft.ifft(fft.fft(signal) * fft.fft(filter), n=length).real",
            "rfft and irfft(..., n=length), if the data is real",
        ),
    ],
)
def test_the_length_is_that_of_what_is_transformed(computed: str, instead: str) -> None:
    code = f"import jax\nfrom jax.numpy import fft\n\n@jax.jit\ndef f(signal, filter):\n    return {computed}\n"
    (found,) = check_text(code.encode(), "m.py", Scope(("complex-fft-of-real",)))
    assert found.suggestion is not None
    assert found.suggestion.text == instead


def test_functions_that_are_imported_by_name_are_called_what_they_are_called() -> None:
    code = (
        "import jax\nfrom jax.numpy.fft import fftn, ifftn\n\n@jax.jit\ndef f(signal):\n"
        "    return ifftn(fftn(signal) * 2).real\n"
    )
    (found,) = check_text(code.encode(), "m.py", Scope(("complex-fft-of-real",)))
    assert found.suggestion is not None
    assert found.suggestion.text.startswith("rfftn and irfftn(..., s=signal.shape)")


@pytest.mark.parametrize("points", [8, 9])
@pytest.mark.parametrize("is_cut", [False, True])
def test_a_derivative_is_the_same_by_half_a_spectrum_without_the_highest_frequency(points: int, is_cut: bool) -> None:
    x = np.random.default_rng(0).normal(size=(points, points))
    k = np.fft.fftfreq(points)[:, None]
    k = np.where(np.abs(k) == 0.5, 0.0, k) if is_cut else k
    whole = np.fft.ifft2(1j * k * np.fft.fft2(x)).real
    half = np.fft.irfft2(1j * k * np.fft.rfft2(x), s=x.shape)
    assert np.allclose(whole, half) is (is_cut or points % 2 == 1)
