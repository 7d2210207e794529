"""What all callers hand a parameter: settings, which are constants, numbers of Python, fields of a configuration.

In: a function of a Project, or a def of a Source, and one of its parameters. A parameter for which all hand settings
Python knows when the program is compiled. Facts keep no literals and no arithmetic: what they do not keep is taken for
a number only beside a caller that hands what is seen to be a setting.
"""

from __future__ import annotations

import libcst as cst

from fusionlint.lazily import regex
from fusionlint.patterns.code.calls import argument
from fusionlint.patterns.code.constants import is_called_constant
from fusionlint.patterns.code.functions import parameters
from fusionlint.source.facts import NOTHING, Call, Function, Value
from fusionlint.source.names import JIT
from fusionlint.source.places import Place
from fusionlint.source.project import Project
from fusionlint.source.traced import calls_in_use, is_idle
from fusionlint.source.tree import Source

# What is set before a program is compiled.
SETTING = regex(
    r"^_?(config|cfg|conf|hparams|settings|consts?|constants|flags|args|static|static_\w+|\w+_(config|cfg|settings))$"
)
# What an array may be called, in capitals.
_LETTERS = 2
_MAKES_NUMBERS = frozenset(("int", "bool", "str", "len", "isinstance", "hasattr"))
# A caller's caller is seldom further away than this.
_DEPTH = 4


def is_constant(name: str) -> bool:
    """Whether a name, without what it is a field of, is written as constants are: `BC_PERIODIC`."""
    return is_called_constant(name, longest_matrix=_LETTERS)


def is_handed_settings(project: Project, place: Place, parameter: str, depth: int = _DEPTH) -> bool:
    """Whether the function at `place` is seen to be called, always with a setting for `parameter`."""
    function = project.function_at(place)
    if function is None or not depth or parameter not in function.parameters or traces_numbers(project, place):
        return False
    calls = calls_in_use(project, place)
    said = [_is_setting(project, caller, _handed(call, function, parameter), depth) for caller, call in calls]
    return True in said and False not in said


def handed_here(function: cst.FunctionDef, parameter: str, source: Source) -> list[cst.BaseExpression]:
    """What all that call a def, where they stand in its file, hand over for a parameter; nothing where another file
    calls it too, or where one of them does not say."""
    project, called = source.project, source.project.name_of(source.body_place(function))
    names = [each.name.value for each in parameters(function)]
    callers = (caller for caller in project.callers(called) if not is_idle(project, caller))
    if parameter not in names or any(caller.path != source.path for caller in callers):
        return []
    number = names.index(parameter) - (names[0] in ("self", "cls"))
    calls = source.calls_of((called,))
    given = [argument(call, number, parameter) for call in calls if not is_idle(project, source.place(call))]
    return [] if None in given else [each for each in given if each is not None]


def traces_numbers(project: Project, place: Place) -> bool:
    """Whether a jit right above a function makes arrays of the numbers that it is handed; equinox leaves them be, and
    so does what is said to be static, of which facts keep no names."""
    function = project.function_at(place)
    if function is None or any(name.startswith("static_arg") for d in function.decorators for name, _ in d.keywords):
        return False
    above = project.decorators(place.path, function)
    return any(name in JIT and not name.startswith("equinox.") for name in above)


def _handed(call: Call, function: Function, parameter: str) -> Value:
    """What `call` hands for `parameter`; nothing, where facts do not keep it, or where its default is taken."""
    number = function.parameters.index(parameter) - bool(function.owner and function.parameters[0] in ("self", "cls"))
    return call.value.argument(number, parameter)


def _is_setting(project: Project, place: Place, value: Value, depth: int) -> bool | None:
    """Whether a value in the code of `place` is a setting; None where facts do not keep what it is."""
    if value == NOTHING:
        return None
    if value.callee is not None:
        return value.callee.name in _MAKES_NUMBERS
    *owners, name = value.name.split(".")
    if is_constant(name) or any(map(SETTING.match, owners)):
        return True
    bound = project.files[place.path].lookup(place.scope, name) if name and not owners else None
    if bound is None or not bound[0] or not depth:
        return False
    scope, binding = bound
    if binding.kind == "parameter":
        return is_handed_settings(project, Place(place.path, scope), name, depth - 1)
    return binding.kind == "value" and _is_setting(project, place, binding.value, depth - 1)
