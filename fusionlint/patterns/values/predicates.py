"""What Python knows when a program is compiled: settings of an object, of a configuration, of a call.

In: tests of conditionals. Of a conditional whose test is such a value one branch is left, as measured: XLA drops the
other. A value that is not seen to be of that kind may be computed.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from fusionlint.patterns.code.at import inside, is_literal, names_in
from fusionlint.patterns.code.calls import has_only, keyword
from fusionlint.patterns.values.handed_settings import (
    SETTING,
    handed_here,
    is_constant,
    is_handed_settings,
    traces_numbers,
)
from fusionlint.patterns.values.kinds import kind
from fusionlint.source.names import JIT
from fusionlint.source.places import Place
from fusionlint.source.tree import Source
from fusionlint.source.walk import dotted

_PYTHON = frozenset(("bool", "int", "str"))
_COUNTS = ("len", "int", "bool", "isinstance", "hasattr")
_WHERE, _NONZERO = "jax.numpy.where", "jax.numpy.nonzero"
_DEPTH = 4
# What says which arguments are static by number: of a jit, of a pmap.
_STATIC = ("static_argnums", "static_broadcasted_argnums")


def is_of_python(test: cst.BaseExpression, source: Source, depth: int = _DEPTH) -> bool:
    """Whether all that `test` asks of is a setting or a size, and something is: `self.learns`, `cfg.MODE == 2`, `not
    fast`, `x.shape[0] * width > 1`."""
    leaves = list(_leaves(test, source, depth))
    asked = [leaf for leaf in leaves if not is_literal(leaf)]
    return bool(asked) and all(_is_setting(leaf, source) for leaf in asked)


def is_of_a_static_self(test: cst.BaseExpression, source: Source) -> bool:
    """Whether a test is computed of what an object keeps alone, in a method that is compiled for each object by itself,
    `@partial(jax.jit, static_argnums=0)`: what an object keeps are constants there, and XLA folds the conditional."""
    around = source.ancestors(test, cst.FunctionDef)
    method = next((each for each in around if "self" in static_names(each, source)), None)
    return method is not None and not depends_on_input(test, source)


def depends_on_input(node: cst.BaseExpression, source: Source, depth: int = 6) -> bool:
    """Whether an expression is computed from what a function around it was handed, `self` aside."""
    for name in names_in(node):
        above = source.parent(name)
        if isinstance(above, cst.Attribute) and above.value is not name:
            continue
        written = source.written(name)
        above = source.parent(written) if written is not None else None
        if isinstance(above, cst.Param) and name.value not in ("self", "cls"):
            return True
        if written is None and source.uses(name) and any(use.is_write for use in source.uses(name)):
            return True
        if isinstance(above, cst.AugAssign) and depth:  # what it was before, and what is added to that
            if any(depends_on_input(part, source, depth - 1) for part in (above.value, above.target)):
                return True
            continue
        if written is not None and depth and (value := source.value(name)) is not None:
            if depends_on_input(value, source, depth - 1):
                return True
        elif written is not None and isinstance(above, cst.Element | cst.For):
            return True
    return False


def _leaves(test: cst.BaseExpression, source: Source, depth: int) -> Iterator[cst.BaseExpression]:
    """What a test is made of by comparing, `and`, `or` and `not`, also under names."""
    match test:
        case cst.Comparison(left=left, comparisons=comparisons):
            parts = [left, *(target.comparator for target in comparisons)]
        case cst.BooleanOperation(left=left, right=right):
            parts = [left, right]
        case cst.UnaryOperation(expression=inner):
            parts = [inner]
        case cst.BinaryOperation(left=left, right=right):
            parts = [left, right]
        case cst.Name() if depth and (value := source.value(test)) is not None and not _is_asked(test, source):
            parts = [value]
        case _:
            yield test
            return
    for part in parts:
        yield from _leaves(part, source, depth - 1) if depth else (part,)


def _is_setting(leaf: cst.BaseExpression, source: Source) -> bool:
    match leaf:
        case cst.Attribute():
            said = dotted(leaf).split(".")
            if any(map(SETTING.match, said[:-1])) or is_constant(said[-1]) or leaf.attr.value == "ndim":
                return True
            return len(said) == 2 and said[0] == "self" and _is_declared(said[1], leaf, source)
        case cst.Name():
            stored = source.binder(leaf)
            if isinstance(stored, cst.Param):
                return _is_settled(stored, leaf, source)
            is_size = isinstance(stored, cst.Element) and kind(leaf, source) == "scalar"
            return is_size or is_constant(leaf.value) or _is_asked(leaf, source)
        case cst.Call():
            return source.calls(leaf, *_COUNTS) or _is_a_tuple(leaf, source)
        case cst.Subscript(value=cst.Attribute(attr=cst.Name("shape"))):
            return True
    return False


def _is_a_tuple(call: cst.Call, source: Source) -> bool:
    """Whether a call gives a tuple of arrays, `jnp.where(mask, size=1)`, which is equal to no number: Python says so
    itself, and one branch is left, whatever was meant."""
    is_of_hits = source.calls(call, _WHERE) and has_only(call, 1, "condition", "size", "fill_value")
    return is_of_hits or source.calls(call, _NONZERO)


def _is_asked(name: cst.Name, source: Source) -> bool:
    """Whether Python itself goes by what a variable holds, `if fast and n > 1`: a trace would end there."""
    return any(_is_gone_by(read, source) for read in source.reads_at_all(name))


def _is_gone_by(read: cst.CSTNode, source: Source) -> bool:
    for below, above in source.outward(read):
        match above:
            case cst.If(test=test) | cst.IfExp(test=test) | cst.While(test=test) | cst.Assert(test=test):
                return test is below
            case cst.Comparison(comparisons=[cst.ComparisonTarget(operator=operator)]):
                if isinstance(operator, cst.Is | cst.IsNot | cst.In | cst.NotIn):
                    return False
            case cst.BooleanOperation() | cst.UnaryOperation(operator=cst.Not()) | cst.ComparisonTarget():
                pass
            case _:
                return False
    return False


def _is_declared(field: str, read: cst.CSTNode, source: Source) -> bool:
    """Whether the class around says that a field is a number or a word of Python: `learns: bool = True`, or what
    `__init__` is handed as one and stores as it is."""
    owner = source.nearest(read, cst.ClassDef)
    for line in owner.body.body if owner is not None else ():
        match line:
            case cst.SimpleStatementLine(
                body=[cst.AnnAssign(target=cst.Name(name), annotation=cst.Annotation(annotation=said))]
            ) if name == field:
                return dotted(said) in _PYTHON and _is_module(owner, source)
            case cst.FunctionDef(name=cst.Name("__init__")):
                return _is_stored(field, line)
    return False


def _is_module(owner: cst.ClassDef | None, source: Source) -> bool:
    """Whether a class is a module, whose fields are settings; those of a record, a state, may be traced."""
    bases = [source.qualified_name(base.value) or dotted(base.value) for base in owner.bases] if owner else []
    return any(base.endswith("Module") for base in bases)


def _is_stored(field: str, init: cst.FunctionDef) -> bool:
    """Whether `__init__` stores under `self.field`, once, what it is handed, and says that it is of Python."""
    stored = [
        part.value
        for part in inside(init.body, cst.Assign)
        if any(dotted(target.target) == f"self.{field}" for target in part.targets)
    ]
    said = {p.name.value: p for p in (*init.params.params, *init.params.kwonly_params)}
    match stored:
        case [cst.Name(name)] if name in said:
            return _says_python(said[name])
    return False


def _says_python(parameter: cst.Param) -> bool:
    annotation = parameter.annotation.annotation if parameter.annotation is not None else None
    return annotation is not None and dotted(annotation) in _PYTHON


def _is_settled(parameter: cst.Param, read: cst.CSTNode, source: Source) -> bool:
    """Whether a parameter is static for a jit around it, or Python itself asks for it in its function, or it is of the
    function on the host that makes what is traced; or whether it is said to be of Python, `teacher_forcing: bool`, and
    read in a function inside, such as what a loop runs: a flag of a state would be handed to that."""
    function = source.owner(parameter)
    if not isinstance(function, cst.FunctionDef):
        return False
    name, place = parameter.name.value, source.place(parameter)._replace(scope=source.body_scope(function))
    if source.function(read) is not function and (source.contexts.get(place) == "host" or _says_python(parameter)):
        return True
    if name in static_names(function, source) or _is_asked(parameter.name, source) or _is_a_switch(parameter):
        return True
    return is_handed_settings(source.project, place, name) or _is_handed_literals(function, place, name, source)


def _is_a_switch(parameter: cst.Param) -> bool:
    """`normalise: bool = True`: a jit does not trace what is left to its default, and of what a trace hands on as it
    stands XLA knows which branch is meant."""
    return _says_python(parameter) and isinstance(parameter.default, cst.Name)


def _is_handed_literals(function: cst.FunctionDef, place: Place, name: str, source: Source) -> bool:
    """Whether all that call a function stand in this file, and write a number or a word for a parameter."""
    given = [] if traces_numbers(source.project, place) else handed_here(function, name, source)
    return bool(given) and all(map(is_literal, given))


def static_names(function: cst.FunctionDef, source: Source) -> frozenset[str]:
    """The parameters that a decorator says are static: `@partial(jax.jit, static_argnames=("fast",))`."""
    names: list[str] = []
    parameters = [p.name.value for p in (*function.params.posonly_params, *function.params.params)]
    for decorator in function.decorators:
        call = decorator.decorator
        if not isinstance(call, cst.Call) or not _jits(call, source):
            continue
        named, *counted = (_written(keyword(call, name)) for name in ("static_argnames", *_STATIC))
        names += [str(said.evaluated_value) for said in named if isinstance(said, cst.SimpleString)]
        places = [said.evaluated_value for each in counted for said in each if isinstance(said, cst.Integer)]
        names += [parameters[place] for place in places if place < len(parameters)]
    return frozenset(names)


def _jits(call: cst.Call, source: Source) -> bool:
    """`jax.jit(static_argnums=0)`, or a partial of it."""
    first = call.args[0].value if call.args and call.args[0].keyword is None else None
    handed = source.qualified_name(first) if first is not None else None
    return source.qualified_name(call.func) in JIT or handed in JIT


def _written(value: cst.BaseExpression | None) -> list[cst.BaseExpression]:
    match value:
        case cst.Tuple(elements=parts) | cst.List(elements=parts):
            return [part.value for part in parts]
    return [value] if value is not None else []
