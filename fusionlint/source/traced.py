"""Which functions of a project run under a trace.

In: a `Project`. Out: a context for each function: "traced" (shown to be), "host" (shown to be), else "library".
Library functions on arrays count as traced: of 193 measured hazards inside traces 126 stand in files with no traced
context to see (evidence F). What looks like tests, plots, drivers, callbacks and set-up is host code.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator
from functools import cache, lru_cache
from typing import Literal

from fusionlint.lazily import regex
from fusionlint.source.facts import Call, Facts, Value, unpacked
from fusionlint.source.files import is_idle_file
from fusionlint.source.project import JIT, PARTIAL, Place, Project

Context = Literal["traced", "host", "library"]

# What traces the functions handed to it.
TRANSFORMS = JIT | frozenset(
    ("jax.vmap", "jax.grad", "jax.value_and_grad", "jax.jacfwd", "jax.jacrev", "jax.jacobian", "jax.hessian",
     "jax.checkpoint", "jax.remat", "jax.ad_checkpoint.checkpoint", "jax.linearize", "jax.vjp", "jax.jvp",
     "jax.custom_vjp", "jax.custom_jvp", "jax.custom_batching.custom_vmap", "jax.named_call", "jax.make_jaxpr",
     "jax.eval_shape", "jax.shard_map", "jax.experimental.shard_map.shard_map", "jax.experimental.maps.xmap",
     "jax.experimental.pallas.pallas_call", "jax.closure_convert", "jax.linear_transpose", "jax.lax.scan",
     "jax.lax.while_loop", "jax.lax.fori_loop", "jax.lax.cond", "jax.lax.switch", "jax.lax.map",
     "jax.lax.associative_scan", "jax.lax.reduce", "jax.lax.custom_root", "jax.lax.custom_linear_solve",
     "equinox.filter_grad", "equinox.filter_value_and_grad", "equinox.filter_vmap", "equinox.filter_checkpoint",
     "equinox.filter_vjp", "equinox.filter_jvp", "equinox.filter_closure_convert", "flax.nnx.grad",
     "flax.nnx.value_and_grad", "flax.nnx.vmap", "flax.nnx.scan", "flax.nnx.remat", "flax.nnx.cond",
     "flax.nnx.while_loop", "flax.nnx.fori_loop", "flax.linen.scan", "flax.linen.vmap", "flax.linen.remat",
     "flax.linen.checkpoint", "flax.linen.jit", "flax.linen.while_loop", "flax.linen.cond", "flax.linen.compact",
     "haiku.transform", "haiku.transform_with_state", "haiku.scan", "haiku.vmap", "haiku.grad", "haiku.transparent")
)  # fmt: skip
# What makes its function a kernel as it stands: XLA has nothing to fuse in there.
_PALLAS = "jax.experimental.pallas.pallas_call"
# What hands its function to the host: that function is host code.
CALLBACKS = frozenset(
    ("jax.debug.callback", "jax.pure_callback", "jax.experimental.io_callback", "jax.experimental.host_callback.call",
     "jax.experimental.host_callback.id_tap")
)  # fmt: skip
_MODULES = frozenset(("flax.linen.Module", "flax.nnx.Module", "equinox.Module", "haiku.Module"))

# Host code by every project's habit: files, names of functions, and calls that no trace survives.
_HOST_FILE = regex(r"(^|/)(docs?|scripts?|ci)/|(^|/)(conftest|setup|noxfile)\.py$")
# A folder of a project; of a package it is a part of the library, as any other is.
_TOOLS = regex(r"(^|/)tools?/")
# Of these, and of whole files (`is_idle_file`), nobody minds how fast the host code is.
_IDLE_NAME = regex(
    r"^(test_.*|setUp.*|tearDown.*|__repr__|__str__|_?(plot|render|visuali[sz]e|draw|show|animate|create_animation|benchmark|bench_).*"
    # what a fast form is compared with; `phase_plot` as `plot_phase`
    r"|_?naive_.*|.*_(naive|ref|reference|plots?))$"
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
# flax's ways to declare a parameter: the second argument makes its first value.
_DECLARES = (".param", ".variable")
# And what layers are given for the same: `nn.Dense(8, bias_init=grid)`.
_FIRST = ("_init", "_initializer")
_MAKES_FIRST = regex(r"^(.*_)?(kernel|bias|scale|embedding|weights?|w|b)_init(ializer)?$")
_CONSTRUCTORS = (".__init__", ".__post_init__", ".__new__", ".__call__", ".setup")
# What a method is called that a constructor leaves its work to, or that is called once after it.
_SET_UP_NAME = regex(r"^(.*_)?(init|setup|set_up)(_.*)?$")
_HOST_METHODS = (".item", ".block_until_ready", ".tolist")


def contexts(project: Project) -> dict[Place, Context]:
    """The context of every function that is not "library"."""
    traced = _reached(_traced_seeds(project), _taken_along(project), kernels(project))
    traced = {place for place in traced if not _is_test(project, place)}
    setting_up = _setting_up(project) - traced
    host = {place for place in _host_seeds(project) if place not in traced} | setting_up
    host |= _set_up(project, host, traced, setting_up)
    found: dict[Place, Context] = dict.fromkeys(host, "host")
    found.update(dict.fromkeys(traced, "traced"))
    return found


@lru_cache(maxsize=16)
def reached_from(project: Project, transforms: frozenset[str]) -> frozenset[Place]:
    """The functions that run inside what one of `transforms` is handed: `{"jax.vmap"}` gives those seen to be
    vectorized, directly or through the functions that call them."""
    return taken_on(project, _handed_to(project, transforms))


def taken_on(project: Project, seeds: Iterable[Place]) -> frozenset[Place]:
    """The functions `seeds`, and all that run when they are traced: what they call, define and are overridden by."""
    return frozenset(_reached(seeds, _taken_along(project)))


def _handed_to(project: Project, transforms: frozenset[str]) -> Iterator[Place]:
    for place, function in project.functions():
        if function.decorators and not transforms.isdisjoint(project.decorators(place.path, function)):
            yield place
    for transform in transforms:
        for place, call in project.calls_of(transform):
            for argument in (*call.value.arguments, *(value for _, value in call.value.keywords)):
                yield from project.functions_behind(place, argument, TRANSFORMS)
                yield from _of_subclasses(project, place, argument)


def _of_subclasses(project: Project, place: Place, argument: Value) -> Iterator[Place]:
    """The methods of subclasses that a class hands on, of which it has no def: `self.update = jax.jit(self.update)`."""
    owner, _, name = argument.name.rpartition(".")
    around = project.class_of(place, owner) if owner == "self" else None
    below = [around] if around else []
    for one in below:  # which grows
        below += (derived for derived in _derived(project).get(one, ()) if derived not in below)
        if f"{one.scope}.{name}" in project.files[one.path].raw.functions:
            yield Place(one.path, f"{one.scope}.{name}")


@lru_cache(maxsize=2)
def _derived(project: Project) -> dict[Place, list[Place]]:
    """The classes of the project that are derived from each, as they name it."""
    found: dict[Place, list[Place]] = defaultdict(list)
    for path, facts in project.files.items():
        for derived in (Place(path, scope) for scope in facts.raw.classes):
            for base in project.bases(derived):
                found[base].append(derived)
    return found


def is_idle(project: Project, place: Place) -> bool:
    """Whether this is code of a test, a benchmark or a picture, whose own speed is nobody's concern, or of a Pallas
    kernel, which XLA never sees."""
    named = is_idle_file(project.files[place.path].inside) or _is_in_idle(project, place)
    return named or place in kernels(project)


def _is_in_idle(project: Project, place: Place) -> bool:
    """Whether the function at `place`, or one around it, is called as tests, benchmarks and pictures are."""
    names = place.scope.split(".")
    for depth, name in enumerate(names, start=1):
        if _is_idle_name(name) and not _draws_from(project.files[place.path], ".".join(names[:depth])):
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


def _is_test(project: Project, place: Place) -> bool:
    """Whether this lies in a test or the like: host code even under a trace, for it runs on a handful of elements."""
    return is_idle_file(project.files[place.path].inside) or place.scope.startswith("test_")


def _traced_seeds(project: Project) -> Iterator[Place]:
    yield from _handed_to(project, TRANSFORMS)
    for place, function in project.functions():
        if function.owner and function.scope.endswith((".__call__", ".setup")):
            yield from (p for p in (place,) if project.inherits(p.outer, _MODULES))


@lru_cache(maxsize=2)
def _taken_along(project: Project) -> dict[Place, list[Place]]:
    """What a trace goes on into: the functions that a function calls, those defined in it, and what a subclass puts
    in place of a method; never a callback."""
    callbacks = _callback_functions(project)
    taken: dict[Place, list[Place]] = defaultdict(list)
    for place, called in _calls(project).items():
        taken[place] += called
    for place, function in project.functions():
        constructs = not function.owner or place.scope.endswith(_CONSTRUCTORS)
        if place.scope and place not in callbacks and constructs:
            taken[place.outer].append(place)
        if function.owner and not place.scope.endswith(_CONSTRUCTORS):
            for method in _overridden(project, place):
                taken[method].append(place)
    return taken


@lru_cache(maxsize=2)
def _calls(project: Project) -> dict[Place, list[Place]]:
    """The functions and classes of the project that each scope calls."""
    calls: dict[Place, list[Place]] = defaultdict(list)
    for name in project.called:
        if called := project.find(name):
            for caller in project.callers(name):
                calls[caller].append(called)
    return calls


def _overridden(project: Project, method: Place) -> Iterator[Place]:
    """The methods of base classes that `method` is called in place of."""
    for base in project.bases(method.outer):
        found = project.attribute(base, method.scope.rpartition(".")[2].partition("#")[0])
        if found and found[1].kind == "function":
            yield Place(found[0].path, found[1].target)


@lru_cache(maxsize=2)
def _callback_functions(project: Project) -> frozenset[Place]:
    """What a trace hands to the host, and initializers, which run once before there is anything to speed up."""
    return frozenset(_called_back(project))


def _called_back(project: Project) -> Iterator[Place]:
    for callback in CALLBACKS:
        for place, call in project.calls_of(callback):
            yield from _behind(project, place, call.value.arguments[:1])
    for path, facts in project.files.items():
        for (called, arguments, keywords), scope, _, _ in facts.raw.calls:
            if isinstance(called, str) and called.endswith(_DECLARES):  # self.param("kernel", initializer, ...)
                yield from _behind(project, Place(path, scope), map(unpacked, arguments[1:2]))
            for name, value in keywords:
                if name.endswith(_FIRST) and _MAKES_FIRST.match(name):
                    yield from _behind(project, Place(path, scope), (unpacked(value),))


def _behind(project: Project, place: Place, values: Iterable[Value]) -> Iterator[Place]:
    for value in values:
        yield from project.functions_behind(place, value, PARTIAL)


@lru_cache(maxsize=2)
def kernels(project: Project) -> frozenset[Place]:
    """The functions that are handed to Pallas, what they hold, and what nothing but they call."""
    if project.known.kernels is not None:
        return project.known.kernels
    found = {place for call in project.calls_of(_PALLAS) for place in _kernel_of(project, *call)}
    inside: dict[Place, list[Place]] = defaultdict(list)
    for place, _ in project.functions() if found else ():
        inside[place.outer].append(place)
    todo = deque(found)
    while todo:
        kernel = todo.popleft()
        for place in (*inside[kernel], *_calls(project).get(kernel, ())):
            callers = project.callers(project.name_of(place))
            if place not in found and (place.outer == kernel or all(caller in found for caller in callers)):
                found.add(place)
                todo.append(place)
    return frozenset(found)


def _kernel_of(project: Project, place: Place, call: Call) -> Iterator[Place]:
    named = (value for name, value in call.value.keywords if name == "kernel")
    for value in (*call.value.arguments[:1], *named):
        yield from project.functions_behind(place, value, TRANSFORMS)


def _reached(
    seeds: Iterable[Place], edges: dict[Place, list[Place]], without: frozenset[Place] = frozenset()
) -> set[Place]:
    reached = set(seeds) - without
    todo = deque(reached)
    while todo:
        for place in edges.get(todo.popleft(), ()):
            if place not in reached and place not in without:
                reached.add(place)
                todo.append(place)
    return reached


def _host_seeds(project: Project) -> Iterator[Place]:
    yield from _callback_functions(project)
    for path, facts in project.files.items():
        is_of_host = _is_host_file(facts)
        for place in (Place(path, scope) for scope in facts.raw.functions):
            if is_of_host or _is_host_name(place.scope.rpartition(".")[2]) or is_idle(project, place):
                yield place
        yield from _calling_the_host(project, path)


def _is_host_file(facts: Facts) -> bool:
    """Whether a file holds what is run by hand: a folder of scripts, or of tools beside the package, not inside it."""
    _, _, inner = facts.module.partition(".")
    is_of_tools = _TOOLS.search(facts.inside) is not None and not {"tool", "tools"} & {*inner.split(".")}
    return is_of_tools or _HOST_FILE.search(facts.inside) is not None


@cache
def _is_host_name(name: str) -> bool:
    return _HOST_NAME.match(name.partition("#")[0]) is not None


def _calling_the_host(project: Project, path: str) -> Iterator[Place]:
    """The functions of a file that call what no trace survives, or drive something compiled."""
    for place, name, (value, _, loops, _) in project.named_calls(path):
        if place.scope and (
            (name is not None and _is_of_the_host(name))
            or (isinstance(value[0], str) and value[0].endswith(_HOST_METHODS))
            # A Python loop over a jitted call is how a driver looks.
            or (loops and project.dispatches(place, name, value[0]))
        ):
            yield place


@cache
def _is_of_the_host(name: str) -> bool:
    return name in JIT or _HOST_CALL.match(name) is not None


def _setting_up(project: Project) -> set[Place]:
    """Methods that are called as set-up is and keep what they make: `self.state = ...` in `init_state`, which no trace
    survives. A module of a network library keeps its layers so, under every trace."""
    found = {
        Place(path, scope)
        for path, facts in project.files.items()
        for scope in facts.has("kept in self")
        if scope in facts.raw.functions and _is_set_up_name(scope.rpartition(".")[2])
    }
    return {p for p in found if p.outer.scope in project.files[p.path].raw.classes and not _is_built_anew(project, p)}


@cache
def _is_set_up_name(name: str) -> bool:
    return _SET_UP_NAME.match(name.partition("#")[0]) is not None


def _is_built_anew(project: Project, method: Place) -> bool:
    """Whether a method may be of a network's module, of whatever library: every trace runs it again. What is called
    `setup` of a class with a base that nobody knows is flax's."""
    classes = [method.outer]
    for one in classes:  # which grows
        classes += (base for base in project.bases(one) if base not in classes)
    bases = [base.name for one in classes for base in project.files[one.path].classes[one.scope].bases]
    is_called_so = any(name.endswith("Module") for name in (*bases, *(one.scope for one in classes)))
    is_setup = bool(bases) and method.scope.endswith(".setup")
    return is_called_so or is_setup or project.inherits(method.outer, _MODULES)


def _set_up(project: Project, host: set[Place], traced: set[Place], setting_up: set[Place]) -> set[Place]:
    """Functions inside host functions, and functions that nothing but set-up code (their own module's level,
    `__init__`, the methods `setting_up`) is seen to call. A driver that calls a library function proves nothing: it may
    be jitted elsewhere."""
    inside: dict[Place, list[Place]] = defaultdict(list)
    for place, _ in project.functions():
        inside[place.outer].append(place)
    handed_out = taken_on(project, (*_returned(project, inside), *_kept(project, inside)))
    calls = _calls(project)
    known, found, once = set(host), set[Place](), set(setting_up)
    todo = deque(place for places in inside.values() for place in places)
    while todo:
        place = todo.popleft()
        if place in known or place in traced:
            continue
        is_called_once = _called_by_set_up(project, place, known, once)
        if (place.outer in known and place not in handed_out) or is_called_once:
            if is_called_once:
                once.add(place)
            known.add(place)
            found.add(place)
            # Only what it holds and what it calls may now be seen in another light.
            todo.extend(
                p for p in (*inside[place], *calls.get(place, ())) if p.scope in project.files[p.path].raw.functions
            )
    return found


def _returned(project: Project, inside: dict[Place, list[Place]]) -> Iterator[Place]:
    """Functions that the function around them returns, alone or inside an object, `Transformation(init, update)`: who
    calls them is not seen."""
    for place, function in project.functions():
        for value in function.returns if place in inside else ():
            for part in (value, *_parts_of_object(value)):
                found = {p for p in project.functions_behind(place, part, TRANSFORMS) if p.outer == place}
                yield from (one for one in inside[place] if found and not found.isdisjoint((one, _first_of(one))))


def _parts_of_object(value: Value) -> Iterator[Value]:
    """What a class, by the case of its name, is handed to be made an object of."""
    if value.callee and value.callee.name.rpartition(".")[2][:1].isupper():
        yield from value.arguments
        yield from (part for _, part in value.keywords)


def _first_of(place: Place) -> Place:
    """The first def of a name that is defined again, in another branch: `f` of `f#2`; of a lambda itself."""
    name, again, number = place.scope.rpartition("#")
    return place._replace(scope=name) if again and number.isdigit() and not name.endswith("<lambda>") else place


def _kept(project: Project, inside: dict[Place, list[Place]]) -> Iterator[Place]:
    """Functions that a constructor makes and keeps, `self.step = step`: who calls them is not seen either."""
    for path, facts in project.files.items():
        for owner in facts.raw.classes:
            for maker in (Place(path, f"{owner}{name}") for name in _CONSTRUCTORS):
                for bound in facts.bindings.get(owner, {}).values() if maker in inside else ():
                    found = project.functions_behind(maker, bound.value, TRANSFORMS) if bound.kind == "value" else ()
                    yield from (p for p in found if p.outer == maker)


def _called_by_set_up(project: Project, place: Place, host: set[Place], once: set[Place]) -> bool:
    """Whether all that call a function are its module, constructors, or functions of that kind, which are `once`."""
    callers = project.callers(project.name_of(place))
    return bool(callers) and all(
        (c in once or (c in host and c.scope.endswith(("__init__", "__post_init__"))))
        if c.scope
        else c.path == place.path
        for c in callers
    )
