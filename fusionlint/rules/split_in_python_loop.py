"""A Python loop that makes a key and draws in every iteration, where one call draws all."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from fusionlint.finding import Finding
from fusionlint.patterns.code.at import inside, names_read
from fusionlint.patterns.code.calls import argument, as_argument, brief
from fusionlint.patterns.loops.carry import Carry
from fusionlint.patterns.loops.collected import Comprehension, collected, is_few, iterated_by, target_names
from fusionlint.patterns.values.kinds import element_kind
from fusionlint.rule import Rule
from fusionlint.source.answers import of_project
from fusionlint.source.asked import CALLS, EVERYWHERE
from fusionlint.source.facts import RawCall, RawValue, unpacked_call
from fusionlint.source.names import PARTIAL
from fusionlint.source.places import Place
from fusionlint.source.project import Project
from fusionlint.source.tree import Source

rule = Rule(__name__, harm="fusion")

_SPLIT, _FOLD = "jax.random.split", "jax.random.fold_in"
# What takes a shape, so that one call draws any number of them.
_DRAWS = frozenset(
    f"jax.random.{name}"
    for name in ("normal", "uniform", "bernoulli", "randint", "truncated_normal", "exponential", "gumbel", "laplace",
                 "logistic", "cauchy", "rademacher", "bits", "categorical", "multivariate_normal", "rayleigh")
)  # fmt: skip


def _making_keys(source: Source) -> Iterator[str]:
    """The scopes of traced code, or of what makes parameters, that make keys and draw in a loop: asked of the facts."""
    places = {place for name in (_SPLIT, _FOLD) for place, _ in source.called(name)}
    if not places:
        return iter(())
    drawing = {place.scope for name in _DRAWS for place, call in source.called(name) if call[2]}
    # What an initializer makes draws too: `normal(1.0)(key, shape)`.
    drawing.update(scope for (callee, *_), scope, loops, _ in source.facts.raw.calls if loops and _is_made(callee))
    places = {place for place in places if place.scope in drawing}
    return (p.scope for p in places if source.runs(p.scope, "traced") or p in _initializers(source.project))


def _is_made(callee: RawValue) -> bool:
    """Whether what is called was returned by a call."""
    return isinstance(callee, tuple) and len(callee) > 1


@rule.source("For", where="any", when=_making_keys, needs=(_SPLIT, _FOLD))
def a_key_and_a_draw_in_every_iteration(loop: cst.For, source: Source) -> Iterator[Finding]:
    """`key, sub = split(key); rows.append(normal(sub, shape))`, or with a key folded from the counter."""
    if not _is_of_a_program(loop, source) or is_few(loop.iter, source):
        return
    varying = Carry(loop).varying
    for value in collected(loop, source):
        for call in inside(value, cst.Call):
            if (made := _key_of(call, loop, varying, source)) is not None:
                yield _finding(made, call, source, pair=0)
                return


@rule.source("ListComp", "GeneratorExp", where="any", when=_making_keys, needs=(_SPLIT, _FOLD))
def a_draw_for_every_key(loop: Comprehension, source: Source) -> Iterator[Finding]:
    """`jnp.stack([normal(k, shape) for k in split(key, n)])`."""
    keys = iterated_by(loop)
    if not _is_of_a_program(loop, source) or is_few(keys, source):
        return
    if element_kind(keys, source) != "key" or not isinstance(loop.for_in.target, cst.Name):
        return
    for value in collected(loop, source):
        for call in inside(value, cst.Call):
            if source.qualified_name(call.func) in _DRAWS:
                key, targets = argument(call, 0, "key"), target_names(loop)
                if isinstance(key, cst.Name) and key.value in targets and not _reads(call, targets, key):
                    yield _finding(call, call, source, pair=1)
                    return


def _is_of_a_program(loop: cst.CSTNode, source: Source) -> bool:
    """Whether the loop is traced; what a module declares its parameters with is, under the jit of its `init`."""
    if source.is_idle(loop):
        return False
    return source.is_traced(loop) or source.place(loop) in _initializers(source.project)


@of_project
def _initializers(project: Project) -> frozenset[Place]:
    """The functions that modules hand to `self.param("name", initializer, ...)`."""
    project.log.asked.add((EVERYWHERE, CALLS))
    return frozenset(
        place
        for path, facts in project.files.items()
        for call in map(unpacked_call, filter(_declares, facts.raw.calls))
        for place in project.functions_behind(Place(path, call.scope), call.value.arguments[1], PARTIAL)
    )


def _declares(call: RawCall) -> bool:
    called, arguments, _ = call[0]
    return isinstance(called, str) and called.endswith(".param") and len(arguments) > 1


def _key_of(draw: cst.Call, loop: cst.For, varying: frozenset[str], source: Source) -> cst.Call | None:
    """The split or fold-in in `loop` that makes the key of `draw`, which needs nothing else of this iteration."""
    if not (source.qualified_name(draw.func) in _DRAWS or isinstance(draw.func, cst.Call)) or not draw.args:
        return None
    key = argument(draw, 0, "key")
    if key is None or _reads(draw, varying, key):
        return None
    made = key
    if isinstance(key, cst.Name):
        written = source.written(key)
        made = _unpacked_from(written, source) if written is not None else key
    if not isinstance(made, cst.Call) or source.loop(made) is not loop:
        return None
    if source.calls(made, _FOLD):
        return made
    return made if source.calls(made, _SPLIT) and _is_chain(made, varying) else None


def _unpacked_from(written: cst.Name, source: Source) -> cst.BaseExpression:
    """The right-hand side that `key, sub = split(key)` or `sub = ...` takes a name from."""
    above = source.nearest(written, cst.Assign)
    return above.value if above is not None else written


def _is_chain(split: cst.Call, varying: frozenset[str]) -> bool:
    """Whether the key that is split is one of the loop's own: else it is not another in every iteration."""
    key = argument(split, 0, "key")
    return isinstance(key, cst.Name) and key.value in varying


def _reads(call: cst.Call, names: frozenset[str] | set[str], key: cst.BaseExpression) -> bool:
    """Whether what `call` is called with, its key aside, is another in every iteration."""
    parts = [call.func, *(arg.value for arg in call.args if arg.value is not key)]
    return any(name.value in names for part in parts for name in names_read(part))


def _finding(made: cst.Call, draw: cst.Call, source: Source, pair: int) -> Finding:
    is_of_jax = source.qualified_name(draw.func) in _DRAWS
    how = f"{source.code(draw.func)}(key, (n, ...))" if is_of_jax else _mapped(draw, source)
    how = brief(how, 80, "jax.vmap(«draw»)(«keys»)")
    what = "draws" if pair else "makes a key and draws"
    return source.finding(
        made,
        f"a Python loop {what} in every iteration: the generator is in the program once per draw",
        write=f"one call with a leading axis, `{how}`: the numbers are others, of the same distribution",
        pair=pair,
    )


def _mapped(draw: cst.Call, source: Source) -> str:
    """`jax.vmap(draw)(keys)`, of `draw(key, shape)` with what else it is called with."""
    name, key = source.code(draw.func), argument(draw, 0, "key")
    if len(draw.args) == 1:
        return f"jax.vmap({name})(keys)"
    said = ("key" if arg.value is key else as_argument(arg.value, source) for arg in draw.args)
    names = (f"{arg.keyword.value}=" if arg.keyword is not None else arg.star for arg in draw.args)
    given = ", ".join(f"{before}{text}" for before, text in zip(names, said, strict=True))
    return f"jax.vmap(lambda key: {name}({given}))(keys)"
