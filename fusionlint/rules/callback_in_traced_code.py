"""A print, a check or a host function in compiled code that every call of it runs: kernels are cut apart around it."""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

from fusionlint.finding import Finding
from fusionlint.lazily import regex
from fusionlint.patterns.callbacks.calls import CALLBACKS, PRINT, RETURNS, SETTINGS, loop_around, takes_many_steps
from fusionlint.patterns.callbacks.on_the_host import is_arithmetic, only_tells
from fusionlint.patterns.code.calls import argument, hides_some
from fusionlint.patterns.runs.concrete import CLOCKS
from fusionlint.patterns.runs.loop_bodies import LOOPS
from fusionlint.patterns.runs.often import is_called_as_once, runs_often
from fusionlint.patterns.runs.switches import is_left_before, switches
from fusionlint.patterns.values.kinds import kind
from fusionlint.rule import Rule
from fusionlint.source.facts import last_name
from fusionlint.source.places import Place
from fusionlint.source.traced import reached_from
from fusionlint.source.tree import Source

rule = Rule(__name__, harm="fusion")

_BRANCHES = frozenset(("jax.lax.cond", "jax.lax.switch", "jax.experimental.checkify.checkify"))
# What is made to tell somebody something; and files that run once, to be looked at.
_TELLS = regex(
    r"log|print|debug|inspect|report|progress|track|monitor|callback|tap|warn|info|verbose|tqdm|meter|hook|instrument",
    re.I,
)
_SCRIPT = regex(
    r"(^|/)(examples?|tutorials?|demos?|notebooks?|scripts?|docs?|debug\w*)/|^tools?/|(^|/)(train|main|run)\w*\.py$"
)
# What a docstring calls what is printed, where that is what the function is for.
_SAYS_SO = regex(r"jax\.debug\.|\bdebug(ging)? (output|print)|\bprints? debug", re.I)
_COUNTS = regex(r"(num_|n_)?(gen|generation|epoch|iter|iteration|step|round|update)s?(_(count|idx|index|num|number))?$")
# What is called before or after many steps.
_AT_THE_END = regex(r"^_?on_(?!.*(step|batch)).*(end|start|begin|finish)$")


@rule.source("Call", calls=CALLBACKS, where="used")
def called_by_every_run(node: cst.Call, source: Source) -> Iterator[Finding]:
    """Callbacks that nothing has to switch on, outside of loops: callback-in-loop-body speaks of those."""
    name = source.qualified_name(node.func)
    function = source.function(node)
    if name not in CALLBACKS or not isinstance(function, cst.FunctionDef) or _is_to_be_read(node, source):
        return
    if name not in RETURNS and (_does_nothing_else(function, node) or _says_what_python_knows(node, source)):
        return
    place = source.body_place(function)
    ways = list(switches(node, source))
    if not all(_is_default(*switch, name, function) for switch in ways):
        return
    if name not in RETURNS and not ways and (_is_told_once(node, place, source) or _is_recorded(node, source)):
        return
    if name not in RETURNS and (is_left_before(node, source) or _AT_THE_END.match(last_name(place.scope))):
        return
    if place in reached_from(source.project, _BRANCHES) or loop_around(node, source) is not None:
        return
    # What is reported once, for many steps, is cheap.
    if name not in RETURNS and takes_many_steps(function, source):
        return
    if name in RETURNS:
        if not _is_numeric(node, source):
            return
        message = "the device stops for a host function that computes with numpy, and vmap asks it once an element"
        write = "the same with jax.numpy and jax.lax, which compiles into the program"
    elif name == PRINT:
        message = "printed on every call: the values leave the device, and the kernels around them are cut apart"
        write = "nothing, or the print behind a static flag: `if debug: jax.debug.print(...)`"
    else:
        message = "every call hands its values to Python on the host, and the kernels around are cut apart"
        write = (
            "the callback behind a static flag that is off unless asked for, or the check on the host, before the call"
        )
    yield source.finding(node, message, write=write)


def _does_nothing_else(function: cst.FunctionDef, node: cst.Call) -> bool:
    """Whether the function is a name for the callback: who calls it asks for that."""
    lines = [line for line in function.body.body if not _is_said_before(line)]
    match lines:
        case [cst.SimpleStatementLine(body=[cst.Expr(value=value)])]:
            return value is node
    return False


def _is_told_once(node: cst.Call, place: Place, source: Source) -> bool:
    """Whether a warning or an error for somebody to read is all that comes of it, and the function is not seen to run
    often: a check of a mesh, the report of a fit; or a text, of what is called as what runs once is. What is switched
    off when it costs is checked each time."""
    if source.calls(node, PRINT):
        return _says_how_far(node) or (len(node.args) == 1 and is_called_as_once(last_name(place.scope)))
    if not only_tells(node, source):
        return False
    return not runs_often(source.project, place) and place not in reached_from(source.project, LOOPS)


def _says_how_far(node: cst.Call) -> bool:
    """Whether a number that counts is printed with others, `print("{} - return {}", generation, score)`: how far it is
    is told to be read."""
    told = [arg.value for arg in node.args[1:] if arg.keyword is None or arg.keyword.value not in SETTINGS]
    return len(told) > 1 and any(isinstance(value, cst.Name) and _COUNTS.match(value.value) for value in told)


def _is_recorded(node: cst.Call, source: Source) -> bool:
    """Whether nobody sees that what `node` calls on the host only checks or prints: what it keeps, or sends somewhere,
    is what it is called for, in every run."""
    return not source.calls(node, PRINT) and not only_tells(node, source)


def _says_what_python_knows(node: cst.Call, source: Source) -> bool:
    """Whether numbers that a trace knows are printed, `print("{n} points", n=x.shape[0])`: no value leaves the device
    for that, and whoever prints it does so when something is set up."""
    if not source.calls(node, PRINT) or not node.args or hides_some(node):
        return False
    text, *values = node.args
    told = [arg.value for arg in values if arg.keyword is None or arg.keyword.value not in SETTINGS]
    if not told or not isinstance(text.value, cst.SimpleString):
        return False
    return all(kind(value, source) == "scalar" for value in told)


def _is_said_before(line: cst.BaseStatement | cst.BaseSmallStatement) -> bool:
    match line:
        case cst.SimpleStatementLine(body=[cst.Import() | cst.ImportFrom()]):
            return True
        case cst.SimpleStatementLine(body=[cst.Expr(value=cst.SimpleString())]):
            return True
    return False


def _is_to_be_read(node: cst.CSTNode, source: Source) -> bool:
    """Whether somebody wants to see it: in a script, or a function that is made to tell, or says that it does."""
    place = source.place(node)
    if _SCRIPT.search(source.facts.inside):
        return True
    if any(_TELLS.search(scope) for scope in place.scope.split(".")) or _measures_itself(place, source):
        return True
    around = source.ancestors(node, cst.FunctionDef)
    return any(_SAYS_SO.search(text) for function in around for text in _texts(function))


def _texts(function: cst.FunctionDef) -> Iterator[str]:
    """What a function says of itself: its docstring, or another text that stands alone."""
    for line in function.body.body:
        match line:
            case cst.SimpleStatementLine(body=[cst.Expr(value=cst.SimpleString(value=text))]):
                yield text


def _measures_itself(place: Place, source: Source) -> bool:
    """Whether a function around takes the time of what it does, on the host: what it has printed is its report."""
    timed = {called.scope for name in CLOCKS for called, _ in source.called(name)}
    scopes = place.scope.split(".")
    return any(".".join(scopes[:n]) in timed for n in range(1, len(scopes) + 1))


def _is_default(switch: cst.CSTNode, part: cst.CSTNode, name: str, function: cst.FunctionDef) -> bool:
    """Whether the switch lets the call through unless somebody says otherwise: `if not assume_sorted`, by default
    False. A print behind a switch is there to be read."""
    if name == PRINT or not isinstance(switch, cst.If) or part is not switch.body:
        return False
    match switch.test:
        case cst.UnaryOperation(operator=cst.Not(), expression=cst.Name(flag)):
            return _default(flag, function) == "False"
        case cst.Comparison(
            left=cst.Name(flag), comparisons=[cst.ComparisonTarget(operator=cst.Is(), comparator=cst.Name("None"))]
        ):
            return _default(flag, function) == "None"
        case cst.Name(flag):
            return _default(flag, function) == "True"
    return False


def _default(flag: str, function: cst.FunctionDef) -> str:
    parameters = (*function.params.params, *function.params.kwonly_params)
    default = next((p.default for p in parameters if p.name.value == flag), None)
    return default.value if isinstance(default, cst.Name) else ""


def _is_numeric(node: cst.Call, source: Source) -> bool:
    """Whether the host function is seen to do nothing but arithmetic, one element at a time under vmap."""
    mapped = argument(node, 9, "vmap_method")
    is_sequential = isinstance(mapped, cst.SimpleString) and mapped.evaluated_value == "sequential"
    return is_sequential and is_arithmetic(node, source)
