"""host-sync-in-step-loop, in the loops that its page has no room for."""

from __future__ import annotations

import pytest

from fusionlint.source.judging import check_text
from fusionlint.source.scope import Scope

ONLY = Scope(("host-sync-in-step-loop",))
HEAD = (
    "import functools, jax, logging, time, wandb\nimport numpy as np\nimport rerun as rr\n"
    "step = jax.jit(lambda s, x=1.0: (s * x, x))\n"
    "parallel_sampling = jax.jit(lambda s, x: s * x)\nssim = jax.jit(lambda a, b: a - b, backend='cpu')\n"
    "@functools.partial(jax.jit, backend='cpu')\ndef psnr(a, b): return a - b\n"
)


def lines(body: str) -> list[int]:
    """Lines of the findings in a function `run(state, a, b, c)` with this body, counted from the body's first."""
    code = f"{HEAD}def run(state, a, b, c):\n" + "".join(f"    {line}\n" for line in body.splitlines())
    return [f.location.line - HEAD.count("\n") - 1 for f in check_text(code.encode(), "m.py", ONLY)]


@pytest.mark.parametrize(
    "body",
    [
        "for x in a:\n    state, y = step(state, x)\n    c.append(float(y))",
        "for x in a:\n    state, y = step(state, x)\n    c.append(y.item())",
        "for x in a:\n    state, y = step(state, x)\n    wandb.log({'y': y})",
        "for x in a:\n    state, y = step(state, x)\n    a.set_postfix(y=y)",
        "for x in a:\n    state, y = step(state, x)\n    tf.summary.scalar('y', y, step=1)",
        "for x in a:\n    state, y = step(state, x)\n    self.summary_writer.scalar('y', y, 1)",
        "for x in a:\n    state, y = step(state, x)\n    b += np.asarray(y)",
        # Gone through in parts, but the state is handed on: this trains.
        "for i in range(b):\n    state, y = step(state, a[i : i + 32])\n    c.append(np.asarray(y))",
        # Gone through in parts, but one number of each is read.
        "for i in range(b):\n    _, y = step(state, a[i : i + 32])\n    c.append(float(y))",
        "for x in a:\n    state, y = step(state, x)\n    c.append(float(y))\n    if b: print(f'{float(y):.3f}')",
        # A viewer that is shown something else, or now and then.
        "for x in a:\n    state, y = step(state, x)\n    c.append(float(y))\n    rr.set_time('t', b)",
        "for x in a:\n    state, y = step(state, x)\n    c.append(float(y))\n    if b: rr.log('x', rr.Points3D(state))",
        "for i in range(0, b, n):\n    state, y = step(state, cut(a, i, n))\n    c.append(jax.device_get(y))",
        # A table of steps is none of settings.
        "for j in range(b):\n    for i in range(b):\n        state, y = step(state)\n        c[i, j] = np.array(y)",
        "for x in a:\n    points = state[b]\n    _, y = step(points, x)\n    c[b] = np.asarray(y)",
        "for x in a:\n    if b: print(x)\n    state, y = step(state, x)\n    c.append(float(y))",
        "for j in b:\n    for x in a:\n        state, y = step(state, x)\n        c.append(float(y))",
        "for x in a:\n    b += int(step(state, x)[1])",  # of the state too
        "for rollout_data in a.get(b):\n    state, y = step(state, rollout_data)\n    c.append(y.item())",
        # A record that was copied before the loop.
        "z = np.array(c)\nfor x in a:\n    state, y = step(state, x)\n    z[0] = z[0] * y",
        "for x in a:\n    state, y = step(state, x)\n    logging.info('%d', b)\n    c.append(float(y))",
        # A film of something else, and of numbers, which are none.
        "z = np.zeros(b)\nfor i in range(b):\n    state, y = step(state, i)\n    z[i] = y\nmy_animate(a)",
        "z = []\nfor i in range(b):\n    state, y = step(state, i)\n    z.append(float(y))\nmy_animate(z)",
        # An `if` that only some iterations come to, one that no value decides, and one by another step.
        "for x in a:\n    state, y = step(state, x)\n    c.append(float(y))\n    if b:\n        if y > 1: break",
        "for x in a:\n    state, y = step(state, x)\n    c.append(float(y))\n    if y is None: break",
        "for x in a:\n    state, y = step(state, x)\n    z = step(b, x)\n    c.append(float(z[0]))\n"
        "    if y > 1: break",
    ],
)
def test_steps_that_are_waited_for(body: str) -> None:
    assert len(lines(body)) == 1


@pytest.mark.parametrize(
    "body",
    [
        # What came back says which are gone on with.
        "for x in a:\n    points = state[c]\n    _, y = step(points, x)\n    c[c] = np.asarray(y)",
        "for x in a:\n    state, y = step(state, x)\n    print(f'{y:.3f}')",
        "for x in a:\n    state, y = step(state, x)\n    c.append(float(y))\n    time.sleep(1)",
        "for x in a:\n    state, y = step(state, x)\n    c.append(float(y))\n    jax.block_until_ready(state)",
        "for i in range(b):\n    _, y = step(state, a[i : i + 32])\n    c.append(np.asarray(y))",
        "for i in range(b):\n    if c: x = {'a': a[i : i + 32]}\n    else: x = {'a': a[i:]}\n"
        "    y, rng = step(rng, x)\n    y = jax.device_get(y)\n    state += y",
        "for j in b:\n    for x in a:\n        _, y = step(j, x)\n        c[j, x] = np.array(y)",
        "for j, k in enumerate(b):\n    for i, x in enumerate(a):\n"
        "        _, y = step(k, x)\n        c[j, i] = np.array(y)",
        "for j in range(b):\n    state = step(state)\n    if j % 500 == 0:\n"
        "        for x in a:\n            c.append(float(step(state, x)[1]))",
        "for x in a:\n    state, y = step(state, x)\n    logging.info('%d %f', b, float(y))",
        "for x in a:\n    b += int(step(x)[1])",  # counts what the data hold
        "for x in a:\n    c.append(np.array(parallel_sampling(state, x)))",
        # On the CPU, where the host is.
        "for x in a:\n    y = ssim(state, x)\n    c.append(float(y))",
        "for x in a:\n    c.append(float(psnr(state, x)))",
        # A part that is fetched whole, and then read on the host.
        "for i in range(b):\n    _, y = step(state, a[i : i + 32])\n    y = np.asarray(y)\n    c.append(float(y[0]))",
        # What is kept of every step is filmed.
        "z = np.zeros(b)\nfor i in range(b):\n    state, y = step(state, i)\n    z[i] = y\nmy_animate(z)",
        "z = []\nfor i in range(b):\n    state, y = step(state, i)\n    z.append(np.asarray(y))\nsave_gif(z, c)",
        # What the step returned decides on the host: it is waited for there.
        "for x in a:\n    out = step(state, x)\n    y = out['loss']\n    c.set_postfix(y=out['other'])\n"
        "    if jax.numpy.isnan(y):\n        break",
        "for x in a:\n    state, y = step(state, x)\n    c.append(float(state))\n    if not np.isfinite(y): break",
        "for x in a:\n    state, y = step(state, x)\n    c.append(float(y))\n    if y < b and c: b = y",
        # Kept, and printed each time.
        "for x in a:\n    state, y = step(state, x)\n    c.append(float(y))\n    print(f'{b}: {float(y):.3f}')",
        # A viewer copies what it is shown.
        "for x in a:\n    state, y = step(state, x)\n    c.append(float(y))\n    rr.log('x', rr.Points3D(state))",
        # Of many states as many at a time as there are devices.
        "for i in range(0, b, n):\n    new, y = step(cut(state, i, n), a)\n    c.append(jax.device_get(new))",
        # What the host works on, and no record of the steps.
        "for x in a:\n    state, y = step(state, x)\n    z = np.array(b(x))\n    z[0] = z[0] * y",
    ],
)
def test_steps_that_are_waited_for_on_purpose(body: str) -> None:
    assert lines(body) == []


ONE_LOGS = """\
import jax

def make(model):
    {made}
    return {returned}

def train(model, state, loader, run, rank, args):
    init, step = make(model)
    for i, batch in enumerate(loader):
        state, loss = step(state, batch)
        if {test}:
            run.append(loss.item())
    return state
"""


@pytest.mark.parametrize(
    ("test", "times"),
    [
        ("jax.process_index() == 0", 1),
        ("rank == 0", 1),
        ("args.is_main_process", 1),
        ("rank", 1),
        ("rank == i", 0),
        ("i % 100 == 0", 0),
        ("args.verbose", 0),
        ("args.rank == 0 and i % 10 == 0", 0),
    ],
)
def test_what_the_process_that_logs_reads_in_each_iteration_is_found(test: str, times: int) -> None:
    text = ONE_LOGS.format(
        made="init = jax.jit(model.init); step = jax.jit(model.step)", returned="init, step", test=test
    )
    assert len(check_text(text.encode(), "m.py", ONLY)) == times


@pytest.mark.parametrize(
    ("made", "returned", "times"),
    [
        ("init = jax.jit(model.init); step = jax.jit(model.step)", "init, step", 1),
        ("init = jax.jit(model.init); step = model.step", "init, step", 0),
        ("init = jax.jit(model.init); step = jax.jit(model.step)", "step, init, 3", 0),
        ("step = jax.jit(model.step)\n    if model is None: return None, None", "step, step", 0),
    ],
)
def test_a_step_is_compiled_where_all_that_its_factory_returns_there_is(made: str, returned: str, times: int) -> None:
    text = ONE_LOGS.format(made=made, returned=returned, test="rank == 0")
    assert len(check_text(text.encode(), "m.py", ONLY)) == times


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("for m in a:\n    c.append(float(wave(m, b)))", "call"),
        ("for m in a:\n    state, y = step(state, m)\n    c.append(float(y))", "step"),
        ("for m in a:\n    state = wave(m, state)\n    c.append(float(state))", "step"),
    ],
)
def test_turns_that_are_no_steps_are_not_called_so(body: str, said: str) -> None:
    code = f"{HEAD}wave = jax.jit(lambda m, b: m * b)\ndef run(state, a, b, c):\n"
    code += "".join(f"    {line}\n" for line in body.splitlines())
    (found,) = check_text(code.encode(), "m.py", ONLY)
    assert found.message.endswith(f"the next {said}")
    assert found.suggestion is not None
    assert ("jax.vmap" in found.suggestion.text) is (said == "call")


@pytest.mark.parametrize(("around", "waits"), [("b", [4]), ("range(10)", [4]), ("range(2)", [])])
def test_a_few_steps_in_each_of_many_turns_are_many(around: str, waits: list[int]) -> None:
    """As of the minibatches of PPO."""
    body = f"for x in {around}:\n    for i in range(4):\n        state, y = step(state, x)\n        c.append(float(y))"
    assert lines(body) == waits


@pytest.mark.parametrize(("name", "count"), [("batched_sample", 0), ("sample_and_score", 0), ("resample", 1)])
def test_a_call_that_makes_whole_samples_is_long(name: str, count: int) -> None:
    code = f"""
import functools, jax

def run(key, params, draw, n):
    {name} = jax.jit(lambda key: draw(params, key))
    kept = []
    for _ in range(n):
        key, own = jax.random.split(key)
        kept.append(jax.device_get({name}(own)))
    return kept
"""
    assert len(check_text(code.encode(), "m.py", ONLY)) == count
