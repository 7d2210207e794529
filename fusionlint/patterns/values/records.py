"""Records that are made where they are read: without arguments, `Config()`, of which a trace knows all that they hold,
or of what is named there, `State(grid=jnp.zeros(n))`.

In: a name of a Source, or a field. Out: whether the name stands for a record of the first kind, in the function that
makes it or in a branch that it is handed to; what a field was given.
"""

from __future__ import annotations

import libcst as cst

from fusionlint.patterns.code.calls import keyword
from fusionlint.source.facts import CONSTRUCTORS
from fusionlint.source.places import Place
from fusionlint.source.tree import Source

# What hands the operands behind the branches on to each of them; where they begin.
_BRANCHES = {"jax.lax.switch": 2, "jax.lax.cond": 3}


def is_made_of_defaults(name: cst.Name, source: Source) -> bool:
    """Whether `name` is a record of a class of the project that nobody has given anything."""
    if (value := source.value(name)) is not None:
        return _is_default(value, source)
    given = _operands(name, source)
    return bool(given) and all(
        isinstance(one, cst.Name) and (made := source.value(one)) is not None and _is_default(made, source)
        for one in given
    )


def given_as(field: cst.Attribute, source: Source) -> cst.BaseExpression | None:
    """`jnp.zeros(n)` of `state.grid`, where `state = State(grid=jnp.zeros(n))` is all that wrote it, and the class does
    nothing with what it is given."""
    made = source.value(field.value) if isinstance(field.value, cst.Name) else None
    if not isinstance(made, cst.Call) or (found := _class_of(made, source)) is None:
        return None
    if any(source.project.function_at(Place(found.path, f"{found.scope}.{name}")) for name in CONSTRUCTORS):
        return None
    return keyword(made, field.attr.value)


def _class_of(made: cst.Call, source: Source) -> Place | None:
    found = source.project.find(source.qualified_name(made.func))
    return found if found is not None and found.scope in source.project.files[found.path].raw.classes else None


def _is_default(value: cst.BaseExpression, source: Source) -> bool:
    """`Config()` of a class."""
    return isinstance(value, cst.Call) and not value.args and _class_of(value, source) is not None


def _operands(name: cst.Name, source: Source) -> list[cst.BaseExpression]:
    """What is handed to the parameter `name` of a function that is nothing but a branch; empty where that is unseen."""
    function = source.function(name)
    if not isinstance(function, cst.FunctionDef) or source.written(name) is None:
        return []
    parameters = [each.name.value for each in function.params.params]
    if name.value not in parameters or len(source.uses(name)) == 0:
        return []
    position = parameters.index(name.value)
    found = []
    for use in source.uses(function.name):
        if use.is_write:
            continue
        operand = _operand_beside(use.node, position, source)
        if operand is None:
            return []
        found.append(operand)
    return found


def _operand_beside(branch: cst.Name, position: int, source: Source) -> cst.BaseExpression | None:
    """The operand that `switch(i, [..., branch, ...], *operands)` hands to a parameter of `branch`."""
    for above in source.ancestors(branch):
        match above:
            case cst.Element() | cst.List() | cst.Tuple() | cst.Arg():
                continue
            case cst.Call(func=func, args=args):
                first = _BRANCHES.get(source.qualified_name(func) or "")
                if first is None or any(arg.keyword is not None or arg.star for arg in args):
                    return None
                behind = args[first:]
                return behind[position].value if position < len(behind) else None
        return None
    return None
