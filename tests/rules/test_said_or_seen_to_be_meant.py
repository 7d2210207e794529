"""What a setting, a docstring or a comment says is meant, and loops, compilations and reads that a program needs as
they are: each was found in public packages; what is next to it and is a case is found."""

from __future__ import annotations

from textwrap import dedent

import pytest

from fusionlint.source.judging import check_text
from fusionlint.source.scope import Scope

HEAD = "import jax\nimport jax.numpy as jnp\nimport numpy as np\nfrom jax import lax\n"

BAR = """
def newton(x, print_progress=False):
    def body(carry):
        step, x = carry
        if print_progress:
            step = jax.pure_callback(progress_bar, jax.ShapeDtypeStruct((), int), step)
        return step + 1, x * 0.5
    return lax.while_loop(lambda c: c[0] < 9, body, (0, x))
"""
PRINTS = """
@jax.jit
def search(x):
    '''One search, with debug output by jax.debug.print.'''
    jax.debug.print("values = {x}", x=x)
    return x * 2
"""
SPARED = """
@jax.jit
def magnified(cond, x):
    far = lambda y: lax.scan(lambda c, z: (c + z * z, c), 0.0, y)[0]
    return lax.map(lambda a: lax.cond(a[0], lambda _: a[1].sum(), BRANCH, a[1]), (cond, x))
"""
WINDOWS = """
@jax.jit
def tiled(kvec, x, table):
    def phase(t):
        b, k, m = t[0], t[1], t[2]
        # A gather would materialise the whole axis for each tile, what the tiling is there to avoid.
        kv = lax.dynamic_slice(kvec, (b, k), (1, 8))
        return kv.sum() + lax.dynamic_slice(x, (m, k), (4, 8)).sum()
    def again(t):
        b, k = t[0], t[1]
        return lax.dynamic_slice(kvec, (b, k), (1, 8)).sum()
    return jax.vmap(phase)(table), jax.vmap(again)(table)
"""
HALVES = """
@jax.jit
def found(codes, at):
    def one(i):
        def goes_on(state):
            t, _ = state
            return t > 0
        def body(state):
            t, place = state
            place = jnp.where(codes[i + place + t] > codes[i], place + t, place)
            t = NEXT
            return t, place
        return lax.while_loop(goes_on, body, (64, 0))[1]
    return jax.vmap(one)(at)
"""
STACK = """
@jax.jit
def depths(left, right, roots):
    def one(root):
        def goes_on(state):
            _, _, top = state
            return top >= 0
        def body(state):
            total, stack, top = state
            node = TAKEN
            top = top - 1
            def push(pair):
                stack, top = pair
                return stack.at[top + 1].set(left[node]), top + 1
            stack, top = lax.cond(left[node] > 0, push, lambda pair: pair, (stack, top))
            return total + right[node], stack, top
        return lax.while_loop(goes_on, body, (0, jnp.zeros(8, int), root))[0]
    return jax.vmap(one)(roots)
"""
PUSHED = f"""{STACK.replace("stack.at[top + 1].set(left[node]), top + 1", "pushed(stack, top + 1, left[node])")}
def pushed(rows, at, node):
    return rows.at[at].set(node), at
"""
WARMED = """
def opened(ones, groups):
    for axes in groups:
        warm = jax.jit(lambda x: lax.psum(x, axes))
        USE
"""
MERGED = """
def merged(trees):
    return [merge(tree) for tree in trees]

def merge(tree):
    layout = jax.tree.map(lambda x: x.sharding, OF)
    return jax.jit(lambda t: jax.tree.map(jnp.sum, t), out_shardings=layout)(tree)
"""
STOPS = """
@jax.jit
def step(w, x):
    return w - 0.1 * x, (w * x).sum()

def fit(w, x, patience):
    losses = np.zeros(1000)
    shown = []
    for i in range(1000):
        w, loss = step(w, x)
        losses[i] = loss
        shown.append(loss.item())
        if i > 0 and i - np.argmin(TABLE[:i]) > patience:
            break
    return w, shown
"""
GYM = """
@jax.jit
def act(w, state):
    return state * w, state + 1

def play(env, w, state):
    seen = []
    for i in range(1000):
        action, state = act(w, state)
        STEP
        seen.append(action)
    return seen
"""
WEIGHED = """
def body(carry, i):
    kept = carry
    # SAID
    kept = lax.cond(i > 3, lambda k: k + 1.0, lambda k: k, kept)
    return kept, None

@jax.jit
def run(x):
    return lax.scan(body, x, jnp.arange(9))
"""
CLIMBED = """
def parent_of(tree, node):
    READ

def backup(tree, leaf):
    def turn(carry):
        tree, node, total = carry
        return tree, parent_of(tree, node), total + tree["reward"][node]

    return lax.while_loop(lambda carry: carry[1] != 0, turn, (tree, leaf, 0.0))

found = jax.jit(jax.vmap(backup))
"""
DRAWN = """
def DRAWS(image, places):
    def turn(carry):
        image, i = carry
        return WRITTEN, i + 1

    return lax.while_loop(lambda carry: jnp.all(places[carry[1]] >= 0), turn, (image, 0))[0]

drawn = jax.jit(jax.vmap(DRAWS))
"""
LITERAL = """
def table(n):
    ROWS
    return {f"omega{i}": float(x) for i, x in enumerate(rows)}
"""


def found(code: str, rule: str) -> list[int]:
    findings = check_text((HEAD + dedent(code)).encode(), "module.py", Scope((rule,)))
    return [finding.location.line for finding in findings]


@pytest.mark.parametrize(
    ("code", "rule", "old", "new", "count"),
    [
        (BAR, "callback-in-loop-body", "", "", 0),
        (BAR, "callback-in-loop-body", "(progress_bar", "(np.cbrt", 1),
        (PRINTS, "callback-in-traced-code", "", "", 0),
        (PRINTS, "callback-in-traced-code", "One search, with debug output by jax.debug.print.", "One search.", 1),
        (SPARED, "lax-map-for-vmap", "BRANCH", "jax.jit(integral)", 0),
        (SPARED, "lax-map-for-vmap", "BRANCH", "far", 0),
        (SPARED, "lax-map-for-vmap", "BRANCH", "lambda y: jnp.cos(y).sum()", 1),
        (HALVES, "while-loop-under-vmap", "NEXT", "t // 2", 0),
        (HALVES, "while-loop-under-vmap", "NEXT", "(t + 1) // 2", 0),
        (HALVES, "while-loop-under-vmap", "NEXT", "t - codes[place]", 1),
        (CLIMBED, "while-loop-under-vmap", "READ", 'return tree["parent"][node]', 0),
        (CLIMBED, "while-loop-under-vmap", "READ", "return node - 1", 1),
        (DRAWN.replace("WRITTEN", "image"), "while-loop-under-vmap", "DRAWS", "render_tiles", 0),
        (DRAWN.replace("WRITTEN", "image"), "while-loop-under-vmap", "DRAWS", "first_free", 1),
        (STACK, "while-loop-under-vmap", "TAKEN", "stack[top]", 0),
        (STACK, "while-loop-under-vmap", "TAKEN", "left[top]", 1),
        (PUSHED, "while-loop-under-vmap", "TAKEN", "stack[top]", 0),
        (PUSHED, "while-loop-under-vmap", "TAKEN", "left[top]", 1),
        (WARMED, "jit-per-call", "USE", "warm(ones).block_until_ready()", 0),
        (WARMED, "jit-per-call", "USE", "jax.block_until_ready(warm(ones))", 0),
        (WARMED, "jit-per-call", "USE", "print(warm(ones))", 1),
        (MERGED, "jit-per-call", "OF", "tree", 0),
        (MERGED, "jit-per-call", "OF", "LAYOUTS", 1),
        (STOPS, "host-sync-in-step-loop", "TABLE", "losses", 0),
        (STOPS, "host-sync-in-step-loop", "TABLE", "others", 1),
        (GYM, "loop-over-jit", "STEP", "obs, reward, done, info = env.step(action)", 0),
        (GYM, "loop-over-jit", "STEP", "pass", 1),
        (WEIGHED, "cond-for-where", "SAID", "O(length) in each step, but the conditionals are cheap.", 0),
        (WEIGHED, "cond-for-where", "SAID", "Avoid making NaNs unless we have to, by using a cond.", 0),
        (WEIGHED, "cond-for-where", "SAID", "Don't use lax.select: it takes NaNs into the gradients.", 0),
        (WEIGHED, "cond-for-where", "SAID", "A cond rather than a jnp.where, whose gradient is NaN.", 0),
        (WEIGHED, "cond-for-where", "SAID", "Where it is NaN.", 1),
        (WEIGHED, "cond-for-where", "SAID", "Do not use this where it is NaN.", 1),
        (WEIGHED, "cond-for-where", "SAID", "From the fourth step on.", 1),
        (LITERAL, "iterating-device-array", "ROWS", "rows = jnp.log(jnp.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6]))", 0),
        (LITERAL, "iterating-device-array", "ROWS", "rows = jnp.log(jnp.arange(n))", 1),
        (LITERAL, "iterating-device-array", "ROWS", "rows = jnp.concatenate([jnp.ones(n), jnp.ones(n)])", 1),
    ],
)
def test_it_is_told_where_nothing_says_so(code: str, rule: str, old: str, new: str, count: int) -> None:
    assert len(found(code.replace(old, new) if old else code, rule)) == count


@pytest.mark.parametrize(
    ("written", "advised"),
    [
        ("image", "a test of all places at once"),
        ("image.at[0].add(1.0)", "the array form of all turns at once"),
        ("lax.dynamic_update_slice(image, jnp.ones(2), places[i])", "the array form of all turns at once"),
    ],
)
def test_a_loop_that_writes_is_no_search(written: str, advised: str) -> None:
    code = HEAD + dedent(DRAWN.replace("WRITTEN", written).replace("DRAWS", "fill"))
    (one,) = check_text(code.encode(), "module.py", Scope(("while-loop-under-vmap",)))
    assert one.suggestion is not None
    assert one.suggestion.text.startswith(advised)


def test_a_comment_above_a_window_is_about_those_that_begin_there() -> None:
    plain = WINDOWS.replace("A gather would materialise", "The numbers of").replace("avoid", "have")
    lines = found(plain, "vmapped-dynamic-slice")
    assert len(lines) == 3
    assert found(WINDOWS, "vmapped-dynamic-slice") == lines[1:2]
