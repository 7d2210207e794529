"""What was wrong in small public projects that nobody had looked at before: each beside what stays as it is."""

from __future__ import annotations

from textwrap import dedent

import pytest

from fusionlint.finding import Finding
from fusionlint.source.fix import apply
from fusionlint.source.judging import check_text
from fusionlint.source.scope import Scope

HEAD = """\
import functools
import jax
import equinox as eqx
import jax.numpy as jnp
import numpy as np
import numerax
import scipy.sparse as sp
import scipy.sparse.linalg as spla
"""


def found(rule: str, code: str) -> list[Finding]:
    return check_text((HEAD + dedent(code)).encode(), "m.py", Scope((rule,)))


def advice(rule: str, code: str) -> str:
    (finding,) = found(rule, code)
    assert finding.suggestion is not None
    return finding.suggestion.text


STIFFNESS = """
def kernel(nodes, u, sigma, dn, w):
    j = jnp.einsum("ai,qaI->qiI", nodes, dn)
    dndx = jnp.einsum("qaI,qIi->qai", dn, jnp.linalg.inv(j))
    jxw = w * jnp.linalg.det(j)
    return jnp.einsum({axes}, jxw, dndx, {other})
"""


@pytest.mark.parametrize(
    ("axes", "other", "count"),
    [
        ('"q,qai,qci->ac"', 'jnp.einsum("qij,qcj->qci", sigma, jnp.einsum("ac,qaj->qcj", u, dndx))', 0),
        ('"q,qai,qaI->ai"', "dn", 1),  # one inverse between twice the same
    ],
)
def test_a_stiffness_has_two_inverses_of_a_matrix_that_is_not_symmetric(axes: str, other: str, count: int) -> None:
    assert len(found("solve-for-cholesky", STIFFNESS.format(axes=axes, other=other))) == count


PICKED = """
@jax.jit
def weighed(x, weights):
    {name} = (x * 8).astype(int)
    ind = jax.nn.one_hot({name}, 64)
    return ind @ jnp.exp(weights)
"""


def test_what_holds_the_one_hot_by_now_is_no_index() -> None:
    assert advice("one-hot-matmul", PICKED.format(name="places")) == "jnp.exp(weights)[places]"
    expected = "jnp.exp(weights)[i], i the places `ind` before they are one-hot"
    assert advice("one-hot-matmul", PICKED.format(name="ind")) == expected


ENSEMBLE = """
@eqx.filter_jit
def improved(walkers, weights, batch):
    return walkers + batch, weights * 2

class Optimizer(eqx.Module):
    n_steps: int

    @eqx.filter_jit
    def __call__(self, walkers, weights, loader):
        for _ in range(self.n_steps):
            batch = {batch}
            walkers, weights = improved(walkers, weights, batch)
        return walkers, weights
"""


@pytest.mark.parametrize(("batch", "count"), [("next(iter(loader))", 0), ("loader[0]", 1)])
def test_a_loop_that_asks_an_iterator_is_not_unrolled(batch: str, count: int) -> None:
    assert len(found("unrolled-steps", ENSEMBLE.format(batch=batch))) == count


SEGMENTS = """
@functools.partial(jax.jit, static_argnames="steps")
def integrate(x, steps):
    return {body}

def solve(x, steps, stride):
    frames, done = [], 0
    while done < steps:
        x = integrate(x, steps=stride)
        done += stride
        frames.append(x)
    return frames
"""


@pytest.mark.parametrize(
    ("body", "count"),
    [("numerax.checkpointed_fori_loop(0, steps, lambda i, x: x + 1, x)", 0), ("x + steps", 1)],
)
def test_a_loop_of_whatever_library_is_many_steps_in_a_dispatch(body: str, count: int) -> None:
    assert len(found("loop-over-jit", SEGMENTS.format(body=body))) == count


SOLVED = """
def on_the_host(values, right):
    matrix = {matrix}
    return {solved}

@jax.jit
def solve(values, right):
    shape = jax.ShapeDtypeStruct(right.shape, right.dtype)
    return jax.pure_callback(on_the_host, shape, values, right, vmap_method="sequential")
"""


@pytest.mark.parametrize(
    ("matrix", "solved", "count"),
    [("sp.csc_matrix(values)", "spla.splu(matrix).solve(right)", 0), ("np.diag(values)", "np.dot(matrix, right)", 1)],
)
def test_jax_has_no_sparse_factorization(matrix: str, solved: str, count: int) -> None:
    assert len(found("callback-in-traced-code", SOLVED.format(matrix=matrix, solved=solved))) == count


SUMMED = """
@jax.jit
def potential(g, k, r, {flag}):
    if forloop:
        def body(i, total):
            return total + g[i] * jnp.cos(k[i] * r)
        total = jax.lax.fori_loop(0, g.shape[0], body, 0.0)
    else:
        {otherwise}
    return total
"""


@pytest.mark.parametrize(
    ("otherwise", "count"), [("total = (g * jnp.cos(k * r)).sum()", 0), ("raise ValueError('not yet')", 1)]
)
def test_who_wrote_the_array_form_beside_a_loop_knows_it(otherwise: str, count: int) -> None:
    assert len(found("scalar-loop", SUMMED.format(flag="forloop=True", otherwise=otherwise))) == count


MINIMIZED = """
def {name}({handed}, x0, steps):
    gradient = jax.grad({objective})

    def one_step(x, _):
        return x - 0.1 * gradient(x), None

    def run(x):
        return jax.lax.scan(one_step, x, None, length=steps)[0]

    return jax.jit(run)(x0)

def study(xs):
    return [{name}(x, x, 8) for x in xs] + [step(x) for x in xs]
"""


@pytest.mark.parametrize(
    ("objective", "count"), [("lambda x: jnp.sum(f(x))", 0), ("f", 0), ("lambda x: jnp.sum(x**2)", 1)]
)
def test_another_objective_is_another_program(objective: str, count: int) -> None:
    code = MINIMIZED.format(name="step", handed="f", objective=objective)
    assert len(found("jit-per-call", code)) == count


ROWS = """
def body(n, i, mask):
    k = jnp.arange(4 * n)
    mask = mask.at[i - 1, :].set(jnp.where(k <= i, mask[i - 1, :], False))
    return mask.at[4 * n - i - 1, :].set(jnp.where(k <= i, mask[4 * n - i - 1, :], False))

@functools.partial(jax.jit, static_argnums=0)
def rings(n, mask):
    return {rings}
"""


@pytest.mark.parametrize(
    ("rings", "is_carried"),
    [("jax.lax.fori_loop(1, n, functools.partial(body, n), mask)", True), ("body(n, 3, mask)", False)],
)
def test_rows_of_a_carry_are_no_choice_of_all_of_it(rings: str, is_carried: bool) -> None:
    text = advice("chained-at-set", ROWS.format(rings=rings))
    assert ("mask.at[all the indices].set(all the values)" in text) is is_carried
    assert ("jnp.where(mask, new, x)" in text) is not is_carried


BLOCKS = """
def together(x, parts, slices):
    out = jnp.zeros(x.shape)
    begin = 0
    for s, part in {over}:
        size = int({size})
        out = out.at[..., s, begin : begin + size].set(part)
        begin += size
    return out
"""


@pytest.mark.parametrize(
    ("over", "size", "join"),
    [("zip(slices, parts)", "s.stop - s.start", "one jnp.concatenate"), ("enumerate(parts)", "8", "one jnp.stack")],
)
def test_blocks_at_slices_of_a_list_are_no_stack(over: str, size: str, join: str) -> None:
    assert join in advice("blocks-by-at-set", BLOCKS.format(over=over, size=size))


STEPS = '''
@jax.jit
def moved(x, rows):
    """Moves {said}"""
    out = jnp.zeros((8, 4))
    for t in range(rows.shape[0]):
        out = out.at[t].set(x + rows[t])
    return out
'''


@pytest.mark.parametrize(
    ("said", "count"),
    [
        ("it.\n\n    For-loop version for testing.\n    ", 0),
        ("it, for tests only.", 0),
        ("it for testing whether it may end.", 1),
        ("it.\n\n    Returns:\n      out: only used for unit tests\n    ", 1),
        ("it.", 1),
    ],
)
def test_a_docstring_says_that_a_function_is_for_tests(said: str, count: int) -> None:
    assert len(found("chained-at-set", STEPS.format(said=said))) == count


PICTURE = """
def tensor(c):
    out = jnp.zeros((6, 6))
    for i in range(6):
        for j in range(6):
            out = out.at[i, 5 - j].set(c[i, j] / (i + 1))
    return out

def visualize_sphere(cs):
    return jax.vmap(lambda c: tensor(c))(cs)
"""


@pytest.mark.parametrize(
    ("more", "count"),
    [("", 0), ("def test_tensor(c):\n    assert tensor(c) is not None\n", 0), ("def energy(c): return tensor(c)\n", 1)],
)
def test_what_pictures_alone_call(more: str, count: int) -> None:
    assert len(found("chained-at-set", PICTURE + more)) == count


FACTORED = """
@jax.jit
def token(values, pattern):
    data = jnp.zeros(pattern["size"]).at[pattern["slots"]].add(values)
    data = data.at[pattern["fixed"]].add(1.0)
    return {taken}(data, pattern)
"""


@pytest.mark.parametrize(("taken", "count"), [("_factorize", 0), ("packed", 1)])
def test_a_factorization_takes_longer_than_what_fills_the_matrix(taken: str, count: int) -> None:
    assert len(found("chained-at-set", FACTORED.format(taken=taken))) == count


FIELD = """
def field(power, {handed}):
    key = {key}
    noise = jax.random.normal(key, power.shape)
    return jnp.fft.ifftn(jnp.fft.fftn(noise) * power).real
"""


@pytest.mark.parametrize(
    ("handed", "key", "count"), [("seed", "jax.random.PRNGKey(seed)", 0), ("rng", "jax.random.split(rng)[0]", 1)]
)
def test_a_field_of_a_seed_is_made_once(handed: str, key: str, count: int) -> None:
    assert len(found("complex-fft-of-real", FIELD.format(handed=handed, key=key))) == count


CHOSEN = """
def good(x):
    return x.reshape(-1)[jnp.array([0, 1])]

def bad(x):
    return {bad}

@jax.jit
def stress(x, rank):
    return jax.lax.cond(jnp.equal(rank, 3), lambda _: good(x), lambda _: bad(x), operand=None)
"""


@pytest.mark.parametrize(
    ("bad", "is_one"), [("jnp.full(2, jnp.nan)", True), ("x.astype(int)", True), ("whatever(x)", True)]
)
def test_what_a_function_of_the_file_returns_is_one_array(bad: str, is_one: bool) -> None:
    code = HEAD + CHOSEN.format(bad=bad)
    findings = check_text(code.encode(), "m.py", Scope(("cond-for-where",)))
    for finding in findings:
        assert finding.suggestion is not None
        text = apply(code, finding.suggestion.edits)
        assert ("jax.tree.map" not in text) is is_one
        assert "jnp.where(jnp.equal(rank, 3), good(x), bad(x))" in text


SPECTRA = """
class Model:
    def __init__(self, wave):
        self.dark = {dark}
        self.darker = (wave < 2700) & (wave > 900)

    @functools.partial(jax.jit, static_argnums=0)
    def spectra(self, a, k, r):
        a = a.at[:, self.dark].set(1.0 + k / r)
        k += 0.5 * r
        return a.at[:, self.darker].set(2.0 + k[..., 3:] / r)
"""


def test_a_mask_is_no_number_to_compare_places_with() -> None:
    assert "make the values for all places" in advice("chained-at-set", SPECTRA.format(dark="wave < 2700"))
    assert "with `k = jnp.arange(n)`" in advice("chained-at-set", SPECTRA.format(dark="len(wave)"))


EIGENVECTORS = """
@jax.jit
def decomposed(x, slices):
    vectors = []
    for s in slices:
        values, v = {made}(x[s, s])
        vectors.append(v)
    out = jnp.zeros(x.shape)
    begin = 0
    for s, v in zip(slices, vectors):
        size = int(s.stop - s.start)
        out = out.at[..., s, begin : begin + size].set(v)
        begin += size
    return out
"""


@pytest.mark.parametrize(("made", "count"), [("jnp.linalg.eigh", 0), ("jnp.divmod", 1)])
def test_what_decompositions_gave_is_collected(made: str, count: int) -> None:
    assert len(found("blocks-by-at-set", EIGENVECTORS.format(made=made))) == count


HALVES = """
@jax.jit
def half_levels(dz, nz, shape):
    half = jnp.zeros({size})
    half = half.at[1:-1].set(0.5 * (dz[:-1] + dz[1:]))
    half = half.at[0].set(dz[0])
    half = half.at[-1].set(dz[-1])
    return half
"""


@pytest.mark.parametrize(("size", "is_row"), [("nz + 1", True), ("8", True), ("shape", False)])
def test_a_size_and_one_is_one_axis(size: str, is_row: bool) -> None:
    code = HEAD + HALVES.format(size=size)
    (finding,) = check_text(code.encode(), "m.py", Scope(("blocks-by-at-set",)))
    assert finding.suggestion is not None
    text = apply(code, finding.suggestion.edits)
    assert ("half = jnp.hstack([dz[0], 0.5 * (dz[:-1] + dz[1:]), dz[-1]])" in text) is is_row
    assert ("jnp.full_like" not in text) is is_row


@pytest.mark.parametrize(("size", "is_read"), [("dz[0]", False), ("dz[0] / half.size", True)])
def test_no_array_is_left_that_nobody_reads(size: str, is_read: bool) -> None:
    first = "half = jnp.zeros({size})\n    half = half.at[1:-1]"
    code = HEAD + HALVES.replace(first, "half = jnp.zeros({size}).at[1:-1]").replace("dz[0]", size).format(size="8")
    (finding,) = check_text(code.encode(), "m.py", Scope(("blocks-by-at-set",)))
    assert finding.suggestion is not None
    assert ("half = jnp.zeros(8)\n" in apply(code, finding.suggestion.edits)) is is_read


ORDER = """
def order(key, n, epochs):
    rows = jnp.tile(jnp.arange(n), (epochs, 1))
    return jax.random.permutation(key, rows, axis=1, independent=True)

def main(path):
    key = jax.random.PRNGKey(int(open(path).read()))
    {asked}
"""


@pytest.mark.parametrize(
    ("asked", "count"), [("print(order(key, 8, 4))", 0), ("for _ in range(99):\n        print(order(key, 8, 4))", 1)]
)
def test_an_order_that_hosts_alone_ask_for_is_drawn_once(asked: str, count: int) -> None:
    assert len(found("independent-permutation", ORDER.format(asked=asked))) == count


SMALL = """
def large(coefficients: jax.Array, names: list[str], bounds: list[float]):
    kept = []
    for coefficient, one in zip(jnp.abs(coefficients), {beside}):
        if float(coefficient) > 0.1:
            kept.append(one)
    return kept
"""


@pytest.mark.parametrize(("beside", "count"), [("names", 0), ("bounds", 1)])
def test_elements_that_have_names_are_few(beside: str, count: int) -> None:
    assert len(found("iterating-device-array", SMALL.format(beside=beside))) == count
