"""What a function or an object is asked for, and what it does where nobody asks: a loop that stands beside a scan, with
a setting that chooses between the two; a list of what to leave out, which is empty.

In: a `for`, a value of a Source, or what its layers are built by. Who wrote a loop and a scan knows what each costs:
only the one that runs unless somebody says otherwise is worth a word.
"""

from __future__ import annotations

import libcst as cst

from fusionlint.patterns.code.at import inside
from fusionlint.patterns.runs.switches import ifs_around
from fusionlint.source.facts import NOTHING
from fusionlint.source.places import Place
from fusionlint.source.traced import is_idle
from fusionlint.source.tree import Source
from fusionlint.source.walk import dotted, fields_of

_LOOPS = frozenset(("fori_loop", "while_loop"))


def is_instead_of_a_scan(loop: cst.CSTNode, source: Source) -> bool:
    """Whether an `if` chooses between `loop` and a scan, and the loop is not seen to be what it takes by default, or
    those who use it are seen to say otherwise."""
    found = _choice(loop, source)
    return found is not None and (_default(found[0], source) is not found[1] or _is_switched(found[0], source))


def scan_beside(loop: cst.CSTNode, source: Source) -> cst.BaseExpression | None:
    """What an `if` asks that chooses between `loop` and a scan."""
    found = _choice(loop, source)
    return found[0] if found is not None else None


def _choice(loop: cst.CSTNode, source: Source) -> tuple[cst.BaseExpression, bool] | None:
    """The same, and whether the loop is what it takes where that is true."""
    for above, below in ifs_around(loop, source):
        is_body = below is above.body
        other = above.orelse if is_body else above.body
        if other is not None and _scans(other):
            return above.test, is_body
    return None


def _scans(branch: cst.CSTNode) -> bool:
    """Whether something in `branch` calls what is called a scan (jax.lax.scan, nn.scan, scan_with_axes), or a loop of
    jax.lax."""
    called = (dotted(part.func).rpartition(".")[2].lower() for part in inside(branch, cst.Call))
    return any("scan" in name or name in _LOOPS for name in called)


def _default(test: cst.BaseExpression, source: Source) -> bool | None:
    """What `test` says if nobody says otherwise: `cfg.scan`, `not self.remat`, where a class or the function gives a
    default; None where that is not seen."""
    match test:
        case cst.UnaryOperation(operator=cst.Not(), expression=inner):
            known = _default(inner, source)
            return None if known is None else not known
        case cst.Name(flag):
            function = source.function(test)
            params = function.params if function is not None else cst.Parameters()
            given = (p.default for p in (*params.params, *params.kwonly_params) if p.name.value == flag)
            return _truth(next(given, None))
        case cst.Attribute(attr=cst.Name(flag)):
            return _truth(default_of(flag, test, source))
    return None


def _is_switched(test: cst.BaseExpression, source: Source) -> bool:
    """Whether a field that is False by default, `self.scan`, is given by all of the project's other files that call
    something of this one."""
    if not isinstance(test, cst.Attribute) or _default(test, source) is not False:
        return False
    flag = test.attr.value
    project = source.project
    tops = (Place(source.path, scope) for scope in (*source.facts.functions, *source.facts.raw.classes))
    names = [project.name_of(place) for place in tops if "." not in place.scope]
    calls = [(c, call) for name in names for c, call in project.calls_of(name) if c.path != source.path]
    calls = [(caller, call) for caller, call in calls if not is_idle(project, caller)]
    # Facts keep no literals: of what is False by default nobody writes it out but to have it True.
    return bool(calls) and all(dict(call.value.keywords).get(flag) == NOTHING for _, call in calls)


def default_given(name: cst.Name, source: Source) -> cst.BaseExpression | None:
    """The default of the parameter that `name` names; None of anything else."""
    match source.binder(name):
        case cst.Param(default=default):
            return default
    return None


def as_given(value: cst.BaseExpression, source: Source) -> cst.BaseExpression:
    """What a value is where nobody says otherwise: the default of the parameter that a name is, else what it stands
    for."""
    given = default_given(value, source) if isinstance(value, cst.Name) else None
    return source.meant(value) if given is None else given


def default_of(name: str, read: cst.Attribute, source: Source) -> cst.BaseExpression | None:
    """The default of the field `name`: of the class around a read of `self.name`, else of the one class of the file
    that has it."""
    owners = (scope for scope in source.facts.raw.classes if name in source.facts.raw.bindings.get(scope, ()))
    classes = [node for node in map(source.definition, owners) if isinstance(node, cst.ClassDef)]
    if isinstance(read.value, cst.Name) and read.value.value == "self":
        around = set(source.ancestors(read))
        classes = [node for node in classes if node in around]
    found = [value for node in classes for field, value in fields_of(node) if field == name and value is not None]
    return found[0] if len(found) == 1 else None


def _truth(value: cst.BaseExpression | None) -> bool | None:
    match value:
        case cst.Name("True" | "False" as written):
            return written == "True"
    return None


def is_none_by_default(value: cst.BaseExpression, source: Source) -> bool:
    """Whether a parameter is None where nobody says otherwise, or a field is None or empty, as the constructor or the
    class has it, `skipped=()`: somebody who asks for that names a few."""
    match value:
        case cst.Name():
            return dotted(given) == "None" if (given := default_given(value, source)) is not None else False
        case cst.Attribute(value=cst.Name("self"), attr=cst.Name(field)):
            default = default_of(field, value, source)
            return _is_empty(default if default is not None else _given_when_made(field, value, source))
    return False


def _given_when_made(field: str, read: cst.Attribute, source: Source) -> cst.BaseExpression | None:
    """The default of what the constructor of the class around stores in `self.field`."""
    place = source.project.class_of(source.place(read), "self")
    made = source.definition(f"{place.scope}.__init__") if place is not None and place.path == source.path else None
    for node in inside(made.body) if isinstance(made, cst.FunctionDef) else ():
        match node:
            case cst.Assign(
                targets=[cst.AssignTarget(target=cst.Attribute(value=cst.Name("self"), attr=cst.Name(kept)))],
                value=cst.Name() as stored,
            ) if kept == field:
                return default_given(stored, source)
    return None


def _is_empty(default: cst.BaseExpression | None) -> bool:
    match default:
        case cst.Name("None") | cst.Tuple(elements=[]) | cst.List(elements=[]):
            return True
    return False
