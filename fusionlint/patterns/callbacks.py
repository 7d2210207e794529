"""Calls from compiled code to Python, and what makes them: the loop that runs around one, a flag that switches one on.

In: calls of a Source. Nothing here knows a rule.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

from fusionlint.lazily import regex
from fusionlint.patterns.at import inside, is_literal, is_none
from fusionlint.patterns.calls import argument
from fusionlint.patterns.carry import read
from fusionlint.patterns.functions import Function, function_named, result_of
from fusionlint.patterns.jit import value
from fusionlint.patterns.loop_bodies import LOOPS, all_loop_bodies
from fusionlint.source.names import PARTIAL, TREE_MAPS
from fusionlint.source.places import Place
from fusionlint.source.tree import Source
from fusionlint.source.walk import dotted

PRINT = "jax.debug.print"
_FOR_WHAT_IT_DOES = "jax.experimental.io_callback"
RETURNS = frozenset(("jax.pure_callback", "equinox.filter_pure_callback", _FOR_WHAT_IT_DOES))
CALLBACKS = (PRINT, "jax.debug.callback", *sorted(RETURNS))
_REDUCES = frozenset(("mean", "sum", "max", "min", "std", "var", "nanmean", "nanmax", "nanmin", "any", "all"))
_OF_TWO = ("jax.numpy.maximum", "jax.numpy.minimum")
SETTINGS = frozenset(("ordered", "partitioned", "sharding", "vmap_method"))
_PROGRESS = regex(r"progress|tqdm|pbar|verbose|(^|_)print_", re.I)
# dm-tree's, for what jax.tree.map does.
_TREE_MAPS = (*TREE_MAPS, "tree.map_structure")
_SAYS = regex(r"(^|[._])(print|warn(ing)?|debug|info|error|critical|exception|log)$")
_NUMERIC = regex(r"^(numpy|scipy|math|numba)(\.|$)|^(range|len|enumerate|zip|float|int|min|max|sum|abs|print)$")
_LOG = regex(r"(^|_)(logs?|logger|logging|wandb|tensorboard|mlflow|reports?)(_|$)")
_RARE = regex(r"(^|_)(eval\w*|checkpoint\w*|ckpt\w*)(_|$)")
# A helper of a body is seldom further away than this.
DEPTH = 3


def loop_around(node: cst.CSTNode, source: Source, depth: int = DEPTH) -> Function | None:
    """The loop's body that makes the call at `node`: its own, or that of a function it calls in every step."""
    function = source.function(node)
    if function is None or depth == 0:
        return None
    place = Place(source.path, source.body_scope(function))
    if place in all_loop_bodies(source.project):
        return function
    if not source.project.calls_of(source.project.name_of(place)):
        return None
    found = (c for c in source.calls_of((source.project.name_of(place),)) if isinstance(c, cst.Call))
    bodies = (loop_around(c, source, depth - 1) for c in found if not is_switched(c, source))
    return next((body for body in bodies if body is not None), None)


def is_switched(node: cst.CSTNode, source: Source) -> bool:
    """Whether an `if` of the function around `node` decides if it runs."""
    return any(True for _ in switches(node, source))


def is_left_before(node: cst.CSTNode, source: Source) -> bool:
    """Whether the function around `node` returns nothing before it gets there, unless a setting says otherwise:
    `if name not in self.shown: return`."""
    function = source.function(node)
    around = {id(above) for above in source.ancestors(node)}
    for line in function.body.body if isinstance(function, cst.FunctionDef) else ():
        if id(line) in around:
            return False
        match line:
            case cst.If(
                test=test, body=cst.IndentedBlock(body=[*_, cst.SimpleStatementLine(body=[*_, cst.Return(value=None)])])
            ):
                if any(isinstance(part, cst.Attribute) and dotted(part)[:5] == "self." for part in inside(test)):
                    return True
    return False


def is_tried(node: cst.CSTNode, source: Source) -> bool:
    """Whether `node` stands under `if __name__ == "__main__":`, in a trial of the module."""
    for above in source.ancestors(node):
        match above:
            case cst.If(test=cst.Comparison(left=cst.Name("__name__"))):
                return True
    return False


def is_progress(node: cst.Call, source: Source) -> bool:
    """Whether a setting decides if `node` runs, and it shows how far the loop is, or prints what is asked for: `if
    config.progress_bar`, `if verbose`; or whether it only tells how far that is, and is called so."""
    called = node.args[0].value if node.args else None
    if isinstance(called, cst.Name) and _PROGRESS.search(called.value) and only_tells(node, source):
        return True
    around = [above for above, _ in switches(node, source)]
    tests = [above.test for above in around if isinstance(above, cst.If | cst.IfExp)]
    told = [node.args[0].value, *tests] if node.args else tests
    return bool(around) and any(_PROGRESS.search(name.value) for part in told for name in _names(part))


def is_printed(node: cst.Call, source: Source) -> bool:
    """Whether a setting decides if `node` runs, and its function does nothing but print: `if verbose: callback(lambda
    x: print(x), loss)`."""
    function = function_named(node.args[0].value, source) if node.args and is_switched(node, source) else None
    if function is None:
        return False
    done = [function.body] if isinstance(function, cst.Lambda) else list(_statements(function))
    told = [one for one in done if not isinstance(one, cst.SimpleString)]
    return bool(told) and all(isinstance(one, cst.Call) and source.calls(one, "print") for one in told)


def only_tells(node: cst.Call, source: Source) -> bool:
    """Whether what `node` calls on the host is seen to do no more than to warn, to log or to raise."""
    function = function_named(node.args[0].value, source) if node.args else None
    if function is None or source.calls(node, PRINT):
        return False
    done = [function.body] if isinstance(function, cst.Lambda) else list(_statements(function))
    told = [one for part in done for one in _told(part)]
    return bool(told) and all(isinstance(one, cst.Raise) or _is_said(one) for one in told)


def _told(statement: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """What a statement does, in whatever branch; a docstring, an import and a name for a text do nothing."""
    match statement:
        case cst.If(body=cst.IndentedBlock(body=lines), orelse=otherwise):
            for line in lines:
                yield from _told(line)
            if otherwise is not None:
                yield from _told(otherwise)
        case cst.Else(body=cst.IndentedBlock(body=lines)):
            for line in lines:
                yield from _told(line)
        case cst.SimpleStatementLine(body=parts):
            for part in parts:
                yield from _told(part.value if isinstance(part, cst.Expr) else part)
        case cst.SimpleString() | cst.ConcatenatedString() | cst.Import() | cst.ImportFrom() | cst.Pass():
            pass
        case cst.Return(value=None) | cst.Assign(targets=[cst.AssignTarget(target=cst.Name())]):
            pass
        case _:
            yield statement


def _is_said(call: cst.CSTNode) -> bool:
    return isinstance(call, cst.Call) and _SAYS.search(dotted(call.func)) is not None


def _statements(function: cst.FunctionDef) -> Iterator[cst.CSTNode]:
    """What a def does, one after the other; of an expression that stands alone what it is."""
    for line in function.body.body:
        for small in line.body if isinstance(line, cst.SimpleStatementLine) else (line,):
            yield small.value if isinstance(small, cst.Expr) else small


def _names(node: cst.CSTNode) -> Iterator[cst.Name]:
    return (part for part in inside(node) if isinstance(part, cst.Name))


def gives_back(node: cst.Call, source: Source) -> bool:
    """Whether the compiled code waits for what the host returns: `io_callback(log, None, x)` returns nothing."""
    if not source.calls(node, _FOR_WHAT_IT_DOES):
        return source.calls(node, *RETURNS)
    shape = argument(node, 1, "result_shape_dtypes")
    return shape is None or not is_none(shape)


def is_arithmetic(node: cst.Call, source: Source) -> bool:
    """Whether what `node` calls on the host is seen to do nothing but arithmetic: no simulator, no file, no other
    library."""
    called = argument(node, 0, "callback")
    if called is None:
        return False
    name = source.qualified_name(called)
    if name is not None and _NUMERIC.match(name):
        return True
    function = function_named(called, source)
    found = [Place(source.path, source.body_scope(function))] if function is not None else []
    found = found or list(source.project.functions_behind(source.place(node), value(called), PARTIAL))
    return bool(found) and all(_computes(place, source) for place in found)


def _computes(place: Place, source: Source) -> bool:
    names = [*_names_called(place, source)]
    return any(n and n.startswith(("numpy.", "scipy.")) for n in names) and all(
        n is None or _NUMERIC.match(n) for n in names
    )


def is_logged(node: cst.Call, body: Function, source: Source) -> bool:
    """Whether a setting switches on that `node` hands values to a log: `if self.debug: callback(self.log_to_wandb,
    logs)`; or whether each call of `body` goes through many small steps, and makes one entry of them all. They are to
    be seen while the program runs."""
    called = dotted(node.args[0].value).rpartition(".")[2] if node.args else ""
    if _LOG.search(called) and is_switched(node, source):
        return True
    return _takes_many_steps(body, source) and _is_an_entry(node, source)


def _is_an_entry(node: cst.Call, source: Source) -> bool:
    """Whether what `node` calls on the host is seen to do no more than to log, once, and to show how far it is:
    `wandb.log({"returns": info["returns"].mean()})`, `pbar.update(1)`."""
    function = function_named(node.args[0].value, source) if node.args else None
    if not isinstance(function, cst.FunctionDef) or source.calls(node, PRINT):
        return False
    told = [
        dotted(one.func) if isinstance(one, cst.Call) else "" for part in _statements(function) for one in _told(part)
    ]
    logs = [name for name in told if _LOG.search(name.rpartition(".")[2])]
    return len(logs) == 1 and all(name in logs or _PROGRESS.search(name) for name in told)


def is_returned(node: cst.Call, body: Function, source: Source) -> bool:
    """Whether a scan gives out in each step what its body hands to the host: `return state, metrics`."""
    if all_loop_bodies(source.project).get(Place(source.path, source.body_scope(body))) != "jax.lax.scan":
        return False
    match result_of(body, source):
        case cst.Tuple(elements=[_, cst.Element(value=out)]) if not is_none(out):
            given = {name for arg in node.args[1:] for name in read(arg)}
            return not given.difference(source.facts.bindings.get("", ())).isdisjoint(read(out))
    return False


def is_asked_for(node: cst.CSTNode, source: Source) -> bool:
    """Whether `node` runs only if the caller gave something to tell it by: `if name is not None`, where the name is an
    argument and None by default."""
    return any(
        isinstance(above, cst.If) and below is above.body and _is_given(above.test, source)
        for above, below in switches(node, source)
    )


def is_summary(node: cst.Call, body: Function, source: Source) -> bool:
    """Whether each call of `body` goes through many small steps, and hands out a few numbers of them all:
    `{"loss": losses.mean(), "step": step}`."""
    values = [arg.value for arg in node.args[1:] if arg.keyword is None or arg.keyword.value not in SETTINGS]
    if source.qualified_name(node.func) in RETURNS:  # what the callback returns comes second
        if not values or not isinstance(values[0], cst.Name) or values[0].value != "None":
            return False
        values = values[1:]
    match values:
        case [cst.Tuple(elements=parts)]:
            values = [part.value for part in parts]
    if not values or not _takes_many_steps(body, source):
        return False
    return _is_reduced(values[0], source) and all(_is_count(v) or _is_reduced(v, source) for v in values[1:])


def is_rare(node: cst.Call, body: Function, source: Source) -> bool:
    """Whether each call of `body` goes through many small steps, and says that it evaluates what came of them, or saves
    it: that is told at once, or lost with the program."""
    names = {body.name.value} if isinstance(body, cst.FunctionDef) else set()
    if node.args and isinstance(called := node.args[0].value, cst.Name | cst.Attribute):
        names.add(dotted(called).rpartition(".")[2])
    return any(map(_RARE.search, names)) and _takes_many_steps(body, source)


def _is_count(value: cst.BaseExpression) -> bool:
    """Whether `value` may be the number of a step, or of a seed, or one of some metrics: it has a name, `step + 1`,
    `metric["loss"]`."""
    match value:
        case cst.BinaryOperation(left=left, right=right):
            return all(_is_count(side) or is_literal(side) for side in (left, right))
        case cst.Subscript(value=cst.Name(), slice=[cst.SubscriptElement(slice=cst.Index(value=cst.SimpleString()))]):
            return True
    return isinstance(value, cst.Name | cst.Attribute)


def _is_reduced(value: cst.BaseExpression, source: Source, depth: int = DEPTH) -> bool:
    """Whether `value` is seen to be one number of however many, or some under names: means, sums, the largest."""
    if depth == 0:
        return False
    match value:
        case cst.Name():
            meant = _last_value(value, source)
            return meant is not None and _is_reduced(meant, source, depth - 1)
        case cst.BinaryOperation(left=left, right=right):
            return all(_is_reduced(side, source, depth) or is_literal(side) for side in (left, right))
        case cst.Dict(elements=elements):
            reduced = [_is_reduced(part.value, source, depth) for part in elements]
            rest = (part.value for part, known in zip(elements, reduced, strict=True) if not known)
            return any(reduced) and not any(isinstance(one, cst.Name) and source.value(one) is not None for one in rest)
        case cst.Call(args=[cst.Arg(value=cst.Lambda(body=inner)), *_]) if source.calls(value, *_TREE_MAPS):
            return _is_reduced(inner, source, depth)
        case cst.Call(func=cst.Attribute(attr=cst.Name(method)), args=[]) if method in _REDUCES:
            return True
        case cst.Call(args=[cst.Arg(value=one), cst.Arg(value=other)]) if source.calls(value, *_OF_TWO):
            return all(_is_reduced(side, source, depth) or is_literal(side) for side in (one, other))
        case cst.Call(args=[_]):
            module, _, name = (source.qualified_name(value.func) or "").rpartition(".")
            return module == "jax.numpy" and name in _REDUCES
    return False


def _last_value(name: cst.Name, source: Source) -> cst.BaseExpression | None:
    """What `name` was last given in its function, however it was cut since: `metrics = metrics[0]`, or `metrics =
    {k: v for k, v in metrics.items() if ...}`."""
    scope = source.scope(name)
    uses = source.uses(name)
    before = uses[: next(i for i, use in enumerate(uses) if use.node is name)]
    for use in reversed([use for use in before if use.is_write and source.scope(use.node) == scope]):
        statement = source.parent(source.parent(use.node) or use.node)
        given = statement.value if isinstance(statement, cst.Assign) else None
        match given:
            case cst.Subscript(value=cst.Name(whole)) if whole == name.value:
                continue
            case cst.DictComp(
                value=cst.Name(), for_in=cst.CompFor(iter=cst.Call(func=cst.Attribute(value=cst.Name(whole))))
            ) if whole == name.value:
                continue
        return given
    return None


def _is_given(test: cst.BaseExpression, source: Source) -> bool:
    match test:
        case cst.Comparison(
            left=cst.Name() as asked,
            comparisons=[cst.ComparisonTarget(operator=cst.IsNot(), comparator=cst.Name("None"))],
        ):
            written = source.written(asked)
            match source.parent(written) if written is not None else None:
                case cst.Param(default=cst.Name("None")):
                    return True
    return False


def switches(node: cst.CSTNode, source: Source) -> Iterator[tuple[cst.CSTNode, cst.CSTNode]]:
    """What decides inside its function whether `node` runs, and the part of it that `node` stands in."""
    function = source.function(node)
    below = node
    for above in source.ancestors(node):
        if above is function:
            return
        if isinstance(above, cst.If | cst.IfExp | cst.BooleanOperation | cst.ExceptHandler | cst.Match):
            yield above, below
        below = above


def runs_a_loop(body: Function, source: Source) -> bool:
    """Whether the function holds a loop of jax.lax itself."""
    return _holds_a_loop(Place(source.path, source.body_scope(body)), source)


def _takes_many_steps(body: Function, source: Source) -> bool:
    """The same, or whether it calls a function of the project that holds one."""
    place = Place(source.path, source.body_scope(body))
    return runs_a_loop(body, source) or any(_holds_a_loop(helper, source) for helper in _called_by(place, source))


def _holds_a_loop(place: Place, source: Source) -> bool:
    return any(name in LOOPS for name in _names_called(place, source))


def _called_by(place: Place, source: Source) -> Iterator[Place]:
    found = (source.project.find(name) for name in _names_called(place, source) if name is not None)
    return (helper for helper in found if helper is not None)


def _names_called(place: Place, source: Source) -> Iterator[str | None]:
    """What the function at `place`, and what is defined in it, calls."""
    return (source.project.callee(where, call.value) for where, call in source.project.calls_within(place))
