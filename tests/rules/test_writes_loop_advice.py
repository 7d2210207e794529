"""What is said of loops has to hold of each turn: pieces of one shape, values that can be worked out at once."""

from __future__ import annotations

from textwrap import dedent

import pytest

from fusionlint.source.judging import check_text
from fusionlint.source.scope import Scope

HEAD = """\
import jax
import jax.numpy as jnp


def _slice_of(offset):
    return slice(offset, None) if offset > 0 else slice(None, offset)


def _entry(m, n):
    return 1j * m if n < 0 else jnp.sqrt(m)


def _product(m, n):
    return m * n


"""
FIELD = """
@jax.jit
def inject(E, parts, scale, grid_slice, a, b):
    for axis in range(3):
        part = scale * parts[axis]
        E = E.at[axis, *grid_slice].add(part)
    return E
"""
PLACES = """
@jax.jit
def tied(x, value, places):
    for t in places:
        x = x.at[:, t].set(value)
    return x
"""
LAYERS = """
@jax.jit
def skipped(mask, layers, begin, count):
    for layer in layers:
        mask = mask.at[layer, begin::count].set(0)
    return mask
"""
DIAGONALS = """
@jax.jit
def transposed(diags, offsets):
    out = jnp.zeros_like(diags)
    for i, offset in enumerate(offsets):
        cut = _slice_of(offset)
        out = out.at[..., i, cut].set(diags[..., i, cut])
    return out
"""
MATRIX = """
@jax.jit
def matrix(x, l):
    for n in range(2 * l):
        x = x.at[n, 0].set(_entry(l, n))
    return x
"""
CUT = """
@jax.jit
def forces(de, slices, v):
    for k, ia in enumerate(range(8)):
        p0, p1 = slices[ia]
        de = de.at[k].set(jnp.sum(v[:, p0:p1], axis=1))
    return de
"""
ROTATED = """
@jax.jit
def rotated(flm, dl, L):
    for el in range(L):
        m = jnp.arange(-el, el + 1)
        flm = flm.at[el, L - 1 + m].add(dl[el, m])
    return flm
"""


def advice(code: str) -> list[str]:
    found = check_text((HEAD + dedent(code)).encode(), "m.py", Scope(("chained-at-set",)))
    return [one.suggestion.text for one in found if one.suggestion is not None]


@pytest.mark.parametrize(
    ("code", "old", "new", "said"),
    [
        pytest.param(FIELD, "", "", "`E.at[:3, *grid_slice].add(...)` of one jnp.stack of them", id="a block"),
        pytest.param(FIELD, "range(3)", "(0, a, b)", "`E.at[places, *grid_slice].add(...)` of", id="of some axes"),
        pytest.param(FIELD, ", *grid_slice", ", 1:-1", "`E.at[:3, 1:-1].add(...)` of", id="a slice"),
        pytest.param(FIELD, "range(3)", "scale", "both stacked, or joined", id="of what nobody sees"),
        pytest.param(PLACES, "", "", "`x.at[indices].set(value)` of the places of all t; an array with", id="a value"),
        pytest.param(PLACES, "value)", "2 * value[t])", "the values of all t at once (jax.vmap)", id="of its own"),
        pytest.param(LAYERS, "", "", "`mask.at[indices].set(0)` of the places of all layer", id="a number"),
        pytest.param(
            LAYERS, "begin::", "layer:layer + ", "arrays of indices along each axis", id="a window of its own"
        ),
        pytest.param(DIAGONALS, "", "", "each brought to one shape by jnp.pad", id="parts of rows"),
        pytest.param(DIAGONALS, "_slice_of(offset)", "jnp.flip(offset)", "both stacked, or joined", id="or arrays"),
        pytest.param(MATRIX, "", "", "a list of the values, and one jnp.stack of it, then one `x.at[", id="asked for"),
        pytest.param(MATRIX, "_entry", "_product", "the values of all n at once (jax.vmap)", id="not asked for"),
        pytest.param(CUT, "", "", "a list of the values, and one jnp.stack", id="cut"),
        pytest.param(CUT, "[:, p0:p1]", "[:, p0]", "the values of all k, ia at once (jax.vmap)", id="taken"),
    ],
)
def test_a_loop_is_told_what_holds_of_its_turns(code: str, old: str, new: str, said: str) -> None:
    assert old in code
    (text,) = advice(code.replace(old, new) if old else code)
    assert said in text


def test_what_a_call_of_the_loop_may_change_is_another_value_in_each_turn() -> None:
    (text,) = advice(PLACES.replace("    x =", "    value.solve(); x =").replace("value)", "value.best)"))
    assert text.startswith("the values of all t at once (jax.vmap)")


@pytest.mark.parametrize(
    ("old", "new", "count"),
    [
        pytest.param("", "", 0, id="longer in each turn"),
        pytest.param("jnp.arange(-el, el + 1)", "jnp.arange(el)", 0, id="longer from 0"),
        pytest.param("jnp.arange(-el, el + 1)", "jnp.arange(el, el + 4)", 1, id="as long as ever"),
        pytest.param("jnp.arange(-el, el + 1)", "jnp.arange(4)", 1, id="the same"),
    ],
)
def test_places_of_another_length_in_each_turn_are_no_case(old: str, new: str, count: int) -> None:
    assert len(advice(ROTATED.replace(old, new) if old else ROTATED)) == count
