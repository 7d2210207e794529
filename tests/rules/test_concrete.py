"""Functions that no trace survives by what they do themselves: rules about traced code have nothing to say there."""

from __future__ import annotations

import pytest

from fusionlint.source.judging import check_text
from fusionlint.source.scope import Scope

RULES = ("chained-at-set", "blocks-by-at-set", "choice-with-probabilities", "choice-without-replacement")
HEAD = "import jax\nimport jax.numpy as jnp; from jax import lax\nimport numpy as np\n"
BLOCKS = """\
def of_blocks(parts):
    {before}
    whole = jnp.zeros((64, 64))
    for m, part in enumerate(parts):
        whole = whole.at[ends[m]:ends[m + 1]].set(part)
    return whole
"""


def rules(code: str) -> list[str]:
    return [f.rule for f in check_text((HEAD + code).encode(), "m.py", Scope(RULES))]


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        pytest.param("ends, n = [0, 1], int(jnp.sum(parts[0]))", [], id="an int of a sum"),
        pytest.param("ends, n = [0, 1], jnp.nonzero(parts[0])", [], id="as many as there are"),
        pytest.param("ends, n = [0, 1], jnp.arange(1, jnp.max(parts[0]))", [], id="as many as an array says"),
        pytest.param("i = jnp.argmax(parts[0])\n    ends = [0, 1 if i > 0 else 0]", [], id="a place of an array"),
        pytest.param("ends, n = [0, 1], jnp.arange(1, max(SIZES))", ["blocks-by-at-set"], id="as many as Python says"),
        pytest.param(
            "ends, n = [0, 1], jnp.nonzero(parts[0], size=3)", ["blocks-by-at-set"], id="a size that is given"
        ),
        pytest.param("ends, n = [0, 1], len(parts)", ["blocks-by-at-set"], id="a length"),
        pytest.param("ends, n = [0, 1], int(parts[0].shape[0] * 2)", ["blocks-by-at-set"], id="a size"),
        pytest.param(
            "ends = [0, 1]\n    if SIZE is None:\n        n = int(jnp.sum(parts[0]))",
            ["blocks-by-at-set"],
            id="in a branch",
        ),
        pytest.param(
            "ends = [0, 1]\n    with jax.ensure_compile_time_eval():\n        n = int(jnp.sum(jnp.arange(3)))",
            ["blocks-by-at-set"],
            id="known early",
        ),
        pytest.param(
            "ends = [0, 1]\n    def size(x):\n        return int(jnp.sum(x))",
            ["blocks-by-at-set"],
            id="another function",
        ),
        pytest.param(
            "ends = [0, 1]\n    while not jnp.all(parts[0] < 8) or SIZE:\n        parts = parts[1:]",
            [],
            id="asked of an array",
        ),
        pytest.param(
            "ends = [0, 1]\n    if SIZE and jnp.any(parts[0] < 8):\n        parts = parts[1:]",
            ["blocks-by-at-set"],
            id="asked where somebody wants it",
        ),
        pytest.param(
            "ends, size = [0, 1], jnp.sum(parts[0])\n    while size != -1:\n        size = jnp.sum(parts[1])",
            [],
            id="compared with an array",
        ),
        pytest.param(
            "ends, n = [0, 1], jnp.sum(parts[0])\n    if (n < 1) | (jnp.abs(n) > 8):\n        parts = parts[1:]",
            [],
            id="compared twice with an array",
        ),
        pytest.param(
            "ends, size = [0, 1], jnp.sum(parts[0])\n    if size is None:\n        parts = parts[1:]",
            ["blocks-by-at-set"],
            id="whether there is one",
        ),
        pytest.param("ends, n = [0, 1], jnp.zeros((parts[0].sum(), 3))", [], id="as long as a mask says"),
        pytest.param(
            "ends = [0, 1]\n    if SIZE:\n        n = jnp.zeros((parts[0].sum(), 3))",
            ["blocks-by-at-set"],
            id="as long as a mask says in a branch",
        ),
        pytest.param("ends, n = [0, 1], jnp.zeros((len(parts), 3))", ["blocks-by-at-set"], id="as long as a list is"),
        pytest.param("ends, n = [0, 1], logger.info('%s', jnp.sum(parts[0]))", [], id="an array that is logged"),
        pytest.param("ends, n = [0, 1], logger.info('%s', len(parts))", ["blocks-by-at-set"], id="a length in a log"),
        pytest.param("ends, n = [0, 1], parts[: jnp.argmax(parts[0])]", [], id="cut at an array"),
        pytest.param("ends, n = [0, 1], parts[: len(parts) - 1]", ["blocks-by-at-set"], id="cut at a length"),
        pytest.param(
            "ends = [0, 1]\n    if SIZE:\n        parts = parts[: jnp.argmax(parts[0])]",
            ["blocks-by-at-set"],
            id="cut at an array in a branch",
        ),
        pytest.param("ends, n = [0, 1], jnp.sin(parts[0])\n    n = n[n > 0]", [], id="cut by a mask"),
        pytest.param(
            "ends, n = [0, 1], jnp.sin(parts[0])\n    hits = n > 0\n    n = n[:, hits]", [], id="along an axis"
        ),
        pytest.param(
            "ends, n = [0, 1], jnp.sin(parts[0])\n    hits = (n > 0) & ~(n < 2)\n    n = parts[0][hits, 0]",
            [],
            id="cut by masks that are joined",
        ),
        pytest.param(
            "ends, n = [0, 1], jnp.sin(parts[0])\n    n = jnp.where(n > 0, n, 0).at[n > 1].set(2)",
            ["blocks-by-at-set"],
            id="written where a mask says",
        ),
        pytest.param(
            "ends, n = [0, 1], np.arange(8)\n    n = parts[0][:, n > 3]", ["blocks-by-at-set"], id="a mask of numpy's"
        ),
        pytest.param(
            "ends, n = [0, 1], jnp.sin(parts[0])\n    if isinstance(n, np.ndarray):\n        n = n[n > 0]",
            ["blocks-by-at-set"],
            id="a mask where somebody wants it",
        ),
        pytest.param("ends = [0, 1]\n    assert jnp.all(parts[0] >= 0) and SIZE", [], id="asserted of an array"),
        pytest.param(
            "ends, n = [0, 1], jnp.sin(parts[0])\n    assert not np.any(n)", [], id="asserted by numpy of an array"
        ),
        pytest.param(
            "ends = [0, 1]\n    assert np.all(np.array(parts[0].shape) > 0)",
            ["blocks-by-at-set"],
            id="asserted of a shape",
        ),
        pytest.param(
            "ends = [0, 1]\n    if DEBUG:\n        assert jnp.all(parts[0] >= 0)",
            ["blocks-by-at-set"],
            id="asserted where somebody wants it",
        ),
        pytest.param("ends = [0, 1]\n    print(len(parts))", ["blocks-by-at-set"], id="prints and returns"),
    ],
)
def test_a_python_number_of_what_jax_computes(before: str, expected: list[str]) -> None:
    assert rules(BLOCKS.format(before=before)) == expected


def test_what_is_shown_to_be_traced_is_believed() -> None:
    code = BLOCKS.format(before="ends, n = [0, 1], logger.info('%s', jnp.sum(parts[0]))")
    assert rules(f"@jax.jit\n{code}") == ["blocks-by-at-set"]


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        ("ends = [0, 1]\n    if bool(jnp.any(parts[0] < 0)):\n        raise ValueError('negative')", []),
        ("ends, v = [0, 1], jnp.asarray(parts[0])\n    width = float(v[1] - v[0])", []),
        ("ends, v = [0, 1], parts[0]\n    width = float(v[1] - v[0])", ["blocks-by-at-set"]),
        ("ends, eps = [0, 1], float(jnp.finfo(parts[0].dtype).eps)", ["blocks-by-at-set"]),
        ("ends, n = [0, 1], int(jnp.asarray(SIZE))", ["blocks-by-at-set"]),
        ("ends, n = [0, 1], int(jnp.size(parts[0]))", ["blocks-by-at-set"]),
        ("ends = [0, 1]\n    if SIZE is None:\n        n = int(jnp.sum(parts[0]))", ["blocks-by-at-set"]),
    ],
)
def test_no_program_makes_a_number_of_what_jax_makes_in_it_whoever_is_said_to_trace_it(
    before: str, expected: list[str]
) -> None:
    code = BLOCKS.format(before=before)
    assert rules(f"{code}\n\ngrad = jax.value_and_grad(lambda parts: of_blocks(parts).sum())\n") == expected


FOR_NUMPY = """\
def difference(x):
    return of_ends(x)

def of_ends(x):
    out = jnp.zeros(2 * n)
    out = out.at[:n].set(x[:n] + 1)
    return out.at[n:].set(x[n:] - x[:n])

def joined(x):
    return {handed}
"""


@pytest.mark.parametrize(
    ("handed", "expected"),
    [
        ("np.asarray(of_ends(jnp.asarray(x)))", []),
        ("np.asarray(difference(jnp.asarray(x)))", []),
        ("difference(np.asarray(x))", ["blocks-by-at-set"]),
        ("np.asarray(x), difference(x)", ["blocks-by-at-set"]),
        ("np.asarray(jax.jit(of_ends)(x))", ["blocks-by-at-set"]),
        ("np.asarray(difference(x)), difference(x)", ["blocks-by-at-set"]),
    ],
)
def test_what_all_hand_to_numpy_is_for_the_host(handed: str, expected: list[str]) -> None:
    code = FOR_NUMPY.format(handed=handed)
    code = code if "difference" in handed else code.partition("def of_ends")[1] + code.partition("def of_ends")[2]
    assert rules(code) == expected


def test_no_trace_gets_past_an_assert_whoever_is_said_to_trace_it() -> None:
    code = BLOCKS.format(before="ends = [0, 1]\n    assert jnp.all(parts[0] >= 0)") + "\n\nstep = jax.jit({})\n"
    assert rules(code.format("of_blocks")) == []
    assert rules(code.replace("jnp.all", "len").format("of_blocks")) == ["blocks-by-at-set"]


def test_draws_that_the_host_makes_numbers_of() -> None:
    code = """\
def update(key, n, p):
    chosen = jax.random.choice(key, n, (4,), replace=False)
    if p is None:
        return chosen, {number}(jax.random.randint(key, (), 0, n))
    return chosen, [{number}(jax.random.choice(k, n, p=p)) for k in jax.random.split(key, 4)]
"""
    assert rules(code.format(number="int")) == []
    found = rules(code.format(number="jnp.sin"))
    assert sorted(found) == ["choice-with-probabilities", "choice-without-replacement"]


def test_what_comes_behind_a_try_that_a_trace_leaves() -> None:
    code = """\
def weights(blocks, found):
    try:
        members = np.asarray(blocks)
    except TypeError:
        {handled}
    for i, member in enumerate(members):
        found = found.at[member].set(2.0 * i)
    return found
"""
    assert rules(code.format(handled="return traced(blocks, found)")) == []
    assert rules(code.format(handled="members = blocks")) == ["chained-at-set"]


def test_a_function_that_reports_and_hands_nothing_back() -> None:
    code = """\
def tabulate(model, table, bands):
    print(f"{{len(bands)}} bands")
    for i, band in enumerate(bands):
        table = table.at[:, i].set(model.fit(band))
    model.table = table
    {end}
"""
    assert rules(code.format(end="return")) == []
    assert rules(code.format(end="return table")) == ["chained-at-set"]


def test_what_is_said_of_types_inside_a_function_is_no_code() -> None:
    code = """
from typing import Tuple

def filled(x, a, b, i, j):
    places: Tuple[Tuple] = (i, j)
    return x.at[places[0]].set(a).at[places[1]].set(b)
"""
    assert rules(code) == ["chained-at-set"]


@pytest.mark.parametrize(("last", "expected"), [("jnp.max(orders)", []), ("len(orders)", ["chained-at-set"])])
def test_no_trace_counts_to_what_jax_computes(last: str, expected: list[str]) -> None:
    code = f"""\
@jax.jit
def polynomials(x, orders, i, j):
    last = {last}
    terms = x * jnp.arange(1, last)[:, None]
    return terms.at[i].set(1.0).at[j].set(x)
"""
    assert rules(code) == expected


@pytest.mark.parametrize(
    ("counted", "expected"),
    [("lengths[-1]", []), ("lengths.shape[0]", ["chained-at-set"]), ("count", ["chained-at-set"])],
)
def test_python_counts_to_no_element_of_a_traced_array(counted: str, expected: list[str]) -> None:
    code = f"""\
@jax.jit
def reference(cache, lengths: jax.Array, pages, count):
    for i in range({counted}):
        cache = cache.at[pages[i]].set(jnp.sin(cache[pages[i]]))
    return cache
"""
    assert rules(code) == expected


@pytest.mark.parametrize(
    ("asked", "count"),
    [
        ("float(moist[c, 1])", 0),
        ("float(other[c, 1])", 1),  # which may well be numpy's
        ("(float(moist[c, 1]) if c else 0.0)", 1),
        ("moist[c, 1]", 1),
    ],
)
def test_a_number_of_what_is_written_at_places_ends_a_trace(asked: str, count: int) -> None:
    code = f"""
def moistened(state, other, c, d):
    moist = state.moist
    dry = 2.0 * {asked}
    moist = moist.at[c, 1].set(0.0)
    return moist.at[d, 2].set(dry)
"""
    assert len(rules(code)) == count


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        pytest.param("n: int, k: int = 1", [], id="sizes"),
        pytest.param("n: int, parts: dict[int, list[int]], eps=1e-6", [], id="a table and a number"),
        pytest.param("n: int, name: str | None", [], id="a size and a name"),
        pytest.param("depth: int", [], id="what a size is made of"),
        pytest.param("n: int, p: float", ["chained-at-set"], id="a float, which may be traced"),
        pytest.param("n: int, p", ["chained-at-set"], id="something"),
        pytest.param("n: int, *p: int", ["chained-at-set"], id="any number of things"),
        pytest.param("m: int, k: int", ["chained-at-set"], id="places"),
    ],
)
def test_what_is_made_of_sizes_alone_is_made_once(parameters: str, expected: list[str]) -> None:
    code = f"""\
def table({parameters}):
    size = 2 ** depth - 1
    rewards = jnp.zeros((n, size)).at[0, k].set(0.3)
    return rewards.at[1, k].set(0.5)
"""
    assert rules(code) == expected


TABLE = """\
def table({parameters}):
    return jnp.zeros((n, n)).at[0, 1].set(jnp.sqrt({of})).at[1, 2].set(jnp.sqrt(2 * {of}))

@jax.jit
def scaled(x, p):
    return x * table({given})
"""


@pytest.mark.parametrize(
    ("parameters", "of", "given", "expected"),
    [
        pytest.param("n: int", "n", "x.shape[0]", [], id="a size"),
        pytest.param("n: int, p: int", "p", "x.shape[0], p", ["chained-at-set"], id="a number that may be traced"),
    ],
)
def test_what_is_made_of_sizes_alone_under_a_trace_is_folded(
    parameters: str, of: str, given: str, expected: list[str]
) -> None:
    assert rules(TABLE.format(parameters=parameters, of=of, given=given)) == expected


def test_what_is_computed_while_something_is_compiled_is_left_alone() -> None:
    code = """\
@jax.jit
def scaled(x, scales):
    with {}:
        table = jnp.sqrt(scales).at[0, 1].set(scales[0]).at[1, 3].set(scales[1])
    return x * table
"""
    assert rules(code.format("jax.ensure_compile_time_eval()")) == []
    assert rules(code.format("jax.named_scope('table')")) == ["chained-at-set"]


@pytest.mark.parametrize(("shape", "count"), [("(mask.sum(), 3)", 0), ("(len(mask), 3)", 1)])
def test_a_branch_that_ends_a_trace_ends_it_for_what_stands_in_it(shape: str, count: int) -> None:
    code = f"""
@jax.jit
def joined(mask, other, x, is_joint):
    if is_joint:
        rows = jnp.zeros({shape})
        rows = rows.at[mask].set(x)
        rows = rows.at[other].set(x)
        return rows
    return x
"""
    assert len(rules(code)) == count
