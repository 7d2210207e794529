"""What names mean across files, and which callables are compiled programs."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from fusionlint.source.facts import Facts, Value
from fusionlint.source.places import Place
from fusionlint.source.project import Project
from fusionlint.source.reading import read_facts
from fusionlint.source.stand import stand
from fusionlint.source.transforms import TRANSFORMS


def project_of(**files: str) -> Project:
    """A project of modules: `lib__env` is lib/env.py, `lib____init__` the package lib."""
    facts = {}
    for name, text in files.items():
        parts = name.split("__")
        is_package = name.endswith("____init__")
        module = ".".join(parts[:1] if is_package else parts)
        path = f"{module.replace('.', '/')}/__init__.py" if is_package else f"{module.replace('.', '/')}.py"
        facts[path] = read_facts(dedent(text), path, module, is_package=is_package)
    return Project(facts)


def qualified(project: Project, path: str, scope: str, name: str) -> str | None:
    return project.qualified_name(Place(path, scope), name)


def is_jitted(project: Project, path: str, scope: str, name: str) -> bool:
    return project.is_jitted(Place(path, scope), Value(name))


@pytest.mark.parametrize(
    ("text", "name", "meaning"),
    [
        ("import jax.numpy as jnp", "jnp.stack", "jax.numpy.stack"),
        ("import jax.numpy as np", "np.stack", "jax.numpy.stack"),
        ("from jax import numpy as jp", "jp.linalg.norm", "jax.numpy.linalg.norm"),
        ("import jax", "jax.lax.scan", "jax.lax.scan"),
        ("import jax.numpy", "jax.lax.scan", "jax.lax.scan"),
        ("from jax.lax import scan as loop", "loop", "jax.lax.scan"),
        ("from jax._src.api import vmap", "vmap", "jax.vmap"),
        ("import jax._src.numpy.lax_numpy as np", "np.stack", "jax.numpy.stack"),
        ("from jax._src.lax.control_flow import scan as loop", "loop", "jax.lax.scan"),
        ("from jax._src import config", "config.x", "jax._src.config.x"),
        ("import jax.numpy as jnp\nstack = jnp.stack", "stack", "jax.numpy.stack"),
        ("import numpy as jnp", "jnp.stack", "numpy.stack"),
        ("def stack(): pass", "stack", "m:stack"),
        ("jnp = object()", "jnp.stack", None),
        ("", "jnp.stack", None),
        ("import jax.numpy as a\nf = a.sin\nf = a.cos", "f", None),
        ("try:\n    import jax.numpy as np\nexcept ImportError:\n    import numpy as np", "np.sin", "jax.numpy.sin"),
    ],
)
def test_names_are_followed_to_what_they_mean(text: str, name: str, meaning: str | None) -> None:
    assert qualified(project_of(m=text), "m.py", "", name) == meaning


JOINED = """
import jax.numpy as np

def above(x): return np.sin(x)

import numpy as np

def below(x):
    def inner(y): return np.sin(y)
    return inner(x)

class Box:
    def method(self): return np.sin(1)

def of_its_own(x):
    import jax.numpy as np
    return np.sin(x)

def hidden(np): return np.sin(1)

import jax.numpy as np

def last(x): return np.sin(x)
"""


@pytest.mark.parametrize(
    ("scope", "meaning"),
    [
        ("above", "jax.numpy.sin"),
        ("below", "numpy.sin"),
        ("below.inner", "numpy.sin"),
        ("Box.method", "numpy.sin"),
        ("of_its_own", "jax.numpy.sin"),
        ("hidden", None),
        ("last", "jax.numpy.sin"),
    ],
)
def test_a_function_reads_the_import_above_it_where_a_name_is_imported_anew(scope: str, meaning: str | None) -> None:
    assert qualified(project_of(m=JOINED), "m.py", scope, "np.sin") == meaning


BRANCHES = """
import jax.numpy as np

if LLFF:
    def first(x): return np.sin(x)
    import numpy as np
    def second(x): return np.sin(x)
    import jax.numpy as np
    def third(x): return np.sin(x)
elif BLENDER:
    import numpy as np
    def fourth(x): return np.sin(x)
else:
    def fifth(x): return np.sin(x)

try:
    def sixth(x): return np.sin(x)
except ImportError:
    import numpy as np

match KIND:
    case "host":
        import numpy as np
    case _:
        def seventh(x): return np.sin(x)

def eighth(x): return np.sin(x)
"""


@pytest.mark.parametrize(
    ("scope", "meaning"),
    [
        ("first", "jax.numpy.sin"),
        ("second", "numpy.sin"),
        ("third", "jax.numpy.sin"),
        ("fourth", "numpy.sin"),
        ("fifth", "jax.numpy.sin"),
        ("sixth", "jax.numpy.sin"),
        ("seventh", "jax.numpy.sin"),
        ("eighth", "jax.numpy.sin"),
    ],
)
def test_an_import_in_a_branch_says_nothing_of_what_stands_outside_it(scope: str, meaning: str) -> None:
    assert qualified(project_of(m=BRANCHES), "m.py", scope, "np.sin") == meaning


def test_an_import_is_of_the_first_of_two_that_only_one_of_runs() -> None:
    text = "try:\n    import jax.numpy as np\nexcept ImportError:\n    import numpy as np\ndef f(x): return np.sin(x)"
    assert qualified(project_of(m=text), "m.py", "f", "np.sin") == "jax.numpy.sin"


SWITCHED = """
import os
import numpy as np

if os.environ.get("BACKEND") == "numpy":
    jnp = np
else:
    try:
        import jax.numpy as jnp
    except ImportError:
        jnp = np

if USE_JAX:
    from jax import jit
    from jax.lax import cond
    def below_jax(x): return cond
else:
    jit = lambda function: function
    def cond(pred, yes, no): return yes() if pred else no()
    def below_numpy(x): return cond

if HOST:
    def scan(f, init, xs): return init
    from numpy import take
else:
    from jax.lax import scan
    from jax.numpy import take

try:
    from jax import vmap
    done = True
except ImportError:
    vmap = None
"""


@pytest.mark.parametrize(
    ("scope", "name", "meaning"),
    [
        ("", "jnp.sin", "jax.numpy.sin"),
        ("", "jit", "jax.jit"),
        ("", "cond", "jax.lax.cond"),
        ("below_jax", "cond", "jax.lax.cond"),
        ("below_numpy", "cond", "m:cond"),
        ("", "scan", "jax.lax.scan"),
        ("", "take", "jax.numpy.take"),
        ("", "vmap", "jax.vmap"),
    ],
)
def test_what_one_branch_imports_from_jax_means_that_whatever_the_others_make_of_it(
    scope: str, name: str, meaning: str
) -> None:
    project = project_of(m=SWITCHED, user="from m import jnp, jit, cond, scan, take, vmap")
    assert qualified(project, "m.py", scope, name) == meaning
    assert scope or qualified(project, "user.py", "", name) == meaning


@pytest.mark.parametrize(
    "text",
    [
        "import jax.numpy as jnp\njnp = other",
        "jnp = None\ntry:\n    import jax.numpy as jnp\nexcept ImportError: ...",
        "try:\n    import jax.numpy as jnp\nfinally:\n    jnp = other",
        "try:\n    import jax.numpy as jnp\nexcept ImportError: ...\nelse:\n    jnp = other",
        "if ON:\n    import jax.numpy as jnp\nif OFF:\n    jnp = other",
        "def f():\n    if ON:\n        import jax.numpy as jnp\n    else:\n        jnp = other",
    ],
)
def test_what_may_both_be_bound_is_not_known(text: str) -> None:
    assert qualified(project_of(m=text), "m.py", "f" if text.startswith("def") else "", "jnp.sin") is None


@pytest.mark.parametrize(
    ("name", "is_sure"),
    [("np", False), ("np.sin", False), ("jnp", False), ("jax", True), ("alone", True), ("f", True), ("missing", True)],
)
def test_a_name_that_a_flag_chooses_is_not_sure_there_and_where_it_is_imported(name: str, is_sure: bool) -> None:
    text = (
        "import jax\nimport numpy as alone\nimport jax.numpy as first\nnp = first if ON else alone\ndef f(): ...\n"
        "try:\n    import jax.numpy as jnp\nexcept ImportError:\n    import numpy as jnp\n"
    )
    again = "from m import np, jnp, jax, alone, f\n"
    project = project_of(m=text, again=again, last=again.replace("from m", "from again"))
    for path in ("m.py", "again.py", "last.py"):
        assert project.is_sure(Place(path, ""), name) is is_sure


def test_what_is_known_of_a_file_without_imports_anew_has_no_more_names() -> None:
    raw = read_facts("import jax.numpy as np\nimport jax.numpy as np\ndef f(x): return np.sin(x)", "m.py").raw
    assert raw.bindings["f"].keys() == {"x"}


def test_a_parameter_hides_the_import_of_its_name() -> None:
    project = project_of(m="import jax.numpy as jnp\ndef f(jnp): return jnp.stack")
    assert qualified(project, "m.py", "f", "jnp.stack") is None
    assert qualified(project, "m.py", "", "jnp.stack") == "jax.numpy.stack"


def test_names_are_followed_through_files_re_exports_and_dots() -> None:
    project = project_of(
        lib____init__="from .types import jnp\nfrom lib.math import rotate as turn",
        lib__types="import jax.numpy as jnp",
        lib__math="from . import types\nfrom .types import jnp as n\ndef rotate(x): return n.sin(x)",
        app="import lib\nfrom lib import turn",
    )
    assert qualified(project, "app.py", "", "turn") == "lib.math:rotate"
    assert qualified(project, "app.py", "", "lib.turn") == "lib.math:rotate"
    assert qualified(project, "app.py", "", "lib.jnp.sin") == "jax.numpy.sin"
    assert qualified(project, "lib/math.py", "rotate", "n.sin") == "jax.numpy.sin"
    assert qualified(project, "lib/math.py", "rotate", "types.jnp.sin") == "jax.numpy.sin"


WRAPPED = """
    from jax import lax

    def cond(pred, one, f, other, g):
        if DEBUG:
            return f(one) if pred else g(other)
        return lax.cond(pred, one, f, other, g)

    def scan(f, init, xs, length=None): return lax.scan(f, init, xs, length=length)
    def turned(f, init, xs): return lax.scan(f, xs, init)
    def counted(f, init, n): return lax.scan(f, init, None, n)
    def logged(f, init, xs): return log(lax.scan(f, init, xs))
    class Loops:
        def scan(self, f, init, xs): return lax.scan(f, init, xs)
"""


def test_what_hands_on_all_that_it_is_handed_means_what_it_hands_that_to() -> None:
    project = project_of(util=WRAPPED, app="from util import cond, scan as loop, turned, counted, logged\nimport util")
    assert qualified(project, "app.py", "", "cond") == "jax.lax.cond"
    assert qualified(project, "app.py", "", "loop") == "jax.lax.scan"
    assert qualified(project, "app.py", "", "util.scan") == "jax.lax.scan"
    for name in ("turned", "counted", "logged"):
        assert qualified(project, "app.py", "", name) == f"util:{name}"
    # It may not take all that jax's own does: no fix writes an argument more.
    assert not project.is_sure(Place("app.py", ""), "loop")
    assert project.is_sure(Place("app.py", ""), "turned")


def test_names_are_followed_through_stars() -> None:
    project = project_of(
        lib____init__="",
        lib__types="import jax.numpy as jnp\n_hidden = jnp.sin\nclass State: pass",
        lib__util="from .types import *\nfrom lib.game import *",
        lib__user="from lib.util import State",
        lib__game="from lib.util import *\nfrom math import *\ndef step(x): return jnp.sin(x)",
    )
    assert qualified(project, "lib/game.py", "step", "jnp.sin") == "jax.numpy.sin"
    assert qualified(project, "lib/game.py", "step", "State") == "lib.types:State"
    assert qualified(project, "lib/util.py", "", "step") == "lib.game:step"
    assert qualified(project, "lib/user.py", "", "State") == "lib.types:State"
    assert qualified(project, "lib/game.py", "step", "_hidden") is None
    assert qualified(project, "lib/game.py", "step", "cos") is None


def test_imports_in_a_circle_end() -> None:
    project = project_of(a="from b import f", b="from a import f")
    assert qualified(project, "a.py", "", "f") is None


def test_values_in_a_circle_end() -> None:
    project = project_of(m="x = x.step()\ny = z.f()\nz = y.f()\nf = f(f)\ng = h\nh = g\nclass C(C): pass\nc = C()")
    for name in ("x.y", "y.f", "z.f.g", "f", "g", "c.step"):
        assert qualified(project, "m.py", "", name) in (None, "m:f")
        assert not is_jitted(project, "m.py", "", name)


METHODS = """
    import jax
    from functools import partial

    class Base:
        @partial(jax.jit, static_argnums=0)
        def step(self, state): return self.physics(state)

        def physics(self, state): return state

    class Cart(Base):
        def __init__(self, gain):
            self.gain = gain
            self.reset = jax.jit(self._reset)
            self.plain = self._reset

        def _reset(self): return 0

        def physics(self, state): return -state
"""


def test_methods_are_found_on_self_on_instances_and_in_bases() -> None:
    project = project_of(env=METHODS, app="from env import Cart\ncart = Cart(1)\ndef f(unknown): return cart.step")
    assert qualified(project, "env.py", "Cart.physics", "self._reset") == "env:Cart._reset"
    assert qualified(project, "env.py", "Cart.physics", "self.step") == "env:Base.step"
    assert qualified(project, "env.py", "Cart.physics", "self.plain") == "env:Cart._reset"
    assert qualified(project, "app.py", "f", "cart.step") == "env:Base.step"
    assert qualified(project, "app.py", "f", "cart.physics") == "env:Cart.physics"
    assert qualified(project, "app.py", "f", "Cart.step") == "env:Base.step"
    assert qualified(project, "app.py", "f", "unknown.step") is None


def test_a_base_that_is_said_to_be_of_a_type_is_that_base() -> None:
    project = project_of(env=METHODS, app="from env import Base\nclass Cart(Base[int, str]):\n  def f(self): ...")
    assert qualified(project, "app.py", "Cart.f", "self.step") == "env:Base.step"


def test_scripts_beside_one_another_are_meant_by_their_names_alone() -> None:
    import_, near = "import models\nfrom steps import step\nimport other", {"models": "lib.runs", "steps": "lib"}
    facts = read_facts(import_, "lib/runs/train.py", "lib.runs.train")
    facts = Facts(facts.path, facts.inside, facts.module, facts.raw, beside=near)
    assert list(facts.imports()) == ["lib.runs.models", "lib.steps.step", "other"]


@pytest.mark.parametrize("name", ["cart.step", "cart.reset", "Cart.step", "bound"])
def test_methods_and_attributes_are_known_to_be_jitted(name: str) -> None:
    project = project_of(env=METHODS, app="from env import Cart\ncart = Cart(1)\nbound = cart.step")
    assert is_jitted(project, "app.py", "", name)


@pytest.mark.parametrize("name", ["cart.physics", "cart.plain", "cart.gain", "cart", "cart.missing", "other.step"])
def test_other_methods_and_attributes_are_not_jitted(name: str) -> None:
    assert not is_jitted(project_of(env=METHODS, app="from env import Cart\ncart = Cart(1)"), "app.py", "", name)


@pytest.mark.parametrize(
    "text",
    [
        "@jax.jit\ndef step(x): return x",
        "@partial(jax.jit, static_argnames='n')\ndef step(x, n): return x",
        "@jax.jit(static_argnames='n')\ndef step(x, n): return x",
        "def f(x): return x\nstep = jax.jit(f)",
        "def step(x): return x\nstep = jax.jit(step)",
        "def step(x): return x\nstep = jax.jit(jax.vmap(step))",
        "from other import step\nstep = jax.jit(step, donate_argnums=0)",
        "step = jax.jit(lambda x: x)",
        "step = partial(jax.jit, static_argnums=1)(lambda x, n: x)",
        "step = partial(jax.jit(lambda n, x: x), 3)",
        "init, step = jax.jit(f), jax.jit(g)",
        "def make(n):\n    return jax.jit(lambda x: n * x)\nstep = make(3)",
        "def make(n):\n    @jax.jit\n    def inner(x): return n * x\n    return inner\nstep = make(3)",
        "def make(n):\n    inner = jax.jit(lambda x: n * x)\n    return inner\nstep = make(3)",
        "def compiled(f):\n    return jax.jit(f, donate_argnums=0)\n@compiled\ndef step(x): return x",
        "import equinox as eqx\n@eqx.filter_jit\ndef step(x): return x",
        "from flax import nnx\n@nnx.jit\ndef step(x): return x",
        "from jax import jit as compile_\nstep = compile_(f)",
        "inner = jax.jit(f)\nstep = inner",
    ],
)
def test_what_is_jitted(text: str) -> None:
    project = project_of(m="import jax\nfrom functools import partial\n" + text)
    assert is_jitted(project, "m.py", "", "step")


@pytest.mark.parametrize(
    "text",
    [
        "def step(x): return x",
        "step = jax.vmap(f)",
        "step = f",
        "def make(n):\n    return lambda x: n * x\nstep = make(3)",
        "import torch\nstep = torch.jit.script(f)",
        "import numba\n@numba.jit\ndef step(x): return x",
        "def jit(f): return f\n@jit\ndef step(x): return x",
        "step = jax.jit(f)(x)",
        "step = jax.jit(f)\nstep = other",
        "def apply(step): pass",
    ],
)
def test_what_is_not_jitted(text: str) -> None:
    assert not is_jitted(project_of(m="import jax\n" + text), "m.py", "apply" if "apply" in text else "", "step")


def test_a_jitted_function_of_another_module_is_known() -> None:
    project = project_of(
        lib____init__="from .steps import step, made",
        lib__steps="import jax\n@jax.jit\ndef step(x): return x\nmade = jax.jit(lambda x: x)\n",
        app="import lib\nfrom lib import step as go, made\nfrom lib.steps import made as again",
    )
    for name in ("go", "made", "again", "lib.step", "lib.made", "lib.steps.step"):
        assert is_jitted(project, "app.py", "", name), name


def test_functions_are_found_behind_wrappers_names_and_factories() -> None:
    project = project_of(
        m="""
        import jax
        from functools import partial
        def step(x, y): return x
        def make(n):
            def inner(x): return n * x
            return inner
        def make_lambda(): return lambda x: x
        wrapped = jax.jit(jax.vmap(partial(step, 1)))
        made = jax.grad(make(3))
        lambdas = make_lambda()
        several = [step, made]
        """
    )

    def behind(name: str) -> set[str]:
        return {place.scope for place in project.functions_behind(Place("m.py", ""), Value(name), TRANSFORMS)}

    assert behind("wrapped") == {"step"}
    assert behind("made") == {"make.inner"}
    assert {scope.rpartition(".")[0] for scope in behind("lambdas")} == {"make_lambda"}
    assert behind("several") == {"step", "make.inner"}
    assert behind("unknown") == set()


def test_a_folder_whose_name_cannot_be_imported_is_no_package(tmp_path: Path) -> None:
    for folder in (tmp_path / "jax-md", tmp_path / "jax-md" / "jax_md"):
        folder.mkdir()
        (folder / "__init__.py").touch()
    assert stand(tmp_path / "jax-md" / "jax_md" / "space.py").module == "jax_md.space"


def test_a_package_in_a_namespace_is_found_by_both_names() -> None:
    texts = {
        "cloud/sim/env.py": ("sim.env", "def step(x): ..."),
        "python/cloud/__init__.py": ("cloud", "version = 1"),
        "cloud/sim/run.py": ("sim.run", "import cloud.sim.env\nfrom cloud.sim import env\nfrom sim.env import step"),
    }
    facts = {
        path: read_facts(text, path, module, is_package=path.endswith("__init__.py"))
        for path, (module, text) in texts.items()
    }
    project = Project(facts)
    for name in ("cloud.sim.env.step", "env.step", "step"):
        assert qualified(project, "cloud/sim/run.py", "", name) == "sim.env:step"


def test_what_stands_in_a_src_that_is_a_package_is_found_without_it_too() -> None:
    texts = {
        "src/__init__.py": ("src", ""),
        "src/sim/env.py": ("src.sim.env", "def step(x): ..."),
        "src/sim/run.py": ("src.sim.run", "from sim import env\nfrom src.sim.env import step"),
        "keras/src/random.py": ("keras.src.random", "def normal(): ..."),
        "run.py": ("run", "import random"),
    }
    facts = {
        path: read_facts(text, path, module, is_package=path.endswith("__init__.py"))
        for path, (module, text) in texts.items()
    }
    project = Project(facts)
    for name in ("env.step", "step"):
        assert qualified(project, "src/sim/run.py", "", name) == "src.sim.env:step"
    assert qualified(project, "run.py", "", "random.normal") == "random.normal"


def test_factories_that_make_what_each_other_make_are_gone_through_once() -> None:
    """Of a compiler's front end, whose constructors return each other, there were some hundred million ways."""
    maker = "def make_{0}(x):\n    if x: return make_{1}(x)\n    if not x: return make_{1}(1)\n    return make_{1}(2)\n"
    makers = "".join(maker.format(number, number - 1) for number in range(1, 6))
    project = project_of(m=f"def leaf(x): return x\ndef make_0(x): return leaf\n{makers}made = make_5(1)\n")
    behind = project.functions_behind(Place("m.py", ""), Value("made"), TRANSFORMS)
    assert list(behind) == [Place("m.py", "leaf")]
