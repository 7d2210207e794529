"""one-hot-matmul: what is gathered from, where the table stands behind axes of one."""

from __future__ import annotations

import pytest

from fusionlint.source.judging import check_text
from fusionlint.source.scope import Scope

CODE = """\
import jax
import jax.numpy as jnp

@jax.jit
def quantised(x, codebook, places):
    codes = {codes}
    return jnp.matmul(jax.nn.one_hot(places, 1024), codes)
"""


@pytest.mark.parametrize(
    ("comment", "count"),
    [
        ("# TPUs like products better.", 0),
        ("# A product, for no gather/scatter can be partitioned.", 0),
        ("# The table of TPUX is small.", 1),
        ("# Codes are gathered from each shard.", 1),
        ("", 1),
    ],
)
def test_a_product_that_is_said_to_be_for_tpus_or_instead_of_a_gather_is_left_alone(comment: str, count: int) -> None:
    code = CODE.format(codes="2.0 * codebook").replace("    return", f"    {comment}\n    return")
    assert len([*check_text(code.encode(), "m.py", Scope(("one-hot-matmul",)))]) == count


@pytest.mark.parametrize(
    ("codes", "advice"),
    [
        ("2.0 * codebook", ["codes[places]"]),
        ("jnp.expand_dims(codebook, 0)", ["codebook[places]"]),
        ("jnp.expand_dims(codebook, axis=range(x.ndim - 1))", ["codebook[places]"]),
        ("jnp.expand_dims(codebook, -1)", []),
    ],
)
def test_rows_are_taken_from_the_table_that_has_them_on_its_first_axis(codes: str, advice: list[str]) -> None:
    found = check_text(CODE.format(codes=codes).encode(), "m.py", Scope(("one-hot-matmul",)))
    assert [each.suggestion.text for each in found if each.suggestion is not None] == advice


HELPED = """\
import jax
import jax.numpy as jnp

class Quantizer:
    def quantize(self, {handed}):
        {body}

    def __call__(self, ids, soft):
        encodings = {encodings}
        return self.quantize(encodings)
"""


@pytest.mark.parametrize(
    ("handed", "body", "encodings", "count"),
    [
        ("z", "return jnp.dot(z, self.codebook)", "jax.nn.one_hot(ids, 1024)", 1),
        ("z", "codebook = jnp.asarray(self.codebook)\n        return z @ codebook", "jax.nn.one_hot(ids, 1024)", 1),
        ("z", "return jnp.dot(self.codebook, z)", "jax.nn.one_hot(ids, 1024)", 0),
        ("z", "return jnp.dot(z, self.codebook) + 1", "jax.nn.one_hot(ids, 1024)", 0),
        ("z", "z = z / z.sum()\n        return jnp.dot(z, self.codebook)", "jax.nn.one_hot(ids, 1024)", 0),
        ("z", "return jnp.dot(z, self.codebook)", "jax.nn.softmax(soft)", 0),
        ("z, w=1", "return jnp.dot(z, self.codebook) * w", "jax.nn.one_hot(ids, 1024)", 0),
    ],
)
def test_what_a_helper_multiplies_a_one_hot_with_is_a_table(handed: str, body: str, encodings: str, count: int) -> None:
    code = HELPED.format(handed=handed, body=body, encodings=encodings)
    assert len(check_text(code.encode(), "m.py", Scope(("one-hot-matmul",)))) == count


SUMMED = """\
import jax
import jax.numpy as jnp

@jax.jit
def picked(x, i, table):
    one_hot = jax.nn.one_hot(i, 1024)
    return jnp.einsum("{axes}", one_hot, table)
"""


@pytest.mark.parametrize(
    ("axes", "advice"),
    [
        ("bnk,btk->btn", "jnp.take_along_axis(table, i, axis=2), i as `i` broadcast"),
        # What is picked for each row leaves an axis of one.
        ("ns,nmso->nmo", "jnp.take_along_axis(table, i, axis=2).squeeze(2), i as `i` broadcast"),
        (
            "...lv,...nv->...ln",
            "jnp.take_along_axis(table, i, axis=-1), its axes, `...nl`, put as in `...ln`, i as `i` broadcast",
        ),
        ("btgc,cgd->btgd", "table at `i` along axis 0, beside jnp.arange along each axis that both have"),
    ],
)
def test_what_is_taken_has_the_axes_of_the_product(axes: str, advice: str) -> None:
    (found,) = check_text(SUMMED.format(axes=axes).encode(), "m.py", Scope(("one-hot-matmul",)))
    assert found.suggestion is not None
    assert found.suggestion.text == advice
