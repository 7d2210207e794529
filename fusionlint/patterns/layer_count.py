"""How many layers a loop goes over: what it is counted to, and whether that is seen to be few.

In: what a loop of a Source is counted by. Out: the count, where it is a setting of which nobody says that it is small.
"""

from __future__ import annotations

import libcst as cst

from fusionlint.lazily import regex
from fusionlint.patterns.calls import argument
from fusionlint.patterns.options import default_given, default_of
from fusionlint.source.places import Place
from fusionlint.source.traced import is_idle
from fusionlint.source.tree import Source
from fusionlint.source.walk import fields_of

# A default of so many layers says that they are few.
_FEW = 4
# So often a module's field is followed to the module that hands it on.
_DEPTH = 3
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
    return None if default is not None and default <= _FEW else count


def is_shallow(node: cst.CSTNode, source: Source) -> bool:
    """Whether the class around `node`, or its file, is called as networks of few layers are: a policy, a critic."""
    called = (source.facts.class_around(source.scope(node)), source.project.files[source.path].module)
    return any(_SHALLOW.search(name.rpartition(".")[2]) for name in called)


def _default(count: cst.BaseExpression, source: Source, depth: int = _DEPTH) -> int | None:
    """The default of a parameter, what the class of `self` gives a field, `depth: int = 12`, or what its calls do; of
    `config.depth`, what the one class of the file that has such a field gives it."""
    match count:
        case cst.Name():
            return _whole(default_given(count, source))
        case cst.Attribute(value=cst.Name("self"), attr=cst.Name(field)):
            owner = next((a for a in source.ancestors(count) if isinstance(a, cst.ClassDef)), None)
            fields = dict(fields_of(owner)) if owner is not None else {}
            if (number := _whole(fields.get(field))) is not None or owner is None:
                return number
            place = [*fields].index(field) if field in fields else len(fields)
            return _given(field, place, owner, source, depth)
        case cst.Attribute(attr=cst.Name(setting)):
            return _whole(default_of(setting, count, source))
    return None


def _whole(default: cst.BaseExpression | None) -> int | None:
    return default.evaluated_value if isinstance(default, cst.Integer) else None


def _given(field: str, place: int, owner: cst.ClassDef, source: Source, depth: int) -> int | None:
    """The most that a call of the class gives for a field, its argument of that name or at that place, where all of
    them stand in this file and are seen to: `Model(depth=3)`, or `Model(depth=config.depth)` of a configuration that
    says `depth: int = 3`."""
    name = source.project.name_of(Place(source.path, source.body_scope(owner)))
    if depth == 0 or any(
        p.path != source.path and not is_idle(source.project, p) for p, _ in source.project.calls_of(name)
    ):
        return None
    made = (call for call in source.calls_of((name,)) if isinstance(call, cst.Call) and source.calls(call, name))
    handed = [argument(call, place, field) for call in made if not is_idle(source.project, source.place(call))]
    found = [_number(value, source, depth) for value in handed]
    known = [number for number in found if number is not None]
    return max(known) if known and len(known) == len(found) else None


def _number(value: cst.BaseExpression | None, source: Source, depth: int) -> int | None:
    match value:
        case cst.Integer():
            return value.evaluated_value
        case cst.Name() | cst.Attribute():
            return _default(value, source, depth - 1)
    return None
