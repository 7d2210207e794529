"""Transforms in a comprehension: of fields that exist already and are seen to be of one shape."""

from __future__ import annotations

import pytest

from fusionlint.source.judging import check_text
from fusionlint.source.scope import Scope

CODE = """
import jax
import jax.numpy as jnp

@jax.jit
def stepped(solve, x, sizes, state):
    fft = jnp.fft.rfft2
    ifft = jnp.fft.irfft2
    both = [x.u, x.v]
    alone = [x.u]
    return COMPREHENSION
"""
FIELDS = {
    "on their way back": ("tuple(ifft(u) for u in x)", 1),
    "in a list": ("[ifft(u.data) for u in state.hats]", 1),
    "written out": ("[ifft(u) for u in (x.u, x.v)]", 1),
    "written out before": ("[ifft(u) for u in both]", 1),
    "made together": ("[fft(u) for u in solve(x)]", 1),
    "of one size": ("[ifft(u, s=sizes) for u in x]", 1),
    "each with more around it": ("[2 * jnp.roll(ifft(u), 1) for u in x]", 1),
    "one": ("[ifft(u) for u in alone]", 0),
    "handed, on their way there": ("[fft(u) for u in x]", 0),
    "kernels": ("[ifft(kernel) for kernel in state.kernels]", 0),
    "made where they are transformed": ("[ifft(x * u) for u in sizes]", 0),
    "by number": ("[ifft(x[i]) for i in range(3)]", 0),
    "of sizes of their own": ("[ifft(u, s=u.shape) for u in x]", 0),
    "of pairs": ("[ifft(u, s) for u, s in zip(x, sizes)]", 0),
    "some": ("[ifft(u) for u in x if u is not None]", 0),
    "leaves": ("[ifft(u) for u in jax.tree.leaves(x)]", 0),
    "values": ("[ifft(u) for u in x.values()]", 0),
    "in a comprehension of others": ("[[ifft(u) for u in each] for each in x]", 0),
}


@pytest.mark.parametrize(("comprehension", "count"), FIELDS.values(), ids=FIELDS)
def test_fields_of_a_comprehension(comprehension: str, count: int) -> None:
    code = CODE.replace("COMPREHENSION", comprehension)
    assert len(check_text(code.encode(), "m.py", Scope(("ffts-one-by-one",)))) == count


JVP = """
import jax
import jax.numpy as jnp

@jax.custom_jvp
def smooth(x):
    return jnp.fft.irfft(jnp.fft.rfft(x) * 0.5)

{above}
def smooth_jvp(primals, tangents):
    hat = jnp.fft.rfft(primals[0] * tangents[0])
    return jnp.fft.irfft(hat * 0.5), jnp.fft.irfft(hat * 0.25)
{below}
"""


@pytest.mark.parametrize(
    ("above", "below", "number"),
    [("@smooth.defjvp", "", 0), ("", "smooth.defjvp(smooth_jvp)", 0), ("@jax.jit", "", 1)],
)
def test_a_primal_and_its_tangent_are_not_joined(above: str, below: str, number: int) -> None:
    code = JVP.format(above=above, below=below)
    assert len(check_text(code.encode(), "m.py", Scope(("ffts-one-by-one",)))) == number
