"""What the sensors of the compiled program leave alone: it looks like a case of a page, and is none."""

from __future__ import annotations

from pathlib import Path

import compilers
import pytest

from fusionlint.rule import all_rules

pytestmark = pytest.mark.compilers

CODE = """
import jax
import jax.numpy as jnp
import numpy as np

def columns_needed_between(state, x):
    moved = state.at[:, 0].set(x)
    return moved.at[:, 1].set(jnp.sin(x)), jnp.cumsum(moved, axis=1)

def one_column(state, x):
    state = jnp.sin(state).at[:, 2].set(x)
    return state, state @ state.T

def blocks_of_what_is_kept(state, a, b):
    state = state.at[:10, :20].set(a)
    return state.at[20:40, 30:60].set(b)

def beside_the_diagonal(a, v):
    return jnp.diag(jnp.exp(v), k=1) @ a

def above_the_diagonal(k):
    return jnp.exp(k).at[jnp.arange(63), jnp.arange(1, 64)].set(0.0)

def product_with_a_diagonal(x):
    return (x @ x.T).at[jnp.diag_indices(64)].add(1.0)

def places_of_data(x):
    rows, columns = jnp.nonzero(jnp.triu(x), size=100)
    return x[columns, rows]

def permuted_whole(key, x):
    order = jax.random.permutation(key, x.shape[0])
    return x[order]

def orders_of_rows(keys, x):
    return jax.vmap(jax.random.permutation)(keys, x)

def rolled_and_set_elsewhere(x, v):
    return jnp.roll(x, 1, axis=0).at[-1].set(v)

def rolled_and_read(x, v):
    moved = jnp.roll(x, 1, axis=0)
    return moved.at[0].set(v), moved @ x.T

def summed_by_class(x, labels):
    return jax.nn.one_hot(labels, 64).T @ x

def few_classes(labels, table):
    return jax.nn.one_hot(labels, 4) @ table

def counted(labels):
    return jnp.zeros((512, 32)).at[jnp.arange(512), labels].add(1.0) * 2.0

def first_hits(x):
    return jax.vmap(lambda row: jnp.nonzero(row > 0, size=1)[0])(x) % 8

def some_hits(x):
    return jax.vmap(lambda row: jnp.nonzero(row > 0, size=4)[0])(x) % 8

def with_entropy(logits, labels):
    def loss(logits):
        log_p = jax.nn.log_softmax(logits)
        entropy = -(jnp.exp(log_p) * log_p).sum(-1)
        return -(jnp.take_along_axis(log_p, labels[:, None], axis=-1)[:, 0] + 0.01 * entropy).mean()
    return jax.value_and_grad(loss)(logits)

def whole_spectrum(x):
    return jnp.abs(jnp.fft.fft(x)) ** 2

def half_of_a_wave(x, phase):
    return jnp.abs(jnp.fft.fft(x * jnp.exp(1j * phase)))[..., :129]

def other_half(x):
    return jnp.abs(jnp.fft.fft(x))[..., 100:229]

def filtered(x, k):
    return jnp.fft.ifft(jnp.fft.fft(x) * k).real

def beside_the_best(x):
    i = jnp.argmax(x)
    return x[i + 1]

def of_another(x, y):
    return y[jnp.argmax(x)]

def solved_or_not(p, a, b):
    return jax.lax.cond(p > 0, lambda: jnp.linalg.solve(a, b), lambda: b) * 2

def divided_in_a_gradient(x, y):
    def loss(x):
        y2 = jax.lax.cond(y.sum() > 0, lambda: jnp.sin(x) / y.sum(), lambda: x)
        return (y2 ** 2).sum()
    return jax.grad(loss)(x)

def written_by_work(table, rows):
    def step(table, row):
        new = lambda t: t.at[0].set(jnp.linalg.solve(t[:64], row))
        return jax.lax.cond(row[0] > 0, new, lambda t: t, table), None
    return jax.lax.scan(step, table, rows)

def not_one_array(a, b, c):
    return jnp.tanh(jnp.concatenate([-b[..., 64:], a[..., :64]], axis=-1)) @ c

def indexed(x, rows):
    return jax.vmap(lambda row, i: row[i])(x, rows) * 2

def mapped_by_a_product(x, w):
    return jax.lax.map(lambda row: jnp.tanh(w @ row), x)

def mapped_over_much(x):
    return jax.lax.map(lambda row: jnp.sum(jnp.sin(row)), x)

def each_by_the_last(x):
    return jax.lax.fori_loop(1, 64, lambda i, x: x.at[i].set(jnp.sin(x[i - 1])), x)

def of_what_another_made(x):
    return jnp.fft.fft2(jnp.sin(jnp.abs(jnp.fft.fft2(x))))

def at_a_few_places(v):
    return jnp.sin(jnp.zeros(64).at[jnp.array([1, 5, 9])].set(v))

def written_reduced_and_kept(x, i):
    x = jax.vmap(lambda row, i: jnp.sin(row).at[i].set(0.0))(x, i)
    return x.sum(1), x * 2

def of_three_labels(x, labels):
    return jnp.stack([jnp.sum(jnp.where(labels == k, jnp.sin(x), 0.0)) for k in range(3)])

def first_in_order(x, y):
    return y[jnp.argsort(x)[:8]] * 2

def eliminated_where_cholesky_fails(m, b):
    m = m @ m.T
    f, x = jnp.linalg.cholesky(m), jnp.linalg.solve(m, b)
    return jnp.where(jnp.isnan(f).any(), x, jax.scipy.linalg.cho_solve((f, True), b))

def of_two_matrices(m, n, b):
    return jax.scipy.linalg.solve(m, b, assume_a="pos"), jnp.linalg.slogdet(m + n)[1]

def more_and_more_damped(h, g, damping):
    eye = jnp.eye(16)
    return jnp.linalg.solve(h + damping * eye, g), jnp.linalg.solve(h + 10.0 * damping * eye, g)

def damped_by_one_or_two(h, g):
    return jnp.linalg.solve(h + jnp.eye(16), g), jnp.linalg.solve(h + 2.0 * jnp.eye(16), g)

def refined(m, b):
    x = jnp.linalg.solve(m, b)
    return x + jnp.linalg.solve(m, b - m @ x)

def of_two_factors(a, b):
    return jnp.linalg.solve(a @ b.T + jnp.eye(16), b), jnp.linalg.solve(a @ a.T, b)

def of_a_sum_of_factors(m, a, b):
    return jnp.linalg.solve(jnp.linalg.cholesky(m @ m.T + jnp.eye(16)) + a, b)

def layer_by_layer(x, w):
    for i in range(6):
        x = jnp.tanh(x @ w[i])
    return x

def row_by_the_last(x, start):
    found = []
    for i in range(8):
        start = jnp.interp(start, x[i], x[i - 1])
        found.append(start)
    return jnp.stack(found)

def summed_leaf_by_leaf(leaves):
    return [jnp.cumsum(jnp.sin(leaf)) / leaf.sum() for leaf in leaves]

def cartpole(state, force):
    x, v, angle, turn = state[0], state[1], state[2], state[3]
    pull = (force + turn ** 2 * jnp.sin(angle)) / 1.1
    bend = (9.8 * jnp.sin(angle) - jnp.cos(angle) * pull) / (4 / 3 - jnp.cos(angle) ** 2)
    return jnp.cumsum(jnp.stack([x + v, v + pull - bend * jnp.cos(angle), angle + turn, turn + bend]), axis=-1)

def two_rows(x):
    return jnp.stack([jnp.linalg.cholesky(x[i]) for i in range(2)])

def made_once(key):
    k1, k2, k3 = jax.random.split(key, 3)
    w1 = jax.random.normal(k1, (8, 16))
    w2 = jax.random.normal(k2, (16, 16))
    return w1 @ w2 @ jax.random.normal(k3, (16, 4))

def of_several_kinds(keys):
    def one(key):
        k1, k2, k3 = jax.random.split(key, 3)
        place = jax.random.uniform(k1, (2,))
        return place * jax.random.normal(k2, (2,)) + jax.random.categorical(k3, place)
    return jax.vmap(one)(keys)

def many_numbers(keys):
    def one(key):
        k1, k2, k3 = jax.random.split(key, 3)
        found = jax.random.normal(k1, (4096,)) + jax.random.normal(k2, (4096,))
        return jnp.cumsum(found * jax.random.normal(k3, (4096,)))
    return jax.vmap(one)(keys)

def chosen_once(boards, at, on):
    return jax.vmap(lambda b, i, p: jnp.where(p, b.at[i].set(1.0), b))(boards, at, on)

def chosen_and_searched(boards, at, on):
    def one(board, at, on):
        board = jnp.where(on[0], board.at[at[0]].set(1.0), board)
        return jnp.where(on[1], board.at[jnp.argmax(board)].set(2.0), board)
    return jax.vmap(one)(boards, at, on)

def chosen_of_two(boards, others, at, on):
    def one(board, other, at, on):
        board = jnp.where(on[0], board.at[at[0]].set(1.0), other)
        return jnp.where(on[1], board.at[at[1]].set(2.0), other)
    return jax.vmap(one)(boards, others, at, on)

def running_total(x):
    def step(total, row):
        return total + jnp.sin(row), total
    return jax.lax.scan(step, jnp.zeros(64), x)

def by_horner(coefficients, x):
    return jax.lax.fori_loop(0, 32, lambda i, y: y * x + coefficients[i], jnp.zeros(64))

def until_enough(x):
    turn = lambda state: (state[0] + 1, state[1] + x[state[0]])
    return jax.lax.while_loop(lambda state: (state[0] < 64) & (state[1] < 3.0), turn, (0, 0.0))

def attended(x, w):
    q, k, v = (jnp.tanh(x @ w[i]) for i in range(3))
    return jax.grad(lambda q: (jax.nn.softmax(q @ k.T) @ v).sum())(q), q @ w[3]

def of_other_inputs(xs, w):
    return [jnp.tanh(jnp.tanh(x @ w[0]) @ w[1]) for x in xs]

def gated(x, w):
    for i in range(2):
        x = (jax.nn.silu(x @ w[i]) * (x @ w[i + 1])) @ w[i + 2]
    return x

def orthogonal(leaves):
    def newton(x):
        for _ in range(3):
            x = 1.5 * x - 0.5 * x @ (x.T @ x)
        return x
    return [newton(jnp.cumsum(leaf, axis=0)) for leaf in leaves]

def attended_block_by_block(q, keys, values):
    def step(carry, block):
        most, total, out = carry
        scores = q @ block[0].T
        now = jnp.maximum(most, scores.max(axis=1))
        weights, kept = jnp.exp(scores - now[:, None]), jnp.exp(most - now)
        return (now, total * kept + weights.sum(axis=1), out * kept[:, None] + weights @ block[1]), None
    start = jnp.full(q.shape[0], -jnp.inf), jnp.zeros(q.shape[0]), jnp.zeros_like(q)
    (_, total, out), _ = jax.lax.scan(step, start, (keys, values), unroll=4)
    return out / total[:, None]

def from_the_end(x):
    step = lambda total, row: (0.9 * total + row, jnp.tanh(total))
    return jax.lax.scan(step, jnp.zeros(64), jnp.sin(x)[::-1])[1] * 2

def flipped_along_the_other_axis(x):
    step = lambda total, row: (0.9 * total + row, jnp.tanh(total))
    return jnp.flip(jax.lax.scan(step, jnp.zeros(64), jnp.flip(x, axis=1))[1], axis=1)

def many_points_turned_by_one(points, angle):
    c, s = jnp.cos(angle), jnp.sin(angle)
    return jnp.tanh(points @ jnp.array([[c, -s], [s, c]]))

def many_points_of_each(points, angles):
    def one(points, angle):
        c, s = jnp.cos(angle), jnp.sin(angle)
        return jnp.tanh(points @ jnp.array([[c, -s], [s, c]]))
    return jax.vmap(one)(points, angles)

def totals_of_each(cells):
    return jax.vmap(lambda cell: jnp.zeros((8, 8)).at[cell].add(0.5))(cells).sum(axis=(1, 2))

def grids_that_are_kept(cells):
    grids = jax.vmap(lambda cell: jnp.zeros((8, 8)).at[cell].add(0.5))(cells)
    return grids, grids.sum(axis=0)

def rows_changed_and_summed(rows, places):
    return jax.vmap(lambda row, i: jnp.sin(row).at[i].add(1.0))(rows, places).sum(axis=0)

def until_done(x):
    return jax.lax.while_loop(lambda x: x.sum() > 1.0, lambda x: x * 0.9, x)

def one_edge(u):
    return jnp.cumsum(jnp.sin(u).at[0].set(0.0), axis=0)

def edge_and_row(u):
    u = jnp.sin(u).at[0].set(0.0)
    return jnp.cumsum(u.at[7].set(1.0), axis=0)

def inner_part_and_edges(x):
    change = jnp.zeros_like(x).at[1:-1].set(x[2:] - 2.0 * x[1:-1] + x[:-2])
    change = change.at[0].set(x[1] - x[0]).at[-1].set(x[-2] - x[-1])
    return x + 0.1 * change

def edges_of_few_columns(u, x):
    return jnp.cumsum(jnp.sin(u).at[:, 0].set(x).at[:, -1].set(x), axis=0)

def rows_worked_on(x, scale):
    return jnp.tanh(x).at[:3].multiply(scale) + 1.0

def part_added(x, part):
    return jnp.tanh(x).at[:, :3].add(part) + 1.0

def column_of_data(x, i):
    return jnp.tanh(x).at[:, i].multiply(2.0) + 1.0

def last_column_divided(x):
    return jnp.tanh(x).at[:, -1].divide(2.0) + 1.0

def gradient_of_a_part(x):
    return jax.grad(lambda x: (jnp.sin(x)[:, :3] * 2.0).sum())(x)

def few_known_places(x, v):
    return jnp.tanh(x).at[jnp.array([1, 5, 9])].set(v) * 2.0

def mask_of_an_argument(x, v):
    return x.at[np.arange(64) % 3 == 0].set(v)

def of_three(a, b, c):
    return jnp.exp(jax.nn.logsumexp(jnp.stack([a, b, c]), axis=0)).sum(-1)

def of_given_pairs(x):
    return jnp.cumsum(jax.nn.logsumexp(x, axis=-1))

def softmax_of_two(a, b):
    return jnp.cumsum(jax.nn.softmax(jnp.stack([a - 1.0, b - 1.0]), axis=0), axis=1)

def counted_before(expert):
    mask = jax.nn.one_hot(expert % 64, 64)
    return jnp.cumsum(mask, axis=0) * mask

def of_weights(labels, w):
    return jnp.cumsum(w * jax.nn.one_hot(labels, 1024), axis=-1)

def tokens_of_the_data(h, tokens, w):
    def step(carry, token):
        h, last = carry
        h = jnp.tanh(last @ w + h)
        return (h, jax.nn.one_hot(token, 1000)), h.sum()
    return jax.lax.scan(step, (h, jax.nn.one_hot(tokens[0], 1000)), tokens)

def one_hot_joined(h, w):
    def step(carry, _):
        h, last = carry
        h = jnp.tanh(jnp.concatenate([h, last], axis=-1) @ w)
        token = jnp.argmax(h, axis=-1)
        return (h, jax.nn.one_hot(token, 256)), token
    return jax.lax.scan(step, (h, jnp.zeros((64, 256))), None, length=32)

def ranks_of_joined(x, y):
    return jnp.argmax(jnp.concatenate([x > 0, y > 0]), axis=0)
"""
SILENT = {
    "columns_needed_between(f32[1024,4], f32[1024])": "columns-by-at-set",
    "one_column(f32[1024,4], f32[1024])": "columns-by-at-set",
    "blocks_of_what_is_kept(f32[64,64], f32[10,20], f32[20,30])": "blocks-by-at-set",
    "beside_the_diagonal(f32[64,64], f32[63])": "diag-then-matmul",
    "above_the_diagonal(f32[64,64])": "write-on-diagonal",
    "product_with_a_diagonal(f32[64,64])": "write-on-diagonal",
    "places_of_data(f32[64,64])": "triangle-indices-in-trace",
    "permuted_whole(key, f32[4096])": "choice-without-replacement",
    "orders_of_rows(key[64], f32[64,512])": "independent-permutation",
    "rolled_and_set_elsewhere(f32[64,64], f32[64])": "roll-then-set",
    "rolled_and_read(f32[64,64], f32[64])": "roll-then-set",
    "summed_by_class(f32[4096,128], i32[4096])": "one-hot-matmul",
    "few_classes(i32[4096], f32[4,128])": "one-hot-matmul",
    "counted(i32[512])": "one-hot-by-at-set",
    "first_hits(f32[1024,64])": "one-hot-by-at-set",
    "some_hits(f32[1024,64])": "nonzero-as-mask",
    "with_entropy(f32[256,512], i32[256])": "log-softmax-then-pick",
    "whole_spectrum(f32[256,256])": "complex-fft-of-real",
    "half_of_a_wave(f32[256,256], f32[256,256])": "complex-fft-of-real",
    "other_half(f32[256,256])": "complex-fft-of-real",
    "filtered(f32[256,256], f32[256])": "complex-fft-of-real",
    "beside_the_best(f32[256])": "argmax-then-pick",
    "of_another(f32[256], f32[256])": "argmax-then-pick",
    "solved_or_not(f32[], f32[64,64], f32[64])": "cond-for-where",
    "divided_in_a_gradient(f32[4096], f32[4096])": "cond-for-where",
    "written_by_work(f32[256,64], f32[16,64])": "cond-around-a-write",
    "not_one_array(f32[512,128], f32[512,128], f32[128,64])": "rope-by-copies",
    "indexed(f32[1024,64], i32[1024])": "vmapped-dynamic-slice",
    "mapped_by_a_product(f32[64,1024], f32[1024,1024])": "lax-map-for-vmap",
    "mapped_over_much(f32[64,1048576])": "lax-map-for-vmap",
    "each_by_the_last(f32[64])": "write-in-fori-loop",
    "of_what_another_made(f32[64,64])": "ffts-one-by-one",
    "at_a_few_places(f32[3])": "insert-by-scatter",
    "written_reduced_and_kept(f32[1024,64], i32[1024])": "write-before-reduction",
    "of_three_labels(f32[4096], i32[4096])": "segments-one-by-one",
    "first_in_order(f32[4096], f32[4096])": "argsort-then-gather",
    "eliminated_where_cholesky_fails(f32[16,16], f32[16])": "factored-in-two-ways",
    "of_two_matrices(f32[16,16], f32[16,16], f32[16])": "factored-in-two-ways",
    "more_and_more_damped(f32[16,16], f32[16], f32[])": "factored-twice",
    "damped_by_one_or_two(f32[16,16], f32[16])": "factored-twice",
    "refined(f32[16,16], f32[16])": "factored-twice",
    "of_two_factors(f32[16,16], f32[16,16])": "solve-for-cholesky",
    "of_a_sum_of_factors(f32[16,16], f32[16,16], f32[16])": "factored-twice",
    "layer_by_layer(f32[32,64], f32[6,64,64])": "rows-one-by-one",
    "row_by_the_last(f32[8,64], f32[64])": "rows-one-by-one",
    "summed_leaf_by_leaf([f32[64], f32[64], f32[64], f32[64], f32[64]])": "rows-one-by-one",
    "cartpole(f32[4,512], f32[512])": "rows-one-by-one",
    "two_rows(f32[2,8,8])": "rows-one-by-one",
    "made_once(key)": "draws-one-by-one",
    "of_several_kinds(key[64])": "draws-one-by-one",
    "many_numbers(key[64])": "draws-one-by-one",
    "chosen_once(f32[1024,64], i32[1024], bool[1024])": "chosen-at-set",
    "chosen_and_searched(f32[1024,64], i32[1024,2], bool[1024,2])": "chosen-at-set",
    "chosen_of_two(f32[1024,64], f32[1024,64], i32[1024,2], bool[1024,2])": "chosen-at-set",
    "running_total(f32[32,64])": "scalar-loop",
    "by_horner(f32[32], f32[64])": "scalar-loop",
    "until_enough(f32[64])": "scalar-loop",
    "attended(f32[64,64], f32[4,64,64])": "networks-one-by-one",
    "of_other_inputs([f32[64,64], f32[64,64]], f32[2,64,64])": "networks-one-by-one",
    "gated(f32[64,64], f32[4,64,64])": "networks-one-by-one",
    "orthogonal([f32[64,64], f32[64,64]])": "networks-one-by-one",
    "attended_block_by_block(f32[256,64], f32[16,128,64], f32[16,128,64])": "networks-one-by-one",
    "from_the_end(f32[128,64])": "flip-around-scan",
    "flipped_along_the_other_axis(f32[128,64])": "flip-around-scan",
    "many_points_turned_by_one(f32[4096,2], f32[])": "small-matmul",
    "many_points_of_each(f32[256,1024,2], f32[256])": "small-matmul",
    "totals_of_each(i32[256])": "grid-per-element",
    "grids_that_are_kept(i32[256])": "grid-per-element",
    "rows_changed_and_summed(f32[256,64], i32[256])": "grid-per-element",
    "until_done(f32[64])": "scan-without-unroll",
    "one_edge(f32[64,64])": "boundary-writes",
    "edge_and_row(f32[64,64])": "boundary-writes",
    "inner_part_and_edges(f32[64,128])": "boundary-writes",
    "edges_of_few_columns(f32[64,8], f32[64])": "boundary-writes",
    "rows_worked_on(f32[4096,30], f32[])": "arithmetic-by-at",
    "part_added(f32[4096,30], f32[4096,3])": "arithmetic-by-at",
    "column_of_data(f32[4096,30], i32[])": "arithmetic-by-at",
    "last_column_divided(f32[4096,30])": "arithmetic-by-at",
    "gradient_of_a_part(f32[4096,30])": "arithmetic-by-at",
    "few_known_places(f32[64,64], f32[3,64])": "at-set-by-mask",
    "mask_of_an_argument(f32[64,64], f32[22,64])": "at-set-by-mask",
    "of_three(f32[64,512], f32[64,512], f32[64,512])": "logsumexp-of-two",
    "of_given_pairs(f32[4096,2])": "logsumexp-of-two",
    "softmax_of_two(f32[64,512], f32[64,512])": "logsumexp-of-two",
    "counted_before(i32[1024])": "cumsum-of-one-hot",
    "of_weights(i32[1024], f32[1024,1])": "cumsum-of-one-hot",
    "tokens_of_the_data(f32[64,256], i32[32,64], f32[1000,256])": "one-hot-in-carry",
    "one_hot_joined(f32[64,256], f32[512,256])": "one-hot-in-carry",
    "ranks_of_joined(f32[32,512], f32[32,512])": "select-or-piecewise",
}


@pytest.mark.parametrize("target", ["h100", "v5e", "cpu"])
def test_what_only_looks_like_a_case_has_no_advice(target: str, tmp_path: Path) -> None:
    reports = compilers.explained(compilers.written(CODE, SILENT, tmp_path), target, all_rules())
    told = {call: SILENT[call] for call, report in reports.items() if SILENT[call] in compilers.told(report)}
    assert told == {}
