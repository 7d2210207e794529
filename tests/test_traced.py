"""Which functions run under a trace, which on the host, and where nobody can see."""

from __future__ import annotations

from textwrap import dedent

import pytest

from fusionlint.source.judging import check_text
from fusionlint.source.places import Place
from fusionlint.source.reading import read_facts
from fusionlint.source.scope import Scope
from fusionlint.source.traced import is_idle, reached_from
from fusionlint.source.world import join

HEAD = "import jax, jax.numpy as jnp\nfrom functools import partial\n"


def context(text: str, scope: str, path: str = "m.py", **others: str) -> str:
    """The context of `scope` in a file `text`, beside the modules `others`."""
    facts = {path: read_facts(HEAD + dedent(text), path, path.removesuffix(".py").replace("/", "."))}
    for name, other in others.items():
        facts[f"{name}.py"] = read_facts(HEAD + dedent(other), f"{name}.py", name)
    world = join(facts)
    assert scope in facts[path].functions
    return world.contexts.get(Place(path, scope), "library")


@pytest.mark.parametrize(
    "text",
    [
        "@jax.jit\ndef f(x): return x",
        "@partial(jax.jit, static_argnums=0)\ndef f(n, x): return x",
        "@jax.vmap\ndef f(x): return x",
        "@jax.custom_vjp\ndef f(x): return x",
        "def f(x): return x\ng = jax.jit(f)",
        "def f(x): return x\nf = jax.jit(f)",
        "def f(x): return x\ng = jax.jit(jax.vmap(partial(f, 1)))",
        "@partial(jnp.vectorize, signature='()->(p)')\ndef f(x): return x",
        "import diffrax\ndef f(t, y, args): return y\nterm = diffrax.ODETerm(f)",
        "from jax.scipy.sparse.linalg import cg\ndef f(x): return x\ndef g(b): return cg(f, b)",
        "import haiku as hk\ndef f(x): return x\ndef g(p, x): return hk.cond(p, f, f, x)",
        "def f(c, x): return c, x\ndef g(xs): return jax.lax.scan(f, 0, xs)",
        "def f(c, x): return c, x\ndef g(xs): return jax.lax.scan(f=f, init=0, xs=xs)",
        "def f(x): return x\ndef g(p, x): return jax.lax.switch(p, [f, f], x)",
        "def f(x): return x\n@jax.jit\ndef g(x): return f(x)",
        "def f(x): return x\ndef h(x): return f(x)\n@jax.jit\ndef g(x): return h(x)",
        "import flax.linen as nn\nclass Net(nn.Module):\n    def __call__(self, x): return f(x)\ndef f(x): return x",
    ],
)
def test_what_is_handed_to_a_transform_and_what_that_calls_is_traced(text: str) -> None:
    assert context(text, "f") == "traced"


def test_functions_inside_a_traced_function_are_traced() -> None:
    text = """
        @jax.jit
        def g(x):
            def f(y): return y
            return f(x)
        """
    assert context(text, "g.f") == "traced"


def test_what_a_factory_returns_is_traced_where_it_is_handed_to_a_transform() -> None:
    text = """
        def make(config):
            def train(key): return config, key
            return train
        def main(): return jax.jit(jax.vmap(make(3)))
        """
    assert context(text, "make.train") == "traced"
    assert context(text, "main") == "host"


def test_methods_are_traced_through_self_bases_and_overrides() -> None:
    env = """
        class Env:
            @partial(jax.jit, static_argnums=0)
            def step(self, state): return self.physics(state)
            def physics(self, state): return state
            def describe(self): return "env"
        """
    text = """
        from env import Env
        class Cart(Env):
            def physics(self, state): return self.force(state)
            def force(self, state): return -state
            def describe(self): return "cart"
        """
    assert context(text, "Cart.physics", env=env) == "traced"
    assert context(text, "Cart.force", env=env) == "traced"
    assert context(text, "Cart.describe", env=env) == "library"


@pytest.mark.parametrize("scope", ["Newton.update", "Damped.update"])
def test_what_a_base_compiles_is_traced_in_each_subclass_though_the_base_has_no_such_method(scope: str) -> None:
    text = """
        class Solver:
            def __post_init__(self):
                self.update = jax.jit(self.update)

        class Newton(Solver):
            def update(self, x): return x
            def report(self, x): return x

        class Damped(Newton):
            def update(self, x): return 0.5 * x

        class Other:
            def update(self, x): return x
        """
    assert context(text, scope) == "traced"
    assert context(text, "Other.update") == "library"


def test_functions_are_traced_across_files() -> None:
    other = "from m import f\nstep = jax.jit(f)"
    assert context("def f(x): return g(x)\ndef g(x): return x", "g", other=other) == "traced"


def test_constructing_a_class_in_a_trace_does_not_trace_its_other_methods() -> None:
    text = """
        class Box:
            def __init__(self, x): self.x = x
            def volume(self): return self.x
        @jax.jit
        def f(x): return Box(x)
        """
    assert context(text, "Box.__init__") == "traced"
    assert context(text, "Box.volume") == "library"


@pytest.mark.parametrize(
    "name",
    ["jax.debug.callback", "jax.pure_callback", "jax.experimental.io_callback", "equinox.filter_pure_callback"],
)
def test_a_callback_is_host_code_inside_a_trace(name: str) -> None:
    text = f"""
        import equinox
        @jax.jit
        def f(x):
            def show(y): return y
            {name}(show, x)
            return x
        """
    assert context(text, "f.show") == "host"


@pytest.mark.parametrize(
    ("text", "scope"),
    [
        ("def main(x): return x", "main"),
        ("class A:\n    def __init__(self, x): self.x = x", "A.__init__"),
        ("def plot_states(x): return x", "plot_states"),
        ("def render(x): return x", "render"),
        ("def load_weights(x): return x", "load_weights"),
        ("def filterinitializer(x): return x", "filterinitializer"),
        ("def log_metrics(x): return x", "log_metrics"),
        ("def test_step(x): return x", "test_step"),
        ("def f(x): return open(x)", "f"),
        ("import numpy as np\ndef f(x): return np.random.normal(x)", "f"),
        ("def f(x): return jax.device_get(x)", "f"),
        ("def f(x): return x.item()", "f"),
        ("def f(x): return jax.jit(g)(x)", "f"),
        ("step = jax.jit(g)\ndef f(x):\n    for _ in range(9): x = step(x)\n    return x", "f"),
        ("def main(x):\n    def f(y): return y\n    return f(x)", "main.f"),
        ("class A:\n    def __init__(self): self.t = table(3)\ndef table(n): return n", "table"),
        ("class A:\n    def __init__(self):\n        def f(n): return n\n        self.t = f(3)", "A.__init__.f"),
        ("def table(n): return n\nTABLE = table(3)", "table"),
    ],
)
def test_host_code_is_known_by_name_by_call_and_by_its_callers(text: str, scope: str) -> None:
    assert context(text, scope) == "host"


SET_UP = """
class Box:
    def {name}(self, n):
        {body}

def table(n): return n
"""


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("return float(jnp.mean(x))", "host"),
        ("y = jnp.linalg.norm(x); return [y, int(y)]", "host"),
        ("if not jnp.any(x < 0) or n: x = -x", "host"),
        ("while jnp.abs(x) > n: x = x / 2", "host"),
        ("assert n == jnp.sum(x)", "host"),
        ("for _ in range(n): x = x / float(jax.random.normal(x))", "host"),
        ("return np.asarray(jnp.mean(x))", "host"),
        ("y = jnp.sin(x); return np.array(y, dtype=float)", "host"),
        ("return jnp.asarray(jnp.mean(x)), np.asarray(n), np.asarray(jnp.asarray(n))", "library"),
        # Of these a trace knows as much.
        ("return float(jnp.finfo(x.dtype).eps)", "library"),
        ("return int(jnp.ndim(x))", "library"),
        ("return int(jax.lax.psum(1, 'i'))", "library"),
        ("if jnp.issubdtype(x.dtype, jnp.integer): return -x", "library"),
        ("y = jnp.sum(x); return y if y is None else x", "library"),
        ("return float(n)", "library"),
        ("return float(np.mean(x))", "library"),
        # A branch decides whether Python asks.
        ("n = n if n else int(jnp.max(x)); return n", "library"),
        ("n = n or int(jnp.max(x)); return n", "library"),
        ("if n is None: n = int(jnp.max(x))", "library"),
        ("if n is None and jnp.any(x): return x", "library"),
        ("if n is None:\n        if jnp.any(x): return x", "library"),
        ("try: n = int(jnp.max(x))\n    except TypeError: pass", "library"),
        ("with jax.ensure_compile_time_eval(): n = int(jnp.max(x))", "library"),
        ("return isinstance(x, jax.core.Tracer) or float(jnp.max(x)), float(jnp.min(x))", "library"),
    ],
)
def test_python_asks_for_values_on_the_host_alone(line: str, expected: str) -> None:
    assert context(f"import numpy as np\ndef f(x, n):\n    {line}\n", "f") == expected


def test_a_function_inside_of_a_branch_begins_anew() -> None:
    text = """
        def g(x, n):
            if n:
                def f(y): return int(jnp.max(y))
            return x
        """
    assert context(text, "g.f") == "host"
    assert context(text, "g") == "library"


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("jnp.where(x > 0)", "host"),
        ("jnp.where(x > 0, size=3)", "library"),
        ("jnp.where(x > 0, x, 0)", "library"),
        ("jnp.where(x > 0, x=x, y=0)", "library"),
        ("jnp.unique(x, return_counts=True)", "host"),
        ("jnp.unique(x, size=3)", "library"),
        ("jnp.flatnonzero(x)", "host"),
        ("jnp.setdiff1d(x, y)", "host"),
    ],
)
def test_what_is_as_long_as_what_it_finds_no_trace_can_make(call: str, expected: str) -> None:
    assert context(f"def f(x, y): return {call}", "f") == expected


@pytest.mark.parametrize("name", ["data_init", "init_state_and_args", "_init", "setup", "setup_mesh", "set_up"])
@pytest.mark.parametrize("body", ["self.t = table(n)", "self.n, (self.t, _) = n, table(n)"])
def test_a_method_that_sets_up_and_keeps_what_it_makes_is_host_code_as_a_constructor_is(name: str, body: str) -> None:
    text = SET_UP.format(name=name, body=body)
    assert context(text, f"Box.{name}") == "host"
    assert context(text, "table") == "host"


@pytest.mark.parametrize(
    ("name", "body", "expected"),
    [
        ("data_init", "return table(n)", "library"),  # kept by nobody
        ("data_init", "t = table(n)", "library"),
        ("initial", "self.t = table(n)", "host"),
        ("reset_upper", "self.t = table(n)", "host"),
        ("step", "self.t = table(n)", "host"),
    ],
)
def test_what_is_called_by_a_method_that_keeps_nothing_or_is_called_otherwise_is_left_open(
    name: str, body: str, expected: str
) -> None:
    text = SET_UP.format(name=name, body=body)
    assert context(text, f"Box.{name}") == expected
    assert context(text, "table") == "library"


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        ("self.table = jax.vmap(row)(jnp.arange(n))", "host"),
        ("self.rows = jax.vmap(row)", "traced"),
        ("self.table = jax.vmap(row)(jnp.arange(n))\n        self.row = jax.jit(row)", "traced"),
        ("self.table = jax.lax.map(row, jnp.arange(n))", "traced"),
    ],
)
def test_what_a_constructor_maps_at_once_runs_as_often_as_it_does(made: str, expected: str) -> None:
    text = f"class Env:\n    def __init__(self, n):\n        def row(i): return i\n        {made}"
    assert context(text, "Env.__init__.row") == expected


SCRIPT = """
    def inner(x): return x
    def work(x): return inner(x)
    def main(xs):
        {lines}
    if __name__ == "__main__":
        main(load())
    """


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ("work(xs)", "host"),
        ("return jax.vmap(work)(xs)", "host"),
        ("return jax.vmap(lambda x: work(x))(xs)", "host"),
        ("mapped = jax.vmap(work)\n        return mapped(xs)", "traced"),
        ("return jax.jit(work)(xs)", "traced"),
        ("return jax.lax.map(work, xs)", "traced"),
        ("for x in xs: work(x)", "library"),
        ("for x in xs: jax.vmap(work)(x)", "traced"),
        ("return minimize(work, xs)", "library"),
        ("def step(x): return work(x)\n        return minimize(step, xs)", "library"),
    ],
)
@pytest.mark.parametrize("function", ["work", "inner"])
def test_what_main_calls_once_is_host_code_as_main_is(lines: str, expected: str, function: str) -> None:
    assert context(SCRIPT.format(lines=lines), function) == expected


def test_what_main_calls_once_may_be_called_again_by_somebody_else() -> None:
    text = SCRIPT.format(lines="work(xs)")
    assert context(text, "work", other="from m import work\ndef run(x): return work(x)") == "library"
    assert context(text, "inner", other="from m import inner\ndef run(x): return inner(x)") == "library"
    assert context(text.replace("return inner(x)", "return [inner(y) for y in x]"), "inner") == "library"
    assert context(text.replace("main(load())", "pass"), "work") == "library"
    assert context(text.replace("main(load())", "app.run(main)"), "work") == "host"


def test_what_a_function_hands_to_a_scan_is_taken_on_where_that_is_mapped() -> None:
    text = """
        def step(i, x): return x
        def run(x): return jax.lax.fori_loop(0, 9, step, x)
        def other(x): return x
        def all_of(xs): return jax.vmap(run)(xs)
        """
    facts = read_facts(HEAD + dedent(text), "m.py", "m")
    found = reached_from(join({"m.py": facts}).project, frozenset(("jax.vmap",)))
    assert {place.scope for place in found} == {"run", "step"}


def test_what_more_than_set_up_calls_is_left_open() -> None:
    text = SET_UP.format(name="data_init", body="self.t = table(n)")
    assert context(text + "def energy(x): return table(x)", "table") == "library"


def test_a_set_up_that_a_trace_reaches_is_traced() -> None:
    text = SET_UP.format(name="data_init", body="self.t = table(n)")
    text += "@jax.jit\ndef f(n): return Box.data_init(Box(), n)"
    assert context(text, "Box.data_init") == "traced"
    assert context(text, "table") == "traced"


@pytest.mark.parametrize(
    ("base", "names"),
    [
        *((f"{library}.Module", ("setup", "init_state")) for library in ("flax.linen", "flax.nnx", "haiku", "objax")),
        ("equinox.Module", ("setup",)),
    ],
)
@pytest.mark.parametrize("derived", ["class Box(Layer):", "class Net(Layer): pass\nclass Box(Net):"])
def test_the_modules_of_network_libraries_keep_their_layers_under_a_trace(
    base: str, names: tuple[str, ...], derived: str
) -> None:
    for name in names:
        text = SET_UP.format(name=name, body="self.t = table(n)").replace("class Box:", derived.replace("Layer", base))
        assert context(f"import {base.rpartition('.')[0]}\n{text}", "table") != "host"


@pytest.mark.parametrize(
    ("text", "scope", "expected"),
    [
        ("def init(x): return x", "init", "host"),
        ("def _init_electrons(n): return draw(n)\ndef draw(n): return n", "draw", "host"),
        ("class A:\n    def initialize(self, n): return n\n    def find(self, n): return n", "A.initialize", "host"),
        ("import equinox\nclass A(equinox.Module):\n    def init(self, n): return n", "A.init", "host"),
        # An environment begins again in its step, and a network's modules begin in every trace.
        ("class A:\n    def init(self, n): return n\n    def step(self, n): return n", "A.init", "library"),
        ("def init_state(n): return n\ndef step_state(n): return n", "init_state", "library"),
        (
            "import flax.linen as nn\nclass A(nn.Module):\n    def init_carry(self, n): return n",
            "A.init_carry",
            "library",
        ),
        ("def init(x): return x\nstart = jax.jit(init)", "init", "traced"),
        ("def initial(x): return x", "initial", "library"),
    ],
)
def test_what_makes_a_first_state_is_host_code_where_no_step_is_beside_it(text: str, scope: str, expected: str) -> None:
    assert context(text, scope) == expected


def test_what_is_called_as_flaxs_setup_of_a_base_that_nobody_knows_is_left_open() -> None:
    text = SET_UP.format(name="setup", body="self.t = table(n)").replace(
        "class Box:", "class Box(base_layer.BaseLayer):"
    )
    assert context(text, "table") == "library"


@pytest.mark.parametrize(
    "returned",
    ["update", "init, update", "optax.GradientTransformation(init, update)", "Rule(init=init, update=update)"],
)
def test_what_set_up_makes_to_be_run_later_is_left_open(returned: str) -> None:
    text = SET_UP.format(name="init_optimizer", body="self.t = table(n)").replace(
        "return n",
        f"""
    def init(p): return p
    if n:
        def update(p): return p
    else:
        def update(p): return -p
    return {returned}""",
    )
    assert context(text, "table") == "host"
    assert context(text, "table.update") == "library"
    assert context(text, "table.update#2") == "library"


@pytest.mark.parametrize(
    ("text", "scope"),
    [
        ("def energy(x): return jnp.sum(x)", "energy"),
        ("def log_prob(x): return jnp.log(x)", "log_prob"),
        ("def log_scale(x): return jnp.log(x)", "log_scale"),
        ("def energy(x): return x\ndef main(x): return energy(x)", "energy"),
        ("class A:\n    def step(self, x): return x", "A.step"),
        ("def make(n):\n    def f(x): return n * x\n    return f\nf3 = make(3)", "make.f"),
        ("class A:\n    def __init__(self):\n        def f(x): return x\n        self.step = f", "A.__init__.f"),
        (
            "class A:\n    def __init__(self):\n        def h(x): return x\n        def f(x): return h(x)\n"
            "        self.step = f",
            "A.__init__.h",
        ),
    ],
)
def test_library_functions_are_left_open(text: str, scope: str) -> None:
    assert context(text, scope) == "library"


def test_a_driver_in_another_file_proves_nothing_about_what_it_calls() -> None:
    text = "def energy(x): return x"
    assert context(text, "energy", driver="from m import energy\nprint(energy(1.0))") == "library"


@pytest.mark.parametrize(
    "text", ["@jax.jit\ndef main(x): return x", "@jax.jit\ndef f(x): return x.item()", "f = jax.jit(lambda x: x)"]
)
def test_what_is_shown_to_be_traced_is_traced_whatever_it_looks_like(text: str) -> None:
    facts = read_facts(HEAD + text, "m.py", "m")
    assert [*join({"m.py": facts}).contexts.values()] == ["traced"]


@pytest.mark.parametrize(
    "path", ["docs/conf.py", "scripts/run.py", "tools/convert.py", "tests/test_env.py", "setup.py"]
)
def test_host_files_are_known_by_where_they_are(path: str) -> None:
    assert context("def f(x): return x", "f", path=path) == "host"


def test_tools_inside_of_a_package_are_a_library() -> None:
    assert context("def f(x): return x", "f", path="pkg/tools/cluster.py") == "library"
    assert context("def f(x): return x", "f", path="pkg/scripts/train.py") == "host"


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        ("def draw(state): return state", "library"),
        ("def _draw_samples(self, key, n): return key", "library"),
        ("def draw(ax, state): return ax", "host"),
        ("def draw(self): return self", "host"),
        ("def draw_board(state): return state", "host"),
        ("def _load_balancing_loss(probs): return probs", "library"),
        ("def load_params(path): return path", "host"),
    ],
)
def test_cards_and_numbers_are_drawn_as_pictures_are(function: str, expected: str) -> None:
    name = function.partition("(")[0].removeprefix("def ")
    assert context(function, name) == expected


@pytest.mark.parametrize(
    ("path", "scope", "idle"),
    [
        ("tests/env.py", "f", True),
        ("env_test.py", "f", True),
        ("benchmarks/speed.py", "f", True),
        ("smoke-tests/ppo.py", "f", True),
        ("visualize/viewer.py", "f", True),
        ("m.py", "count_naive", True),
        ("m.py", "propagator_slow.step", True),
        ("m.py", "count_debug", True),
        ("m.py", "debug_count", False),
        ("m.py", "attention_reference", True),
        ("m.py", "reference", False),
        ("plot_results.py", "", True),
        ("filters_debug.py", "f", True),
        ("cases/Test_Cases.py", "f", True),
        ("cases/Test.py", "f", False),
        ("solver/initial_conditions.py", "f", True),
        ("scripts/generate_ir_fixtures.py", "f", True),
        ("lights/fixture_models.py", "f", False),
        ("initial_condition_generation/turbulence.py", "f", True),
        ("initialization/manager.py", "f", True),
        ("levelset/reinitialization/weno.py", "f", False),
        ("data/synthetic/signals.py", "f", True),
        ("datasets/synthetic.py", "f", True),
        ("fake_data.py", "f", True),
        ("data/signals.py", "f", False),
        ("synthetic/signals.py", "f", False),
        ("nn/initializers.py", "f", False),
        ("m.py", "test_f", True),
        ("m.py", "Suite.test_f.inner", True),
        ("m.py", "render_frames", True),
        ("m.py", "f", False),
        ("m.py", "main", False),
        ("scripts/train.py", "f", False),
        ("contest/latest.py", "attest", False),
    ],
)
def test_nobody_minds_the_speed_of_tests_benchmarks_and_pictures(path: str, scope: str, idle: bool) -> None:
    project = join({path: read_facts("", path)}).project
    assert is_idle(project, Place(path, scope)) is idle


@pytest.mark.parametrize("path", ["tests/helpers.py", "pkg/env_test.py", "benchmarks/speed.py", "plots/figure.py"])
def test_code_of_tests_is_host_code_even_under_a_trace(path: str) -> None:
    assert context("@jax.jit\ndef f(x): return x", "f", path) == "host"
    assert context("@jax.jit\ndef f(x): return x", "f", "pkg/env.py") == "traced"


def test_what_calls_scipy_is_host_code_and_what_calls_jax_scipy_is_not() -> None:
    text = "from {} import optimize\ndef f(cost): return optimize.linear_sum_assignment(cost)"
    assert context(text.format("scipy"), "f") == "host"
    assert context(text.format("jax.scipy"), "f") == "library"


KERNEL = """
from jax.experimental import pallas as pl

def kernel(x_ref, out_ref, *, scale):
    def body(i, x):
        return shared(own(x))
    out_ref[...] = body(0, x_ref[...]) * scale

def own(x): return x

def shared(x): return x

@jax.jit
def run(x):
    return pl.pallas_call(partial(kernel, scale=2.0), out_shape=x, grid=(1,))(x)

@jax.jit
def other(x): return shared(x)
"""


@pytest.mark.parametrize(
    ("scope", "expected"),
    [("kernel", "host"), ("kernel.body", "host"), ("own", "host"), ("shared", "traced"), ("run", "traced")],
)
def test_the_body_of_a_pallas_kernel_is_no_code_that_xla_fuses(scope: str, expected: str) -> None:
    assert context(KERNEL, scope) == expected
    assert context(KERNEL.replace("partial(kernel, scale=2.0)", "kernel"), scope) == expected
    assert context(KERNEL.replace("partial(kernel", "kernel=partial(kernel"), scope) == expected
    assert context(KERNEL.replace("pl.pallas_call(", "jax.vmap("), scope) == "traced"
    facts = {"m.py": read_facts(HEAD + dedent(KERNEL), "m.py", "m")}
    assert is_idle(join(facts).project, Place("m.py", scope)) == (expected == "host")


KEEPS = "    def fit(self, x):\n        self.params = jnp.sort(x)\n"
PLAIN = {
    "alone": f"class Model:\n{KEEPS}",
    "of Python's own": f"from abc import ABC\nclass Model(ABC):\n{KEEPS}",
    "derived from another": f"class Base:\n    pass\nclass Model(Base):\n{KEEPS}",
    "a dataclass": f"import dataclasses\n@dataclasses.dataclass\nclass Model:\n{KEEPS}",
}


@pytest.mark.parametrize("text", PLAIN.values(), ids=PLAIN)
def test_a_method_that_keeps_what_it_makes_runs_on_the_host(text: str) -> None:
    assert context(text, "Model.fit") == "host"


OTHERS = {
    "with a base that nobody knows": f"import some\nclass Model(some.Layer):\n{KEEPS}",
    "of a base with one": f"import some\nclass Base(some.Layer):\n    pass\nclass Model(Base):\n{KEEPS}",
    "a pytree": f"@jax.tree_util.register_pytree_node_class\nclass Model:\n{KEEPS}",
    "a pytree by its methods": f"class Model:\n    def tree_flatten(self): return (), None\n{KEEPS}",
    "that keeps nothing": "class Model:\n    def fit(self, x): return x\n",
}


@pytest.mark.parametrize("text", OTHERS.values(), ids=OTHERS)
def test_of_other_methods_nobody_can_see_how_they_run(text: str) -> None:
    assert context(text, "Model.fit") == "library"


def test_a_method_that_keeps_what_it_makes_under_a_jit_is_traced_all_the_same() -> None:
    assert context(f"class Model:\n    def step(self): return jax.jit(self.fit)\n{KEEPS}", "Model.fit") == "traced"


def test_a_generator_is_run_by_python() -> None:
    """From one `yield` to the next; of what stands above it anything may be made."""
    code = """
import contextlib, jax, jax.numpy as jnp

{above}
def masks(key, n):
    while True:
        key, sub = jax.random.split(key)
        mask = jax.random.bernoulli(sub, 0.5, (n,))
        mask = jax.lax.cond(jnp.all(mask), lambda x: jnp.zeros_like(x), lambda x: x, mask)
        {out}
"""
    counts = [
        len([*check_text(code.format(above=above, out=out).encode(), "m.py", Scope(("cond-for-where",)))])
        for above, out in (("", "yield mask"), ("", "return mask"), ("@contextlib.contextmanager", "yield mask"))
    ]
    assert counts == [0, 1, 1]


INDEX_MAP = """
from jax.experimental import pallas as pl
def kernel(x_ref, out_ref): out_ref[...] = x_ref[...]
def later(i): return following(i), 0
def following(i): return jax.lax.cond(i < 4, lambda: i + 1, lambda: 0)
def run(x):
    spec = pl.BlockSpec((8, 128), later)
    return pl.pallas_call(kernel, in_specs=[spec], out_shape=x, grid=(4,))(x)
"""


@pytest.mark.parametrize("text", [INDEX_MAP, INDEX_MAP.replace("128), later", "128), index_map=later")])
def test_what_says_which_block_a_kernel_is_given_is_computed_in_the_kernel(text: str) -> None:
    assert context(text, "following") == "host"
    facts = {"m.py": read_facts(HEAD + dedent(text), "m.py", "m")}
    project = join(facts).project
    assert is_idle(project, Place("m.py", "following"))
    assert not is_idle(project, Place("m.py", "run"))


@pytest.mark.parametrize(
    ("base", "line", "expected"),
    [
        ("equinox.Module", "meter = tqdm.tqdm(xs)", "host"),
        ("equinox.Module", "meter = xs", "traced"),
        # Of a network of flax nobody but its `apply` calls this.
        ("flax.linen.Module", "meter = tqdm.tqdm(xs)", "traced"),
    ],
)
def test_a_trainer_that_is_an_object_of_equinox_runs_on_the_host(base: str, line: str, expected: str) -> None:
    library = base.partition(".")[0]
    text = f"""
    import {library}, flax.linen, tqdm
    class Trainer({base}):
        def __call__(self, xs):
            {line}
            return [step(x) for x in meter]
    """
    assert context(text, "Trainer.__call__") == expected
