"""Fixes of draws, of sorts and of the places of hits: what they write, and what they leave alone."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from fixes import assert_same, fixed

# What a fix leaves without a reader goes, and jnp is to stay.
HEAD = "import jax\nimport jax.numpy as jnp\n\nArray = jnp.ndarray\n"


def in_a_line(code: str) -> str:
    """The code without what lays it out."""
    return "".join(code.split()).replace(",)", ")")


def function(body: str, given: str = "key, x, p, n, k") -> str:
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    return f"{HEAD}\n@jax.vmap\ndef run({given}):\n{lines}"


@pytest.mark.parametrize(
    ("drawn", "instead"),
    [
        ("jax.random.choice(key, jnp.arange(4), p=p)", "jax.random.categorical(key, jnp.log(p))"),
        ("jax.random.choice(key, jnp.arange(4, dtype=float), p=p)",
         "jnp.arange(4, dtype=float)[jax.random.categorical(key, jnp.log(p))]"),
        ("jax.random.choice(key, jnp.arange(1, 4), p=p)", "1 + jax.random.categorical(key, jnp.log(p))"),
        ("2 * jax.random.choice(key, jnp.arange(1, 4), p=p)",
         "2 * jnp.arange(1, 4)[jax.random.categorical(key, jnp.log(p))]"),
        ("jax.random.choice(key, jnp.arange(n, 4, 2), p=p)",
         "jnp.arange(n, 4, 2)[jax.random.categorical(key, jnp.log(p))]"),
        ("jax.random.choice(key, len(x), (3,), p=jax.nn.softmax(p))", "jax.random.categorical(key, p, shape=(3,))"),
        ("jax.random.choice(key, 4, p=p / jnp.sum(p))", "jax.random.categorical(key, jnp.log(p))"),
        ("jax.random.choice(key, 4, p=(1 - p) * 1.0 / p.sum())", "jax.random.categorical(key, jnp.log(1 - p))"),
        ("jax.random.choice(key, 4, p=p / n)", "jax.random.categorical(key, jnp.log(p / n))"),
        ("jax.random.choice(key, x, p=p)", None),
        ("jax.random.choice(key, jnp.arange(4), p=p if n else None)", None),
        ("jax.random.choice(key, jnp.arange(4), replace=True, p=p)", "jax.random.categorical(key, jnp.log(p))"),
        ("jax.random.choice(key, jnp.uint8([1, 0]), p=jnp.array([0.25, 0.75]))",
         "jnp.where(jax.random.bernoulli(key, 0.25), 1, 0).astype(jnp.uint8)"),
    ],
)  # fmt: skip
def test_a_choice_is_a_place_of_a_number_and_an_element_of_an_array(drawn: str, instead: str | None) -> None:
    code = function(f"return {drawn}")
    assert fixed("choice-with-probabilities", code) == (code if instead is None else code.replace(drawn, instead))


def test_many_draws_get_their_sums_in_a_line_before() -> None:
    code = function("i = jax.random.choice(key, len(x), (k,), p=p)\nreturn x[i]")
    search = 'jnp.searchsorted(sums, sums[-1] * (1 - jax.random.uniform(key, (k,))), method="scan_unrolled")'
    after = function(f"sums = jnp.cumsum(p)\ni = {search}\nreturn x[i]")
    assert in_a_line(fixed("choice-with-probabilities", code)) == in_a_line(after)
    alone = code.replace("i = jax", "i = 0 if n else jax")
    assert fixed("choice-with-probabilities", alone) == alone


def test_a_sum_that_weights_are_divided_by_goes_with_the_division() -> None:
    code = function("total = jnp.sum(p)\nreturn jax.random.choice(key, 4, p=p / total)")
    assert fixed("choice-with-probabilities", code) == function("return jax.random.categorical(key, jnp.log(p))")


def test_who_may_ask_for_no_replacement_keeps_that() -> None:
    code = function("return jax.random.choice(key, len(x), p=p, replace=again)", "key, x, p, again=True")
    assert fixed("choice-with-probabilities", code) == code


@pytest.mark.parametrize(
    ("drawn", "instead"),
    [
        ("jax.random.choice(key, jnp.array([x, n]))", "jnp.where(jax.random.bernoulli(key), x, n)"),
        ("jax.random.choice(key, jnp.array([x, n]), (3,))", None),
        ("jax.random.choice(key, jnp.array([2, 5]), (3,))", "jnp.where(jax.random.bernoulli(key, shape=(3,)), 2, 5)"),
        ("jax.random.choice(key, jnp.bool_([False, True]))", "jax.random.bernoulli(key)"),
    ],
)
def test_one_coin_chooses_between_rows_and_as_many_between_numbers(drawn: str, instead: str | None) -> None:
    code = function(f"return {drawn}")
    assert fixed("choice-of-two", code) == (code if instead is None else code.replace(drawn, instead))


@pytest.mark.parametrize(
    ("drawn", "instead"),
    [
        (
            "jax.random.choice(key, len(x), (k,), replace=False)",
            "jax.lax.top_k(jax.random.uniform(key, (len(x),)), k)[1]",
        ),
        ("jax.random.permutation(key, len(x))[:k]", "jax.lax.top_k(jax.random.uniform(key, (len(x),)), k)[1]"),
        ("jax.random.choice(key, x, replace=False)", "jax.random.choice(key, x)"),
        ("jax.random.choice(key, x, (k,), replace=False)", None),
    ],
)
def test_a_few_that_differ_are_the_largest_of_noise(drawn: str, instead: str | None) -> None:
    code = function(f"return {drawn}")
    assert fixed("choice-without-replacement", code) == (code if instead is None else code.replace(drawn, instead))


NUMBERS = """
def step(key, n):
    key, k1, k2, k3 = jax.random.split(key, 4)
    a = jax.random.uniform(k1, minval=0.5)
    b = jax.random.uniform(k2)
    c = jax.random.uniform(k3)
    return key, a + b * c

def run(key, ns):
    return jax.lax.scan(step, key, ns)
"""


def test_numbers_are_drawn_at_once_unless_they_share_a_key() -> None:
    code = HEAD + NUMBERS
    after = fixed("draws-one-by-one", code)
    assert "    key, k1 = jax.random.split(key)\n    a, b, c = jax.random.uniform(k1, (3,), minval=jnp" in after
    shared = code.replace("b * c", "b * c * jax.random.normal(k2)")
    assert fixed("draws-one-by-one", shared) == shared
    later = code.replace("uniform(k3)", "uniform(k3, minval=low)").replace("    c =", "    low = n * 0.5\n    c =")
    assert fixed("draws-one-by-one", later) == later
    far, near = (code.replace("    c =", "    n = 0.5 * n\n" * lines + "    c =") for lines in (41, 9))
    assert fixed("draws-one-by-one", far) == far
    assert "drawn[2]" in fixed("draws-one-by-one", near)


@pytest.mark.parametrize(
    ("made", "after"),
    [
        ("return key, jnp.hstack([a, b, c])", ["    drawn = jax.random.uniform(k1, (3,),", "    return key, drawn\n"]),
        (
            "x = jnp.array((a, b, c))\n    return key, x",
            ["    x = jax.random.uniform(k1, (3,),", "    return key, x\n"],
        ),
        ("return jnp.stack([a, b, c])", ["    return jax.random.uniform(k1, (3,),"]),
        (
            "n = 2 * n\n    return key, n * jnp.hstack([a, b, c])",
            ["    drawn = jax.random", "    return key, n * drawn\n"],
        ),
        ("return key, jnp.hstack([a, c, b])", ["    a, b, c = jax", "    return key, jnp.hstack([a, c, b])\n"]),
        ("return key, jnp.hstack([a, b, c]) * a", ["    a, b, c = jax", "jnp.hstack([a, b, c]) * a\n"]),
        ("return key, jnp.stack([a, b, c], -1)", ["    a, b, c = jax"]),
    ],
)
def test_numbers_that_a_vector_is_made_of_are_drawn_as_that(made: str, after: list[str]) -> None:
    code = HEAD + NUMBERS.replace("return key, a + b * c", made)
    text = fixed("draws-one-by-one", code)
    assert all(line in text for line in after)
    assert ("hstack" in text) is ("a, b, c =" in after[0] and "hstack" in made)


@pytest.mark.parametrize(
    ("read", "after"),
    [
        ("order = jnp.argsort(-x)\nreturn order[:k]", "return jax.lax.top_k(x, k)[1]"),
        ("order = jnp.argsort(-x)\norder = order[:k]\nreturn p[order]",
         "order = jax.lax.top_k(x, k)[1]\nreturn p[order]"),
        ("s = jnp.sort(x)\nreturn s[-1] - s[-2]",
         "s = jax.lax.top_k(x, 2)[0][..., ::-1]\nreturn s[-1] - s[-2]"),
        ("order = jnp.argsort(-x)\nx = 2 * p\nreturn order[:k], x", None),
        ("order = jnp.argsort(-x)  # best first\nreturn order[:k]", None),
        ("return jnp.argsort(routing_mask)[-8:]", None),
    ],
)  # fmt: skip
def test_a_part_of_a_sort_is_a_top_k_where_it_is_read(read: str, after: str | None) -> None:
    code = function(read, "key, x, p, k, routing_mask")
    assert fixed("argsort-prefix", code) == (code if after is None else function(after, "key, x, p, k, routing_mask"))


PLACES = [
    ("jnp.nonzero(x > 0, size=1)[0][0]", "jnp.argmax(x > 0)"),
    ("jnp.nonzero(x, size=1)[0][0]", "jnp.argmax(x != 0)"),
    ("jnp.where(x > 0, size=1)[0]", "jnp.argmax(x > 0)[None]"),
    ("jnp.flatnonzero(x > 0, size=1)", "jnp.argmax(x > 0)[None]"),
    ("jnp.argwhere(x > 0, size=1)[0, 0]", "jnp.argmax(x > 0)"),
    ("jnp.nonzero(x, size=1)", "jnp.unravel_index(jnp.argmax(x != 0)[None], x.shape)"),
    ("jnp.nonzero(x, size=1, fill_value=-1)[0][0]", "jnp.where(x.any(), jnp.argmax(x != 0), -1)"),
]


@pytest.mark.parametrize(("read", "instead"), PLACES)
def test_the_first_hit_has_the_same_place_in_as_many_brackets(read: str, instead: str) -> None:
    code = f"{HEAD}\n@jax.jit\ndef run(x):\n    return {read}\n"
    after = fixed("nonzero-as-mask", code)
    assert after == code.replace(read, instead)
    for x in ([0.0, 0.0, 2.0, 1.0], [0.0, 0.0, 0.0], [3.0]):
        one, other = (_made(text, jnp.array(x)) for text in (code, after))
        assert jax.tree.map(lambda a: (a.dtype, a.tolist()), one) == jax.tree.map(
            lambda a: (a.dtype, a.tolist()), other
        )


def test_the_number_of_a_place_that_is_unpacked_alone_is_the_place() -> None:
    code = f"{HEAD}\n@jax.jit\ndef run(x):\n    (i,) = jnp.where(x > 0, size=1)\n    i = i[0]\n    return i\n"
    assert fixed("nonzero-as-mask", code).endswith("def run(x):\n    i = jnp.argmax(x > 0)\n    return i\n")


def test_an_array_is_sorted_once_for_its_values_and_its_order_to_the_last_bit() -> None:
    code = f"{HEAD}\n@jax.jit\ndef run(x):\n    s = jnp.sort(x)\n    order = jnp.argsort(x)\n    return s, order\n"
    after = fixed("argsort-then-gather", code, unsafe=False)
    assert "    s, order = jax.lax.sort_key_val(x, jax.lax.broadcasted_iota(int, x.shape, x.ndim - 1))\n" in after
    x = jnp.array([[1.0, jnp.nan, -0.0, 0.0, 1.0], [2.0, 2.0, -jnp.inf, jnp.nan, 0.0]])
    for one, other in zip(_made(code, x), _made(after, x), strict=True):
        assert one.dtype == other.dtype
        assert np.asarray(one).tobytes() == np.asarray(other).tobytes()


@pytest.mark.parametrize(
    ("body", "instead"),
    [
        ("i = jnp.argsort(x)\nx = x[i]\nreturn x, n[i]",
         "x, i = jax.lax.sort_key_val(x, jnp.arange(x.shape[0]))\nreturn x, n[i]"),
        ("i = jnp.argsort(x, stable=True)\nk, n = x[i], n[i]\nreturn k, n",
         "values, i = jax.lax.sort_key_val(x, jnp.arange(x.shape[0]))\nk, n = values, n[i]\nreturn k, n"),
        ("i = jnp.argsort(x)\nn = n[i]\ns = x[i]\nreturn s, n",
         "s, i = jax.lax.sort_key_val(x, jnp.arange(x.shape[0]))\nn = n[i]\nreturn s, n"),
        ("i = jnp.argsort(x)\ns = n[0]\nn = n[i]\ns = x[i] + s\nreturn s, n",
         "values, i = jax.lax.sort_key_val(x, jnp.arange(x.shape[0]))\ns = n[0]\nn = n[i]\n"
         "s = values + s\nreturn s, n"),
        ("i = jnp.argsort(-x)\nreturn x[i], n[i]", None),
        ("i = jnp.argsort(x)\nif k:\n    x = x[i]\nreturn x, n[i]", None),
        ("i = jnp.argsort(x)  # of one\nreturn x[i], n[i]",
         "values, i = jax.lax.sort_key_val(x, jnp.arange(x.shape[0]))  # of one\nreturn values, n[i]"),
    ],
)  # fmt: skip
def test_what_is_gathered_by_its_own_order_comes_with_the_sort(body: str, instead: str | None) -> None:
    code = f"{HEAD}\n@jax.jit\ndef run(x, n, k):\n" + "".join(f"    {line}\n" for line in body.splitlines())
    lines = "".join(f"    {line}\n" for line in (instead or body).splitlines())
    after = fixed("argsort-then-gather", code)
    assert after == f"{HEAD}\n@jax.jit\ndef run(x, n, k):\n{lines}"


LEAVES = """{head}
@jax.jit
def run(key, data, k):
    def shuffled(x):
        {body}
    return jax.tree.map({mapped}, data)
"""


@pytest.mark.parametrize(
    ("body", "mapped", "instead"),
    [
        ("return jax.random.permutation(key, x) + 1", "shuffled", ("return x[order] + 1", "shuffled")),
        ("return 1", "lambda x: jax.random.permutation(key, x)", ("return 1", "lambda x: x[order]")),
        ("return jax.random.permutation(key, x) if k else x", "shuffled", None),
        ("return jax.random.permutation(key, x)", "lambda x: shuffled(x)", None),
    ],
)
def test_an_order_of_all_leaves_is_drawn_before_the_map(
    body: str, mapped: str, instead: tuple[str, str] | None
) -> None:
    code = LEAVES.format(head=HEAD, body=body, mapped=mapped)
    after = fixed("permutation-per-leaf", code)
    if instead is None:
        assert after == code
        return
    line = "    order = jax.random.permutation(key, jax.tree.leaves(data)[0].shape[0])\n    return jax.tree.map"
    written = LEAVES.format(head=HEAD, body=instead[0], mapped=instead[1])
    assert after == written.replace("    return jax.tree.map", line)
    data = (jnp.arange(6.0), jnp.arange(12).reshape(6, 2), jnp.arange(6) > 2)
    results = []
    for text in (code, after):
        scope: dict[str, object] = {}
        exec(text.replace("@jax.jit", ""), scope)
        run = scope["run"]
        assert callable(run)
        results.append(run(jax.random.key(0), data, True))
    jax.tree.map(np.testing.assert_array_equal, *results)


def _made(code: str, x: jax.Array) -> tuple[jax.Array, ...]:
    scope: dict[str, object] = {}
    exec(code, scope)
    run = scope["run"]
    assert callable(run)
    made: tuple[jax.Array, ...] = run(x)
    return made


@pytest.mark.parametrize("read", ["i", "i + 1", "x[i + n]", "i.at[0].set(0)"])
def test_places_that_are_more_than_an_index_are_counted_as_a_choice_counts(read: str) -> None:
    code = function(f"i = jax.random.choice(key, len(x), (k,), p=p)\nreturn {read}")
    assert in_a_line('method="scan_unrolled").astype(int)\n') in in_a_line(fixed("choice-with-probabilities", code))


def test_logits_that_a_name_stands_for_are_drawn_from_as_they_are() -> None:
    code = function("w = jax.nn.softmax(p + x)\nreturn jax.random.choice(key, 4, p=w)")
    assert fixed("choice-with-probabilities", code) == function("return jax.random.categorical(key, p + x)")
    again = code.replace("return", "p = p * 2\n    return")
    assert "jnp.log(w)" in fixed("choice-with-probabilities", again)


INSERTS = f"{HEAD}\n@jax.jit\ndef run(x, v):\n    first = jnp.sum(v)\n    return jnp.insert(x, 0, {{put}}, axis=0)\n"


@pytest.mark.parametrize(
    ("put", "row"),
    [
        ("first", "jnp.full_like(x, first, shape=(1, *x.shape[1:]))"),
        ("x[0] - 1", "jnp.full_like(x[:1], x[0] - 1)"),
        ("x[0]", "x[0][None]"),
    ],
)
def test_a_row_is_put_in_as_it_is_and_where_there_may_be_no_other(put: str, row: str) -> None:
    code = INSERTS.format(put=put)
    after = fixed("insert-by-scatter", code)
    assert after == code.replace(f"jnp.insert(x, 0, {put}, axis=0)", f"jnp.concatenate([{row}, x])")
    for rows in (0, 3) if put == "first" else (3,):
        x = np.arange(rows * 2, dtype=np.int32).reshape(rows, 2)
        assert_same(code, after, x, np.float32(1.5))


LEVELS = """
import jax, jax.numpy as jnp
SIZE = 5

def first(x: jnp.ndarray) -> jnp.ndarray:
    cells = jnp.array([[1, 2], [2, 1], [2, 2]])
    grid = jnp.zeros((SIZE, SIZE, 11))
    posx, posy = (1, 1)
    grid = grid.at[posx, posy, 0].set(1.0 * (x[0] > 3))
    grid = grid.at[cells[0, 0], cells[0, 1], 1].add(1)
    grid = grid.at[cells[1, 0], cells[1, 1], 2].add(1)
    return grid

class Game:
    def __init__(self):
        self._reset = jax.jit(jax.vmap(first))
        self._step = jax.jit(jax.vmap(lambda state, x: state + first(x)))

    def reset(self, x):
        return self._reset(x)

    def step(self, state, x):
        return self._step(state, x)

def run(x):
    return first(x)
"""


@pytest.mark.parametrize("sizes", ["SIZE, SIZE, 11", "5, 5, 11", "SIZE, SIZE, SIZE"])
def test_places_along_axes_whose_lengths_are_written_out_are_counted_by_a_name_for_each(sizes: str) -> None:
    code = LEVELS.replace("SIZE, SIZE, 11", sizes)
    after = fixed("chained-at-set", code)
    assert after.count("= jnp.arange(") == 3
    assert_same(code, after, jnp.full(5, 4.0))
    assert_same(code, after, jnp.zeros(5))
