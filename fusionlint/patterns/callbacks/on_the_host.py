"""What a callback does on the host: it shows how far a loop is, prints, logs, warns, or computes.

In: a call from compiled code to Python. Out: whether it is seen to do no more than that.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

from fusionlint.lazily import regex
from fusionlint.patterns.callbacks.calls import PRINT, names_called, takes_many_steps
from fusionlint.patterns.code.at import names_in
from fusionlint.patterns.code.calls import argument
from fusionlint.patterns.code.functions import Function, function_named
from fusionlint.patterns.dispatch.jit import value
from fusionlint.patterns.runs.switches import is_switched, switches
from fusionlint.source.names import PARTIAL
from fusionlint.source.places import Place
from fusionlint.source.tree import Source
from fusionlint.source.walk import dotted

_PROGRESS = regex(r"progress|tqdm|pbar|verbose|(^|_)print_", re.I)
_SAYS = regex(r"(^|[._])(print|warn(ing)?|debug|info|error|critical|exception|log)$")
_NUMERIC = regex(r"^(numpy|scipy|math|numba)(\.|$)|^(range|len|enumerate|zip|float|int|min|max|sum|abs|print)$")
# What scipy solves so, jax has nothing for: a sparse factorization, a neighbour search.
_ONLY_OF_SCIPY = regex(r"^scipy\.(sparse|spatial|optimize)(\.|$)")
_RENDERS = regex(r"_?render(_|$)")
_LOG = regex(r"(^|_)(logs?|logger|logging|wandb|tensorboard|mlflow|reports?)(_|$)")


def is_progress(node: cst.Call, source: Source) -> bool:
    """Whether a setting decides if `node` runs, and it shows how far the loop is, or prints what is asked for: `if
    config.progress_bar`, `if verbose`; or whether it only tells how far that is, and is called so."""
    called = node.args[0].value if node.args else None
    if isinstance(called, cst.Name) and _PROGRESS.search(called.value) and only_tells(node, source):
        return True
    around = [above for above, _ in switches(node, source)]
    tests = [above.test for above in around if isinstance(above, cst.If | cst.IfExp)]
    told = [node.args[0].value, *tests] if node.args else tests
    return bool(around) and any(_PROGRESS.search(name.value) for part in told for name in names_in(part))


def is_printed(node: cst.Call, source: Source) -> bool:
    """Whether a setting decides if `node` runs, and its function does nothing but print: `if verbose: callback(lambda
    x: print(x), loss)`."""
    function = _called(node, source) if is_switched(node, source) else None
    told = [one for one in _statements(function) if not isinstance(one, cst.SimpleString)]
    return bool(told) and all(source.calls(one, "print") for one in told)


def only_tells(node: cst.Call, source: Source) -> bool:
    """Whether what `node` calls on the host is seen to do no more than to warn, to log or to raise."""
    if source.calls(node, PRINT):
        return False
    told = [one for part in _statements(_called(node, source)) for one in _told(part)]
    return bool(told) and all(isinstance(one, cst.Raise) or _is_said(one) for one in told)


def _called(node: cst.Call, source: Source) -> Function | None:
    """The function that a callback calls on the host."""
    return function_named(node.args[0].value, source) if node.args else None


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
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Tuple())], value=cst.Name()):
            pass  # `metrics, step = told`
        case _:
            yield statement


def _is_said(call: cst.CSTNode) -> bool:
    return isinstance(call, cst.Call) and _SAYS.search(dotted(call.func)) is not None


def _statements(function: Function | None) -> Iterator[cst.CSTNode]:
    """What a function does, one after the other; of an expression that stands alone what it is."""
    if isinstance(function, cst.Lambda):
        yield function.body
    for line in function.body.body if isinstance(function, cst.FunctionDef) else ():
        for small in line.body if isinstance(line, cst.SimpleStatementLine) else (line,):
            yield small.value if isinstance(small, cst.Expr) else small


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
    found = [source.body_place(function)] if function is not None else []
    found = found or list(source.project.functions_behind(source.place(node), value(called), PARTIAL))
    return bool(found) and all(_computes(place, source) for place in found)


def _computes(place: Place, source: Source) -> bool:
    names = [*names_called(place, source)]
    if any(name is not None and _ONLY_OF_SCIPY.match(name) for name in names):
        return False
    return any(n and n.startswith(("numpy.", "scipy.")) for n in names) and all(
        n is None or _NUMERIC.match(n) for n in names
    )


def is_logged(node: cst.Call, body: Function, source: Source) -> bool:
    """Whether a setting switches on that `node` hands values to a log: `if self.debug: callback(self.log_to_wandb,
    logs)`; or whether each call of `body` goes through many small steps, and makes one entry of them all. They are to
    be seen while the program runs."""
    if _LOG.search(_name_called(node)) and is_switched(node, source):
        return True
    return takes_many_steps(body, source) and _is_an_entry(node, source)


def is_rendered(node: cst.Call, source: Source) -> bool:
    """Whether a setting decides that somebody sees each step, `if self.render: callback(env.render, state)`: the host
    has to draw it then, whatever the loop returns."""
    return _RENDERS.match(_name_called(node)) is not None and is_switched(node, source)


def _name_called(node: cst.Call) -> str:
    return dotted(node.args[0].value).rpartition(".")[2] if node.args else ""


def _is_an_entry(node: cst.Call, source: Source) -> bool:
    """Whether what `node` calls on the host is seen to do no more than to log, once, and to show how far it is:
    `wandb.log({"returns": info["returns"].mean()})`, `pbar.update(1)`."""
    function = _called(node, source)
    if function is None or source.calls(node, PRINT):
        return False
    told = [
        dotted(one.func) if isinstance(one, cst.Call) else "" for part in _statements(function) for one in _told(part)
    ]
    logs = [name for name in told if _LOG.search(name.rpartition(".")[2])]
    return len(logs) == 1 and all(name in logs or _PROGRESS.search(name) for name in told)
