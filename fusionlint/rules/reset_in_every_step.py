"""A whole new start that every step makes and few take: `jnp.where(done, self.reset(key), state)` under a `vmap`."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from fusionlint.finding import Finding
from fusionlint.lazily import regex
from fusionlint.patterns.branches.conditional import CONDITIONALS, conditional
from fusionlint.patterns.code.at import inside
from fusionlint.patterns.code.functions import Function, function_named
from fusionlint.patterns.runs.mapped_methods import names_mapped
from fusionlint.rule import Rule
from fusionlint.source.answers import of_project
from fusionlint.source.facts import Value, last_name
from fusionlint.source.names import TREE_MAPS
from fusionlint.source.places import Place
from fusionlint.source.project import Project
from fusionlint.source.traced import has_subclasses
from fusionlint.source.tree import Source

rule = Rule(__name__, harm="fusion")

_STEP = regex(r"_?step(_env\w*)?$")
_KEY = regex(r"(^|_)(key|rng|prng|rngs|subkey)s?(_|\d|$)")
# What a step is handed of its own episode.
_OWN = regex(r"(^|_)(key|rng|prng|rngs|subkey|state|timestep)s?(_|\d|$)")
_DONE = regex(r"(^|\W|_)(done|dones|terminals?|terminated|terminations?|truncated|last|over|finished)(\W|_|$)")
# A conditional may ask for that by another name.
_RESETTING = regex(r"reset|\.last\(\)")
# A helper that resets is seldom further away than this.
_DEPTH = 2
_MESSAGE = "every step makes a new start, for each element of the batch, and takes it where an episode is over"
_CHOICES = ("jax.numpy.where", "jax.lax.select", "jax.lax.select_n")
_RESETS = frozenset(("reset", "_reset", "reset_env", "_reset_env", "reset_fn", "_reset_fn"))


def _resetting(source: Source) -> Iterator[str]:
    """The scopes called a step in which something is reset: asked of the facts."""
    if _RESETS.isdisjoint(source.facts.attributes):
        return
    for value, scope, *_ in source.facts.raw.calls:
        if isinstance(value[0], str) and value[0].rpartition(".")[2] in _RESETS and _STEP.match(last_name(scope)):
            yield scope


def _choosing_to_reset(source: Source) -> Iterator[str]:
    """The scopes called a step, in a file in which something is reset."""
    if not _RESETS.isdisjoint(source.facts.attributes):
        yield from (scope for scope in source.facts.functions if _STEP.match(last_name(scope)))


@rule.source("Call", when=_resetting)
def made_by_all_and_taken_by_few(node: cst.Call, source: Source) -> Iterator[Finding]:
    """A step hands a new key to a reset, and chooses between what that returns and its own new state."""
    function = source.function(node)
    if not _is_reset(node) or not isinstance(function, cst.FunctionDef) or not _STEP.match(function.name.value):
        return
    if _begin_alike(source.project):
        return
    if _is_one_of_two_ways(node, function, source) or _is_nobodys(node, source) or _is_given_its_own(node, source):
        return
    reads = [read for name in _names(node, source) for read in source.reads(name)]
    if not any(_is_chosen(read, source) for read in reads):
        return
    yield _finding(node, node, source)


@rule.source("Call", calls=CONDITIONALS, when=_choosing_to_reset)
def made_by_a_branch_under_a_map(node: cst.Call, source: Source) -> Iterator[Finding]:
    """`lax.cond(timestep.last(), self._auto_reset, go_on, state)` in a step that the project maps, `vmap(env.step)`:
    there both branches run, for all."""
    function, found = source.function(node), conditional(node, source)
    if found is None or not isinstance(function, cst.FunctionDef) or not _STEP.match(function.name.value):
        return
    if len(found.branches) != 2 or not _asks_whether_to_reset(found.test, source):
        return
    resets = [_reset_in(branch.function, source, _DEPTH) for branch in found.branches]
    reset = next((one for one in resets if one is not None), None)
    if reset is None or all(resets) or not _is_mapped(function, source):
        return
    if _is_nobodys(reset, source):
        return
    if _begin_alike(source.project):
        return
    yield _finding(node, reset, source)


def _is_mapped(step: cst.FunctionDef, source: Source) -> bool:
    """Whether the project starts many and steps many. One that maps the step alone tries several actions."""
    mapped = names_mapped(source.project)
    return step.name.value in mapped and not mapped.isdisjoint(_RESETS)


def _finding(node: cst.Call, reset: cst.Call, source: Source) -> Finding:
    return source.finding(
        node,
        _MESSAGE,
        write=f"for a whole batch: jax.vmap({source.code(reset.func)}) of a few keys in each step, and each that is "
        "done takes one by its number; or starts that are made once, before the loop",
    )


def _asks_whether_to_reset(test: cst.BaseExpression, source: Source) -> bool:
    asked = source.code(test)
    return _DONE.search(asked) is not None or _RESETTING.search(asked) is not None


def _reset_in(function: Function, source: Source, depth: int) -> cst.Call | None:
    """The call by which a branch resets something by a key, itself or by a helper."""
    calls = [*inside(function.body, cst.Call)] if depth else []
    own = next(filter(_is_reset, calls), None)
    if own is not None:
        return own
    helpers = (function_named(call.func, source) for call in calls)
    inner = (_reset_in(helper, source, depth - 1) for helper in helpers if helper is not None)
    return next((one for one in inner if one is not None), None)


def _is_reset(call: cst.Call) -> bool:
    """Whether something is reset by a key of its own, so that no two starts are alike."""
    match call.func:
        case cst.Attribute(attr=cst.Name(name)) if name in _RESETS:
            return any(_is_key(arg.value) for arg in call.args)
    return False


def _is_key(node: cst.BaseExpression) -> bool:
    match node:
        case cst.Name(name) | cst.Attribute(attr=cst.Name(name)):
            return _KEY.search(name) is not None
    return False


def _is_one_of_two_ways(call: cst.Call, function: cst.FunctionDef, source: Source) -> bool:
    """Whether an option of the object chooses between this reset and starts that are kept, `if self.full_reset: ...
    else: ...`."""
    for above in source.ancestors(call):
        if above is function:
            return False
        match above:
            case cst.If(test=cst.Attribute(value=cst.Name("self")), body=body, orelse=cst.Else() as other):
                is_asked_for = body in source.ancestors(call)
                return is_asked_for and not any(isinstance(p, cst.Call) and _is_reset(p) for p in inside(other))
    return False


def _is_given_its_own(call: cst.Call, source: Source) -> bool:
    """Whether the step was handed what the next episode plays, and takes that where one is over too, `select(done,
    next_params, params)`: each element of a batch has a start of its own, which no other can take."""
    handed = [arg.value for arg in call.args if isinstance(arg.value, cst.Name) and not _OWN.search(arg.value.value)]
    given = [name for arg in handed if (name := source.written(arg)) is not None and source.parameter(arg) is not None]
    return any(_is_chosen(read, source) for name in given for read in source.reads(name))


def _is_nobodys(call: cst.Call, source: Source) -> bool:
    """Whether the object's own class leaves the reset to others, `raise NotImplementedError`, and no class of the
    project is one of those: nothing runs this step, as in a copy of a library of which a project uses something else.
    """
    around = source.nearest(call, cst.ClassDef)
    match call.func:
        case cst.Attribute(value=cst.Name("self"), attr=cst.Name(name)) if around is not None:
            methods = (part for part in around.body.body if isinstance(part, cst.FunctionDef))
            own = next((each for each in methods if each.name.value == name), None)
            place = source.body_place(around)
            return own is not None and _only_raises(own) and not has_subclasses(source.project, place)
    return False


def _only_raises(function: cst.FunctionDef) -> bool:
    """Whether a method does nothing, but for what it says of itself, and raises."""
    match function.body:
        case cst.IndentedBlock(body=[*_, cst.SimpleStatementLine(body=[cst.Raise()])]) as block:
            return len(block.body) <= 2
    return False


def _names(call: cst.Call, source: Source) -> list[cst.Name]:
    """The names that what is returned gets."""
    match source.parent(call):
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Name() as name)]):
            return [name]
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Tuple(elements=parts))]):
            return [part.value for part in parts if isinstance(part.value, cst.Name)]
    return []


def _is_chosen(read: cst.CSTNode, source: Source) -> bool:
    """Whether an episode's end decides between `read` and something else, itself or leaf by leaf."""
    while isinstance(above := source.parent(read), cst.Attribute | cst.Subscript) and above.value is read:
        read = above
    while isinstance(above, cst.Element) and isinstance(several := source.parent(above), cst.Tuple):
        read, above = several, source.parent(several)  # `jax.tree.map(choose, (state, obs), (new_state, new_obs))`
    call = source.handed_to(read)
    if call is None:
        return False
    if source.calls(call, *_CHOICES):
        return call.args[0].value is not read and _asks_whether_done(call, source)
    if not source.calls(call, *TREE_MAPS) or call.args[0].value is read:
        return False
    mapped = call.args[0].value
    function = mapped if isinstance(mapped, cst.Lambda) else function_named(mapped, source)
    return function is not None and any(
        source.calls(part, *_CHOICES) and _asks_whether_done(part, source) for part in inside(function.body)
    )


def _asks_whether_done(choice: cst.Call, source: Source) -> bool:
    return bool(choice.args) and _DONE.search(source.code(choice.args[0].value)) is not None


def _begin_alike(project: Project) -> bool:
    """Whether resets of the project take a key, and none of them does anything with it. One that hands it on to
    another's reset, as wrappers do, says nothing."""
    draws = _draws(project).values()
    return bool(draws) and not any(draws)


@of_project
def _draws(project: Project) -> dict[Place, bool]:
    """The resets of the project's classes that take a key and return something, each with whether it uses the key."""
    found: dict[Place, bool] = {}
    for places in project.methods().values():
        for place in places:
            function = project.function_at(place) if last_name(place.scope) in _RESETS else None
            keys = {name for name in function.parameters if _KEY.search(name)} if function is not None else set()
            if function is None or not keys or not function.returns:
                continue
            users = [call.value for _, call in project.calls_within(place) if _reads(call.value, keys)]
            if not users or not all(_resets(user) for user in users):
                found[place] = bool(users)
    return found


def _resets(call: Value) -> bool:
    return call.callee is not None and last_name(call.callee.name) in _RESETS


def _reads(value: Value, names: set[str]) -> bool:
    """Whether a call hands over one of `names`, itself or in what it makes of them."""
    handed = (*value.arguments, *(given for _, given in value.keywords))
    return any(each.name.partition(".")[0] in names or _reads(each, names) for each in handed)
