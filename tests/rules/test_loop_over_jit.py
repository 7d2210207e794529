"""loop-over-jit across files, and the loops that its page has no room for."""

from __future__ import annotations

from pathlib import Path

import pytest

from fusionlint.source.check import check_files
from fusionlint.source.judging import check_text
from fusionlint.source.scope import Scope

ONLY = Scope(("loop-over-jit",))
HEAD = (
    "import jax, time, itertools\nfrom datetime import datetime\nimport numpy as np\n"
    "step = jax.jit(lambda s, x=1.0: s * x)\n"
)


def lines(body: str, head: str = HEAD) -> list[int]:
    """Lines of the findings in a function `run(state, a, b, c)` with this body, counted from the body's first."""
    code = f"{head}def run(state, a, b, c):\n" + "".join(f"    {line}\n" for line in body.splitlines())
    start = head.count("\n") + 1
    return [f.location.line - start for f in check_text(code.encode(), "m.py", ONLY)]


@pytest.mark.parametrize(
    "body",
    [
        "for i in range(a):\n    state = step(state)",
        "for i in reversed(range(a)):\n    state = step(state, b[i])",
        "for key in jax.random.split(a, 100):\n    state = step(state, key)",
        "for _ in itertools.count():\n    state = step(state)\n    if state > 3: break",
        "while state < 3:\n    state = step(state)",
        "while not state.done():\n    state = step(state)",
        "for i in range(a):\n    state, b = step(state), step(b)",
        "for i in range(a):\n    key = step(key)\n    state = step(state, key)",
        "for i in range(a):\n    new = step(state)\n    state = new",
        "for i in range(a):\n    self.state = step(self.state)",
        "for i in range(a):\n    state = step(state.replace(t=i))",
        "for i in range(a):\n    state += step(state)",
        "for i in range(a):\n    state = step(state)\n    if i % 10 == 0: b.write(state)",
        "for i in range(a):\n    state = step(state)\n    if state.overflow: state = b.allocate(state)",
        "for i in range(a):\n    state = step(state)\n    print(float(state))",
        "for i in range(num_generations):\n    state = step(state)",
        "if a:\n    for i in range(a):\n        state = step(state)",
        "for j in range(3):\n    for i in range(a):\n        state = step(state)",
        "for i in range(a):\n    for j in range(3):\n        state = step(state)",
    ],
)
def test_loops_that_a_scan_could_be(body: str) -> None:
    (line,) = lines(body)
    assert "step(" in body.splitlines()[line - 1]


@pytest.mark.parametrize(
    "body",
    [
        "for x in a:\n    state = step(state, x)",
        "for i, x in enumerate(a):\n    state = step(state, x)",
        "for _ in range(b):\n    state = step(state, next(a))",
        "for _ in range(b):\n    x = a.read()\n    state = step(state, x)",
        "for _ in range(b):\n    x = a.read()\n    y = np.asarray(x)\n    state = step(state, y)",
        "for _ in range(b):\n    state = step(state, np.random.normal())",
        "for _ in range(b):\n    state = step(state, jax.device_get(c))",
        "for i in range(b):\n    state = step(state, a[i : i + 32])",
        "for i in range(b):\n    batch = a[i]\n    state = step(state, batch)",
        "while a.is_open():\n    state = step(state)",
        "for _ in range(b):\n    state = step(state)\n    a.render(state)",
        "for _ in range(b):\n    state = step(state)\n    a(state)",
        "for _ in range(b):\n    state = step(state)\n    if a(state): break",
        "for _ in range(b):\n    state = step(state)\n    yield state",
        "for _ in range(10):\n    state = step(state)",
        "n = 5\nfor _ in range(n):\n    state = step(state)",
        "for epoch in range(b):\n    state = step(state)",
        "for _ in range(a.num_epochs):\n    state = step(state)",
        "for i in range(b):\n    c = step(a)",
        "for i in range(b):\n    c.append(step(i))",
        "for i in range(b):\n    if i > 3: state = step(state)",
        "c = [step(x) for x in a]",
        "for i in range(b):\n    state = a(state)",
        "for i in range(b):\n    c = lambda s: step(s)",
        "def f(s):\n    return step(s)\nfor i in range(b):\n    state = a(f)",
        "state = step(state)",
        "for _ in range(b):\n    x = next(a)\n    state = step(state)",
        "for i in range(b):\n    x = a.nonlinear_solve(c, i)\n    state = step(state)",
        "for i in range(b):\n    x = a.minimize(c, i)\n    state = step(state, x)",
        "for x in jax.device_get(a):\n    state = step(state, x)",
        "for i in range(a.players):\n    state = step(state, i)",
        "for key in jax.random.split(a, 100):\n    opt_state, c = step(opt_state, key)",
        "for i in range(a.num_inference_steps):\n    state = step(state)",
        "for i in range(a.max_decode_len):\n    state = step(state)",
        "for i in range(b):\n    a.buffers[i] = step(a.buffers[i], c)",
        "for i in range(b):\n    t = time.time()\n    state = step(state)\n    print(time.time() - t)",
        "def train(state):\n    for i in range(b):\n        state = step(state)\n    return state",
        "for i in range(b):\n    state = step(state)\n    print(datetime.now() - c)",
        "def init_with_state(key):\n    for i in range(b):\n        key = step(key)\n    return key",
        # A step of a network, for each token.
        "for i in range(b):\n    logits, cache = step(a, logits), step(cache)",
        # The batches come from the host; only the key goes round on the device.
        "for i in range(b):\n    key, sub = step(key)\n    state = step(state, (a.next_batch(), sub))",
    ],
)
def test_loops_that_the_host_feeds_or_paces_or_that_are_few_or_apart(body: str) -> None:
    assert lines(body) == []


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (
            "while state < 3:\n    try:\n        state = step(state)\n    except ValueError:\n        state = a",
            [],
        ),
        ("while state < 3:\n    try:\n        state = step(state)\n    finally:\n        pass", [3]),
        (
            "while state < 3:\n    state = step(state)\n    try:\n        a()\n    except ValueError:\n        b = a",
            [],
        ),
        ("try:\n    while state < 3:\n        state = step(state)\nexcept ValueError:\n    pass", [3]),
    ],
)
def test_an_error_that_is_caught_in_a_turn_is_caught_by_python(body: str, expected: list[int]) -> None:
    assert lines(body) == expected


@pytest.mark.parametrize(
    ("gate", "expected"),
    [("i in c", []), ("i % 9 == 0", []), ("i == a - 1", [2])],
    ids=["some", "each ninth", "the last"],
)
def test_turns_that_write_files_need_the_host(gate: str, expected: list[int]) -> None:
    body = f"for i in range(a):\n    state = step(state)\n    if {gate}:\n        open(b).write(str(state))"
    assert lines(body) == expected


@pytest.mark.parametrize(("moved", "count"), [("jax.device_put(state, b)", 0), ("jax.device_put(state)", 1)])
def test_no_scan_moves_what_a_turn_makes_to_another_device(moved: str, count: int) -> None:
    assert len(lines(f"for i in range(a):\n    state = step(state)\n    c.append({moved})")) == count


@pytest.mark.parametrize(
    ("other", "count"),
    [("jax.lax.scan(step, state, b)[0]", 0), ("c.scan(step, state)", 0), ("c.search(step, state)", 1)],
    ids=["a scan", "a scan of one's own", "no scan"],
)
def test_a_loop_that_somebody_may_choose_a_scan_for_is_left_alone(other: str, count: int) -> None:
    assert len(lines(f"if a:\n    state = {other}\nelse:\n    for i in range(b): state = step(state)")) == count


@pytest.mark.parametrize(("default", "count"), [("=3", 0), ("=300", 1), ("", 1)])
def test_so_few_steps_as_a_default_says_are_no_scan(default: str, count: int) -> None:
    code = f"{HEAD}def run(state, n{default}):\n    for _ in range(n):\n        state = step(state)\n"
    assert len(check_text(code.encode(), "m.py", ONLY)) == count


@pytest.mark.parametrize(
    ("before", "after", "count"),
    [
        ("start = time.time()", "taken = time.time() - start", 0),
        ("start = time.perf_counter()\nother = a", "print(time.perf_counter() - start)", 0),
        ("start = time.time()", "state.block_until_ready()\ntaken = time.time() - start", 0),
        ("start = time.time()", "jax.block_until_ready(state)\ntaken = time.time() - start", 0),
        ("start = time.time()", "state.save()\ntaken = time.time() - start", 1),
        ("start = time.time()", "print(state)", 1),
        ("start = a", "print(time.time())", 1),
    ],
)
def test_how_long_so_many_calls_take_is_asked_for(before: str, after: str, count: int) -> None:
    assert len(lines(f"{before}\nfor i in range(a):\n    state = step(state)\n{after}")) == count


@pytest.mark.parametrize(
    "body",
    [
        "for _ in range(b):\n    state = step(state)\n    if a: c.append(c.render(state))",
        "for _ in range(b):\n    state = step(state)\nc.save_svg(state)",
        "seen = []\nfor _ in range(b):\n    state = step(state)\n    seen.append(state)\nc.make_animation(seen)",
        "seen = {0: []}\nfor _ in range(b):\n    state = step(state)\n    seen[0].append(state)\n"
        "frames = [c.render_array(one) for one in np.array(seen[0])]",
    ],
)
def test_what_is_drawn_is_made_once(body: str) -> None:
    assert lines(body) == []


@pytest.mark.parametrize(
    ("shown", "saved", "expected"),
    [
        ("c.set_postfix(loss=state.loss.item())", "if i % 9 == 0: a.save_pkl(state)", []),
        ("c.set_description(f'{state.loss:.3f}')", "if i % 9 == 0: np.savez(a, state)", []),
        ("c.set_postfix(i=i)", "if i % 9 == 0: a.save_pkl(state)", [2]),  # no result
        ("c.set_postfix(loss=state.loss.item())", "if i % 9 == 0: print(state)", [2]),  # no file
        ("if i % 9 == 0: c.set_postfix(loss=state.loss.item())", "if i % 9 == 0: a.save_pkl(state)", [2]),  # at times
    ],
)
def test_steps_that_a_bar_shows_and_files_keep_are_long(shown: str, saved: str, expected: list[int]) -> None:
    assert lines(f"for i in range(b):\n    state = step(state)\n    {shown}\n    {saved}") == expected


def test_other_pictures_say_nothing_of_the_loop() -> None:
    assert lines("for _ in range(b):\n    state = step(state)\nc.render(a)\nreturn state") == [2]


def test_an_object_that_is_told_to_compile_nothing_does_not() -> None:
    solver = "import functools, jax\nclass Solver:\n    @functools.partial(jax.jit, static_argnums=0)\n"
    solver += "    def update(self, s): return s\n"
    loop = "for _ in range(a):\n    state = solver.update(state)"
    assert lines(f"solver = Solver(jit=True)\n{loop}", solver) == [3]
    assert lines(f"solver = Solver(jit=False)\n{loop}", solver) == []


@pytest.mark.parametrize(
    "head",
    [
        "import jax\ndef f(s): return jax.lax.scan(lambda c, x: (c, x), s, None, 10)\nstep = jax.jit(f)\n",
        "import jax\ndef g(s): return jax.lax.fori_loop(0, 9, abs, s)\n@jax.jit\ndef step(s): return g(s)\n",
        "import jax, optax\n@jax.jit\ndef step(s): return optax.apply_updates(s, s)\n",
        "import jax\n@jax.jit\ndef step(s): return s.apply_gradients(grads=s)\n",
        "import torch\nstep = torch.compile(lambda s: s)\n",
        "def step(s): return s\n",
    ],
)
def test_large_steps_and_steps_that_are_not_compiled_are_left_alone(head: str) -> None:
    assert lines("for i in range(a):\n    state = step(state)", head) == []


def test_a_method_that_is_called_train_is_a_large_step() -> None:
    head = "import jax\ntrain_step = jax.jit(lambda s: s)\n"
    assert lines("for i in range(a):\n    state = train_step(state)", head) == []


def test_the_step_of_another_file_is_known(tmp_path: Path) -> None:
    package = tmp_path / "lib"
    package.mkdir()
    (package / "__init__.py").write_text("from lib.env import Env as Environment\n")
    (package / "env.py").write_text(
        "import functools, jax\nclass Env:\n    @functools.partial(jax.jit, static_argnums=0)\n"
        "    def step(self, state): return state\n"
    )
    driver = package / "driver.py"
    driver.write_text(
        "from lib import Environment\ndef rollout(state):\n    env = Environment()\n"
        "    for _ in range(1000):\n        state = env.step(state)\n    return state\n"
    )
    (finding,) = check_files([driver], ONLY).findings
    assert finding.location.line == 5
    assert "`env.step`" in finding.message


def test_a_loop_in_a_trace_is_unrolled_and_one_in_a_test_is_a_test() -> None:
    loop = "    for _ in range(100): s = step(s)\n    return s\n"
    assert check_text(f"{HEAD}@jax.jit\ndef f(s):\n{loop}".encode(), "m.py", ONLY) == ()
    assert check_text(f"{HEAD}def test_f(s):\n{loop}".encode(), "m.py", ONLY) == ()
    assert len(check_text(f"{HEAD}def f(s):\n{loop}".encode(), "m.py", ONLY)) == 1


@pytest.mark.parametrize(
    ("jitted", "call", "count"),
    [
        ("static_argnums=(1, 2)", "table = recur(table, n, i)", 0),
        ("static_argnums=(1, 2)", "table = recur(table, m, i)", 1),
        ("donate_argnums=0", "table = recur(table, n, i)", 1),
    ],
)
def test_no_scan_makes_what_is_sized_by_its_turn(jitted: str, call: str, count: int, tmp_path: Path) -> None:
    head = f"import functools, jax, jax.numpy as jnp\n@functools.partial(jax.jit, {jitted})\n"
    (tmp_path / "recursion.py").write_text(head + "def recur(table, n, i): return table + jnp.ones((n, 2 * i)).sum()\n")
    tables = tmp_path / "tables.py"
    tables.write_text(
        "from recursion import recur\ndef table_of(table, n, m):\n"
        f"    for i in range(n):\n        {call}\n    return table\n"
    )
    assert len(check_files([tables], ONLY).findings) == count


@pytest.mark.parametrize(
    ("joined", "expected"),
    [("jnp.concatenate([seen, new[None]])", 0), ("jnp.concatenate([seen[1:], new[None]])", 1), ("seen + new", 1)],
)
def test_no_scan_carries_what_grows(joined: str, expected: int) -> None:
    code = f"""import jax
import jax.numpy as jnp

def main(state, seen, n):
    def step(state, seen):
        new = jnp.sin(state)
        seen = {joined}
        return new, seen

    for _ in range(n):
        state, seen = jax.jit(step)(state, seen)
    return seen

if __name__ == "__main__":
    main(jnp.ones(3), jnp.ones((1, 3)), 100)
"""
    assert len(check_text(code.encode(), "m.py", Scope(("loop-over-jit",)))) == expected


@pytest.mark.parametrize(
    ("body", "carrying"),
    [
        ("state = step(state)", ", carrying `state`"),
        ("g = step(state)\nstate = state - g", ", carrying `state`"),
        ("(f, g) = step(state, other)\nstate = state - f\nother = other - g", ", carrying `state, other`"),
        ("g = step(state)\nstate = state - g\nb, g = g, 0", ", carrying `state`"),
        ("if key: state = other\ng, state = step(state)", ", carrying `state`"),
        ("a = state\ng = step(a)\nstate = g", ", carrying `state`"),
        ("key, sub = jax.random.split(key)\nstate['t'] = 0.0\ng = step(sub, state)\nstate['x'] = g", ""),
    ],
)
def test_what_the_next_step_is_handed_is_carried(body: str, carrying: str) -> None:
    code = "def run(state, other, key, n):\n    for _ in range(n):\n"
    code += "".join(f"        {line}\n" for line in body.splitlines()) + "    return state\n"
    (found,) = check_text((HEAD + code).encode(), "m.py", ONLY)
    assert found.suggestion is not None
    assert found.suggestion.text == f"one jitted function around jax.lax.scan or fori_loop{carrying}"


SPLITS = """
import jax
import jax.numpy as jnp

p_split = jax.jit(jax.random.split)
step = jax.jit(jnp.sin)

def {name}(state, key, walker, n):
    for _ in range(n):
        {line}
    return state
"""


@pytest.mark.parametrize(
    ("name", "line", "count"),
    [
        ("burn_in", "key, sub = p_split(key)", 0),
        ("burn_in", "state = step(state)", 1),
        ("debug_run", "state = step(state)", 0),
        ("diagnose", "state = step(state)", 0),
    ],
)
def test_a_key_alone_is_no_state_and_who_debugs_looks_at_each_step(name: str, line: str, count: int) -> None:
    code = SPLITS.format(name=name, line=line)
    assert len(check_text(code.encode(), "m.py", Scope(("loop-over-jit",)))) == count


@pytest.mark.parametrize(
    ("end", "how"),
    [
        ("", "scan or fori_loop"),
        ("if state - before < 1e-8: break", "while_loop"),
        ("if b: break", "scan or fori_loop"),
        ("for x in b:\n            if state > x: break", "scan or fori_loop"),
    ],
)
def test_what_ends_by_what_it_computes_is_a_while_loop(end: str, how: str) -> None:
    code = (
        f"{HEAD}def run(state, a, b, before=0.0):\n    for _ in range(a):\n        state = step(state)\n        {end}\n"
    )
    (found,) = check_text(code.encode(), "m.py", ONLY)
    assert found.suggestion is not None
    assert f"jax.lax.{how}" in found.suggestion.text
