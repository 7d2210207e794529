"""Fixes of several statements, or with an import: what they write, that it computes the same, and what they leave."""

from __future__ import annotations

import inspect
from typing import Any

import fixes
import jax.numpy as jnp
import pytest

from fusionlint.source.fixing import fix_text
from fusionlint.source.judging import check_text
from fusionlint.source.scope import Scope
from fusionlint.source.world import join

X = jnp.arange(12.0).reshape(4, 3)


def fixed(rule: str, code: str) -> str:
    return fixes.fixed(rule, inspect.cleandoc(code) + "\n")


def assert_same(code: str, after: str, *args: Any) -> None:
    fixes.assert_same(inspect.cleandoc(code), after, *args)


SCAN = """
    import jax.numpy as jnp
    from jax import jit, lax

    @jit
    def run(xs):
        def step(c, x):
            c = 0.9 * c + x
            return c, c
        return lax.scan(step, jnp.zeros(3), xs)
"""


def test_a_module_that_is_not_there_is_imported_beside_what_is_of_it() -> None:
    after = fixed("scan-without-unroll", SCAN)
    assert after.startswith("import jax\nimport jax.numpy as jnp\n")
    assert "lax.scan(step, jnp.zeros(3), xs, unroll=16 if jax.default_backend()" in after
    assert_same(SCAN, after, X)


@pytest.mark.parametrize("code", [SCAN.replace("(xs)", "(xs, jax=None)"), SCAN.replace("xs", "jax")])
def test_a_module_is_not_imported_under_a_name_that_is_taken(code: str) -> None:
    assert fixed("scan-without-unroll", code) == inspect.cleandoc(code) + "\n"


CARRIES_NOTHING = """
    import jax
    import jax.numpy as jnp

    @jax.jit
    def run(x):
        def step({carry}, row):
            return {carry}, (row == x[1]).all()
        carried, found = jax.lax.scan(step, {first}, x)
        return carried, found
"""


@pytest.mark.parametrize(
    ("carry", "first", "after"),
    [
        ("c", "None", "jax.vmap(step, in_axes=(None, 0))(None, x)"),
        ("c", "jnp.ones((2, 2))", "jax.vmap(step, in_axes=(None, 0), out_axes=(None, 0))(jnp.ones((2, 2)), x)"),
    ],
)
def test_a_scan_that_carries_nothing_is_mapped_with_what_it_was_carried(carry: str, first: str, after: str) -> None:
    code = CARRIES_NOTHING.format(carry=carry, first=first)
    assert after in fixed("lax-map-for-vmap", code)
    assert_same(code, fixed("lax-map-for-vmap", code), X)


@pytest.mark.parametrize(
    ("again", "after"),
    [
        ("", "    def step(row):\n        return (row == x[1]).all()\n    found = jax.vmap(step)(x)\n"),
        (" + step(None, x[0])[1]", "_, found = jax.vmap(step, in_axes=(None, 0))(None, x)"),
    ],
)
def test_a_step_that_nothing_else_calls_loses_what_it_is_not_carried(again: str, after: str) -> None:
    code = f"""
    import jax
    import jax.numpy as jnp

    @jax.jit
    def run(x):
        def step(unused, row):
            return None, (row == x[1]).all()
        _, found = jax.lax.scan(step, None, x)
        return found{again}
    """
    assert after in fixed("lax-map-for-vmap", code)
    assert_same(code, fixed("lax-map-for-vmap", code), X)


TREES = """
    import jax
    import jax.numpy as jnp

    def twice(v):
        w = 2 * v
        return w + 1

    @jax.jit
    def run(x, p, i):
        y = jnp.flip(x)
        return {}
"""


@pytest.mark.parametrize(
    ("chosen", "after"),
    [
        ("jax.lax.cond(p > 2, lambda: (x, y), lambda: (y, x))", "lambda a, b: jnp.where(p > 2, a, b), (x, y), (y, x)"),
        ("jax.lax.cond(p > 2, twice, lambda v: v, x)", "jnp.where(p > 2, twice(x), x)"),
        ("jax.lax.cond(p > 2, lambda v: v * v + p, lambda v: v, y)", "jnp.where(p > 2, y * y + p, y)"),
        ("jax.lax.switch(i, (lambda: x, lambda: y))", "jnp.where(i <= 0, x, y)"),
        (
            "jax.lax.switch(i, (lambda: x, lambda: y, lambda: x + 1))",
            "jnp.where(i <= 0, x, jnp.where(i == 1, y, x + 1))",
        ),
        (
            "jax.lax.switch(i, (lambda: (x, y), lambda: (y, x), lambda: (x, x)))",
            "jax.tree.map(lambda a, b, c: jnp.where(i <= 0, a, jnp.where(i == 1, b, c)), (x, y), (y, x), (x, x))",
        ),
    ],
)
def test_branches_are_chosen_as_trees_as_calls_and_by_number(chosen: str, after: str) -> None:
    code = TREES.format(chosen)
    written = fixed("cond-for-where", code)
    assert after.replace(" ", "") in "".join(written.split()).replace(",)", ")")
    for p, i in ((0, -1), (3, 0), (3, 1), (0, 2), (0, 5)):
        assert_same(code, written, X, p, i)


def test_branches_that_return_several_values_without_parentheses_are_chosen_as_tuples() -> None:
    code = """
    import jax
    import jax.numpy as jnp

    @jax.jit
    def run(x, p):
        y = 2.0 * x

        def new():
            return p, y,

        def old():
            return p, x

        return jax.lax.cond(p > 2, new, old)
    """
    written = fixed("cond-for-where", code)
    assert "(p,y,),(p,x)" in "".join(written.split())
    for p in (0, 3):
        assert_same(code, written, X, p)


@pytest.mark.parametrize(
    "chosen",
    [
        "jax.lax.cond(p > 2, lambda v: v * v, lambda v: v, x * 2)",  # written out twice, it would be made twice
        "jax.lax.cond(p > 2, twice, lambda v: v, 1.0)",  # a conditional makes an array of it
        "jax.lax.cond(p > 2, lambda *v: v[0] + 1, lambda *v: v[0], x)",
    ],
)
def test_branches_are_left_where_what_they_are_handed_has_no_name(chosen: str) -> None:
    code = TREES.format(chosen)
    assert fixed("cond-for-where", code) == inspect.cleandoc(code) + "\n"


MASKED = """
    import jax
    import jax.numpy as jnp

    @jax.jit
    def run(xs):
        def step(buffer, x):
            i = jnp.argmax(x)
            buffer = jax.lax.cond(x.sum() > 9, {})
            return buffer, i
        return jax.lax.scan(step, jnp.zeros((4, 3)), xs)
"""


@pytest.mark.parametrize(
    ("branches", "after"),
    [
        (
            "lambda b: b.at[i].set(x), lambda b: b, buffer",
            "buffer.at[i].set(jnp.where(x.sum() > 9, x, buffer[i]))",
        ),
        (
            "lambda: buffer, lambda: buffer.at[i, :2].set(1.0)",
            "buffer.at[i, :2].set(jnp.where(x.sum() > 9, buffer[i, :2], 1.0))",
        ),
    ],
)
def test_a_write_that_may_not_be_is_one_of_what_stands_there(branches: str, after: str) -> None:
    code = MASKED.format(branches)
    assert after in fixed("cond-around-a-write", code)
    assert_same(code, fixed("cond-around-a-write", code), X)


LISTS = """
    import jax
    import jax.numpy as jnp

    @jax.jit
    def run(x):
        low = 3.0
        conditions = [x < low, x < 7]
        choices = [x, -x]{}
        return jnp.select(conditions, choices, 2.0)
"""


def test_lists_that_only_a_choice_reads_go_with_it() -> None:
    after = fixed("select-or-piecewise", LISTS.format(""))
    assert after.endswith("    low = 3.0\n    return jnp.where(x < low, x, jnp.where(x < 7, -x, 2.0))\n")
    assert_same(LISTS.format(""), after, X)


@pytest.mark.parametrize("more", ["  # of two", "\n        low = 5.0", "\n        choices.append(x)\n"])
def test_lists_that_mean_something_else_by_then_stay(more: str) -> None:
    code = LISTS.format(more)
    assert fixed("select-or-piecewise", code) == inspect.cleandoc(code) + "\n"


READ = """
    import jax.numpy as jnp

    def run(x, names):
        ranked = jnp.sort(x[:, 0])
        total = {}
        rows = []
        for i, name in enumerate(names):
            rows.append((name, float(ranked[i]) + 1.0))
        return [value for _, value in rows], total, [int(ranked[j]) for j, _ in enumerate(names)]
"""


def test_what_is_asked_for_its_numbers_alone_is_fetched_where_it_is_made() -> None:
    code = READ.format("len(ranked)")
    after = fixed("iterating-device-array", code)
    assert "    ranked = jax.device_get(jnp.sort(x[:, 0]))\n" in after
    assert after.startswith("import jax\nimport jax.numpy as jnp\n")
    assert_same(code, after, X, "abcd")


def test_what_is_needed_on_the_device_too_is_fetched_once_before_the_loop() -> None:
    code = READ.format("jnp.sum(ranked)")
    after = fixed("iterating-device-array", code)
    assert "    host_ranked = jax.device_get(ranked)\n    for i, name in" in after
    assert after.count("jax.device_get") == 1
    assert "float(host_ranked[i])" in after
    assert "int(host_ranked[j])" in after
    assert_same(code, after, X, "abcd")


def test_what_has_been_written_since_is_fetched_again() -> None:
    code = READ.format("jnp.sum(ranked)").replace("        return", "        ranked = 2 * ranked\n        return")
    after = fixed("iterating-device-array", code)
    assert after.count("host_ranked = jax.device_get(ranked)\n") == 2
    assert_same(code, after, X, "abcd")


def test_a_read_below_an_if_is_fetched_before_the_loop_all_the_same() -> None:
    code = READ.format("jnp.sum(ranked)").replace("            rows.app", "            if i:\n                rows.app")
    after = fixed("iterating-device-array", code)
    assert "    host_ranked = jax.device_get(ranked)\n    for i, name in" in after
    assert_same(code, after, X, "abcd")


@pytest.mark.parametrize(
    ("more", "fetched"), [("", "jax.device_get(data)"), (" + [float(jnp.sum(row))]", "jax.device_get(row)")]
)
def test_rows_that_are_only_gone_through_are_fetched_with_all_others(more: str, fetched: str) -> None:
    code = f"""
        import jax.numpy as jnp

        def run(x):
            data = jnp.asarray(x)
            return [[float(v) for v in row]{more} for row in data]
    """
    after = fixed("iterating-device-array", code)
    assert fetched in after
    assert_same(code, after, X)


PLAYED = """
    import jax

    step = jax.jit(lambda state, action: (state + action, state.sum(), state[0] > 100.0))

    class Game:
        def reset(self, state):
            self.state = state

        def step(self, action):
            self.state, reward, done = step(self.state, action)
            return float(reward), {}bool(done)

    def run(state, actions):
        game = Game()
        game.reset(state)
        return [game.step(action) for action in actions]
"""


def test_results_are_fetched_at_once_before_they_are_read() -> None:
    after = fixed("reads-one-by-one", PLAYED.format(""))
    assert "        reward, done = jax.device_get((reward, done))\n        return float(reward), bool(done)\n" in after
    assert_same(PLAYED.format(""), after, X[0], [1.0, 2.0])


def test_results_that_something_else_reads_stay_on_the_device() -> None:
    code = PLAYED.format("reward, ")
    assert fixed("reads-one-by-one", code) == inspect.cleandoc(code) + "\n"


ROWS = """
    import jax.numpy as jnp
    from jax import jit

    @jit
    def run(table, places, w):
        places = jnp.sort(places)
        rows = jnp.flip(table)
        return jnp.{}
"""


@pytest.mark.parametrize(
    ("made", "after"),
    [
        ("stack([table[i] for i in places])", "table[places]"),
        ("array([row[1] for row in rows])", "rows[:, 1]"),
        ("stack([jnp.dot(w, row) for row in rows])", "jax.vmap(lambda row: jnp.dot(w, row))(rows)"),
        (
            "array([jnp.array([1, i, 0]) for i in places], dtype=jnp.uint8)",
            "jax.vmap(lambda i: jnp.array([1, i, 0]))(places).astype(jnp.uint8)",
        ),
    ],
)
def test_what_is_made_of_all_rows_stands_for_their_stack(made: str, after: str) -> None:
    code = ROWS.format(made)
    written = fixed("loop-over-traced-array", code)
    assert f"    return {after}\n" in written
    assert_same(code, written, jnp.arange(60.0).reshape(20, 3), jnp.arange(0, 24, 2), jnp.ones(3))


@pytest.mark.parametrize("made", ["stack([row[1:] for row in rows], 1)", "vstack([jnp.exp(row) for row in rows])"])
def test_rows_that_are_joined_along_another_axis_are_left(made: str) -> None:
    code = ROWS.format(made)
    assert fixed("loop-over-traced-array", code) == inspect.cleandoc(code) + "\n"


FILLED = """
    import jax.numpy as jnp

    def run(x, names):
        table = jnp.zeros((4, 4))
        count = jnp.zeros(4)
        for i, _ in enumerate(names):
            for j, _ in enumerate(names):
                cos = float(jnp.sum(x[i] * x[j]))
                table = table.at[i, j].set({})
                count = count.at[j].add(1.0)
        return table, count
"""


def test_numbers_of_the_host_are_written_into_an_array_of_the_host() -> None:
    code = FILLED.format("cos")
    after = fixed("eager-at-set-loop", code)
    assert "import jax.numpy as jnp\nimport numpy as np\n" in after
    assert "    table = np.zeros((4, 4))\n" in after
    assert "            table[i, j] = cos\n" in after
    assert "            count[j] += 1.0\n" in after
    assert after.index("    table = jnp.asarray(table)\n") < after.index("    return table, count\n")
    assert_same(code, after, X, "abcd")


def test_an_array_whose_values_jax_computes_is_left() -> None:
    assert "table[i, j]" not in fixed("eager-at-set-loop", FILLED.format("jnp.sum(x[i] * x[j])"))


LOSSES = """
    import jax
    import jax.numpy as jnp

    @jax.jit
    def train_step(params, batch):
        return params - batch, jnp.sum(params)

    def run(params, batches):
        losses = []
        total = 0.0
        for batch in batches:
            params, loss = train_step(params, batch)
            losses.append({})
            total += loss.item()
        return params, losses, total
"""


def test_losses_are_read_behind_the_loop() -> None:
    code = LOSSES.format("float(loss)")
    after = fixed("host-sync-in-step-loop", code)
    assert "        losses.append(loss)\n        total += loss\n" in after
    assert (
        "    losses = [float(each) for each in jax.device_get(losses)]\n    total = float(total)\n    return" in after
    )
    assert_same(code, after, X[0], [*X])


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("losses = []", "losses = [0.0]"),
        ("losses.append({})", "losses.append({}); history(losses)"),
        ("losses.append({})", "losses.append(float(params[0]))"),
        ("total = 0.0", "total = 1.0"),
    ],
)
def test_losses_that_are_read_in_the_loop_or_begin_with_others_are_left(old: str, new: str) -> None:
    code = LOSSES.replace(old, new).replace("{}", "float(loss)")
    assert fixed("host-sync-in-step-loop", code) == inspect.cleandoc(code) + "\n"


STEP = """
    import jax
    import optax
    from flax.training.train_state import TrainState
    from network import batches, net, optimizer

    @jax.jit
    def step(state, batch):
        grads = jax.grad(lambda p: net.apply(p, batch).mean())(state.params)
        return state.apply_gradients(grads=grads)

    def train(key):
        params = net.init(key, 8)
        state = TrainState.create(apply_fn=net.apply, params={}, tx=optimizer)
        for batch in batches():
            state = step(state, batch)
        return state
"""


def test_a_step_is_told_what_to_donate_by_a_partial() -> None:
    after = fixed("update-without-donation", STEP.format("params"))
    assert after.startswith("import functools\nimport jax\n")
    assert "@functools.partial(jax.jit, donate_argnums=0)\ndef step" in after
    known = STEP.format("params").replace("import optax", "from functools import partial")
    assert "@partial(jax.jit, donate_argnums=0)\ndef step" in fixed("update-without-donation", known)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("return state\n", "return state, params\n"),  # read again when it is gone
        ("def train(key):\n", "def train(key, state):\n"),
        ("params={}", "params=params, average=params"),
    ],
)
def test_a_step_is_not_told_to_donate_what_somebody_needs(old: str, new: str) -> None:
    code = inspect.cleandoc(STEP.replace(old, new).replace("params={}", "params=params")) + "\n"
    if "def train(key, state)" in code:
        code = "".join(
            line for line in code.splitlines(keepends=True) if "net.init" not in line and "create" not in line
        )
    scope = Scope(("update-without-donation",))
    found = check_text(code.encode(), "m.py", scope)
    assert fix_text("m.py", code.encode(), found, scope, join({}), unsafe=True).after.decode() == code


def test_places_that_jax_computes_are_not_handed_to_numpy() -> None:
    """What lies outside jax leaves out, and numpy raises."""
    code = """
        import jax.numpy as jnp

        def main(x, n):
            seen = jnp.zeros(8)
            rows = jnp.round(x).astype(jnp.int32)
            for i in range(n):
                seen = seen.at[{}].set(1.0)
            return seen
    """
    assert "seen[i] = 1.0" in fixed("eager-at-set-loop", code.format("i"))
    assert "seen[rows + i]" not in fixed("eager-at-set-loop", code.format("rows + i"))
