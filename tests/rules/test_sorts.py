"""argsort-prefix and sort-for-max: what is read of what a sort made, turned round or mapped before."""

from __future__ import annotations

import pytest

from fusionlint.source.judging import check_text
from fusionlint.source.scope import Scope

SCOPE = Scope(("argsort-prefix", "sort-for-max"))


def said(body: str, nn: str = "jax.nn") -> list[str]:
    """What to write instead, of what a function of x and k does."""
    head = f"import jax\nimport jax.numpy as jnp\nimport {nn} as nn\n\ndef f(x, k):\n"
    code = head + "".join(f"    {line}\n" for line in body.splitlines())
    return [found.suggestion.text for found in check_text(code.encode(), "m.py", SCOPE) if found.suggestion]


@pytest.mark.parametrize(
    ("body", "instead"),
    [
        ("return jnp.flip(jnp.sort(x))[:k]", "jax.lax.top_k(x, k)[0]"),
        ("return jnp.flip(jnp.argsort(x))[:k]", "jax.lax.top_k(x, k)[1]"),
        ("return jnp.flip(jnp.sort(x, axis=-1), axis=-1)[..., :k]", "jax.lax.top_k(x, k)[0]"),
        ("s = jnp.sort(x)\nr = jnp.flip(s)\nreturn r[:k]", "jax.lax.top_k(x, k)[0]"),
        ("return (-jnp.sort(-x))[:k]", "jax.lax.top_k(x, k)[0]"),
        ("return (-jnp.sort(-x))[0]", "jnp.max(x)"),
        ("s = jnp.sort(x)[..., ::-1]\nreturn s[..., 0] - s[..., 1]", "jax.lax.top_k(x, 2)[0]"),
        ("p = nn.softmax(jnp.sort(x)[..., ::-1], axis=-1)\nreturn p[..., 0] - p[..., 1]",
         "jax.lax.top_k(nn.softmax(x), 2)[0]"),
        ("return nn.log_softmax(jnp.sort(x))[..., -1]", "jnp.max(nn.log_softmax(x), axis=-1)"),
    ],
)  # fmt: skip
def test_what_is_turned_round_or_keeps_the_order_is_sorted_too(body: str, instead: str) -> None:
    assert said(body) == [instead]


@pytest.mark.parametrize(
    ("body", "instead"),
    [
        ("s = jnp.sort(x, axis=1)\nreturn jnp.isnan(s[:, 0]), s[:, 0]", "jnp.nanmin(x, axis=1)"),
        ("x = jnp.where(k, x, jnp.nan)\nreturn jnp.argsort(x, axis=1)[:, 0]", "jnp.nanargmin(x, axis=1)"),
        ("x = jnp.where(k, x, jnp.nan)\nreturn jnp.argsort(-x, axis=1)[:, 0]", "jnp.nanargmax(x, axis=1)"),
        ("x = jnp.where(k, x, jnp.nan)\nreturn jnp.sort(x)[..., ::-1][..., -1]", "jnp.nanmin(x, axis=-1)"),
        # What is no number comes last: the last place is that of the maximum, or of such.
        ("x = jnp.where(k, x, jnp.nan)\nreturn jnp.sort(x)[..., -1]", "jnp.max(x, axis=-1)"),
        ("x = jnp.where(k, x, 0.0)\nreturn jnp.sort(x)[..., 0]", "jnp.min(x, axis=-1)"),
        ("from jax.experimental.sparse import CSR\nreturn jnp.sort(x)[..., 0]", "jnp.min(x, axis=-1)"),
    ],
)
def test_the_first_of_a_sort_passes_over_what_is_no_number(body: str, instead: str) -> None:
    assert said(body) == [instead]


@pytest.mark.parametrize("library", ["flax.linen", "flax.nnx"])
def test_a_softmax_keeps_the_order_by_whatever_name_a_library_hands_it_on(library: str) -> None:
    assert said("return nn.softmax(jnp.sort(x))[..., -1]", library) == ["jnp.max(nn.softmax(x), axis=-1)"]


@pytest.mark.parametrize(
    "body",
    [
        "s = jnp.sort(x)[::-1]\nreturn s[0], s[1], s[2]",
        "return jnp.flip(jnp.sort(x))[..., :k]",
        "return jnp.flip(jnp.sort(x), axis=0)[..., :k]",
        "s = jnp.sort(x)\nr = jnp.flip(s)\nreturn r[:k], s",
        "return (-jnp.sort(x))[:k]",
        "return nn.softmax(jnp.sort(x), axis=0)[..., -1]",
        "return nn.softmax(jnp.argsort(x))[..., -1]",
        "return jnp.cumsum(jnp.sort(x))[-1]",
        "s = jnp.sort(x)\nreturn s[0], s[1]",
        "n = int(0.1 * x.size)\nreturn jnp.sort(x)[-n:]",
        "return jnp.argsort(x)[:len(x) // 2]",
    ],
    ids=["three of them", "all axes", "another axis", "read whole too", "smallest", "softmax of columns", "of an order",
         "no order kept", "the smallest two", "a share of all",
         "half of all"],
)  # fmt: skip
def test_what_needs_the_sort_or_may_be_another_axis_is_left_alone(body: str) -> None:
    assert said(body) == []


@pytest.mark.parametrize(
    ("besides", "count"),
    [
        pytest.param("y[order]", 1, id="gathers alone"),
        pytest.param("order", 0, id="handed out"),
        pytest.param("y.at[order].set(x)", 0, id="the way back"),
    ],
)
def test_beside_an_order_that_something_else_reads_a_gather_costs_no_kernel(besides: str, count: int) -> None:
    body = f"    order = jnp.argsort(x)\n    return x[order], {besides}\n"
    code = f"import jax, jax.numpy as jnp\n@jax.jit\ndef f(x, y):\n{body}"
    found = check_text(code.encode(), "m.py", Scope(("argsort-then-gather",)))
    assert [one.suggestion.text[:20] for one in found if one.suggestion] == ["values, order = jax."] * count


@pytest.mark.parametrize(
    ("parameters", "count", "pair"),
    [("x", "8", 0), ("x, k=5", "k", 0), ("x, k", "k", 3), ("x, k=64", "k", 3), ("x", "64", 3)],
)
def test_what_is_said_of_a_gpu_goes_by_whether_few_are_seen_to_be_read(parameters: str, count: str, pair: int) -> None:
    code = f"import jax.numpy as jnp\n\ndef best({parameters}):\n    return jnp.argsort(-x, axis=-1)[:, :{count}]\n"
    (found,) = check_text(code.encode(), "m.py", Scope(("argsort-prefix",)))
    assert found.pair == pair


@pytest.mark.parametrize(
    ("body", "is_said"),
    [
        ("x = x.astype(jnp.float64)\nreturn jnp.argsort(x, axis=1)[:, :k]", False),
        ("x = x.astype(jnp.float64)\nreturn jnp.argsort(-x, axis=1)[:, :8]", False),
        (
            "x = x.astype(jnp.float64)\nreturn jnp.argsort(x, axis=1)[:, :8]",
            True,
        ),  # fewer bytes: no places are sorted
        ("x = x.astype(jnp.float32)\nreturn jnp.argsort(x, axis=1)[:, :k]", True),
        ("from jax.experimental.sparse import CSR\nreturn jnp.argsort(x, axis=1)[:, :8]", True),
        ("x = x.astype(jnp.float64).astype(jnp.float32)\nreturn jnp.argsort(-x, axis=1)[:, :8]", True),
    ],
)
def test_of_64_bits_top_k_is_a_sort_as_well(body: str, is_said: bool) -> None:
    assert bool(said(body)) == is_said


SETUP = """
import flax.linen as nn
import jax.numpy as jnp

class Search{base}:
    def setup(self, key):
        near = jnp.argsort(self.table(key), axis=1)[:, : self.k]
        return dict(near=near)
"""


@pytest.mark.parametrize(
    ("base", "name", "is_said"), [("", "setup", False), ("", "ask", True), ("(nn.Module)", "setup", True)]
)
def test_a_first_state_is_made_once(base: str, name: str, is_said: bool) -> None:
    code = SETUP.format(base=base).replace("def setup", f"def {name}")
    assert bool(check_text(code.encode(), "m.py", SCOPE)) == is_said


@pytest.mark.parametrize(
    ("caller", "is_said"), [("f(tree, 5)", True), ("jax.tree.map(f, tree, counts)", False), ("jax.vmap(f)(tree)", True)]
)
def test_top_k_is_not_told_a_number_that_is_a_leaf_of_a_tree(caller: str, is_said: bool) -> None:
    code = "import jax\nimport jax.numpy as jnp\n\ndef f(x, k=5):\n    return x > jnp.sort(x)[-(k + 1)]\n"
    code += f"\ndef masks(tree, counts):\n    return {caller}\n"
    assert bool(check_text(code.encode(), "m.py", SCOPE)) is is_said


@pytest.mark.parametrize(
    "body", ["m = x > 0\nreturn jnp.argsort(m){cut}", "is_live = k(x)\nreturn jnp.argsort(is_live){cut}"]
)
@pytest.mark.parametrize(("cut", "count"), [("[-k.n:]", 0), ("[-64:]", 0), ("[-8:]", 1)])
def test_of_a_mask_a_few_hits_alone_are_found_by_top_k(body: str, cut: str, count: int) -> None:
    assert len(said(body.format(cut=cut))) == count
