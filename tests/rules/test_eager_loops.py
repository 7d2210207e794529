"""Rules about what host code does eagerly or compiles again, in the loops that their pages have no room for."""

from __future__ import annotations

import pytest

from fusionlint.source.judging import check_text
from fusionlint.source.scope import Scope

HEAD = "import jax\nimport jax.numpy as jnp\n"


def found(rule: str, body: str, name: str = "main") -> int:
    code = f"{HEAD}def {name}(self, xs, fns, n):\n" + "".join(f"    {line}\n" for line in body.splitlines())
    return len(check_text(code.encode(), "m.py", Scope((rule,))))


@pytest.mark.parametrize(
    ("body", "number"),
    [
        ("y = jnp.zeros(n)\nfor i in range(n):\n    y = y.at[i].set(xs[i])\nreturn y", 1),
        ("y = jnp.zeros(n)\nfor epoch in range(n):\n    y = y.at[epoch].set(fns(epoch))\nreturn y", 0),
        (
            "y = jnp.zeros(n)\nfor i in range(n):\n    loss = fns.train_epoch(xs)\n    y = y.at[i].set(loss)\nreturn y",
            0,
        ),
    ],
)
def test_a_write_an_epoch_is_nothing(body: str, number: int) -> None:
    assert found("eager-at-set-loop", body) == number


@pytest.mark.parametrize(("name", "number"), [("make_table", 0), ("_build_strip", 0), ("load_table", 1)])
def test_what_makes_something_is_called_once(name: str, number: int) -> None:
    body = "y = jnp.zeros(n)\nfor i in range(n):\n    y = y.at[i].set(xs[i])\nreturn y"
    code = f"{HEAD}def {name}(xs, n):\n" + "".join(f"    {line}\n" for line in body.splitlines())
    code += f"def main(xs, n):\n    print({name}(xs, n))\n{name}([1.0], 1)\n"
    assert len(check_text(code.encode(), "m.py", Scope(("eager-at-set-loop",)))) == number


@pytest.mark.parametrize(("caller", "number"), [("__init__", 0), ("__post_init__", 0), ("reset", 1)])
def test_what_constructors_alone_call_runs_once(caller: str, number: int) -> None:
    body = "y = jnp.zeros(n)\nfor i in range(n):\n    y = y.at[i].set(xs[i])\nprint(y)\nreturn y"
    code = f"{HEAD}def load_table(xs, n):\n" + "".join(f"    {line}\n" for line in body.splitlines())
    code += f"class Env:\n    def {caller}(self, xs, n):\n        self.table = load_table(xs, n)\n"
    assert len(check_text(code.encode(), "m.py", Scope(("eager-at-set-loop",)))) == number


@pytest.mark.parametrize(
    ("handler", "number"), [("raise ValueError('no gradient') from e", 0), ("continue", 1), ("loss = 1e9", 0)]
)
def test_what_is_only_tried_for_its_error_runs_once(handler: str, number: int) -> None:
    body = f"for x in batches:\n    try:\n        jax.grad(fns)(x)\n    except Exception as e:\n        {handler}"
    assert found("eager-control-flow", body) == number


@pytest.mark.parametrize(("pressed", "number"), [("fns.event.get()", 0), ("fns.get_events()", 0), ("xs.get()", 1)])
def test_a_key_is_pressed_now_and_then(pressed: str, number: int) -> None:
    body = f"y = jnp.zeros(n)\nfor key in {pressed}:\n    y = y.at[key.code].set(key.down)\nreturn y"
    assert found("eager-at-set-loop", body) == number


@pytest.mark.parametrize(("taken", "number"), [("time.perf_counter()", 0), ("len(fns)", 1)])
def test_what_takes_the_time_of_each_is_no_loop_to_be_made_faster(taken: str, number: int) -> None:
    body = f"import time\ny = jnp.zeros(n)\nfor i in range(n):\n    y = y.at[i].set({taken})\nreturn y"
    assert found("eager-at-set-loop", body) == number


@pytest.mark.parametrize(("mark", "number"), [("_", 0), (",", 1)])
def test_a_name_has_few_parts(mark: str, number: int) -> None:
    body = f"y = jnp.zeros(n)\nfor i, part in enumerate(fns.split('{mark}')):\n    y = y.at[i].set(xs[part])\nreturn y"
    assert found("eager-at-set-loop", body) == number


GROWN = "y = jnp.zeros(0)\nfor x in xs:\n    y = jnp.concatenate([y, {}])\nself.y = y"


@pytest.mark.parametrize(
    ("made", "name", "number"),
    [
        ("x.values", "main", 1),
        ("x.values", "__init__", 0),  # an object joins what its parts have, once
        ("fns.vae.encode(x)", "main", 0),  # takes as long as a network takes
        ("fns.encoding(x)", "main", 1),
    ],
)
def test_joins_that_are_few_or_beside_a_network(made: str, name: str, number: int) -> None:
    assert found("array-grown-in-loop", GROWN.format(made), name) == number


FILLED = """
table = {{{literal}}}
chosen = {{}}
for name, x in table.items():
    if x is not None:
        chosen[name] = x
{more}
y = jnp.zeros(0)
for name, x in {over}.items():
    y = jnp.concatenate([y, x])
self.y = y
"""


@pytest.mark.parametrize(
    ("literal", "more", "over", "number"),
    [
        ("'a': xs[0], 'b': xs[1]", "", "chosen", 0),
        ("'a': xs[0], 'b': xs[1]", "", "table", 0),
        ("'a': xs[0], 'b': xs[1]", "for i in xs: chosen[i] = i", "chosen", 1),
        ("'a': xs[0], 'b': xs[1]", "", "xs", 1),
        (", ".join(f"'{c}': xs" for c in "abcdefghi"), "", "chosen", 1),
    ],
)
def test_a_dict_that_is_filled_from_a_few_names_is_gone_through_in_few_turns(
    literal: str, more: str, over: str, number: int
) -> None:
    assert found("array-grown-in-loop", FILLED.format(literal=literal, more=more, over=over)) == number


@pytest.mark.parametrize(
    ("computed", "number"),
    [
        ("n = compiled(y)", 1),
        ("n = jnp.tanh(y)", 1),
        ("n = self.decoder(ids=y)", 1),
        ("n = fns(y)", 0),  # nobody knows what it does
        ("self.log(y)", 0),
        ("n = len(y)", 0),
        ("if n: n = compiled(y)", 0),
        ("n = compiled(y)\n    y = y[1:]", 0),  # keeps its length
    ],
)
def test_what_computes_with_a_longer_array_is_compiled_anew(computed: str, number: int) -> None:
    body = (
        f"compiled = jax.jit(fns)\ny = jnp.zeros(0)\nfor x in xs:\n    y = jnp.append(y, x)\n    {computed}\nprint(n)"
    )
    assert found("array-grown-in-loop", body) == number


STATIC = """@partial(jax.jit, static_argnames="i")
def f(x, i):
    {}
    return x + i
for i in range(n):
    xs = f(xs, i)
"""


@pytest.mark.parametrize(("asked", "number"), [("pass", 1), ("if i == 0: return x", 0), ("if x is None: return i", 1)])
def test_what_python_goes_by_is_static_on_purpose(asked: str, number: int) -> None:
    code = f"from functools import partial\n{STATIC.format(asked)}"
    assert found("varying-static-argument", code) == number


@pytest.mark.parametrize(
    ("made", "number"), [("(2,) * i", 0), ("i * [2]", 0), ("(i,)", 1), ("(2,) * len(x)", 1), ("(i * 2,)", 1)]
)
def test_a_number_of_axes_is_static_whatever_is_padded(made: str, number: int) -> None:
    code = f"from functools import partial\n{STATIC.format(f'x = jnp.resize(x, {made})')}"
    assert found("varying-static-argument", code) == number


@pytest.mark.parametrize(
    ("body", "number"),
    [
        ("for x in batches:\n    n = jax.vmap(fns)(x)", 1),
        ("f = jax.vmap(fns)\nfor x in batches:\n    n = f(x)", 1),
        ("f = jax.vmap(fns)\nfor x in [n]:\n    n = f(x)", 0),
        ("f = jax.vmap(fns)\nfor x in [n, xs]:\n    n = f(x)", 0),
        # Of models, levels or names there are few, each of its own shape.
        ("for x in xs:\n    n = jax.vmap(fns)(x)", 0),
        ("for _, data in xs.items():\n    n = jax.vmap(fns)(data)", 0),
        ("while n < 9:\n    n = jax.vmap(fns)(n)", 1),
        ("for f in fns:\n    n = jax.vmap(f.forward)(n)", 0),
        ("for f in fns:\n    n = jax.vmap(f)(n)", 0),
        ("for i in range(n):\n    xs = jax.vmap(fns[i])(xs)", 0),
        # As many as are missing, each time fewer: every size would be compiled for itself.
        (
            "while xs.shape[0] < n:\n    more = draw(n - xs.shape[0])\n    ok = jax.vmap(fns)(more)\n"
            "    xs = jnp.concatenate([xs, more[ok]])",
            0,
        ),
        (
            "while xs.shape[0] < n:\n    more = draw(n)\n    ok = jax.vmap(fns)(more)\n"
            "    xs = jnp.concatenate([xs, more[ok]])",
            1,
        ),
        # What is compiled, whatever it is called in.
        ("f = jax.jit(fns)\nfor x in batches:\n    n = jax.vmap(lambda b: f(b, xs))(x)", 0),
        ("f = jax.jit(fns) if n else fns\nfor x in batches:\n    n = jax.vmap(f)(x)", 0),
        ("f = jax.jit(fns)\nfor x in batches:\n    n = jax.vmap(lambda b: f(b) + 1)(x)", 1),
        ("f = jax.jit(fns)\nfor x in batches:\n    n = jax.vmap(lambda b: f(2 * b))(x)", 1),
        ("for x in batches:\n    n = jax.vmap(lambda b: fns(b, xs))(x)", 1),
        # Nothing is computed, so nothing is dispatched.
        ("for x in batches:\n    n = jax.vmap(lambda b: b['image'])(x)", 0),
        ("f = lambda b: b['image']\nfor x in batches:\n    n = jax.vmap(f)(x)", 0),
        ("f = lambda b: -b['image']\nfor x in batches:\n    n = jax.vmap(f)(x)", 1),
    ],
)
def test_another_function_in_every_iteration_is_traced_anyway(body: str, number: int) -> None:
    assert found("eager-control-flow", body) == number


@pytest.mark.parametrize(
    ("handed", "said"),
    [("x, lambda y: y", "the lambda is no array"), ("x, run", "`run` is no array"), ("x, xs", None), ("x, fns", None)],
)
def test_a_function_that_is_handed_on_has_to_be_bound_for_a_jit(handed: str, said: str | None) -> None:
    loop = f"    for x in batches:\n        jax.vmap(fns)({handed})\n"
    code = f"{HEAD}def run(y): return y\ndef main(xs, fns, batches):\n{loop}"
    (finding,) = check_text(code.encode(), "m.py", Scope(("eager-control-flow",)))
    assert finding.suggestion is not None
    assert (said or "one jitted function") in finding.suggestion.text
    assert ("no array" in finding.suggestion.text) is (said is not None)


@pytest.mark.parametrize(
    ("function", "is_told"), [("lambda y: y + x", True), ("local", True), ("run", False), ("fns", False)]
)
def test_what_a_jit_would_keep_of_a_function_made_here_is_to_be_handed_to_it(function: str, is_told: bool) -> None:
    code = f"{HEAD}def run(y): return y\ndef main(xs, fns, batches):\n    def local(y): return y\n"
    code += f"    for x in batches:\n        jax.vmap({function})(x)\n"
    (finding,) = check_text(code.encode(), "m.py", Scope(("eager-control-flow",)))
    assert finding.suggestion is not None
    assert ("before the loop, with what changes as its arguments, or" in finding.suggestion.text) is is_told


def test_what_an_object_does_when_it_is_made_is_done_once() -> None:
    body = "for x in batches:\n    n = jax.vmap(fns)(x)"
    assert found("eager-control-flow", body, "__init__") == 0
    assert found("eager-control-flow", body, "_init_weights") == 0


@pytest.mark.parametrize(
    ("made", "number"),
    [
        ("f = fns.energy", 1),
        ("f = fns[i]", 0),
        ("if n: f = fns[i]\n    else: f = lambda x: fns[i](x)", 0),
        ("g = jax.vmap(fns[i])\n    def f(x): return g(x).sum()", 0),
        ("f = lambda x: fns(x, i)", 1),
    ],
    ids=["one for all", "one of several", "or called by a lambda", "mapped and called by a def", "of another number"],
)
def test_another_function_in_every_iteration_has_to_be_traced_for_itself(made: str, number: int) -> None:
    body = f"for i in range(n):\n    {made}\n    y = jax.grad(f)(xs[i])\n    print(y)"
    assert found("eager-control-flow", body) == number


def test_what_to_write_calls_jax_numpy_as_the_file_does() -> None:
    code = "from jax import numpy as np\ndef main(xs, n):\n    y = np.zeros(n)\n    for i in range(n):\n"
    code += "        y = y.at[i].set(xs[i])\n    return y\n"
    (finding,) = check_text(code.encode(), "m.py", Scope(("eager-at-set-loop",)))
    assert finding.suggestion is not None
    assert "and np.asarray(y) after it; of values that jax computes a list, and one np.stack" in finding.suggestion.text


@pytest.mark.parametrize(
    ("place", "instead"),
    [
        ("i", "a list, and one jnp.stack"),
        ("i, n", "a list and one of their places, and one `.set` of all after the loop, if no place comes twice"),
        (
            "xs.places[i]",
            "a list and one of their places, and one `.set` of all after the loop, if no place comes twice",
        ),
    ],
)
def test_a_stack_is_of_values_that_stand_in_a_row(place: str, instead: str) -> None:
    code = f"{HEAD}def main(xs, n):\n    y = jnp.zeros((n, n))\n    for i in range(n):\n"
    code += f"        y = y.at[{place}].set(xs[i])\n    return y\n"
    (finding,) = check_text(code.encode(), "m.py", Scope(("eager-at-set-loop",)))
    assert finding.suggestion is not None
    assert finding.suggestion.text.endswith(f"of values that jax computes {instead}")


@pytest.mark.parametrize(
    ("rule", "body", "number"),
    [
        ("sum-over-array", "assert jnp.allclose(n, 1.0)\nassert all(jnp.equal(xs, fns))\nreturn xs", 1),
        ("sum-over-array", "print(jax.device_get(n))\nassert all(jnp.equal(xs, fns))\nreturn xs", 0),
        (
            "pairwise-loop",
            "found = []\nfor i in range(n):\n    for j in range(n):\n"
            "        found.append(float(jnp.linalg.norm(xs[i] - xs[j])))\nreturn found",
            1,
        ),
    ],
)
def test_what_asks_for_values_alone_is_a_librarys(rule: str, body: str, number: int) -> None:
    assert found(rule, body, "distances") == number


@pytest.mark.parametrize(("above", "number"), [("@jax.jit", 0), ("", 1)])
def test_what_all_callers_hand_over_may_be_compiled(above: str, number: int) -> None:
    code = f"""{HEAD}
{above}
def loss(x):
    return jnp.sum(x * x)

def descend(function, x):
    for _ in range(100):
        x = x - 0.1 * jax.grad(function)(x)
    return jax.device_get(x)

if __name__ == "__main__":
    print(descend(loss, jnp.ones(8)))
"""
    assert len(check_text(code.encode(), "m.py", Scope(("eager-control-flow",)))) == number


@pytest.mark.parametrize(("turns", "number"), [("1", 0), ("ROUNDS", 0), ("100", 1), ("n", 1)])
def test_a_few_turns_are_a_few_traces(turns: str, number: int) -> None:
    body = f"import tqdm\nfor i in tqdm.tqdm(range({turns})):\n    y = jax.vmap(fns)(xs)\n    print(y)"
    code = f"{HEAD}ROUNDS = 2\ndef main(xs, fns, n):\n" + "".join(f"    {line}\n" for line in body.splitlines())
    assert len(check_text(code.encode(), "m.py", Scope(("eager-control-flow",)))) == number


@pytest.mark.parametrize(
    ("made", "mapped", "count"),
    [
        ("Maze()", "env.reset", 0),  # which its package may have compiled
        ("games.make('maze')", "env.reset", 0),
        ("Maze()", "lambda key: env.reset(key) + 1", 1),
        ("nn.Dense(8)", "env.apply", 1),  # which is known not to be
        ("Own()", "env.reset", 1),
    ],
)
def test_a_method_of_another_package_may_be_compiled(made: str, mapped: str, count: int) -> None:
    code = f"""
import jax, games
import flax.linen as nn
from games import Maze

class Own:
    def reset(self, key):
        return jax.random.normal(key, (8,)).sum()

env = {made}
states = []
for seed in range(1000):
    states.append(jax.vmap({mapped})(jax.random.split(jax.random.PRNGKey(seed), 64)))
"""
    assert len(check_text(code.encode(), "m.py", Scope(("eager-control-flow",)))) == count


HELPED = """
import jax.numpy as jnp

class Likelihood:
    def __init__(self, spectra, path):
        self.path = path
        self.bins = self.helpers(spectra)

    def helpers(self, spectra):
        self.data = open(self.path).read()
        bins = jnp.zeros(0)
        for spectrum in spectra:
            bins = jnp.concatenate([bins, jnp.tanh(spectrum)])
        return bins

    def logp(self, spectra):
        return {}
"""


@pytest.mark.parametrize(("more", "number"), [("self.bins", 0), ("self.helpers(spectra)", 1)])
def test_what_constructors_alone_have_made_is_made_once(more: str, number: int) -> None:
    found = check_text(HELPED.format(more).encode(), "m.py", Scope(("array-grown-in-loop",)))
    assert len(found) == number
