"""What is host code by every project's habit: by the names of files and functions, and by what they call.

In: the Facts of a file, and names. Nothing of other files is asked for.
"""

from __future__ import annotations

from functools import cache

from fusionlint.lazily import regex
from fusionlint.source.facts import Facts, RawValue, unpacked
from fusionlint.source.names import JIT

_HOST_FILE = regex(r"(^|/)(docs?|scripts?|ci)/|(^|/)(conftest|setup|noxfile)\.py$")
# A folder of a project; of a package it is a part of the library, as any other is.
_TOOLS = regex(r"(^|/)tools?/")
# Of these, and of whole files (`is_idle_file`), nobody minds how fast the host code is.
_IDLE_NAME = regex(
    r"^(test_.*|setUp.*|tearDown.*|__repr__|__str__|_?(plot|render|visuali[sz]e|draw|show|animate|create_animation|benchmark|bench_).*"
    # what is written for people, `state_to_str`
    r"|(\w*_)?to_str(ing)?|_?get_(\w+_)?str(ing)?"
    # what a fast form is compared with; `phase_plot` as `plot_phase`
    r"|_?naive_.*|_?ref(erence)?_(\w+_)?(impl|implementation|attention|mha|gqa|mqa|dot)"
    # several pictures side by side
    r"|(\w+_)?image_grid(_\w+)?"
    r"|.*_(naive|ref|reference|slow|debug|plots?))$"
)
# Cards and random numbers are drawn too.
_DRAWS = regex(r"^_?draw(_(samples?|weights|uniform|normal|noise|prior|posterior|random|cards?|tiles?)(_.*)?)?$")
_DRAWN_FROM = frozenset(("key", "rng", "rng_key", "state"))
_DRAWN_ON = frozenset(("ax", "axes", "fig", "figure", "canvas", "screen", "surface", "image", "img", "frame", "raster"))
_HOST_NAME = regex(
    r"^(main|_main|__init__|__post_init__|parse_args|get_args"
    r"|_?init_(fn|fun|params?|weights?|variables)|.*initiali[sz]er|_?(save|load(?!_balanc)|print|report).*"
    # not log_prob, log_scale, log_likelihood
    r"|_?log_(metric|scalar|stat|config|train|eval|running|timing|memory|video|image|episode|weights|result|info"
    r"|message|sync|request|iteration|param).*)$"
)
_HOST_CALL = regex(
    r"^(open|input|breakpoint|time\.(time|perf_counter|sleep|monotonic)|argparse\..*|sys\.exit|os\.(makedirs|mkdir"
    r"|remove|listdir)|subprocess\..*|pickle\..*|json\.(load|dump)s?|matplotlib\..*|seaborn\..*|pandas\..*|wandb\..*"
    r"|tqdm\..*|absl\.app\..*|tensorflow\..*|PIL\..*|imageio\..*|pygame\..*|orbax\..*|flax\.training\.checkpoints\..*"
    r"|scipy\.(optimize|sparse|io|spatial|stats)\..*"
    r"|jax\.(device_get|block_until_ready|devices|local_devices|device_put|device_put_replicated|process_index)"
    r"|numpy\.(save|load|savez|random\..*))$"
)
# Without a size, the values say how long the result is: no trace knows it. With nothing to choose from `where` says
# where, as `nonzero` does.
AS_LONG_AS_IT_GETS = tuple(f"jax.numpy.{name}" for name in ("nonzero", "flatnonzero", "argwhere", "unique"))
WHERE = "jax.numpy.where"
_SIZED = frozenset(
    (*AS_LONG_AS_IT_GETS,
     *(f"jax.numpy.{name}" for name in ("unique_counts", "unique_inverse", "unique_values", "union1d", "intersect1d",
                                        "setdiff1d", "setxor1d")))
)  # fmt: skip
# What a script calls first.
MAIN = ("main", "_main")
# What a method is called that a constructor leaves its work to, or that is called once after it.
_SET_UP_NAME = regex(r"^(.*_)?(init|setup|set_up)(_.*)?$")
# What makes a first state, once, before the steps that go on from it; beside steps an environment may do so in each.
_FIRST_STATE = regex(r"^_?(init|initiali[sz]e|setup|set_up)(_.*)?$")
_STEP = regex(r"^_?step(_.*)?$")


def is_host_file(facts: Facts) -> bool:
    """Whether a file holds what is run by hand: a folder of scripts, or of tools beside the package, not inside it."""
    _, _, inner = facts.module.partition(".")
    is_of_tools = _TOOLS.search(facts.inside) is not None and not {"tool", "tools"} & {*inner.split(".")}
    return is_of_tools or _HOST_FILE.search(facts.inside) is not None


def is_called_as_host(facts: Facts, scope: str) -> bool:
    """Whether the function `scope` has a name as host code has: `main`, `save_weights`, `plot_losses`."""
    return _is_host_name(scope.rpartition(".")[2]) or is_called_idle(facts, scope)


@cache
def _is_host_name(name: str) -> bool:
    return _HOST_NAME.match(name.partition("#")[0]) is not None


@cache
def is_host_call(name: str) -> bool:
    """Whether no trace survives a call of `name`, or it compiles something."""
    return name in JIT or _HOST_CALL.match(name) is not None


def is_of_any_size(name: str, call: RawValue) -> bool:
    """Whether the result of a call has as many elements as are found."""
    if name != WHERE and name not in _SIZED:
        return False
    made = unpacked(call)
    if name == WHERE and len(made.arguments) != 1:
        return False
    return not any(keyword in ("size", "x", "y") for keyword, _ in made.keywords)


@cache
def is_first_state_name(name: str) -> bool:
    """Whether a function is called as what makes a first state: `init_electrons`."""
    return _FIRST_STATE.match(name) is not None


def is_step_name(name: str) -> bool:
    """Whether a function is called as a step is."""
    return _STEP.match(name) is not None


@cache
def is_set_up_name(name: str) -> bool:
    """Whether a method is called as what a constructor leaves its work to: `setup_mesh`, `_init_buffers`."""
    return _SET_UP_NAME.match(name.partition("#")[0]) is not None


def is_called_idle(facts: Facts, scope: str) -> bool:
    """Whether a function, or one around it, is called as tests, benchmarks and pictures are."""
    names = scope.split(".")
    for depth, name in enumerate(names, start=1):
        if _is_idle_name(name) and not _draws_from(facts, ".".join(names[:depth])):
            return True
    return False


def _draws_from(facts: Facts, scope: str) -> bool:
    """Whether a function called `draw` draws a number or a card, by what it is handed, and no picture."""
    if not _DRAWS.match(scope.rpartition(".")[2]) or scope not in facts.raw.functions:
        return False
    parameters = facts.raw.functions[scope][2]
    return not _DRAWN_FROM.isdisjoint(parameters) and _DRAWN_ON.isdisjoint(parameters)


@cache
def _is_idle_name(name: str) -> bool:
    return _IDLE_NAME.match(name.partition("#")[0]) is not None
