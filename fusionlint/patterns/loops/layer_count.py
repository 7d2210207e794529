"""How many layers a loop goes over: what it is counted to, and whether that is seen to be few.

In: what a loop of a Source is counted by. Out: the count, where it is a setting of which nobody says that it is small.
"""

from __future__ import annotations

import libcst as cst

from fusionlint.lazily import regex
from fusionlint.patterns.code.calls import argument, keyword
from fusionlint.patterns.runs.all_calls import calls_of_name
from fusionlint.patterns.runs.options import default_given, default_of
from fusionlint.source.facts import Call
from fusionlint.source.shapes import FEW
from fusionlint.source.traced import is_idle
from fusionlint.source.tree import Source
from fusionlint.source.walk import dotted, fields_of

# So often a module's field is followed to the module that hands it on.
_DEPTH = 3
_SCAN = "flax.linen.scan"
# What decides for an agent has two or three layers, and so has what is called a perceptron.
_SHALLOW = regex(r"[Pp]olicy|[Cc]ritic|(^|_)actor|Actor|(^|_)q_?net|Q[Nn]et|(^|_)mlp(_|$)|MLP(?![a-z])")


def layer_count(over: cst.BaseExpression, source: Source) -> cst.BaseExpression | None:
    """n, of `range(n)` or of n keys, where it is a setting or a length and not seen to be small."""
    over = source.meant(over)
    match over:
        case cst.Call(args=[cst.Arg(value=count)]) if source.calls(over, "range"):
            pass
        case cst.Call(args=[_, cst.Arg(value=count)]) if source.calls(over, "jax.random.split"):
            pass
        case _:
            return None
    count = source.meant(count)
    if isinstance(count, cst.Integer):
        return None
    default = _default(count, source)
    return None if default is not None and default <= FEW else count


def is_shallow(node: cst.CSTNode, source: Source) -> bool:
    """Whether the class around `node`, or its file, is called as networks of few layers are: a policy, a critic. Or the
    layers are what a recurrence does in each of its steps."""
    called = (source.facts.class_around(source.scope(node)), source.project.files[source.path].module)
    return any(_SHALLOW.search(name.rpartition(".")[2]) for name in called) or _is_step_in_time(node, source)


def _is_step_in_time(node: cst.CSTNode, source: Source) -> bool:
    """Whether the method around is scanned with the same parameters in each step, `@partial(nn.scan,
    variable_broadcast="params")`: a loop over the layers in there would begin anew with every one."""
    function = source.function(node)
    above = [one.decorator for one in function.decorators] if isinstance(function, cst.FunctionDef) else []
    for made in above:
        if isinstance(made, cst.Call) and keyword(made, "variable_broadcast") is not None:
            scans = (made.func, *(arg.value for arg in made.args))
            return any(source.qualified_name(one) == _SCAN for one in scans)
    return False


def _default(count: cst.BaseExpression, source: Source, depth: int = _DEPTH) -> int | None:
    """The default of a parameter, or what the calls of its class hand a constructor's; what the class of `self` gives
    a field, `depth: int = 12`, or what its calls do; of `config.depth`, what the one class of the file that has such a
    field gives it."""
    match count:
        case cst.Name():
            number = _whole(default_given(count, source))
            return _handed(count, source, depth) if number is None else number
        case cst.Attribute(value=cst.Name("self"), attr=cst.Name(field)):
            owner = source.nearest(count, cst.ClassDef)
            fields = dict(fields_of(owner)) if owner is not None else {}
            if (number := _whole(fields.get(field))) is not None or owner is None:
                return number
            place = [*fields].index(field) if field in fields else len(fields)
            return _given(field, place, owner, source, depth)
        case cst.Attribute(attr=cst.Name(setting)):
            number = _whole(default_of(setting, count, source))
            return FEW if number is None and _is_few_by_its_class(count, source) else number
    return None


def _is_few_by_its_class(count: cst.Attribute, source: Source) -> bool:
    """Whether the class that a configuration is said to be of, wherever it stands, gives a setting few by default:
    `config.depth`, or `self.config.depth`, of `config: Config`."""
    said = _said_of(source.meant(count.value), source)
    project = source.project
    found = project.find(project.qualified_name(source.place(count), dotted(said))) if said is not None else None
    if found is None:
        return False
    return f"{found.scope}.{count.attr.value}" in source.project.files[found.path].has("few by default")


def _said_of(owner: cst.BaseExpression, source: Source) -> cst.BaseExpression | None:
    """How a parameter, or a field of the class around, is annotated."""
    said: cst.Annotation | None = None
    match owner:
        case cst.Name():
            parameter = source.parameter(owner)
            said = parameter.annotation if parameter is not None else None
        case cst.Attribute(value=cst.Name("self"), attr=cst.Name(field)):
            around = source.nearest(owner, cst.ClassDef)
            lines = (line for line in around.body.body if isinstance(line, cst.SimpleStatementLine)) if around else ()
            fields = (part for line in lines for part in line.body if isinstance(part, cst.AnnAssign))
            said = next((f.annotation for f in fields if dotted(f.target) == field), None)
    return said.annotation if said is not None else None


def _whole(default: cst.BaseExpression | None) -> int | None:
    return default.evaluated_value if isinstance(default, cst.Integer) else None


def _handed(count: cst.Name, source: Source, depth: int) -> int | None:
    """What the calls of a class hand a parameter of its `__init__` that has no default."""
    parameter = source.parameter(count)
    init = source.function(count)
    owner = source.nearest(count, cst.ClassDef)
    if parameter is None or parameter.default is not None or owner is None:
        return None
    if not isinstance(init, cst.FunctionDef) or init.name.value != "__init__" or parameter not in init.params.params:
        return None
    return _given(count.value, init.params.params.index(parameter) - 1, owner, source, depth)


def _given(field: str, place: int, owner: cst.ClassDef, source: Source, depth: int) -> int | None:
    """The most that a call of the class gives for a field, its argument of that name or at that place, where all of
    them are seen to: `Model(depth=3)`, or `Model(depth=config.depth)` of a configuration that says `depth: int = 3`;
    in another file the latter alone, and few."""
    project = source.project
    name = project.name_of(source.body_place(owner))
    if depth == 0:
        return None
    called = [(p, call) for p, call in project.calls_of(name) if p.path != source.path and not is_idle(project, p)]
    made = [call for call in source.calls_of((name,)) if source.calls(call, name)]
    made += _of_lifted(owner, source)
    handed = [argument(call, place, field) for call in made if not is_idle(project, source.place(call))]
    found = [_number(value, source, depth) for value in handed]
    found += [FEW if _is_few(call, place, field, p.path, source) else None for p, call in called]
    known = [number for number in found if number is not None]
    return max(known) if known and len(known) == len(found) else None


def _of_lifted(owner: cst.ClassDef, source: Source) -> list[cst.Call]:
    """The calls of what a transform of the library makes of a class, `Batched = nn.vmap(Model, ...)`: `Batched(3)`."""
    reads = source.reads_at_all(owner.name)
    lifted = (source.assigned_name(made) for read in reads if (made := source.handed_to(read)) is not None)
    return [call for name in lifted if name is not None for call in calls_of_name(name, source) or ()]


def _is_few(call: Call, place: int, field: str, path: str, source: Source) -> bool:
    """Whether a call in the file at `path` hands on a setting, `depth=config.depth`, that the one class there which has
    such a field gives few by default."""
    configuration, _, setting = call.value.argument(place, field).name.rpartition(".")
    owners = source.project.classes_with(path, setting) if configuration not in ("", "self") else []
    return len(owners) == 1 and f"{owners[0]}.{setting}" in source.project.files[path].has("few by default")


def _number(value: cst.BaseExpression | None, source: Source, depth: int) -> int | None:
    match value:
        case cst.Integer():
            return value.evaluated_value
        case cst.Name() | cst.Attribute():
            return _default(value, source, depth - 1)
    return None
